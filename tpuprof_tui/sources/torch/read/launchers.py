"""Who launched what: the operator of each call and device work, which work communicates, and what overlaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.formats.units import time_text
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Group, Lane, Problem, Severity
from tpuprof_tui.model.profile import FRAGMENTARY
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.chrome.columns import I64, lookup
from tpuprof_tui.sources.chrome.nesting import innermost

from ..categories import (
    COLLECTIVE,
    COLLECTIVE_COMM,
    COMMUNICATION,
    LEGACY_HOST,
    Kind,
    is_operator,
    tensor_core_use,
    uses_tensor_cores,
)
from .dependencies import launches_of

if TYPE_CHECKING:
    from .trace import Trace

Mask = npt.NDArray[np.bool_]
#: Calls that start work on a device, each of which is recorded; setting memory often is not.
LAUNCHING: Final = lazy_pattern(
    r"(?:cuda|cu|hip)(?:\w*Launch\w*Kernel|GraphLaunch|Memcpy)|(?:ur|pi)EnqueueKernelLaunch"
)
GRAPHS: Final = lazy_pattern(r"(?:cuda|cu|hip)GraphLaunch")
_CAPTURES: Final = lazy_pattern(r"(?:cuda|cu|hip)Stream(Begin|End)Capture")
#: If External id == correlation in all calls that have both, and there are this many of them, they are launch ids.
_LAUNCH_IDS: Final = 10
#: Calls that launch with attributes.
_ATTRIBUTES: Final = lazy_pattern(r"(?:cuda|cu|hip)\w*LaunchKernelEx")


class Launchers:
    """The launchers of a trace's calls and device work.

    Attributes:
        calls: Rows of the calls.
        kernels: Mask of the device work that is kernels.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.calls = np.flatnonzero(trace.kind == Kind.CALL)
        self.kernels = np.asarray(trace.kind[trace.work_rows] == Kind.KERNEL)

    @cached_property
    def operators(self) -> Mask:
        """Mask of the events that are operators."""
        return np.asarray((self._trace.kind == Kind.OPERATOR) & self._trace.named(is_operator))

    @cached_property
    def tensor_cores(self) -> Mask:
        """Mask of the device work that uses tensor cores, by TensorBoard's list of names."""
        return np.asarray(self._trace.named(uses_tensor_cores)[self._trace.work_rows] & self.kernels)

    @cached_property
    def on_tensor_cores(self) -> tuple[Mask, Mask]:
        """Masks of the kernels that use tensor cores by more names than those, and of those of which none tells."""
        codes = self._trace.name[self._trace.work_rows]
        used, unknown = np.zeros((2, len(self._trace.names)), np.bool_)
        for code in uniques(codes[self.kernels]).tolist():
            use = tensor_core_use(self._trace.names[code])
            used[code], unknown[code] = use is True, use is None
        return used[codes] & self.kernels, unknown[codes] & self.kernels

    @cached_property
    def has_collective_name(self) -> Mask:
        """Mask of the events that are host collectives by their name or category."""
        trace = self._trace
        codes = [code for code, text in enumerate(trace.categories) if text.lower() == COLLECTIVE_COMM]
        found = trace.named(COLLECTIVE.match)
        return found | np.isin(trace.category, codes) if codes else found

    @cached_property
    def ids_usable(self) -> bool:
        """Whether External ids of calls identify operators; false if they are ids of launches."""
        correlation, external = self._trace.correlation[self.calls], self._trace.external[self.calls]
        both = (correlation != INT_MISSING) & (external != INT_MISSING)
        return int(both.sum()) < _LAUNCH_IDS or bool((correlation[both] != external[both]).any())

    @cached_property
    def of_flow(self) -> I64:
        """Row of the operator that a flow joins with each device work, in legacy traces, which have no calls; else -1.

        Reads the file again.
        """
        trace = self._trace
        found = np.full(len(trace.work_rows), -1, np.int64)
        if LEGACY_HOST not in trace.flow_processes:
            return found
        operators = self._rows_by_place(np.flatnonzero(trace.kind == Kind.OPERATOR))
        work = self._rows_by_place(trace.work_rows)
        for begin, end in launches_of(trace.arguments, trace.zero_ns):
            # kernels of all streams are one lane, where several of a name may start at a time
            if (rows := work.get(end)) and begin in operators:
                found[np.searchsorted(trace.work_rows, rows.pop())] = operators[begin][-1]
        return found

    def _rows_by_place(self, rows: I64) -> dict[tuple[tuple[str, str], int, str], list[int]]:
        trace = self._trace
        found: dict[tuple[tuple[str, str], int, str], list[int]] = {}
        for row, thread, start, name in zip(rows.tolist(), trace.thread_of(rows).tolist(), trace.start[rows].tolist(),
                                            trace.name[rows].tolist(), strict=True):  # fmt: skip
            found.setdefault((trace.threads[thread], start, trace.names[name]), []).append(row)
        return found

    @cached_property
    def step_times(self) -> I64:
        """Time, ns, by which each device work belongs to a step: when its call starts; missing without a call.

        Work that a flow joins with its operator belongs to a step by that operator.

        Collectives without a call, as those of RCCL, belong to a step by their own start.
        """
        trace = self._trace
        if trace.writer:
            # its steps are those of devices
            return trace.start[trace.work_rows]
        call = trace.call
        launch = np.where(call >= 0, call, self.of_flow)
        found = np.where(launch >= 0, trace.start[launch] if len(trace) else 0, INT_MISSING)
        if (alone := launch < 0).any():
            alone &= self.communicates
            found[alone] = trace.start[trace.work_rows[alone]]
        return found

    @cached_property
    def launches(self) -> tuple[I64, Mask]:
        """Rows of the calls that started work on a device, and the mask of those whose work was not recorded.

        What is launched while a graph is captured runs when the graph is replayed: that is no launch.
        """
        trace = self._trace
        rows = self.calls[trace.named(LAUNCHING.match)[self.calls] & (trace.correlation[self.calls] != INT_MISSING)]
        recorded = trace.correlation[trace.work_rows]
        if trace.aside is not None:
            recorded = np.concatenate([recorded, trace.aside.correlation])
        lacking = lookup(np.sort(recorded), trace.correlation[rows]) < 0
        # work without an id may be that of any launch
        lacking &= int(lacking.sum()) > int((recorded == INT_MISSING).sum())
        if lacking.any():
            lacking &= ~(captured := lacking & self._capturing(rows))
            rows, lacking = rows[~captured], lacking[~captured]
        return rows, lacking

    def _capturing(self, rows: I64) -> Mask:
        """Mask of the calls during which a thread of their process captures a graph."""
        trace = self._trace
        found = np.zeros(len(rows), np.bool_)
        borders = self.calls[trace.named(_CAPTURES.match)[self.calls]]
        begins = trace.named(lambda name: (match := _CAPTURES.match(name)) and match[1] == "Begin")[borders]
        processes = [pid for pid, _ in trace.threads]
        process = np.array([processes.index(pid) for pid in processes], np.int64)
        for number in uniques(process[trace.thread_of(borders)]).tolist():
            own = process[trace.thread_of(borders)] == number
            time = np.where(begins[own], trace.start[borders[own]], trace.end[borders[own]])
            order = np.argsort(time, kind="stable")
            open_captures = np.append(0, np.cumsum(np.where(begins[own][order], 1, -1)))
            # an end without a begin: it began before the recording
            open_captures -= min(int(open_captures.min()), 0)
            of_process = process[trace.thread_of(rows)] == number
            found[of_process] = open_captures[np.searchsorted(time[order], trace.start[rows[of_process]])] > 0
        return found

    def rows_by_external_id(self, ids: I64) -> I64:
        """Row of the operator or annotation with each External id; -1 if none."""
        trace = self._trace
        rows = np.flatnonzero(np.isin(trace.kind, (Kind.OPERATOR, Kind.ANNOTATION, Kind.OLD_FRAME))
                              & (trace.external != INT_MISSING) & (trace.external != 0))  # fmt: skip
        rows = rows[np.lexsort((trace.file_order[rows], trace.external[rows]))]
        return lookup(trace.external[rows], ids, rows)

    @cached_property
    def of_call(self) -> I64:
        """For each event that is a call the row of the operator or annotation it belongs to; else -1."""
        trace, calls = self._trace, self.calls
        found = np.full(len(trace), -1, np.int64)
        external = trace.external[calls]
        by_time = (external == INT_MISSING) if self.ids_usable else np.ones(len(calls), np.bool_)
        found[calls[~by_time]] = self.rows_by_external_id(external[~by_time])
        found[calls[by_time]] = self.enclosing(np.flatnonzero(self.operators), calls[by_time])
        return found

    def enclosing(self, outer: I64, inner: I64) -> I64:
        """Row of the innermost event of ``outer`` that contains each event of ``inner`` on its thread; -1 if none."""
        trace = self._trace
        index = innermost((trace.start[outer], trace.end[outer], trace.thread_of(outer)),
                          (trace.start[inner], trace.end[inner], trace.thread_of(inner)))  # fmt: skip
        return np.where(index >= 0, outer[index] if len(outer) else -1, -1)

    @cached_property
    def of_work(self) -> I64:
        """Row of the operator or annotation that launched each device work; -1 if none."""
        trace = self._trace
        call = trace.call
        found = np.where(call >= 0, self.of_call[call] if len(trace) else -1, self.of_flow)
        if self.ids_usable:
            alone = np.flatnonzero((call < 0) & (found < 0))
            found[alone] = self.rows_by_external_id(trace.external[trace.work_rows[alone]])
        return found

    @cached_property
    def communicates(self) -> Mask:
        """Mask of the device work that is communication kernels, by name, arguments, or launcher."""
        trace = self._trace
        found = trace.named(COMMUNICATION.match)[trace.work_rows] | trace.work["collective"]
        # most traces have no collectives, and need no launchers for this
        if self.has_collective_name.any():
            launched = self.of_work >= 0
            found[launched] |= self.has_collective_name[self.of_work[launched]]
        return np.asarray(self.kernels & found)

    @cached_property
    def unrecorded(self) -> tuple[tuple[str, int, int], ...]:
        """Launches whose work was not recorded, of graphs and others: a sentence, their number, and that of all."""
        rows, lacking = self.launches
        of_graphs = self._trace.named(GRAPHS.match)[rows]
        found = []
        for which, word in ((of_graphs, "graph launches"), (~of_graphs, "launches")):
            count, every = int((which & lacking).sum()), int(which.sum())
            if count:
                have = "have" if count > 1 else "has"
                text = f"{count:,} of {every:,} {word} {have} no recorded work; idle is not known."
                found.append((text, count, every))
        return tuple(found)


def unrecorded_problems(trace: Trace) -> Iterator[Problem]:
    """Problems of launches whose work was not recorded, and of kernels of which only the start was."""
    why = "The recorder's buffers were full, or another profiler had the device: record alone, fewer steps at a time."
    if any(problem.lost for problem in trace.problems):
        why = "It may be among the events of the file that were left out."
    for text, count, every in trace.launchers.unrecorded:
        yield Problem(Severity.WARNING, text, why, file=trace.path.name, count=count, lost=count, launches=every,
                      fragmentary=count > FRAGMENTARY * every)  # fmt: skip
    kernels = trace.work_rows[trace.launchers.kernels]
    count = int((trace.start[kernels] == trace.end[kernels]).sum())
    if 2 * count > len(kernels):  # of times in whole us some are 0, too
        yield Problem(Severity.WARNING, f"{count:,} of {len(kernels):,} kernels have a length of 0.",
                      "What they took is not known.", file=trace.path.name, count=count, fragmentary=True)  # fmt: skip


class Overlaps(Struct, frozen=True, eq=False):
    """Device work that overlaps the next of its stream, in columns of one length."""

    first: I64  #: int64, indices in ``Trace.work_rows``, ascending; the next of its stream is the index behind it
    explained: npt.NDArray[np.bool_]  #: Mask of those that the launch of the next explains
    sum_ns: int  #: By which the sum of all durations exceeds the time in which the streams worked


def overlaps_of(trace: Trace) -> Overlaps:
    """The overlaps of a trace. O(device work)."""
    rows = trace.work_rows
    start, end = trace.start[rows], trace.end[rows]
    later = start[1:] - end[:-1]
    edges = np.searchsorted(rows, trace.first)
    # the last of a lane has no next one
    later[edges[(edges > 0) & (edges < len(rows))] - 1] = 0
    found = np.flatnonzero(later < 0)
    if len(found):
        # times in whole us, or cut to ns, are off by one
        whole = not (start % 1000).any() and not (end % 1000).any()
        found = found[later[found] < (-1000 if whole else -1)]
    if not len(found):
        return Overlaps(found, np.zeros(0, np.bool_), 0)
    total = 0
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if high - low > 1:
            reach = np.maximum.accumulate(end[low:high])
            total += int(np.maximum(np.minimum(reach[:-1], end[low + 1 : high]) - start[low + 1 : high], 0).sum())
    call = trace.call[found + 1]
    dependent = trace.named(_ATTRIBUTES.match)[call] & (end[found + 1] >= end[found])
    # only the work of a graph has a common call
    explained = (call >= 0) & (dependent | (call == trace.call[found]))
    return Overlaps(found, explained, total)


def overlap_problems(trace: Trace, rows: I64 | slice, groups: Sequence[Group], lane: Lane) -> Iterator[Problem]:
    """The problem of a stream, if its work overlaps; ``rows``: the rows of its events in the trace."""
    found = trace.overlaps
    begin, last = (rows.start, rows.stop - 1) if isinstance(rows, slice) else (int(rows[0]), int(rows[-1]))
    own = (trace.work_rows[found.first] >= begin) & (trace.work_rows[found.first] <= last)
    if not own.any():
        return
    explained = bool(found.explained[own].all())
    wrong = found.first[own & (explained | ~found.explained)]
    place, behind = trace.work_rows[wrong], trace.work_rows[wrong + 1]
    time = time_text(int((trace.end[place] - trace.start[behind]).sum()))
    which = f"{len(wrong):,} events overlap" if len(wrong) > 1 else "One event overlaps"
    why = "as programmatic dependent launch and graphs do" if explained else "though a stream runs one thing at a time"
    yield Problem(
        Severity.NOTE if explained else Severity.WARNING,
        f"{which} the next on {groups[lane.group].label} {lane.label} by {time}, {why}.",
        "Shown as recorded: sums count that time twice, unions once.", file=trace.path.name,
        offset=trace.arguments.offset_of_number(int(trace.file_order[place[0]])), group=lane.group, lane=lane.label,
        count=len(wrong), rows=place - begin if isinstance(rows, slice) else np.searchsorted(rows, place),
    )  # fmt: skip
