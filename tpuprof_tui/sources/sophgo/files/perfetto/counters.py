"""Counters over time: utilisation and bandwidth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.lane import Rows

from .slices import system_rows

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
#: Timestamps (ns), and the value from each on.
Samples = tuple[I64, F64]

#: Bandwidths are added up as whole parts of this, so that they come back to 0 exactly.
_PARTS: Final = 10_000


def rate_samples(profile: Profile, lane: Lane, rows: Rows, rates: I64 | None) -> Samples:
    """Rate (uArch) of a TIU: that of each instruction from its start, 0 from its end; system commands count 0.

    ``rates``: as `rates_of` gives them.
    """
    start = lane.take("start", rows)
    values = np.zeros(len(start))
    if rates is not None:
        values = np.where(system_rows(profile, lane, rows), 0.0, rates[rows] / 10)
    return _there_and_back(start, lane.take("end", rows), values)


def bandwidth_samples(profile: Profile, lane: Lane, rows: Rows) -> Samples:
    """DDR bandwidth of a lane: that of each instruction from its start, 0 from its end; system commands count 0."""
    return _there_and_back(lane.take("start", rows), lane.take("end", rows), _known(profile, lane, rows, "ddr"))


def total_samples(profile: Profile, chosen: Iterable[tuple[Lane, Rows]], memory: str) -> Samples:
    """Bandwidth of all given instructions together, at each moment.

    Args:
        profile: The profile.
        chosen: Lanes and the rows that count.
        memory: ``ddr`` or ``l2``.

    Returns:
        A sample wherever the sum changes.
    """
    times: list[I64] = []
    steps: list[I64] = []
    for lane, rows in chosen:
        values = np.rint(_known(profile, lane, rows, memory) * _PARTS)
        start, end = lane.take("start", rows), lane.take("end", rows)
        moving = (values > 0) & (values < 2**50) & (end > start)
        step = values[moving].astype(np.int64)
        times += [start[moving], end[moving]]
        steps += [step, -step]
    if not times:
        return np.zeros(0, np.int64), np.zeros(0)
    when, step = np.concatenate(times), np.concatenate(steps)
    order = np.argsort(when, kind="stable")
    when, total = when[order], np.cumsum(step[order])
    last = np.append(when[1:] != when[:-1], True)[: len(when)]
    when, total = when[last], total[last]
    changed = np.append(True, total[1:] != total[:-1])[: len(when)]
    return when[changed], total[changed] / _PARTS


def _known(profile: Profile, lane: Lane, rows: Rows, memory: str) -> F64:
    """Bandwidth of each row, GB/s; 0 for system commands and where nothing is known."""
    key = f"{memory}_bandwidth"
    if key not in lane:
        return np.zeros(len(lane.take("start", rows)))
    values = lane.take(key, rows)
    return np.where(np.isfinite(values) & ~system_rows(profile, lane, rows), values, 0.0)


def _there_and_back(start: I64, end: I64, values: F64) -> Samples:
    """Each value from a start on, 0 from an end on, in the order of time."""
    times = np.empty(2 * len(start), dtype=np.int64)
    times[0::2], times[1::2] = start, end
    samples = np.zeros(2 * len(start))
    samples[0::2] = values
    if bool((times[1:] < times[:-1]).any()):
        order = np.argsort(times, kind="stable")
        times, samples = times[order], samples[order]
    return times, samples
