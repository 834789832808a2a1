"""Sets slices and kernels aside whose times cannot be those of their recording, and corrects clocks of devices.

What is left is a timeline as if the others had not been recorded, so that whatever is computed from it excludes them.
They stay in `Timeline.aside`, for the table of events.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.model import INT_MISSING, Problem, Severity
from tpuprof_tui.sources.chrome.times import (
    DeviceEvents,
    Judgement,
    away_words,
    judged,
    plausible,
    shifted,
    time_text,
    time_words,
)

from ..records import ASYNC_NPU, HOST_TO_DEVICE
from .kernels import Kernels
from .timeline import Layer, Timeline

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_DEVICE_LAYERS: Final = (Layer.STREAM, Layer.COMMUNICATION, Layer.PLANE, Layer.OVERLAP)


def without_implausible(timeline: Timeline) -> Timeline:
    """The timeline without what cannot be of its recording."""
    if not len(timeline):
        return timeline
    launched = _launched(timeline)
    known = launched != INT_MISSING
    if plausible(timeline.start, timeline.end, timeline.start[known] - launched[known]) and not _far_samples(timeline):
        return timeline
    on_device = np.array([track.layer in _DEVICE_LAYERS for track in timeline.tracks], np.bool_)[timeline.track]
    rows = np.flatnonzero(on_device)
    devices = np.array([track.device for track in timeline.tracks], np.int64)[timeline.track[rows]]
    events = DeviceEvents(rows, devices, launched[rows])
    found = judged(timeline.start, timeline.end, events)
    named = found.problems(timeline.file, lambda device: "the NPU" if device < 0 else f"NPU {device}")
    problems = [*timeline.problems, *named]
    start, end = found.corrected(timeline.start, timeline.end, events)
    to_time = timeline.flows.to_time.copy()
    ends = np.append(devices, -1)[np.append(np.cumsum(on_device) - 1, len(rows))]
    target = timeline.flows.to_row
    for device, shift in found.moved.items():
        of_device = (target >= 0) & np.append(on_device, False)[target] & (ends[target] == device)
        to_time[of_device] = shifted(to_time[of_device], shift)
    far = found.far
    kept = np.ones(len(timeline), np.bool_)
    kept[far] = False
    aside = replace(timeline.part(~kept), away=found.away(start, end)[np.argsort(far)]) if len(far) else None
    counters = []
    lost = 0
    for each in timeline.counters:
        near = found.near(each.times)
        lost += int((~near).sum())
        if near.any():
            counters.append(replace(each, times=each.times[near], values=each.values[near]))
    if lost:
        problems.append(Problem(Severity.ERROR, "Counter samples whose times cannot be of this recording.",
                                "They were left out.", timeline.file, count=lost, lost=lost))  # fmt: skip
    whole = replace(timeline, start=start, end=end, flows=replace(timeline.flows, to_time=to_time), aside=aside,
                    counters=tuple(counters), moved=found.moved, problems=tuple(problems))  # fmt: skip
    return whole.part(kept)


def _launched(timeline: Timeline) -> I64:
    flows = timeline.flows
    found = np.full(len(timeline), INT_MISSING)
    for category in (ASYNC_NPU, HOST_TO_DEVICE):
        links = flows.of(category)
        links = links[flows.to_row[links] >= 0]
        found[flows.to_row[links]] = flows.from_time[links]
    return found


def _far_samples(timeline: Timeline) -> bool:
    recording = Judgement(int(timeline.start.min()), int(timeline.end.max()))
    return not all(recording.near(each.times[[0, -1]]).all() for each in timeline.counters)


def without_implausible_kernels(kernels: Kernels, timeline: Timeline) -> tuple[Kernels, list[Problem]]:
    """Kernels of a table on the clock of the timeline, without times that cannot be of their recording.

    Kernels whose times are not believed stay in the table, but nothing over time uses them.
    """
    rows = np.flatnonzero(kernels.timed)
    if not len(rows):
        return kernels, []
    start, end = kernels.start[rows], kernels.end[rows]
    found = judged(start, end)
    problems = []
    unplaced = np.zeros(len(kernels), np.bool_) if kernels.unplaced is None else kernels.unplaced.copy()
    if len(found.far):
        first = found.far[0]
        what = away_words(int(found.away(start, end)[0]), int(end[first] - start[first]))
        problems.append(Problem(
            Severity.ERROR, f"Kernels with impossible times, the first: start {time_text(int(start[first]))}, {what}.",
            "They are in the table, and in no figure over time.", kernels.file, count=len(found.far),
            lost=len(found.far)))  # fmt: skip
        unplaced[rows[found.far]] = True
        kernels = replace(kernels, unplaced=unplaced, aside=rows[found.far])
    work = timeline.work
    if not len(work):
        return kernels, problems
    low, high = int(timeline.start[work].min()), int(timeline.end[work].max())
    if Judgement(low, high).near(np.array([found.low, found.high])).any():
        rest = timeline.name[work[timeline.start[work] >= found.high]].tolist()
        known = set(kernels.name.values() if rest else ())
        if count := sum(timeline.names[code] in known for code in rest):
            what = f"The timeline goes on behind the table's last kernel, with {count:,} more of the same names."
            problems.append(Problem(Severity.WARNING, what, "The table may be cut: it is shown as it is.",
                                    kernels.file, count=count, lost=count))  # fmt: skip
        return kernels, problems
    for shift in timeline.moved.values():
        if Judgement(low, high).near(np.array([found.low, found.high]) + shift).all():
            return _moved(kernels, shift), problems
    apart, names = found.low - low, f"{kernels.file} and {timeline.file}"
    what = f"The times of {names} are {time_words(abs(apart))} apart: they have other clocks."
    if _same_work(kernels, timeline):
        problems.append(Problem(Severity.WARNING, what, "Its kernels were moved to the clock of the timeline, as they "
                                "are the same in the same order.", kernels.file))  # fmt: skip
        return _moved(kernels, -apart), problems
    problems.append(Problem(Severity.WARNING, what, "Its kernels are joined with no slice, and are in no figure over "
                            "time.", kernels.file, count=len(rows)))  # fmt: skip
    return replace(kernels, unplaced=np.ones(len(kernels), np.bool_)), problems


def _moved(kernels: Kernels, shift: int) -> Kernels:
    return replace(kernels, start=np.where(kernels.timed, shifted(kernels.start, shift), kernels.start))


def _same_work(kernels: Kernels, timeline: Timeline) -> bool:
    rows = np.flatnonzero(kernels.timed)
    rows = rows[np.argsort(kernels.start[rows], kind="stable")]
    return kernels.name.values(rows) == [timeline.names[code] for code in timeline.name[timeline.work].tolist()]
