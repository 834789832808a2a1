"""How much time work lost against the chip's peak: by kernel function, operation or family of operations.

An instruction's time at the peak is the column ``ideal``: algorithmic cycles at the clock of TIU for computations,
bytes over the peak bandwidth of the memory involved for transfers. What has no such figure (condensed computations,
moves within local memory, CDMA) is counted apart and takes part in no sum.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..model import Profile
from .lane_index import LaneIndex, rows_between
from .top import UNKNOWN, Grouping, chosen_lanes, chosen_work, label_places

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class HeadroomRow:
    """Work of one label inside a window; of an instruction at the window's edge the part inside counts.

    Attributes:
        label: Text of the column, ``-`` where it is missing.
        code: Its code in ``Profile.strings``, -1 where it is missing.
        count: Instructions whose time at the peak is known.
        unknown: Those whose time at the peak is not.
        total_ns: Time the known ones took.
        ideal_ns: Time they would have taken at the peak.
        lost_ns: Sum of what each took beyond its time at the peak; none gains back what another lost.
    """

    label: str
    code: int
    count: int
    unknown: int
    total_ns: float
    ideal_ns: float
    lost_ns: float

    @property
    def ratio(self) -> float:
        """Time at the peak over time taken; 0 where nothing is known."""
        return self.ideal_ns / self.total_ns if self.total_ns else 0.0


def headroom(
    profile: Profile,
    indexes: Sequence[LaneIndex],
    start: int,
    end: int,
    *,
    by: Grouping = "kernel",
    cores: Collection[int] | None = None,
    lanes: Collection[int] | None = None,
    limit: int | None = 20,
) -> list[HeadroomRow]:
    """Where most time was lost in the window [start, end).

    Args:
        profile: The profile.
        indexes: Index of each of its lanes.
        start: First ns of the window.
        end: First ns after it.
        by: Column to add up by.
        cores: Only work of these cores; None for all.
        lanes: Only these places in ``profile.lanes``; None for all of the device.
        limit: Number of rows; None for all.

    Returns:
        Rows by falling lost time; those with nothing known last. One pass over the window's rows.
    """
    size = len(profile.strings[by]) + 1
    sums = np.zeros((5, size))
    for index in chosen_lanes(indexes, cores, lanes):
        _add(index, start, end, by, cores, sums)
    count, unknown, total, ideal, lost = sums
    ranked = np.lexsort((-unknown, -total, -lost))
    rows = [
        HeadroomRow(
            label=profile.strings[by][place - 1] if place else UNKNOWN,
            code=place - 1,
            count=int(count[place]),
            unknown=int(unknown[place]),
            total_ns=float(total[place]),
            ideal_ns=float(ideal[place]),
            lost_ns=float(lost[place]),
        )
        for place in ranked.tolist()
        if count[place] or unknown[place]
    ]
    return rows[:limit]


def _add(index: LaneIndex, start: int, end: int, by: Grouping, cores: Collection[int] | None, sums: Floats) -> None:
    """Adds a lane's work to the rows of ``sums``: known, unknown, time, time at the peak, lost."""
    lane, rows = index.lane, rows_between(index, start, end)
    begins, ends = lane.take("start", rows), lane.take("end", rows)
    if not len(begins):
        return
    chosen = chosen_work(lane, rows, cores)
    ideal = lane.take("ideal", rows) if "ideal" in lane else np.full(len(begins), np.nan)
    size = sums.shape[1]
    places = label_places(lane, rows, by, size)
    inside = np.minimum(ends, end) - np.maximum(begins, start)
    part = inside / np.maximum(ends - begins, 1)
    known = chosen & ~np.isnan(ideal)
    expected = np.where(known, ideal, 0.0) * part
    lost = np.maximum(inside - expected, 0.0)
    values = (known, chosen & ~known, known * inside, expected, known * lost)
    for number, weights in enumerate(values):
        sums[number] += np.bincount(places, weights=weights, minlength=size)
