"""Prefix sums over the rows of a lane and over time: sums of any window without a scan of all its rows.

Rows are summed in blocks once; a window is the difference of two prefix sums plus the few rows at its edges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model.lane import Rows

from .lane_index import LaneIndex, rows_between

Ints = npt.NDArray[np.int64]

#: Rows per block.
BLOCK: Final = 512
#: Lanes with fewer blocks than this are scanned each time.
MIN_BLOCKS: Final = 4
Floats = npt.NDArray[np.float64]


class RunningSums:
    """Prefix sums of k integer quantities per row: ``weights`` maps rows to int64 (k, rows)."""

    def __init__(self, count: int, weights: Callable[[Rows], Ints]) -> None:
        self._weights = weights
        values = weights(slice(0, count))
        whole = count // BLOCK
        blocks = values[:, : whole * BLOCK].reshape(len(values), whole, BLOCK).sum(axis=2)
        self._sums = np.zeros((len(values), whole + 1), np.int64)
        np.cumsum(blocks, axis=1, out=self._sums[:, 1:])
        self.total: Ints = self._sums[:, -1] + values[:, whole * BLOCK :].sum(axis=1)

    def over(self, rows: Rows) -> Ints:
        """The sums over some rows, int64 (k,); O(BLOCK) for a slice, O(rows) for an array."""
        if not isinstance(rows, slice):
            return np.asarray(self._weights(rows).sum(axis=1), np.int64)
        first, last = -(-rows.start // BLOCK), min(rows.stop // BLOCK, self._sums.shape[1] - 1)
        if last <= first:
            return np.asarray(self._weights(rows).sum(axis=1), np.int64)
        inner = self._sums[:, last] - self._sums[:, first]
        rest = np.concatenate((np.arange(rows.start, first * BLOCK), np.arange(last * BLOCK, rows.stop)))
        return np.asarray(inner + self._weights(rest).sum(axis=1), np.int64)


def inner_blocks(index: LaneIndex, start: int, end: int, block: int) -> tuple[int, int, Rows]:
    """Blocks of ``block`` rows that lie wholly inside the window [start, end), and the remaining rows that run in it.

    Returns:
        The first block and the one after the last (both 0: none), and the rows outside these blocks.
    """
    low = int(np.searchsorted(index.max_end, start, side="right"))
    high = index.begun_before(end)
    began = int(np.searchsorted(index.starts, start, side="left"))
    ended = int(np.searchsorted(index.max_end, end, side="right"))
    first, last = -(-max(began, low) // block), min(ended, high) // block
    if end <= start or last <= first:
        return 0, 0, rows_between(index, start, end)
    before = np.arange(low, first * block, dtype=np.int64)
    if index.max_end is not index.sorted_ends:
        ends = np.maximum(index.lane.take("end", before), index.starts[before] + 1)
        before = before[ends > start]
    return first, last, np.concatenate((before, np.arange(last * block, high, dtype=np.int64)))


class PiecewiseRate(Struct, frozen=True, eq=False):
    """A quantity that flows at a constant rate during each of n disjoint intervals.

    Attributes:
        starts, ends: int64 ns, ascending; intervals of zero duration carry nothing.
        amounts: float64, n + 1: amount before each interval (prefix sums), then the total.
    """

    starts: Ints
    ends: Ints
    amounts: Floats

    @classmethod
    def of(cls, starts: Ints, ends: Ints, rates: Floats) -> PiecewiseRate:
        """The flow of intervals sorted by start, ``rates`` per ns; O(n), O(n log n) where they overlap."""
        if bool((starts[1:] < ends[:-1]).any()):
            starts, ends, rates = _split_overlaps(starts, ends, rates)
        amounts = np.zeros(len(starts) + 1)
        np.cumsum(rates * (ends - starts), out=amounts[1:])
        return cls(starts, ends, amounts)

    def between(self, edges: Ints) -> Floats:
        """Amount in each cell between neighbouring edges; O(cells log n)."""
        if not len(self.starts):
            return np.zeros(len(edges) - 1)
        begun = np.searchsorted(self.starts, edges, side="left")
        last = np.maximum(begun - 1, 0)
        length = np.maximum(self.ends[last] - self.starts[last], 1)
        rest = np.where(begun > 0, np.maximum(self.ends[last] - edges, 0), 0) / length
        before = self.amounts[begun] - rest * (self.amounts[last + 1] - self.amounts[last])
        found: Floats = np.diff(before)
        return found


def _split_overlaps(starts: Ints, ends: Ints, rates: Floats) -> tuple[Ints, Ints, Floats]:
    """Splits overlapping intervals at all starts and ends; the rate of a piece is the sum of the rates active in it."""
    times = np.concatenate((starts, ends))
    order = np.argsort(times, kind="stable")
    rate = np.cumsum(np.concatenate((rates, -rates))[order])
    times = times[order]
    return times[:-1], times[1:], rate[:-1]
