"""Streams view: busy and idle time of streams and the causes of idling; launches view: durations and delays."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.index.intervals import Intervals
from tpuprof_tui.views.answer import Answer, Column, Fact, Table

from ..read.categories import Kind
from ..read.values import known
from .run import ViewSelection
from .tables import Grouped, of_streams, ratio

I64 = npt.NDArray[np.int64]
#: Shorter gaps between events of a stream are due to the hardware, ns (HTA).
_KERNEL_GAP: Final = 30_000
#: Device work that starts later than this after its launch counts as long delayed, ns.
_LONG_DELAY: Final = 100_000


@of_streams
def streams(selection: ViewSelection) -> Answer:
    """The streams view of one worker."""
    run, trace, shift = selection.run, selection.run.trace, selection.run.worker.shift_ns
    work = selection.reaching_work

    def union(which: npt.NDArray[np.bool_]) -> Intervals:
        return selection.clip(run.work_union(which & work))

    everything = union(np.ones(len(work), np.bool_))
    comm = union(run.launchers.communicates)
    compute = union(run.kernels & ~run.launchers.communicates)
    copies, sets = union(run.work_kind == Kind.COPY), union(run.work_kind == Kind.SET)
    first, last = (int(run.work_start.min()), int(run.work_end.max())) if len(run.work_start) else (0, 0)
    if selection.window is not None:
        first, last = max(first, selection.window[0]), min(last, selection.window[1])
    elif work.any():
        first, last = int(run.work_start[work].min()), int(run.work_end[work].max())
    window = max(last - first, 0)
    covered = comm.union_with(compute)
    exposed = covered.total - compute.total
    exposed_copies = covered.union_with(copies).total - covered.total
    facts = (
        Fact("window_us", "First to last work", window, "duration"),
        Fact("busy_us", "Busy", everything.total, "duration"),
        Fact("idle_us", "Idle", window - everything.total, "duration"),
        Fact("computation_us", "Computation", compute.total, "duration"),
        Fact("communication_us", "Communication", comm.total, "duration"),
        Fact("memcpy_us", "Copies", copies.total, "duration"), Fact("memset_us", "Sets", sets.total, "duration"),
        Fact("exposed_communication_us", "Exposed communication", exposed, "duration"),
        Fact("exposed_memcpy_us", "Exposed copies", exposed_copies, "duration"),
        Fact("overlap_us", "Overlap", comm.total - exposed, "duration"),
        Fact("overlap_share", "Overlap share", ratio(comm.total - exposed, comm.total), "share"),
    )  # fmt: skip
    rows = []
    chosen = np.flatnonzero(work)
    group = Grouped(trace.work["device"][chosen], trace.work["stream"][chosen]) if len(chosen) else None
    for number in range(group.count if group else 0):
        assert group is not None
        device, stream = (trace.texts[code] for code in group.keys[number].tolist())
        rows.append((device, stream, *_stream(selection, chosen[group.index == number], shift)))
    rows.sort(key=lambda row: [(len(text), text) for text in row[:2]])
    rows = [(known(row[0]), known(row[1]), *row[2:]) for row in rows]
    columns = (
        Column("device", "Device"), Column("stream", "Stream"), Column("events", "Events", "count"),
        Column("start_us", "Start", "time", spare=3), Column("span_us", "Span", "duration", spare=2),
        Column("busy_us", "Busy", "duration", bar=True), Column("idle_us", "Idle", "duration"),
        Column("host_wait_us", "Waits for host", "duration"), Column("kernel_wait_us", "Between kernels", "duration"),
        Column("other_wait_us", "Other", "duration"), Column("queue_max", "Queue", "count", spare=1),
    )  # fmt: skip
    return Answer(facts, (Table.of_rows("streams", "Streams", columns, rows),))


def _stream(selection: ViewSelection, work: I64, shift: int) -> tuple[int, ...]:
    """Figures of one stream; with a window, of the part of its work that is inside."""
    run, trace = selection.run, selection.run.trace
    work = work[np.lexsort((trace.file_order[trace.work_rows[work]], run.work_start[work]))]
    start, end, call = run.work_start[work], run.work_end[work], run.call[work]
    if selection.window is not None:
        start, end = np.clip(start, *selection.window), np.clip(end, *selection.window)
    reach = np.maximum.accumulate(end)
    gap = start[1:] - reach[:-1]
    real = gap > 0
    late = (call[1:] >= 0) & (trace.start[call[1:]] > reach[:-1])
    short = ~late & (gap < _KERNEL_GAP)
    waits = [int(gap[real & which].sum()) for which in (late, short, ~late & ~short)]
    span = int(reach[-1] - start[0])
    busy = Intervals.union(start, end).total
    counted = selection.work[work]
    launched = (call >= 0) & counted
    times = np.concatenate([trace.start[call[launched]], start[launched]])
    change = np.repeat([1, -1], int(launched.sum()))
    queue = np.cumsum(change[np.lexsort((-change, times))])
    return (
        int(counted.sum()),
        int(start[0]) + shift,
        span,
        busy,
        span - busy,
        *waits,
        max(int(queue.max(initial=0)), 0),
    )


@of_streams
def launches(selection: ViewSelection) -> Answer:
    """The launches view of one worker: durations of launching calls, and delays until the work starts."""
    run, trace = selection.run, selection.run.trace
    call = run.call
    launched = call >= 0
    shared = np.bincount(call[launched], minlength=len(trace)) if len(trace) else np.zeros(0, np.int64)
    alone = launched.copy()
    alone[launched] = shared[call[launched]] == 1
    chosen = alone & selection.work
    calls = call[chosen]
    host = trace.end[calls] - trace.start[calls]
    device = (run.work_end - run.work_start)[chosen]
    delay = np.maximum(run.work_start[chosen] - trace.end[calls], 0)
    return Answer((
        Fact("launches", "Launches", len(calls)), Fact("host_us", "Time of calls", int(host.sum()), "duration"),
        Fact("device_us", "Time on the device", int(device.sum()), "duration"),
        Fact("delay_us", "Waiting", int(delay.sum()), "duration"),
        Fact("delay_max_us", "Longest wait", int(delay.max(initial=0)), "duration"),
        Fact("short_kernels", "Shorter than their call", int((device < host).sum())),
        Fact("long_delays", "Waited over 100 us", int((delay > _LONG_DELAY).sum())),
        Fact("unlaunched", "Launched before recording", int((~launched & selection.work).sum())),
        Fact("graph_launched", "Launched together (graphs)", int((launched & ~alone & selection.work).sum())),
    ))  # fmt: skip
