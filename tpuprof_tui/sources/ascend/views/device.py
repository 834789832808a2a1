"""Use of the device: overview (each step, recomputed and as recorded), streams, free time with its causes, memory."""

from __future__ import annotations

from functools import partial
from itertools import combinations, pairwise
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.analysis.pivot import count_true, key, least, most, total
from tpuprof_tui.analysis.pivot import rows as count
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import INT_MISSING, Activity, Role
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.model.table import Table as Records
from tpuprof_tui.sources.chrome.columns import I64
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table, Target

from ..records import COMMUNICATION, COMPUTING, COVERAGE, STEP_COLUMNS, STEP_KEYS, RecordedRank, Step
from .figures import CAUSES, WHY, RankFigures, figures_of
from .ranks import (
    STEP_HEADS,
    STEP_NOTE,
    STEP_TIMES,
    descending,
    frame_of,
    lacks,
    lanes_of,
    moment,
    not_narrowed,
    per_rank,
    selected_rows,
    with_other_columns,
)

#: Columns shown only if there are receive operators (pipeline parallelism).
_RECEIVED: Final = ("bubble_us", "communication_not_overlapped_exclude_receive_us")
_STEPS: Final = (Column("step", "Step"), *STEP_TIMES)
_WHOLE: Final = Step("", -1)
_SELECTED: Final = "Steps as recorded: of all events, so they are left out beside a range or filter."
#: Most streams compared pairwise, the busiest.
_MOST: Final = 64


@per_rank
def overview(query: Query, rank: RecordedRank) -> Answer:
    """The overview of one rank."""
    figures = figures_of(query, rank)
    steps, narrowed = figures.steps, query.range is not None or bool(query.condition)
    recorded = query.profile.table("recorded_steps", rank.group)
    sums = {key: figures.sum(key) for key in STEP_KEYS}
    facts = [
        Fact(key, title, sums[key], "duration", share=_share(sums[key], sums["stage_us"]),
             short_title=STEP_HEADS.get(key, ("", 0))[0], shown=bool(sums["bubble_us"]) or key not in _RECEIVED)
        for title, _, key in STEP_COLUMNS if steps and key != "preparing_us"
    ]  # fmt: skip
    tables = [Table.of_rows("steps", "Steps", _STEPS, [(step.label, *step.times) for step in steps], one_unit=True,
                            target=lambda row: Target(step=steps[row].number), notes=(STEP_NOTE,),
                            longest="stage_us")]  # fmt: skip
    missing, notes = [], list[str]()
    if steps:
        facts.append(Fact("difference_us", "Recorded table differs by", figures.difference, "duration"))
        notes += () if figures.steps_are_computed else not_narrowed(query, "Steps", ("range", "filter"))
    if recorded is not None and not narrowed:
        title = f"Steps as recorded ({recorded.file.rpartition('/')[2]})"
        listed = [(label, *values) for label, values in figures.recorded_steps]
        tables.append(Table.of_rows("recorded_steps", title, _STEPS, listed, one_unit=True))
    elif recorded is not None and figures.steps_are_computed:
        notes.append(_SELECTED)
    if figures.coverage is not None and rank.timeline:
        kinds = []
        for kind in COVERAGE:
            parts = [figures.used(kind, step) for step in (steps if query.step is not None else (_WHOLE,))]
            kinds += [(kind, sum(map(len, parts)), sum(part.total for part in parts))] if any(map(len, parts)) else []
        columns = (Column("kind", "Kind"), Column("slices", "Slices", "count"),
                   Column("total_us", "Total", "duration", bar=True))  # fmt: skip
        tables.append(Table.of_rows("overlap", "Overlap Analysis", columns, kinds))
    else:
        missing.append(lacks("overlap", "How computing and communication overlap is not known.", "a timeline or a "
                             "database", "export trace_view.json (text) or the database (db)"))  # fmt: skip
    if not steps:
        missing.append(lacks("steps", "It is not known how the steps spent their time.", "kernels, a timeline or "
                             "step_trace_time.csv", "profiler_level=Level1, or msprof --task-time=on"))  # fmt: skip
    if rank.timeline and not any(step.end is not None for step in figures.every_step):
        notes.append("No step was marked: call prof.step() after each.")
    return Answer(tuple(facts), tuple(tables), notes=tuple(notes), missing=tuple(missing), source=figures.steps_file)


def _share(value: float | None, whole: float | None) -> float | None:
    return value / whole if value is not None and whole else None


@per_rank
def streams(query: Query, rank: RecordedRank) -> Answer:
    """The streams view of one rank: how long each works, and how well two of them cover each other."""
    found = sorted(_busy(query), key=lambda stream: -stream[2].total)
    if not found:
        return Answer(missing=(lacks("streams", "No stream did any work here.", "a timeline, or kernels with streams",
                                     "activities with NPU, or msprof --task-time=on"),))  # fmt: skip
    lanes, nothing, rows = query.profile.lanes, [np.zeros(0, np.int64)], []
    for index, (lane, tasks, busy) in enumerate(found):
        others = [intervals for other, (_, _, intervals) in enumerate(found) if other != index]
        rest = Intervals.union(np.concatenate([each.starts for each in others] or nothing),
                               np.concatenate([each.ends for each in others] or nothing))  # fmt: skip
        covered = busy.intersect(rest).total
        rows.append((lanes[lane].label, tasks, busy.total, covered, busy.total - covered, _share(covered, busy.total)))
    pairs = [(one, other, both, both / one_busy.total, both / other_busy.total)
             for (one, _, one_busy), (other, _, other_busy) in combinations(found[:_MOST], 2)
             if (both := one_busy.intersect(other_busy).total)]  # fmt: skip
    pairs.sort(key=lambda pair: -pair[2])
    columns = (
        Column("stream", "Stream"), Column("tasks", "Tasks", "count"), Column("busy_us", "Busy", "duration", bar=True),
        Column("covered_us", "Covered by others", "duration", short_title="Covered"),
        Column("alone_us", "Alone", "duration", drop_first=1),
        Column("covered_share", "Covered", "share", short_title="Share"),
    )  # fmt: skip
    heads = (
        Column("stream", "Stream"), Column("other", "Other"), Column("both_us", "Both work", "duration", bar=True),
        Column("share", "Of the stream", "share"), Column("other_share", "Of the other", "share"),
    )  # fmt: skip
    kernels = query.profile.table("kernels", rank.group)

    def target(of: list[tuple[Any, ...]], row: int) -> Target:
        return Target(scope=Scope(lane=of[row][0]))

    return Answer(tables=(
        Table.of_rows("streams", "Streams", columns, rows, word="stream", target=partial(target, found), one_unit=True,
                      notes=("Work: kernels, copies and communication operators; no waits.",)),
        Table.of_rows("pairs", "Two that work at once", heads,
                      [(lanes[one].label, lanes[other].label, *times) for one, other, *times in pairs], word="pair",
                      target=partial(target, pairs)),
    ), source=rank.timeline or (kernels.file if kernels is not None else ""))  # fmt: skip


def _busy(query: Query) -> list[tuple[int, int, Intervals]]:
    """Lane, number of tasks and busy intervals of each stream and communication group with any work.

    Tasks of collectives are on streams as well: they count for their group only.
    """
    found = []
    for number in lanes_of(query, "stream", "communication"):
        lane = query.profile.lanes[number]
        frame = query.events(("start", "end", "activity"), [number], role=Role.WORK)
        frame = frame.take(frame["activity"] != Activity.COMMUNICATION) if lane.kind == "stream" else frame
        # kernels of unknown streams have a lane too
        if len(frame) and (lane.number >= 0 or lane.kind == "communication"):
            found.append((number, len(frame), Intervals.union(frame["start"], frame["end"])))
    return found


@per_rank
def free(query: Query, rank: RecordedRank) -> Answer:
    """The free view of one rank: every gap of the device with its cause, and the gaps between steps."""
    figures = figures_of(query, rank)
    if not rank.work_file:
        return Answer(missing=(lacks("gaps", "It is not known when the device was idle.", "a timeline or kernels",
                                     "activities with NPU, or msprof --task-time=on"),))  # fmt: skip
    gaps = figures.gaps
    order = descending(gaps.length)
    rows = order.tolist()
    columns = (
        moment(rank, "start_us", "Start"), Column("duration_us", "Length", "duration", bar=True),
        Column("cause", "Cause"), Column("before", "After", drop_first=2), Column("after", "Before", drop_first=1),
        Column("host", "Meanwhile on the host"), Column("device", "Meanwhile on the device", drop_first=3),
    )  # fmt: skip
    causes = [CAUSES[code] for code in figures.causes.tolist()]
    texts = (causes, *figures.neighbours(), figures.host_of_gaps(), figures.device_of_gaps())
    listed = Table(
        "gaps", "Gaps", columns, (gaps.begin[order], gaps.length[order], *([of[row] for row in rows] for of in texts)),
        target=lambda row: Target(time=(int(gaps.start[rows[row]]), int(gaps.end[rows[row]])), scope=Scope(rank.unit)),
        word="gap",
    )  # fmt: skip
    times, total = figures.cause_times, int(gaps.length.sum())
    facts = (
        Fact("gaps", "Gaps", len(gaps)), Fact("free_us", "Free", total, "duration"),
        Fact("largest_us", "The longest", int(gaps.length.max(initial=0)), "duration"),
        *(Fact(f"{cause}_us", WHY[cause], times[cause], "duration", share=_share(times[cause], total))
          for cause in CAUSES),
    )  # fmt: skip
    missing = () if rank.timeline else (
        lacks("causes", "Why the device waited is not known.", "a timeline or a database with links",
              "export trace_view.json (text) or the database (db)"),)  # fmt: skip
    return Answer(facts, (listed, _between_steps(query, figures)), missing=missing, source=rank.work_file)


def _between_steps(query: Query, figures: RankFigures) -> Table:
    rows = []
    for one, other in pairwise(figures.every_step):
        if query.step not in (None, one.number):
            continue
        ends = [part.ends[-1] for kind in (COMPUTING, COMMUNICATION) if len(part := figures.used(kind, one))]
        starts = [part.starts[0] for kind in (COMPUTING, COMMUNICATION) if len(part := figures.used(kind, other))]
        known = ends and starts and one.low is not None and other.low is not None
        if known or query.range is None:
            rows.append((one.label, other.label, int(min(starts) - max(ends)) if known else None))
    columns = (Column("from_step", "From step"), Column("to_step", "To step"),
               Column("gap_us", "Gap", "duration", bar=True))  # fmt: skip
    return Table.of_rows("step_gaps", "Between steps", columns, rows)


_PROFILE: Final = "profile_memory=True (torch_npu.profiler)"
_KEPT: Final = "Memory not released within the recording is not necessarily a leak: weights and optimiser state stay."
_PARTS: Final = ("allocated", "reserved", "active")
_MEGABYTES: Final = tuple(
    Column(f"{part}_mb", part.capitalize(), "number", "MB", short_title=f"{part.capitalize()} (MB)") for part in _PARTS
)
#: Sums of the sizes of allocations by name.
_BY_NAME: Final = (
    (Column("name", "Name", filter_column="name"), key("name", None)), (Column("count", "Allocations", "count"), count),
    (Column("total_kb", "Total", "number", "KB", bar=True, short_title="Total (KB)"), total("size")),
    (Column("min_kb", "Min", "number", "KB", drop_first=2, short_title="Min (KB)"), least("size")),
    (Column("max_kb", "Max", "number", "KB", drop_first=1, short_title="Max (KB)"), most("size")),
    (Column("never_released", "Not released", "count"), count_true("lost")),
)  # fmt: skip


@per_rank
def memory(query: Query, rank: RecordedRank) -> Answer:
    """The memory view of one rank."""
    tables: list[Table] = []
    facts: list[Fact] = []
    missing: list[Missing] = []
    curve, allocations, modules = (
        query.profile.table(name, rank.group) for name in ("memory", "allocations", "modules")
    )
    if curve is not None:
        rows = selected_rows(query, curve, "time")
        columns = (Column("component", "Component"), moment(rank, "time_us", "Time"),
                   *(replace(column, title=f"Total {column.title}") for column in _MEGABYTES),
                   Column("device", "Device Type", drop_first=1))  # fmt: skip
        tables += [Table.of_rows("peaks", "Peaks", (columns[0], *_MEGABYTES), _peaks(curve, rows, *_PARTS)),
                   _as_recorded("curve", "Over time", columns, curve, rows, "component", "time", *_PARTS,
                                "device")]  # fmt: skip
    else:
        missing.append(lacks("curve", "There is no memory over time.", "memory records",
                             f"{_PROFILE}, or msprof --sys-hardware-mem=on"))  # fmt: skip
    if allocations is not None:
        rows = selected_rows(query, allocations, "allocated")
        lost = allocations["released"][rows] == INT_MISSING
        size = np.nan_to_num(allocations["size"][rows])
        facts += [Fact("allocations", "Allocations", len(rows)),
                  Fact("never_released", "Not released within the recording", int(lost.sum())),
                  Fact("never_released_kb", "Their size", float(size[lost].sum()), "number", unit="KB",
                       short_title="Their size (KB)")]  # fmt: skip
        by_name = frame_of(allocations, ("name",), rows).with_columns(size=size, lost=lost)
        columns = (Column("name", "Name"), Column("size_kb", "Size", "number", "KB", bar=True, short_title="KB"),
                   moment(rank, "allocation_time_us", "Allocated"), moment(rank, "release_time_us", "Released"),
                   Column("duration_us", "Duration", "duration"))  # fmt: skip
        tables += [Table.of_pivot("by_name", "By name", by_name, ["name"], _BY_NAME, ("-total_kb",)),
                   _as_recorded("operators", "Allocations", columns, allocations, rows[descending(size)], "name",
                                "size", "allocated", "released", "duration")]  # fmt: skip
    else:
        missing.append(lacks("operators", "There are no allocations.", "allocations of operators", _PROFILE))
    if modules is not None:
        peaks = sorted(
            _peaks(modules, selected_rows(query, modules, "time"), "reserved"), key=lambda row: -np.nan_to_num(row[1])
        )
        columns = (Column("component", "Component"),
                   Column("peak_mb", "Peak", "number", "MB", bar=True, short_title="Peak (MB)"))  # fmt: skip
        tables.append(Table.of_rows("modules", "Components of CANN", columns, peaks))
    notes = [_KEPT] if allocations is not None else []
    notes += not_narrowed(query, "Memory, which has no events", ("filter",))
    source = next((table.file for table in (curve, allocations, modules) if table is not None), "")
    return Answer(tuple(facts), tuple(tables), notes=tuple(notes), missing=tuple(missing), source=source)


def _as_recorded(name: str, title: str, columns: tuple[Column, ...], table: Records, rows: I64, *keys: str) -> Table:
    return with_other_columns(Table(name, title, columns, tuple(table.values(key, rows) for key in keys)), table, rows)


def _peaks(table: Records, rows: I64, *keys: str) -> list[tuple[Any, ...]]:
    """Components, each with the largest known value in some columns; NaN without any."""
    component, parts = table["component"][rows], [table[key][rows] for key in keys]
    largest = [[np.fmax.reduce(values[component == code], initial=np.nan) for values in parts]
               for code in range(len(table.texts["component"]))]  # fmt: skip
    return [(name, *map(float, peaks)) for name, peaks in zip(table.texts["component"], largest, strict=True)]
