"""Clocks of the ranks of a run: where they contradict each other, what is added to each so that they do not.

A collective ends on all ranks at about the same time, and every rank is in it until then. Where most k-th collectives
of two ranks have no moment in common, one of their clocks is wrong: it is moved by the median difference of their ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from .categories import Kind
from .trace import Trace

I64 = npt.NDArray[np.int64]
#: Kernels that communicate.
COMMUNICATION: Final = re.compile(r"nccl|rccl|msccl|oneccl", re.IGNORECASE)
_HOST: Final = re.compile(r"(?:nccl|gloo|mpi|ucc|xccl|hccl):")
#: Collectives from which on a median is worth something.
_FEW: Final = 3


def collectives(trace: Trace) -> tuple[I64, I64, list[str]]:
    """Starts, ends, ns, and names of the kernels that communicate, by start; without any, those of the host."""
    for kinds, pattern in (((Kind.KERNEL,), COMMUNICATION), ((Kind.OPERATOR, Kind.ANNOTATION), _HOST)):
        named = np.array([bool(pattern.match(name)) for name in trace.names], np.bool_)
        if named.any():
            rows = np.flatnonzero(np.isin(trace.kind, kinds) & named[trace.name])
            rows = rows[np.argsort(trace.start[rows], kind="stable")]
            if len(rows):
                return trace.start[rows], trace.end[rows], [trace.names[code] for code in trace.name[rows].tolist()]
    nothing = np.zeros(0, np.int64)
    return nothing, nothing, []


def shifts(traces: Sequence[Trace], clocks: Sequence[int]) -> list[int]:
    """What is added to the clock of each trace of one run, ns; 0 of the first, and where nothing contradicts it.

    Args:
        traces: Of different ranks.
        clocks: What the clock of each reads at its zero.
    """
    found = [0] * len(traces)
    first = collectives(traces[0])
    for number in range(1, len(traces)):
        other = collectives(traces[number])
        if len(first[0]) < _FEW or first[2] != other[2]:
            continue
        apart = clocks[number] - clocks[0]
        begin = np.maximum(first[0], other[0] + apart)
        end = np.minimum(first[1], other[1] + apart)
        if 2 * int((begin > end).sum()) > len(begin):
            found[number] = -int(np.median(other[1] + apart - first[1]))
    return found
