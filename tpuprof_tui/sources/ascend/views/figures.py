"""Figures of one rank that several views share: steps, gaps of the device and their causes."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.analysis.events import events
from tpuprof_tui.analysis.pivot import Frame
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Activity, Role
from tpuprof_tui.model.table import Table
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.chrome.nesting import innermost
from tpuprof_tui.views.query import Query

from ..recorded import (
    ASYNC_NPU,
    COMMUNICATION,
    COMPUTING,
    COVERAGE,
    EXPOSED,
    FREE,
    HOST_TO_DEVICE,
    RecordedRank,
    SortedIntervals,
    records,
    step_records,
)

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
CAUSES: Final = ("host", "dispatch", "device", "unknown")
_RECEIVE: Final = lazy_pattern("receive", re.IGNORECASE)


class Step(Struct, frozen=True):
    """One step, with times in the order of ``STEP_COLUMNS``, ns; None if unknown.

    Attributes:
        label: Its name; None if no step was marked and the recorded table has no name.
        number: Its number; -1 if it has none.
        low, high: Device work that starts in [low, high) belongs to it, ns on the time line; None: no bound.
        end: Its end on the host; None if it was not marked.
        known: Whether it is known which work belongs to it.
        values: Its times.
    """

    label: str | None
    number: int
    low: int | None
    high: int | None
    end: int | None
    known: bool
    values: tuple[float | None, ...]

    def contains(self, start: I64) -> Mask:
        """Mask of the device work that belongs to the step, by start; all False if that is unknown."""
        found = np.full(len(start), self.known)
        if self.low is not None:
            found &= start >= self.low
        if self.high is not None:
            found &= start < self.high
        return found


class RankFigures:
    """Figures of the whole recording of a rank."""

    def __init__(self, session: Session, rank: RecordedRank) -> None:
        self.rank = rank
        self._session = session

    def table(self, name: str) -> Table | None:
        """A table of the rank; None if there is none."""
        return self._session.profile.table(name, self.rank.group)

    def lanes(self, *kinds: str) -> list[int]:
        """Numbers of its lanes of some kinds."""
        lanes = self._session.profile.lanes
        return [number for number in self._session.lanes_in(Scope(self.rank.group)) if lanes[number].kind in kinds]

    def events(self, kinds: tuple[str, ...], *keys: str) -> Frame:
        """Columns of all its events on lanes of some kinds."""
        return events(self._session, self.lanes(*kinds), keys)

    # -- steps

    @cached_property
    def coverage(self) -> dict[str, SortedIntervals] | None:
        """Use of the device over time, by kind; None if unknown."""
        table = self.table("coverage")
        if table is None:
            return None
        kind, start, end = (table[key] for key in ("kind", "start", "end"))
        return {name: SortedIntervals(start[kind == code], end[kind == code]) for code, name in enumerate(COVERAGE)}

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps, with times from the use of the device, else as recorded."""
        table, recorded = self.table("steps"), self.recorded_steps
        if table is None:
            return ()
        found = []
        keys = ("label", "number", "low", "high", "start", "end", "known")
        for index, (label, number, low, high, start, end, known) in enumerate(records(table, *keys)):
            values = self._times(low, high, start) if self.steps_are_computed else recorded[index][1]
            found.append(Step(label, number, low, high, end, bool(known), values))
        return tuple(found)

    @property
    def steps_are_computed(self) -> bool:
        """Whether the times of the steps follow from the use of the device, rather than from a table."""
        table = self.table("steps")
        return table is not None and bool(table["computed"].any())

    @property
    def steps_file(self) -> str:
        """Name of the file that tells the times of the steps; empty if none does."""
        table = self.table("steps")
        return "" if table is None else table.file

    @cached_property
    def recorded_steps(self) -> list[tuple[str | None, tuple[float | None, ...]]]:
        """Labels and times of the steps that a table recorded."""
        table = self.table("recorded_steps")
        return [] if table is None else [(label, tuple(values)) for label, *values in step_records(table, "label")]

    def _times(self, low: int | None, high: int | None, start: int | None) -> tuple[float | None, ...]:
        coverage = self.coverage or {}
        computing, communication, exposed, free = (
            coverage[kind].within(low, high).total for kind in (COMPUTING, COMMUNICATION, EXPOSED, FREE)
        )
        bubble = self._receives.within(low, high).total
        # in an empty step no device work began
        preparing = None if low is None or start is None or low == high else low - start
        return (computing, communication, communication - exposed, exposed, free,
                computing + exposed + free - bubble, bubble, exposed - bubble, preparing)  # fmt: skip

    @cached_property
    def _receives(self) -> SortedIntervals:
        """Receive operators, which wait for the preceding pipeline stage."""
        frame = self.events(("communication",), "name", "start", "end")
        passing = np.array([*(bool(_RECEIVE.search(name)) for name in frame.texts["name"]), False], np.bool_)
        frame = frame.take(passing[frame["name"]])
        order = np.argsort(frame["start"], kind="stable")
        return SortedIntervals(frame["start"][order], frame["end"][order])

    @cached_property
    def operators(self) -> Frame:
        """Operators of the framework."""
        frame = self.events(("python", "other"), "name", "shapes", "host_total")
        return frame.take(frame["host_total"] != INT_MISSING)

    # -- gaps

    @cached_property
    def gaps(self) -> SortedIntervals:
        """Intervals in which the device is free, by start."""
        return self.coverage[FREE] if self.coverage is not None else SortedIntervals()

    @cached_property
    def _called(self) -> tuple[I64, I64]:
        """Rows of ``launches`` from the operator and from the launch to the work that ends each gap; -1 if none."""
        table, ends = self.table("launches"), self.gaps.end
        found = []
        for category in (ASYNC_NPU, HOST_TO_DEVICE):
            if table is None or category not in table.texts["category"]:
                found.append(np.full(len(ends), -1))
                continue
            rows = np.flatnonzero(table["category"] == table.texts["category"].index(category))
            rows = rows[np.argsort(table["start"][rows], kind="stable")]
            if not len(rows):
                found.append(np.full(len(ends), -1))
                continue
            times = table["start"][rows]
            index = np.minimum(np.searchsorted(times, ends), len(rows) - 1)
            found.append(np.where(times[index] == ends, rows[index], -1))
        return found[0], found[1]

    @cached_property
    def causes(self) -> npt.NDArray[np.int8]:
        """Cause of each gap, as an index into ``CAUSES``."""
        table, gaps = self.table("launches"), self.gaps
        if table is None:
            return np.full(len(gaps), 3, np.int8)
        called, launched = self._called
        # -1 selects the appended time
        times = np.append(table["called"], INT_MISSING)
        call = times[called]
        launch = np.where(launched >= 0, times[launched], call)
        known = (called >= 0) | (launched >= 0)
        found = np.zeros(len(gaps), np.int8)
        found[(called >= 0) & (call <= gaps.start)] = 1
        found[known & (launch <= gaps.start)] = 2
        found[~known] = 3
        return found

    @cached_property
    def cause_times(self) -> dict[str, int]:
        """Free time by cause, ns."""
        lengths = self.gaps.length
        return {cause: int(lengths[self.causes == code].sum()) for code, cause in enumerate(CAUSES)}

    def neighbours(self) -> tuple[list[str | None], list[str | None]]:
        """Name of the work that ended last before each gap, and of the work that starts at its end."""
        work = self.events(("stream", "communication"), "lane", "name", "start", "end", "role", "activity", "order")
        compute = (work["role"] == Role.WORK) & (work["activity"] == Activity.COMPUTE)
        on_group = np.isin(work["lane"], self.lanes("communication"))
        work = work.take(compute | on_group)
        if not len(work):
            return [None] * len(self.gaps), [None] * len(self.gaps)
        work = work.take(np.lexsort((work["order"], work["start"])))
        names = work.texts["name"]
        by_end = np.argsort(work["end"], kind="stable")
        # ends in the timeline are rounded separately from starts
        before = np.searchsorted(work["end"][by_end], self.gaps.start + 2, side="right") - 1
        after = np.searchsorted(work["start"], self.gaps.end - 1)
        codes = np.append(work["name"], -1)
        last, first = ([names[code] if code >= 0 else None for code in found.tolist()] for found in (
            np.where(before >= 0, codes[by_end[before]], -1), codes[after]))  # fmt: skip
        return last, first

    def host_of_gaps(self) -> list[str | None]:
        """Name with the most self time within each gap, on the thread that called the work at its end; or None."""
        table, gaps = self.table("launches"), self.gaps
        if table is None:
            return [None] * len(gaps)
        callers = np.append(table["caller_event"], -1)
        found = np.full(len(gaps), -1)
        for rows, kinds in zip(self._called, (("python", "other"), ("cann",)), strict=True):
            caller = np.where(found < 0, callers[rows], -1)
            lane = np.where(caller >= 0, np.searchsorted(self._session.offsets, caller, side="right") - 1, -1)
            found = np.maximum(found, self._longest_innermost(kinds, lane))
        names = self._session.profile.strings["name"]
        return [names[code] if code >= 0 else None for code in found.tolist()]

    def _longest_innermost(self, kinds: tuple[str, ...], lanes: I64) -> I64:
        """Code of the name that is innermost for longest on a lane of some kinds within each gap; -1 if nothing runs.

        On lanes of the framework only operators count.
        """
        found, low, high = np.full(len(lanes), -1), self.gaps.start, self.gaps.end
        for number in uniques(lanes[lanes >= 0]).tolist():
            if self._session.profile.lanes[number].kind not in kinds:
                continue
            frame = events(self._session, [number], ("name", "start", "end", "host_total"))
            if "cann" not in kinds:
                frame = frame.take(frame["host_total"] != INT_MISSING)
            gaps_here, start, end = np.flatnonzero(lanes == number), frame["start"], frame["end"]
            # cut the lane wherever the innermost event may change
            cuts = np.sort(np.append(start, end))
            cuts = cuts[np.append(True, cuts[1:] > cuts[:-1])]
            begin, stop = cuts[:-1], cuts[1:]
            inner = innermost(
                (start, end, np.zeros(len(start), np.int64)), (begin, begin, np.zeros(len(begin), np.int64))
            )
            name = np.append(frame["name"], -1)[inner]
            first = np.searchsorted(stop, low[gaps_here], side="right")
            count = np.maximum(np.searchsorted(begin, high[gaps_here]) - first, 0)
            # all pairs of an interval and a part that overlaps it
            gap = np.repeat(np.arange(len(gaps_here)), count)
            part = np.arange(len(gap)) + np.repeat(first - np.cumsum(count) + count, count)
            known = name[part] >= 0
            gap, part = gap[known], part[known]
            covered = np.minimum(stop[part], high[gaps_here][gap]) - np.maximum(begin[part], low[gaps_here][gap])
            names = max(len(frame.texts["name"]), 1)
            of_name, inverse = np.unique(gap * names + name[part], return_inverse=True)
            times = np.bincount(inverse, weights=covered, minlength=len(of_name))
            gap, name = np.divmod(of_name, names)
            # the last assignment of each interval wins: the longest time, among equals the first name
            order = np.lexsort((-name, times, gap))
            found[gaps_here[gap[order]]] = name[order]
        return found

    def device_of_gaps(self) -> list[str | None]:
        """Task that covers most of each gap of cause ``device``; None for other causes."""
        found: list[str | None] = [None] * len(self.gaps)
        wanted = np.flatnonzero(self.causes == CAUSES.index("device"))
        if not len(wanted):
            return found
        tasks = self.events(("stream",), "name", "start", "end", "role", "activity")
        works = (tasks["role"] == Role.WORK) & (tasks["activity"] == Activity.COMPUTE)
        tasks = tasks.take(~works & (tasks["role"] != Role.ANNOTATION))
        tasks = tasks.take(np.argsort(tasks["start"], kind="stable"))
        start, end, names = tasks["start"], tasks["end"], tasks.texts["name"]
        reach = np.maximum.accumulate(end) if len(end) else end
        for gap in wanted.tolist():
            low, high = int(self.gaps.start[gap]), int(self.gaps.end[gap])
            first, last = int(np.searchsorted(reach, low, side="right")), int(np.searchsorted(start, high))
            if first >= last:
                continue
            covered = np.minimum(end[first:last], high) - np.maximum(start[first:last], low)
            best = int(np.argmax(covered))
            if covered[best] > 0:
                found[gap] = names[int(tasks["name"][first + best])]
        return found


def figures_of(query: Query, rank: RecordedRank) -> RankFigures:
    """Figures of a rank; cached."""
    return query.cache.get("Ascend figures", lambda: RankFigures(query.session, rank), rank.key)
