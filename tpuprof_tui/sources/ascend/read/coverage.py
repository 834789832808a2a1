"""Device time as sets of intervals: unions, differences and gaps of computing and communication."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from ..recorded import COMMUNICATION, COMPUTING, EXPOSED, FREE, SortedIntervals
from .categories import Layer, SliceClass
from .kernels import Kernels
from .timeline import Timeline

I64 = npt.NDArray[np.int64]


def sorted_intervals(start: I64, end: I64) -> SortedIntervals:
    """Intervals sorted by start."""
    order = np.argsort(start, kind="stable")
    return SortedIntervals(start[order], end[order])


def union(start: I64, end: I64) -> SortedIntervals:
    """Union of intervals; touching ones are merged."""
    if not len(start):
        return SortedIntervals()
    if bool((start[1:] < start[:-1]).any()):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    opens = np.flatnonzero(start[1:] > reach[:-1]) + 1
    return SortedIntervals(start[np.append(0, opens)], reach[np.append(opens - 1, len(reach) - 1)])


def gaps(covered: SortedIntervals) -> SortedIntervals:
    """The gaps between the intervals of a union."""
    return SortedIntervals(covered.end[:-1], covered.start[1:])


def difference(first: SortedIntervals, second: SortedIntervals) -> SortedIntervals:
    """Difference of two unions: the parts of ``first`` that ``second`` does not cover."""
    if not len(first) or not len(second):
        return first
    # cut both at all edges: each part is then either inside or outside of each union
    # the four parts are ascending, and a stable sort merges sorted runs
    edges = np.sort(np.concatenate([first.start, first.end, second.start, second.end]), kind="stable")
    edges = edges[np.append(True, edges[1:] != edges[:-1])]
    low, high = edges[:-1], edges[1:]
    kept = _covered_at(first, low) & ~_covered_at(second, low)
    return union(low[kept], high[kept])


def _covered_at(intervals: SortedIntervals, times: I64) -> npt.NDArray[np.bool_]:
    index = np.searchsorted(intervals.start, times, side="right") - 1
    return (index >= 0) & (times < intervals.end[np.maximum(index, 0)])


class Coverage(Struct, frozen=True, eq=False):
    """Use of the device over time.

    Attributes:
        file: Name of the file that it comes from.
        computing, communication, exposed, free: Intervals; exposed: communication not overlapped by computing.
    """

    file: str
    computing: SortedIntervals
    communication: SortedIntervals
    exposed: SortedIntervals
    free: SortedIntervals

    def kinds(self) -> tuple[tuple[str, SortedIntervals], ...]:
        """The four sets of intervals, by the exporter's names."""
        return ((COMPUTING, self.computing), (COMMUNICATION, self.communication), (EXPOSED, self.exposed),
                (FREE, self.free))  # fmt: skip


def coverage_of(timeline: Timeline | None, kernels: Kernels | None) -> Coverage | None:
    """Coverage from the exporter's slices, else the timeline's tasks, else the kernels; None if there are none."""
    if timeline is not None and timeline.derived:
        rows = timeline.rows_of(Layer.OVERLAP)
        found = []
        for kind in (COMPUTING, COMMUNICATION, EXPOSED, FREE):
            kind_rows = rows[timeline.named(kind.__eq__)[rows]]
            found.append(sorted_intervals(timeline.start[kind_rows], timeline.end[kind_rows]))
        return Coverage(timeline.file, found[0], found[1], found[2], found[3])
    if timeline is not None and len(timeline.work):
        classes = timeline.slice_class[timeline.work]
        parts = [timeline.work[classes == each] for each in (SliceClass.KERNEL, SliceClass.COLLECTIVE)]
        return _unions(timeline.file, *((timeline.start[rows], timeline.end[rows]) for rows in parts))
    if kernels is not None and kernels.timed.any():
        comm = kernels.communicates
        parts = [np.flatnonzero(kernels.timed & ~comm), np.flatnonzero(kernels.timed & comm)]
        return _unions(kernels.file, *((kernels.start[rows], kernels.end[rows]) for rows in parts))
    return None


def _unions(file: str, computing: tuple[I64, I64], communication: tuple[I64, I64]) -> Coverage:
    compute, comm = union(*computing), union(*communication)
    both = union(np.concatenate([compute.start, comm.start]), np.concatenate([compute.end, comm.end]))
    return Coverage(file, compute, comm, difference(comm, compute), gaps(both))
