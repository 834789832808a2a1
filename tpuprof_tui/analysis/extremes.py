"""The rows with the largest scores in any window: of blocks of rows the best is known, few blocks are looked into."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from ..model import INT_MISSING, Lane, Role, is_missing
from ..model.lane import Rows
from .lane_index import LaneIndex, rows_between
from .running import BLOCK, FEWEST, inner_blocks

Floats = npt.NDArray[np.float64]
#: Scores some rows of a lane; -inf: not in the running.
Score = Callable[[Lane, Rows], Floats]

#: Transfers below this size tell little about bandwidth: 100 KiB.
LARGE: Final = 100 * 1024
_NONE: Final = -np.inf


class Extremes:
    """The best rows of a lane by one score.

    Args:
        score: What is looked for; all rows of the lane are scored once, and few of them again for each window.
    """

    def __init__(self, score: Score) -> None:
        self.score = score
        self._best: Floats | None = None

    def _blocks(self, lane: Lane) -> Floats:
        """Best score of each whole block."""
        if self._best is None:
            whole = len(lane) // BLOCK
            self._best = self.score(lane, slice(0, whole * BLOCK)).reshape(whole, BLOCK).max(axis=1)
        return self._best

    def largest(self, index: LaneIndex, start: int, end: int, most: int) -> list[tuple[float, int]]:
        """Scores and rows of the best instructions that run in the window [start, end), the best first.

        Args:
            index: Index of the lane, always of the same one.
            start: First ns of the window.
            end: First ns after it.
            most: How many at most.
        """
        lane = index.lane
        if len(lane) < FEWEST * BLOCK:
            return best_rows(lane, rows_between(index, start, end), self.score, most)
        first, last, rest = inner_blocks(index, start, end, BLOCK)
        rows = np.arange(rest.start, rest.stop) if isinstance(rest, slice) else rest
        if last > first:
            # the best rows lie in the best blocks
            chosen = first + np.argsort(-self._blocks(lane)[first:last], kind="stable")[:most]
            rows = np.concatenate((rows, (chosen[:, None] * BLOCK + np.arange(BLOCK)).ravel()))
        return best_rows(lane, rows, self.score, most)


def best_rows(lane: Lane, rows: Rows, score: Score, most: int) -> list[tuple[float, int]]:
    """Scores and numbers of the best of some rows, the best first, of equals the first."""
    numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    scores = score(lane, rows)
    ranked = np.lexsort((numbers, -scores))[:most]
    return [(float(scores[place]), int(numbers[place])) for place in ranked.tolist() if scores[place] > _NONE]


def exposed_score(lane: Lane, rows: Rows) -> Floats:
    """Exposed ns; only what is exposed at all."""
    if "exposed" not in lane:
        return np.full(len(lane.take("start", rows)), _NONE)
    exposed = lane.take("exposed", rows)
    return np.where(is_missing(exposed) | (exposed <= 0), _NONE, exposed)


def slow_score(lane: Lane, rows: Rows) -> Floats:
    """Minus the bandwidth in GB/s of transfers of at least ``LARGE`` bytes: the slowest scores highest."""
    starts = lane.take("start", rows)
    if "bytes" not in lane or lane.engine == "TIU":
        return np.full(len(starts), _NONE)
    sizes = lane.take("bytes", rows)
    counted = (lane.take("role", rows) == Role.WORK) & (sizes != INT_MISSING) & (sizes >= LARGE)
    return np.where(counted, -sizes / np.maximum(lane.take("end", rows) - starts, 1), _NONE)


def wait_score(lane: Lane, rows: Rows) -> Floats:
    """How long waits took, ns."""
    waits = lane.take("role", rows) == Role.WAIT
    return np.where(waits, lane.take("end", rows) - lane.take("start", rows), _NONE)
