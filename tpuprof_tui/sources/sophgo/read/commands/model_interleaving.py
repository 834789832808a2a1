"""Finds the execution order of a compiled model's commands and of the kernels that firmware issues besides.

The model's commands are stored in streams, one per engine and part of the model, those of the kernels in dynamic nodes.
Each list is in order, but only the records show how they interleave. The records are split where ids restart, and each
run of records is a launch of one list or the other; the order whose lengths fit best is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from ..arrays import F64, I64
from ..pairing import UNKNOWN, EngineItems, launch_start_keys
from .command_table import Commands, concatenated

#: Most runs without a launch, or launches without a run, in a row.
_SLACK = 3
#: Cost of an unmatched run or launch, and of a run that is longer than its launch.
_ALONE, _TOO_LONG = 1.0, 3.0
#: Largest table (launches of the model times kernels); beyond it all of the model comes first.
_MOST_PAIRS = 40_000


class EngineCommands(Struct, frozen=True):
    """Records and commands of one engine."""

    records: EngineItems
    static: Commands  #: Commands of the model's streams; ``node_index`` is the stream number
    dynamic: Commands  #: Commands of nodes; ``node_index`` is the index of the node


def interleaved(engines: Sequence[EngineCommands]) -> list[Commands]:
    """Commands of each engine in execution order."""
    static = [lists.static.node_index for lists in engines]
    nodes = [lists.dynamic for lists in engines]
    cuts = launch_start_keys([EngineItems(each.id, each.node_index, np.full(len(each), UNKNOWN, np.int8))
                              for each in nodes])  # fmt: skip
    dynamic = [np.searchsorted(cuts, each.node_index, side="right") - 1 for each in nodes]
    keys = [np.maximum.accumulate(each.records.key) for each in engines]
    runs = launch_start_keys(
        [EngineItems(each.records.id, key, each.records.kind) for each, key in zip(engines, keys, strict=True)]
    )
    lengths = np.zeros((len(runs), len(engines)), np.int64)
    for engine, (each, key) in enumerate(zip(engines, keys, strict=True)):
        np.maximum.at(lengths[:, engine], np.searchsorted(runs, key, side="right") - 1, each.records.id + 1)
    ranks = _ranks(lengths, _counts(static), _counts(dynamic))
    result = []
    for lists, part, kernel in zip(engines, static, dynamic, strict=True):
        both = concatenated([lists.static, lists.dynamic])
        both.node_index = np.concatenate([ranks[0][part], ranks[1][kernel]])
        result.append(both.take(np.argsort(both.node_index, kind="stable")))
    return result


def _counts(numbers: Sequence[I64]) -> I64:
    rows = max((int(part.max()) + 1 for part in numbers if len(part)), default=0)
    return np.stack([np.bincount(part, minlength=rows) for part in numbers], axis=1)


def _misfit(runs: I64, launches: I64) -> F64:
    """Cost of matching each run (rows) with each launch (columns): missing and surplus commands."""
    length, count = runs[:, None, :], launches[None, :, :]
    result: F64 = np.where(length > count, _TOO_LONG, (count - length) / np.maximum(count, 1)).sum(axis=2)
    return result


def _ranks(runs: I64, static: I64, dynamic: I64) -> tuple[I64, I64]:
    """Rank of each launch of both lists in the merged order, by the cheapest alignment."""
    m, d = len(static), len(dynamic)
    ranks = np.arange(m, dtype=np.int64), m + np.arange(d, dtype=np.int64)
    if m * d > _MOST_PAIRS or not m or not d:
        return ranks
    costs = _misfit(runs, static).tolist(), _misfit(runs, dynamic).tolist()
    steps = list(_cheapest(len(runs), m, d, *costs))
    for rank, (which, number) in enumerate(steps):
        ranks[which][number] = rank
    return ranks


def _cheapest(
    runs: int, m: int, d: int, of_static: list[list[float]], of_dynamic: list[list[float]]
) -> Iterator[tuple[int, int]]:
    """Launches in order, as (0 for static or 1 for dynamic, number); unmatched runs and launches cost `_ALONE` each.

    Empty where more than `_SLACK` of either would be unmatched in a row.
    """
    shifts = range(-_SLACK, _SLACK + 1)
    best = {(0, 0, 0): 0.0}
    came: dict[tuple[int, int, int], tuple[int, int, int]] = {}

    def reach(state: tuple[int, int, int], cost: float, before: tuple[int, int, int]) -> None:
        if state[2] in shifts and cost < best.get(state, np.inf):
            best[state] = cost
            came[state] = before

    for j in range(m + 1):
        for k in range(d + 1):
            for shift in shifts:
                here = (j, k, shift)
                cost = best.get(here)
                if cost is None:
                    continue
                run = j + k + shift
                if 0 <= run < runs:
                    reach((j, k, shift + 1), cost + _ALONE, here)
                for which, more, each in ((0, j < m, of_static), (1, k < d, of_dynamic)):
                    if not more:
                        continue
                    ahead = (j + 1 - which, k + which)
                    reach((*ahead, shift - 1), cost + _ALONE, here)
                    if 0 <= run < runs:
                        reach((*ahead, shift), cost + each[run][(j, k)[which]], here)
    ends = [(best[(m, d, shift)] + _ALONE * max(runs - m - d - shift, 0), shift)
            for shift in shifts if (m, d, shift) in best]  # fmt: skip
    if not ends:
        return
    state, path = (m, d, min(ends)[1]), list[tuple[int, int]]()
    while state in came:
        before = came[state]
        path += [(which, before[which]) for which in (0, 1) if state[which] > before[which]]
        state = before
    yield from reversed(path)
