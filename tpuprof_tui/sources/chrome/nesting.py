"""Which event of a thread encloses which, for millions of them at once.

An event lies below the innermost earlier one that contains it wholly. One that starts exactly where another ends is
its sibling, even where both are of no length. Events are told in the order of nesting: thread by thread, in each by
start, then from the longest to the shortest.

In that order the event that encloses another is the nearest before it that ends no earlier (for one of no length:
that ends later), whatever crosses what. All look for theirs at once: from the one before on, and where that is too
short from what that one found so far: a row of siblings is passed in as many rounds as its length has bits.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model.sublanes import nested, packed

I16 = npt.NDArray[np.int16]
I64 = npt.NDArray[np.int64]
Integers = npt.NDArray[np.integer]
#: As many events as are looked at one by one rather than all in a round.
_FEW: Final = 32
#: Times beyond this leave no place for several threads on one line.
_MOST: Final = 1 << 62
#: Events that found their line taken, for which a free one is looked for one by one.
_MOST_MOVED: Final = 4096
_MOST_SUBLANES: Final = 32_000


def order_of_nesting(thread: Integers, start: I64, end: I64, *then: npt.NDArray[Any]) -> I64:
    """The events in the order of nesting, as places.

    Args:
        thread: Number of the thread of each.
        start, end: ns.
        then: What decides between those that begin and end together, the first most; the place does where nothing else.
    """
    order = np.argsort(start, kind="stable")
    order = order[np.argsort(thread[order].astype(np.int16 if len(thread) and thread.max() < 1 << 15 else np.int32),
                             kind="stable")]  # fmt: skip
    alike = (start[order][1:] == start[order][:-1]) & (thread[order][1:] == thread[order][:-1])
    if alike.any():
        # few begin together: only these are sorted by more than start
        tied = np.flatnonzero(np.append(alike, False) | np.append(False, alike))
        together = np.cumsum(np.append(True, ~alike))[tied]
        rows = order[tied]
        order[tied] = rows[np.lexsort((rows, *(each[rows] for each in reversed(then)), -end[rows], together))]
    return order


def parents(start: I64, end: I64, thread: Integers) -> I64:
    """The place of the event that encloses each; -1 where none does.

    Args:
        start, end: ns, in the order of nesting.
        thread: Number of the thread of each, ascending.
    """
    lines = _one_line(start, end, thread)
    if lines is None:
        return _of_each_thread(start, end, thread)
    begin, until = lines
    count = len(begin)
    found = np.arange(-1, count - 1)
    if not count:
        return found
    alone = np.ones(count, np.bool_)
    alone[1:] = begin[1:] >= np.maximum.accumulate(until)[:-1]
    found[alone] = -1
    # what is of no length has to end before what encloses it
    needed = until + (begin == until)
    _look_back(found, np.flatnonzero(~alone), until, needed)
    return found


def depths(parent: Integers) -> npt.NDArray[np.int32]:
    """How many events enclose each."""
    depth = (parent >= 0).astype(np.int32)
    above = parent.copy()
    left = np.flatnonzero(parent >= 0)
    while len(left):
        over = above[left]
        depth[left] += depth[over]
        above[left] = above[over]
        left = left[above[left] >= 0]
    return depth


def behind(depth: Integers) -> I64:
    """The place behind each event and all that it encloses: events of ``depths`` in the order of nesting."""
    # the same search from the end: the nearest that lies no deeper
    turned = -np.asarray(depth[::-1], np.int64)
    found = np.arange(-1, len(turned) - 1)
    _look_back(found, np.arange(len(turned)), turned, turned)
    return len(turned) - 1 - found[::-1]


def innermost(
    outer: tuple[I64, I64, Integers], inner: tuple[I64, I64, Integers], parent: I64 | None = None
) -> I64:  # fmt: skip
    """The place of the last event of ``outer`` that contains each of ``inner``; -1 where none does.

    Args:
        outer, inner: Starts, ends, ns, and threads; outer in the order of nesting. An inner event of no length lies in
            what begins no later and ends after it.
        parent: ``parents`` of outer, where they are known.
    """
    parent = parents(*outer) if parent is None else parent
    count = len(parent)
    found = np.full(len(inner[0]), -1, np.int64)
    if not count or not len(found):
        return found
    threads = np.arange(int(max(outer[2].max(), inner[2].max())) + 2)
    first = np.searchsorted(outer[2], threads)
    order = np.argsort(inner[2], kind="stable")
    edges = np.searchsorted(inner[2][order], threads)
    for number in np.flatnonzero(np.diff(first)).tolist():
        mine = order[edges[number] : edges[number + 1]]
        low, high = int(first[number]), int(first[number + 1])
        last = low - 1 + np.searchsorted(outer[0][low:high], inner[0][mine], side="right")
        found[mine] = np.where(last >= low, last, -1)
    _look_back(found, np.flatnonzero(found >= 0), outer[1], np.maximum(inner[1], inner[0] + 1), parent)
    return found


def nested_sublanes(start: I64, end: I64, depth: Integers) -> tuple[I16, int]:
    """Lines for the events of one thread so that those of one line do not overlap: as deep as each is nested.

    Events that cross lie at one depth; the later one takes the first line below that is free.

    Args:
        start, end, depth: In the order of nesting.

    Returns:
        The line of each, and how many lines there are.
    """
    line = np.minimum(depth, _MOST_SUBLANES - 1).astype(np.int16)
    moved = _crossing(start, end, line)
    if len(moved):
        _moved(start, end, line, moved)
    return line, int(line.max(initial=0)) + 1


def stacked_sublanes(start: I64, end: I64) -> I16:
    """Lines for the events of one thread as ``nested_depths`` gives them, by numpy where nothing crosses.

    Args:
        start, end: In the order of nesting.
    """
    thread = np.zeros(len(start), np.int8)
    stack, depth = np.zeros(len(start), np.int64), np.zeros(len(start), np.int64)
    # not all that have begun and not ended enclose these
    crossing = np.flatnonzero(_open(start, end) != depths(parents(start, end, thread)))
    if len(crossing):
        begins = start[crossing]
        rows = np.searchsorted(begins, end) > np.searchsorted(begins, start)
        rows[crossing] = True
        depth[rows], stack[rows] = nested(start[rows], end[rows], thread[rows])
    first = stack == 0
    depth[first] = _open(start[first], end[first])
    heights = np.zeros(int(stack.max(initial=0)) + 1, np.int64)
    np.maximum.at(heights, stack, depth + 1)
    lines = (np.cumsum(heights) - heights)[stack] + depth
    found: I16 = np.minimum(lines, _MOST_SUBLANES - 1).astype(np.int16)
    return found


def _open(start: I64, end: I64) -> I64:
    """How many events have begun before each, in the order of nesting, and not ended."""
    # those of no length never last
    lasts = end > start
    return np.cumsum(lasts) - lasts - np.searchsorted(np.sort(end[lasts]), start, side="right")


def _one_line(start: I64, end: I64, thread: Integers) -> tuple[I64, I64] | None:
    """Starts and ends with the threads one behind the other; None where int64 is too small for that."""
    if not len(start) or thread[0] == thread[-1]:
        return start, end
    low, span = int(start.min()), int(end.max()) - int(start.min()) + 1
    number = np.cumsum(np.diff(thread, prepend=thread[:1]) != 0)
    if span * (int(number[-1]) + 1) > _MOST:
        return None
    offset = number * span - low
    return start + offset, end + offset


def _of_each_thread(start: I64, end: I64, thread: Integers) -> I64:
    edges = [0, *(np.flatnonzero(np.diff(thread)) + 1).tolist(), len(thread)]
    found = []
    for low, high in pairwise(edges):
        mine = parents(start[low:high], end[low:high], np.zeros(high - low, np.int64))
        found.append(np.where(mine >= 0, mine + low, -1))
    return np.concatenate(found)


def _look_back(found: I64, left: I64, height: I64, needed: I64, above: I64 | None = None) -> None:
    """Moves ``found`` of each event to the nearest before it whose height is at least what it needs; -1 for none.

    Args:
        found: Where each begins to look; all between that and the event are too low.
        left: Which events look.
        height, needed: Of each event; what is too low for a lower one is too low for a higher one.
        above: Where one too low leads; None: where itself has looked so far.
    """
    above = found if above is None else above
    left = left[found[left] >= 0]
    while len(left) > _FEW:
        left = left[height[found[left]] < needed[left]]
        found[left] = above[found[left]]
        left = left[found[left] >= 0]
    for row in left.tolist():
        at, least = int(found[row]), needed[row]
        while at >= 0 and height[at] < least:
            at = int(above[at])
        found[row] = at


def _crossing(start: I64, end: I64, line: I16) -> I64:
    """Events that begin before what lies before them on their line has ended, and are not the first there."""
    order = np.argsort(line, kind="stable")
    sorted_line, begin, until = line[order], start[order], end[order]
    odd = (sorted_line[1:] == sorted_line[:-1]) & (begin[1:] < until[:-1])
    found = []
    for number in np.flatnonzero(np.bincount(sorted_line[1:][odd])).tolist():
        low, high = np.searchsorted(sorted_line, (number, number + 1))
        lines = packed(begin[low:high], until[low:high])
        if lines is not None:
            found.append(order[low:high][lines > 0])
    return np.sort(np.concatenate(found)) if found else np.zeros(0, np.int64)


def _moved(start: I64, end: I64, line: I16, moved: I64) -> None:
    """Gives events whose line is taken another one."""
    stays = np.ones(len(line), np.bool_)
    stays[moved] = False
    rows = np.flatnonzero(stays)
    order = rows[np.argsort(line[rows], kind="stable")]
    most = int(line[rows].max(initial=-1)) + 1
    if len(moved) > _MOST_MOVED:
        packs = packed(start[moved], end[moved])
        line[moved] = np.minimum(most + (0 if packs is None else packs), _MOST_SUBLANES - 1)
        return
    edges = np.searchsorted(line[order], np.arange(most + 1)).tolist()
    begins = [start[order[low:high]] for low, high in pairwise(edges)]
    ends = [end[order[low:high]] for low, high in pairwise(edges)]
    # what was moved comes by start: of each line the last end tells whether it is free
    reach: dict[int, int] = {}
    for row in moved.tolist():
        begin, until, number = int(start[row]), int(end[row]), int(line[row]) + 1
        while number < _MOST_SUBLANES - 1:
            free = reach.get(number, begin) <= begin
            if free and number < most:
                # what is of no length lies in what begins with it
                place = int(np.searchsorted(begins[number], until, side="left" if until > begin else "right")) - 1
                free = place < 0 or (ends[number][place] <= begin and (begins[number][place] < begin or until == begin))
            if free:
                break
            number += 1
        line[row] = number
        reach[number] = max(reach.get(number, until), until)
