"""Sets of disjoint time intervals with prefix sums: exact coverage of any window in O(log n)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from .missing import INT_MISSING
from .uniques import uniques

Ints = npt.NDArray[np.int64]


class Intervals(Struct, frozen=True, eq=False):
    """Half-open intervals [start, end) in ns; ascending, disjoint (they may touch), none of them empty."""

    #: starts, ends: int64, n each.
    starts: Ints
    ends: Ints
    cum: Ints  #: int64, n + 1: prefix sums of the lengths

    @staticmethod
    def union(starts: npt.ArrayLike, ends: npt.ArrayLike) -> Intervals:
        """The union of intervals in any order, which may overlap; those with end <= start are ignored.

        It shares the given arrays (int64 ns) if they are sorted and disjoint already.
        """
        start, end = np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)
        real = end > start
        if not real.all():
            start, end = start[real], end[real]
        if bool((start[1:] >= end[:-1]).all()):
            return _disjoint(start, end)
        if bool((start[1:] < start[:-1]).any()):
            # the stable sort merges runs that are sorted already in linear time
            order = np.argsort(start, kind="stable")
            start, end = start[order], end[order]
        reach = np.maximum.accumulate(end)
        opens = np.flatnonzero(start[1:] > reach[:-1]) + 1
        return _disjoint(start[np.append(0, opens)], reach[np.append(opens - 1, len(reach) - 1)])

    @staticmethod
    def empty() -> Intervals:
        """The empty set."""
        nothing = np.zeros(0, dtype=np.int64)
        return _disjoint(nothing, nothing)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def total(self) -> int:
        """Total covered time, ns."""
        return int(self.cum[-1])

    def covered(self, edges: Ints) -> Ints:
        """Covered ns before each edge (any order and shape); the difference of two is the coverage between them."""
        index = np.searchsorted(self.starts, edges, side="left")
        if not len(self.starts):
            return np.zeros(np.shape(edges), dtype=np.int64)
        overshoot = self.ends[np.maximum(index - 1, 0)] - edges
        return np.asarray(self.cum[index] - np.where(index > 0, np.maximum(overshoot, 0), 0), dtype=np.int64)

    def between(self, start: int, end: int) -> int:
        """Covered ns inside the window [start, end)."""
        if end <= start:
            return 0
        return self._before(end) - self._before(start)

    def _before(self, time: int) -> int:
        """Covered ns before a time: ``covered`` for a single one, several times as fast."""
        index = int(self.starts.searchsorted(time, side="left"))
        return int(self.cum[index]) - max(int(self.ends[index - 1]) - time, 0) if index else 0

    def clip(self, start: int, end: int) -> Intervals:
        """The part inside the window [start, end)."""
        low = int(np.searchsorted(self.ends, start, side="right"))
        high = max(int(np.searchsorted(self.starts, end, side="left")), low)
        if end <= start or low == high:
            return Intervals.empty()
        if self.starts[low] >= start and self.ends[high - 1] <= end:
            return _disjoint(self.starts[low:high], self.ends[low:high])
        return _disjoint(np.maximum(self.starts[low:high], start), np.minimum(self.ends[low:high], end))

    def intersect(self, other: Intervals) -> Intervals:
        """The intersection of both; O(fewer log more + pieces)."""
        few, many = (self, other) if len(self) <= len(other) else (other, self)
        one, two = _overlapping_pairs(few, many)
        return _disjoint(np.maximum(few.starts[one], many.starts[two]), np.minimum(few.ends[one], many.ends[two]))

    def difference(self, other: Intervals) -> Intervals:
        """The difference: this without ``other``; fast where this has few intervals."""
        _, overlapping = _overlapping_pairs(self, other)
        if not len(overlapping):
            return self
        met = uniques(overlapping)
        gaps = Intervals.union(np.append(self.starts[0], other.ends[met]), np.append(other.starts[met], self.ends[-1]))
        return self.intersect(gaps)

    def union_with(self, other: Intervals) -> Intervals:
        """The union of both."""
        if not len(self) or not len(other):
            return self if len(self) else other
        return Intervals.union(np.concatenate((self.starts, other.starts)), np.concatenate((self.ends, other.ends)))


def positions_in_runs(counts: Ints) -> Ints:
    """Position of each element in its run, for consecutive runs of the given lengths; int64."""
    return np.asarray(np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts), dtype=np.int64)


def interval_at(starts: Ints, ends: Ints, times: Ints) -> Ints:
    """Index of the interval, of those by start, that contains each time, if the last to begin does; else missing."""
    index = np.searchsorted(starts, times, side="right") - 1
    inside = index >= 0
    inside[inside] = times[inside] < ends[index[inside]]
    return np.where(inside, index, INT_MISSING)


def last_of_each(order: Ints, key: npt.NDArray[Any]) -> Ints:
    """The last row of each key; ``order`` sorts rows by key."""
    keys = key[order]
    return np.asarray(order[np.append(keys[1:] != keys[:-1], True)[: len(order)]])


def _overlapping_pairs(few: Intervals, many: Intervals) -> tuple[Ints, Ints]:
    """Indexes (into ``few``, ``many``) of all pairs of intervals that overlap, ascending; O(few log many + pairs)."""
    low = many.ends.searchsorted(few.starts, side="right")
    counts = np.maximum(many.starts.searchsorted(few.ends, side="left") - low, 0)
    mine = np.repeat(np.arange(len(few)), counts)
    return mine, low[mine] + positions_in_runs(counts)


def _disjoint(starts: Ints, ends: Ints) -> Intervals:
    cum = np.zeros(len(starts) + 1, dtype=np.int64)
    (ends - starts).cumsum(out=cum[1:])
    return Intervals(starts, ends, cum)
