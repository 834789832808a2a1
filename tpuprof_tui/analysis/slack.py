"""Slack: how much later something beside the critical path may end before the path grows.

A delay of an event reaches what runs next on its lane, what waits for it by a link and, on lanes of which the source
knows no links, what begins next on its unit. The pause before each of these takes some of the delay up, a wait all of
its length. Slack is therefore the least sum of pauses on any way to an event on the path, or to the end of the window:
a shortest way (Dijkstra), which the critical path method calls total float.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import Profile, Role

from .critical_path import CriticalPath, Part
from .links.dependencies import Dependencies

Ints = npt.NDArray[np.int64]

#: Events that a search looks at; beyond that slack is told as a lower bound.
_MOST: Final = 1_000


class Slack(Struct, frozen=True):
    """How much later an event may end.

    Attributes:
        ns: The time; 0 on the path.
        at_least: Whether the search ended early, so that it is a lower bound.
        assumed: Whether the way that takes it up rests on the order of lanes of a unit alone.
    """

    ns: int
    at_least: bool = False
    assumed: bool = False


class SlackSearch:
    """Slack of single events of a window.

    Args:
        profile: The profile.
        known: Its links; None where its source knows none.
        path: The critical path.
        end: End of the window, ns.
    """

    def __init__(self, profile: Profile, known: Dependencies | None, path: CriticalPath, end: int) -> None:
        self._profile, self._known, self._end = profile, known, end
        on = path.part != Part.GAP
        self._on_path = [np.zeros(len(lane), np.bool_) for lane in profile.lanes]
        for number in np.unique(path.lane[on]).tolist():
            self._on_path[number][path.row[on & (path.lane == number)]] = True
        self._times: dict[int, tuple[Ints, Ints, npt.NDArray[np.bool_]]] = {}
        linked = set() if known is None else set(np.unique(known.waiter_lane[_beginning(known)]).tolist())
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


def _beginning(known: Dependencies) -> npt.NDArray[np.bool_]:
    return np.asarray(~np.isin(known.links.kind, list(known.links.ending)), np.bool_)


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
