"""Clock correction between the ranks of a run: offsets that are added where clocks contradict each other.

A collective ends on all ranks at about the same time, and every rank is in it until then. If most k-th collectives of
two ranks do not overlap in time, one of their clocks is wrong: it is moved by the median difference of their ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from .categories import Kind
from .launchers import COLLECTIVE, COMMUNICATION
from .trace import Trace

I64 = npt.NDArray[np.int64]
#: Least number of collectives for a meaningful median.
_FEW: Final = 3


def collectives(trace: Trace) -> tuple[I64, list[str]]:
    """Rows and names of communication kernels, by start; if there are none, of the host's communication events."""
    for kinds, pattern in (((Kind.KERNEL,), COMMUNICATION), ((Kind.OPERATOR, Kind.ANNOTATION), COLLECTIVE)):
        rows = np.flatnonzero(np.isin(trace.kind, kinds) & trace.named(pattern.match))
        if len(rows):
            rows = rows[np.argsort(trace.start[rows], kind="stable")]
            return rows, [trace.names[code] for code in trace.name[rows].tolist()]
    return np.zeros(0, np.int64), []


def shifts(traces: Sequence[Trace], clocks: Sequence[int]) -> list[int]:
    """Offsets in ns to add to the clock of each trace of a run; 0 for the first, and for clocks that agree with it.

    Args:
        traces: Of different ranks.
        clocks: Clock reading of each trace at its zero, ns.
    """
    found = [0] * len(traces)
    rows, names = collectives(traces[0])
    for number in range(1, len(traces)):
        other_rows, other_names = collectives(traces[number])
        if len(rows) < _FEW or names != other_names:
            continue
        one, two, apart = traces[0], traces[number], clocks[number] - clocks[0]
        begin = np.maximum(one.start[rows], two.start[other_rows] + apart)
        end = np.minimum(one.end[rows], two.end[other_rows] + apart)
        if 2 * int((begin > end).sum()) > len(begin):
            found[number] = -int(np.median(two.end[other_rows] + apart - one.end[rows]))
    return found
