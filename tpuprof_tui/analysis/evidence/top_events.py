"""Findings about single events: the most exposed transfers, the slowest large ones, the longest waits.

These are top-k queries over a window: with the maximum score of each block of rows cached, few blocks are scanned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import INT_MISSING, Lane, Role, is_missing
from tpuprof_tui.model.activity import MOVES
from tpuprof_tui.model.lane import Rows

from ..index.lane_index import BLOCK, LaneIndex

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
#: Scores some rows of a lane; -inf excludes a row.
Score = Callable[[Lane, Rows], Floats]
#: Minimum size of transfers judged by bandwidth, bytes: 100 KiB.
LARGE: Final = 100 * 1024
_NONE: Final = -np.inf


def _best_of_blocks(index: LaneIndex, score: Score) -> Floats:
    def make() -> Floats:
        scores = score(index.lane, slice(0, len(index.lane)))
        best: Floats = np.maximum.reduceat(scores, np.arange(0, len(scores), BLOCK))
        return best

    return index.cache.get("best of blocks", make, score)


def _running_blocks(index: LaneIndex, first: int, last: int, start: int) -> Ints:
    """Of the blocks [first, last), those with an event that ends after ``start``."""
    if index.max_end is index.sorted_ends:
        return np.arange(first, last)

    def make() -> Ints:
        ends = np.maximum(index.lane["end"], index.starts + 1)
        latest: Ints = np.maximum.reduceat(ends, np.arange(0, len(ends), BLOCK))
        return latest

    return first + np.flatnonzero(index.cache.get("ends of blocks", make)[first:last] > start)


def best_rows(
    lanes: Sequence[tuple[int, LaneIndex]], start: int, end: int, scores: Sequence[Score], most: int
) -> list[list[tuple[float, int, int]]]:
    """Top-k events of some lanes in the window [start, end), for several scores.

    O(events) the first time, then O(blocks): a block is scanned only if its best row can be among the top k.

    Args:
        lanes: Number and index of each lane, numbers ascending.
        start, end: The window, ns.
        scores: Score functions.
        most: Maximum number of rows per score.

    Returns:
        For each score, (value, lane number, row) by descending value; ties in order of lane and row.
    """
    spans = []
    for number, index in lanes:
        low = int(np.searchsorted(index.max_end, start, side="right"))
        high = int(np.searchsorted(index.starts, end, side="left"))
        if high > low and end > start:
            blocks = _running_blocks(index, low // BLOCK, -(-high // BLOCK), start)
            spans.append((number, index, low, high, blocks))
    found = []
    for score in scores:
        bests = [_best_of_blocks(index, score)[blocks] for _, index, _, _, blocks in spans]
        best: list[tuple[float, int, int]] = []
        if spans:
            bounds = np.concatenate(bests)
            span_of_block = np.repeat(np.arange(len(spans)), [len(blocks) for *_, blocks in spans])
            numbers = np.concatenate([blocks for *_, blocks in spans])
            near = np.flatnonzero(bounds > _NONE)
            for each in near[np.argsort(-bounds[near], kind="stable")].tolist():
                number, index, low, high, _ = spans[span_of_block[each]]
                first = int(numbers[each]) * BLOCK
                if len(best) == most and (-bounds[each], number, first) > best[-1]:
                    break
                rows = slice(max(low, first), min(high, first + BLOCK))
                best = sorted(best + _best_of_block(index, rows, start, score, number, most))[:most]
        found.append([(-value, number, row) for value, number, row in best])
    return found


def _best_of_block(
    index: LaneIndex, rows: slice, start: int, score: Score, number: int, most: int
) -> list[tuple[float, int, int]]:
    """(-score, lane, row) of the best of some rows that end after ``start``."""
    scores = score(index.lane, rows)
    if index.max_end is not index.sorted_ends:
        ends = np.maximum(index.lane.take("end", rows), index.starts[rows] + 1)
        scores = np.where(ends > start, scores, _NONE)
    ranked = np.argsort(-scores, kind="stable")[:most]
    return [(-float(scores[place]), number, rows.start + place) for place in ranked.tolist() if scores[place] > _NONE]


def exposed_score(lane: Lane, rows: Rows) -> Floats:
    """Exposed time, ns; -inf where it is 0 or missing."""
    if "exposed" not in lane:
        return np.full(len(lane.take("start", rows)), _NONE)
    exposed = lane.take("exposed", rows)
    return np.where(is_missing(exposed) | (exposed <= 0), _NONE, exposed)


def slow_score(lane: Lane, rows: Rows) -> Floats:
    """Negative bandwidth in GB/s of transfers of at least ``LARGE`` bytes: the slowest score highest."""
    starts = lane.take("start", rows)
    if "bytes" not in lane or not lane.can_have_activity(MOVES):
        return np.full(len(starts), _NONE)
    sizes = lane.take("bytes", rows)
    counted = (lane.take("role", rows) == Role.WORK) & (sizes != INT_MISSING) & (sizes >= LARGE)
    moves = lane.activity_mask(MOVES, rows)
    counted = counted if moves is None else counted & moves
    return np.where(counted, -sizes / np.maximum(lane.take("end", rows) - starts, 1), _NONE)


def wait_score(lane: Lane, rows: Rows) -> Floats:
    """Duration of waits, ns."""
    waits = lane.take("role", rows) == Role.WAIT
    return np.where(waits, lane.take("end", rows) - lane.take("start", rows), _NONE)
