"""What holds of every profile, view and selection: a table of invariants, functions from a case to what breaks them.

A *break* is a place (``view.table.column``, with dots) and a sentence. Times are us, as in ``report --json``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any

import numpy as np
from cases import Case, Record, Report, near, rows_of, window_of
from contents import content
from recorder import ROWS

from tpuprof_tui.model import Activity, Role
from tpuprof_tui.views.registry import views_of

Break = tuple[str, str]
#: A filter that nothing passes.
NOTHING = ["--filter", "dur<0ns"]
#: What no such selection narrows: patterns of ``view.table selection``.
WHOLE = (
    "fragmentation.* filter", "fragmentation.* range",
    "problems* *", "recordings* *", "tables* *", "device_memory* *",  # of the recording
    "memory.curve filter", "memory.devices filter", "counters.* filter",  # no events
    "memory filter", *(f"memory.{table} filter" for table in ("peaks", "operators", "by_name", "modules")),
    *(f"{view}.matrix {selection}" for view in ("communication", "cluster") for selection in ("range", "filter")),
    "critical_path* filter", "steps filter",  # of all events
)  # fmt: skip
#: Where the answer about a part may be that about all: steps are alike, a process without a device launches nothing, a
#: step of the run and a barrier are those of all units.
ALIKE = ("memory.held step", "held.end_by_* range", "modules step", "steps.steps filter", "steps* group",
         "waits.barriers group")  # fmt: skip
#: Columns whose sum over the rows of a table is a sum over events: of two parts of the events it is the sum of both.
SUMS = {
    "lanes.lanes": ("count",), "lanes.kinds": ("count",), "kernels.by_name": ("count", "calls", "total_us"),
    "kernels.by_launch": ("calls", "total_us"), "kernels.copies": ("calls", "total_us", "bytes"),
    "kernels.categories": ("calls", "total_us"),
    "kernels.by_core": ("count", "total_us"), "kernels.by_type": ("count", "total_us"),
    "kernels.by_type_shapes": ("count", "total_us"), "operations.by_name": ("count", "total_us"),
    "operators.by_type": ("count", "total_us"), "operators.by_name": ("calls", "host_self_us", "device_self_us"),
    "operators.by_shape": ("calls", "host_self_us", "device_self_us"), "names.names": ("calls", "total_us"),
    "calltree.calltree": ("self_us",), "lost.scopes": ("total_us", "count"), "lost.operations": ("total_us", "count"),
    "durations.durations": ("count",), "api.apis": ("count", "total_us"),
    "modules.modules": ("host_self_us", "device_self_us"), "distributed.collectives": ("calls", "total_us"),
    "communication.by_operator": ("count", "elapse_us"), "communication.by_group": ("count", "elapse_us"),
    "mfu.mfu": ("count", "total_us", "flop"), "modules.by_name": ("calls", "operators", "host_self_us"),
    "distributed.groups": ("calls", "time_us"),
    "launches": ("launches", "host_us", "device_us", "delay_us"),
    "kernels": ("kernels", "total_us"),
}  # fmt: skip
#: Columns that are unions cut at the edges of a range: of two ranges that touch they are the sum of both.
CUT = {
    "lanes.lanes": ("busy_us", "wait_us", "sync_us", "idle_us", "bytes"),
    "lanes.kinds": ("busy_us", "wait_us", "sync_us", "idle_us", "bytes"),
    "units.units": ("busy_us", "compute_us", "transfer_us", "communication_us", "overlap_us", "exposed_us",
                    "exposed_communication_us", "wait_us", "idle_us"),
    "streams": ("busy_us", "computation_us", "communication_us", "memcpy_us", "exposed_communication_us"),
    "streams.streams": ("busy_us",), "bandwidth": (), "bandwidth.by_direction": ("bytes",),
}  # fmt: skip
#: Tables whose column ``share`` divides a whole.
SHARES = (
    "kernels.by_core", "kernels.by_type", "kernels.by_name", "kernels.categories",
    "operations.by_name", "kernel_launches.launched",
    "critical_path.operations", "critical_path.lanes", "operators.by_type",
)  # fmt: skip


# -- parts and wholes ---------------------------------------------------------------


def lane_parts(case: Case) -> Iterator[Break]:
    """Busy, wait, sync and idle of a lane are its window, which all lanes and units of a worker share."""
    for selection, report in case.asked():
        for worker in report.views["lanes"]:
            windows = {round(window_of(unit), 3) for unit in report.table("units", "units", worker)}
            for lane in report.table("lanes", "lanes", worker):
                if lane["idle_us"] is None:
                    continue
                parts = lane["busy_us"] + lane["wait_us"] + lane["sync_us"] + lane["idle_us"]
                if windows and not any(near(parts, window) for window in windows):
                    yield "lanes.lanes", f"{selection}: {lane['lane']}: parts are {parts} us of {sorted(windows)}"
                if min(lane["busy_us"], lane["wait_us"], lane["sync_us"], lane["idle_us"]) < 0:
                    yield "lanes.lanes", f"{selection}: {lane['lane']}: a negative part"
                if not near(lane["utilisation"] * parts, lane["busy_us"], 0.01):
                    yield "lanes.lanes.utilisation", f"{selection}: {lane['lane']}: {lane['utilisation']} of {parts} us"


def kinds_are_lanes(case: Case) -> Iterator[Break]:
    """The row of a kind is the sum of its lanes."""
    for selection, report in case.asked():
        for worker in report.views["lanes"]:
            for kind in report.table("lanes", "kinds", worker):
                lanes = [lane for lane in report.table("lanes", "lanes", worker) if lane["kind"] == kind["kind"]]
                for key in ("count", "busy_us", "wait_us", "sync_us", "idle_us", "bytes"):
                    parts = [lane[key] for lane in lanes if lane[key] is not None]
                    if not near(sum(parts) if parts else None, kind[key]) or bool(parts) == (kind[key] is None):
                        yield f"lanes.kinds.{key}", f"{selection}: {kind['lane']}: {kind[key]}, its lanes {sum(parts)}"


def unit_parts(case: Case) -> Iterator[Break]:
    """Compute, exposed transfer and exposed communication of a unit are its busy time; the mean load is the mean."""
    for selection, report in case.asked():
        for worker in report.views["units"]:
            units = report.table("units", "units", worker)
            for unit in units:
                exposed = unit["exposed_us"] + (unit.get("exposed_communication_us") or 0)
                if unit["compute_us"] + exposed and not near(unit["compute_us"] + exposed, unit["busy_us"]):
                    yield "units.units.busy_us", f"{selection}: {unit['unit']}: {unit}"
                if not near(unit["utilisation"] * window_of(unit), unit["busy_us"], 0.01):
                    yield "units.units.utilisation", f"{selection}: {unit['unit']}: {unit}"
            mean = report.record("units", worker)["figures"].get("mean_utilisation")
            if mean is not None and not near(mean, sum(unit["utilisation"] for unit in units) / len(units), 1e-9):
                yield "units.mean_utilisation", f"{selection}: {worker}: {mean}"


def one_unit_parts(case: Case) -> Iterator[Break]:
    """The view of one unit says what its row in the list of units says, and its parts are its window."""
    for selection, report in case.asked():
        if "group" not in selection or "unit" not in report.views:
            continue
        for worker in report.views["unit"]:
            figures = report.record("unit", worker)["figures"]
            for row in report.table("units", "units", worker) if figures else ():
                for key in ("busy_us", "compute_us", "exposed_us", "wait_us", "idle_us"):
                    if not near(figures[key], row[key]):
                        yield f"unit.{key}", f"{selection}: {figures[key]}, in the list {row[key]}"
                parts = sum(figures[key] for key in ("compute_us", "exposed_us", "wait_us", "idle_us"))
                parts += figures.get("exposed_communication_us") or 0
                if not near(parts, window_of(row)):
                    yield "unit", f"{selection}: parts are {parts} us of {window_of(row)}"


def units_from_intervals(case: Case) -> Iterator[Break]:
    """Busy, compute, transfer and communication of a unit are the unions of the raw intervals of its lanes."""
    profile = case.profile
    for selection in ("whole", "range", "filter", "range+filter") if profile.timed else ():
        if selection not in case.selections:
            continue
        report = case.report(*case.selections[selection])
        longer = int(case.singles["filter"][1][4:-2]) if "filter" in selection else -1
        start, end = profile.start_ns, profile.end_ns
        if "range" in selection:
            length = end - start
            start, end = start + round(length * 0.25), start + round(length * 0.6)
        rows = {unit["unit"]: unit for worker in report.views["units"]
                for unit in report.table("units", "units", worker)}  # fmt: skip
        for unit in profile.units:
            row = rows.get(profile.groups.title(unit))
            if row is None:
                yield "units.units", f"{selection}: {profile.groups.title(unit)} is not listed"
                continue
            for key, activities in (
                ("compute_us", (Activity.COMPUTE,)), ("transfer_us", (Activity.TRANSFER,)),
                ("communication_us", (Activity.COMMUNICATION,)),
                ("busy_us", (Activity.COMPUTE, Activity.TRANSFER, Activity.COMMUNICATION)),
            ):  # fmt: skip
                union = _union_of(profile, unit, activities, start, end, longer) / 1000
                if key in row and row[key] is not None and not near(row[key], union):
                    yield f"units.units.{key}", f"{selection}: {row['unit']}: {row[key]}, of the intervals {union}"


def _union_of(profile: Any, unit: int, activities: tuple[Any, ...], start: int, end: int, longer: int) -> int:
    """Union of the work of a unit in a window by one sweep over all its intervals, ns."""
    within = profile.groups.within(unit)
    parts = []
    for lane in profile.lanes:
        if lane.on_host or not lane.counted or not len(lane):
            continue
        mask = lane["role"] == Role.WORK
        if lane.group not in within:
            if "owner" not in lane or profile.unit_of(lane) >= 0:
                continue
            mask &= np.isin(lane["owner"], list(within))
        chosen = lane.activity_mask(activities, slice(None))
        mask = mask if chosen is None else mask & chosen
        mask &= lane["end"] - lane["start"] > longer
        parts.append(np.stack([lane["start"][mask], lane["end"][mask]], axis=1))
    spans = np.concatenate(parts) if parts else np.zeros((0, 2), np.int64)
    total, reached = 0, start
    for begin, stop in spans[np.argsort(spans[:, 0], kind="stable")].tolist():
        begin, stop = max(begin, reached), min(stop, end)
        if stop > begin:
            total, reached = total + stop - begin, stop
    return total


def one_window(case: Case) -> Iterator[Break]:
    """All figures of a selection have one window: that of its units, which is the device's time; steps have theirs."""
    for selection, report in case.asked():
        if selection not in ("whole", "range", "filter"):
            continue
        for worker in report.views["units"]:
            units = report.table("units", "units", worker)
            windows = {round(window_of(unit), 3) for unit in units}
            if len(windows) > 1:
                yield "units.units", f"{selection}: {worker}: windows {windows}"
            places = [("overview", "total_us"), ("critical_path", "window_us")]
            # of several workers each has its own first and last work; annotations of streams are no work
            places += [("streams", "window_us")] if len(report.workers) == 1 and selection == "range" else []
            for view, key in places:
                value = report.record(view, worker)["figures"].get(key)
                if windows and value is not None and not any(near(value, window) for window in windows):
                    yield f"{view}.{key}", f"{selection}: {worker}: {value}, of units {windows}"
            if selection == "whole" and case.sessions == 1:
                device = case.json("info")["device_ns"]
                if windows and device is not None and not any(near(device / 1000, window) for window in windows):
                    yield "info.device_ns", f"{worker}: {device}, of units {windows}"
            steps, key = report.table("overview", "steps", worker), "window_us"
            value = report.record("overview", worker)["figures"].get(key)
            if value is not None and steps:
                ends = [row["start_us"] + row["step_us"] for row in steps]
                if not near(value, max(ends) - min(row["start_us"] for row in steps)):
                    yield f"overview.{key}", f"{selection}: {worker}: {value}, of its steps {steps}"


def shares_to_one(case: Case) -> Iterator[Break]:
    """Shares are between 0 and 1, and those that divide a whole add up to 1."""
    for selection, report in case.asked():
        for view, worker, record in report.records():
            for key, table in record["tables"].items():
                for column in table["columns"]:
                    # how much more one is than the mean is a difference
                    if column["unit"] != "share" or column["key"] in ("excess_share", "twice_share"):
                        continue
                    values = [row[column["key"]] for row in rows_of(table) if row[column["key"]] is not None]
                    if any(not -1e-9 <= value <= 1 + 1e-9 for value in values):
                        wrong = next(value for value in values if not -1e-9 <= value <= 1 + 1e-9)
                        yield f"{view}.{key}.{column['key']}", f"{selection}: {worker}: {wrong}"
                if f"{view}.{key}" in SHARES and table["rows"]:
                    shares = [row.get("share") for row in rows_of(table)]
                    if None not in shares and sum(shares) and not near(sum(shares), 1, 1e-6):
                        yield f"{view}.{key}.share", f"{selection}: {worker}: shares add up to {sum(shares)}"


def rows_to_figures(case: Case) -> Iterator[Break]:
    """What stands above a table is the sum, or the count, of its rows."""
    for selection, report in case.asked():
        for view, worker, record in report.records():
            figures = record["figures"]
            for key, table, column in (
                ("kernels", "by_name", "calls"), ("kernels", "by_name", "count"), ("total_us", "by_name", "total_us"),
                ("operations", "by_operator", "count"), ("elapse_us", "by_operator", "elapse_us"),
                ("gaps", "gaps", None), ("free_us", "gaps", "duration_us"), ("steps", "steps", None),
                ("parts", "segments", None),
            ):  # fmt: skip
                rows = rows_of(record["tables"].get(table))
                if key not in figures or table not in record["tables"] or (column and rows and column not in rows[0]):
                    continue
                if view == "kernels" and "by_launch" in record["tables"] and key == "total_us":
                    rows = rows + rows_of(record["tables"].get("none"))
                # uncounted steps are listed and not counted
                rows = [row for row in rows if row.get("counted", True)] if key == "steps" else rows
                total = len(rows) if column is None else sum(row[column] or 0 for row in rows)
                if figures[key] is not None and not near(figures[key], total, 0.01):
                    yield f"{view}.{key}", f"{selection}: {worker}: {figures[key]}, of the rows {total}"


def steps_of_a_run(case: Case) -> Iterator[Break]:
    """Steps and the gaps between them are the time from the first to the last; parts of a step are its length."""
    for selection, report in case.asked():
        for worker in report.views.get("steps", ()):
            rows = report.table("steps", "steps", worker)
            for before, row in pairwise(rows):
                if row.get("gap_us") is None or row.get("length_us") is None:
                    continue
                gap = row["start_us"] - before["start_us"] - before["length_us"]
                if not near(gap, row["gap_us"]):
                    yield "steps.steps.gap_us", f"{selection}: {row['step']}: {row['gap_us']}, between them {gap}"
            lengths = [row.get("length_us", row.get("step_us")) for row in rows if row.get("counted", True)]
            figures = report.record("steps", worker)["figures"]
            if (
                figures.get("median_us") is not None
                and lengths
                and not near(
                    figures["median_us"],
                    float(np.median([row["length_us"] for row in rows if row["usual"]] or lengths)),
                )
            ):
                yield "steps.median_us", f"{selection}: {figures['median_us']}, of the rows {np.median(lengths)}"
            for row in report.table("overview", "steps", worker):
                parts = ("kernel_us", "memcpy_us", "memset_us", "communication_us", "runtime_us", "dataloader_us",
                         "cpu_us", "other_us")  # fmt: skip
                if "other_us" in row and not near(sum(row[key] for key in parts), row["step_us"]):
                    yield "overview.steps", f"{selection}: {row}"
            above = report.record("overview", worker)["figures"]
            for key in ("step_us", "kernel_us", "communication_us", "other_us"):
                values = [row[key] for row in report.table("overview", "steps", worker) if key in row]
                if (
                    above.get(key) is not None
                    and above.get("steps") == len(values)
                    and values
                    and not near(above[key], sum(values) / len(values))
                ):
                    yield f"overview.{key}", f"{selection}: {worker}: {above[key]}, mean of the steps {values}"


def paths_add_up(case: Case) -> Iterator[Break]:
    """Own times of call paths add up to the totals of their roots."""
    for selection, report in case.asked():
        for worker in report.views.get("calltree", ()):
            rows = report.table("calltree", "calltree", worker)
            own = math.fsum(row["self_us"] or 0 for row in rows)
            roots = math.fsum(row["total_us"] or 0 for row in rows if not row["depth"])
            if not near(own, roots, 0.01):
                yield "calltree.calltree.self_us", f"{selection}: {worker}: own {own}, roots {roots}"


def lost_adds_up(case: Case) -> Iterator[Break]:
    """Lost time by scope is lost time by operation, and is what the total has beyond the ideal."""
    for selection, report in case.asked():
        for worker in report.views.get("lost", ()):
            tables = [report.table("lost", key, worker) for key in ("scopes", "operations")]
            for rows in tables:
                for row in rows:
                    if (
                        None not in (row["lost_us"], row["ideal_us"])
                        and not row["unknown"]
                        and not near(row["lost_us"], row["total_us"] - row["ideal_us"], 0.01)
                    ):
                        yield "lost.lost_us", f"{selection}: {row}"
            for key in ("lost_us", "total_us", "count"):
                scopes, operations = (math.fsum(row[key] or 0 for row in rows) for rows in tables)
                if all(tables) and not near(scopes, operations, 0.01):
                    yield f"lost.{key}", f"{selection}: by scope {scopes}, by operation {operations}"


def gains_exist(case: Case) -> Iterator[Break]:
    """A gain is at most the window, and one from idle or exposed time at most that of its unit."""
    for selection, report in case.asked():
        units = {
            unit["unit"]: unit for worker in report.views["units"] for unit in report.table("units", "units", worker)
        }
        window = max(map(window_of, units.values()), default=math.inf)
        for worker in report.views.get("findings", ()):
            for finding in report.table("findings", "findings", worker):
                gain, unit = finding["gain_us"] or 0, units.get(finding["group"])
                unit = next(iter(units.values())) if unit is None and len(units) == 1 else unit
                if gain > window + 0.01 or gain < 0:
                    yield f"findings.{finding['rule']}", f"{selection}: {gain} of a window of {window}"
                exposed = re.match(
                    r"exposed|idle|pause|gap|free|low_utili|host_|synchro|loader|short_k", finding["rule"]
                )
                if unit and exposed:
                    most = (
                        unit["idle_us"]
                        + unit["wait_us"]
                        + unit["exposed_us"]
                        + (unit.get("exposed_communication_us") or 0)
                    )
                    if gain > most + 0.01:
                        yield f"findings.{finding['rule']}", f"{selection}: {gain} of {most} idle or exposed"


# -- selections ---------------------------------------------------------------------


def complement(case: Case) -> Iterator[Break]:
    """The events that pass a filter and those that do not are all events."""
    for name in ("filter", "name"):
        if name in case.singles:
            text = case.singles[name][1]
            pair = case.report("--filter", text), case.report("--filter", f"!({text})")
            yield from _add_up(case.whole, pair, SUMS, text)


def ranges_add_up(case: Case) -> Iterator[Break]:
    """[a, b) and [b, c) are [a, c)."""
    if "range" not in case.singles or case.sessions > 1:
        return
    pair = case.report("--range", "0%..40%"), case.report("--range", "40%..100%")
    both = {place: (*SUMS.get(place, ()), *CUT.get(place, ())) for place in {**SUMS, **CUT}}
    yield from _add_up(case.whole, pair, both, "two ranges")


def units_add_up(case: Case) -> Iterator[Break]:
    """The events of the units are those of all lanes of the device."""
    numbers = [case.profile.groups[unit].number for unit in case.profile.units]
    if len(numbers) > 1 and len(set(numbers)) == len(numbers):
        parts = tuple(case.report("--core", str(number)) for number in numbers)
        listed = {place: SUMS[place] for place in ("lanes.lanes", "kernels.by_name", "operations.by_name",
                                                   "durations.durations")}  # fmt: skip
        yield from _add_up(case.whole, parts, listed, "units")


def _add_up(whole: Report, parts: tuple[Report, ...], places: dict[str, tuple[str, ...]], what: str) -> Iterator[Break]:
    for place, keys in places.items():
        for key in keys:
            all_of_it = whole.sum(place, key)
            sums = [part.sum(place, key) for part in parts]
            if all_of_it is not None and not near(math.fsum(value or 0 for value in sums), all_of_it, 0.01):
                yield f"{place}.{key}", f"{what}: {sums} of {all_of_it}"


def steps_are_parts(case: Case) -> Iterator[Break]:
    """The events of a step are those that its row counts, and the steps have no more than the whole."""
    if "step" not in case.singles:
        return
    parts = {number: case.report("--step", number) for number in _step_numbers(case)[:6]}
    for place, keys in SUMS.items():
        for key in keys:
            whole = case.whole.sum(place, key)
            total = math.fsum(part.sum(place, key) or 0 for part in parts.values())
            if whole is not None and total > whole * (1 + 1e-9) + 0.01:
                yield f"{place}.{key}", f"steps {list(parts)}: {total} of {whole}"
    for number, part in parts.items():
        for worker in case.whole.views["steps"]:
            for row in case.whole.table("steps", "steps", worker):
                if str(row.get("number")) == number and "events" in row:
                    lanes = sum(lane["count"] for lane in part.table("lanes", "lanes", worker))
                    if lanes != row["events"]:
                        yield "steps.steps.events", f"{worker}: step {number}: {row['events']}, in lanes {lanes}"


def _step_numbers(case: Case) -> list[str]:
    told = case.ask("summary", *case.words, "--step", "987654321")[1]
    return re.findall(r"\d+", told.rpartition("There are:")[2])


def full_range(case: Case) -> Iterator[Break]:
    """A range of 0 to 100 % is the whole."""
    if "range" not in case.singles:
        return
    ranged = case.report("--range", "0%..100%")
    for view, worker, record in case.whole.records():
        other = ranged.record(view, worker)
        for key in sorted({*record["figures"], *other["figures"]}):
            if record["figures"].get(key) != other["figures"].get(key):
                yield f"{view}.{key}", f"{worker}: {record['figures'].get(key)} -> {other['figures'].get(key)}"
        for key in sorted({*record["tables"], *other["tables"]}):
            if record["tables"].get(key, {}).get("rows") != other["tables"].get(key, {}).get("rows"):
                yield f"{view}.{key}", f"{worker}: {_first_difference(record, other, key)}"


def _first_difference(record: Record, other: Record, key: str) -> str:
    pairs = zip(rows_of(record["tables"].get(key)), rows_of(other["tables"].get(key)), strict=False)
    found = next(
        ({name: (a[name], b.get(name)) for name in a if a[name] != b.get(name)} for a, b in pairs if a != b), ""
    )
    return f"rows {len(rows_of(record['tables'].get(key)))} -> {len(rows_of(other['tables'].get(key)))}: {found}"[:200]


def views_follow(case: Case) -> Iterator[Break]:
    """Every view follows a range, a step, a filter and a scope, but for the listed ones."""
    narrow = {"filter": [NOTHING]} if "filter" in case.singles else {}
    if "range" in case.singles:
        narrow["range"] = [["--range", "99%..100%"]]
    if "step" in case.singles and case.steps > 1:
        numbers = _step_numbers(case)
        # the largest of one of them may well be that of all
        narrow["step"] = [["--step", number] for number in (numbers[0], numbers[-1])]
    units = [case.profile.groups[unit].number for unit in case.profile.units]
    if "group" in case.singles and len(case.whole.workers) == 1 and len(units) > 1:
        # the answer about one of them may well be that about all
        narrow["group"] = [["--core", str(unit)] for unit in (units[0], units[-1])]
    for name, choices in narrow.items():
        for view, worker, record in case.whole.records():
            if (view, name) == ("steps", "range") and case.steps == 1:
                continue  # the only step overlaps the range
            others = [case.report(*options).record(view, worker) for options in choices]
            figures = {key: value for key, value in record["figures"].items() if value}
            same = all(figures == {key: value for key, value in each["figures"].items() if value} for each in others)
            if figures and same and not _is_whole(f"{view} {name}"):
                yield f"{view} {name}", f"{worker}: figures are those of the whole: {figures}"
            for key, table in record["tables"].items():
                same = all(each["tables"].get(key, {}).get("rows") == table["rows"] for each in others)
                if table["rows"] and same and not _is_whole(f"{view}.{key} {name}"):
                    yield f"{view}.{key} {name}", f"{worker}: the {len(table['rows'])} rows are those of the whole"


def _is_whole(place: str) -> bool:
    return any(fnmatchcase(place, pattern) for pattern in (*WHOLE, *ALIKE))


def exceptions_say_so(case: Case) -> Iterator[Break]:
    """A view that a filter, or a range, does not narrow says so."""
    views = {view: record for view, _, record in case.whole.records()}
    for pattern in WHOLE:
        view, selection = re.split(r"[.* ]", pattern)[0], pattern.rpartition(" ")[2].replace("*", "filter")
        has = any(table["rows"] for key, table in views.get(view, {"tables": {}})["tables"].items()
                  if fnmatchcase(f"{view}.{key} {selection}", pattern))  # fmt: skip
        if has and selection in case.singles:
            text = case.ask("report", *case.words, view, *case.singles[selection])[2].decode()
            if not re.search(r"(?i)whole|not narrowed|not follow|all events", text):
                yield view, text[:200]


# -- faces --------------------------------------------------------------------------


_NUMBER = re.compile(r"~?([+-]?[\d,]+(?:\.\d+)?) ?(ns|us|ms|s|%|B|KiB|MiB|GiB|TiB|GB/s)?$")
_FACTORS = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6, "%": 0.01, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def text_is_json(case: Case) -> Iterator[Break]:
    """Text and JSON say one number, and "-" where the other says null."""
    for selection in ("whole", "range"):
        options = case.selections.get(selection)
        if options is None:
            continue
        report = case.report(*options)
        text = case.output("report", "--markdown", "--limit", ROWS, *options).decode()
        sections = re.split(r"(?m)^### .*$", text)[1:]
        records = list(report.records())
        if len(sections) != len(records):
            yield "report", f"{selection}: {len(sections)} pages in text, {len(records)} in JSON"
            continue
        for section, (view, worker, record) in zip(sections, records, strict=True):
            offset = report.workers.get(worker, {}).get("offset_us", 0)
            tables = [(key, table) for key, table in record["tables"].items() if table["rows"]]
            for title, header, rows in _markdown_tables(section):
                unit = re.search(r"\((ns|us|ms|s)\)$", title)
                chosen = _table_of(header, rows, tables)
                if chosen is None:
                    continue
                key, table = tables.pop(chosen)
                yield from _cells_differ(
                    f"{view}.{key}", selection, table, header, rows, unit[1] if unit else "us", offset
                )


def _markdown_tables(section: str) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    for title, block in re.findall(r"\*\*(.*)\*\*\n\n((?:\|.*\n?)+)", section):
        lines = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in block.splitlines()]
        yield title, lines[0], lines[2:]


def _table_of(header: list[str], rows: list[list[str]], tables: list[tuple[str, Record]]) -> int | None:
    """Index of the table in JSON with as many rows and most of the titles."""
    titles = {re.sub(r" \((ns|us|ms|s)\)$", "", title) for title in header}
    for index, (_, table) in enumerate(tables):
        known = {column["title"] for column in table["columns"]}
        if len(table["rows"]) == len(rows) and 2 * len(titles & known) > len(titles):
            return index
    return None


def _cells_differ(
    place: str, selection: str, table: Record, header: list[str], rows: list[list[str]], main: str, offset: float
) -> Iterator[Break]:
    """``offset``: of the worker's clock, which JSON counts times from; text has those of the time line."""
    titles = [column["title"] for column in table["columns"]]
    for index, title in enumerate(header):
        own = re.search(r" \((ns|us|ms|s)\)$", title)
        plain = title[: own.start()] if own else title
        if titles.count(plain) != 1 or header.count(title) != 1:
            continue
        column = table["columns"][titles.index(plain)]
        if not column["unit"]:
            continue
        for row, cells in zip(table["rows"], rows, strict=True):
            value, cell = row[titles.index(plain)], cells[index]
            if isinstance(value, str):  # an absolute time, exact to a digit that text does not show
                continue
            if (value is None) != (cell == "-"):
                if value != 0:  # a document defines 0 where other tools have it
                    yield f"{place}.{column['key']}", f"{selection}: {value} in JSON, {cell} in text"
                break
            found = _NUMBER.match(cell)
            if value is None or found is None or column["unit"] not in ("us", "count", "share", "B"):
                continue
            if column["unit"] == "share" and found[2] != "%":
                break  # a column with a shorter title, which is another one's
            unit = found[2] or (own[1] if own else main) if column["unit"] == "us" else found[2]
            shown = float(found[1].replace(",", "")) * _FACTORS.get(unit or "", 1)
            # one in the last digit that is shown
            digit = 10.0 ** -len(found[1].partition(".")[2]) * _FACTORS.get(unit or "", 1)
            if re.search(r"(^|_)(start|time|at|host|device)_us$", column["key"]) and found[2]:
                value += offset
            if abs(shown - value) > digit * 0.51:
                yield f"{place}.{column['key']}", f"{selection}: {value} in JSON, {cell} ({unit}) in text"
                break


def sheets_are_json(case: Case) -> Iterator[Break]:
    """The sheets of a workbook of views say what JSON says."""
    # slow to write: the smallest that has all
    selections = ("range+group",) if case.profile.vocabulary.source == "sophgo" else ("range", "group")
    for selection, tables in _tables_of_one_worker(case, selections):
        by_heads: dict[tuple[str, ...], list[tuple[str, Record]]] = {}
        for place, table in tables.items():
            titles = [f"{column['title']} ({column['unit']})" if column["unit"] else column["title"]
                      for column in table["columns"]]  # fmt: skip
            by_heads.setdefault((*titles, str(len(table["rows"]))), []).append((place, table))
        for sheet, rows in _sheets(case.file("xlsx", *case.selections[selection])).items():
            heads = [
                found[0]
                for key, found in by_heads.items()
                if rows and key[-1] == str(len(rows) - 1) and set(rows[0]) <= set(key[:-1]) and len(found) == 1
            ]
            if len(heads) != 1 or len(set(rows[0])) < len(rows[0]):
                continue  # two tables that only their title tells apart
            (place, table), keys = heads[0], [column["key"] for column in heads[0][1]["columns"]]
            titles = [f"{column['title']} ({column['unit']})" if column["unit"] else column["title"]
                      for column in table["columns"]]  # fmt: skip
            for title, cells in zip(rows[0], zip(*rows[1:], strict=True), strict=True):
                values = [row[titles.index(title)] for row in table["rows"]]
                wrong = [pair for pair in zip(values, cells, strict=True) if not _same_cell(*pair)]
                if wrong:
                    yield f"{place}.{keys[titles.index(title)]}", f"{selection}: {sheet}: {wrong[0]}"


def _tables_of_one_worker(case: Case, selections: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Record]]]:
    """The tables of JSON by view and key, of profiles whose files are about the same one worker."""
    for selection in selections:
        if selection in case.selections and len(case.whole.workers) == 1:
            report = case.report(*case.selections[selection])
            yield selection, {f"{view}.{key}": table for view, _, record in report.records()
                              for key, table in record["tables"].items()}  # fmt: skip


def _same_cell(value: Any, cell: str) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return True
    try:
        return near(float(cell), float(value))
    except ValueError:
        return False


def _sheets(workbook: bytes) -> dict[str, list[list[str]]]:
    """Rows of texts of each sheet; a cell that is not there is empty."""
    sheets: dict[str, dict[int, dict[str, str]]] = {}
    for (sheet, *column), cells in content("xlsx", workbook).items():
        for cell in cells if column else ():
            place, _, text = cell.partition(" ")
            sheets.setdefault(sheet, {}).setdefault(int(re.sub(r"\D", "", place)), {})[column[0]] = text
    columns = {sheet: sorted(set().union(*rows.values()), key=lambda name: (len(name), name))
               for sheet, rows in sheets.items()}  # fmt: skip
    return {sheet: [[rows[row].get(column, "") for column in columns[sheet]] for row in sorted(rows)]
            for sheet, rows in sheets.items()}  # fmt: skip


def page_is_json(case: Case) -> Iterator[Break]:
    """The tables of the web page say what JSON says."""
    for selection, tables in _tables_of_one_worker(case, ("whole", "range", "filter", "group")):
        page = case.page(*case.selections[selection])
        for place, table in tables.items():
            view, _, key = place.partition(".")
            for number, column in enumerate(table["columns"]):
                shown = page.get(("views", view, key, column["key"]))
                values = [row[number] for row in table["rows"]]
                # on the page rows may be merged or left out, never more
                if shown is None or len(shown) < len(values):
                    continue
                if len(shown) > len(values):
                    yield place, f"{selection}: {len(values)} rows, on the page {len(shown)}"
                    break
                factor = 1e-3 if column["unit"] == "us" else 1
                pairs = [pair for pair in zip(values, shown, strict=True) if not isinstance(pair[0], str)]
                wrong = [
                    (a, b)
                    for a, b in pairs
                    if (a is None) != (b is None) or (b is not None and not near(a, b * factor))
                ]
                if wrong:
                    yield f"{place}.{column['key']}", f"{selection}: JSON, page: {wrong[0]}"


def events_in_all_forms(case: Case) -> Iterator[Break]:
    """Rows of JSON lines, CSV and Parquet are the same events, and as many as the recording is said to have."""
    columns = ["--columns", "engine,name,start,duration"]
    for selection, options in case.selections.items():
        if selection == "rank":
            continue
        rows = {
            form: content(form, case.output("instructions", "--format", form, *columns, *options))
            for form in ("jsonl", "csv", "parquet")
        }
        starts: dict[str, list[int | None]] = {}
        for form, found in rows.items():
            key = next((place for place in found if place[0].split(" ")[0] == "start"), None)
            starts[form] = [None if value in ("", None) else int(value) for value in found.get(key, [])] if key else []
        if not starts["jsonl"] == starts["csv"] == starts["parquet"]:
            yield "instructions.start", f"{selection}: { ({form: len(values) for form, values in starts.items()}) }"
        if selection == "whole":
            said = case.json("describe")["events"]["count"]
            if said != len(starts["csv"]):
                yield "describe.events", f"{said}, rows {len(starts['csv'])}"


def one_length(case: Case) -> Iterator[Break]:
    """Info as text and JSON, the description, the report and the first screen say one length."""
    if not case.profile.timed or case.sessions > 1:
        return
    lengths = {"info": case.json("info")["total_ns"] / 1000, "describe": case.json("describe")["total_us"]}
    lengths |= {f"report {worker['key']}": worker["duration_us"] for worker in case.whole.workers.values()
                if len(case.whole.workers) == 1}  # fmt: skip
    if len({round(length, 3) for length in lengths.values()}) > 1:
        yield "length", str(lengths)
    text = re.search(r"(?m)^Total time +([\d,.]+) (ns|us|ms|s)$", case.ask("info", *case.words)[2].decode())
    if text is None or not math.isclose(
        float(text[1].replace(",", "")) * _FACTORS[text[2]], lengths["info"], rel_tol=1e-3, abs_tol=0.001
    ):
        yield "info.total", f"{text and text[0]} in text, {lengths['info']} in JSON"


def rows_are_counts(case: Case) -> Iterator[Break]:
    """As many rows are exported as events are counted in the lanes, in the page, in the figures above."""
    for selection, report in case.asked():
        if selection == "rank" or not case.profile.timed:
            continue
        options = case.selections[selection]
        rows = case.output("instructions", "--columns", "engine,core", "--format", "csv", *options).count(b"\n") - 1
        counted = sum(
            lane["count"] for worker in report.views["lanes"] for lane in report.table("lanes", "lanes", worker)
        )
        device = sum(len(lane) for lane in case.profile.lanes if not lane.on_host)
        # of allocations, lanes have no figures
        known = case.profile.vocabulary.work_breakdowns
        if known and device and device == case.profile.event_count and counted != rows:
            yield f"lanes.lanes.count {selection}", f"{counted}, rows of events {rows}"


def published_is_overview(case: Case) -> Iterator[Break]:
    """The files of a selection have one total: overview, published summary, page."""
    for selection, report in case.asked():
        if selection not in ("whole", "range", "group", "step") or len(report.workers) > 1:
            continue
        totals: dict[str, float] = {}
        for view, _, record in report.records():
            if view == "overview" and "total_us" in record["figures"]:
                totals["overview.total_us"] = record["figures"]["total_us"]
            for row in rows_of(record["tables"].get("published")):
                totals["published.total_us"] = row["total_us"]
        if totals:
            page = case.page(*case.selections[selection])
            totals["page.length"] = page["record", "length"] / 1000
            shown = [key for place, keys in page.items() if place[:2] == ("record", "figures") for key in keys[:1]]
            units = report.table("units", "units", next(iter(report.views["units"])))
            cores = page.get(("record", "figures", "core"), [])
            if len(cores) != len(units):
                yield f"page.figures {selection}", f"{len(cores)} units, in the report {len(units)}: {shown[:3]}"
        if len({round(total, 3) for total in totals.values()}) > 1:
            yield f"total {selection}", str(totals)


def gate_is_report(case: Case) -> Iterator[Break]:
    """A gate against itself passes, and its figures are those of the report."""
    path = case.words[0]
    for view, key in (("total", ""), ("step", ""), ("units", "mean_utilisation"), ("overview", "step_us"),
                      ("overview", "total_us"), ("kernels", "total_us"), ("streams", "busy_us")):  # fmt: skip
        rule = f"{view}.{key}".rstrip(".")
        status, _, body = case.ask("gate", path, "--against", path, "--json", "--fail-on", f"{rule}>5%")
        if status == 2:
            continue
        found = json.loads(body)["rules"][0]
        if status not in (0, 1) or found["base"] != found["other"] or found["delta"]:
            yield f"gate.{rule}", f"against itself: {status} {found}"
        places = {"step": (("overview", "step_us"), ("steps", "median_us"))}.get(view, ((view, key),))  # fmt: skip
        values = [record["figures"][figure] for place, figure in places
                  for record in case.whole.views.get(place, {}).values()
                  if record["figures"].get(figure) is not None]  # fmt: skip
        if view == "total":
            values = [case.json("info")["total_ns"] / 1000] if case.sessions == 1 and case.profile.timed else []
        values += [sum(values) / len(values)] if values else []
        if values and not any(near(found["base"], value, 0.01) for value in values):
            yield f"gate.{rule}", f"{found['base']}, in the report {values}"


def data_set_is_report(case: Case) -> Iterator[Break]:
    """Figures of a data set are those of the report; of several workers the largest, of a mean the mean."""
    if len(case.words) > 1:
        return
    for figure, value in case.data_set().items():
        view, _, key = figure.partition(".")
        values = [record["figures"][key] for record in case.whole.views.get(view, {}).values()
                  if record["figures"].get(key) is not None]  # fmt: skip
        if key.startswith("mean_") and values:
            values = [math.fsum(values) / len(values)]
        if values and not any(near(value, float(each)) for each in values):
            yield f"dataset.{figure}", f"{value}, in the report {values}"


def facts_are_declared(case: Case) -> Iterator[Break]:
    """A view that is said to have no figures has none."""
    for view in views_of(case.profile.vocabulary):
        if not view.facts and any(record["figures"] for record in case.whole.views.get(view.id, {}).values()):
            yield view.id, "it has figures"


def itself(case: Case) -> Iterator[Break]:
    """A profile against itself differs nowhere."""
    found = json.loads(case.ask("diff", case.words[0], *case.words, "--json")[2])
    if found["verdict"] is not None and found["verdict"]["status"] != "same":
        yield "diff", str(found["verdict"])[:200]
    for place, values in content("json", json.dumps({"": found}).encode()).items():
        if place[-1].startswith("delta"):
            changed = [value for value in (values if isinstance(values, list) else [values]) if value]
            if changed:
                yield ".".join(part for part in place[1:] if part), f"{len(changed)} changed, {changed[0]}"


def one_unit_per_column(case: Case) -> Iterator[Break]:
    """Columns that are compared, of a base and another, of host and device, self and total, share their unit."""
    texts = {"report": case.output("report", "--markdown", "--limit", "50")}
    if case.other is not None:
        views = case.comparable_views()
        texts["diff"] = case.ask("diff", *case.other, *case.words, "--markdown", "--limit", "50", *views)[2]
    for command, text in texts.items():
        for section in re.split(r"(?m)^### ", text.decode())[1:]:
            for title, header, _ in _markdown_tables(section):
                units: dict[str, set[str]] = {}
                for name in header:
                    own = re.search(r" \((ns|us|ms|s)\)$", name)
                    pairs = r"(?i),? (base|other)$|^(base|other)$|\b(host|device) (?=self|total)"
                    plain = re.sub(pairs, "", name[: own.start()] if own else name)
                    if plain != (name[: own.start()] if own else name):
                        units.setdefault(plain.strip().lower(), set()).add(own[1] if own else "")
                for plain, found in units.items():
                    if len(found) > 1:
                        heading = re.sub(r" \((ns|us|ms|s)\)$", "", title)
                        yield f"{command}.{heading}.{plain}", f"{section.splitlines()[0]}: {sorted(found)} of {header}"


def missing_is_null(case: Case) -> Iterator[Break]:
    """What is missing is null in JSON: never not-a-number, or the number that stands for it within."""
    for selection, report in case.asked():
        for view, _, record in report.records():
            for place, values in content("json", json.dumps(record).encode()).items():
                for value in values if isinstance(values, list) else [values]:
                    if (
                        isinstance(value, (int, float))
                        and (value != value or abs(value) > 1e17)
                        and place[-1] != "bytes"
                    ):
                        yield f"{view}.{'.'.join(place[1:])}", f"{selection}: {value}"
                        break


def times_are_places(case: Case) -> Iterator[Break]:
    """A time in JSON can be given as a range and lands where it was: a step is alone in the range of its row."""
    for worker in case.whole.views.get("steps", ()):
        rows = case.whole.table("steps", "steps", worker)
        for row in rows[1:2]:
            length = row.get("length_us", row.get("step_us"))
            if row.get("start_us") is None or not length:
                continue
            begin = row["start_us"] + case.whole.workers[worker].get("offset_us", 0)
            report = case.report("--range", f"{begin:.3f}us..{begin + length:.3f}us")
            found = report.table("steps", "steps", worker)
            if not any(near(each["start_us"], row["start_us"]) and each["step"] == row["step"] for each in found):
                yield (
                    "steps.steps.start_us",
                    f"{worker}: {row['step']} at {row['start_us']}; in this range: {found[:2]}",
                )


INVARIANTS: tuple[Callable[[Case], Iterator[Break]], ...] = (
    lane_parts, kinds_are_lanes, unit_parts, one_unit_parts, units_from_intervals, one_window, shares_to_one,
    rows_to_figures, steps_of_a_run, paths_add_up, lost_adds_up, gains_exist, complement, ranges_add_up, units_add_up,
    steps_are_parts, full_range, views_follow, exceptions_say_so, text_is_json, sheets_are_json, page_is_json,
    events_in_all_forms, one_length, rows_are_counts, published_is_overview, gate_is_report, data_set_is_report,
    facts_are_declared, itself, one_unit_per_column, missing_is_null, times_are_places,
)  # fmt: skip
