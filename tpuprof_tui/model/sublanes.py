"""Splitting a lane whose events overlap, so that sums over each sub-lane stay exact."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import numpy.typing as npt

I16 = npt.NDArray[np.int16]

#: Depths of overlap for which events can be dealt out in turn instead of one by one.
_DEALT_DEPTH = 8
_MOST_SUBLANES = 32_000


def split_overlaps(start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> tuple[I16 | None, int]:
    """Sub-lane of each event, such that events of one sub-lane do not overlap.

    Args:
        start, end: Times of the events, ordered by start.

    Returns:
        int16 sub-lane per event and the number of sub-lanes; (None, 1) where nothing overlaps.
    """
    count = len(start)
    if count < 2 or not bool((start[1:] < end[:-1]).any()):
        return None, 1
    latest = np.maximum.accumulate(end)
    begins = np.concatenate([[True], start[1:] >= latest[:-1]])
    first = np.flatnonzero(begins)
    place = np.arange(count) - np.repeat(first, np.diff(np.concatenate([first, [count]])))
    for depth in range(2, min(_DEALT_DEPTH, count - 1) + 1):
        if bool((start[depth:] >= end[:-depth]).all()):
            dealt = (place % depth).astype(np.int16)
            return dealt, int(dealt.max()) + 1
    return _one_by_one(start, end)


def _one_by_one(start: npt.NDArray[Any], end: npt.NDArray[Any]) -> tuple[I16, int]:
    """First free sub-lane for each event; what no longer fits the number of sub-lanes shares the last one."""
    result = np.zeros(len(start), np.int16)
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    opened = 0
    for row, (begin, finish) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        elif opened < _MOST_SUBLANES:
            lane, opened = opened, opened + 1
        else:
            lane = _MOST_SUBLANES - 1
        result[row] = lane
        heapq.heappush(busy, (finish, lane))
    return result, max(opened, 1)
