"""Which track each slice goes to where slices overlap: lines for those that may not, nesting for those that may."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model.sublanes import nested, packed

I64 = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]


def first_free_lanes(start: I64, end: I64) -> list[Places] | None:
    """Each slice on the first lane whose last end is no later than its start; slices are ordered by (start, end).

    Gives the places of the slices of each lane, ascending; None where one lane takes them all.
    """
    lines = packed(start, end)
    return None if lines is None else _by_number(lines)


def by_time(start: I64, end: I64) -> Places | None:
    """Order by (start, end), stable; None where that is the order already."""
    before, after = start[:-1], start[1:]
    if bool((after > before).all()):
        return None
    if not bool(((after < before) | ((after == before) & (end[1:] < end[:-1]))).any()):
        return None
    return np.lexsort((end, start))


def nested_tracks(
    start: I64, end: I64, thread: npt.NDArray[Any] | None = None
) -> list[tuple[Places, npt.NDArray[np.bool_]]]:
    """Slices that may lie within one another, on as few tracks as their threads and crossings ask for.

    Args:
        start, end: ns.
        thread: What each ran on: slices of different threads never share a track.

    Returns:
        For each track the places of its slices in the order in which they begin and end, and whether each is a
        beginning. Every end belongs to the slice that began last of those still open.
    """
    threads = np.zeros(len(start), np.int64) if thread is None else thread
    order = np.lexsort((-end, start))
    start, end = start[order], end[order]
    depths, tracks = nested(start, end, threads[order])
    return [_steps(order[mine], start[mine], end[mine], depths[mine]) for mine in _by_number(tracks)]


def _steps(places: Places, start: I64, end: I64, depth: I64) -> tuple[Places, npt.NDArray[np.bool_]]:
    """Beginnings and ends of the slices of one track, which lie in the order of their beginnings."""
    row = np.arange(len(places))
    # all that began before it have ended, but for those around it
    begins = 2 * row - depth
    # it ends before the first that is neither within it nor before it begins, behind all that is within it
    behind = np.maximum(np.searchsorted(start, end, side="left"), row + 1)
    steps = np.zeros(2 * len(places), np.intp)
    is_begin = np.zeros(2 * len(places), np.bool_)
    steps[begins], steps[2 * behind - 1 - depth] = places, places
    is_begin[begins] = True
    return steps, is_begin


def _by_number(numbers: I64) -> list[Places]:
    """Places of each number, which are from 0 without gaps, ascending."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.cumsum(np.bincount(numbers))[:-1]) if len(numbers) else []
