"""Which steps the host annotated, and which of them a time lies in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import INT_MISSING

from .categories import Kind
from .trace import Trace

I64 = npt.NDArray[np.int64]
STEP: Final = "ProfilerStep#"
_HOST: Final = (Kind.OPERATOR, Kind.ANNOTATION, Kind.OLD_FRAME)


def rows_named(trace: Trace, prefix: str, kinds: tuple[Kind, ...] = _HOST) -> I64:
    """Events of some kinds whose name begins so, by start, then end."""
    wanted = np.array([name.startswith(prefix) for name in trace.names], np.bool_)
    rows = np.flatnonzero(wanted[trace.name] & np.isin(trace.kind, kinds)) if len(wanted) else np.zeros(0, np.int64)
    return rows[np.lexsort((trace.end[rows], trace.start[rows]))]


def step_numbers(labels: Sequence[str]) -> I64:
    """Numbers of steps by what follows ``ProfilerStep#``; counted from 0 where these are no different numbers."""
    told = [int(label) for label in labels if label.isascii() and label.isdecimal() and len(label) < 18]
    if len(set(told)) < len(labels):
        told = list(range(len(labels)))
    return np.array(told, np.int64)


def step_at(starts: I64, ends: I64, times: I64) -> I64:
    """Place of the step, of those in order of start, that holds each time; missing where none does."""
    place = np.searchsorted(starts, times, side="right") - 1
    inside = place >= 0
    inside[inside] = times[inside] < ends[place[inside]]
    return np.where(inside, place, INT_MISSING)
