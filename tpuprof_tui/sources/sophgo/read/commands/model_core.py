"""A compiled model beside which firmware issues kernels of its own: in which order both ran.

The model's commands lie in streams, one per engine and part of the model, those of the kernels in dynamic nodes. Each
list is in order, but nothing says how they interleave: the records do. They are cut where ids restart, and each run
of records is a launch of the one list or the other; the order taken is the one whose lengths fit best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from ..pairing.engine_records import UNKNOWN, Side
from ..pairing.pairing import joint_groups
from .command_table import Commands

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

#: Runs of records without a launch, or launches without one, that may come in a row.
_SLACK = 3
#: Cost of such a run or launch, and of a run that is longer than its launch.
_ALONE, _TOO_LONG = 1.0, 3.0
#: Launches of the model times kernels that are tried; where there are more, the model comes first.
_MOST_PAIRS = 40_000


class Lists(Struct, frozen=True):
    """Commands of one engine.

    Attributes:
        records: Its records.
        static: Commands of the model's streams; ``place`` numbers the streams.
        dynamic: Commands of nodes; ``place`` is that of the node.
    """

    records: Side
    static: Commands
    dynamic: Commands

    def ordered(self, rank_static: I64, rank_dynamic: I64) -> Commands:
        """Both lists as one, in the order of the ranks, which become ``place``."""
        both = joined([self.static, self.dynamic])
        both.place = np.concatenate([rank_static, rank_dynamic])
        return both.take(np.argsort(both.place, kind="stable"))


def joined(parts: Sequence[Commands]) -> Commands:
    """Lists of commands, one behind the other."""

    def column(name: str) -> npt.NDArray[np.generic]:
        return np.concatenate([_column(part, name) for part in parts])

    names = ("word", "id", "scope", "batch", "mode", "place", "extra", "des", "register", "room")
    return Commands(**{name: column(name) for name in names})  # type: ignore[arg-type]


def _column(commands: Commands, name: str) -> npt.NDArray[np.generic]:
    values: npt.NDArray[np.generic] | None = getattr(commands, name)
    if values is not None:
        return values
    return np.full(len(commands), -1, np.int64) if name == "register" else np.zeros(len(commands), np.int32)


def interleaved(engines: Sequence[Lists]) -> list[Commands]:
    """The commands of each engine in the order in which they ran."""
    static = [lists.static.place for lists in engines]
    cuts = joint_groups([Side(lists.dynamic.id, lists.dynamic.place, _unknown(lists.dynamic)) for lists in engines])
    dynamic = [np.searchsorted(cuts, lists.dynamic.place, side="right") - 1 for lists in engines]
    runs = joint_groups([Side(lists.records.id, np.maximum.accumulate(lists.records.key), lists.records.kind)
                         for lists in engines if len(lists.records.id)])  # fmt: skip
    lengths = _table([np.searchsorted(runs, np.maximum.accumulate(each.records.key), side="right") - 1
                      for each in engines], [each.records.id + 1 for each in engines], len(runs))  # fmt: skip
    counts = [
        _table(numbers, [np.ones(len(part), np.int64) for part in numbers], None) for numbers in (static, dynamic)
    ]
    ranks = _ranks(lengths, *counts)
    return [lists.ordered(ranks[0][mine], ranks[1][other])
            for lists, mine, other in zip(engines, static, dynamic, strict=True)]  # fmt: skip


def _unknown(commands: Commands) -> npt.NDArray[np.int8]:
    return np.full(len(commands), UNKNOWN, np.int8)


def _table(numbers: Sequence[I64], values: Sequence[I64], size: int | None) -> I64:
    """By number and engine: the largest value where values differ, their sum where all are 1."""
    rows = max((int(part.max()) + 1 for part in numbers if len(part)), default=0) if size is None else size
    result = np.zeros((rows, len(numbers)), np.int64)
    for engine, (part, value) in enumerate(zip(numbers, values, strict=True)):
        if size is None:
            result[:, engine] = np.bincount(part, minlength=rows)
        else:
            np.maximum.at(result[:, engine], part, value)
    return result


def _misfit(runs: I64, launches: I64) -> F64:
    """Cost of taking each run (rows) for each launch (columns): what is missing of it, and what is too much."""
    length, count = runs[:, None, :], launches[None, :, :]
    missing = np.where(length > count, _TOO_LONG, (count - length) / np.maximum(count, 1))
    result: F64 = missing.sum(axis=2)
    return result


def _ranks(runs: I64, static: I64, dynamic: I64) -> tuple[I64, I64]:
    """Place of each launch of both lists among all, by the cheapest way through both."""
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
    """Launches in order, as (0 for static or 1 for dynamic, number); runs and launches alone cost `_ALONE` each.

    None where more than `_SLACK` of either would be alone in a row.
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
    state = (m, d, min(ends)[1])
    path = [state]
    while state in came:
        state = came[state]
        path.append(state)
    for after, now in zip(path[::-1][1:], path[::-1], strict=False):
        if after[0] > now[0]:
            yield 0, now[0]
        elif after[1] > now[1]:
            yield 1, now[1]
