"""When each command of many launches starts and ends.

The loop runs over the rows of a program; all launches of it are computed side
by side, so the cost per record is a few array operations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .chips import CDMA
from .program import BARRIER, Program

I64 = npt.NDArray[np.int64]

#: From the end of what a command waited for to its start, ns.
_RELEASE = 22
_SHORTEST_GAP = 11
_GAP_SPREAD = 60


@dataclass
class Schedule:
    """Times of n launches, rows x n, ns from the launch; barrier waits are open-ended."""

    start: I64
    end: I64
    #: When each launch has nothing left to do but wait for the others.
    ready: I64
    barrier_rows: list[int]

    def close(self, barrier: I64) -> None:
        """End the waits for all cores, given when the last one came."""
        for place, row in enumerate(self.barrier_rows):
            self.end[row] = np.maximum(self.start[row] + 10, barrier + 9 * place)


def _lane(program: Program, row: int) -> int:
    """What a command queues behind: its engine, or one direction of a port."""
    entry = program.rows[row]
    if entry.engine != CDMA:
        return entry.engine
    receiving = entry.op.key in ("cdma_receive", "cdma_read")
    return CDMA + 1 + 2 * entry.slot + receiving


def schedule(program: Program, pace: npt.NDArray[np.float64], rng: np.random.Generator) -> Schedule:
    """Times of ``len(pace)`` launches; ``pace`` stretches the durations of each."""
    rows, launches = len(program.rows), len(pace)
    chance = rng.random((2, rows, launches), dtype=np.float32)
    gap = (_SHORTEST_GAP + _GAP_SPREAD * chance[0]).astype(np.int64)
    start = np.zeros((rows, launches), dtype=np.int64)
    end = np.zeros((rows, launches), dtype=np.int64)
    free: dict[int, I64] = {}
    zero = np.zeros(launches, dtype=np.int64)
    ready = zero.copy()
    barriers: list[int] = []
    for number, row in enumerate(program.rows):
        lane = _lane(program, number)
        begin = free.get(lane, zero) + gap[number]
        for before in row.after:
            begin = np.maximum(begin, end[before] + _RELEASE)
        if row.engine == CDMA and row.op.system:
            begin = _after_both_directions(free, lane, begin)
        stretch = row.base_ns * (1.0 + row.jitter * chance[1, number])
        until = begin + (stretch if row.op.system else stretch * pace).astype(np.int64)
        if row.until >= 0:
            until = np.maximum(until, end[row.until] + _RELEASE)
        start[number], end[number] = begin, until
        free[lane] = until
        if row.engine == CDMA and row.op.system:
            free[lane ^ 1] = until
        if row.until == BARRIER:
            barriers.append(number)
        np.maximum(ready, until, out=ready)
    return Schedule(start, end, ready, barriers)


def _after_both_directions(free: dict[int, I64], lane: int, begin: I64) -> I64:
    """A system command of a port waits for what runs in either direction."""
    other = free.get(lane ^ 1)
    return begin if other is None else np.maximum(begin, other + _SHORTEST_GAP)
