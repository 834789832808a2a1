"""Clock correction between the ranks of a run: offsets that are added where clocks contradict each other.

A collective ends on all ranks at about the same time, and every rank is in it until then. If most collectives of two
ranks do not overlap in time, one of their clocks is wrong: it is moved by the median difference of their ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from .collectives import matched
from .trace import Trace

#: Least number of collectives for a meaningful median.
_FEW: Final = 3


def shifts(traces: Sequence[Trace], clocks: Sequence[int]) -> list[int]:
    """Offsets in ns to add to the clock of each trace of a run; 0 for the first, and for clocks that agree with it.

    Args:
        traces: Of different ranks.
        clocks: Clock reading of each trace at its zero, ns.
    """
    found = [0] * len(traces)
    for number in range(1, len(traces)):
        rows, other_rows = matched((traces[0], traces[number]))
        if len(rows) < _FEW:
            continue
        one, two, apart = traces[0], traces[number], clocks[number] - clocks[0]
        begin = np.maximum(one.start[rows], two.start[other_rows] + apart)
        end = np.minimum(one.end[rows], two.end[other_rows] + apart)
        if 2 * int((begin > end).sum()) > len(begin):
            found[number] = -int(np.median(two.end[other_rows] + apart - one.end[rows]))
    return found
