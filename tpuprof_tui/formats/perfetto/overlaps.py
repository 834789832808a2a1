"""Which track each slice goes to where slices overlap: lanes for those that may not, nesting for those that may."""

from __future__ import annotations

import heapq
from typing import Any, Final

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]

#: Lanes that are filled one after another before all others are filled side by side.
_SWEPT: Final = 8


def first_free_lanes(start: I64, end: I64) -> list[Places] | None:
    """Each slice on the first lane whose last end is no later than its start.

    Args:
        start, end: ns, ordered by (start, end).

    Returns:
        Places of the slices of each lane, ascending; None where one lane takes them all.
    """
    if not bool((start[1:] < end[:-1]).any()):
        return None
    lanes: list[Places] = []
    left = np.arange(len(start), dtype=np.intp)
    while len(left) and len(lanes) < _SWEPT:
        taken = _greedy(start[left], end[left])
        lanes.append(left[taken])
        left = left[~taken]
    if len(left):
        lanes += _side_by_side(left, start[left].tolist(), end[left].tolist())
    return lanes


def by_time(start: I64, end: I64) -> Places | None:
    """Order by (start, end), stable; None where that is the order already."""
    before, after = start[:-1], start[1:]
    if bool((after > before).all()):
        return None
    if not bool(((after < before) | ((after == before) & (end[1:] < end[:-1]))).any()):
        return None
    return np.lexsort((end, start))


def _greedy(start: I64, end: I64) -> npt.NDArray[np.bool_]:
    """What one lane takes of slices ordered by start: each that begins when the one before it has ended."""
    count = len(start)
    taken = np.zeros(count, dtype=np.bool_)
    # first slice that begins no earlier than each one ends; one of no length does not follow itself
    following = np.maximum(np.searchsorted(start, end, side="left"), np.arange(1, count + 1))
    # runs in which each slice is followed by its neighbour are taken whole
    breaks = np.flatnonzero(following != np.arange(1, count + 1))
    place, number = 0, 0
    nexts, stops = following[breaks].tolist(), breaks.tolist()
    while place < count:
        while number < len(stops) and stops[number] < place:
            number += 1
        if number == len(stops):
            taken[place:] = True
            break
        taken[place : stops[number] + 1] = True
        place = nexts[number]
    return taken


def _side_by_side(places: Places, start: list[int], end: list[int]) -> list[Places]:
    lanes: list[list[int]] = []
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    for place, begin, finish in zip(places.tolist(), start, end, strict=True):
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane = len(lanes)
            lanes.append([])
        lanes[lane].append(place)
        heapq.heappush(busy, (finish, lane))
    return [np.array(lane, dtype=np.intp) for lane in lanes]


def nested_tracks(
    start: I64, end: I64, thread: npt.NDArray[Any] | None = None
) -> list[tuple[Places, npt.NDArray[Any]]]:
    """Slices that may lie within one another, on as few tracks as their threads and crossings ask for.

    Args:
        start, end: ns.
        thread: What each ran on: slices of different threads never share a track.

    Returns:
        For each track the places of its slices in the order in which they begin and end, and whether each is a
        beginning. Every end belongs to the slice that began last of those still open.
    """
    threads = np.zeros(len(start), dtype=np.int64) if thread is None else thread
    order = np.lexsort((-end, start))
    tracks: list[_Nesting] = []
    of_thread: dict[Any, list[_Nesting]] = {}
    rows = zip(order.tolist(), start[order].tolist(), end[order].tolist(), threads[order].tolist(), strict=True)
    for place, begin, finish, name in rows:
        mine = of_thread.setdefault(name, [])
        track = next((each for each in mine if each.fits(begin, finish)), None)
        if track is None:
            track = _Nesting()
            tracks.append(track)
            mine.append(track)
        track.add(place, finish)
    return [track.steps() for track in tracks]


class _Nesting:
    """Slices that all lie within one another or apart."""

    def __init__(self) -> None:
        self._open: list[tuple[int, int]] = []
        self._places: list[int] = []
        self._begins: list[bool] = []

    def fits(self, begin: int, finish: int) -> bool:
        """Whether a slice lies within the ones still open at its start, and none of them ends within it."""
        opened = self._open
        while opened and opened[-1][1] <= begin:
            self._close()
        return not opened or finish <= opened[-1][1]

    def add(self, place: int, finish: int) -> None:
        self._places.append(place)
        self._begins.append(True)
        self._open.append((place, finish))

    def steps(self) -> tuple[Places, npt.NDArray[np.bool_]]:
        while self._open:
            self._close()
        return np.array(self._places, dtype=np.intp), np.array(self._begins, dtype=np.bool_)

    def _close(self) -> None:
        self._places.append(self._open.pop()[0])
        self._begins.append(False)
