"""Which tracks a trace has, and what is on each: the tree of the reference, then what is shown beyond it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

import numpy as np
from msgspec import Struct

from tpuprof_tui.export.selection import Selection
from tpuprof_tui.formats.perfetto.tracks import Track
from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.lane import Rows, row_count, row_numbers
from tpuprof_tui.model.vocabulary import DETAIL
from tpuprof_tui.sources.sophgo.port_directions import RX_NAMES, TX_NAMES

#: Fact of a profile with a host trace: how it was aligned; all but this word is told in the trace.
HOST_ALIGNMENT: Final = "host_alignment"
EXACT: Final = "exact"
_DEVICE: Final = ("TIU", "GDMA", "SDMA", "CDMA")
_GBPS: Final = "GB/s"

#: Places in ``Profile.lanes`` with the rows that count.
Sources = tuple[tuple[int, Rows], ...]


class Content(Enum):
    """What is on a track."""

    GROUP = auto()
    SLICES = auto()
    NESTED = auto()
    LAUNCHES = auto()
    RATE = auto()
    BANDWIDTH = auto()
    DDR_TOTAL = auto()
    L2_TOTAL = auto()
    NOTICE = auto()


class Job(Struct, frozen=True):
    """A track to write.

    Attributes:
        track: The track.
        content: What is on it.
        sources: What that is made of.
        weight: Number of rows, for progress.
    """

    track: Track
    content: Content
    sources: Sources = ()
    weight: int = 0


def planned_jobs(profile: Profile, selection: Selection, chosen: Mapping[int, Rows]) -> list[Job]:
    """All tracks in the order in which they are defined.

    Args:
        profile: The profile.
        selection: Which cores have tracks.
        chosen: Rows that are written, by place in ``Profile.lanes``.
    """
    plan = _Plan(profile, chosen)
    for unit in profile.units:
        if selection.has_unit(unit):
            plan.core(unit)
    plan.ports()
    plan.others()
    return plan.jobs


class _Plan:
    def __init__(self, profile: Profile, chosen: Mapping[int, Rows]) -> None:
        self._profile = profile
        self._chosen = chosen
        self.jobs: list[Job] = []

    def _add(self, track: Track, content: Content = Content.GROUP, sources: Sources = ()) -> Track:
        self.jobs.append(Job(track, content, sources, sum(row_count(rows) for _, rows in sources)))
        return track

    def _of(self, kind: str, unit: int) -> Sources:
        """Lanes of a kind and a unit (-1: of none) that have rows."""
        found = []
        for place, rows in self._chosen.items():
            lane = self._profile.lanes[place]
            if row_count(rows) and lane.kind == kind and self._profile.unit_of(lane) == unit:
                found.append((place, rows))
        return tuple(found)

    def _knows(self, sources: Sources, key: str) -> bool:
        """Whether a bandwidth is ever above 0."""
        lanes = [(self._profile.lanes[place], rows) for place, rows in sources]
        return any(key in lane and bool((lane.take(key, rows) > 0).any()) for lane, rows in lanes)

    def core(self, unit: int) -> None:
        """The tracks of a core; it has them also when it was idle."""
        root = self._add(Track(self._profile.groups.label(unit), ordered=True))
        tiu, gdma, sdma = (self._of(engine, unit) for engine in ("TIU", "GDMA", "SDMA"))
        self._add(Track("Kernel Function", root, 5), Content.LAUNCHES, (*tiu, *gdma, *sdma))
        self._add(Track("TIU", root, 4), Content.SLICES, tiu)
        self._add(Track("TIU Utilization", root, 3, counter=True), Content.RATE, tiu)
        self._add(Track("GDMA", root, 2), Content.SLICES, gdma)
        self._add(Track("GDMA Bandwidth", root, 1, counter=True), Content.BANDWIDTH, gdma)
        if sdma:
            self._add(Track("SDMA", root, 0), Content.SLICES, sdma)
            self._add(_bandwidth("SDMA Bandwidth", root, -1), Content.BANDWIDTH, sdma)
        moves = (*gdma, *sdma)
        if moves:
            words = "GDMA and SDMA of the core together."
            if not self._profile.has(DETAIL):
                words += " Without detailed commands every move counts, whatever its direction."
            self._add(_bandwidth("DDR Bandwidth", root, -2, words), Content.DDR_TOTAL, moves)
        if self._knows(moves, "l2_bandwidth"):
            words = "Moves that touch L2 memory and not DDR, GDMA and SDMA of the core together."
            self._add(_bandwidth("L2M Bandwidth", root, -3, words), Content.L2_TOTAL, moves)

    def ports(self) -> None:
        """The tracks of all CDMA ports with instructions."""
        ports = self._of("CDMA", -1)
        if not ports:
            return
        root = self._add(Track("CDMA"))
        for source in ports:
            self._port(root, source)

    def _port(self, root: Track, source: tuple[int, Rows]) -> None:
        lane = self._profile.lanes[source[0]]
        name = f"CDMA port{lane.number}"
        sending, receiving, other = self._by_direction(lane, source)
        port = self._add(Track(name, root, ordered=True), Content.SLICES, other)
        self._add(Track(f"{name} TX", port, 1), Content.SLICES, sending)
        self._add(Track(f"{name} RX", port, 0), Content.SLICES, receiving)
        self._add(Track(f"{name} Kernel Function", root, 1), Content.LAUNCHES, (source,))
        words = "Both directions together."
        self._add(_bandwidth(f"{name} Bandwidth", port, -1, words), Content.DDR_TOTAL, (source,))

    def _by_direction(self, lane: Lane, source: tuple[int, Rows]) -> tuple[Sources, Sources, Sources]:
        """Rows that send, that receive, and all others."""
        place, rows = source
        texts = self._profile.strings["name"]
        ways = np.array([1 if text in TX_NAMES else 2 if text in RX_NAMES else 0 for text in texts] + [0])
        if "name" not in lane:
            return (), (), (source,)
        codes = lane.take("name", rows)
        way = ways[np.where((codes >= 0) & (codes < len(texts)), codes, len(texts))]
        numbers = row_numbers(rows)
        parts = [numbers[way == direction] for direction in (1, 2, 0)]
        sending, receiving, other = (((place, part),) if len(part) else () for part in parts)
        return sending, receiving, other

    def others(self) -> None:
        """Lanes of the host, and of whatever else there is."""
        alignment = self._profile.facts.get(HOST_ALIGNMENT)
        words = alignment if isinstance(alignment, str) and alignment != EXACT else ""
        shown = False
        for place, rows in self._chosen.items():
            lane = self._profile.lanes[place]
            if lane.kind in _DEVICE or not row_count(rows):
                continue
            parent = None if lane.on_host else Track(self._profile.groups.label(lane.group))
            if parent is not None and all(job.track != parent for job in self.jobs):
                self._add(parent)
            self._add(Track(lane.label, parent, description=words), Content.NESTED, ((place, rows),))
            shown = True
        if shown and words:
            self._add(Track("Host alignment", description=words), Content.NOTICE)


def _bandwidth(name: str, parent: Track, rank: int, description: str = "") -> Track:
    return Track(name, parent, rank, counter=True, unit=_GBPS, description=description)
