"""Clocks of the ranks of a run, compared by their communication operators.

An operator ends on all ranks at about the same time, and every rank is in it until then. Its name
(``hcom_allReduce__586_0_1``) has the group and a number, so it is the same on all ranks of the group. If most operators
of two ranks do not overlap in time, one of the clocks is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .rank import Rank
from .timeline import SliceClass

I64 = npt.NDArray[np.int64]
#: Start and end of each operator of a rank, ns, by its name and its number among those of the name.
_Operators = dict[tuple[str | None, int], tuple[int, int]]


def align(ranks: Sequence[Rank], spans: Sequence[int]) -> list[int]:
    """Offset in ns to add to the clock of each rank; 0 for clocks that agree with another's.

    Args:
        ranks: The recordings.
        spans: Number of each among those of its rank: only those of one number are compared.
    """
    found = [0] * len(ranks)
    known: dict[int, list[tuple[_Operators, set[str], int]]] = {}
    for number, (rank, span) in enumerate(zip(ranks, spans, strict=True)):
        if rank.rank is None:
            continue
        own, steps = _operators(rank), _steps(rank)
        for other, other_steps, shift in known.get(span, ()):
            # what was recorded in other steps ran at another time
            apart = _apart(other, own) if steps & other_steps or not (steps and other_steps) else None
            if apart is not None:
                found[number] = shift - apart
                break
        if own:
            known.setdefault(span, []).append((own, steps, found[number]))
    return found


def _steps(rank: Rank) -> set[str]:
    timeline = rank.timeline
    return {timeline.names[code] for code in timeline.name[timeline.steps].tolist()}


def _operators(rank: Rank) -> _Operators:
    timeline, kernels = rank.timeline, rank.kernels
    if len(rows := timeline.rows(SliceClass.COLLECTIVE)):
        start, end = timeline.start[rows], timeline.end[rows]
        names: list[str | None] = [timeline.names[code] for code in timeline.name[rows].tolist()]
    else:
        rows = np.flatnonzero(kernels.communicates & kernels.timed)
        start, end, names = kernels.start[rows], kernels.end[rows], kernels.name.values(rows)
    counts: dict[str | None, int] = {}
    found: _Operators = {}
    for row in np.argsort(start, kind="stable").tolist():
        count = counts[names[row]] = counts.get(names[row], -1) + 1
        found[names[row], count] = int(start[row]), int(end[row])
    return found


def _apart(one: _Operators, two: _Operators) -> int | None:
    """How much the second clock is ahead, ns; 0 if they agree, None if the ranks have no operator in common."""
    pairs = [(*one[key], *two[key]) for key in one.keys() & two.keys()]
    if not pairs:
        return None
    one_start, one_end, two_start, two_end = np.array(pairs, np.int64).T
    disjoint = np.maximum(one_start, two_start) > np.minimum(one_end, two_end)
    return int(np.median(two_end - one_end)) if 2 * int(disjoint.sum()) > len(pairs) else 0
