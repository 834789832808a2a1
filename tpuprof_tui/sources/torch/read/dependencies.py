"""Dependencies between events: launches, backward passes, stream events, graphs, synchronising calls, collectives.

*Launches*, also of CUDA graph replays, join calls and device work by correlation id. *Stream events*: a stream that
waits for an event goes on when the work submitted to the other stream before the event was recorded is done. *Graphs*:
newer files join the nodes of a CUDA graph by flows from one that ends to one that starts after it.
*Synchronising calls* end with the last work submitted to their stream, or device, before. *Collectives*: of those of
the ranks of a run that belong together none goes on before the last of them begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Lane, Links
from tpuprof_tui.sources.chrome.columns import I64, INTEGER, ArgumentColumns

from ..categories import Kind
from ..recorded import distributed_info
from .collectives import matched
from .flows import flows_of
from .trace import Trace

if TYPE_CHECKING:
    from .profile import TraceEvents

KINDS: Final = ("launch", "backward", "stream event", "synchronise", "collective", "graph")
_LAUNCH, _BACKWARD, _EVENT, _SYNC, _COLLECTIVE, _GRAPH = range(6)
_COPIES: Final = lazy_pattern(r"(?:cuda|hip)Memcpy")
_OF_DEVICE: Final = lazy_pattern(r"(?:cuda|hip)DeviceSynchronize")
_OF_ANY: Final = lazy_pattern(r"(?:cuda|hip)(?:Device|Stream)Synchronize")
_BY_EVENT: Final = ("Stream Wait Event", "Event Sync")
_NOTHING: Final = (np.zeros(0, np.int64), np.zeros(0, np.int64))


#: Arguments of waits on the device (``cuda_sync``).
_WAITS: Final = ArgumentColumns(
    stream=(INTEGER, "wait_on_stream"), record=(INTEGER, "wait_on_cuda_event_record_corr_id")
)


def links_of(workers: Sequence[TraceEvents], lanes: Sequence[Lane]) -> Links:
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


def _collective_waits(workers: Sequence[TraceEvents]) -> Iterator[tuple[int, I64, int, I64]]:
    """Collectives of a run: index of the last worker to begin and its rows, index of a waiting worker and its rows."""
    runs: dict[tuple[int, int], list[int]] = {}
    for index, worker in enumerate(workers):
        size = distributed_info(worker.trace.metadata).get("world_size")
        if worker.rank is not None and type(size) is int:
            runs.setdefault((size, worker.session), []).append(index)
    for indices in runs.values():
        if len({workers[index].rank for index in indices}) < len(indices):
            continue
        rows = matched([workers[index].trace for index in indices])
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
