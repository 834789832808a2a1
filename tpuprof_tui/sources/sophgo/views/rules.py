"""Rules for findings that only these captures can show, in addition to those of any profile."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.links.dependencies import dependencies_of, may_have_dependencies
from tpuprof_tui.analysis.pivot import Frame, GroupBy
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.totals.work_sums import KNOWN, KNOWN_NS, LOST, Grouping, work_sums
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.units import bytes_text, percent_text, time_text
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import Activity, Lane, Profile, Role, is_missing
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.model.uniques import distinct_together, uniques
from tpuprof_tui.views.answer import Target
from tpuprof_tui.views.rules import (
    MOVING,
    SMALL,
    Finding,
    Rule,
    SourceRules,
    evidence,
    filter_target,
    window_finding,
    work_doing,
)

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Fewest transfers of one direction and size for a reachable rate, and the quantile of their rates that is taken for
#: it.
_FEWEST: Final = 8
_REACHED: Final = 0.9


_WORKING: Final = (Activity.COMPUTE, Activity.TRANSFER)
_BY_NAME: Final[tuple[Grouping, ...]] = ("name",)
#: Reasons for being below the peak: column, limit, whether it is bad above the limit, text.
_REASONS: Final = (
    ("uarch_rate", 50.0, False, "padding"),
    ("conflict_ratio", 10.0, True, "bank conflicts"),
    ("bytes", float(SMALL), False, "small transfers"),
)
#: Register fields of sizes: of results and operands of computations, of sources of transfers.
_SIZES: Final = lazy_pattern(r"(res0|opd0|opd1|src)_([nchw])(?:size)?")


def _below_peak(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    shown, texts = query.filtered_session, query.profile.strings.get("name", ())
    # by name and unit, time lost and taken
    sums: dict[tuple[str, int], tuple[float, float]] = {}
    lanes_of: dict[int, list[int]] = {unit: [] for unit in query.units}
    for number, lane in enumerate(query.profile.lanes):
        if lane.activity in _WORKING and lane.in_sums and (unit := query.profile.unit_of(lane)) in lanes_of:
            lanes_of[unit].append(number)
    for unit, lanes in lanes_of.items():
        indexes = [shown.indexes[number] for number in lanes]
        work = work_sums(indexes, query.profile.strings, *query.window, _BY_NAME)["name"].sums
        for code in np.flatnonzero(work[KNOWN][1:]).tolist():
            place = clean(texts[code]), unit
            lost, taken = sums.get(place, (0.0, 0.0))
            sums[place] = lost + float(work[LOST][code + 1]), taken + float(work[KNOWN_NS][code + 1])
    worst: dict[str, tuple[float, float, int]] = {}
    for (name, unit), (lost, taken) in sums.items():
        worst[name] = max(worst.get(name, (0.0, 0.0, -1)), (lost, taken, unit))
    for name, (gain, ns, unit) in sorted(worst.items(), key=lambda item: -item[1][0])[:2]:
        share = 1 - gain / ns if ns else 1.0
        if gain >= least and share < 0.5:
            label = query.profile.groups.title(unit)
            events = query.events(("lane", "row", "name", "ideal", "start", "end"), lanes_of[unit], role=Role.WORK)
            events = events.take(events.with_texts("name", clean).has("name", name.__eq__))
            events = events.with_columns(lost=events["end"] - events["start"] - events["ideal"])
            why, shape = _reasons(query.profile, events.take(events["lost"] > 0), gain)
            because = f", mostly where there {'is' if why == ['padding'] else 'are'} {' and '.join(why)}" if why else ""
            text = f"{name} reaches {percent_text(share)} of the peak on {label}{because}{shape}."
            yield window_finding(query, rule, label, gain, text, name, filter_target("name", name))


def _reasons(profile: Profile, events: Frame, gain: float) -> tuple[list[str], str]:
    """Why events lose time (their column ``lost``): reasons, and the shape with the largest loss."""
    reasons = dict.fromkeys((text for _, _, _, text in _REASONS), 0.0)
    shapes: dict[str, float] = {}
    for number in uniques(events["lane"]).tolist():
        lane, own = profile.lanes[number], events["lane"] == number
        rows, ns = events["row"][own], events["lost"][own]
        for column, limit, above, text in _REASONS:
            if column in lane:
                values = np.asarray(lane.take(column, rows))
                reasons[text] += float(
                    ns[((values > limit) if above else (values < limit)) & ~is_missing(values)].sum()
                )
        for shape, lost_ns in _shapes(lane, rows, ns):
            shapes[shape] = shapes.get(shape, 0.0) + lost_ns
    most = max(shapes, key=lambda shape: shapes[shape], default="")
    text = f"; {percent_text(shapes[most] / gain)} of what is lost has the shape {most}" if most and gain else ""
    return [reason for reason, ns in reasons.items() if ns > 0.3 * gain], text


def _shapes(lane: Lane, rows: Ints, ns: Floats) -> Iterator[tuple[str, float]]:
    """Shapes in the registers of some rows, each with its sum of ``ns``."""
    registers = lane.registers
    if registers is None or not len(rows):
        return
    operations = registers.operations(rows)
    for operation in uniques(operations[operations >= 0]).tolist():
        sizes = [found for field in registers.field_names(operation) if (found := _SIZES.fullmatch(field)) is not None]
        sizes.sort(key=lambda found: (not found[1].startswith("res"), found[1], "nchw".index(found[2])))
        if not sizes:
            continue
        selected = operations == operation
        values = np.stack([registers.field(operation, found[0], rows[selected]) for found in sizes], axis=1)
        _, first, which = np.unique(distinct_together(*values.T)[0], return_index=True, return_inverse=True)
        sums = np.bincount(which.reshape(-1), weights=ns[selected])
        for shape, lost in zip(values[first].tolist(), sums.tolist(), strict=True):
            if any(shape):
                sides: dict[str, list[str]] = {}
                for found, size in zip(sizes, shape, strict=True):
                    sides.setdefault(found[1], []).append(str(size))
                yield ", ".join(f"{side} {'x'.join(numbers)}" for side, numbers in sides.items()), lost


def _below_bandwidth(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    profile, moved = query.profile, work_doing(query, MOVING, "bytes", "direction")
    known = (moved["bytes"] >= SMALL) & (moved["direction"] >= 0) & (moved["took"] > 0)
    size, way, length, units = (moved[column][known] for column in ("bytes", "direction", "took", "unit"))
    # classes of size are powers of 4: 4 KiB to 16 KiB, ...
    kind = way.astype(np.int32) << 5 | (np.frexp(size)[1] - 1) // 2
    order = np.argsort(kind.astype(np.int16) if kind.max(initial=0) < 1 << 15 else kind, kind="stable")
    size, length, units, kind = size[order], length[order], units[order], kind[order]
    rates = size / length
    edges = np.flatnonzero(np.diff(kind, prepend=-1, append=-1)).tolist() if len(kind) else [0]
    worst: tuple[float, int, tuple[int, int], float, float] = 0.0, -1, (0, 0), 0.0, 0.0
    for low, high in pairwise(edges):
        if high - low < _FEWEST:
            continue
        reached = float(np.quantile(rates[low:high], _REACHED))
        beyond = np.maximum(length[low:high] - size[low:high] / reached, 0)
        for unit in uniques(units[low:high]).tolist():
            own = units[low:high] == unit
            gain = float(beyond[own].sum())
            if gain >= worst[0]:
                rate = float(size[low:high][own].sum() / length[low:high][own].sum())
                worst = max(worst, (gain, unit, (int(kind[low]) >> 5, int(kind[low]) & 31), rate, reached))
    gain, unit, (code, class_), rate, reached = worst
    if unit >= 0 and gain >= least and rate < 0.9 * reached:
        label, direction = profile.groups.title(unit), clean(profile.text("direction", code))
        low, high = 4**class_, 4 ** (class_ + 1)
        text = (f"{direction} of {bytes_text(low)} to {bytes_text(high)} reaches {rate:.1f} GB/s on {label}, "
                f"the fastest of this size {reached:.1f} GB/s.")  # fmt: skip
        condition = f"{text_condition('direction', direction, alone=True)} bytes>={low} bytes<{high}"
        yield window_finding(query, rule, label, gain, text, direction, Target(scope=Scope(unit), condition=condition))


def _serial(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    profile = query.filtered_session.profile
    if not any("depends_on" in lane for lane in profile.lanes) or not may_have_dependencies(query.filtered_session):
        return
    known = dependencies_of(query.filtered_session)
    at_begin = ~np.isin(known.links.kind, list(known.links.ending))
    # ordered by waiter, lane by lane
    waiters, waited, slack = known.waiter_lane[at_begin], known.waiter_row[at_begin], known.slack_ns[at_begin]
    start, end = query.window
    worst: tuple[int, int, int, int, int, int] = 0, -1, -1, 0, 0, 0
    for unit in query.units:
        lanes = [number for number, lane in enumerate(profile.lanes)
                 if profile.unit_of(lane) == unit and "depends_on" in lane and len(lane)]  # fmt: skip
        for number in lanes if len(lanes) > 1 else ():
            # an engine without known waits for others has no dependencies in its registers
            selected = slice(*np.searchsorted(waiters, (number, number + 1)).tolist())
            if selected.start == selected.stop:
                continue
            others = [profile.lanes[other] for other in lanes if other != number]
            rows, begin, end_ns = _idle_unforced(profile.lanes[number], others, waited[selected], slack[selected])
            inside = (end_ns > start) & (begin < end)
            rows, begin, end_ns = rows[inside], np.maximum(begin[inside], start), np.minimum(end_ns[inside], end)
            work = _work(others)
            covered = work.covered(end_ns) - work.covered(begin)
            if len(rows) and int(covered.sum()) > worst[0]:
                longest = int(covered.argmax())
                worst = (int(covered.sum()), number, int(rows[longest]), int(begin[longest]), int(covered[longest]),
                         int(np.count_nonzero(covered)))  # fmt: skip
    gain, number, row, begun, length, count = worst
    if number >= 0 and gain >= least:
        lane = profile.lanes[number]
        label = profile.groups.title(profile.unit_of(lane))
        text = (f"{lane.label} of {label} is idle {count:,} times while another engine works and no command id or "
                f"message holds it back, {time_text(gain)} in all, {time_text(length)} at the longest.")  # fmt: skip
        yield Finding(rule.id, label, gain, text, evidence(label, begun, length, "", lane.label), rule.advice,
                      Target(event=(number, row)) if query.filtered_session is query.session
                      else Target(time=(begun, begun + length)))  # fmt: skip


def _idle_unforced(lane: Lane, others: list[Lane], waited: Ints, slack: Ints) -> tuple[Ints, Ints, Ints]:
    """Rows that could have begun earlier, their earliest begin, and their begin, ns.

    ``waited`` are rows that waited for commands, ``slack`` is how long before their start these had retired, ns.

    A row can begin when all rows before it on its engine have ended, the commands that it depends on have retired, and
    its launch has begun on any engine. Rows that depend on an unknown command are left out.
    """
    starts, ends = lane["start"], lane["end"]
    earliest = np.empty(len(lane), np.int64)
    earliest[0] = starts[0]
    earliest[1:] = np.maximum.accumulate(ends)[:-1]
    linked = np.zeros(len(lane), np.bool_)
    linked[waited] = True
    np.maximum.at(earliest, waited, starts[waited] - slack)
    if "scope" in lane:
        scope = np.where(is_missing(lane["scope"]), -1, lane["scope"])
        begun = np.full(int(scope.max(initial=-1)) + 2, np.iinfo(np.int64).max)
        for each in (lane, *(other for other in others if "scope" in other)):
            other_scope = np.where(is_missing(each["scope"]), -1, each["scope"])
            inside = other_scope < len(begun) - 1
            np.minimum.at(begun, other_scope[inside], each["start"][inside])
        begun[-1] = np.iinfo(np.int64).min
        earliest = np.maximum(earliest, begun[scope])
    rows = np.flatnonzero((lane["role"] == Role.WORK) & (starts > earliest))
    chosen = linked[rows]
    chosen[~chosen] = lane.take("depends_on", rows[~chosen]) == 0
    rows = rows[chosen]
    return rows, earliest[rows], starts[rows]


def _work(lanes: list[Lane]) -> Intervals:
    """Intervals in which any of the lanes works."""
    columns = [(lane["start"][work], lane["end"][work]) for lane in lanes for work in (lane["role"] == Role.WORK,)]
    return Intervals.union(*map(np.concatenate, zip(*columns, strict=True)))


def _loads(query: Query) -> Frame:
    """Loads from DDR whose addresses are known."""
    loads = work_doing(query, MOVING, "src_addr", "bytes", "from_memory", "to_memory")
    address = loads["src_addr"]
    known = ~is_missing(address) & ~is_missing(loads["bytes"]) & (address != 0)
    return loads.take(known & loads.has("from_memory", lambda text: str(text) == "DDR"))


def _repeated(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    worst: tuple[float, int, int] = 0.0, -1, 0
    loads = _loads(query)
    for lane in uniques(loads["lane"]).tolist():
        own = loads.take(loads["lane"] == lane)
        repeated = np.ones(len(own), np.bool_)
        repeated[GroupBy(own, ("src_addr", "bytes")).first] = False
        worst = max(worst, (float(own["took"][repeated].sum()), int(own["unit"][0]), int(repeated.sum())))
    gain, unit, count = worst
    if unit >= 0 and gain >= least:
        label = query.profile.groups.title(unit)
        text = f"{label} loads the same addresses again {count:,} times, {time_text(round(gain))} in all."
        yield window_finding(query, rule, label, gain, text, "", Target(scope=Scope(unit)))


def _shared(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    loads = _loads(query)
    unit = loads["unit"]
    if len(uniques(unit)) < 2:
        return
    groups = GroupBy(loads, ("src_addr", "bytes"))
    # loaded by several units if any unit differs from the first
    several = groups.count_of(unit != unit[groups.first][groups.index]) > 0
    chosen = several[groups.index]
    if not chosen.any():
        return
    by_unit, moved = (np.bincount(unit[chosen], weights=loads[column][chosen]) for column in ("took", "bytes"))
    # each unit still reads it once, at best at the peak of L2
    peak = query.profile.device.peak("L2")
    stays = moved / peak if peak else np.zeros(len(moved))
    worst = int((by_unit - stays).argmax())
    gain = float(by_unit[worst] - stays[worst])
    if gain >= least:
        label = query.profile.groups.title(worst)
        rest = f", of which {time_text(round(stays[worst]))} stay: reading it from L2M at the peak" if peak else ""
        same = "address" if several.sum() == 1 else f"{int(several.sum()):,} addresses"
        text = (f"Several {query.vocabulary.unit.plural} load the same {same} from DDR: "
                f"{time_text(round(by_unit[worst]))} on {label}{rest}.")  # fmt: skip
        yield window_finding(query, rule, label, gain, text, "", Target(scope=Scope(worst)))


RULES: Final = SourceRules((
    Rule("below_bandwidth", "Below the bandwidth that others reach",
         "Transfers of one direction and class of size beyond the time at the rate that a tenth of them reaches.", 0.02,
         "3 of 5 real captures reach it, the least with 0.021; the next has 0.009",
         "Look at their shapes and strides, and at what else uses that memory meanwhile.", _below_bandwidth,
         wins="exposed", confidence="likely"),
    Rule("serial_stretches", "Engines that take turns",
         "An engine idle while another of its unit works, though all that its next command names has retired.", 0.05,
         "none of 5 real captures reaches it: at most 0.0026",
         "Issue independent commands earlier: alternate them, prefetch the next tile, unroll.", _serial,
         confidence="likely"),
    Rule("below_peak", "Far below the peak",
         "Time of one operation on one unit beyond that at the peak, below half of the peak.", 0.05,
         "4 of 5 real captures reach it, the least with 0.20; the other has none",
         "Choose shapes that fill the lanes, other banks, larger transfers.", _below_peak),
    Rule("repeated_loads", "Loads of what was loaded", "Loads of an address and size that the unit has loaded before.",
         0.02, "3 of 5 real captures reach it, the least with 0.043; the others have none",
         "Keep it in local memory where it fits.", _repeated, wins="exposed", confidence="likely"),
    Rule("shared_loads", "Loads that cores share", "Loads from DDR of an address and size that several units load.",
         0.02, "none of 5 real captures reaches it (0.008), 7 of 31 synthetic ones do, the least with 0.61",
         "Load it once into L2M, and from there to each.", _shared, wins="exposed", confidence="likely"),
))  # fmt: skip
