"""Streams view: busy and idle time of streams and the causes of idling; launches view: durations and delays."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tpuprof_tui.analysis.pivot import Frame, Groups
from tpuprof_tui.model import INT_MISSING, Activity
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.views.answer import Answer, Column, Fact, Table

from ..categories import Kind
from ..recorded import known
from .worker_events import WorkerEvents, of_streams, ratio

Window = tuple[int, int]
#: Shorter gaps between events of a stream are due to the hardware, ns (HTA).
_KERNEL_GAP: Final = 30_000
#: Device work that starts later than this after its launch counts as long delayed, ns.
_LONG_DELAY: Final = 100_000
_COLUMNS: Final = (
    Column("device", "Device"), Column("stream", "Stream"), Column("events", "Events", "count"),
    Column("start_us", "Start", "time", spare=3), Column("span_us", "Span", "duration", spare=2),
    Column("busy_us", "Busy", "duration", bar=True), Column("idle_us", "Idle", "duration"),
    Column("host_wait_us", "Waits for host", "duration"), Column("kernel_wait_us", "Between kernels", "duration"),
    Column("other_wait_us", "Other", "duration"), Column("queue_max", "Queue", "count", spare=1),
)  # fmt: skip


@of_streams
def streams(events: WorkerEvents) -> Answer:
    """The streams view of one worker."""
    work = events.frame("stream", "activity", "kind", "call_start", "order", "device_text", "stream_text",
                           "inside", reaching=True)  # fmt: skip
    window = events.query.range

    everything, activity, kind = events.union(work), work["activity"], work["kind"]
    comm = events.union(work, activity == Activity.COMMUNICATION)
    compute = events.union(work, activity == Activity.COMPUTE)
    copies, sets = events.union(work, kind == Kind.COPY), events.union(work, kind == Kind.SET)
    every = work if window is None else events.with_query(range=None).frame("stream")
    first, last = (int(every["start"].min()), int(every["end"].max())) if len(every) else (0, 0)
    if window is not None:
        first, last = max(first, window[0]), min(last, window[1])
    length = max(last - first, 0)
    covered = comm.union_with(compute)
    exposed = covered.total - compute.total
    exposed_copies = covered.union_with(copies).total - covered.total
    facts = (
        Fact("window_us", "First to last work", length, "duration", head="Span"),
        Fact("busy_us", "Busy", everything.total, "duration"),
        Fact("idle_us", "Idle", length - everything.total, "duration"),
        Fact("computation_us", "Computation", compute.total, "duration"),
        Fact("communication_us", "Communication", comm.total, "duration"),
        Fact("memcpy_us", "Copies", copies.total, "duration"), Fact("memset_us", "Sets", sets.total, "duration"),
        Fact("exposed_communication_us", "Exposed communication", exposed, "duration"),
        Fact("exposed_memcpy_us", "Exposed copies", exposed_copies, "duration"),
        Fact("overlap_us", "Overlap", comm.total - exposed, "duration"),
        Fact("overlap_share", "Overlap share", ratio(comm.total - exposed, comm.total), "share"),
    )  # fmt: skip
    groups = Groups(work, ["device_text", "stream_text"])
    rows: list[tuple[Any, ...]] = []
    for group, first in enumerate(groups.first):
        names = [work.texts[key][work[key][first]] for key in ("device_text", "stream_text")]
        rows.append((*names, *_stream(work.take(groups.index == group), window)))
    rows.sort(key=lambda row: [(len(text), text) for text in row[:2]])
    rows = [(known(row[0]), known(row[1]), *row[2:]) for row in rows]
    return Answer(facts, (Table.of_rows("streams", "Streams", _COLUMNS, rows),))


def _stream(work: Frame, window: Window | None) -> tuple[int, ...]:
    """Figures of one stream; with a window, of the part of its work that is inside."""
    work = work.take(np.lexsort((work["order"], work["start"])))
    start, end, call = work["start"], work["end"], work["call_start"]
    if window is not None:
        start, end = np.clip(start, *window), np.clip(end, *window)
    reach = np.maximum.accumulate(end)
    gap = start[1:] - reach[:-1]
    late = (call[1:] != INT_MISSING) & (call[1:] > reach[:-1])
    short = ~late & (gap < _KERNEL_GAP)
    waits = [int(gap[(gap > 0) & which].sum()) for which in (late, short, ~late & ~short)]
    span, busy = int(reach[-1] - start[0]), Intervals.union(start, end).total
    launched = (call != INT_MISSING) & work["inside"]
    change = np.repeat([1, -1], int(launched.sum()))
    queue = np.cumsum(change[np.lexsort((-change, np.concatenate([call[launched], start[launched]])))])
    return (int(work["inside"].sum()), int(start[0]), span, busy, span - busy, *waits,
            max(int(queue.max(initial=0)), 0))  # fmt: skip


@of_streams
def launches(events: WorkerEvents) -> Answer:
    """The launches view of one worker: durations of launching calls, and delays until the work starts."""
    work = events.frame("stream", "call_start", "call_end", "delay", "launched_together")
    together = work["launched_together"]
    alone = work.take(together == 1)
    host, device, delay = alone["call_end"] - alone["call_start"], alone["duration"], alone["delay"]
    return Answer((
        Fact("launches", "Launches", len(alone)), Fact("host_us", "Time of calls", int(host.sum()), "duration"),
        Fact("device_us", "Time on the device", int(device.sum()), "duration"),
        Fact("delay_us", "Waiting", int(delay.sum()), "duration"),
        Fact("delay_max_us", "Longest wait", int(delay.max(initial=0)), "duration"),
        Fact("short_kernels", "Shorter than their call", int((device < host).sum())),
        Fact("long_delays", "Waited over 100 us", int((delay > _LONG_DELAY).sum())),
        Fact("unlaunched", "Launched before recording", int((together == 0).sum())),
        Fact("graph_launched", "Launched together (graphs)", int((together > 1).sum())),
    ))  # fmt: skip
