"""The critical path: the longest chain of work, waits and gaps, found by a walk back from the end of a window.

From what ended last the walk goes to what let it begin, and so on to the start. What lets an event begin is the latest
to end of: what its source links it to, what ran before it on its lane, and, on a lane of which the source knows no
links, what ran before it on its unit; of one that a call started with others, as a graph's replay does, also those of
its unit. What lets a wait end is what its source links it to, else what ended last before it on any unit: the others
came late. A collective counts from when the last rank begins it, where the path goes on with that rank. On the host the
innermost events count, and between them the one that encloses both; one that waits for the device
(``Vocabulary.blocking``) ends with what its source links it to, else with what the device ended last. A thread that
began work on another one (by a link, as for a backward pass) waits for that; either goes on when the other ends. What
rests on no link is *assumed*.

The parts follow one another without gap or overlap, so that they add up to the window.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import Lane, Profile, Role

from .links.dependencies import Dependencies

Ints = npt.NDArray[np.int64]


class Part(IntEnum):
    """What a part of the path is."""

    EVENT = 0
    #: From what let a wait end to its end.
    WAIT = 1
    #: Between what let an event begin and its beginning.
    GAP = 2


@dataclass(frozen=True, eq=False)
class CriticalPath:
    """Parts in the order of time; arrays of one length.

    Attributes:
        part: int8, see ``Part``.
        lane: int32 place in ``Profile.lanes``; of a gap that of what began behind it; -1 behind the last event.
        row: int64 row of that lane; -1 behind the last event.
        start, end: int64 ns; each begins where the one before ends.
        assumed: Whether no link of the source says that it is on the path.
    """

    part: npt.NDArray[np.int8]
    lane: npt.NDArray[np.int32]
    row: Ints
    start: Ints
    end: Ints
    assumed: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.part)

    @property
    def length(self) -> Ints:
        """Length of each part, ns."""
        return self.end - self.start


#: Parts are collected as (part, event, start, end, assumed).
_Found = tuple[int, int, int, int, bool]
_NONE: Final = -1
#: Parts as plain numbers: columns are made of these faster than of members of the enumeration.
_EVENT, _WAIT, _GAP = map(int, Part)
#: Events of a lane of the host that can end a run.
_FEWEST: Final = 3


class _Order:
    """Events by their end, to find the last that ended up to a time.

    Args:
        numbers: Of the events, int64.
        end: Of all events, int64 ns.
    """

    def __init__(self, numbers: Ints, end: Ints) -> None:
        self.numbers = numbers
        order = np.argsort(end[numbers], kind="stable")
        self._numbers = _plain(numbers[order])
        self._ends = _plain(end[numbers][order])

    def before(self, time: int) -> int:
        """The event that ended last up to a time; -1 without."""
        place = bisect_right(self._ends, time) - 1
        return self._numbers[place] if place >= 0 else _NONE


def _plain(values: npt.NDArray[np.integer[Any]]) -> array[int]:
    """Whole numbers that are read one by one as fast as a list's, made as fast as a copy."""
    found = array("q")
    found.frombytes(values.astype(np.int64).tobytes())
    return found


def critical_path(
    profile: Profile, known: Dependencies | None, start: int, end: int, lanes: Collection[int] | None = None
) -> CriticalPath:
    """The critical path of a window. O(n log n) to begin with, then O(parts log n).

    Args:
        profile: The profile.
        known: Its links; None where its source knows none.
        start, end: The window, ns.
        lanes: Places of the lanes that it may run on; None: all.
    """
    return _Walk(profile, known, lanes).path(start, end)


class _Walk:
    def __init__(self, profile: Profile, known: Dependencies | None, chosen: Collection[int] | None) -> None:
        lanes = profile.lanes
        self._profile = profile
        self._nests = [lane.on_host and "parent" in lane for lane in lanes]
        self._parents: dict[int, array[int]] = {}
        self._first = np.cumsum([0, *map(len, lanes)], dtype=np.int64)
        columns = [_columns(lane, profile.vocabulary.blocking, profile) for lane in lanes]
        none = [np.zeros(0, np.int64)]
        start, end, waits, counts = (
            np.concatenate([np.asarray(each[place], np.int64) for each in columns] or none) for place in range(4)
        )
        numbers = np.flatnonzero(counts)
        if chosen is not None:
            own = np.isin(np.arange(len(lanes)), list(chosen))
            numbers = numbers[np.repeat(own, np.diff(self._first))[numbers]]
        self._lane = np.repeat(np.arange(len(lanes)), np.diff(self._first)) if lanes else np.zeros(0, np.int64)
        host = np.array([lane.on_host for lane in lanes] or [False])[self._lane] if len(self._lane) else self._lane
        work = numbers[waits[numbers] == 0]
        ours = host[work].astype(bool) if len(work) else np.zeros(0, np.bool_)
        self._device = _Order(work[~ours], end)
        by_unit: dict[int, list[Ints]] = {}
        self._by_lane: list[_Order] = []
        few = np.zeros(len(lanes) + 1, np.bool_)
        for number, lane in enumerate(lanes):
            low, high = np.searchsorted(numbers, self._first[number : number + 2])
            mine = numbers[low:high]
            self._by_lane.append(_Order(mine, end))
            few[number] = lane.on_host and len(mine) < _FEWEST
            if not lane.on_host:
                by_unit.setdefault(profile.unit_of(lane), []).append(mine)
        # what spans everything, as a profiler's own mark does, is no end to begin from
        kept = work[~few[self._lane[work]]] if len(work) else work
        self._last = self._device if len(kept) == int((~ours).sum()) else _Order(kept, end)
        units = {unit: _Order(np.concatenate(parts), end) for unit, parts in by_unit.items()}
        self._releaser, self._ender, self._meets = (
            ({}, {}, {}) if known is None else _releasers(known, start, end, chosen)
        )
        begun, cause = (np.fromiter(each, np.int64) for each in (self._releaser, self._releaser.values()))
        launched = host.astype(bool)[cause] & ~host.astype(bool)[begun]
        causes, count = np.unique(cause[launched], return_counts=True)
        #: Calls that started several events, whose order among themselves no link tells.
        self._several = set(causes[count > 1].tolist())
        self._units = [units.get(profile.unit_of(lane)) for lane in lanes]
        self._begun, self._partners = self._threads(begun, cause, [lane.on_host for lane in lanes], end)
        linked = np.bincount(self._lane[list(self._releaser)], minlength=len(lanes)) if self._releaser else few
        # a lane of which links are known has no others
        self._unit_order = [
            None if lane.on_host or linked[number] else self._units[number] for number, lane in enumerate(lanes)
        ]
        self._start, self._end, self._waits = _plain(start), _plain(end), _plain(waits)
        self._lanes = _plain(self._lane)

    def _threads(
        self, begun: Ints, cause: Ints, on_host: list[bool], end: Ints
    ) -> tuple[dict[int, _Order], dict[int, _Order]]:
        """By thread of the host what ran on those it began work on; the same with those that began work on it."""
        lanes = max(len(on_host), 1)
        pairs = np.unique(self._lane[cause] * lanes + self._lane[begun]).tolist()
        others: tuple[dict[int, set[int]], dict[int, set[int]]] = ({}, {})
        for one, other in (divmod(pair, lanes) for pair in pairs):
            if one != other and on_host[one] and on_host[other]:
                others[0].setdefault(one, set()).add(other)
                others[1].setdefault(one, set()).add(other)
                others[1].setdefault(other, set()).add(one)

        def ordered(lanes: set[int]) -> _Order:
            return _Order(np.concatenate([self._by_lane[lane].numbers for lane in sorted(lanes)]), end)

        first, second = ({lane: ordered(lanes) for lane, lanes in each.items()} for each in others)
        return first, second

    def path(self, start: int, end: int) -> CriticalPath:
        found: list[_Found] = []
        starts, ends, waits = self._start, self._end, self._waits
        event, time, assumed, waiter = self._last.before(end), end, True, _NONE
        while time > start:
            if event == _NONE or ends[event] <= start:
                self._pause(waiter, start, time, assumed or event == _NONE, found)
                break
            if ends[event] < time:
                self._pause(waiter, ends[event], time, assumed, found)
                time = ends[event]
            waiter = event
            if waits[event]:
                event, time, assumed = self._through(event, time, start, found)
                waiter = event
                continue
            begin = starts[event] if starts[event] > start else start
            awaited = self._meanwhile(self._begun, self._lanes[event], begin, time)
            if awaited != _NONE:
                found.append((_EVENT, event, ends[awaited], time, assumed))
                event, time, assumed = awaited, ends[awaited], True
                continue
            met = self._meets.get(event, _NONE)
            if met != _NONE and start < starts[met] < time:
                # until the last of a collective began the others waited
                begin = starts[met]
                found.append((_EVENT, event, begin, time, assumed))
                event = waiter = met
            else:
                found.append((_EVENT, event, begin, time, assumed))
            time = begin
            event, assumed = self._before(event, time)
        return self._made(found[::-1])

    def _pause(self, waiter: int, start: int, time: int, assumed: bool, found: list[_Found]) -> None:
        """What lies before an event: on the host what encloses it, the innermost first; else a gap."""
        lane = self._lanes[waiter] if waiter != _NONE else _NONE
        if lane != _NONE and self._nests[lane]:
            if lane not in self._parents:
                self._parents[lane] = _plain(self._profile.lanes[lane]["parent"])
            first, parents, starts = int(self._first[lane]), self._parents[lane], self._start
            outer = parents[waiter - first]
            while outer >= 0 and time > start:
                begin = starts[first + outer]
                if begin < time:
                    waiter = first + outer
                    found.append((_EVENT, waiter, begin if begin > start else start, time, assumed))
                    time = begin
                outer = parents[outer]
        if time > start:
            found.append((_GAP, waiter, start, time, assumed))

    def _meanwhile(self, threads: dict[int, _Order], lane: int, since: int, time: int) -> int:
        """What ended last, after one time and before another, on the threads of one of the host; -1 without."""
        found = threads[lane].before(time - 1) if lane in threads else _NONE
        return found if found != _NONE and self._end[found] > since else _NONE

    def _through(self, event: int, time: int, start: int, found: list[_Found]) -> tuple[int, int, bool]:
        """From the end of a wait to what let it end: event, time and whether that is assumed."""
        known = self._ender.get(event, _NONE)
        releaser = known if known != _NONE else self._device.before(time)
        begin = max(self._start[event], start)
        ended = self._end[releaser] if releaser != _NONE else begin
        if releaser == _NONE or ended <= begin or self._start[releaser] >= time:
            # nothing ended meanwhile: the wait itself took the time
            found.append((_WAIT, event, begin, time, True))
            before, assumed = self._before(event, begin)
            return before, begin, assumed
        ended = min(ended, time)
        if ended < time:
            found.append((_WAIT, event, ended, time, known == _NONE))
        return releaser, ended, known == _NONE

    def _before(self, event: int, time: int) -> tuple[int, bool]:
        """What let an event begin, and whether that is assumed."""
        lane = self._lanes[event]
        own = self._by_lane[lane].before(time)
        ended = self._end[own] if own != _NONE else -1
        released = self._releaser.get(event, _NONE)
        unit = self._units[lane]
        if released in self._several and unit is not None:
            # what a call started together begins in an order that the call alone knows
            other = unit.before(time)
            if other != _NONE and self._releaser.get(other) == released and self._end[other] > ended:
                return other, True
        if released != _NONE and self._start[released] < time and min(self._end[released], time) > ended:
            return released, False
        partner = self._meanwhile(self._partners, lane, ended, time)
        if partner != _NONE:
            return partner, True
        order = self._unit_order[lane]
        if order is not None:
            other = order.before(time)
            if other != _NONE and self._end[other] > ended:
                return other, True
        return own, False

    def _made(self, found: list[_Found]) -> CriticalPath:
        columns = list(zip(*found, strict=True)) if found else [()] * 5
        part, event, start, end, assumed = columns
        number = np.array(event, np.int64)
        lane = np.where(number >= 0, self._lane[np.maximum(number, 0)] if len(self._lane) else -1, -1)
        row = np.where(number >= 0, number - self._first[np.maximum(lane, 0)], -1)
        return CriticalPath(np.array(part, np.int8), lane.astype(np.int32), row, np.array(start, np.int64),
                            np.array(end, np.int64), np.array(assumed, np.bool_))  # fmt: skip


def _columns(lane: Lane, blocking: str, profile: Profile) -> tuple[Ints, Ints, Ints, Ints]:
    """Start, end, whether an event waits, and whether it counts: it takes time, and on the host nothing lies in it."""
    start, end = lane["start"], lane["end"]
    counts = (end > start) & (lane["role"] != Role.ANNOTATION)
    waits = lane["role"] == Role.WAIT
    if lane.on_host and len(lane):
        counts &= ~np.append(start[1:] < end[:-1], False)
        if blocking and "name" in lane:
            names = profile.strings["name"]
            codes = lane["name"]
            matching = re.compile(blocking)
            known = np.unique(codes)
            held = np.array([code >= 0 and matching.search(str(names[code])) is not None for code in known.tolist()])
            blocks = held[np.searchsorted(known, codes)]
            waits = waits | blocks
            counts |= blocks & (end > start)
    elif not lane.in_sums:
        counts &= waits
    return start, end, waits.astype(np.int64), counts.astype(np.int64)


def _releasers(
    known: Dependencies, start: Ints, end: Ints, lanes: Collection[int] | None
) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """By event what let it begin, by wait what let it end, of several what ended last; and whom it had to meet."""
    links = known.links
    ending, meeting = (np.isin(links.kind, list(kinds)) for kinds in (links.ending, links.meeting))
    found: list[dict[int, int]] = []
    for chosen in (~ending, ending & ~meeting, meeting):
        waiter, releaser = links.to_row[chosen], links.from_row[chosen]
        # what runs on when the other begins (a call that launches) let it begin all the same
        real = start[releaser] < (start[waiter] if not found else end[waiter])
        if lanes is not None:
            real &= np.isin(known.releaser_lane[chosen], list(lanes))
        waiter, releaser = waiter[real], releaser[real]
        order = np.lexsort((end[releaser], waiter))
        found.append(dict(zip(waiter[order].tolist(), releaser[order].tolist(), strict=True)))
    return found[0], found[1], found[2]
