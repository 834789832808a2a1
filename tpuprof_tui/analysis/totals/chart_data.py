"""Data of the summary's charts for a window: bandwidth over time by kind of lane, and the histogram of durations."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import Lane, Role, is_missing
from tpuprof_tui.model.activity import MOVES
from tpuprof_tui.model.lane import Rows

from ..index.lane_index import BLOCK, LaneIndex, PiecewiseRate, inner_blocks
from ..selecting.time_scale import edges_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Bins of a curve; the chart scales them to its width.
BINS: Final = 240
#: Bin edges of the histogram, ns: three per decade.
BOUNDS: Final = np.array([*(step * 10**power for power in range(9) for step in (1, 2, 5)), 10**9], np.int64)


class ChartData(Struct, frozen=True, eq=False):
    """Data of the summary's charts."""

    #: start, end: The window, ns.
    start: int
    end: int
    bandwidth: dict[str, Floats]  #: By kind of lane, GB/s in each of ``BINS`` equal parts of the window, float64
    #: Number of work events that start in the window, between neighbouring ``BOUNDS``, with a bin below the first
    #: and one above the last; int64.
    durations: Ints


def chart_data(indexes: Iterable[LaneIndex], start: int, end: int) -> ChartData:
    """Chart data of some lanes in a window; call it from a worker thread.

    O(lanes x bins), plus O(events) of a lane the first time.
    """
    edges = edges_of(start, end, BINS)
    moved: dict[str, Floats] = {}
    durations = np.zeros(len(BOUNDS) + 1, np.int64)
    for index in indexes:
        lane = index.lane
        lengths, added = index.cache.get("charts", partial(_LaneSums.of, lane)).between(index, edges)
        durations += lengths
        if added is not None:
            moved[lane.kind] = moved.get(lane.kind, np.zeros(BINS)) + added
    widths = np.maximum(np.diff(edges), 1)
    return ChartData(start, end, {name: each / widths for name, each in moved.items()}, durations)


def _work(lane: Lane, rows: Rows) -> tuple[Mask, Mask | None]:
    """Masks over some rows: which are work, and which of these move data (None: bytes are unknown)."""
    chosen: Mask = lane.take("role", rows) == Role.WORK
    if "bytes" not in lane or not lane.can_have_activity(MOVES):
        return chosen, None
    moves = lane.activity_mask(MOVES, rows)
    return chosen, chosen if moves is None else chosen & moves


def _by_length(durations: Ints) -> Ints:
    return np.bincount(np.searchsorted(BOUNDS, durations, side="right"), minlength=len(BOUNDS) + 1)


class _LaneSums(Struct, frozen=True, eq=False):
    """Prefix sums of a lane."""

    lengths: Ints  #: int64 (blocks + 1, bounds + 1): histogram of durations of all work before each block of rows
    bytes: PiecewiseRate | None  #: Bytes moved over time; None: unknown

    @classmethod
    def of(cls, lane: Lane) -> _LaneSums:
        """Computes the sums over all rows of a lane."""
        work, moves = _work(lane, slice(0, len(lane)))
        starts, ends = lane["start"], lane["end"]
        bins, blocks = len(BOUNDS) + 1, len(lane) // BLOCK
        rows = np.flatnonzero(work[: blocks * BLOCK])
        places = rows // BLOCK * bins + np.searchsorted(BOUNDS, (ends - starts)[rows], side="right")
        lengths = np.zeros((blocks + 1, bins), np.int64)
        np.cumsum(np.bincount(places, minlength=blocks * bins).reshape(blocks, bins), axis=0, out=lengths[1:])
        if moves is None:
            return cls(lengths, None)
        sizes = lane["bytes"]
        ends = ends if bool((ends > starts).all()) else np.maximum(ends, starts + 1)
        # rows that move nothing get rate 0 instead of being dropped: the lane's own arrays serve, without copies
        rates = np.where(moves & ~is_missing(sizes), sizes / (ends - starts), 0.0)
        return cls(lengths, PiecewiseRate.of(starts, ends, rates))

    def between(self, index: LaneIndex, edges: Ints) -> tuple[Ints, Floats | None]:
        """Histogram of durations and bytes moved in each bin, of the rows between the first and the last edge."""
        first, last, rest = inner_blocks(index, int(edges[0]), int(edges[-1]), BLOCK)
        lane = index.lane
        starts = lane.take("start", rest)
        lengths = _by_length((lane.take("end", rest) - starts)[_work(lane, rest)[0] & (starts >= edges[0])])
        if last > first:
            lengths = lengths + self.lengths[last] - self.lengths[first]
        return lengths, None if self.bytes is None else self.bytes.between(edges)
