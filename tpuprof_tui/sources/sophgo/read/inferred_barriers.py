"""Infers barriers that no register names from waits of several cores that end within a cycle or two of each other.

The engines of all cores at a barrier are released at once, by the last send. Without messages the remaining evidence
is: waits of one kind of engine on several cores that end together, each right after a send of its engine. Engines of
other kinds at the same barrier are released some cycles earlier or later. The releaser is the send that retires last
among those of the engines at the barrier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tpuprof_tui.model import Groups, Lane, Role
from tpuprof_tui.model.uniques import uniques

from .arrays import I64, Bools

#: Waits of one kind of engine that end within this end together: two cycles at 900 MHz and rounding.
_TOGETHER_NS: Final = 3
#: Engines of different kinds at one barrier are released within this.
_ENGINES_NS: Final = 32
#: A barrier is released at most this long after the last send.
_LATENCY_NS: Final = 1_000


def inferred_barriers(
    lanes: Sequence[Lane], groups: Groups, linked: Sequence[tuple[I64, I64]]
) -> tuple[I64, I64, I64, I64]:
    """Lane and row of each wait at an inferred barrier and of the send that released it. O(waits log waits).

    Args:
        linked: Lanes and rows of waits with a known releaser, which are left out.
    """
    none = np.zeros(0, np.int64)
    engines = {lane.kind: index for index, lane in enumerate(lanes)}
    parts: list[I64] = []
    for number, lane in enumerate(lanes):
        unit = groups.unit_of(lane.group)
        if unit < 0 or lane.on_host or not len(lane):
            continue
        role = lane["role"]
        rows = np.flatnonzero(role == Role.WAIT)
        linked_rows = [waiting[waiter == number] for waiter, waiting in linked]
        rows = np.setdiff1d(rows, np.concatenate([none, *linked_rows]), assume_unique=True)
        # at a barrier each engine sends its arrival, then waits
        rows = rows[(rows > 0) & (role[np.maximum(rows - 1, 0)] == Role.SYNC)]
        constants = (np.full(len(rows), each, np.int64) for each in (number, unit, engines[lane.kind]))
        parts.append(np.stack([*constants, rows, lane.take("end", rows), lane.take("end", rows - 1)]))
    if not parts:
        return none, none, none, none
    table = np.concatenate(parts, axis=1)
    table = table[:, np.lexsort((table[4], table[2]))]
    _, unit_of, engine, _, end, _ = table
    cluster = _runs((np.diff(engine) != 0) | (np.diff(end) > _TOGETHER_NS), len(end))
    size = np.bincount(cluster)
    units = np.bincount(uniques(cluster << 20 | unit_of) >> 20, minlength=len(size))
    # exactly one wait per core: other groups that end together do so by chance
    kept = ((units >= 2) & (units == size))[cluster]
    table = np.vstack([table, size[cluster]])[:, kept]
    lane_of, _, _, row, end, sent, size = table[:, np.argsort(table[4], kind="stable")]
    if not len(end):
        return none, none, none, none
    barrier = _runs((np.diff(end) > _ENGINES_NS) | (np.diff(size) != 0), len(end))
    first = np.flatnonzero(np.diff(barrier, prepend=-1))
    opened = end[first][barrier]
    # sends after the first release belong to another barrier
    prior = np.where(sent <= opened, sent, np.iinfo(np.int64).min)
    last = np.lexsort((prior, barrier))[np.append(first[1:], len(end)) - 1][barrier]
    valid = (prior[last] <= opened) & (opened - prior[last] <= _LATENCY_NS) & (prior[last] > np.iinfo(np.int64).min)
    last = last[valid]
    return lane_of[valid], row[valid], lane_of[last], row[last] - 1


def _runs(cut: Bools, count: int) -> I64:
    """Run number of each element; a run ends after each element where ``cut`` is true."""
    return np.concatenate([np.zeros(min(count, 1), np.int64), np.cumsum(cut)])
