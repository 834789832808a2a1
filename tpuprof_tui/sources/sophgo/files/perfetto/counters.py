"""Counter tracks: utilisation and bandwidth over time."""

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

#: Bandwidths are summed as integer multiples of 1 / `_PARTS`, so that they return to 0 exactly.
_PARTS: Final = 10_000


def lane_samples(profile: Profile, lane: Lane, rows: Rows, rates: I64 | None = None) -> Samples:
    """Rate (uArch) of a TIU, DDR bandwidth of others: the value of each instruction from its start, 0 from its end.

    System commands count as 0. ``rates``: result of `rates_of`.
    """
    start, end = lane.take("start", rows), lane.take("end", rows)
    if lane.kind != "TIU":
        values = _known(profile, lane, rows, "ddr")
    else:
        values = np.zeros(len(start))
        if rates is not None:
            values = np.where(system_rows(profile, lane, rows), 0.0, rates[rows] / 10)
    times = np.stack([start, end], axis=1).reshape(-1)
    samples = np.stack([values, np.zeros(len(start))], axis=1).reshape(-1)
    if bool((times[1:] < times[:-1]).any()):
        order = np.argsort(times, kind="stable")
        times, samples = times[order], samples[order]
    return times, samples


def total_samples(profile: Profile, chosen: Iterable[tuple[Lane, Rows]], memory: str) -> Samples:
    """Total bandwidth of the given instructions, with a sample at each change; ``memory``: ``ddr`` or ``l2``."""
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
    """Bandwidth of each row, GB/s; 0 for system commands and where it is not known."""
    key = f"{memory}_bandwidth"
    if key not in lane:
        return np.zeros(len(lane.take("start", rows)))
    values = lane.take(key, rows)
    return np.where(np.isfinite(values) & ~system_rows(profile, lane, rows), values, 0.0)
