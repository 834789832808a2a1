"""Device time as sets of intervals: unions, differences and gaps of computing and communication."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from .categories import COMMUNICATION, COMPUTING, EXPOSED, FREE, Layer, What
from .kernels import Kernels
from .timeline import Timeline

I64 = npt.NDArray[np.int64]


class Stretches(Struct, frozen=True, eq=False):
    """Half-open intervals by start: int64 ns since 1970, in columns of one length."""

    start: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    end: I64 = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.start)

    @property
    def length(self) -> I64:
        """Length of each interval, ns."""
        return self.end - self.start

    @property
    def total(self) -> int:
        """Sum of the lengths, ns."""
        return int(self.length.sum())

    def within(self, low: int | None, high: int | None) -> Stretches:
        """The intervals that start in [low, high); None: no bound."""
        first = 0 if low is None else int(np.searchsorted(self.start, low))
        last = len(self) if high is None else int(np.searchsorted(self.start, high))
        return Stretches(self.start[first:last], self.end[first:last])


def sorted_stretches(start: I64, end: I64) -> Stretches:
    """Intervals sorted by start."""
    order = np.argsort(start, kind="stable")
    return Stretches(start[order], end[order])


def union(start: I64, end: I64) -> Stretches:
    """Union of intervals; touching ones are merged."""
    if not len(start):
        return Stretches()
    if bool((start[1:] < start[:-1]).any()):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    opens = np.flatnonzero(start[1:] > reach[:-1]) + 1
    return Stretches(start[np.append(0, opens)], reach[np.append(opens - 1, len(reach) - 1)])


def covered_time(start: I64, end: I64) -> int:
    """Length in ns of the union of intervals; needs less memory than the union itself."""
    if not len(start):
        return 0
    if bool((start[1:] < start[:-1]).any()):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    new = np.maximum(start[1:], reach[:-1])
    np.subtract(reach[1:], new, out=new)
    return int(reach[0] - start[0]) + int(np.maximum(new, 0, out=new).sum())


def gaps(covered: Stretches) -> Stretches:
    """The gaps between the intervals of a union."""
    return Stretches(covered.end[:-1], covered.start[1:])


def without(one: Stretches, other: Stretches) -> Stretches:
    """Difference of two unions: the parts of ``one`` that ``other`` does not cover."""
    if not len(one) or not len(other):
        return one
    # cut both at all edges: each piece is then either inside or outside of each union
    # the four parts are ascending, and a stable sort merges sorted runs
    edges = np.sort(np.concatenate([one.start, one.end, other.start, other.end]), kind="stable")
    edges = edges[np.append(True, edges[1:] != edges[:-1])]
    low, high = edges[:-1], edges[1:]
    kept = _covers(one, low) & ~_covers(other, low)
    return union(low[kept], high[kept])


def _covers(stretches: Stretches, times: I64) -> npt.NDArray[np.bool_]:
    place = np.searchsorted(stretches.start, times, side="right") - 1
    return (place >= 0) & (times < stretches.end[np.maximum(place, 0)])


class Coverage(Struct, frozen=True, eq=False):
    """Use of the device over time.

    Attributes:
        file: Name of the file that it comes from.
        computing, communication, exposed, free: Intervals; exposed: communication not overlapped by computing.
        exporters: Whether they are the exporter's own Overlap Analysis slices.
    """

    file: str
    computing: Stretches
    communication: Stretches
    exposed: Stretches
    free: Stretches
    exporters: bool = False

    def kinds(self) -> tuple[tuple[str, Stretches], ...]:
        """The four sets of intervals, by the exporter's names."""
        return ((COMPUTING, self.computing), (COMMUNICATION, self.communication), (EXPOSED, self.exposed),
                (FREE, self.free))  # fmt: skip


def coverage_of(timeline: Timeline | None, kernels: Kernels | None) -> Coverage | None:
    """Coverage from the exporter's slices, else the timeline's tasks, else the kernels; None if there are none."""
    if timeline is not None and timeline.derived:
        rows = timeline.rows_of(Layer.OVERLAP)
        found = []
        for kind in (COMPUTING, COMMUNICATION, EXPOSED, FREE):
            mine = rows[timeline.named(kind.__eq__)[rows]]
            found.append(sorted_stretches(timeline.start[mine], timeline.end[mine]))
        return Coverage(timeline.file, found[0], found[1], found[2], found[3], exporters=True)
    if timeline is not None and len(timeline.work):
        parts = [timeline.work[timeline.what[timeline.work] == what] for what in (What.KERNEL, What.COLLECTIVE)]
        return _unions(timeline.file, *((timeline.start[rows], timeline.end[rows]) for rows in parts))
    if kernels is not None and kernels.timed.any():
        talks = kernels.communicates
        parts = [np.flatnonzero(kernels.timed & ~talks), np.flatnonzero(kernels.timed & talks)]
        return _unions(kernels.file, *((kernels.start[rows], kernels.end[rows]) for rows in parts))
    return None


def _unions(file: str, computing: tuple[I64, I64], communication: tuple[I64, I64]) -> Coverage:
    one, other = union(*computing), union(*communication)
    both = union(np.concatenate([one.start, other.start]), np.concatenate([one.end, other.end]))
    return Coverage(file, one, other, without(other, one), gaps(both))
