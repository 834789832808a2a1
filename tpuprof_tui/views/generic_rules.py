"""Rules for any profile: single events, units and their pauses, scopes, launches, steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.evidence.top_events import best_rows, exposed_score, slow_score, wait_score
from tpuprof_tui.analysis.evidence.unit_pauses import longest_pauses
from tpuprof_tui.analysis.pivot import count_true, key, pivot, rows, total
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.steps.launch_sequence import launch_lane
from tpuprof_tui.analysis.steps.step_figures import steadiness
from tpuprof_tui.analysis.totals.figures import UnitFigures
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import in_sentence
from tpuprof_tui.formats.units import bytes_text, exact_time, percent_text, time_text
from tpuprof_tui.model import Activity, Role, is_missing

from .answer import Target
from .rules import (
    MOVING,
    SMALL,
    Finding,
    Rule,
    evidence,
    filter_target,
    window_finding,
    with_story,
    with_time,
    work_doing,
)

#: Maximum findings per rule about single events.
MOST: Final = 5


class ScoredEvent(Struct, frozen=True):
    """An event (lane, row) worth a look; ``value``: exposed ns, GB/s or ns of waiting."""

    lane: int
    row: int
    value: float


# -- single events


def top_events(query: Query, most: int) -> list[list[ScoredEvent]]:
    """The ``most`` transfers with the longest exposed time, slowest large ones, and longest waits that are selected.

    O(events) the first time, then O(lanes + blocks): call it from a worker thread.
    """
    lanes = [(number, index) for number, index in query.lane_indexes.items() if index.lane.in_sums]
    found = best_rows(lanes, *query.extent, (exposed_score, slow_score, wait_score), most)
    return [[ScoredEvent(*query.event(lane, row), abs(value)) for value, lane, row in best] for best in found]


def _of_events(
    score: int, text: str, gain: Callable[[Query, ScoredEvent], int | None], query: Query, rule: Rule, least: float
) -> Iterator[Finding]:
    """Findings about the top events by a score; ``text`` is filled in with event, value, share, size and scope."""
    profile = query.profile
    for found in query.local_cache.get("top events", partial(top_events, query, MOST))[score]:
        lane = profile.lanes[found.lane]
        start, end = query.session.span_of(found.lane, found.row)
        unit = profile.unit_of(lane)
        name = text_of(profile, lane, "name", found.row) or query.vocabulary.event.one
        kernel = text_of(profile, lane, "kernel", found.row)
        size = lane.take("bytes", slice(found.row, found.row + 1)) if "bytes" in lane else None
        told = text.format(
            event=f"{profile.title_of(lane)} {name} at {exact_time(start, 100)}",
            scope=f" in {kernel}" if kernel else "",
            share=percent_text(found.value / max(end - start, 1)),
            size="" if size is None or is_missing(size)[0] else bytes_text(int(size[0])),
            value=f"{found.value:.2f}",
        )
        where = profile.groups.title(unit if unit >= 0 else lane.group)
        yield Finding(rule.id, where, gain(query, found), told,
                      evidence(profile.groups.title(lane.group), start, end - start, name, lane.label), rule.advice,
                      Target(event=(found.lane, found.row)))  # fmt: skip


def _value(query: Query, found: ScoredEvent) -> int | None:
    return round(found.value)


def _beyond_peak(query: Query, found: ScoredEvent) -> int | None:
    """Duration beyond the ideal one at the peak, ns; None if that is unknown."""
    lane, rows = query.profile.lanes[found.lane], slice(found.row, found.row + 1)
    ideal = lane.take("ideal", rows) if "ideal" in lane else None
    if ideal is None or is_missing(ideal)[0]:
        return None
    start, end = query.session.span_of(found.lane, found.row)
    return max(end - start - round(float(ideal[0])), 0)


# -- units


def _pauses(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    # with a step, gaps between its events would be pauses
    for unit in query.units if not query.full_filter else ():
        label = query.profile.groups.title(unit)
        for pause in longest_pauses(query.session, unit, *query.window_of(unit))[:1]:
            length = pause.end - pause.start
            if length >= least:
                told = f"The longest pause of {in_sentence(label)}, {time_text(length)}: {pause.text}."
                if not query.session.indexes.by_unit[unit].busy.between(*query.window_of(unit)):
                    told = f"{label} does no work at all, {time_text(length)}."
                found = Finding(rule.id, label, length, told, evidence(label, pause.start, length), rule.advice,
                                Target(time=(pause.start, pause.end), scope=Scope(unit)))  # fmt: skip
                yield with_story(found, query, Scope(unit), pause.start, pause.end)


def _imbalance(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    sessions: dict[int, list[UnitFigures]] = {}
    for each in query.unit_figures:
        sessions.setdefault(query.profile.groups.session(each.unit), []).append(each)
    for figures in sessions.values():
        # in a collective a unit also waits for the others
        worked = [each.busy - each.exposed_communication for each in figures]
        most = max(range(len(figures)), key=worked.__getitem__)
        gain, unit = worked[most] - sum(worked) / len(worked), figures[most]
        if len(figures) < 2 or gain < least:
            continue
        text = f"{unit.label} works {time_text(round(gain))} longer than {query.vocabulary.unit.plural} do on average."
        found = window_finding(query, rule, unit.label, gain, text, "", Target(scope=Scope(unit.unit)))
        yield replace(found, confidence="guess") if unit.guessed else found


def _late(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    groups, session, texts = query.profile.groups, query.session, query.profile.strings.get("kernel", ())
    waits: dict[tuple[str, int], dict[int, int]] = {}
    for number in session.lanes_in(Scope()):
        unit = session.unit_of(number)
        if unit not in query.units or "kernel" not in query.profile.lanes[number]:
            continue
        codes = query.events(("kernel",), (number,))["kernel"]
        lengths = with_time(query.events(("kernel", "start", "end"), (number,), role=Role.WAIT))
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
            brief = f"{label} is late in {kernel}: the others wait {time_text(round(gain))}."
            yield window_finding(query, rule, label, gain, text, kernel, filter_target("kernel", kernel), brief)


def _exposed_communication(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    profile = query.profile
    for figures in query.unit_figures:
        gain = figures.exposed_communication
        if not gain or gain < least:
            continue
        text = f"Communication of {in_sentence(figures.label)} is not covered by computation for {time_text(gain)}."
        brief = f"Exposed communication of {in_sentence(figures.label)}, {time_text(gain)}."
        found = window_finding(query, rule, figures.label, gain, text, "", Target(scope=Scope(figures.unit)), brief)
        lanes = [number for number in query.lanes if query.session.unit_of(number) == figures.unit
                 and profile.lanes[number].in_sums]  # fmt: skip
        events = query.events(("lane", "row", "start", "end", "activity"), lanes, role=Role.WORK, reaching=True)
        events = with_time(events.take(events["activity"] == Activity.COMMUNICATION))
        if len(events):
            longest = int(events["took"].argmax())
            number, row, start, took = (int(events[key][longest]) for key in ("lane", "row", "start", "took"))
            lane = profile.lanes[number]
            shown = evidence(
                profile.groups.title(lane.group), start, took, text_of(profile, lane, "name", row), lane.label
            )
            found = replace(found, evidence=shown, target=Target(event=(number, row)))
        yield found


# -- scopes, launches, transfers, steps


def _exposed(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    frame = work_doing(query, MOVING, "kernel", "exposed")
    frame = frame.take((frame["kernel"] >= 0) & ~is_missing(frame["exposed"])).with_texts("kernel", clean)
    figures = {"kernel": key("kernel"), "unit": key("unit"), "ns": total("exposed")}
    for kernel, unit, gain in pivot(frame, ("kernel", "unit"), figures, ("-ns",))[:1]:
        if gain >= least:
            label = query.profile.groups.title(unit)
            text = f"{kernel} moves data for {time_text(gain)} on {label} while nothing there computes."
            brief = f"{kernel}: exposed transfers, {time_text(gain)} on {label}."
            yield window_finding(query, rule, label, gain, text, kernel, filter_target("kernel", kernel), brief)


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
        yield Finding(rule.id, "", round(gain), text, evidence("", start, stop - start, label), rule.advice,
                      Target(step=int(steps.steps.number[worst])))  # fmt: skip


RULES: Final = (
    Rule("exposed_transfer", "A transfer without computing", "Time of a transfer while its unit does not compute.", 0.0,
         f"the {MOST} longest of the selection, however short",
         "Start it earlier or split it, so that computing covers it.",
         partial(_of_events, 0, "Exposed {share}: {event}{scope}.", _value), sees="events", wins="exposed"),
    Rule("slow_transfer", "A slow transfer", "Time of a transfer of 100 KiB or more beyond that at the peak.", 0.0,
         f"the {MOST} slowest of the selection",
         "Look at its shape, its memory and what else uses that memory meanwhile.",
         partial(_of_events, 1, "Slow, {value} GB/s: {event}, {size}{scope}.", _beyond_peak), sees="events",
         wins="exposed"),
    Rule("wait", "A long wait", "Length of a wait.", 0.0, f"the {MOST} longest of the selection",
         "See what it waits for ([), and why that comes late.", partial(_of_events, 2, "Wait: {event}{scope}.", _value),
         sees="events"),
    Rule("pause", "A pause", "The longest stretch in which a unit neither computes nor moves data.", 0.0,
         "the longest of each unit, however short", "See what the others do meanwhile, and what it waits for.", _pauses,
         sees="complete"),
    Rule("imbalance", "Uneven load",
         "Busy time of the busiest unit beyond the mean of all, without exposed communication.", 0.05,
         "of 25 real recordings 1 reaches it (0.44), the next has 0.027", "Divide its work more evenly.", _imbalance,
         sees="complete"),
    Rule("late_unit", "A late unit", "What others wait in one scope beyond what the unit waits that waits least.", 0.02,
         "21 of 31 synthetic captures reach it, of 5 real ones none",
         "Look at what it does before the barrier: more work than the others, or a slower transfer.", _late),
    Rule("exposed_communication", "Exposed communication", "Communication of a unit that no computation covers.", 0.05,
         "4 of 20 real traces reach it, the least with 0.073; the others have none",
         "Larger or earlier buckets, gradient accumulation, compression, sharding over fewer ranks.",
         _exposed_communication, sees="complete", wins="exposed"),
    Rule("exposed_scope", "Exposed transfers of a scope",
         "Transfers of one scope on one unit while it does not compute.", 0.05,
         "1 of 5 real captures reaches it, three have 0.046 to 0.049, one none",
         "Load the next tile while this one is computed: two buffers, or smaller tiles.", _exposed, sees="complete",
         wins="exposed"),
    Rule("launch_gaps", "Gaps between launches",
         "Time between the end of one launch and the start of the next, of one unit.", 0.05,
         "none of 5 real captures reaches it (0.0025); a synthetic one of tiny kernels has 0.51",
         "Launch earlier, or fuse small kernels.", _gaps, sees="complete", wins="idle"),
    Rule("small_transfers", "Small transfers", "Time of transfers below 4 KiB where more than half are.", 0.02,
         "1 of 5 real captures reaches it (0.030), the others have none",
         "Join them: starting a transfer takes as long as moving this much.", _small, wins="exposed"),
    Rule("step_outliers", "Steps that take longer", "Time of steps that take unusually long beyond the median.", 0.01,
         "2 of 20 real traces reach it (0.011, 0.23), the next has 0.0008",
         "Compare it with the same step of another recording: tpuprof diff BASE OTHER alignment --step N.", _outliers,
         sees="complete"),
)  # fmt: skip
