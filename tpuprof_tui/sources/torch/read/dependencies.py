"""Dependencies between events: launches, backward passes, stream events, graphs, synchronising calls, collectives.

*Launches*, also of CUDA graph replays, join calls and device work by correlation id. *Stream events*: a stream that
waits for an event goes on when the work submitted to the other stream before the event was recorded is done. *Graphs*:
newer files join the nodes of a CUDA graph by flows from one that ends to one that starts after it.
*Synchronising calls* end with the last work submitted to their stream, or device, before. *Collectives*: of those of
the ranks of a run that belong together none goes on before the last of them begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.formats.decimals import wholes
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Lane, Links
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.chrome.columns import (
    I64,
    INTEGER,
    ArgumentColumns,
    Codes,
    exact_ns,
    lookup,
    printable,
    text_of_times,
)
from tpuprof_tui.sources.chrome.times import clock_difference

from ..categories import COLLECTIVE, COMMUNICATION, DEVICE_WORK, Kind, legacy_lanes
from ..records import distributed_info, numbered
from .arguments import FLOWS, Arguments, NamedEnd, NamedStart

if TYPE_CHECKING:
    from .profile import PlacedTrace
    from .trace import Trace

KINDS: Final = ("launch", "backward", "stream event", "synchronise", "collective", "graph", "flow")
_LAUNCH, _BACKWARD, _EVENT, _SYNC, _COLLECTIVE, _GRAPH, _FLOW = range(7)
_COPIES: Final = lazy_pattern(r"(?:cuda|hip)Memcpy")
_OF_DEVICE: Final = lazy_pattern(r"(?:cuda|hip)DeviceSynchronize")
_OF_ANY: Final = lazy_pattern(r"(?:cuda|hip)(?:Device|Stream)Synchronize")
_BY_EVENT: Final = ("Stream Wait Event", "Event Sync")
_NOTHING: Final = (np.zeros(0, np.int64), np.zeros(0, np.int64))
#: Arguments of waits on the device (``cuda_sync``).
_WAITS: Final = ArgumentColumns(
    stream=(INTEGER, "wait_on_stream"), record=(INTEGER, "wait_on_cuda_event_record_corr_id")
)
_FLOWS: Final = ("fwdbwd", "forward_backward")
#: Begin of the categories of flows in legacy traces: cpu_to_cuda.
_LAUNCH_FLOWS: Final = "cpu_to_"
_WORK_FLOWS: Final = ("ac2g", "async_gpu", "async", "async_cpu_to_gpu")
#: Rows that flows begin and end at.
_Joined = tuple[I64, I64]


def links_of(workers: Sequence[PlacedTrace], lanes: Sequence[Lane]) -> Links:
    """All links of a run. O(n log n); files with waits on the device are read again for the waits' arguments."""
    parts = [np.zeros((3, 0), np.int64)]
    numbers = []
    for worker in workers:
        number = worker.numbers(lanes)
        numbers.append(number)
        parts += [np.stack((np.full(len(cause), kind), number[cause], number[row]))
                  for kind, cause, row in _of_trace(worker.trace)]  # fmt: skip
    parts += [np.stack((np.full(len(cause), _COLLECTIVE), numbers[last][cause], numbers[other][row]))
              for last, cause, other, row in _collective_waits(workers)]  # fmt: skip
    kind, cause, row = np.concatenate(parts, axis=1)
    in_lanes = (cause >= 0) & (row >= 0)
    return Links(
        KINDS, kind[in_lanes].astype(np.int8), cause[in_lanes], row[in_lanes],
        ending=frozenset((_SYNC, _COLLECTIVE)), meeting=frozenset((_COLLECTIVE,)), launching=frozenset((_LAUNCH,)),
    )  # fmt: skip


def _of_trace(trace: Trace) -> Iterator[tuple[int, I64, I64]]:
    """Links within a file: kind, rows of causes, rows of consequences."""
    launched = trace.call >= 0
    yield _LAUNCH, trace.call[launched], trace.work_rows[launched]
    by_flow = trace.launchers.of_flow >= 0
    yield _LAUNCH, trace.launchers.of_flow[by_flow], trace.work_rows[by_flow]
    backward, between = flows_of(trace)
    yield _BACKWARD, *backward
    yield _GRAPH, *between
    for kind, numbers in ((_GRAPH, trace.waits), (_FLOW, trace.flows)):
        source, target = map(trace.rows_of, numbers)
        there = (source >= 0) & (target >= 0)
        yield kind, source[there], target[there]
    # a copying call ends with its copy
    copies = launched.copy()
    copies[launched] = trace.named(_COPIES.fullmatch)[trace.call[launched]]
    yield _SYNC, trace.work_rows[copies], trace.call[copies]
    found = np.array([(-1, -1, -1), *_waits(trace)], np.int64)
    for kind in (_EVENT, _SYNC):
        found_here = found[found[:, 0] == kind]
        yield kind, found_here[:, 1], found_here[:, 2]


def _waits(trace: Trace) -> Iterator[tuple[int, int, int]]:
    """Links of recorded waits, then of calls that synchronise when there is only one device or stream."""
    submissions = _Submissions(trace)
    rows = np.flatnonzero(trace.kind == Kind.WAIT)
    rows = rows[np.argsort(trace.file_order[rows])]
    (waits,), _ = trace.arguments_at((_WAITS, rows))
    columns = (rows, trace.thread_of(rows), waits["stream"], trace.calls_of(waits["record"]),
               trace.calls_of(trace.correlation[rows]))  # fmt: skip
    for row, thread, stream, record, call in zip(*(column.tolist() for column in columns), strict=True):
        name, own = trace.names[int(trace.name[row])], stream_of(*trace.threads[thread])
        if call < 0:
            continue
        if name in _BY_EVENT and record >= 0:
            cause = submissions.last((own[0], str(stream)), int(trace.start[record]))
            if name == "Event Sync":
                yield _SYNC, cause, call
            else:
                yield _EVENT, cause, submissions.following(own, int(trace.start[call]))
        elif name == "Stream Sync":
            yield _SYNC, submissions.last(own, int(trace.start[call])), call
        elif name in ("Context Sync", "Device Sync"):
            yield _SYNC, submissions.latest(own[0], int(trace.start[call])), call
    devices = sorted({pid for pid, _ in submissions.streams})
    if len(devices) == 1:
        certain = trace.named((_OF_DEVICE if len(submissions.streams) > 1 else _OF_ANY).fullmatch)
        for call in np.flatnonzero((trace.kind == Kind.CALL) & certain).tolist():
            yield _SYNC, submissions.latest(devices[0], int(trace.start[call])), call


def stream_of(pid: str, tid: str) -> tuple[str, str]:
    """Device and stream number, from process and thread in the file."""
    return pid, tid.removeprefix("stream ")


class _Submissions:
    """Device work of a file in the order in which it was submitted to each stream.

    Attributes:
        streams: By device and stream number: rows of the stream's work, and when each was submitted, ns.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        rows, call = trace.work_rows, trace.call
        submitted = trace.start[rows].copy()
        submitted[call >= 0] = trace.start[call[call >= 0]]
        thread = trace.thread_of(rows)
        order = np.lexsort((submitted, thread))
        first = np.searchsorted(thread[order], np.arange(len(trace.threads) + 1)).tolist()
        self.streams = {
            stream_of(*name): (rows[order[low:high]], submitted[order[low:high]])
            for name, low, high in zip(trace.threads, first[:-1], first[1:], strict=True) if low < high
        }  # fmt: skip
        self._ended: dict[str, tuple[I64, I64]] = {}

    def last(self, stream: tuple[str, str], time: int) -> int:
        """Row of the last work submitted to a stream before a time; -1 if none."""
        rows, submitted = self.streams.get(stream, _NOTHING)
        index = int(np.searchsorted(submitted, time)) - 1
        return int(rows[index]) if index >= 0 else -1

    def following(self, stream: tuple[str, str], time: int) -> int:
        """Row of the first work submitted to a stream after a time; -1 if none."""
        rows, submitted = self.streams.get(stream, _NOTHING)
        index = int(np.searchsorted(submitted, time, side="right"))
        return int(rows[index]) if index < len(rows) else -1

    def latest(self, device: str, time: int) -> int:
        """Row of the work submitted to a device before a time that ended last; -1 if none."""
        if device not in self._ended:
            parts = [each for (pid, _), each in self.streams.items() if pid == device] or [_NOTHING]
            rows, submitted = (np.concatenate(column) for column in zip(*parts, strict=True))
            order = np.argsort(submitted, kind="stable")
            ended = self._trace.end[rows[order]]
            best = np.maximum.accumulate(np.where(ended >= np.maximum.accumulate(ended), np.arange(len(rows)), 0))
            self._ended[device] = rows[order][best], submitted[order]
        rows, submitted = self._ended[device]
        index = int(np.searchsorted(submitted, time)) - 1
        return int(rows[index]) if index >= 0 else -1


def _collective_waits(workers: Sequence[PlacedTrace]) -> Iterator[tuple[int, I64, int, I64]]:
    """Collectives of a run: index of the last worker to begin and its rows, index of a waiting worker and its rows."""
    runs: dict[tuple[int, int], list[int]] = {}
    for index, worker in enumerate(workers):
        size = distributed_info(worker.trace.metadata).get("world_size")
        if worker.rank is not None and type(size) is int:
            runs.setdefault((size, worker.session), []).append(index)
    for indices in runs.values():
        if len({workers[index].rank for index in indices}) < len(indices):
            continue
        rows = matching_collectives([workers[index].trace for index in indices])
        absent = rows < 0
        start, end = (
            np.stack([column[own] + workers[index].shift if len(column) else own
                      for index, own in zip(indices, rows, strict=True)
                      for column in (getattr(workers[index].trace, key),)])
            for key in ("start", "end")
        )  # fmt: skip
        start[absent] = INT_MISSING
        late = start.argmax(axis=0)
        for last, late_worker in enumerate(indices):
            for other, waiting_worker in enumerate(indices):
                waits = (late == last) & ~absent[other] & (start[other] < start[last]) & (start[last] < end[other])
                waiting = np.flatnonzero(waits)
                if len(waiting):
                    yield late_worker, rows[last][waiting], waiting_worker, rows[other][waiting]


class FlowEnds(Struct, frozen=True, eq=False):
    """Ends of flows in the order of the file, in columns of one length."""

    begins: npt.NDArray[np.bool_]  #: Whether each is the flow's start
    #: Whether the flow is one of device work, else from a forward to a backward operator.
    of_work: npt.NDArray[np.bool_]
    #: id, number: Code of the flow's id, and its value; missing if it is no integer.
    id: I64
    number: I64
    thread: I64  #: Index of its thread
    time: I64  #: ns from the trace's zero

    def joined(self, which: npt.NDArray[np.bool_], row: I64) -> tuple[I64, I64, I64]:
        """Rows at the start and at the end of some flows, and their numbers, given the row of each end; -1: none."""
        sources, target = (np.flatnonzero(which & (self.begins == begins) & (row >= 0)) for begins in (True, False))
        # of several starts with one id the last counts
        sources = sources[np.lexsort((-sources, self.id[sources]))]
        source = lookup(self.id[sources], self.id[target], row[sources])
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
        flows = [each for each in events if type(each) in (NamedStart, NamedEnd) and each.cat in names]
        starts = np.array([type(each) is NamedStart for each in flows], np.bool_)
        of_device = np.array([each.cat in _WORK_FLOWS for each in flows], np.bool_)
        parts.append((
            starts, of_device, wholes([each.id for each in flows]),
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
        flows = [each for each in events if type(each) in (NamedStart, NamedEnd)
                 and str(each.cat).startswith(_LAUNCH_FLOWS)]  # fmt: skip
        if not flows:
            continue
        pids, tids = legacy_lanes([""] * len(flows), [each.pid for each in flows], [each.tid for each in flows])
        times = (exact_ns(text_of_times([each.ts for each in flows])) - zero_ns).tolist()
        for flow, pid, tid, time in zip(flows, pids, tids, times, strict=True):
            end = (str(pid), str(tid)), time, printable(flow.name) if isinstance(flow.name, str) else ""
            key = str(flow.id)
            if type(flow) is NamedStart:
                begun[key] = end
            elif key in begun:
                yield begun[key], end


# -- which collectives of several ranks are one: by what identifies them in the files, else by their order
#
# Newer files state an id that is the same on all ranks (``Comms Id``), or the number of the collective within its
# process group (``Seq``); ids of several kernels, or of several calls of one collective, count in order of start.
# Without any the k-th collectives belong together, if all ranks have the same in the same order.

#: Name of the operator that records a collective and its arguments.
RECORD: Final = "record_param_comms"
#: Names of host events whose arguments may identify a collective.
TELLING: Final = lazy_pattern(rf"{RECORD}$|{COLLECTIVE.pattern}")
#: Least number of collectives for a meaningful median of clocks.
_FEW: Final = 3


def collective_identity(args: Any) -> str | None:
    """What identifies a collective among those of all ranks, from the arguments of an event; None if nothing does."""
    if isinstance(args.comms, (int, str)) and str(args.comms).strip() not in ("", "0"):
        return f"id {args.comms}"
    number = str(args.sequence)
    if args.group is None or not number.isdecimal():
        return None
    import hashlib  # slow to import

    # lists of ranks may be long
    ranks = hashlib.blake2b(b"".join(bytes(args.ranks).split()), digest_size=8).hexdigest()
    return f"{args.group} {ranks} {number}"


def identities_of(trace: Trace, rows: I64) -> list[str]:
    """What identifies the collectives of events: told by itself, its launcher or the record around it; else empty."""
    if not trace.identities:
        return [""] * len(rows)
    place = lookup(trace.work_rows, rows)
    launcher = np.where(place >= 0, np.append(trace.launchers.of_work, -1)[place], -1)
    records = np.flatnonzero((trace.kind == Kind.OPERATOR) & trace.named(RECORD.__eq__))
    around, host = np.full(len(rows), -1, np.int64), np.where(place >= 0, launcher, rows)
    around[host >= 0] = trace.launchers.enclosing(records, host[host >= 0])
    found = [""] * len(rows)
    for each in (around, launcher, rows):
        known = np.flatnonzero(each >= 0)
        for index, text in zip(known.tolist(), trace.identities_at(each[known]), strict=True):
            found[index] = text or found[index]
    return found


def collectives(trace: Trace) -> tuple[I64, list[str]]:
    """Rows and names of communication kernels, by start; if there are none, of the host's communication events."""
    for kinds, pattern in (((Kind.KERNEL,), COMMUNICATION), ((Kind.OPERATOR, Kind.ANNOTATION), COLLECTIVE)):
        rows = np.flatnonzero(np.isin(trace.kind, kinds) & trace.named(pattern.match))
        if len(rows):
            rows = rows[np.argsort(trace.start[rows], kind="stable")]
            return rows, [trace.names[code] for code in trace.name[rows].tolist()]
    return np.zeros(0, np.int64), []


def matching_collectives(traces: Sequence[Trace]) -> I64:
    """The collectives of ranks that belong together: rows in each trace (first axis); -1: not recorded there.

    Empty if they cannot be told: without ids, if the ranks do not have the same in the same order.
    """
    found = [collectives(trace) for trace in traces]
    keys = [identities_of(trace, rows) for trace, (rows, _) in zip(traces, found, strict=True)]
    if not all(map(any, keys)):
        same = all(names == found[0][1] for _, names in found)
        return np.stack([rows for rows, _ in found]) if same else np.zeros((len(traces), 0), np.int64)
    columns: dict[tuple[str, int], int] = {}
    of_trace = [[columns.setdefault(key, len(columns)) if key[0] else -1 for key in numbered(each)] for each in keys]
    table = np.full((len(traces), len(columns) + 1), -1, np.int64)
    for place, ((rows, _), own) in enumerate(zip(found, of_trace, strict=True)):
        table[place, own] = rows
    # the last column is of those without an id
    table = table[:, :-1]
    return table[:, (table >= 0).sum(axis=0) > 1]


def shifts(traces: Sequence[Trace], clocks: Sequence[int]) -> list[int]:
    """Offsets in ns to add to the clock of each trace of a run; 0 for the first, and for clocks that agree with it.

    Args:
        traces: Of different ranks.
        clocks: Clock reading of each trace at its zero, ns.
    """
    found = [0] * len(traces)
    for number in range(1, len(traces)):
        rows, other_rows = matching_collectives((traces[0], traces[number]))
        if len(rows) < _FEW:
            continue
        one, two, apart = traces[0], traces[number], clocks[number] - clocks[0]
        found[number] = -clock_difference((one.start[rows], one.end[rows]),
                                          (two.start[other_rows] + apart, two.end[other_rows] + apart))  # fmt: skip
    return found
