"""How much of each transfer no computing covered: the part of its time in which its core's TIU did no work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import INT_MISSING, Lane, Profile, Role
from tpuprof_tui.model.lane import Rows

from ..derived import Derived
from ..index.intervals import Intervals
from .figures import TRANSFER_ENGINES

Ints = npt.NDArray[np.int64]

#: The column's key.
KEY: Final = "exposed"


def with_exposed(profile: Profile) -> Profile:
    """The profile, its transfer lanes with a column ``exposed``: ns of each instruction of work, missing of others.

    Nothing is computed before it is asked for; then O(rows log computations).
    """
    if any(KEY in lane for lane in profile.lanes):
        return profile

    known = profile.lanes
    # of the lanes alone: the profile itself is not kept by what is made of it
    computing = partial(_computing, known, Derived())
    lanes = tuple(_with_column(lane, computing) if lane.engine in TRANSFER_ENGINES else lane for lane in known)
    return replace(profile, lanes=lanes)


def _computing(lanes: Sequence[Lane], derived: Derived, core: int) -> Intervals:
    """When a core computed; made once."""

    def make() -> Intervals:
        found = Intervals.empty()
        for lane in lanes:
            if lane.core == core and lane.engine not in TRANSFER_ENGINES:
                work = lane["role"] == Role.WORK
                found = found.union_with(Intervals.union(lane["start"][work], lane["end"][work]))
        return found

    return derived.get("computing time", make, core)


def _with_column(lane: Lane, computing: Callable[[int], Intervals]) -> Lane:
    return lane.with_column(KEY, partial(_exposed, lane, computing))


def _exposed(lane: Lane, computing: Callable[[int], Intervals], rows: Rows) -> Ints:
    starts, ends = lane.take("start", rows), lane.take("end", rows)
    result = ends - starts
    work = lane.take("role", rows) == Role.WORK
    if lane.core >= 0:
        result = result - _covered(computing(lane.core), starts, ends)
    elif "core" in lane:
        # of a port each instruction counts against the core that submitted it; without one nothing is known
        cores = lane.take("core", rows)
        work &= cores != INT_MISSING
        for core in np.unique(cores[work]).tolist():
            own = cores == core
            result[own] -= _covered(computing(core), starts[own], ends[own])
    else:
        work[:] = False
    return np.where(work, result, INT_MISSING)


def _covered(busy: Intervals, starts: Ints, ends: Ints) -> Ints:
    return busy.covered(ends) - busy.covered(starts)
