"""Figures of one worker that several views share: steps, gaps and their causes, times of operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.sources.chrome.nesting import innermost
from tpuprof_tui.views.query import Query

from ..read.categories import AI_CORES, AI_CORES_OF_DATABASE, RECEIVE, STEP, SliceClass
from ..read.coverage import Coverage, SortedIntervals, coverage_of, sorted_intervals
from ..read.kernels import Kernels, rows_of_work
from ..read.profile import AscendProfile, AscendWorker, step_numbers
from ..read.rank import STEP_COLUMNS, Rank, RecordedStep
from ..read.timeline import ASYNC_NPU, HOST_TO_DEVICE, Timeline

I64 = npt.NDArray[np.int64]
_NO: Final = np.zeros(0, np.int64)
Mask = npt.NDArray[np.bool_]
CAUSES: Final = ("host", "dispatch", "device", "unknown")


class Step(Struct, frozen=True):
    """One step.

    Attributes:
        label: Its name; None if no step was marked and the recorded table has no name.
        number: Its number; -1 if it has none.
        low, high: Device work that starts in [low, high) belongs to it, ns since 1970; None: no bound.
        values: Times in the order of ``STEP_COLUMNS``, ns; None if unknown.
        known: Whether it is known which work belongs to it.
    """

    label: str | None
    number: int
    low: int | None
    high: int | None
    values: tuple[float | None, ...]
    known: bool = True

    def contains(self, start: I64) -> Mask:
        """Mask of the device work that belongs to the step, by start; all False if that is unknown."""
        found = np.full(len(start), self.known)
        if self.low is not None:
            found &= start >= self.low
        if self.high is not None:
            found &= start < self.high
        return found


class Run:
    """One worker and the figures derived from it."""

    def __init__(self, worker: AscendWorker) -> None:
        self.worker = worker
        self.rank: Rank = worker.rank

    @property
    def timeline(self) -> Timeline | None:
        """Its slices; None if there are none."""
        timeline = self.rank.timeline
        return timeline if timeline is not None and len(timeline) else None

    @property
    def kernels(self) -> Kernels | None:
        """Its kernels; None if there are none."""
        return self.rank.kernels

    @cached_property
    def coverage(self) -> Coverage | None:
        """Use of the device over time; None if unknown."""
        return coverage_of(self.timeline, self.kernels)

    # -- steps

    @cached_property
    def steps(self) -> tuple[str, tuple[Step, ...], bool]:
        """Name of the file used, the steps, and whether they were recomputed rather than read from a table."""
        recorded = self.rank.recorded_steps
        coverage = self.coverage
        if coverage is not None and (self.timeline is not None or recorded is None):
            return coverage.file, tuple(self._computed(coverage, recorded[1] if recorded else ())), True
        if recorded is not None:
            return recorded[0], tuple(self._recorded(recorded[1])), False
        return "", (), False

    def _recorded(self, recorded: Sequence[RecordedStep]) -> Iterator[Step]:
        """Steps of a table; their work follows from the kernels' step column; of a single step it is everything."""
        kernels = self.kernels
        step = kernels.other("step") if kernels is not None else None
        lows: list[int | None] = []
        for label, _ in recorded:
            of_step = step.where(lambda text, label=label: text == label) if step is not None else np.zeros(0, np.bool_)
            starts = kernels.start[of_step & kernels.timed] if kernels is not None else _NO
            lows.append(int(starts.min()) if len(starts) else None)
        for index, (label, values) in enumerate(recorded):
            low = lows[index]
            high = min((each for each in lows if each is not None and low is not None and each > low), default=None)
            yield Step(label, _number(label), low, high, values, low is not None or len(recorded) == 1)

    @cached_property
    def mark_numbers(self) -> I64:
        """Numbers of the marked steps, in the order of ``Timeline.steps``."""
        timeline = self.timeline
        marks = timeline.name[timeline.steps].tolist() if timeline is not None else []
        names = timeline.names if timeline is not None else ()
        return step_numbers([names[name].removeprefix(STEP) for name in marks])

    def _computed(self, coverage: Coverage, recorded: Sequence[RecordedStep]) -> list[Step]:
        timeline = self.timeline
        marks = timeline.steps if timeline is not None else _NO
        if not len(marks) and self.rank.iterations is not None:
            labels, starts, ends = self.rank.iterations[1:]
            each = zip(labels, step_numbers(labels).tolist(), starts.tolist(), ends.tolist(), strict=True)
            return [Step(label, number, low, high, self._times(coverage, low, high, None))
                    for label, number, low, high in each]  # fmt: skip
        if timeline is None or not len(marks):
            label = recorded[0][0] if len(recorded) == 1 else "all"
            return [Step(label, _number(label), None, None, self._times(coverage, None, None, None))]
        labels = [timeline.names[name].removeprefix(STEP) for name in timeline.name[marks].tolist()]
        starts = timeline.start[marks].tolist()
        work = np.sort(np.concatenate([coverage.computing.start, coverage.communication.start]))
        begun: list[int | None] = []
        for start, until in zip(starts, [*starts[1:], None], strict=True):
            index = int(np.searchsorted(work, start))
            first = int(work[index]) if index < len(work) else None
            begun.append(first if first is not None and (until is None or first < until) else None)
        steps = []
        numbers = self.mark_numbers.tolist()
        for number, (label, start, low) in enumerate(zip(labels, starts, begun, strict=True)):
            high = next((each for each in begun[number + 1 :] if each is not None), None)
            if low is None:
                # no device work began in this step: all its times are 0
                nothing = tuple(0 if key != "preparing_us" else None for *_, key in STEP_COLUMNS)
                steps.append(Step(label, numbers[number], start, start, nothing))
                continue
            steps.append(Step(label, numbers[number], low, high, self._times(coverage, low, high, start)))
        return steps

    def _times(
        self, coverage: Coverage, low: int | None, high: int | None, host_start: int | None
    ) -> tuple[float | None, ...]:  # fmt: skip
        computing, communication, exposed, free = (each.within(low, high).total for _, each in coverage.kinds())
        bubble = self._receives.within(low, high).total
        preparing = None if low is None or host_start is None else low - host_start
        return (computing, communication, communication - exposed, exposed, free,
                computing + exposed + free - bubble, bubble, exposed - bubble, preparing)  # fmt: skip

    @cached_property
    def _receives(self) -> SortedIntervals:
        """Receive operators, which wait for the preceding pipeline stage."""
        timeline, kernels = self.timeline, self.kernels
        if timeline is not None:
            rows = timeline.rows(SliceClass.COLLECTIVE)
            rows = rows[timeline.named(RECEIVE.search)[rows]]
            return sorted_intervals(timeline.start[rows], timeline.end[rows])
        if kernels is not None:
            rows = np.flatnonzero(kernels.timed & kernels.communicates & kernels.name.where(RECEIVE.search))
            return sorted_intervals(kernels.start[rows], kernels.end[rows])
        return SortedIntervals()

    # -- work in order of time

    @cached_property
    def work(self) -> tuple[I64, I64, list[str | None]]:
        """Starts, ends and names of kernels and communication operators, by start."""
        timeline, kernels = self.timeline, self.kernels
        if timeline is not None and len(timeline.work):
            rows = timeline.work
            names: list[str | None] = [timeline.names[each] for each in timeline.name[rows].tolist()]
            return timeline.start[rows], timeline.end[rows], names
        if kernels is not None and kernels.timed.any():
            rows = np.flatnonzero(kernels.timed)
            rows = rows[np.argsort(kernels.start[rows], kind="stable")]
            return kernels.start[rows], kernels.end[rows], kernels.name.values(rows)
        return _NO, _NO, []

    # -- gaps

    @cached_property
    def gaps(self) -> SortedIntervals:
        """Intervals in which the device is free, by start."""
        return self.coverage.free if self.coverage is not None else SortedIntervals()

    @cached_property
    def called(self) -> tuple[I64, I64]:
        """For each gap the flows from the operator and from the launch to the work that ends it; -1 if none."""
        timeline, ends = self.timeline, self.gaps.end
        if timeline is None:
            return np.full(len(ends), -1), np.full(len(ends), -1)
        found = []
        for category in (ASYNC_NPU, HOST_TO_DEVICE):
            links = timeline.flows.of(category)
            order = links[np.argsort(timeline.flows.to_time[links], kind="stable")]
            times = timeline.flows.to_time[order]
            index = np.searchsorted(times, ends)
            hit = index < len(times)
            hit[hit] = times[index[hit]] == ends[hit]
            found.append(np.where(hit, order[np.minimum(index, max(len(order) - 1, 0))] if len(order) else -1, -1))
        return found[0], found[1]

    @cached_property
    def causes(self) -> npt.NDArray[np.int8]:
        """Cause of each gap, as an index into ``CAUSES``."""
        timeline, gaps = self.timeline, self.gaps
        called, launched = self.called
        if timeline is None:
            return np.full(len(gaps), 3, np.int8)
        times = timeline.flows.from_time
        call = np.where(called >= 0, times[called] if len(times) else 0, INT_MISSING)
        launch = np.where(launched >= 0, times[launched] if len(times) else 0, call)
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
        starts, ends, names = self.work
        if not len(starts):
            nothing: list[str | None] = [None] * len(self.gaps)
            return nothing, list(nothing)
        by_end = np.argsort(ends, kind="stable")
        # ends in the timeline are rounded separately from starts
        before = np.searchsorted(ends[by_end], self.gaps.start + 2, side="right") - 1
        after = np.searchsorted(starts, self.gaps.end - 1)
        return (
            [names[int(by_end[index])] if index >= 0 else None for index in before.tolist()],
            [names[index] if index < len(names) else None for index in after.tolist()],
        )

    def host_of_gaps(self) -> list[str | None]:
        """Name with the most self time within each gap, on the thread that called the work at its end; or None."""
        timeline, gaps = self.timeline, self.gaps
        if timeline is None:
            return [None] * len(gaps)
        found = np.full(len(gaps), -1)
        for link, slice_class in zip(self.called, (SliceClass.OPERATOR, SliceClass.CALL), strict=True):
            # -1 (no flow, no slice, no track) selects the appended -1
            row = np.where(found < 0, np.append(timeline.flows.from_row, -1)[link], -1)
            track = np.append(timeline.track, -1)[row]
            found = np.maximum(found, _longest_innermost(timeline, slice_class, track, gaps.start, gaps.end))
        return [timeline.names[name] if name >= 0 else None for name in found.tolist()]

    def device_of_gaps(self) -> list[str | None]:
        """Task that covers most of each gap of cause ``device``; None for other causes."""
        timeline = self.timeline
        found: list[str | None] = [None] * len(self.gaps)
        wanted = np.flatnonzero(self.causes == CAUSES.index("device"))
        if timeline is None or not len(wanted):
            return found
        rows = timeline.rows(SliceClass.COPY, SliceClass.WAIT, SliceClass.SYNC)
        rows = rows[np.argsort(timeline.start[rows], kind="stable")]
        start, end = timeline.start[rows], timeline.end[rows]
        reach = np.maximum.accumulate(end) if len(end) else end
        for gap in wanted.tolist():
            low, high = int(self.gaps.start[gap]), int(self.gaps.end[gap])
            first, last = int(np.searchsorted(reach, low, side="right")), int(np.searchsorted(start, high))
            if first >= last:
                continue
            covered = np.minimum(end[first:last], high) - np.maximum(start[first:last], low)
            best = int(np.argmax(covered))
            if covered[best] > 0:
                found[gap] = timeline.name_of(int(rows[first + best]))
        return found

    # -- operators on the timeline

    @cached_property
    def operator_times(self) -> OperatorTimes | None:
        """Times of framework operators, from slices; None if there are none."""
        timeline = self.timeline
        return OperatorTimes(self) if timeline is not None and len(timeline.operators) else None


def _longest_innermost(timeline: Timeline, slice_class: SliceClass, track: I64, low: I64, high: I64) -> I64:
    """Code of the name that is innermost for longest on a track within each [low, high); -1 if nothing runs."""
    found = np.full(len(track), -1)
    rows = timeline.rows(slice_class)
    for each in np.unique(track[track >= 0]).tolist():
        track_rows, gaps_here = rows[timeline.track[rows] == each], np.flatnonzero(track == each)
        start, end, thread = timeline.start[track_rows], timeline.end[track_rows], timeline.track[track_rows]
        # cut the track wherever the innermost slice may change
        cuts = np.sort(np.append(start, end))
        cuts = cuts[np.append(True, cuts[1:] > cuts[:-1])]
        begin, stop = cuts[:-1], cuts[1:]
        inner = innermost((start, end, thread), (begin, begin, np.full(len(begin), each)))
        name = np.append(timeline.name[track_rows], -1)[inner]
        first = np.searchsorted(stop, low[gaps_here], side="right")
        count = np.maximum(np.searchsorted(begin, high[gaps_here]) - first, 0)
        # all pairs of an interval and a part that overlaps it
        gap = np.repeat(np.arange(len(gaps_here)), count)
        part = np.arange(len(gap)) + np.repeat(first - np.cumsum(count) + count, count)
        known = name[part] >= 0
        gap, part = gap[known], part[known]
        covered = np.minimum(stop[part], high[gaps_here][gap]) - np.maximum(begin[part], low[gaps_here][gap])
        of_name, inverse = np.unique(gap * len(timeline.names) + name[part], return_inverse=True)
        times = np.bincount(inverse, weights=covered, minlength=len(of_name))
        gap, name = np.divmod(of_name, max(len(timeline.names), 1))
        # the last assignment of each interval wins: the longest time, among equals the first name
        order = np.lexsort((-name, times, gap))
        found[gaps_here[gap[order]]] = name[order]
    return found


class OperatorTimes:
    """Times of framework operators, in columns of one length, in the order of ``Timeline.operators``.

    Attributes:
        host_total, host_self: ns.
        device_self, device_total: ns of tasks and communication operators called by the operator; total: also by those
            nested in it.
        aicore_self, aicore_total: The same for AI Core kernels only; None if cores are unknown.
    """

    def __init__(self, run: Run) -> None:
        timeline = run.timeline
        assert timeline is not None
        rows, above = timeline.operators, timeline.operator_parents
        self.rows = rows
        self.host_total = timeline.end[rows] - timeline.start[rows]
        self.host_self = self.host_total.copy()
        np.subtract.at(self.host_self, above[above >= 0], self.host_total[above >= 0])
        flows = timeline.flows
        links = flows.of(ASYNC_NPU)
        links = links[(flows.from_row[links] >= 0) & (flows.to_row[links] >= 0)]
        # a task with several flows counts once
        _, first = np.unique(flows.to_row[links], return_index=True)
        links = links[np.sort(first)]
        task = flows.to_row[links]
        index_of_row = np.full(len(timeline), -1, np.int64)
        index_of_row[rows] = np.arange(len(rows))
        owner = index_of_row[flows.from_row[links]]
        known = owner >= 0
        self.device_self, self.device_total = self._sums(owner[known], task[known], timeline, above)
        self.aicore_self: I64 | None = None
        self.aicore_total: I64 | None = None
        kernels = run.kernels
        if (kernels is not None and kernels.file != timeline.file) or (kernels is not None and kernels.type.texts):
            found = rows_of_work(kernels, timeline, task)
            cores = AI_CORES_OF_DATABASE if kernels.file.endswith(".db") else AI_CORES
            on_cores = np.append(kernels.core.where(cores.match), False)[found] & known
            self.aicore_self, self.aicore_total = self._sums(owner[on_cores], task[on_cores], timeline, above)

    @staticmethod
    def _sums(owner: I64, task: I64, timeline: Timeline, above: I64) -> tuple[I64, I64]:
        own = np.zeros(len(above), np.int64)
        np.add.at(own, owner, timeline.end[task] - timeline.start[task])
        finer = np.zeros(len(above))
        np.add.at(finer, owner, timeline.finer[task])
        total, more = own.copy(), finer.copy()
        # children follow their parents
        for index in np.flatnonzero(above >= 0)[::-1].tolist():
            if total[index]:
                total[above[index]] += total[index]
                more[above[index]] += more[index]
        return own + np.rint(finer).astype(np.int64), total + np.rint(more).astype(np.int64)


def _number(label: str | None) -> int:
    return int(label) if label is not None and label.isascii() and label.isdecimal() and len(label) < 18 else -1


def runs_of(query: Query) -> list[Run]:
    """Runs of the workers that a query covers; cached."""
    profile = query.profile
    workers = profile.ranks if isinstance(profile, AscendProfile) else ()
    group = query.top_group
    return [query.cache.get("Ascend run", lambda worker=worker: Run(worker), worker.key)  # type: ignore[misc]
            for worker in workers if group < 0 or worker.group == group]  # fmt: skip
