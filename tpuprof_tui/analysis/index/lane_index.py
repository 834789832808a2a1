"""What the timeline asks of a lane, answered in O(log n): occupancy of cells, the event at a time, rows of a window."""

from __future__ import annotations

import numpy as np
from msgspec import Struct, field

from tpuprof_tui.model import Lane, Role
from tpuprof_tui.model.lane import row_count
from tpuprof_tui.model.mapped_arrays import MappedArrays

from ..derived import Derived
from .intervals import Intervals, Ints


class LaneIndex(Struct, frozen=True, eq=False, weakref=True):
    """A lane with the sums and bounds its views need.

    Attributes:
        lane: The lane.
        work, wait, sync: When events of each role ran (unions: what overlaps counts once).
        rest: When a wait or a sync ran and no work.
        starts: Starts of all events, int64 ns, ascending; row i of the lane is element i.
        max_end: Running maximum of the events' ends, an event of no length counted as 1 ns.
        sorted_ends: The same ends, ascending.
        derived: What is computed of this lane alone.
    """

    lane: Lane
    work: Intervals
    wait: Intervals
    sync: Intervals
    rest: Intervals
    starts: Ints
    max_end: Ints
    sorted_ends: Ints
    derived: Derived = field(default_factory=Derived)


class Cells(Struct, frozen=True, eq=False):
    """What fills each of n cells of a lane.

    Attributes:
        busy, wait, sync: int64 ns of work, waits and syncs inside the cell.
        count: int64, events that run or start in the cell.
        first: int64, row of the first event (by start) that runs or starts in the cell; -1 without one.
    """

    busy: Ints
    wait: Ints
    sync: Ints
    count: Ints
    first: Ints


def build_index(lane: Lane, arrays: MappedArrays | None = None) -> LaneIndex:
    """The index of a lane: O(n) where its events do not overlap, else O(n log n); nearly all of it outside the GIL.

    ``arrays`` keep those of the index; None: they stay in memory.
    """
    arrays = MappedArrays() if arrays is None else arrays
    starts, ends, role = lane["start"], lane["end"], lane["role"]
    chosen = (slice(None) if (mask := role == wanted).all() else mask for wanted in (Role.WORK, Role.WAIT, Role.SYNC))
    work, wait, sync = (Intervals.union(starts[which], ends[which]) for which in chosen)
    rest = wait.union_with(sync).minus(work)
    # an event of no length still has to be found where it lies
    visible_ends = ends if bool((ends > starts).all()) else np.maximum(ends, starts + 1)
    ascending = bool((visible_ends[1:] >= visible_ends[:-1]).all())
    max_end = visible_ends if ascending else np.maximum.accumulate(visible_ends)
    sorted_ends = visible_ends if ascending else np.sort(visible_ends)
    work, wait, sync, rest = (
        Intervals(*map(arrays.kept, (each.starts, each.ends, each.cum))) for each in (work, wait, sync, rest)
    )
    max_end = arrays.kept(max_end)
    sorted_ends = max_end if ascending else arrays.kept(sorted_ends)
    arrays.give_back()
    return LaneIndex(lane, work, wait, sync, rest, starts, max_end, sorted_ends, Derived(arrays.give_back))


def cells(index: LaneIndex, edges: Ints) -> Cells:
    """What fills the n cells between n + 1 ascending edges (ns), exactly, at any zoom; O(n log events).

    The sum of ``busy`` over the cells is ``index.work.between(edges[0], edges[-1])``; cells of no width hold nothing.
    """
    left, right = edges[:-1], edges[1:]
    started = np.searchsorted(index.starts, right, side="left")
    ended = np.searchsorted(index.sorted_ends, left, side="right")
    first = np.searchsorted(index.max_end, left, side="right")
    wide = right > left
    return Cells(
        busy=np.diff(index.work.covered(edges)),
        wait=np.diff(index.wait.covered(edges)),
        sync=np.diff(index.sync.covered(edges)),
        count=np.where(wide, started - ended, 0),
        first=np.where(wide & (first < started), first, -1),
    )


def rows_starting(index: LaneIndex, start: int, end: int) -> slice:
    """Rows of the events that start in the window [start, end): neighbours."""
    low, high = np.searchsorted(index.starts, (start, max(start, end)))
    return slice(int(low), int(high))


def starting_between(index: LaneIndex, start: int, end: int) -> int:
    """Number of events that start in the window [start, end)."""
    return row_count(rows_starting(index, start, end))


def rows_between(index: LaneIndex, start: int, end: int) -> slice | Ints:
    """Rows of the events that run or start inside the window [start, end), by start.

    A slice where they are neighbours, else an int64 array of row numbers.
    """
    low = int(np.searchsorted(index.max_end, start, side="right"))
    high = int(np.searchsorted(index.starts, end, side="left"))
    if end <= start or high <= low:
        return slice(low, low)
    if index.max_end is index.sorted_ends:  # ends ascend as starts do: nothing between the two has ended
        return slice(low, high)
    ends = np.maximum(index.lane.take("end", slice(low, high)), index.starts[low:high] + 1)
    running = ends > start
    return slice(low, high) if bool(running.all()) else np.flatnonzero(running) + low


def event_at(index: LaneIndex, time: int, near_ns: int = 0) -> int:
    """Row of the event that runs at ``time``, of several the one that started last; -1 where there is none.

    Where nothing runs, the nearest event at most ``near_ns`` away is taken (the earlier one of two).
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
