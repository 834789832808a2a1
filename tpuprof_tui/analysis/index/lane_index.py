"""Index of a lane for O(log n) queries: occupancy of cells, event at a time, rows and running sums of a window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from tpuprof_tui.model import INT_MISSING, Lane, Role
from tpuprof_tui.model.intervals import Intervals, Ints
from tpuprof_tui.model.lane import Rows, row_count
from tpuprof_tui.model.mapped_arrays import MappedArrays

from ..result_cache import ResultCache

#: No window reaches this end.
NEVER: Final = np.iinfo(np.int64).max


class LaneIndex(Struct, frozen=True, eq=False, weakref=True):
    """A lane with its interval sets and sorted bounds."""

    lane: Lane  #: The lane
    #: work, wait, sync: When events of each role ran, as unions without overlap: where several roles ran at once, work
    #: counts before wait and wait before sync.
    work: Intervals
    wait: Intervals
    sync: Intervals
    waiting: Intervals  #: ``wait`` or ``sync``
    starts: Ints  #: Starts of all events, int64 ns, ascending; row i of the lane is element i
    max_end: Ints  #: Running maximum of the events' ends; events of zero duration count as 1 ns
    sorted_ends: Ints  #: The same ends, ascending
    #: End of the recording, ns: of a window that reaches it, events that start at its end are part too.
    last: int = NEVER
    cache: ResultCache = field(default_factory=ResultCache)  #: Cache of results computed from this lane alone

    def begun_before(self, end: int) -> int:
        """Number of events that start before the end of a window, or at it if that is the end of the recording."""
        return begun_before(self.starts, end, self.last)


def begun_before(starts: Ints, end: int, last: int) -> int:
    """Number of ascending ``starts`` before the end of a window, or at it if that is ``last``, the recording's end."""
    # windows next to one another share no event, yet the last one has the event of no length at its end
    return int(np.searchsorted(starts, end, side="right" if end >= last else "left"))


class LaneCells(Struct, frozen=True, eq=False):
    """Contents of each of n cells of a lane."""

    #: busy, wait, sync: ns of work, waits and syncs inside the cell, int64.
    busy: Ints
    wait: Ints
    sync: Ints
    count: Ints  #: Number of events that run or start in the cell, int64
    first: Ints  #: Row of the first event (by start) that runs or starts in the cell, int64; -1: none


def build_index(lane: Lane, arrays: MappedArrays | None = None, last: int = NEVER) -> LaneIndex:
    """Builds the index of a lane: O(n) if its events do not overlap, else O(n log n); mostly outside the GIL.

    ``arrays`` stores the arrays of the index; None: in memory. ``last``: end of the recording.
    """
    arrays = MappedArrays() if arrays is None else arrays
    starts, ends, role = lane["start"], lane["end"], lane["role"]
    chosen = (slice(None) if (mask := role == wanted).all() else mask for wanted in (Role.WORK, Role.WAIT, Role.SYNC))
    work, wait, sync = (Intervals.union(starts[which], ends[which]) for which in chosen)
    wait = wait.difference(work)
    sync = sync.difference(work).difference(wait)
    waiting = wait.union_with(sync)
    # an event of zero duration must still be found at its start
    visible_ends = ends if bool((ends > starts).all()) else np.maximum(ends, starts + 1)
    ascending = bool((visible_ends[1:] >= visible_ends[:-1]).all())
    max_end = visible_ends if ascending else np.maximum.accumulate(visible_ends)
    sorted_ends = visible_ends if ascending else np.sort(visible_ends)
    work, wait, sync, waiting = (
        Intervals(*map(arrays.stored, (each.starts, each.ends, each.cum))) for each in (work, wait, sync, waiting)
    )
    max_end = arrays.stored(max_end)
    sorted_ends = max_end if ascending else arrays.stored(sorted_ends)
    arrays.release_pages()
    return LaneIndex(lane, work, wait, sync, waiting, starts, max_end, sorted_ends, last,
                     ResultCache(arrays.release_pages))  # fmt: skip


def cells(index: LaneIndex, edges: Ints) -> LaneCells:
    """Exact contents of the n cells between n + 1 ascending edges (ns), at any zoom; O(n log events).

    The sum of ``busy`` over the cells is ``index.work.between(edges[0], edges[-1])``; cells of no width are empty.
    """
    left, right = edges[:-1], edges[1:]
    started = np.searchsorted(index.starts, right, side="left")
    ended = np.searchsorted(index.sorted_ends, left, side="right")
    first = np.searchsorted(index.max_end, left, side="right")
    wide = right > left
    return LaneCells(
        busy=np.diff(index.work.covered(edges)),
        wait=np.diff(index.wait.covered(edges)),
        sync=np.diff(index.sync.covered(edges)),
        count=np.where(wide, started - ended, 0),
        first=np.where(wide & (first < started), first, -1),
    )


class Sublane(Struct, frozen=True, eq=False):
    """The events of a lane on one of its sub-lanes, which overlap no other there."""

    index: LaneIndex  #: Index of a lane of these events alone
    rows: Ints  #: Their rows in the whole lane, int64, ascending


def sublanes_of(index: LaneIndex) -> tuple[Sublane, ...]:
    """The sub-lanes of a lane, of nested events the outermost first; O(n log n) the first time, then cached."""
    return index.cache.get("sub-lanes", lambda: tuple(_sublanes(index)))


def cached_sublanes(index: LaneIndex) -> tuple[Sublane, ...] | None:
    """The sub-lanes of a lane; None if they have not been computed yet."""
    found: tuple[Sublane, ...] | None = index.cache.peek("sub-lanes")
    return found


def _sublanes(index: LaneIndex) -> Iterator[Sublane]:
    lane = index.lane
    sublane = lane["sublane"]
    order = np.argsort(sublane, kind="stable")
    border = np.searchsorted(sublane[order], np.arange(lane.sublanes + 1)).tolist()
    for low, high in pairwise(border):
        rows = order[low:high]
        part = lane.select_rows(rows, eager=("start", "end", "role"))
        yield Sublane(build_index(part, last=index.last), rows)


def rows_starting(index: LaneIndex, start: int, end: int) -> slice:
    """Rows of the events that start in the window [start, end); they are contiguous."""
    return slice(int(np.searchsorted(index.starts, start)), index.begun_before(max(start, end)))


def count_starting(index: LaneIndex, start: int, end: int) -> int:
    """Number of events that start in the window [start, end); events without times belong to any window."""
    timeless = bool((index.starts[:1] == INT_MISSING).any())
    return len(index.lane) if timeless else row_count(rows_starting(index, start, end))


def rows_between(index: LaneIndex, start: int, end: int) -> slice | Ints:
    """Rows of the events that run or start inside the window [start, end), by start.

    A slice where they are contiguous, else an int64 array of row numbers.
    """
    low = int(np.searchsorted(index.max_end, start, side="right"))
    high = index.begun_before(end)
    if end <= start or high <= low:
        return slice(low, low)
    if index.max_end is index.sorted_ends:  # ends ascend: no row between the two has ended
        return slice(low, high)
    ends = np.maximum(index.lane.take("end", slice(low, high)), index.starts[low:high] + 1)
    running = ends > start
    return slice(low, high) if bool(running.all()) else np.flatnonzero(running) + low


def event_at(index: LaneIndex, time: int, near_ns: int = 0) -> int:
    """Row of the event that runs at ``time``, the latest started if several do; -1: none.

    If none runs, the nearest event at most ``near_ns`` away (on a tie the earlier one).
    """
    rows = rows_between(index, time, time + 1)
    if isinstance(rows, slice):
        if rows.stop > rows.start:
            return int(rows.stop) - 1
    elif len(rows):
        return int(rows[-1])
    after = int(np.searchsorted(index.starts, time, side="right"))
    candidates = []
    if after:
        end = int(index.max_end[after - 1])
        candidates.append((time - (end - 1), int(np.searchsorted(index.max_end, end, side="left"))))
    if after < len(index.starts):
        candidates.append((int(index.starts[after]) - time, after))
    distance, row = min(candidates, default=(near_ns + 1, -1))
    return row if distance <= near_ns else -1


# Prefix sums over the rows of a lane and over time: sums of any window without a scan of all its rows.
#
# Rows are summed in blocks once; a window is the difference of two prefix sums plus the few rows at its edges.

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
    """A quantity that flows at a constant rate during each of n disjoint intervals."""

    #: starts, ends: int64 ns, ascending; intervals of zero duration carry nothing.
    starts: Ints
    ends: Ints
    amounts: Floats  #: float64, n + 1: amount before each interval (prefix sums), then the total

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
