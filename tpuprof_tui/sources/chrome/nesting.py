"""Slices in columns, and their nesting as call stacks: the enclosing slice of each, for millions of slices at once.

The parent of an event is the innermost earlier one that contains it wholly. An event that starts exactly where another
ends is its sibling, even if both have zero duration. Events are in nesting order (`order_of_nesting`): by thread,
then by start, then by falling duration.

In that order the parent of an event is the nearest preceding one that ends no earlier (for an event of zero duration:
that ends later), whatever crosses what. All events search at once by pointer jumping: from the preceding event to the
candidate that that one has reached so far, so a run of n siblings takes about log2(n) rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.model import Problem
from tpuprof_tui.model.sublanes import packed

from .columns import F64, I32, I64

I16 = npt.NDArray[np.int16]
Integers = npt.NDArray[np.integer]
#: At most this many remaining events are searched one by one instead of in vectorized rounds.
_FEW: Final = 32
#: Largest time for which several threads can be concatenated on one time axis.
_MOST: Final = 1 << 62
#: Most overlapping events that are moved one by one, each to the first free sub-lane.
_MOST_MOVED: Final = 4096
_MOST_SUBLANES: Final = 32_000


def order_of_nesting(thread: Integers, start: I64, end: I64, *keys: npt.NDArray[Any]) -> I64:
    """Indices that sort events into nesting order.

    ``keys`` sort events with equal start and end, most significant first; the last key is the index.
    """
    order = np.argsort(start, kind="stable")
    order = order[np.argsort(thread[order].astype(np.int16 if len(thread) and thread.max() < 1 << 15 else np.int32),
                             kind="stable")]  # fmt: skip
    tied_with_next = (start[order][1:] == start[order][:-1]) & (thread[order][1:] == thread[order][:-1])
    if tied_with_next.any():
        # few events share a start: only these are sorted by all keys
        tied_rows = np.flatnonzero(np.append(tied_with_next, False) | np.append(False, tied_with_next))
        tie_group = np.cumsum(np.append(True, ~tied_with_next))[tied_rows]
        rows = order[tied_rows]
        order[tied_rows] = rows[np.lexsort((rows, *(each[rows] for each in reversed(keys)), -end[rows], tie_group))]
    return order


def parents(start: I64, end: I64, thread: Integers) -> I64:
    """Index of the enclosing event of each event, in nesting order; -1 at top level."""
    concatenated = _concatenated(start, end, thread)
    if concatenated is None:
        return _parents_by_thread(start, end, thread)
    begin, until = concatenated
    count = len(begin)
    found = np.arange(-1, count - 1)
    if not count:
        return found
    alone = np.ones(count, np.bool_)
    alone[1:] = begin[1:] >= np.maximum.accumulate(until)[:-1]
    found[alone] = -1
    # an event of zero duration must end before its parent ends
    needed = until + (begin == until)
    _nearest_previous_at_least(found, np.flatnonzero(~alone), until, needed)
    return found


def depths(parent: Integers) -> npt.NDArray[np.int32]:
    """Nesting depth of each event: the number of events that enclose it."""
    depth = (parent >= 0).astype(np.int32)
    above = parent.copy()
    left = np.flatnonzero(parent >= 0)
    while len(left):
        over = above[left]
        depth[left] += depth[over]
        above[left] = above[over]
        left = left[above[left] >= 0]
    return depth


def subtree_end(depth: Integers) -> I64:
    """Index behind the last descendant of each event; ``depth`` as of `depths`, in nesting order."""
    # the same search backwards: the nearest following event that is no deeper
    negated = -np.asarray(depth[::-1], np.int64)
    found = np.arange(-1, len(negated) - 1)
    _nearest_previous_at_least(found, np.arange(len(negated)), negated, negated)
    return len(negated) - 1 - found[::-1]


def innermost(
    outer: tuple[I64, I64, Integers], inner: tuple[I64, I64, Integers], parent: Integers | None = None
) -> I64:  # fmt: skip
    """Index of the last event of ``outer`` that contains each event of ``inner``; -1 if none does.

    Args:
        outer, inner: Starts, ends (ns), threads; outer in nesting order. An inner event of zero duration is contained
            in one that begins no later and ends after it.
        parent: `parents` of outer, if already computed.
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
        rows = order[edges[number] : edges[number + 1]]
        low, high = int(first[number]), int(first[number + 1])
        last = low - 1 + np.searchsorted(outer[0][low:high], inner[0][rows], side="right")
        found[rows] = np.where(last >= low, last, -1)
    _nearest_previous_at_least(found, np.flatnonzero(found >= 0), outer[1], np.maximum(inner[1], inner[0] + 1), parent)
    return found


def nested_sublanes(start: I64, end: I64, depth: Integers) -> I16:
    """Sub-lanes for the events of one thread by nesting depth, so that events of one sub-lane do not overlap.

    Events are in nesting order. Of those that cross at the same depth, the later one goes to the first free sub-lane
    below.
    """
    sublane = np.minimum(depth, _MOST_SUBLANES - 1).astype(np.int16)
    moved = _crossing(start, end, sublane)
    if len(moved):
        _move_overlapping(start, end, sublane, moved)
    return sublane


def _concatenated(start: I64, end: I64, thread: Integers) -> tuple[I64, I64] | None:
    """Starts and ends with the threads concatenated on one time axis; None if that would overflow int64."""
    if not len(start) or thread[0] == thread[-1]:
        return start, end
    low, span = int(start.min()), int(end.max()) - int(start.min()) + 1
    number = np.cumsum(np.diff(thread, prepend=thread[:1]) != 0)
    if span * (int(number[-1]) + 1) > _MOST:
        return None
    offset = number * span - low
    return start + offset, end + offset


def _parents_by_thread(start: I64, end: I64, thread: Integers) -> I64:
    edges = [0, *(np.flatnonzero(np.diff(thread)) + 1).tolist(), len(thread)]
    found = []
    for low, high in pairwise(edges):
        parent = parents(start[low:high], end[low:high], np.zeros(high - low, np.int64))
        found.append(np.where(parent >= 0, parent + low, -1))
    return np.concatenate(found)


def _nearest_previous_at_least(found: I64, left: I64, height: I64, needed: I64, above: Integers | None = None) -> None:
    """Moves ``found`` of each event to the nearest preceding one whose height is at least the one needed; -1 if none.

    Args:
        found: First candidate of each event; all events between it and the event are too low. Changed in place.
        left: Indices of the events to search for.
        height, needed: Of each event; an event that is too low for one need is too low for any higher need.
        above: Next candidate after one that is too low; None: the candidate that that one has reached so far.
    """
    above = found if above is None else above
    left = left[found[left] >= 0]
    while len(left) > _FEW:
        left = left[height[found[left]] < needed[left]]
        found[left] = above[found[left]]
        left = left[found[left] >= 0]
    for row in left.tolist():
        candidate, least = int(found[row]), needed[row]
        while candidate >= 0 and height[candidate] < least:
            candidate = int(above[candidate])
        found[row] = candidate


def _crossing(start: I64, end: I64, sublane: I16) -> I64:
    """Events that begin before the preceding event of their sub-lane has ended, and do not fit on that sub-lane."""
    order = np.argsort(sublane, kind="stable")
    sorted_sublane, begin, until = sublane[order], start[order], end[order]
    odd = (sorted_sublane[1:] == sorted_sublane[:-1]) & (begin[1:] < until[:-1])
    found = []
    for number in np.flatnonzero(np.bincount(sorted_sublane[1:][odd])).tolist():
        low, high = np.searchsorted(sorted_sublane, (number, number + 1))
        sublanes = packed(begin[low:high], until[low:high])
        if sublanes is not None:
            found.append(order[low:high][sublanes > 0])
    return np.sort(np.concatenate(found)) if found else np.zeros(0, np.int64)


def _move_overlapping(start: I64, end: I64, sublane: I16, moved: I64) -> None:
    unmoved = np.ones(len(sublane), np.bool_)
    unmoved[moved] = False
    rows = np.flatnonzero(unmoved)
    order = rows[np.argsort(sublane[rows], kind="stable")]
    sublane_count = int(sublane[rows].max(initial=-1)) + 1
    if len(moved) > _MOST_MOVED:
        sublanes = packed(start[moved], end[moved])
        sublane[moved] = np.minimum(sublane_count + (0 if sublanes is None else sublanes), _MOST_SUBLANES - 1)
        return
    edges = np.searchsorted(sublane[order], np.arange(sublane_count + 1)).tolist()
    begins = [start[order[low:high]] for low, high in pairwise(edges)]
    ends = [end[order[low:high]] for low, high in pairwise(edges)]
    # moved events come by start: the last end on each sub-lane decides whether it is free
    reach: dict[int, int] = {}
    for row in moved.tolist():
        begin, until, number = int(start[row]), int(end[row]), int(sublane[row]) + 1
        while number < _MOST_SUBLANES - 1:
            free = reach.get(number, begin) <= begin
            if free and number < sublane_count:
                # an event of zero duration is inside one that begins with it
                index = int(np.searchsorted(begins[number], until, side="left" if until > begin else "right")) - 1
                free = index < 0 or (ends[number][index] <= begin and (begins[number][index] < begin or until == begin))
            if free:
                break
            number += 1
        sublane[row] = number
        reach[number] = max(reach.get(number, until), until)


class Nesting:
    """Nesting of slices that are in nesting order; each part is computed on first use.

    ``thread``: of each; None: all are of one.
    """

    def __init__(self, start: I64, end: I64, thread: Integers | None = None) -> None:
        self._places = start, end, np.zeros(len(start), np.int8) if thread is None else thread

    @cached_property
    def parent(self) -> I32:
        """Index of the enclosing slice; -1 at top level."""
        return parents(*self._places).astype(np.int32)

    @cached_property
    def depth(self) -> I32:
        """Number of enclosing slices."""
        return depths(self.parent)

    @cached_property
    def sublane(self) -> I16:
        """Sub-lane of each."""
        return nested_sublanes(*self._places[:2], self.depth)

    @cached_property
    def _until(self) -> I64:
        return subtree_end(self.depth)

    def total(self, own: npt.NDArray[Any]) -> Any:
        """Sums of a value over each slice and those in it."""
        sums = np.append(0, np.cumsum(own))
        return sums[self._until] - sums[:-1]

    def without_children(self, total: I64) -> Any:
        """A value of each slice without that of the slices directly in it."""
        found, inner = total.copy(), np.flatnonzero(self.parent >= 0)
        np.subtract.at(found, self.parent[inner], total[inner])
        return found


class CounterSeries(Struct, frozen=True, eq=False):
    """A counter: samples by time."""

    #: process, name: Its process and name.
    process: str
    name: str
    unit: str  #: Unit of the values; empty if there is none
    times: I64  #: int64 ns, ascending
    values: F64  #: float64
    device: int = -1  #: Device number; -1 if unknown


class Slices(Struct, frozen=True, eq=False, dict=True, kw_only=True):
    """Slices in columns of one length: by thread, then start, outer before inner ones."""

    #: Columns with a value for each slice.
    per_slice: ClassVar[tuple[str, ...]] = ()

    first: I64  #: int64, one longer than the threads: row of the first slice of each, and the end
    #: start, end: int64 ns.
    start: I64
    end: I64
    name: I32  #: int32 codes into ``names``
    file_order: npt.NDArray[np.integer]  #: Number among the slices of the file
    names: tuple[str, ...]
    texts: tuple[str, ...]  #: Texts of codes in further columns; code -1: absent
    counters: tuple[CounterSeries, ...] = ()  #: Counters
    problems: tuple[Problem, ...] = ()  #: Defects of the file
    #: Only of slices that are set aside: int64 ns, from the recording back to their start, below 0, or on to their
    #: start or end, above; 0: they are far from their launch only.
    away: I64 = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.start)

    def thread_of(self, rows: I64) -> I64:
        """Index of the thread of the slices in some rows."""
        return np.asarray(np.searchsorted(self.first, rows, side="right") - 1)

    def by_thread(self) -> Iterator[tuple[int, int, int]]:
        """Index of each thread that has slices, row of its first one, and of the next thread's."""
        edges = self.first.tolist()
        return ((thread, low, high) for thread, (low, high) in enumerate(pairwise(edges)) if low < high)

    def named(self, test: Callable[[str], object]) -> npt.NDArray[np.bool_]:
        """Mask of the slices whose name passes a test, which is called once for each distinct name."""
        passing = np.array([bool(test(name)) for name in self.names], np.bool_)
        return passing[self.name] if len(passing) else np.zeros(0, np.bool_)

    def selected(self: Some, rows: I64) -> Some:
        """The slices in some rows, which are by thread; all else stays."""
        count = np.bincount(self.thread_of(rows), minlength=len(self.first) - 1)
        columns = {key: getattr(self, key)[rows] for key in self.per_slice}
        return replace(self, first=np.append(0, np.cumsum(count)), **columns)


Some = TypeVar("Some", bound=Slices)
