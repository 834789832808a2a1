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
from collections.abc import Collection, Iterator
from enum import IntEnum
from functools import cached_property
from heapq import heappop, heappush
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import Lane, Profile, Role

from .index.intervals import last_of_each
from .index.lane_index import LaneIndex, build_index
from .links.dependencies import Dependencies, dependencies_of, may_have_dependencies
from .selecting.session import Session

Ints = npt.NDArray[np.int64]
#: Events that a search looks at; beyond that slack is told as a lower bound.
_MOST: Final = 1_000
_KEY = "critical path over time"


class Part(IntEnum):
    """What a part of the path is."""

    EVENT = 0
    #: From what let a wait end to its end.
    WAIT = 1
    #: Between what let an event begin and its beginning.
    GAP = 2


class CriticalPath(Struct, frozen=True, eq=False):
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


_NONE: Final = -1
#: Parts as plain numbers: columns are made of these faster than of members of the enumeration.
_EVENT, _WAIT, _GAP = map(int, Part)
#: Fewer events than these are told one by one.
_FEW: Final = 32
#: Events of a lane of the host that can end a run.
_FEWEST: Final = 3


class _Order:
    """Events by their end, to find the last that ended up to a time: their numbers, and the ends of all events, ns."""

    def __init__(self, numbers: Ints, end: Ints) -> None:
        self.numbers = numbers
        order = np.argsort(end[numbers], kind="stable")
        self._ordered, self._ended = numbers[order], end[numbers][order]

    @cached_property
    def _numbers(self) -> array[int]:
        return _plain(self._ordered)

    @cached_property
    def _ends(self) -> array[int]:
        return _plain(self._ended)

    def before_all(self, times: Ints) -> Ints:
        """The same of many times."""
        if not len(self._ordered):
            return np.full(len(times), _NONE)
        place = np.searchsorted(self._ended, times, side="right") - 1
        return np.where(place >= 0, self._ordered[place], _NONE)

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
    """The critical path of a window, ns. O(n log n) to begin with, then O(parts log n).

    ``known``: links, None where the source knows none; ``lanes``: places of those that it may run on, None: all.
    """
    return _Walk(profile, known, lanes).path(start, end)


class _Walk:
    def __init__(self, profile: Profile, known: Dependencies | None, chosen: Collection[int] | None) -> None:
        lanes = profile.lanes
        self._profile = profile
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
        releaser, ender, meets = (
            [np.full(len(start), _NONE)] * 3 if known is None else _releasers(known, start, end, chosen)
        )
        self._ender, self._meets = map(_plain, (ender, meets))
        begun = np.flatnonzero(releaser >= 0)
        cause = releaser[begun]
        launched = host.astype(bool)[cause] & ~host.astype(bool)[begun]
        # whether it is a call that started several events, whose order among themselves no link tells
        several = np.bincount(cause[launched], minlength=len(start)) > 1
        self._begun, partners = self._threads(begun, cause, [lane.on_host for lane in lanes], end)
        linked = np.bincount(self._lane[begun], minlength=len(lanes)) if len(begun) else few
        self._start, self._end, self._waits = _plain(start), _plain(end), _plain(waits)
        self._lanes = _plain(self._lane)
        self._causes = _plain(self._all_before(start, end, releaser, several, units, partners, linked))
        awaits = self._may_await(start, end)
        self._awaits = awaits.tobytes()
        self._simple = ((waits == 0) & ~awaits & (meets < 0)).tobytes()
        self._parents = _plain(self._all_parents())
        self._found, self._begins = array("q"), array("q")

    def _all_parents(self) -> Ints:
        """By event on the host what encloses it; -1 without."""
        found = np.full(int(self._first[-1]), _NONE)
        for number, lane in enumerate(self._profile.lanes):
            if lane.on_host and "parent" in lane:
                first, parents = int(self._first[number]), lane["parent"]
                found[first : first + len(lane)] = np.where(parents >= 0, parents + first, _NONE)
        return found

    def _all_before(
        self, start: Ints, end: Ints, releaser: Ints, several: npt.NDArray[np.bool_], units: dict[int, _Order],
        partners: dict[int, _Order], linked_lanes: npt.NDArray[Any],
    ) -> Ints:  # fmt: skip
        """What let each event begin: the event and one, twice, and one where it is assumed.

        A lane of which links are known waits for no others of its unit. What a call started together begins in an order
        that the call alone knows.
        """
        causes = np.zeros(len(start), np.int64)
        for number in range(len(self._by_lane)):
            mine = slice(int(self._first[number]), int(self._first[number + 1]))
            times, released = start[mine], releaser[mine]
            cause = self._by_lane[number].before_all(times)
            ended = np.where(cause >= 0, end[cause], -1)
            assumed = np.zeros(len(times), np.bool_)
            lane = self._profile.lanes[number]
            unit = units.get(self._profile.unit_of(lane))
            # what counts most comes last
            others = [
                (None if lane.on_host or linked_lanes[number] else unit, times),
                (partners.get(number), times - 1),
            ]
            for known, until in others:
                if known is not None:
                    other = known.before_all(until)
                    later = (other >= 0) & (end[other] > ended)
                    cause, assumed = np.where(later, other, cause), assumed | later
            linked = (released >= 0) & (start[released] < times) & (np.minimum(end[released], times) > ended)
            cause, assumed = np.where(linked, released, cause), assumed & ~linked
            if unit is not None and several.any():
                other = unit.before_all(times)
                together = (released >= 0) & several[released] & (other >= 0) & (releaser[other] == released)
                together &= end[other] > ended
                cause, assumed = np.where(together, other, cause), assumed | together
            causes[mine] = (cause + 1) * 2 + assumed
        return causes

    def _may_await(self, start: Ints, end: Ints) -> npt.NDArray[np.bool_]:
        """During which events something ended on the threads that theirs began work on."""
        found = np.zeros(len(start), np.bool_)
        for number, threads in self._begun.items():
            mine = slice(int(self._first[number]), int(self._first[number + 1]))
            last = threads.before_all(end[mine] - 1)
            found[mine] = (last >= 0) & (end[last] > start[mine])
        return found

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
        self._found, self._begins = array("q"), array("q")
        starts, ends, waits, awaits = self._start, self._end, self._waits, self._awaits
        meets, causes, simple = self._meets, self._causes, self._simple
        event, time, assumed, waiter = self._last.before(end), end, True, _NONE
        while time > start:
            if event == _NONE or ends[event] <= start:
                self._pause(waiter, start, time, assumed or event == _NONE)
                break
            if ends[event] < time:
                self._pause(waiter, ends[event], time, assumed)
                time = ends[event]
            waiter = event
            if waits[event]:
                event, time, assumed = self._through(event, time, start)
                waiter = event
                continue
            if simple[event]:
                # nearly all are: what follows from their starts alone is told of all in a row at once
                row, reached = array("q"), event
                while simple[reached] and starts[reached] > start:
                    before = (causes[reached] >> 1) - 1
                    if before < 0 or ends[before] <= start:
                        break
                    row.append(reached)
                    reached = before
                if row:
                    self._add_row(row, reached, assumed)
                    waiter, event = row[-1], reached
                    time, assumed = min(starts[waiter], ends[event]), causes[waiter] & 1 == 1
                    continue
            begin = starts[event] if starts[event] > start else start
            # what ended last on the threads that its own began work on
            awaited = self._begun[self._lanes[event]].before(time - 1) if awaits[event] else _NONE
            if awaited != _NONE and ends[awaited] > begin:
                self._add(_EVENT, event, ends[awaited], assumed)
                event, time, assumed = awaited, ends[awaited], True
                continue
            met = meets[event]
            if met != _NONE and start < starts[met] < time:
                # until the last of a collective began the others waited
                begin = starts[met]
                self._add(_EVENT, event, begin, assumed)
                event = waiter = met
            else:
                self._add(_EVENT, event, begin, assumed)
            time, event, assumed = begin, (causes[event] >> 1) - 1, causes[event] & 1 == 1
        return self._made(end)

    def _add(self, part: int, event: int, begin: int, assumed: bool) -> None:
        """The part before those that were added: it ends where they begin."""
        self._found.append((event + 1) << 3 | part << 1 | assumed)
        self._begins.append(begin)

    def _add_row(self, row: array[int], reached: int, assumed: bool) -> None:
        """Events of which each let the one before it begin, up to one that was reached, with what lies between them."""
        if len(row) < _FEW:
            for event, before in zip(row, [*row[1:], reached], strict=True):
                begin = self._start[event]
                self._add(_EVENT, event, begin, assumed)
                assumed = self._causes[event] & 1 == 1
                if self._end[before] < begin:
                    self._pause(event, self._end[before], begin, assumed)
            return
        starts, ends, causes, parents = (np.frombuffer(each, np.int64) for each in (
            self._start, self._end, self._causes, self._parents,
        ))  # fmt: skip
        events = np.array(row, np.int64)
        flags = causes[events] & 1
        # by place in the row: the event, then level by level what encloses the pause before it, then what is left
        parts = [(np.arange(len(events)), (events + 1) << 3 | np.append(int(assumed), flags[:-1]), starts[events])]
        since, time = ends[np.append(events[1:], reached)], starts[events].copy()
        waiter, outer = events.copy(), parents[events]
        while bool((open_ := (outer >= 0) & (time > since)).any()):
            place = np.flatnonzero(open_)
            place = place[starts[outer[place]] < time[place]]
            waiter[place] = outer[place]
            time[place] = starts[outer[place]]
            parts.append((place, (waiter[place] + 1) << 3 | flags[place], np.maximum(time[place], since[place])))
            outer = np.where(open_, parents[outer], _NONE)
        place = np.flatnonzero(time > since)
        parts.append((place, (waiter[place] + 1) << 3 | _GAP << 1 | flags[place], since[place]))
        places, codes, begins = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(places, kind="stable")
        self._found.frombytes(codes[order].tobytes())
        self._begins.frombytes(begins[order].tobytes())

    def _pause(self, waiter: int, start: int, time: int, assumed: bool) -> None:
        """What lies before an event: on the host what encloses it, the innermost first; else a gap."""
        outer = self._parents[waiter] if waiter != _NONE else _NONE
        while outer >= 0 and time > start:
            begin = self._start[outer]
            if begin < time:
                waiter, time = outer, begin
                self._add(_EVENT, waiter, begin if begin > start else start, assumed)
            outer = self._parents[outer]
        if time > start:
            self._add(_GAP, waiter, start, assumed)

    def _through(self, event: int, time: int, start: int) -> tuple[int, int, bool]:
        """From the end of a wait to what let it end: event, time and whether that is assumed."""
        known = self._ender[event]
        releaser = known if known != _NONE else self._device.before(time)
        begin = max(self._start[event], start)
        ended = self._end[releaser] if releaser != _NONE else begin
        if releaser == _NONE or ended <= begin or self._start[releaser] >= time:
            # nothing ended meanwhile: the wait itself took the time
            self._add(_WAIT, event, begin, True)
            return (self._causes[event] >> 1) - 1, begin, self._causes[event] & 1 == 1
        ended = min(ended, time)
        if ended < time:
            self._add(_WAIT, event, ended, known == _NONE)
        return releaser, ended, known == _NONE

    def _made(self, end: int) -> CriticalPath:
        found, begins = (np.frombuffer(each, np.int64)[::-1] for each in (self._found, self._begins))
        number = (found >> 3) - 1
        lane = np.where(number >= 0, self._lane[np.maximum(number, 0)] if len(self._lane) else -1, -1)
        row = np.where(number >= 0, number - self._first[np.maximum(lane, 0)], -1)
        ends = np.append(begins[1:], end)[: len(begins)]
        return CriticalPath((found >> 1 & 3).astype(np.int8), lane.astype(np.int32), row, begins.copy(), ends,
                            (found & 1).astype(np.bool_))  # fmt: skip


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


def _releasers(known: Dependencies, start: Ints, end: Ints, lanes: Collection[int] | None) -> list[Ints]:
    """By event what let it begin, what let it end, of several what ended last; and whom it had to meet; -1 without."""
    links = known.links
    ending, meeting = (np.isin(links.kind, list(kinds)) for kinds in (links.ending, links.meeting))
    found: list[Ints] = []
    for chosen in (~ending, ending & ~meeting, meeting):
        waiter, releaser = links.to_row[chosen], links.from_row[chosen]
        # what runs on when the other begins (a call that launches) let it begin all the same
        real = start[releaser] < (start[waiter] if not found else end[waiter])
        if lanes is not None:
            real &= np.isin(known.releaser_lane[chosen], list(lanes))
        waiter, releaser = waiter[real], releaser[real]
        last = last_of_each(np.lexsort((end[releaser], waiter)), waiter)
        found.append(np.full(len(start), _NONE))
        found[-1][waiter[last]] = releaser[last]
    return found


class Slack(Struct, frozen=True):
    """How much later an event may end, ns; 0 on the path.

    Attributes:
        at_least: Whether the search ended early, so that it is a lower bound.
        assumed: Whether the way that takes it up rests on the order of lanes of a unit alone.
    """

    ns: int
    at_least: bool = False
    assumed: bool = False


class SlackSearch:
    """Slack of single events of a window that ends at ``end``, ns, beside its critical path.

    A delay of an event reaches what runs next on its lane, what waits for it by a link and, on lanes of which the
    source knows no links, what begins next on its unit. The pause before each of these takes some of the delay up, a
    wait all of its length. Slack is therefore the least sum of pauses on any way to an event on the path, or to the
    end of the window: a shortest way (Dijkstra), which the critical path method calls total float.
    """

    def __init__(self, profile: Profile, known: Dependencies | None, path: CriticalPath, end: int) -> None:
        self._profile, self._known, self._end = profile, known, end
        on = path.part != Part.GAP
        self._on_path = [np.zeros(len(lane), np.bool_) for lane in profile.lanes]
        for number in np.unique(path.lane[on]).tolist():
            self._on_path[number][path.row[on & (path.lane == number)]] = True
        self._times: dict[int, tuple[Ints, Ints, npt.NDArray[np.bool_]]] = {}
        linked: set[int] = set()
        if known is not None:
            begun = ~np.isin(known.links.kind, list(known.links.ending))
            linked = set(np.unique(known.waiter_lane[begun]).tolist())
        self._by_unit: dict[int, list[int]] = {}
        for number, lane in enumerate(profile.lanes):
            if not lane.on_host and lane.in_sums and number not in linked and len(lane):
                self._by_unit.setdefault(profile.unit_of(lane), []).append(number)

    def of(self, lane: int, row: int) -> Slack:
        """Slack of an event. O(events looked at, log n each), ``_MOST`` of them at most."""
        if self._on_path[lane][row]:
            return Slack(0)
        first = self._span(lane, row)[1]
        ways: list[tuple[int, bool, int, int]] = [(0, False, lane, row)]
        done: set[tuple[int, int]] = set()
        best = max(self._end - first, 0), False
        while ways:
            ns, assumed, *event = heappop(ways)
            if ns >= best[0]:
                break
            place = event[0], event[1]
            if self._on_path[place[0]][place[1]]:
                return Slack(ns, False, assumed)
            if place in done:
                continue
            done.add(place)
            if len(done) > _MOST:
                return Slack(ns, True, assumed)
            ended = self._span(*place)[1]
            best = min(best, (ns + max(self._end - ended, 0), assumed))
            for pause, guess, *after in self._after(*place, ended):
                heappush(ways, (ns + pause, assumed or guess, after[0], after[1]))
        return Slack(best[0], False, best[1])

    def _columns(self, lane: int) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
        """Starts, ends, and which events wait."""
        if lane not in self._times:
            columns = self._profile.lanes[lane]
            self._times[lane] = columns["start"], columns["end"], columns["role"] == Role.WAIT
        return self._times[lane]

    def _span(self, lane: int, row: int) -> tuple[int, int]:
        start, end, _ = self._columns(lane)
        return int(start[row]), int(end[row])

    def _after(self, lane: int, row: int, ended: int) -> Iterator[tuple[int, bool, int, int]]:
        """What a delay of an event's end reaches: the delay that is taken up, whether assumed, lane and row."""
        if row + 1 < len(self._profile.lanes[lane]):
            yield self._pause(lane, row + 1, ended), False, lane, row + 1
        for each in self._known.releases(lane, row) if self._known is not None else ():
            start, end = self._span(*each.waiter)
            yield max((end if each.ends else start) - ended, 0), each.guessed, *each.waiter
        for other in self._by_unit.get(self._profile.unit_of(self._profile.lanes[lane]), ()):
            starts = self._columns(other)[0]
            place = int(starts.searchsorted(ended))
            if other != lane and place < len(starts):
                yield self._pause(other, place, ended), True, other, place

    def _pause(self, lane: int, row: int, ended: int) -> int:
        start, end, waits = self._columns(lane)
        return max(int(end[row] if waits[row] else start[row]) - ended, 0)


def longest_beside(profile: Profile, path: CriticalPath, start: int, end: int, lanes: Ints, most: int) -> Ints:
    """The longest work of a window that is not on the path: (lane, row) of each, int64, n by 2. O(events)."""
    found: list[tuple[int, int, int]] = []
    for number in lanes.tolist():
        lane = profile.lanes[number]
        if lane.on_host or not lane.in_sums or not len(lane):
            continue
        low, high = np.searchsorted(lane["start"], (start, end))
        length = lane["end"][low:high] - lane["start"][low:high]
        length = np.where(lane.take("role", slice(int(low), int(high))) == Role.WORK, length, 0)
        mine = path.row[(path.lane == number) & (path.part == Part.EVENT)] - low
        length[mine[(mine >= 0) & (mine < len(length))]] = 0
        rows = np.argpartition(length, -most)[-most:] if len(length) > most else np.arange(len(length))
        found += [(int(length[row]), number, int(row + low)) for row in rows.tolist() if length[row] > 0]
    chosen = sorted(found, key=lambda each: (-each[0], *each[1:]))[:most]
    return np.array([each[1:] for each in chosen], np.int64).reshape(-1, 2)


def path_lane(session: Session) -> LaneIndex:
    """Events and ends of waits of the path, without its gaps; columns ``kernel`` and ``name`` where they are known.

    O(n log n) the first time: meant for a thread.
    """

    def made() -> LaneIndex:
        known = dependencies_of(session) if may_have_dependencies(session) else None
        profile = session.profile
        return build_index(_lane(session, critical_path(profile, known, profile.start_ns, profile.end_ns)))

    found: LaneIndex = session.derived.get(_KEY, made)
    return found


def known_path_lane(session: Session) -> LaneIndex | None:
    """The same where it has been found; None before."""
    found: LaneIndex | None = session.derived.known(_KEY)
    return found


def _lane(session: Session, path: CriticalPath) -> Lane:
    kept = np.flatnonzero((path.part != Part.GAP) & (path.lane >= 0))
    lanes, rows = path.lane[kept], path.row[kept]
    count = len(kept)
    texts: dict[str, npt.NDArray[np.int32]] = {}
    for key in ("kernel", "name"):
        if key in session.profile.strings:
            texts[key] = np.full(count, -1, np.int32)
            for number in np.unique(lanes).tolist():
                lane, mine = session.profile.lanes[number], np.flatnonzero(lanes == number)
                if key in lane:
                    texts[key][mine] = lane.take(key, rows[mine])
    return Lane(
        kind="path", group=-1, label="Critical path",
        columns={"start": path.start[kept], "end": path.end[kept], "order": np.arange(count, dtype=np.int64),
                 "role": np.where(path.part[kept] == Part.WAIT, Role.WAIT, Role.WORK).astype(np.int8),
                 "sublane": np.zeros(count, np.int16), **texts},
    )  # fmt: skip
