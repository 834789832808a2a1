"""Flows of a trace, read from the file again: between operators, between nodes of graphs, from operators to kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.chrome.columns import I64, Codes, lookup, printable, to_int64
from tpuprof_tui.sources.chrome.times import exact_ns, text_of_times

from ..categories import DEVICE_WORK, Kind, legacy_lanes
from .arguments import Arguments
from .events import FLOWS, NamedEnd, NamedStart

if TYPE_CHECKING:
    from .trace import Trace

_FLOWS: Final = ("fwdbwd", "forward_backward")
#: Begin of the categories of flows in legacy traces: cpu_to_cuda.
_LAUNCH_FLOWS: Final = "cpu_to_"
_WORK_FLOWS: Final = ("ac2g", "async_gpu", "async", "async_cpu_to_gpu")
#: Rows that flows begin and end at.
_Joined = tuple[I64, I64]


class FlowEnds(Struct, frozen=True, eq=False):
    """Ends of flows in the order of the file, in columns of one length.

    Attributes:
        begins: Whether each is the flow's start.
        of_work: Whether the flow is one of device work, else from a forward to a backward operator.
        id, number: Code of the flow's id, and its value; missing if it is no integer.
        thread: Index of its thread.
        time: ns from the trace's zero.
    """

    begins: npt.NDArray[np.bool_]
    of_work: npt.NDArray[np.bool_]
    id: I64
    number: I64
    thread: I64
    time: I64

    def joined(self, which: npt.NDArray[np.bool_], row: I64) -> tuple[I64, I64, I64]:
        """Rows at the start and at the end of some flows, and their numbers, given the row of each end; -1: none."""
        begins = which & self.begins & (row >= 0)
        source_of = dict(zip(self.id[begins].tolist(), row[begins].tolist(), strict=True))
        target = np.flatnonzero(which & ~self.begins & (row >= 0))
        source = np.array([source_of.get(number, -1) for number in self.id[target].tolist()], np.int64)
        known = source >= 0
        return source[known], row[target[known]], self.number[target[known]]


def flows_of(trace: Trace) -> tuple[_Joined, _Joined]:
    """Flows from forward to backward operators, and those between device events, as between nodes of a graph.

    A flow ends at the event that starts at its time. So does the begin of one between operators; one between device
    events begins at the event that ends at its time, else at the last one to begin before.
    """
    threads = trace.file_threads or trace.threads
    with_work = {threads[index][0] for index in uniques(trace.thread_of(trace.work_rows)).tolist()}
    ends = flow_ends_of(trace.arguments if trace.flow_processes else None, threads, trace.zero_ns,
                        of_work=not trace.flow_processes.isdisjoint(with_work))  # fmt: skip

    def starting(here: I64, times: I64) -> I64:
        return lookup(trace.start[here], times, here)

    def ending(here: I64, times: I64) -> I64:
        order = here[np.argsort(trace.end[here], kind="stable")]
        ended = lookup(trace.end[order], times, order)
        last = np.searchsorted(trace.start[here], times, side="right") - 1
        inside = (last >= 0) & (trace.end[here[last]] > times)
        return np.where(ended >= 0, ended, np.where(inside, here[last], -1))

    operators = np.flatnonzero(trace.kind == Kind.OPERATOR)
    work = np.flatnonzero(np.isin(trace.kind, (*DEVICE_WORK, Kind.WAIT)))
    forward = ends.joined(~ends.of_work, _on_threads(trace, operators, ends, starting))
    source, target, number = ends.joined(ends.of_work, np.where(
        ends.begins, _on_threads(trace, work, ends, ending), _on_threads(trace, work, ends, starting)))  # fmt: skip
    # of threads that share their ids with a stream: a flow with the id of a launch begins at the call
    between = (trace.correlation[target] != number) & (source != target)
    return forward[:2], (source[between], target[between])


def _on_threads(trace: Trace, rows: I64, ends: FlowEnds, find: Callable[[I64, I64], I64]) -> I64:
    """For each end of a flow the row that is found of its time among some rows of its thread; -1 if none."""
    found, thread = np.full(len(ends.time), -1, np.int64), trace.thread_of(rows)
    for number in uniques(ends.thread).tolist():
        here = np.flatnonzero(ends.thread == number)
        of_thread = rows[slice(*np.searchsorted(thread, (number, number + 1)).tolist())]
        if len(of_thread):
            found[here] = find(of_thread, ends.time[here])
    return found


def flow_ends_of(
    arguments: Arguments | None, threads: Sequence[tuple[str, str]], zero_ns: int, *, of_work: bool = False
) -> FlowEnds:  # fmt: skip
    """Ends of flows between operators.

    Args:
        arguments: Of the file; None if it has no flows.
        threads: Process and thread of each lane in the file, as texts.
        zero_ns: Zero of the times returned.
        of_work: Whether those of device work are read too: one for each launch.
    """
    texts = Codes()
    lanes = {texts[pid] << 32 | texts[tid]: lane for lane, (pid, tid) in enumerate(threads)}
    parts: list[tuple[npt.NDArray[Any], ...]] = []
    times = []
    names = (*_FLOWS, *_WORK_FLOWS) if of_work else _FLOWS
    words = tuple(b'"%b"' % name.encode() for name in names)
    for events in arguments.events(FLOWS, words) if arguments is not None else ():
        flows = [each for each in events if isinstance(each, NamedStart) and each.cat in names]
        starts = np.array([type(each) is NamedStart for each in flows], np.bool_)
        of_device = np.array([each.cat in _WORK_FLOWS for each in flows], np.bool_)
        parts.append((
            starts, of_device, to_int64([each.id for each in flows]),
            *(np.array([texts[str(getattr(each, key))] for each in flows], np.int32) for key in ("id", "pid", "tid")),
        ))  # fmt: skip
        times.append(text_of_times([each.ts for each in flows]))
    nothing = (*[np.zeros(0, np.bool_)] * 2, np.zeros(0, np.int64), *[np.zeros(0, np.int32)] * 3)
    starts, of_device, number, flow_id, pid, tid = map(np.concatenate, zip(nothing, *parts, strict=True))
    distinct, inverse = np.unique(pid.astype(np.int64) << 32 | tid, return_inverse=True)
    lane = np.array([lanes.get(pair, -1) for pair in distinct.tolist()], np.int64)[inverse]
    time = exact_ns(b"".join(times)) - zero_ns
    known = lane >= 0
    return FlowEnds(starts[known], of_device[known], flow_id[known].astype(np.int64), number[known], lane[known],
                    time[known])  # fmt: skip


def launches_of(arguments: Arguments, zero_ns: int) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Flows of a legacy trace, from the operator that launched a kernel to the kernel.

    Yields:
        Of both ends the process and thread as texts, as in ``Trace.threads``, the time in ns from the trace's zero, and
        the name of the event.
    """
    begun: dict[Any, tuple[Any, ...]] = {}
    for events in arguments.events(FLOWS, (f'"{_LAUNCH_FLOWS}'.encode(),)):
        flows = [each for each in events if isinstance(each, NamedStart) and str(each.cat).startswith(_LAUNCH_FLOWS)]
        if not flows:
            continue
        pids, tids = legacy_lanes([""] * len(flows), [each.pid for each in flows], [each.tid for each in flows])
        times = (exact_ns(text_of_times([each.ts for each in flows])) - zero_ns).tolist()
        for flow, pid, tid, time in zip(flows, pids, tids, times, strict=True):
            end = (str(pid), str(tid)), time, printable(flow.name) if isinstance(flow.name, str) else ""
            key = str(flow.id)
            if not isinstance(flow, NamedEnd):
                begun[key] = end
            elif key in begun:
                yield begun[key], end
