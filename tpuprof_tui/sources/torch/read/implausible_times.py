"""Sets events of a trace aside whose times cannot be those of its recording, and corrects clocks of devices.

What is left is a trace as if the others had not been recorded, so that whatever is computed from it excludes them. They
stay in `Trace.aside`, for the table of events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.formats import units
from tpuprof_tui.model import INT_MISSING, Problem, Severity
from tpuprof_tui.model.profile import FRAGMENTARY
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.chrome.columns import I64
from tpuprof_tui.sources.chrome.nesting import order_of_nesting
from tpuprof_tui.sources.chrome.times import DeviceEvents, Judgement, judged, time_words

from ..categories import DEVICE_WORK, ON_DEVICE, Kind
from .trace import Trace

Mask = npt.NDArray[np.bool_]
#: Work that most often begins this much before its launch is told.
_EARLY_NS: Final = 100_000
#: Recordings longer than this, 30 days, are told.
_LONGEST_NS: Final = 30 * 86_400 * 10**9


class RecordingTimes(Struct, frozen=True):
    """When a file was recorded."""

    #: low, high: First start and last end, ns of the file's clock.
    low: int
    high: int
    moved: dict[str, int]  #: By process of a device: ns to add to its times
    far: int = 0  #: Number of events of the whole file that cannot be of it, as far as they were read

    def near(self, times: I64) -> Mask:
        """Mask of times of the file that are not far from it."""
        return Judgement(self.low, self.high).near(times)


def without_implausible(trace: Trace, whole: RecordingTimes | None = None) -> tuple[Trace, RecordingTimes]:
    """The trace without what cannot be of its recording, and when that was.

    Args:
        trace: A trace as it was recorded; of a file that is larger than memory, a part of it.
        whole: When the whole file was recorded; None: the trace is the whole.
    """
    zero = trace.zero_ns
    clocks, device = _device_events(trace)
    if whole is None:
        start, end = (np.concatenate([each, trace.memory["time"]]) for each in (trace.start, trace.end))
        found = judged(start, end, device)
    else:
        moved = {number: whole.moved[pid] for number, pid in enumerate(clocks) if pid in whole.moved}
        found = Judgement(whole.low - zero, whole.high - zero, moved=moved)
    start, end = found.corrected(trace.start, trace.end, device) if found.moved else (trace.start, trace.end)
    far = found.far[found.far < len(trace)] if whole is None else np.flatnonzero(~found.holds(start, end))
    found = replace(found, far=far)
    times = [trace.memory["time"], *(each.times for each in trace.counters)]
    far_instants = sum(int((~found.near(each)).sum()) for each in times) if len(trace) or whole is not None else 0
    recording = RecordingTimes(zero + found.low, zero + found.high,
                          {clocks[clock]: shift for clock, shift in found.moved.items()}, len(far))  # fmt: skip
    elsewhere = 0 if whole is None else max(whole.far - len(far), 0)
    told = (*found.problems(trace.path.name, lambda clock: f"GPU {clocks[clock]}"),
            *_left_out(trace, far_instants, elsewhere), *(() if found.moved else _early(trace)))  # fmt: skip
    rest = replace(trace, start=start, end=end, problems=(*trace.problems, *told)) if told else trace
    if len(far) or far_instants or found.moved:
        aside = _aside(rest, far, found.away(start, end)) if len(far) else None
        rest = _without(replace(rest, aside=aside), found)
    if whole is None:
        doubtful = tuple(_doubtful(rest))
        # a part of a file counts from the start of the whole
        rest = _from_zero(replace(rest, problems=(*rest.problems, *doubtful)) if doubtful else rest)
    return rest, recording


def _early(trace: Trace) -> Iterator[Problem]:
    """Problems of devices most of whose work begins before it was launched, by less than is corrected."""
    known = np.flatnonzero(trace.call >= 0)
    delay = trace.start[trace.work_rows[known]] - trace.start[trace.call[known]]
    if int(delay.min(initial=0)) > -_EARLY_NS:
        return
    threads = trace.thread_of(trace.work_rows[known])
    pids = np.array([pid for pid, _ in trace.threads])[threads]
    for pid in uniques(pids).tolist():
        middle = int(np.median(delay[pids == pid]))
        if middle < -_EARLY_NS:
            what = f"The clock of GPU {pid} is {units.time_text(-middle)} or more behind the host's"
            yield Problem(Severity.WARNING, f"{what}: its work begins before it was launched.",
                          "Shown as recorded: waits between host and device are not known.",
                          file=trace.path.name)  # fmt: skip


def _doubtful(trace: Trace) -> Iterator[Problem]:
    """A problem if the recording is longer than any: then no part of it tells which times are right."""
    length = trace.length_ns - trace.first_ns
    if length > _LONGEST_NS:
        what = f"Its times span {time_words(length)}, and none is further off than the others."
        yield Problem(Severity.WARNING, what, "Figures count all of that time.", file=trace.path.name)


def _device_events(trace: Trace) -> tuple[list[str], DeviceEvents]:
    """Processes of devices, each with a clock of its own by place, and the events on devices."""
    rows = np.flatnonzero(np.isin(trace.kind, ON_DEVICE))
    clocks = sorted({pid for pid, _ in trace.threads})
    clock_of_thread = np.array([clocks.index(pid) for pid, _ in trace.threads], np.int32)
    launched = np.full(len(trace), INT_MISSING, np.int64)
    known = trace.call >= 0
    launched[trace.work_rows[known]] = trace.start[trace.call[known]]
    return clocks, DeviceEvents(rows, clock_of_thread[trace.thread_of(rows)], launched[rows])


def _aside(trace: Trace, far: I64, away: I64) -> Trace:
    found = trace.selected(far)
    return replace(found, start=found.start + trace.zero_ns, end=found.end + trace.zero_ns, away=away)


def _without(trace: Trace, recording: Judgement) -> Trace:
    rows = np.delete(np.arange(len(trace)), recording.far)
    # lanes that hold events of a device and of the host are in another order if one of them was moved
    rows = rows[order_of_nesting(trace.thread_of(rows), trace.start[rows], trace.end[rows],
                                 trace.kind[rows] != Kind.FRAME, trace.external[rows] - 1)]  # fmt: skip
    row_of = np.full(len(trace), -1, np.int64)
    row_of[rows] = np.arange(len(rows))
    work = row_of[trace.work_rows]
    work_order = np.argsort(work, kind="stable")[int((work < 0).sum()) :]
    counters = ((each, recording.near(each.times)) for each in trace.counters)
    near = recording.near(trace.memory["time"])
    return replace(
        trace.selected(rows), work_rows=work[work_order],
        work={key: values[work_order] for key, values in trace.work.items()},
        memory={key: values[near] for key, values in trace.memory.items()},
        counters=tuple(replace(each, times=each.times[near], values=each.values[near])
                       for each, near in counters if near.any()),
    )  # fmt: skip


def _from_zero(trace: Trace) -> Trace:
    zero = trace.first_ns
    return trace if not zero else replace(
        trace, zero_ns=trace.zero_ns + zero, start=trace.start - zero, end=trace.end - zero,
        memory={**trace.memory, "time": trace.memory["time"] - zero},
        counters=tuple(replace(each, times=each.times - zero) for each in trace.counters),
    )  # fmt: skip


def _left_out(trace: Trace, instants: int, elsewhere: int) -> Iterator[Problem]:
    name = trace.path.name
    if elsewhere:
        yield Problem(Severity.ERROR, "Events outside of this part of the file have impossible times.",
                      "They were left out.", file=name, count=elsewhere, lost=elsewhere)  # fmt: skip
    if instants:
        yield Problem(Severity.ERROR, "Memory instants and counter samples whose times cannot be of this recording.",
                      "They were left out.", file=name, count=instants, lost=instants)  # fmt: skip


def aside_lanes(trace: Trace) -> Iterator[tuple[str, slice]]:
    """The lanes that set aside events were recorded for: titles for people, and rows of `Trace.aside`."""
    aside = trace.aside
    if aside is None:
        return
    for thread, low, high in aside.by_thread():
        pid, tid = aside.threads[thread]
        if np.isin(aside.kind[low:high], ON_DEVICE).any():
            yield f"GPU {pid} stream {tid.removeprefix('stream ')}", slice(low, high)
        else:
            yield trace.thread_names.get((pid, tid), "").strip() or f"thread {tid}", slice(low, high)


def is_fragmentary(trace: Trace) -> bool:
    """Whether so much device work is set aside that nothing is concluded from the rest."""
    aside = 0 if trace.aside is None else int(np.isin(trace.aside.kind, DEVICE_WORK).sum())
    return aside > FRAGMENTARY * (aside + len(trace.work_rows))
