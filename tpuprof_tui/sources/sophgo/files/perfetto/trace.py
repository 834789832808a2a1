"""Writes a profile as a Perfetto trace: the reference's tracks, slices and counters, with additions.

Beyond the reference: launches that overlap get tracks of their own, kernel functions with CDMA commands stay visible on
their cores, SDMA and CDMA have counters, each core has its DDR and L2M bandwidth, host slices keep their nesting, and
dependencies are flows. Timestamps are ns; with a host trace they are the host's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import IO, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.links.dependencies import Dependencies, find_dependencies
from tpuprof_tui.export.selection import Selection
from tpuprof_tui.formats.perfetto.overlaps import by_time, first_free_lanes, nested_tracks
from tpuprof_tui.formats.perfetto.tracks import (
    EVENT_NAME,
    EVENT_NAMES,
    EVENT_TYPE,
    NOTHING,
    SLICE_BEGIN,
    SLICE_END,
    PacketSequence,
    Track,
    descriptor,
)
from tpuprof_tui.formats.perfetto.wire import messages, varint_field
from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.lane import Rows, row_parts, rows_at, select_rows

from .counters import lane_samples, total_samples
from .flows import LaneFlows, lane_flows
from .kernels import encoded_launches, launches_of
from .plan import Job, planned_jobs
from .slices import SliceEncoder, encoded_nesting, rates_of

#: Slices encoded at a time.
SLICE: Final = 32_768
_PROGRESS_SECONDS: Final = 0.1
#: Fact of a profile with a host trace: host time of the profile's zero, ns.
HOST_BASE: Final = "host_base_ns"


def write_perfetto(
    profile: Profile,
    sink: IO[bytes],
    selection: Selection = Selection(),  # noqa: B008 - immutable
    *,
    progress: Callable[[float], None] = lambda share: None,
    dependencies: Dependencies | None = None,
) -> int:
    """Writes a trace that Perfetto opens.

    Returns the number of bytes written.

    Args:
        selection: Instructions to write; tracks of cores that are not selected are left out.
        progress: Called with the share done, 0 to 1, at most ten times a second and at the end.
        dependencies: Dependencies to draw as flows; None: those in the profile's registers.
    """
    writer = _Writer(profile, sink, selection, progress)
    writer.write(find_dependencies(profile) if dependencies is None else dependencies)
    return writer.written


class _Writer:
    """Writes one trace."""

    def __init__(
        self, profile: Profile, sink: IO[bytes], selection: Selection, progress: Callable[[float], None]
    ) -> None:
        self._profile = profile
        self._sink = sink
        self._chosen = {index: selection.rows(profile, lane) for index, lane in enumerate(profile.lanes)}
        self._jobs = planned_jobs(profile, selection, self._chosen)
        # host time of the profile's zero, increased if a time would be negative
        base = profile.facts.get(HOST_BASE, 0)
        starts = [profile.lanes[index].take("start", rows) for index, rows in self._chosen.items()]
        first = min((int(start.min()) for start in starts if len(start)), default=0)
        self._base = max(int(base) if isinstance(base, int) else 0, -min(first, 0))
        self._progress = progress
        self._last_report = time.monotonic()
        self._done = 0
        self._total = max(sum(job.weight for job in self._jobs), 1)
        self._sequences = 0
        self._last_rates: tuple[Lane, npt.NDArray[np.int64] | None] | None = None
        self.written = 0

    def write(self, dependencies: Dependencies) -> None:
        """Writes the descriptors of all tracks, then their contents."""
        flows = lane_flows(self._profile, dependencies, self._chosen) if len(dependencies) else {}
        sequences = [self._define(job.track) for job in self._jobs]
        for job, sequence in zip(self._jobs, sequences, strict=True):
            if job.content == "slices":
                self._slices(job, sequence, flows)
            elif job.content == "nested":
                self._nested(job, sequence)
            elif job.content == "launches":
                self._launches(job, sequence)
            elif job.content == "notice":
                self._notice(job, sequence)
            elif job.content:
                self._samples(job, sequence)
        if not self._jobs:
            self._put(descriptor(NOTHING))
        self._progress(1.0)

    def _define(self, track: Track) -> PacketSequence:
        self._put(descriptor(track))
        self._sequences += 1
        return PacketSequence(self._sequences, track)

    def _put(self, data: bytes, work: int = 0) -> None:
        self._sink.write(data)
        self.written += len(data)
        self._done += work
        now = time.monotonic()
        if now - self._last_report >= _PROGRESS_SECONDS:
            self._last_report = now
            self._progress(min(self._done / self._total, 1.0))

    def _slices(self, job: Job, sequence: PacketSequence, flows: dict[int, LaneFlows]) -> None:
        for index, rows in job.sources:
            lane = self._profile.lanes[index]
            start, end = lane.take("start", rows), lane.take("end", rows)
            order = by_time(start, end)
            if order is not None:
                rows, start, end = rows_at(rows, order), start[order], end[order]
            lanes = first_free_lanes(start, end)
            del start, end
            if lanes is None:
                self._blocks(lane, rows, sequence, flows.get(index))
                continue
            for number, indices in enumerate(lanes, 1):
                target = sequence if number == 1 else self._define(job.track.overflow(number))
                self._blocks(lane, rows_at(rows, indices), target, flows.get(index))

    def _blocks(self, lane: Lane, rows: Rows, sequence: PacketSequence, flows: LaneFlows | None) -> None:
        encoder = SliceEncoder(self._profile, lane, sequence, self._base, flows, self._rates(lane))
        for part, count in row_parts(rows, SLICE):
            self._put(encoder.encoded(part, count), count)

    def _nested(self, job: Job, sequence: PacketSequence) -> None:
        for index, rows in job.sources:
            lane = self._profile.lanes[index]
            thread = lane.take("nest", rows) if "nest" in lane else None
            tracks = nested_tracks(lane.take("start", rows), lane.take("end", rows), thread)
            for number, (indices, begins) in enumerate(tracks, 1):
                target = sequence if number == 1 else self._define(job.track.overflow(number))
                steps = rows_at(rows, indices)
                for first in range(0, len(steps), SLICE):
                    some, opens = steps[first : first + SLICE], begins[first : first + SLICE]
                    self._put(encoded_nesting(self._profile, lane, target, some, opens, self._base), len(some) // 2)

    def _launches(self, job: Job, sequence: PacketSequence) -> None:
        launches = launches_of(self._profile, [(self._profile.lanes[index], rows) for index, rows in job.sources])
        self._done += job.weight
        lanes = first_free_lanes(launches.start, launches.end) or [np.arange(len(launches.start))]
        for number, indices in enumerate(lanes, 1):
            target = sequence if number == 1 else self._define(job.track.overflow(number))
            for first in range(0, len(indices), SLICE):
                some = select_rows(launches, indices[first : first + SLICE])
                self._put(encoded_launches(self._profile, target, self._base, some))

    def _samples(self, job: Job, sequence: PacketSequence) -> None:
        sources = [(self._profile.lanes[index], rows) for index, rows in job.sources]
        if job.content == "samples":
            samples = [lane_samples(self._profile, lane, rows, self._rates(lane)) for lane, rows in sources]
        else:
            samples = [total_samples(self._profile, sources, job.content)]
        for times, values in samples:
            for data in sequence.samples(times, values, self._base, 2 * SLICE):
                self._put(data)
        self._done += job.weight

    def _rates(self, lane: Lane) -> npt.NDArray[np.int64] | None:
        """Rates of a lane's rows; cached, as the next track often has the same lane."""
        if self._last_rates is None or self._last_rates[0] is not lane:
            rows = next(some for index, some in self._chosen.items() if self._profile.lanes[index] is lane)
            self._last_rates = lane, rates_of(lane, (part for part, _ in row_parts(rows, SLICE)))
        return self._last_rates[1]

    def _notice(self, job: Job, sequence: PacketSequence) -> None:
        """Writes one slice over the whole profile, with the track's description as name."""
        name = varint_field(EVENT_NAME, sequence.iid(EVENT_NAMES, job.track.description))
        start, end = (np.array([at + self._base]) for at in (self._profile.start_ns, self._profile.end_ns))
        packets = [
            *sequence.packet(start, [*varint_field(EVENT_TYPE, SLICE_BEGIN), *name]),
            *sequence.packet(end, varint_field(EVENT_TYPE, SLICE_END)),
        ]
        self._put(sequence.encoded([(None, messages(packets, 1))], 1))
