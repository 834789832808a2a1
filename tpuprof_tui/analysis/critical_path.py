"""The critical path: the longest chain of work, waits and gaps, found by walking back from the end of a window.

The walk starts at the event that ended last and moves from each event to its cause, until the start of the window. The
cause of an event's start is whichever ended last of: the event that the source links it to, the previous event on its
lane, and, on a lane without recorded links, the previous event on its unit; for an event that a call started together
with others (graph replay), also those on its unit. The cause of a wait's end is the event that the source links it to,
else the event that ended last before it on any unit, as the one that arrived late. A collective counts from when the
last rank starts it, where the path continues with that rank. On the host the innermost events count, and between them
the event that encloses both; one that blocks on the device (``Vocabulary.blocking``) ends with the event that the
source links it to, else with the last device event to end. A thread that started work on another one (by a link, as
for a backward pass) waits for that; either continues when the other ends. Parts not based on a link are *assumed*.

The parts are contiguous and do not overlap, so that they add up to the window.
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
from tpuprof_tui.model.intervals import last_of_each
from tpuprof_tui.model.uniques import uniques

from .index.lane_index import LaneIndex, build_index
from .index.unit_index import submitted_rows
from .links.dependencies import Dependencies, dependencies_of, may_have_dependencies
from .selecting.session import Session

Ints = npt.NDArray[np.int64]
#: Maximum number of events visited by a slack search; beyond it, slack is reported as a lower bound.
_MOST: Final = 1_000
_KEY = "critical path over time"


class PathPart(IntEnum):
    """Kind of a part of the path."""

    EVENT = 0
    #: From the event that ended a wait to the end of that wait.
    WAIT = 1
    #: From the cause of an event's start to its start.
    GAP = 2


class CriticalPath(Struct, frozen=True, eq=False):
    """Parts in order of time; arrays of one length."""

    part: npt.NDArray[np.int8]  #: int8, see ``PathPart``
    #: int32 index in ``Profile.lanes``; for a gap, of the event after it; -1 after the last event.
    lane: npt.NDArray[np.int32]
    row: Ints  #: int64 row of that lane; -1 after the last event
    #: start, end: int64 ns; each starts where the previous one ends.
    start: Ints
    end: Ints
    assumed: npt.NDArray[np.bool_]  #: Whether no recorded link puts it on the path

    def __len__(self) -> int:
        return len(self.part)

    @property
    def length(self) -> Ints:
        """Duration of each part, ns."""
        return self.end - self.start


_NONE: Final = -1
#: Parts as plain integers, from which columns are built faster than from enum members.
_EVENT, _WAIT, _GAP = map(int, PathPart)
#: Runs shorter than this are added one by one rather than vectorised.
_FEW: Final = 32
#: Minimum number of events of a host lane for the walk to start from it.
_FEWEST: Final = 3


class _EndOrder:
    """Events (by number) sorted by end, ns, to look up the last one that ended up to a time."""

    def __init__(self, numbers: Ints, end: Ints) -> None:
        self.numbers = numbers
        order = np.argsort(end[numbers], kind="stable")
        self._ordered, self._ended = numbers[order], end[numbers][order]

    @cached_property
    def _numbers(self) -> array[int]:
        return _as_plain_array(self._ordered)

    @cached_property
    def _ends(self) -> array[int]:
        return _as_plain_array(self._ended)

    def before_all(self, times: Ints) -> Ints:
        """Vectorised ``before``."""
        if not len(self._ordered):
            return np.full(len(times), _NONE)
        index = np.searchsorted(self._ended, times, side="right") - 1
        return np.where(index >= 0, self._ordered[index], _NONE)

    def before(self, time: int) -> int:
        """The event that ended last up to a time; -1: none."""
        index = bisect_right(self._ends, time) - 1
        return self._numbers[index] if index >= 0 else _NONE


def _as_plain_array(values: npt.NDArray[np.integer[Any]]) -> array[int]:
    """An ``array`` of integers: single elements are read as fast as from a list, and it is built as fast as a copy."""
    found = array("q")
    found.frombytes(values.astype(np.int64).tobytes())
    return found


def critical_path(
    profile: Profile, dependencies: Dependencies | None, start: int, end: int, lanes: Collection[int] | None = None,
    owners: Collection[int] = (),
) -> CriticalPath:  # fmt: skip
    """The critical path of a window, ns. O(n log n) for the preparation, then O(parts log n).

    ``dependencies``: None if the source has none. ``lanes``: indexes of the lanes it may run on; None: all.
    ``owners``: groups; on lanes outside them it runs on events that they submitted. Empty: on all events.
    """
    return _Walk(profile, dependencies, lanes, owners).path(start, end)


class _Walk:
    def __init__(
        self, profile: Profile, dependencies: Dependencies | None, chosen: Collection[int] | None,
        owners: Collection[int],
    ) -> None:  # fmt: skip
        lanes = profile.lanes
        self._profile = profile
        self._first = np.cumsum([0, *map(len, lanes)], dtype=np.int64)
        columns = [_columns(lane, profile.vocabulary.blocking, profile) for lane in lanes]
        none = [np.zeros(0, np.int64)]
        start, end, waits, counts = (
            np.concatenate([np.asarray(each[column], np.int64) for each in columns] or none) for column in range(4)
        )
        numbers = np.flatnonzero(counts)
        own = None if chosen is None else np.zeros(len(start), np.bool_)
        if own is not None and chosen is not None:
            for number in chosen:
                rows = submitted_rows(lanes[number], owners) if owners else slice(0, len(lanes[number]))
                own[self._first[number] : self._first[number + 1]][rows] = True
            numbers = numbers[own[numbers]]
        self._lane = np.repeat(np.arange(len(lanes)), np.diff(self._first)) if lanes else np.zeros(0, np.int64)
        host = np.array([lane.on_host for lane in lanes] or [False])[self._lane] if len(self._lane) else self._lane
        work = numbers[waits[numbers] == 0]
        on_host = host[work].astype(bool) if len(work) else np.zeros(0, np.bool_)
        self._device = _EndOrder(work[~on_host], end)
        by_unit: dict[int, list[Ints]] = {}
        self._by_lane: list[_EndOrder] = []
        few = np.zeros(len(lanes) + 1, np.bool_)
        for number, lane in enumerate(lanes):
            low, high = np.searchsorted(numbers, self._first[number : number + 2])
            mine = numbers[low:high]
            self._by_lane.append(_EndOrder(mine, end))
            few[number] = lane.on_host and len(mine) < _FEWEST
            if not lane.on_host:
                by_unit.setdefault(profile.unit_of(lane), []).append(mine)
        # do not start from an event that spans the whole trace, such as a profiler's own mark
        kept = work[~few[self._lane[work]]] if len(work) else work
        self._last = self._device if len(kept) == int((~on_host).sum()) else _EndOrder(kept, end)
        units = {unit: _EndOrder(np.concatenate(parts), end) for unit, parts in by_unit.items()}
        releaser, ender, meets = (
            [np.full(len(start), _NONE)] * 3 if dependencies is None else _releasers(dependencies, start, end, own)
        )
        self._ender, self._meets = map(_as_plain_array, (ender, meets))
        begun = np.flatnonzero(releaser >= 0)
        cause = releaser[begun]
        launched = host.astype(bool)[cause] & ~host.astype(bool)[begun]
        # events of calls that started several: no link records their order
        several = np.bincount(cause[launched], minlength=len(start)) > 1
        self._begun, partners = self._threads(begun, cause, [lane.on_host for lane in lanes], end)
        linked = np.bincount(self._lane[begun], minlength=len(lanes)) if len(begun) else few
        self._start, self._end, self._waits = _as_plain_array(start), _as_plain_array(end), _as_plain_array(waits)
        self._lanes = _as_plain_array(self._lane)
        self._causes = _as_plain_array(self._all_before(start, end, releaser, several, units, partners, linked))
        awaits = self._may_await(start, end)
        self._awaits = awaits.tobytes()
        self._simple = ((waits == 0) & ~awaits & (meets < 0)).tobytes()
        self._parents = _as_plain_array(self._all_parents())
        self._found, self._begins = array("q"), array("q")

    def _all_parents(self) -> Ints:
        found = np.full(int(self._first[-1]), _NONE)
        for number, lane in enumerate(self._profile.lanes):
            if lane.on_host and "parent" in lane:
                first, parents = int(self._first[number]), lane["parent"]
                found[first : first + len(lane)] = np.where(parents >= 0, parents + first, _NONE)
        return found

    def _all_before(
        self, start: Ints, end: Ints, releaser: Ints, several: npt.NDArray[np.bool_], units: dict[int, _EndOrder],
        partners: dict[int, _EndOrder], linked_lanes: npt.NDArray[Any],
    ) -> Ints:  # fmt: skip
        """Cause of each event's start, encoded as (event + 1) * 2 + (1 if assumed).

        A lane with recorded links does not wait for other lanes of its unit. Events that one call started together have
        an order that only the call knows.
        """
        causes = np.zeros(len(start), np.int64)
        for number in range(len(self._by_lane)):
            rows = slice(int(self._first[number]), int(self._first[number + 1]))
            times, released = start[rows], releaser[rows]
            cause = self._by_lane[number].before_all(times)
            ended = np.where(cause >= 0, end[cause], -1)
            assumed = np.zeros(len(times), np.bool_)
            lane = self._profile.lanes[number]
            unit = units.get(self._profile.unit_of(lane))
            # later entries take precedence
            alternatives = [
                (None if lane.on_host or linked_lanes[number] else unit, times),
                (partners.get(number), times - 1),
            ]
            for events, until in alternatives:
                if events is not None:
                    other = events.before_all(until)
                    later = (other >= 0) & (end[other] > ended)
                    cause, assumed = np.where(later, other, cause), assumed | later
            linked = (released >= 0) & (start[released] < times) & (np.minimum(end[released], times) > ended)
            cause, assumed = np.where(linked, released, cause), assumed & ~linked
            if unit is not None and several.any():
                other = unit.before_all(times)
                together = (released >= 0) & several[released] & (other >= 0) & (releaser[other] == released)
                together &= end[other] > ended
                cause, assumed = np.where(together, other, cause), assumed | together
            causes[rows] = (cause + 1) * 2 + assumed
        return causes

    def _may_await(self, start: Ints, end: Ints) -> npt.NDArray[np.bool_]:
        """Mask of events during which something ended on a thread that their thread started work on."""
        found = np.zeros(len(start), np.bool_)
        for number, threads in self._begun.items():
            rows = slice(int(self._first[number]), int(self._first[number + 1]))
            last = threads.before_all(end[rows] - 1)
            found[rows] = (last >= 0) & (end[last] > start[rows])
        return found

    def _threads(
        self, begun: Ints, cause: Ints, on_host: list[bool], end: Ints
    ) -> tuple[dict[int, _EndOrder], dict[int, _EndOrder]]:
        """By host thread, the events of threads it started work on; and also of those that started work on it."""
        lanes = max(len(on_host), 1)
        pairs = uniques(self._lane[cause] * lanes + self._lane[begun]).tolist()
        others: tuple[dict[int, set[int]], dict[int, set[int]]] = ({}, {})
        for one, other in (divmod(pair, lanes) for pair in pairs):
            if one != other and on_host[one] and on_host[other]:
                others[0].setdefault(one, set()).add(other)
                others[1].setdefault(one, set()).add(other)
                others[1].setdefault(other, set()).add(one)

        def ordered(lanes: set[int]) -> _EndOrder:
            return _EndOrder(np.concatenate([self._by_lane[lane].numbers for lane in sorted(lanes)]), end)

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
                event, time, assumed = self._cause_of_wait_end(event, time, start)
                waiter = event
                continue
            if simple[event]:
                # nearly all events are simple: a chain of them is followed first and added at once
                chain, reached = array("q"), event
                while simple[reached] and starts[reached] > start:
                    before = (causes[reached] >> 1) - 1
                    if before < 0 or ends[before] <= start:
                        break
                    chain.append(reached)
                    reached = before
                if chain:
                    self._add_chain(chain, reached, assumed)
                    waiter, event = chain[-1], reached
                    time, assumed = min(starts[waiter], ends[event]), causes[waiter] & 1 == 1
                    continue
            begin = starts[event] if starts[event] > start else start
            # last to end on the threads that this one started work on
            awaited = self._begun[self._lanes[event]].before(time - 1) if awaits[event] else _NONE
            if awaited != _NONE and ends[awaited] > begin:
                self._add(_EVENT, event, ends[awaited], assumed)
                event, time, assumed = awaited, ends[awaited], True
                continue
            met = meets[event]
            if met != _NONE and start < starts[met] < time:
                # the other ranks waited until the last one started the collective
                begin = starts[met]
                self._add(_EVENT, event, begin, assumed)
                event = waiter = met
            else:
                self._add(_EVENT, event, begin, assumed)
            time, event, assumed = begin, (causes[event] >> 1) - 1, causes[event] & 1 == 1
        return self._build(end)

    def _add(self, part: int, event: int, begin: int, assumed: bool) -> None:
        """Prepends a part, which ends where the parts added before start."""
        self._found.append((event + 1) << 3 | part << 1 | assumed)
        self._begins.append(begin)

    def _add_chain(self, chain: array[int], reached: int, assumed: bool) -> None:
        """Prepends a chain of events, each the cause of the one before, up to ``reached``, and the pauses between."""
        if len(chain) < _FEW:
            for event, before in zip(chain, [*chain[1:], reached], strict=True):
                begin = self._start[event]
                self._add(_EVENT, event, begin, assumed)
                assumed = self._causes[event] & 1 == 1
                if self._end[before] < begin:
                    self._pause(event, self._end[before], begin, assumed)
            return
        starts, ends, causes, parents = (np.frombuffer(each, np.int64) for each in (
            self._start, self._end, self._causes, self._parents,
        ))  # fmt: skip
        events = np.array(chain, np.int64)
        flags = causes[events] & 1
        # by index in the row: the event; then, level by level, the events enclosing the pause before it; then a gap
        parts = [(np.arange(len(events)), (events + 1) << 3 | np.append(int(assumed), flags[:-1]), starts[events])]
        since, time = ends[np.append(events[1:], reached)], starts[events].copy()
        waiter, outer = events.copy(), parents[events]
        while bool((open_ := (outer >= 0) & (time > since)).any()):
            rows = np.flatnonzero(open_)
            rows = rows[starts[outer[rows]] < time[rows]]
            waiter[rows] = outer[rows]
            time[rows] = starts[outer[rows]]
            parts.append((rows, (waiter[rows] + 1) << 3 | flags[rows], np.maximum(time[rows], since[rows])))
            outer = np.where(open_, parents[outer], _NONE)
        rows = np.flatnonzero(time > since)
        parts.append((rows, (waiter[rows] + 1) << 3 | _GAP << 1 | flags[rows], since[rows]))
        indexes, codes, begins = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(indexes, kind="stable")
        self._found.frombytes(codes[order].tobytes())
        self._begins.frombytes(begins[order].tobytes())

    def _pause(self, waiter: int, start: int, time: int, assumed: bool) -> None:
        """Prepends the pause before an event: on the host its enclosing events, innermost first; else a gap."""
        outer = self._parents[waiter] if waiter != _NONE else _NONE
        while outer >= 0 and time > start:
            begin = self._start[outer]
            if begin < time:
                waiter, time = outer, begin
                self._add(_EVENT, waiter, begin if begin > start else start, assumed)
            outer = self._parents[outer]
        if time > start:
            self._add(_GAP, waiter, start, assumed)

    def _cause_of_wait_end(self, event: int, time: int, start: int) -> tuple[int, int, bool]:
        """Moves from the end of a wait to its cause; returns event, time, and whether that is assumed."""
        recorded = self._ender[event]
        releaser = recorded if recorded != _NONE else self._device.before(time)
        begin = max(self._start[event], start)
        ended = self._end[releaser] if releaser != _NONE else begin
        if releaser == _NONE or ended <= begin or self._start[releaser] >= time:
            # nothing ended during the wait: it is on the path itself
            self._add(_WAIT, event, begin, True)
            return (self._causes[event] >> 1) - 1, begin, self._causes[event] & 1 == 1
        ended = min(ended, time)
        if ended < time:
            self._add(_WAIT, event, ended, recorded == _NONE)
        return releaser, ended, recorded == _NONE

    def _build(self, end: int) -> CriticalPath:
        found, begins = (np.frombuffer(each, np.int64)[::-1] for each in (self._found, self._begins))
        number = (found >> 3) - 1
        lane = np.where(number >= 0, self._lane[np.maximum(number, 0)] if len(self._lane) else -1, -1)
        row = np.where(number >= 0, number - self._first[np.maximum(lane, 0)], -1)
        ends = np.append(begins[1:], end)[: len(begins)]
        return CriticalPath((found >> 1 & 3).astype(np.int8), lane.astype(np.int32), row, begins.copy(), ends,
                            (found & 1).astype(np.bool_))  # fmt: skip


def _columns(lane: Lane, blocking: str, profile: Profile) -> tuple[Ints, Ints, Ints, Ints]:
    """Start, end, whether an event waits, and whether it counts: has a duration; on the host innermost or blocking."""
    start, end = lane["start"], lane["end"]
    counts = (end > start) & (lane["role"] != Role.ANNOTATION)
    waits = lane["role"] == Role.WAIT
    if lane.on_host and len(lane):
        counts &= ~np.append(start[1:] < end[:-1], False)
        if blocking and "name" in lane:
            names = profile.strings["name"]
            codes = lane["name"]
            matching = re.compile(blocking)
            known = uniques(codes)
            held = np.array([code >= 0 and matching.search(str(names[code])) is not None for code in known.tolist()])
            blocks = held[np.searchsorted(known, codes)]
            waits = waits | blocks
            counts |= blocks & (end > start)
    elif not lane.in_sums:
        counts &= waits
    return start, end, waits.astype(np.int64), counts.astype(np.int64)


def _releasers(dependencies: Dependencies, start: Ints, end: Ints, own: npt.NDArray[np.bool_] | None) -> list[Ints]:
    """Per event: what let it start, what let it end, and whom it had to meet; of several the last to end; -1: none.

    ``own``: mask of the events that can be the cause; None: all.
    """
    links = dependencies.links
    ending, meeting = (np.isin(links.kind, list(kinds)) for kinds in (links.ending, links.meeting))
    found: list[Ints] = []
    for chosen in (~ending, ending & ~meeting, meeting):
        waiter, releaser = links.to_row[chosen], links.from_row[chosen]
        # a launching call still runs when the launched event starts: require only that it started earlier
        real = start[releaser] < (start[waiter] if not found else end[waiter])
        if own is not None:
            real &= own[releaser]
        waiter, releaser = waiter[real], releaser[real]
        last = last_of_each(np.lexsort((end[releaser], waiter)), waiter)
        found.append(np.full(len(start), _NONE))
        found[-1][waiter[last]] = releaser[last]
    return found


class Slack(Struct, frozen=True):
    """How much later an event may end without delaying the window's end, ns; 0 on the path."""

    ns: int  #: The slack
    at_least: bool = False  #: Whether the search was cut short, so that it is a lower bound
    assumed: bool = False  #: Whether the limiting chain relies on the order of lanes of a unit, not on links


class SlackSearch:
    """Computes the slack of single events of a window that ends at ``end``, ns, given its critical path.

    A delay of an event propagates to the next event on its lane, to those that wait for it by a link and, on lanes
    without recorded links, to the next event on its unit. The pause before each of these absorbs some of the delay, a
    wait its whole length. Slack is therefore the least sum of pauses on any chain to an event on the path, or to the
    end of the window: a shortest path (Dijkstra), called total float in the critical path method.
    """

    def __init__(self, profile: Profile, dependencies: Dependencies | None, path: CriticalPath, end: int) -> None:
        self._profile, self._dependencies, self._end = profile, dependencies, end
        on = path.part != PathPart.GAP
        self._on_path = [np.zeros(len(lane), np.bool_) for lane in profile.lanes]
        for number in uniques(path.lane[on]).tolist():
            self._on_path[number][path.row[on & (path.lane == number)]] = True
        self._times: dict[int, tuple[Ints, Ints, npt.NDArray[np.bool_]]] = {}
        linked: set[int] = set()
        if dependencies is not None:
            begun = ~np.isin(dependencies.links.kind, list(dependencies.links.ending))
            linked = set(uniques(dependencies.waiter_lane[begun]).tolist())
        self._by_unit: dict[int, list[int]] = {}
        for number, lane in enumerate(profile.lanes):
            if not lane.on_host and lane.in_sums and number not in linked and len(lane):
                self._by_unit.setdefault(profile.unit_of(lane), []).append(number)

    def of(self, lane: int, row: int) -> Slack:
        """Slack of an event. O(log n) for each event visited, at most ``_MOST`` of them."""
        if self._on_path[lane][row]:
            return Slack(0)
        first = self._span(lane, row)[1]
        queue: list[tuple[int, bool, int, int]] = [(0, False, lane, row)]
        done: set[tuple[int, int]] = set()
        best = max(self._end - first, 0), False
        while queue:
            ns, assumed, *event = heappop(queue)
            if ns >= best[0]:
                break
            reached = event[0], event[1]
            if self._on_path[reached[0]][reached[1]]:
                return Slack(ns, False, assumed)
            if reached in done:
                continue
            done.add(reached)
            if len(done) > _MOST:
                return Slack(ns, True, assumed)
            ended = self._span(*reached)[1]
            best = min(best, (ns + max(self._end - ended, 0), assumed))
            for pause, guessed, *after in self._after(*reached, ended):
                heappush(queue, (ns + pause, assumed or guessed, after[0], after[1]))
        return Slack(best[0], False, best[1])

    def _columns(self, lane: int) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
        """Starts, ends, and the mask of waits of a lane; cached."""
        if lane not in self._times:
            columns = self._profile.lanes[lane]
            self._times[lane] = columns["start"], columns["end"], columns["role"] == Role.WAIT
        return self._times[lane]

    def _span(self, lane: int, row: int) -> tuple[int, int]:
        start, end, _ = self._columns(lane)
        return int(start[row]), int(end[row])

    def _after(self, lane: int, row: int, ended: int) -> Iterator[tuple[int, bool, int, int]]:
        """Events that a delay of an event's end propagates to: delay absorbed, whether assumed, lane, row."""
        if row + 1 < len(self._profile.lanes[lane]):
            yield self._pause(lane, row + 1, ended), False, lane, row + 1
        for each in self._dependencies.releases(lane, row) if self._dependencies is not None else ():
            start, end = self._span(*each.waiter)
            yield max((end if each.ends else start) - ended, 0), each.guessed, *each.waiter
        for other in self._by_unit.get(self._profile.unit_of(self._profile.lanes[lane]), ()):
            starts = self._columns(other)[0]
            first = int(starts.searchsorted(ended))
            if other != lane and first < len(starts):
                yield self._pause(other, first, ended), True, other, first

    def _pause(self, lane: int, row: int, ended: int) -> int:
        start, end, waits = self._columns(lane)
        return max(int(end[row] if waits[row] else start[row]) - ended, 0)


def longest_off_path(
    profile: Profile, path: CriticalPath, start: int, end: int, lanes: Ints, most: int, owners: Collection[int] = ()
) -> Ints:
    """The longest ``most`` work events of a window that are off the path: int64 (n, 2), lane and row. O(events).

    ``owners`` as of `critical_path`.
    """
    found: list[tuple[int, int, int]] = []
    for number in lanes.tolist():
        lane = profile.lanes[number]
        if lane.on_host or not lane.in_sums or not len(lane):
            continue
        low, high = np.searchsorted(lane["start"], (start, end))
        length = lane["end"][low:high] - lane["start"][low:high]
        length = np.where(lane.take("role", slice(int(low), int(high))) == Role.WORK, length, 0)
        if owners:
            own = np.zeros(len(lane), np.bool_)
            own[submitted_rows(lane, owners)] = True
            length[~own[low:high]] = 0
        on_path = path.row[(path.lane == number) & (path.part == PathPart.EVENT)] - low
        length[on_path[(on_path >= 0) & (on_path < len(length))]] = 0
        rows = np.argpartition(length, -most)[-most:] if len(length) > most else np.arange(len(length))
        found += [(int(length[row]), number, int(row + low)) for row in rows.tolist() if length[row] > 0]
    chosen = sorted(found, key=lambda each: (-each[0], *each[1:]))[:most]
    return np.array([each[1:] for each in chosen], np.int64).reshape(-1, 2)


def path_lane(session: Session) -> LaneIndex:
    """The events and wait ends of the path as a lane without gaps, cached; columns ``kernel`` and ``name`` if known.

    O(n log n) the first time: call it from a worker thread.
    """

    def made() -> LaneIndex:
        dependencies = dependencies_of(session) if may_have_dependencies(session) else None
        profile = session.profile
        return build_index(_lane(session, critical_path(profile, dependencies, profile.start_ns, profile.end_ns)))

    found: LaneIndex = session.cache.get(_KEY, made)
    return found


def cached_path_lane(session: Session) -> LaneIndex | None:
    """The lane of the path if it has been computed; None before."""
    found: LaneIndex | None = session.cache.peek(_KEY)
    return found


def _lane(session: Session, path: CriticalPath) -> Lane:
    kept = np.flatnonzero((path.part != PathPart.GAP) & (path.lane >= 0))
    lanes, rows = path.lane[kept], path.row[kept]
    count = len(kept)
    texts: dict[str, npt.NDArray[np.int32]] = {}
    for key in ("kernel", "name"):
        if key in session.profile.strings:
            texts[key] = np.full(count, -1, np.int32)
            for number in uniques(lanes).tolist():
                lane, chosen = session.profile.lanes[number], np.flatnonzero(lanes == number)
                if key in lane:
                    texts[key][chosen] = lane.take(key, rows[chosen])
    return Lane(
        kind="path", group=-1, label="Critical path",
        columns={"start": path.start[kept], "end": path.end[kept], "order": np.arange(count, dtype=np.int64),
                 "role": np.where(path.part[kept] == PathPart.WAIT, Role.WAIT, Role.WORK).astype(np.int8),
                 "sublane": np.zeros(count, np.int16), **texts},
    )  # fmt: skip
