"""Assigns overlapping events of a lane to sub-lanes (lines), so that events of one line do not overlap.

Partially overlapping events take the first free line (`packed`): as many lines as events are active at once. Nested
events, such as calls, take the line of their depth (`nested`).
"""

from __future__ import annotations

import heapq
from math import isqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

I16 = npt.NDArray[np.int16]
I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Number of lines that are filled by vectorized passes; further lines are filled event by event.
_SWEPT: Final = 8
#: Maximum number of sub-lanes of a lane; further lines share the last one.
_MOST_SUBLANES = 32_000


def packed(start: I64, end: I64) -> I64 | None:
    """Greedy line assignment: each event takes the first line whose last event has ended when it begins.

    O(events) for each of the first ``_SWEPT`` lines; events on further lines are assigned one by one with a heap.

    Args:
        start, end: Events ordered by start; events of equal start in order of placement.

    Returns:
        int64 line of each event, from 0 without gaps; None if no events overlap.
    """
    if not bool((start[1:] < end[:-1]).any()):
        return None
    lines = np.zeros(len(start), np.int64)
    remaining = np.arange(len(start))
    for line in range(_SWEPT):
        on_line = _first_line(start[remaining], end[remaining])
        lines[remaining[on_line]] = line
        remaining = remaining[~on_line]
        if not len(remaining):
            return lines
    lines[remaining] = _packed_by_heap(start[remaining], end[remaining]) + _SWEPT
    return lines


def split_overlaps(start: I64, end: I64) -> tuple[I16 | None, int]:
    """Sub-lane (int16) of each event by `packed`, and the number of sub-lanes; (None, 1) if no events overlap."""
    lines = packed(start, end)
    return (None, 1) if lines is None else _as_sublanes(lines)


def nested(start: I64, end: I64, thread: npt.NDArray[Any]) -> tuple[I64, I64]:
    """Nesting depth of each slice within its thread, and the number of its stack.

    Slices of a thread that partially overlap (neither nested nor disjoint) are put on different stacks.

    Args:
        start, end: Slices ordered by start, then by descending end.
        thread: Thread of each slice.
    """
    stacks: list[list[int]] = []
    of_thread: dict[Any, list[int]] = {}
    depths, numbers = np.zeros(len(start), np.int64), np.zeros(len(start), np.int64)
    rows = zip(start.tolist(), end.tolist(), thread.tolist(), strict=True)
    for row, (begin, finish, name) in enumerate(rows):
        own_stacks = of_thread.setdefault(name, [])
        for number in own_stacks:
            stack = stacks[number]
            while stack and stack[-1] <= begin:
                stack.pop()
            if not stack or finish <= stack[-1]:
                break
        else:
            number = len(stacks)
            stacks.append([])
            own_stacks.append(number)
        depths[row], numbers[row] = len(stacks[number]), number
        stacks[number].append(finish)
    return depths, numbers


def nested_depths(start: I64, end: I64, thread: npt.NDArray[Any]) -> tuple[I16, I64, int]:
    """Sub-lane of each slice by stack and depth, its stack, and the number of sub-lanes; see `nested`."""
    depths, numbers = nested(start, end, thread)
    heights = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    np.maximum.at(heights, numbers, depths + 1)
    sublane, count = _as_sublanes((np.cumsum(heights) - heights)[numbers] + depths)
    return sublane, numbers, count


def _as_sublanes(lines: I64) -> tuple[I16, int]:
    """Lines as int16 sub-lanes, and their number."""
    sublane = np.minimum(lines, _MOST_SUBLANES - 1).astype(np.int16)
    return sublane, int(sublane.max(initial=0)) + 1


def _first_line(start: I64, end: I64) -> Bools:
    """Mask of the events on the first line: each begins when the previous event of the line has ended.

    Events are ordered by start.
    """
    count = len(start)
    # the line skips events only after an event that overlaps its successor
    breaks = np.append(start[1:] < end[:-1], True)
    stops = np.flatnonzero(breaks)
    leads_to = _next_begins(start, end[stops], stops)
    # map each of these stops to the first stop at or after the event where the line continues
    before = np.concatenate([[0], np.cumsum(breaks)])
    visited = _path(before[leads_to])
    steps = np.zeros(count + 1, np.int8)
    steps[0] = 1
    steps[leads_to[visited]] += 1
    steps[stops[visited] + 1] -= 1
    on_line: Bools = np.cumsum(steps[:count], dtype=np.int8).astype(np.bool_)
    return on_line


def _next_begins(start: I64, end: I64, indices: I64) -> I64:
    """Index of the first event that begins at or after the end of each given event.

    Args:
        start: Starts of all events, ascending.
        end: Ends of the given events.
        indices: Indices of the given events; each overlaps its successor, except the last event.

    Returns:
        int64 indices; ``len(start)`` if no such event exists.
    """
    found = np.minimum(indices + 2, len(start))
    remaining = np.arange(len(indices))
    # most are found within a few events, which is cheaper than a binary search
    for _ in range(_SWEPT):
        remaining = remaining[found[remaining] < len(start)]
        remaining = remaining[start[found[remaining]] < end[remaining]]
        if not len(remaining):
            return found
        found[remaining] += 1
    found[remaining] = np.searchsorted(start, end[remaining], side="left")
    return found


def _path(following: I64) -> I64:
    """Indices visited from index 0 by following the links ``following``, ascending.

    Each link points to a later index; the last points past the end. Square-root decomposition, vectorized across
    blocks: first the exit of each index from its block, then the entry of each block, then the indices visited in it.
    """
    count = len(following)
    size = max(isqrt(count), 1)
    blocks = -(-count // size)
    # axes: position in the block, block; positions processed together are contiguous
    padded = np.full(blocks * size, count, np.int64)
    padded[:count] = following
    leads = np.ascontiguousarray(padded.reshape(blocks, size).T)
    begins = np.arange(blocks) * size
    leaves = leads.copy()
    for position in range(size - 2, -1, -1):
        within = leaves[position] - begins
        inside = np.flatnonzero(within < size)
        leaves[position, inside] = leaves[within[inside], inside]
    entered = np.full(blocks, -1, np.int64)
    at = 0
    while at < count:
        entered[at // size] = at % size
        at = int(leaves[at % size, at // size])
    seen = np.zeros((size, blocks), np.bool_)
    for position in range(size):
        here = np.flatnonzero(entered == position)
        seen[position, here] = True
        entered[here] = leads[position, here] - begins[here]
    return np.flatnonzero(seen.T.reshape(-1)[:count])


def _packed_by_heap(start: I64, end: I64) -> I64:
    """Line of each event as in `packed`, event by event with heaps."""
    lines = np.zeros(len(start), np.int64)
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    opened = 0
    for row, (begin, finish) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            line = heapq.heappop(free)
        else:
            line, opened = opened, opened + 1
        lines[row] = line
        heapq.heappush(busy, (finish, line))
    return lines
