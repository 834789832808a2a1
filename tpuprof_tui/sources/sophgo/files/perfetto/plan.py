"""Tracks of a trace and the content of each: the tree of the reference, then additions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from tpuprof_tui.export.selection import Selection
from tpuprof_tui.formats.perfetto.tracks import Track
from tpuprof_tui.model import Profile
from tpuprof_tui.model.lane import Rows, row_count, row_numbers
from tpuprof_tui.model.vocabulary import DETAIL
from tpuprof_tui.sources.sophgo.port_directions import RX_NAMES, TX_NAMES

from ..text_columns import map_texts
from .kernels import scope_title

#: Fact of a profile with a host trace: how it was aligned; shown in the trace unless it is `EXACT`.
HOST_ALIGNMENT: Final = "host_alignment"
EXACT: Final = "exact"
_DEVICE: Final = ("TIU", "GDMA", "SDMA", "CDMA")
_GBPS: Final = "GB/s"

#: Indices into ``Profile.lanes`` with the rows to use.
Sources = tuple[tuple[int, Rows], ...]

#: Content of a track; empty for one that only contains other tracks.
Content = Literal["", "slices", "nested", "launches", "samples", "ddr", "l2", "notice"]


class Job(Struct, frozen=True):
    """A track to write: its content, and the rows that this is made from."""

    track: Track
    content: Content = ""
    sources: Sources = ()

    @property
    def weight(self) -> int:
        """Number of rows, for progress."""
        return sum(row_count(rows) for _, rows in self.sources)


def planned_jobs(profile: Profile, selection: Selection, chosen: Mapping[int, Rows]) -> list[Job]:
    """All tracks in the order in which they are defined.

    ``chosen``: rows that are written, by index in ``Profile.lanes``.
    """
    plan = _Plan(profile, chosen, [])
    for unit in profile.units:
        if selection.has_unit(unit):
            plan.core(unit)
    plan.ports()
    plan.others()
    return plan.jobs


class _Plan(Struct):
    profile: Profile
    chosen: Mapping[int, Rows]
    jobs: list[Job]

    def _add(self, track: Track, content: Content = "", sources: Sources = ()) -> Track:
        self.jobs.append(Job(track, content, sources))
        return track

    def _sources(self, kind: str, unit: int) -> Sources:
        """Lanes of a kind and a unit (-1: without a unit) that have rows."""
        found = []
        for index, rows in self.chosen.items():
            lane = self.profile.lanes[index]
            if row_count(rows) and lane.kind == kind and self.profile.unit_of(lane) == unit:
                found.append((index, rows))
        return tuple(found)

    def core(self, unit: int) -> None:
        """Add the tracks of a core, even if it was idle."""
        root = self._add(Track(self.profile.groups.label(unit), ordered=True))
        tiu, gdma, sdma = (self._sources(engine, unit) for engine in ("TIU", "GDMA", "SDMA"))
        self._add(Track(scope_title(self.profile), root, 5), "launches", (*tiu, *gdma, *sdma))
        self._add(Track("TIU", root, 4), "slices", tiu)
        self._add(Track("TIU Utilization", root, 3, counter=True), "samples", tiu)
        self._add(Track("GDMA", root, 2), "slices", gdma)
        self._add(Track("GDMA Bandwidth", root, 1, counter=True), "samples", gdma)
        if sdma:
            self._add(Track("SDMA", root, 0), "slices", sdma)
            self._add(_bandwidth("SDMA Bandwidth", root, -1), "samples", sdma)
        transfers = (*gdma, *sdma)
        if transfers:
            description = "GDMA and SDMA of the core together."
            if not self.profile.has(DETAIL):
                description += " Without detailed commands every move counts, whatever its direction."
            self._add(_bandwidth("DDR Bandwidth", root, -2, description), "ddr", transfers)
        lanes, key = [(self.profile.lanes[index], rows) for index, rows in transfers], "l2_bandwidth"
        if any(key in lane and bool((lane.take(key, rows) > 0).any()) for lane, rows in lanes):
            description = "Moves that touch L2 memory and not DDR, GDMA and SDMA of the core together."
            self._add(_bandwidth("L2M Bandwidth", root, -3, description), "l2", transfers)

    def ports(self) -> None:
        """Add the tracks of all CDMA ports with instructions."""
        ports = self._sources("CDMA", -1)
        if not ports:
            return
        root = self._add(Track("CDMA"))
        for index, rows in ports:
            lane = self.profile.lanes[index]
            name, source = f"CDMA port{lane.number}", ((index, rows),)
            # sending, receiving, and other instructions
            direction = map_texts(
                self.profile, lane, "name", rows, lambda text: (text in TX_NAMES) + 2 * (text in RX_NAMES), 0
            )
            numbers = row_numbers(rows)
            other, sending, receiving = (
                ((index, numbers[direction == each]),) if bool((direction == each).any()) else () for each in range(3)
            )
            port = self._add(Track(name, root, ordered=True), "slices", other)
            self._add(Track(f"{name} TX", port, 1), "slices", sending)
            self._add(Track(f"{name} RX", port, 0), "slices", receiving)
            self._add(Track(f"{name} {scope_title(self.profile)}", root, 1), "launches", source)
            self._add(_bandwidth(f"{name} Bandwidth", port, -1, "Both directions together."), "ddr", source)

    def others(self) -> None:
        """Add the lanes of the host, and all others."""
        alignment = self.profile.facts.get(HOST_ALIGNMENT)
        description = alignment if isinstance(alignment, str) and alignment != EXACT else ""
        has_other_lanes = False
        for index, rows in self.chosen.items():
            lane = self.profile.lanes[index]
            if lane.kind in _DEVICE or not row_count(rows):
                continue
            of_host = lane.on_host and self.profile.unit_of(lane) < 0
            parent = None if of_host else Track(self.profile.groups.label(lane.group))
            if parent is not None and all(job.track != parent for job in self.jobs):
                self._add(parent)
            note = description if of_host else ""
            self._add(Track(lane.label, parent, description=note), "nested", ((index, rows),))
            has_other_lanes |= of_host
        if has_other_lanes and description:
            self._add(Track("Host alignment", description=description), "notice")


def _bandwidth(name: str, parent: Track, rank: int, description: str = "") -> Track:
    return Track(name, parent, rank, counter=True, unit=_GBPS, description=description)
