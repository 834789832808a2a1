"""Figures of one rank that several views share: use of the device, steps, gaps and their causes, of a selection."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import starmap
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.events import events, frame_of
from tpuprof_tui.analysis.pivot import Frame, GroupBy
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Activity, Role
from tpuprof_tui.model.intervals import Intervals, positions_in_runs
from tpuprof_tui.model.table import Table
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.chrome.columns import I64, lookup
from tpuprof_tui.sources.chrome.nesting import innermost

from ..records import (
    ASYNC_NPU,
    COMMUNICATION,
    COMPUTING,
    COVERAGE,
    EXPOSED,
    FREE,
    HOST_TO_DEVICE,
    STEP_KEYS,
    RecordedRank,
    Step,
    records,
    step_records,
)
from .ranks import lanes_of

Mask = npt.NDArray[np.bool_]
#: Causes of gaps, in words.
WHY: Final = {
    "host": "The host had not called it", "dispatch": "Called, not launched yet",
    "device": "Launched, the device waited", "unknown": "Not known why",
}  # fmt: skip
CAUSES: Final = tuple(WHY)
_RECEIVE: Final = lazy_pattern("receive", re.IGNORECASE)
_ALWAYS: Final = (int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max))
#: Columns not compared with the recorded table: the exporter computed them as binary floats of 1.7e15 us.
COARSE: Final = ("stage_us", "preparing_us")


class RankFigures:
    """Figures of what a query, whose scope is of the rank, selects.

    Unions are cut at the edges of the range; with a filter they are of the events that pass. Steps count by the start
    of intervals, as the exporter counts them.
    """

    def __init__(self, query: Query, rank: RecordedRank) -> None:
        self.rank = rank
        self._query, self._session = query, query.session

    def table(self, name: str) -> Table | None:
        """A table of the rank; None if there is none."""
        return self._session.profile.table(name, self.rank.group)

    def lanes(self, *kinds: str) -> list[int]:
        """Numbers of its lanes of some kinds."""
        return lanes_of(self._query, *kinds)

    def events(
        self, kinds: tuple[str, ...], *keys: str, filtered: bool = True, role: Role | None = None
    ) -> Frame:  # fmt: skip
        """Columns of its events on lanes of some kinds, whenever they ran; ``filtered``: of those that pass."""
        condition = self._query.condition if filtered else ""
        return events(self._session, self.lanes(*kinds), keys, condition=condition, role=role)

    # -- use of the device

    @cached_property
    def _coverage(self) -> dict[str, Intervals] | None:
        """Use of the device over the whole time, by kind, as the exporter tells it, of a filter as its tasks do."""
        key, condition = self.rank.key, self._query.condition
        return self._query.cache.get("Ascend coverage", self._covered, key, condition, limit=8) if (
            self.rank.work_file) else None  # fmt: skip

    def _covered(self) -> dict[str, Intervals]:
        overlap = any(len(self._session.profile.lanes[number]) for number in self.lanes("overlap"))
        if overlap and not self._query.condition:
            frame = self.events(("overlap",), "name", "start", "end")
            return {kind: _union(frame.take(frame.has("name", kind.__eq__))) for kind in COVERAGE}
        work = self.events(("stream",), "start", "end", "activity", role=Role.WORK)
        computing = _union(work.take(work["activity"] == Activity.COMPUTE))
        communication = _union(self.events(("communication",), "start", "end", role=Role.WORK))
        both = computing.union_with(communication)
        return {COMPUTING: computing, COMMUNICATION: communication, EXPOSED: communication.difference(computing),
                FREE: Intervals.union(both.ends[:-1], both.starts[1:])}  # fmt: skip

    @cached_property
    def coverage(self) -> dict[str, Intervals] | None:
        """Use of the device in the range, by kind; None if unknown."""
        whole, cut = self._coverage, self._query.range
        return whole if whole is None or cut is None else {kind: part.clip(*cut) for kind, part in whole.items()}

    # -- steps

    @cached_property
    def every_step(self) -> tuple[Step, ...]:
        """All steps of the recording, without times."""
        table = self.table("steps")
        found = records(table, "label", "number", "low", "high", "start", "end", "known") if table is not None else []
        return tuple(replace(step, known=bool(step.known)) for step in starmap(Step, found))

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps that the query selects, with times of what it selects, else as recorded."""
        low, high = self._query.range or (None, None)
        found = []
        for index, step in enumerate(self.every_step):
            apart = (low is not None and step.high is not None and step.high <= low) or (
                high is not None and step.low is not None and step.low >= high)  # fmt: skip
            if not apart and self._query.step in (None, step.number):
                found.append(step if self.steps_are_computed else replace(step, times=self._recorded[index][1]))
        return tuple(self._with_times(found) if self.steps_are_computed else found)

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
    def _recorded(self) -> list[tuple[str | None, tuple[float | None, ...]]]:
        table = self.table("recorded_steps")
        return [] if table is None else [(label, tuple(values)) for label, *values in step_records(table, "label")]

    @property
    def recorded_steps(self) -> list[tuple[str | None, tuple[float | None, ...]]]:
        """Labels and times of the steps that a table recorded; of the selected steps if one is selected."""
        labels = {step.label for step in self.steps}
        return [row for row in self._recorded if self._query.step is None or row[0] in labels]

    @property
    def difference(self) -> float | None:
        """Largest difference of a step's times from the recorded ones, ns; None if none is in both, or of a part."""
        if not self.steps_are_computed or self._query.range is not None or self._query.condition:
            return None
        recorded = dict(self._recorded)
        return max((abs(one - other) for step in self.steps
                    for key, one, other in zip(STEP_KEYS, step.times, recorded.get(step.label, ()), strict=False)
                    if key not in COARSE and one is not None and other is not None), default=None)  # fmt: skip

    def sum(self, key: str) -> float | None:
        """Sum of a time (``STEP_KEYS``) over the selected steps, ns; None if it is unknown of all."""
        known = [value for step in self.steps if (value := step.times[STEP_KEYS.index(key)]) is not None]
        return sum(known) if known else None

    def used(self, kind: str, step: Step) -> Intervals:
        """Intervals of a kind of use that start in a step."""
        found = (self.coverage or {}).get(kind, Intervals.empty())
        (first,), (last,) = _starting_in(found, [step])
        return Intervals.union(found.starts[first:last], found.ends[first:last])

    def _with_times(self, steps: Sequence[Step]) -> Iterator[Step]:
        """Steps with their times (``STEP_KEYS``) by the use of the device, ns."""
        sums = []
        for part in ((self.coverage or {}).get(kind, Intervals.empty()) for kind in COVERAGE):
            first, last = _starting_in(part, steps)
            sums.append((part.cum[last] - part.cum[first]).tolist())
        begun = np.full(len(steps), _ALWAYS[1])
        # in an empty step no device work began
        for part in ((self._coverage or {}).get(kind, Intervals.empty()) for kind in (COMPUTING, COMMUNICATION)):
            first, last = _starting_in(part, steps)
            begun = np.where(first < last, np.minimum(np.append(part.starts, _ALWAYS[1])[first], begun), begun)
        start, length = self._receives
        low, high = self._query.range or _ALWAYS
        for step, begin, computing, communication, exposed, free in zip(steps, begun.tolist(), *sums, strict=True):
            bubble = int(length[step.contains(start)].sum())
            unknown = begin == _ALWAYS[1] or step.start is None
            preparing = None if unknown else max(min(begin, high) - max(step.start, low), 0)
            yield replace(step, times=(
                computing, communication, communication - exposed, exposed, free, computing + exposed + free - bubble,
                bubble, exposed - bubble, preparing))  # fmt: skip

    @cached_property
    def _receives(self) -> tuple[I64, I64]:
        """Start and length of receive operators, which wait for the preceding pipeline stage, cut to the range."""
        frame = self.events(("communication",), "name", "start", "end")
        frame = frame.take(frame.has("name", _RECEIVE.search))
        low, high = self._query.range or _ALWAYS
        start = np.maximum(frame["start"], low)
        return start, np.maximum(np.minimum(frame["end"], high) - start, 0)

    # -- gaps

    @cached_property
    def gaps(self) -> Gaps:
        """Intervals in which the device is free that reach into the range and start in the step."""
        free = (self._coverage or {}).get(FREE, Intervals.empty())
        low, high = self._query.range or _ALWAYS
        chosen = (free.ends > low) & (free.starts < high)
        starts = np.maximum(free.starts, low)
        if self._query.step is not None:
            chosen &= np.any([np.zeros(len(free), np.bool_), *(step.contains(starts) for step in self.steps)], axis=0)
        length = np.minimum(free.ends, high) - starts
        return Gaps(free.starts[chosen], free.ends[chosen], starts[chosen], length[chosen])

    @cached_property
    def _called(self) -> tuple[I64, I64]:
        """Rows of ``launches`` from the operator and from the launch to the work that ends each gap; -1 if none."""
        table, ends = self.table("launches"), self.gaps.end
        if table is None:
            return (np.full(len(ends), -1),) * 2
        launches = frame_of(table, ("category", "start"))

        def ending(category: str) -> I64:
            rows = np.flatnonzero(launches.has("category", category.__eq__))
            rows = rows[np.argsort(launches["start"][rows], kind="stable")]
            return lookup(launches["start"][rows], ends, rows)

        return ending(ASYNC_NPU), ending(HOST_TO_DEVICE)

    @cached_property
    def causes(self) -> npt.NDArray[np.int8]:
        """Cause of each gap, as an index into ``CAUSES``."""
        table, gaps = self.table("launches"), self.gaps
        if table is None:
            return np.full(len(gaps), CAUSES.index("unknown"), np.int8)
        called, launched = self._called
        # -1 selects the appended time
        times = np.append(table["called"], INT_MISSING)
        call = times[called]
        launch = np.where(launched >= 0, times[launched], call)
        known = (called >= 0) | (launched >= 0)
        causes = {"unknown": ~known, "device": launch <= gaps.start, "dispatch": (called >= 0) & (call <= gaps.start)}
        return np.select(list(causes.values()), list(map(CAUSES.index, causes))).astype(np.int8)

    @cached_property
    def cause_times(self) -> dict[str, int]:
        """Free time by cause, ns."""
        return {cause: int(self.gaps.length[self.causes == code].sum()) for code, cause in enumerate(CAUSES)}

    def neighbours(self) -> tuple[list[str | None], list[str | None]]:
        """Name of the work that ended last before each gap, and of the work that starts at its end."""
        work = self.events(("stream", "communication"), "lane", "name", "start", "end", "activity", "order",
                           role=Role.WORK)  # fmt: skip
        on_group = np.isin(work["lane"], self.lanes("communication"))
        work = work.take((work["activity"] == Activity.COMPUTE) | on_group)
        work = work.take(np.lexsort((work["order"], work["start"])))
        by_end = np.argsort(work["end"], kind="stable")
        # ends in the timeline are rounded separately from starts
        before = np.searchsorted(work["end"][by_end], self.gaps.start + 2, side="right") - 1
        after = np.searchsorted(work["start"], self.gaps.end - 1)
        codes = np.append(work["name"], -1)
        return (self._names(np.where(before >= 0, codes[np.append(by_end, -1)[before]], -1)), self._names(codes[after]))

    def _names(self, codes: I64) -> list[str | None]:
        names = self._session.profile.strings["name"]
        return [names[code] if code >= 0 else None for code in codes.tolist()]

    def host_of_gaps(self) -> list[str | None]:
        """Name with the most self time within each gap, on the thread that called the work at its end; or None."""
        table, gaps = self.table("launches"), self.gaps
        found = np.full(len(gaps), -1)
        callers = np.append(table["caller_event"] if table is not None else found[:0], -1)
        for rows, kinds in zip(self._called, (("python", "other"), ("cann",)), strict=True):
            caller = np.where(found < 0, callers[rows], -1)
            lane = np.where(caller >= 0, np.searchsorted(self._session.offsets, caller, side="right") - 1, -1)
            found = np.maximum(found, self._longest_innermost(kinds, lane))
        return self._names(found)

    def _longest_innermost(self, kinds: tuple[str, ...], lanes: I64) -> I64:
        """Code of the name that is innermost for longest on a lane of some kinds within each gap; -1 if nothing runs.

        On lanes of the framework only operators count.
        """
        found = np.full(len(lanes), -1)
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
            inner = innermost((start, end, np.zeros_like(start)), (begin, begin, np.zeros_like(begin)))
            found[gaps_here] = self._longest(gaps_here, begin, stop, np.append(frame["name"], -1)[inner])
        return found

    def _longest(self, of_gaps: I64, start: I64, end: I64, what: I64) -> I64:
        """What covers most of some gaps, by starts: of equals the first (-1 for those that nothing covers)."""
        low, high = self.gaps.start, self.gaps.end
        reach = np.maximum.accumulate(end) if len(end) else end
        first = np.searchsorted(reach, low[of_gaps], side="right")
        count = np.maximum(np.searchsorted(start, high[of_gaps]) - first, 0)
        # all pairs of a gap and an interval that may overlap it
        gap, part = np.repeat(of_gaps, count), np.repeat(first, count) + positions_in_runs(count)
        covered = np.minimum(end[part], high[gap]) - np.maximum(start[part], low[gap])
        pairs = Frame({"gap": gap, "what": what[part], "covered": covered}, {}).take((what[part] >= 0) & (covered > 0))
        # the last assignment to each gap wins: the longest time, among equals the first
        groups = GroupBy(pairs, ["gap", "what"])
        times, values = groups.reduce(groups.frame["covered"]), groups.values("what")
        order = np.lexsort((-values, times))
        found = np.full(len(low), -1)
        found[groups.values("gap")[order]] = values[order]
        return found[of_gaps]

    def device_of_gaps(self) -> list[str | None]:
        """Task that covers most of each gap of cause ``device``; None for other causes."""
        found, wanted = np.full(len(self.gaps), -1), np.flatnonzero(self.causes == CAUSES.index("device"))
        if len(wanted):
            tasks = self.events(("stream",), "name", "start", "end", "role", "activity", filtered=False)
            works = (tasks["role"] == Role.WORK) & (tasks["activity"] == Activity.COMPUTE)
            tasks = tasks.take(~works & (tasks["role"] != Role.ANNOTATION))
            tasks = tasks.take(np.argsort(tasks["start"], kind="stable"))
            found[wanted] = self._longest(wanted, tasks["start"], tasks["end"], np.arange(len(tasks)))
            found[wanted] = np.append(tasks["name"], -1)[found[wanted]]
        return self._names(found)


def _union(frame: Frame) -> Intervals:
    return Intervals.union(frame["start"], frame["end"])


def _starting_in(found: Intervals, steps: Sequence[Step]) -> tuple[I64, I64]:
    """For each step the index of the first interval that starts in it, and of the one after the last."""
    first = np.searchsorted(found.starts, [_ALWAYS[0] if step.low is None else step.low for step in steps])
    last = np.searchsorted(found.starts, [_ALWAYS[1] if step.high is None else step.high for step in steps])
    return first, np.maximum(first, last)


class Gaps(Struct, frozen=True, eq=False):
    """Gaps in columns of one length, int64 ns: extent of each, and begin and length of its part in the range."""

    start: I64
    end: I64
    begin: I64
    length: I64

    def __len__(self) -> int:
        return len(self.start)


def figures_of(query: Query, rank: RecordedRank) -> RankFigures:
    """Figures of a rank; those of the last selections are cached."""
    own = replace(query, scope=Scope(rank.group), baseline=None)
    which = rank.key, query.range, query.full_filter
    return query.cache.get("Ascend figures", lambda: RankFigures(own, rank), *which, limit=64)
