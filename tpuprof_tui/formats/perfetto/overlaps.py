"""Assigns overlapping slices to tracks: separate tracks for flat slices, nesting for slices that may be nested."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model.sublanes import nested, packed
from tpuprof_tui.model.uniques import distinct_together

#: Most slices within one another on a track: Perfetto shows deeper ones without their durations.
MOST_DEPTH: Final = 511

I64 = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]


def first_free_lanes(start: I64, end: I64) -> list[Places] | None:
    """Assigns each slice to the first lane that is free at its start; slices are ordered by (start, end).

    Returns:
        Ascending indices of the slices of each lane; None if one lane is enough.
    """
    lines = packed(start, end)
    return None if lines is None else _by_number(lines)


def by_time(start: I64, end: I64) -> Places | None:
    """Indices of a stable sort by (start, end); None if already sorted."""
    before, after = start[:-1], start[1:]
    if bool((after > before).all()):
        return None
    if not bool(((after < before) | ((after == before) & (end[1:] < end[:-1]))).any()):
        return None
    return np.lexsort((end, start))


def nested_tracks(
    start: I64, end: I64, thread: npt.NDArray[Any] | None = None
) -> list[tuple[Places, npt.NDArray[np.bool_]]]:
    """Assigns nested slices to tracks: one per thread, more where slices of a thread partially overlap or are deep.

    Args:
        start, end: ns.
        thread: Thread of each slice; slices of different threads never share a track.

    Returns:
        For each track the indices of its slices in the order of their begin and end events, and a mask of the begin
        events. Each end event belongs to the innermost open slice.
    """
    threads = np.zeros(len(start), np.int64) if thread is None else thread
    order = np.lexsort((-end, start))
    start, end = start[order], end[order]
    depths, tracks = nested(start, end, threads[order])
    levels, depths = np.divmod(depths, MOST_DEPTH)
    if levels.any():
        tracks, _ = distinct_together(levels, tracks)
    return [_steps(order[rows], start[rows], end[rows], depths[rows]) for rows in _by_number(tracks)]


def _steps(places: Places, start: I64, end: I64, depth: I64) -> tuple[Places, npt.NDArray[np.bool_]]:
    """Begin and end events of the slices of one track, which are ordered by start."""
    row = np.arange(len(places))
    # before slice ``row`` begins there are ``row`` begins, and ends of all these except the ``depth`` enclosing slices
    begins = 2 * row - depth
    # a slice ends after its descendants and before the next slice, at index ``next_row``, begins
    next_row = np.maximum(np.searchsorted(start, end, side="left"), row + 1)
    steps = np.zeros(2 * len(places), np.intp)
    is_begin = np.zeros(2 * len(places), np.bool_)
    steps[begins], steps[2 * next_row - 1 - depth] = places, places
    is_begin[begins] = True
    return steps, is_begin


def _by_number(numbers: I64) -> list[Places]:
    """Ascending indices of each distinct number; numbers are 0 to n-1 without gaps."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.cumsum(np.bincount(numbers))[:-1]) if len(numbers) else []
