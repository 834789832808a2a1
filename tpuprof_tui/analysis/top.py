"""What took the time: work by kernel function, operation or family of operations."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..model import Lane, Profile, Role
from ..model.lane import Rows
from .lane_index import LaneIndex, rows_between

#: Columns that work can be added up by.
Grouping = Literal["kernel", "name", "type"]
#: Label of what a capture does not know.
UNKNOWN = "-"


@dataclass(frozen=True)
class TopRow:
    """Work of one label inside a window.

    Attributes:
        label: Text of the column, ``-`` where it is missing.
        code: Its code in ``Profile.strings``, -1 where it is missing.
        count: Instructions.
        total_ns: Sum of their durations, of an instruction at the window's edge the part inside.
        share: Of the total of all work in the window, 0 to 1.
        mean_ns, max_ns: Mean and largest duration (inside the window).
    """

    label: str
    code: int
    count: int
    total_ns: int
    share: float
    mean_ns: float
    max_ns: int


def top(
    profile: Profile,
    indexes: Sequence[LaneIndex],
    start: int,
    end: int,
    *,
    by: Grouping = "kernel",
    cores: Collection[int] | None = None,
    lanes: Collection[int] | None = None,
    limit: int | None = 20,
) -> list[TopRow]:
    """What took most of the time in the window [start, end).

    Args:
        profile: The profile.
        indexes: Index of each of its lanes.
        start: First ns of the window.
        end: First ns after it.
        by: Column to add up by.
        cores: Only work of these cores (CDMA: submitted by them); None for all.
        lanes: Only these places in ``profile.lanes``; None for all of the device.
        limit: Number of rows; None for all.

    Returns:
        Rows by falling total. One pass over the window's rows.
    """
    size = len(profile.strings[by]) + 1
    totals, counts, longest = (np.zeros(size, dtype=np.int64) for _ in range(3))
    for index in chosen_lanes(indexes, cores, lanes):
        _add(index, start, end, by, cores, (totals, counts, longest))
    everything = int(totals.sum())
    ranked = np.argsort(-totals, kind="stable")[: int(np.count_nonzero(counts))]
    return [
        TopRow(
            label=profile.strings[by][place - 1] if place else UNKNOWN,
            code=place - 1,
            count=int(counts[place]),
            total_ns=int(totals[place]),
            share=int(totals[place]) / everything if everything else 0.0,
            mean_ns=int(totals[place]) / int(counts[place]),
            max_ns=int(longest[place]),
        )
        for place in ranked.tolist()
        if counts[place]
    ][:limit]


def chosen_lanes(
    indexes: Sequence[LaneIndex], cores: Collection[int] | None, lanes: Collection[int] | None
) -> Iterator[LaneIndex]:
    """Lanes that can hold work of these cores: those at these places, else all of the device."""
    for number, index in enumerate(indexes):
        lane = index.lane
        if number not in lanes if lanes is not None else lane.on_host:
            continue
        if cores is None or lane.core < 0 or lane.core in cores:
            yield index


def chosen_work(lane: Lane, rows: Rows, cores: Collection[int] | None) -> npt.NDArray[np.bool_]:
    """Which rows of a chosen lane are work; of a port only what these cores submitted."""
    chosen: npt.NDArray[np.bool_] = lane.take("role", rows) == Role.WORK
    if cores is not None and lane.core < 0:
        chosen &= np.isin(lane.take("core", rows), list(cores)) if "core" in lane else False
    return chosen


def label_places(lane: Lane, rows: Rows, by: Grouping, size: int) -> npt.NDArray[np.int64]:
    """Place of each row's label: its code + 1; 0 where it is missing, or beyond the table and so without a text."""
    if by not in lane:
        return np.zeros(len(lane.take("start", rows)), dtype=np.int64)
    places = np.maximum(lane.take(by, rows), -1).astype(np.int64) + 1
    return np.where(places < size, places, 0)


def _add(
    index: LaneIndex,
    start: int,
    end: int,
    by: Grouping,
    cores: Collection[int] | None,
    sums: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]],
) -> None:
    """Adds a lane's work to totals, counts and longest, at place code + 1."""
    lane, rows = index.lane, rows_between(index, start, end)
    begins, ends = lane.take("start", rows), lane.take("end", rows)
    if not len(begins):
        return
    durations = np.minimum(ends, end) - np.maximum(begins, start)
    totals, counts, longest = sums
    size = len(totals)
    places = label_places(lane, rows, by, size)
    chosen = chosen_work(lane, rows, cores)
    if not chosen.all():
        places, durations = places[chosen], durations[chosen]
    # float64 sums are exact below 2**53 ns, a hundred days
    totals += np.bincount(places, weights=durations, minlength=size).astype(np.int64)
    counts += np.bincount(places, minlength=size)
    np.maximum.at(longest, places, durations)
