"""Events of a lane that overlap: on which of several lines each goes.

Where events only overlap, each takes the first line that is free (`packed`): as few lines as there are events at once.
Where they lie within one another, as calls do, each lies on the line of its depth (`nested`).
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

#: Lines that are filled one after another, each at once, before all others are filled event by event.
_SWEPT: Final = 8
#: Sub-lanes that a lane can have; what needs more shares the last.
_MOST_SUBLANES = 32_000


def packed(start: I64, end: I64) -> I64 | None:
    """The line of each event, int64 from 0 without gaps: the first whose last event has ended when it begins.

    Events are ordered by start; where two begin together, as they are to be placed. None where nothing overlaps.
    O(events), for each of the first ``_SWEPT`` lines; what needs more of them is dealt one by one.
    """
    if not bool((start[1:] < end[:-1]).any()):
        return None
    lines = np.zeros(len(start), np.int64)
    left = np.arange(len(start))
    for line in range(_SWEPT):
        taken = _first_line(start[left], end[left])
        lines[left[taken]] = line
        left = left[~taken]
        if not len(left):
            return lines
    lines[left] = _one_by_one(start[left], end[left]) + _SWEPT
    return lines


def split_overlaps(start: I64, end: I64) -> tuple[I16 | None, int]:
    """Sub-lane (int16) of each event by start, none of which overlap, and their number; (None, 1) for one alone."""
    lines = packed(start, end)
    return (None, 1) if lines is None else _as_sublanes(lines)


def nested(start: I64, end: I64, thread: npt.NDArray[Any]) -> tuple[I64, I64]:
    """Depth of each slice within those of its thread, and the number of its stack.

    Slices are ordered by start, then by falling end. Those of a thread that cross (neither within the other, nor apart)
    go to different stacks.
    """
    stacks: list[list[int]] = []
    of_thread: dict[Any, list[int]] = {}
    depths, numbers = np.zeros(len(start), np.int64), np.zeros(len(start), np.int64)
    rows = zip(start.tolist(), end.tolist(), thread.tolist(), strict=True)
    for row, (begin, finish, name) in enumerate(rows):
        mine = of_thread.setdefault(name, [])
        for number in mine:
            stack = stacks[number]
            while stack and stack[-1] <= begin:
                stack.pop()
            if not stack or finish <= stack[-1]:
                break
        else:
            number = len(stacks)
            stacks.append([])
            mine.append(number)
        depths[row], numbers[row] = len(stacks[number]), number
        stacks[number].append(finish)
    return depths, numbers


def nested_depths(start: I64, end: I64, thread: npt.NDArray[Any]) -> tuple[I16, I64, int]:
    """Sub-lanes of slices by depth (those of one do not overlap), stacks, number of sub-lanes; see `nested`."""
    depths, numbers = nested(start, end, thread)
    heights = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    np.maximum.at(heights, numbers, depths + 1)
    sublane, count = _as_sublanes((np.cumsum(heights) - heights)[numbers] + depths)
    return sublane, numbers, count


def _as_sublanes(lines: I64) -> tuple[I16, int]:
    """Lines as sub-lanes, and how many there are."""
    sublane = np.minimum(lines, _MOST_SUBLANES - 1).astype(np.int16)
    return sublane, int(sublane.max(initial=0)) + 1


def _first_line(start: I64, end: I64) -> Bools:
    """What the first line takes of events ordered by start: each that begins when the one before it has ended."""
    count = len(start)
    # a line leaves the events in their order only behind those that reach into the next one
    breaks = np.append(start[1:] < end[:-1], True)
    stops = np.flatnonzero(breaks)
    leads_to = _next_begins(start, end[stops], stops)
    # from each of these places to the first of them at or behind where the line goes on
    before = np.concatenate([[0], np.cumsum(breaks)])
    visited = _path(before[leads_to])
    steps = np.zeros(count + 1, np.int8)
    steps[0] = 1
    steps[leads_to[visited]] += 1
    steps[stops[visited] + 1] -= 1
    taken: Bools = np.cumsum(steps[:count], dtype=np.int8).astype(np.bool_)
    return taken


def _next_begins(start: I64, end: I64, places: I64) -> I64:
    """For events that reach into the next one, the first place that begins at their end or behind it.

    The last event, which reaches into none, and those behind whose end none begins lead past the end.
    """
    found = np.minimum(places + 2, len(start))
    left = np.arange(len(places))
    # most are found within a few events: looking them up costs more
    for _ in range(_SWEPT):
        left = left[found[left] < len(start)]
        left = left[start[found[left]] < end[left]]
        if not len(left):
            return found
        found[left] += 1
    found[left] = np.searchsorted(start, end[left], side="left")
    return found


def _path(following: I64) -> I64:
    """The places visited from place 0 on, ascending, where each leads to a later one; the last leads past the end.

    In blocks of about the root of all places, all blocks at once: where one leaves a block from each place of it, then
    where each block is entered, then what is visited in it.
    """
    count = len(following)
    size = max(isqrt(count), 1)
    blocks = -(-count // size)
    # by place in the block, then by block: what is looked at together lies together
    padded = np.full(blocks * size, count, np.int64)
    padded[:count] = following
    leads = np.ascontiguousarray(padded.reshape(blocks, size).T)
    begins = np.arange(blocks) * size
    leaves = leads.copy()
    for place in range(size - 2, -1, -1):
        within = leaves[place] - begins
        inside = np.flatnonzero(within < size)
        leaves[place, inside] = leaves[within[inside], inside]
    entered = np.full(blocks, -1, np.int64)
    at = 0
    while at < count:
        entered[at // size] = at % size
        at = int(leaves[at % size, at // size])
    seen = np.zeros((size, blocks), np.bool_)
    for place in range(size):
        here = np.flatnonzero(entered == place)
        seen[place, here] = True
        entered[here] = leads[place, here] - begins[here]
    return np.flatnonzero(seen.T.reshape(-1)[:count])


def _one_by_one(start: I64, end: I64) -> I64:
    """The same as `packed`, event by event."""
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
