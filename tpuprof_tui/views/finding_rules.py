"""Findings about whole profiles: a table of rules, each with formula, threshold and advice.

A rule examines what a query selects and yields findings; the possible gain is an upper bound. Rules look up columns by
key and yield nothing if the source lacks one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.analysis.events import column_of
from tpuprof_tui.analysis.pivot import Frame, count_true, key, pivot, rows, total
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.steps.launch_sequence import launch_lane
from tpuprof_tui.analysis.steps.step_figures import steadiness
from tpuprof_tui.analysis.totals.figures import UnitFigures
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.units import bytes_text, time_text
from tpuprof_tui.model import Activity, Role, is_missing

from .answer import Target

Wins = Literal["", "idle", "exposed"]

#: What moves data within a unit.
MOVING: Final = (Activity.TRANSFER,)
#: Transfers of fewer bytes are small: moving the data takes about as long as starting the transfer.
SMALL: Final = 4096


class Finding(Struct, frozen=True):
    """A finding: the rule, where, one sentence, and advice.

    Attributes:
        rule: Key of the rule.
        group: Title of the group concerned; empty: the whole profile.
        gain: Upper bound of the time that could be saved, ns; None: unknown.
        text: One sentence.
        evidence: Event or interval, as a record for programs.
        advice: What to try.
        target: Destination of Enter.
    """

    rule: str
    group: str
    gain: int | None
    text: str
    evidence: dict[str, Any]
    advice: str
    target: Target = field(default_factory=Target)


class Rule(Struct, frozen=True):
    """A rule about a whole profile.

    Attributes:
        key: Its name.
        formula: What it measures, in one sentence.
        threshold: Minimum gain, as a share of the window.
        advice: What to try.
        find: Yields findings with at least the given gain, ns.
        of_all: Whether it is about idle time, or compares sums: it says nothing if many records are lost.
        wins: What at most can be won: the time in which a unit does no work (idle), and what it only moves or
            communicates (exposed); empty: the window.
    """

    key: str
    formula: str
    threshold: float
    advice: str
    find: Callable[[Query, Rule, float], Iterator[Finding]]
    of_all: bool = False
    wins: Wins = ""


def findings_of(rules: tuple[Rule, ...], query: Query) -> Iterator[Finding]:
    """Findings of some rules; none if a filter or a lane scope hides events, since sums would mislead.

    O(events), cached.
    """
    if query.filter or query.scope.lane >= 0 or query.span <= 0:
        return

    def compute() -> list[Finding]:
        span = _span(query)
        asked = [rule for rule in rules if not (rule.of_all and query.profile.is_fragmentary)]
        return [found for rule in asked for found in _bounded(query, rule, rule.threshold * span)]

    which = (rules[0].key, query.scope, query.step, query.range)
    yield from query.cache.get("findings of rules", compute, *which, limit=8)


def _bounded(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    """The findings of a rule, with no more to win than there is; those with less than ``least`` are left out."""
    for found in rule.find(query, rule, least):
        gain = found.gain if found.gain is None else min(found.gain, most_to_win(query, rule.wins, found.group))
        if gain is None or gain >= least:
            yield replace(found, gain=gain)


def most_to_win(query: Query, wins: Wins, place: str) -> int:
    """The most that can be won of a group (its title) by using time better, ns: of several units the largest."""
    groups, units = query.profile.groups, query.unit_figures
    within = {unit for group in range(len(groups)) if groups.title(group) == place
              for unit in groups.units_within(group)}  # fmt: skip
    units = tuple(unit for unit in units if unit.unit in within) or units
    if not wins or not units:
        return max(query.span, 0)
    exposed = (unit.exposed + unit.exposed_communication if wins == "exposed" else 0 for unit in units)
    return max(unit.window - unit.busy + moved for unit, moved in zip(units, exposed, strict=True))


def _span(query: Query) -> int:
    """Length of the queried time, ns: of one of several recordings its own extent, as their clocks may be far apart."""
    lanes = [query.profile.lanes[number] for number in query.lanes] if query.scope.group >= 0 else []
    known = [lane for lane in lanes if len(lane)]
    if query.range is not None or query.step is not None or not known:
        return query.span
    return max(int(lane["end"].max()) for lane in known) - min(int(lane["start"][0]) for lane in known)


def evidence(group: str, start: int, length: int, name: str = "", lane: str | None = None) -> dict[str, Any]:
    """Record of an interval (ns) as evidence."""
    return {"group": group, "lane": lane, "start_us": start / 1000, "duration_us": length / 1000, "name": name}


def window_finding(query: Query, rule: Rule, group: str, gain: float, text: str, name: str, target: Target) -> Finding:
    """A finding about the whole window."""
    start, end = query.window
    return Finding(rule.key, group, round(gain), text, evidence(group, start, end - start, name), rule.advice, target)


# -- events of the lanes that a query selects


def work_doing(query: Query, activities: tuple[Activity, ...], *keys: str) -> Frame:
    """Work of some activities that starts in the window, of the units' device lanes with these columns.

    Its columns are ``keys``, read once for all rules, ``lane``, ``row``, ``unit`` and ``took``, ns.
    """
    profile, cache = query.profile, query.local_cache

    def make() -> Frame:
        lanes = [
            number
            for number, lane in enumerate(profile.lanes)
            if lane.in_sums and lane.activity in activities and profile.unit_of(lane) in query.units
        ]
        events = _with_time(query.events(("lane", "row", "unit", "start", "end"), lanes, role=Role.WORK))
        return Frame({column: events[column] for column in ("lane", "row", "unit", "took")}, {})

    work = cache.get("work", make, activities)
    known = np.array([all(column in lane for column in keys) for lane in profile.lanes], np.bool_)
    chosen = known[work["lane"]]
    if not chosen.any():
        return work.take(chosen).with_columns(None, **{column: np.zeros(0, np.int64) for column in keys})
    columns = {
        column: cache.get("column of work", partial(column_of, query.session, work, column), activities, column)
        for column in keys
    }
    texts = {column: profile.strings[column] for column in keys if column in profile.strings}
    return work.with_columns(texts, **columns).take(chosen)


def _with_time(frame: Frame) -> Frame:
    return frame.with_columns(took=frame["end"] - frame["start"])


def filter_target(column: str, text: str) -> Target:
    """Target that filters by a text."""
    return Target(condition=text_condition(column, text, alone=True)) if text else Target()


# -- rules


def _imbalance(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    sessions: dict[int, list[UnitFigures]] = {}
    for each in query.unit_figures:
        sessions.setdefault(query.profile.groups.session(each.unit), []).append(each)
    for figures in sessions.values():
        most = max(figures, key=lambda each: each.busy)
        gain = most.busy - sum(each.busy for each in figures) / len(figures)
        if len(figures) < 2 or gain < least:
            continue
        text = f"{most.label} works {time_text(round(gain))} longer than {query.vocabulary.unit.plural} do on average."
        yield window_finding(query, rule, most.label, gain, text, "", Target(scope=Scope(most.unit)))


def _late(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    groups, session, texts = query.profile.groups, query.session, query.profile.strings.get("kernel", ())
    waits: dict[tuple[str, int], dict[int, int]] = {}
    for number in session.lanes_in(Scope()):
        unit = session.unit_of(number)
        if unit not in query.units or "kernel" not in query.profile.lanes[number]:
            continue
        codes = query.events(("kernel",), (number,))["kernel"]
        lengths = _with_time(query.events(("kernel", "start", "end"), (number,), role=Role.WAIT))
        waiting = dict(pivot(lengths, ("kernel",), {"kernel": key("kernel", None), "ns": total("took")}, ()))
        for code in np.flatnonzero(np.bincount(codes[codes >= 0])).tolist():
            # lanes of a unit wait concurrently: take the longest
            of_units = waits.setdefault((clean(texts[code]), groups.session(unit)), {})
            of_units[unit] = max(of_units.get(unit, 0), waiting.get(texts[code], 0))
    found = []
    for (kernel, _), units in waits.items():
        if len(units) > 1:
            late = min(units, key=lambda unit: units[unit])
            mean = sum(ns for unit, ns in units.items() if unit != late) / (len(units) - 1)
            found.append((mean - units[late], kernel, late))
    for gain, kernel, late in sorted(found, reverse=True)[:1]:
        if gain >= least:
            label = groups.title(late)
            text = f"{label} is late in {kernel}: the others wait {time_text(round(gain))} longer for it than it waits."
            yield window_finding(query, rule, label, gain, text, kernel, filter_target("kernel", kernel))


def _exposed(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    frame = work_doing(query, MOVING, "kernel", "exposed")
    frame = frame.take((frame["kernel"] >= 0) & ~is_missing(frame["exposed"])).with_texts("kernel", clean)
    figures = {"kernel": key("kernel"), "unit": key("unit"), "ns": total("exposed")}
    for kernel, unit, gain in pivot(frame, ("kernel", "unit"), figures, ("-ns",))[:1]:
        if gain >= least:
            label = query.profile.groups.title(unit)
            text = f"{kernel} moves data for {time_text(gain)} on {label} while nothing there computes."
            yield window_finding(query, rule, label, gain, text, kernel, filter_target("kernel", kernel))


def _gaps(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    profile = query.filtered_session.profile
    if not len(profile.scopes):
        return
    start, end = query.window
    worst: tuple[int, int, int] = 0, -1, 0
    for unit in query.units:
        lane = launch_lane(profile, unit)
        inside = (lane["start"] < end) & (lane["end"] > start)
        begin, stop = np.maximum(lane["start"][inside], start), np.minimum(lane["end"][inside], end)
        gaps = np.maximum(begin[1:] - np.maximum.accumulate(stop)[:-1], 0)
        worst = max(worst, (int(gaps.sum()), unit, len(gaps)))
    gain, unit, count = worst
    if unit >= 0 and gain >= least:
        label = profile.groups.title(unit)
        text = f"{time_text(gain)} between {count:,} launches on {label}, without work to do."
        yield window_finding(query, rule, label, gain, text, "", Target(scope=Scope(unit)))


def _small(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    frame = work_doing(query, MOVING, "bytes")
    size = frame["bytes"]
    frame = frame.with_columns(small=~is_missing(size) & (size < SMALL))
    figures = {"ns": total("took", "small"), "unit": key("unit"), "count": count_true("small"), "all": rows}
    of_lanes = pivot(frame, ("lane",), figures, ("-ns",))
    for gain, unit, count, every in [row for row in of_lanes if row[2] > row[3] / 2][:1]:
        if gain >= least:
            label = query.profile.groups.title(unit)
            text = f"{count:,} of {every:,} transfers of {label} move less than {bytes_text(SMALL)} each."
            yield window_finding(query, rule, label, gain, text, "", Target(condition=f"bytes<{SMALL}"))


def _outliers(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    if query.step is not None or query.range is not None:
        return
    steps = query.steps
    if not len(steps):
        return
    known = steps.set_of(query.scope.group)
    if known is None:
        return
    index = known.index_by_start
    length = known.end - known.start
    statistics = steadiness(length, steps.usual[index])
    longer = statistics.outlier & (length > statistics.median)
    gain = float((length[longer] - statistics.median).sum()) if bool(longer.any()) else 0.0
    if gain and gain >= least:
        worst = int(index[np.flatnonzero(longer)[np.argmax(length[longer])]])
        label = steps.label(worst)
        text = (f"{steps.word.of(int(longer.sum()))} took longer than usual, {label} the longest: "
                f"{time_text(round(gain))} beyond the median in all.")  # fmt: skip
        start, stop = int(steps.steps.start[worst]), int(steps.steps.end[worst])
        yield Finding(rule.key, "", round(gain), text, evidence("", start, stop - start, label), rule.advice,
                      Target(step=int(steps.steps.number[worst])))  # fmt: skip


RULES: Final = (
    Rule("imbalance", "Busy time of the busiest unit beyond the mean of all.", 0.05,
         "Divide its work more evenly.", _imbalance, of_all=True),
    Rule("late_unit", "What others wait in one scope beyond what the unit waits that waits least.", 0.02,
         "Look at what it does before the barrier: more work than the others, or a slower transfer.", _late),
    Rule("exposed_scope", "Transfers of one scope on one unit while it does not compute.", 0.05,
         "Load the next tile while this one is computed: two buffers, or smaller tiles.", _exposed, of_all=True,
         wins="exposed"),
    Rule("launch_gaps", "Time between the end of one launch and the start of the next, of one unit.", 0.05,
         "Launch earlier, or fuse small kernels.", _gaps, of_all=True, wins="idle"),
    Rule("small_transfers", "Time of transfers below 4 KiB where more than half are.", 0.02,
         "Join them: starting a transfer takes as long as moving this much.", _small),
    Rule("step_outliers", "Time of steps that take unusually long beyond the median.", 0.01,
         "Compare it with the same step of another recording: tpuprof diff BASE OTHER alignment --step N.", _outliers,
         of_all=True),
)  # fmt: skip
