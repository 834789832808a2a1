"""Writes a profile as a Perfetto trace: the reference's tracks, slices and counters, with additions.

Beyond the reference: launches that overlap get tracks of their own, kernel functions with CDMA commands stay visible on
their cores, SDMA and CDMA have counters, each core has its DDR and L2M bandwidth, host slices keep their nesting, and
dependencies are flows. Timestamps are ns; with a host trace they are the host's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.analysis.links.dependencies import Dependencies, find_dependencies
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.export.job import Job as ExportJob
from tpuprof_tui.export.selection import rows_by_lane, timed_part
from tpuprof_tui.export.trace import NestedSlices
from tpuprof_tui.formats.files import whole_file
from tpuprof_tui.formats.perfetto.tracks import (
    EVENT_NAME,
    EVENT_NAMES,
    PacketSequence,
    TraceFile,
    Track,
    by_time,
    first_free_lanes,
    nested_tracks,
)
from tpuprof_tui.formats.perfetto.wire import varint_field
from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.lane import Rows, row_count, row_numbers, row_parts, rows_at, select_rows
from tpuprof_tui.model.vocabulary import DETAIL

from ..groups import RX_NAMES, TX_NAMES
from ..read.arrays import map_texts
from ..read.host_trace import EXACT, HOST_ALIGNMENT, HOST_BASE
from .perfetto_slices import SliceEncoder, encoded_launches, lane_flows, launches_of, rates_of, scope_title, system_rows
from .summary_table import ENGINES

#: Slices encoded at a time.
SLICE: Final = 32_768
_GBPS: Final = "GB/s"

#: Lanes, with the rows to use.
Sources = tuple[tuple[Lane, Rows], ...]


def write_trace(job: ExportJob, paths: Sequence[Path], progress: Callable[[float], None]) -> list[Path]:
    """Writes the trace to a file."""
    with whole_file(paths[0]) as stream:
        write_perfetto(timed_part(job.query), stream, progress=progress)
    return list(paths)


def write_perfetto(
    query: Query,
    sink: IO[bytes],
    *,
    progress: Callable[[float], None] = lambda share: None,
    dependencies: Dependencies | None = None,
) -> int:
    """Writes a trace that Perfetto opens.

    Returns the number of bytes written.

    Args:
        query: Instructions to write; tracks of cores that are not selected are left out.
        sink: Gets the bytes.
        progress: Called with the share done, 0 to 1, at most ten times a second and at the end.
        dependencies: Dependencies to draw as flows; None: those in the profile's registers.
    """
    found = find_dependencies(query.profile) if dependencies is None else dependencies
    return Trace(query).write(sink, progress, found)


class Job(Struct, frozen=True):
    """A track to write, and the rows that its contents are made from."""

    track: Track
    write: Callable[[Job, PacketSequence], None] | None  #: Writes the contents; None: it only contains other tracks
    sources: Sources = ()

    @property
    def weight(self) -> int:
        """Number of rows, for progress."""
        return sum(row_count(rows) for _, rows in self.sources)


class Trace:
    """The tracks of a trace, ``jobs``, in the order in which they are defined."""

    def __init__(self, query: Query) -> None:
        self.jobs: list[Job] = []
        self._profile = profile = query.profile
        self._chosen = list(zip(profile.lanes, rows_by_lane(query), strict=True))
        # host time of the profile's zero, increased if a time would be negative
        base = profile.facts.get(HOST_BASE, 0)
        starts = [lane.take("start", rows) for lane, rows in self._chosen]
        first = min((int(start.min()) for start in starts if len(start)), default=0)
        self._base = max(int(base) if isinstance(base, int) else 0, -min(first, 0))
        # of the last lane, as the next track often has the same
        self._rates = lru_cache(1)(partial(rates_of, self._chosen))
        for unit in query.units:
            self._add_core(unit)
        self._add_ports()
        self._add_others()

    # -- tracks -----------------------------------------------------------

    def _add(
        self, track: Track, write: Callable[[Job, PacketSequence], None] | None = None, sources: Sources = ()
    ) -> Track:
        self.jobs.append(Job(track, write, sources))
        return track

    def _sources(self, kind: str, unit: int) -> Sources:
        """Lanes of a kind and a unit (-1: without a unit) that have rows."""
        return tuple((lane, rows) for lane, rows in self._chosen
                     if row_count(rows) and lane.kind == kind and self._profile.unit_of(lane) == unit)  # fmt: skip

    def _add_core(self, unit: int) -> None:
        """Add the tracks of a core, even if it was idle."""
        root = self._add(Track(self._profile.groups.label(unit), ordered=True))
        tiu, gdma, sdma = (self._sources(engine, unit) for engine in ("TIU", "GDMA", "SDMA"))
        self._add(Track(scope_title(self._profile), root, 5), self._launches, (*tiu, *gdma, *sdma))
        self._add(Track("TIU", root, 4), self._slices, tiu)
        self._add(Track("TIU Utilization", root, 3, counter=True), self._samples, tiu)
        self._add(Track("GDMA", root, 2), self._slices, gdma)
        self._add(Track("GDMA Bandwidth", root, 1, counter=True), self._samples, gdma)
        if sdma:
            self._add(Track("SDMA", root, 0), self._slices, sdma)
            self._add(Track("SDMA Bandwidth", root, -1, counter=True, unit=_GBPS), self._samples, sdma)
        transfers = (*gdma, *sdma)
        if transfers:
            description = "GDMA and SDMA of the core together."
            if not self._profile.has(DETAIL):
                description += " Without detailed commands every move counts, whatever its direction."
            self._add_total("DDR Bandwidth", root, -2, transfers, "ddr", description)
        key = "l2_bandwidth"
        if any(key in lane and bool((lane.take(key, rows) > 0).any()) for lane, rows in transfers):
            description = "Moves that touch L2 memory and not DDR, GDMA and SDMA of the core together."
            self._add_total("L2M Bandwidth", root, -3, transfers, "l2", description)

    def _add_total(self, name: str, parent: Track, rank: int, sources: Sources, memory: str, description: str) -> None:
        """Counter of the bandwidth of all the instructions together."""
        track = Track(name, parent, rank, counter=True, unit=_GBPS, description=description)
        self._add(track, partial(self._samples, memory=memory), sources)

    def _add_ports(self) -> None:
        ports = self._sources("CDMA", -1)
        if not ports:
            return
        root = self._add(Track("CDMA"))
        for lane, rows in ports:
            name = f"CDMA port{lane.number}"
            # sending, receiving, and other instructions
            direction = map_texts(
                self._profile, lane, "name", rows, lambda text: (text in TX_NAMES) + 2 * (text in RX_NAMES), 0
            )
            numbers = row_numbers(rows)
            other, sending, receiving = (
                ((lane, numbers[direction == each]),) if bool((direction == each).any()) else () for each in range(3)
            )
            port = self._add(Track(name, root, ordered=True), self._slices, other)
            self._add(Track(f"{name} TX", port, 1), self._slices, sending)
            self._add(Track(f"{name} RX", port, 0), self._slices, receiving)
            self._add(Track(f"{name} {scope_title(self._profile)}", root, 1), self._launches, ((lane, rows),))
            both = "Both directions together."
            self._add_total(f"{name} Bandwidth", port, -1, ((lane, rows),), "ddr", both)

    def _add_others(self) -> None:
        alignment = self._profile.facts.get(HOST_ALIGNMENT)
        description = alignment if isinstance(alignment, str) and alignment != EXACT else ""
        has_other_lanes = False
        for lane, rows in self._chosen:
            if lane.kind in ENGINES or not row_count(rows):
                continue
            of_host = lane.on_host and self._profile.unit_of(lane) < 0
            parent = None if of_host else Track(self._profile.groups.label(lane.group))
            if parent is not None and all(job.track != parent for job in self.jobs):
                self._add(parent)
            note = description if of_host else ""
            self._add(Track(lane.label, parent, description=note), self._nested, ((lane, rows),))
            has_other_lanes |= of_host
        if has_other_lanes and description:
            self._add(Track("Host alignment", description=description), self._notice)

    # -- contents ---------------------------------------------------------

    def write(self, sink: IO[bytes], progress: Callable[[float], None], dependencies: Dependencies) -> int:
        """Writes the descriptors of all tracks, then their contents; returns the number of bytes."""
        self._file = TraceFile(sink, progress, sum(job.weight for job in self.jobs))
        self._flows = lane_flows(self._profile, dependencies, [rows for _, rows in self._chosen])
        sequences = [self._file.sequence(job.track) for job in self.jobs]
        for job, sequence in zip(self.jobs, sequences, strict=True):
            if job.write is not None:
                job.write(job, sequence)
        self._file.close()
        return self._file.written

    def _sequence(self, job: Job, sequence: PacketSequence, number: int) -> PacketSequence:
        """Sequence of a job's track, or of a further one for events that overlap those of the tracks before."""
        return sequence if number == 1 else self._file.sequence(job.track.overflow(number))

    def _slices(self, job: Job, sequence: PacketSequence) -> None:
        for lane, rows in job.sources:
            flows = self._flows.get(self._profile.lanes.index(lane))
            start, end = lane.take("start", rows), lane.take("end", rows)
            order = by_time(start, end)
            if order is not None:
                rows, start, end = rows_at(rows, order), start[order], end[order]
            lanes = first_free_lanes(start, end)
            del start, end
            for number, some in enumerate([rows] if lanes is None else (rows_at(rows, each) for each in lanes), 1):
                target = self._sequence(job, sequence, number)
                encoder = SliceEncoder(self._profile, lane, target, self._base, flows, self._rates(lane))
                for part, count in row_parts(some, SLICE):
                    self._file.put(encoder.encoded(part, count), count)

    def _nested(self, job: Job, sequence: PacketSequence) -> None:
        for lane, rows in job.sources:
            thread = lane.take("nest", rows) if "nest" in lane else None
            tracks = nested_tracks(lane.take("start", rows), lane.take("end", rows), thread)
            for number, (indices, begins) in enumerate(tracks, 1):
                target = self._sequence(job, sequence, number)
                encoder = NestedSlices(self._profile, lane, target, self._base, category="")
                steps = rows_at(rows, indices)
                for first in range(0, len(steps), SLICE):
                    some, opens = steps[first : first + SLICE], begins[first : first + SLICE]
                    self._file.put(encoder.encoded(some, opens), len(some) // 2)

    def _launches(self, job: Job, sequence: PacketSequence) -> None:
        launches = launches_of(self._profile, job.sources)
        lanes = first_free_lanes(launches.start, launches.end) or [np.arange(len(launches.start))]
        for number, indices in enumerate(lanes, 1):
            target = self._sequence(job, sequence, number)
            for first in range(0, len(indices), SLICE):
                some = select_rows(launches, indices[first : first + SLICE])
                self._file.put(encoded_launches(self._profile, target, self._base, some))
        self._file.put(b"", job.weight)

    def _samples(self, job: Job, sequence: PacketSequence, memory: str = "") -> None:
        """Writes the figures of each instruction; with ``memory`` the sum of their bandwidths."""
        parts: Iterable[Samples] = (
            lane_samples(self._profile, lane, rows, self._rates(lane)) for lane, rows in job.sources
        )
        for times, values in [total_samples(self._profile, job.sources, memory)] if memory else parts:
            for data in sequence.samples(times, values, self._base, 2 * SLICE):
                self._file.put(data)
        self._file.put(b"", job.weight)

    def _notice(self, job: Job, sequence: PacketSequence) -> None:
        """Writes one slice over the whole profile, with the track's description as name."""
        name = varint_field(EVENT_NAME, sequence.iid(EVENT_NAMES, job.track.description))
        start, end = (np.array([at + self._base]) for at in (self._profile.start_ns, self._profile.end_ns))
        self._file.put(sequence.encoded([(None, sequence.slices(start, end, name))], 1))


I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
#: Timestamps (ns), and the value from each on.
Samples = tuple[I64, F64]

#: Bandwidths are summed as integer multiples of 1 / `_PARTS`, so that they return to 0 exactly.
_PARTS: Final = 10_000


def lane_samples(profile: Profile, lane: Lane, rows: Rows, rates: I64 | None = None) -> Samples:
    """Rate (uArch) of a TIU, DDR bandwidth of others: the value of each instruction from its start, 0 from its end.

    System commands count as 0. ``rates``: result of `rates_of`.
    """
    start, end = lane.take("start", rows), lane.take("end", rows)
    if lane.kind != "TIU":
        values = _known(profile, lane, rows, "ddr")
    else:
        values = np.zeros(len(start))
        if rates is not None:
            values = np.where(system_rows(profile, lane, rows), 0.0, rates[rows] / 10)
    times = np.stack([start, end], axis=1).reshape(-1)
    samples = np.stack([values, np.zeros(len(start))], axis=1).reshape(-1)
    if bool((times[1:] < times[:-1]).any()):
        order = np.argsort(times, kind="stable")
        times, samples = times[order], samples[order]
    return times, samples


def total_samples(profile: Profile, chosen: Iterable[tuple[Lane, Rows]], memory: str) -> Samples:
    """Total bandwidth of the given instructions, with a sample at each change; ``memory``: ``ddr`` or ``l2``."""
    times: list[I64] = []
    steps: list[I64] = []
    for lane, rows in chosen:
        values = np.rint(_known(profile, lane, rows, memory) * _PARTS)
        start, end = lane.take("start", rows), lane.take("end", rows)
        moving = (values > 0) & (values < 2**50) & (end > start)
        step = values[moving].astype(np.int64)
        times += [start[moving], end[moving]]
        steps += [step, -step]
    if not times:
        return np.zeros(0, np.int64), np.zeros(0)
    when, step = np.concatenate(times), np.concatenate(steps)
    order = np.argsort(when, kind="stable")
    when, total = when[order], np.cumsum(step[order])
    last = np.append(when[1:] != when[:-1], True)[: len(when)]
    when, total = when[last], total[last]
    changed = np.append(True, total[1:] != total[:-1])[: len(when)]
    return when[changed], total[changed] / _PARTS


def _known(profile: Profile, lane: Lane, rows: Rows, memory: str) -> F64:
    """Bandwidth of each row, GB/s; 0 for system commands and where it is not known."""
    key = f"{memory}_bandwidth"
    if key not in lane:
        return np.zeros(len(lane.take("start", rows)))
    values = lane.take(key, rows)
    return np.where(np.isfinite(values) & ~system_rows(profile, lane, rows), values, 0.0)
