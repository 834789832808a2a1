"""Launch sequence of a unit: its kernel launches (scopes) in order, or its named work where there are no scopes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import Lane, Profile, Role

Ints = npt.NDArray[np.int64]


class LaunchSequence(Struct, frozen=True, eq=False):
    """Launches of a unit in order of start; arrays of one length."""

    unit: int  #: Id of the unit
    code: Ints  #: int64, code of what was launched in the text column ``key``
    #: start, end: int64 ns.
    start: Ints
    end: Ints
    scope: Ints  #: int64 ids of the scopes; empty if the launches are events
    key: str  #: The text column
    #: lane, rows: The events that are the launches; None if they are scopes.
    lane: Lane | None = None
    rows: Ints | None = None

    def __len__(self) -> int:
        return len(self.code)


def launch_lane(profile: Profile, unit: int) -> Lane:
    """The scopes of a unit as a lane: each from the first start to the last end of its events. O(events of the unit).

    Columns ``kernel`` and ``scope`` identify the launch.
    """
    count = len(profile.scopes)
    first = np.full(count, np.iinfo(np.int64).max, np.int64)
    last = np.full(count, np.iinfo(np.int64).min, np.int64)
    for lane in profile.lanes_of(unit):
        if "scope" in lane and len(lane) and count:
            # reduce runs of rows with the same scope first
            scope, starts = lane["scope"], lane["start"]
            begins = np.concatenate(([0], np.flatnonzero(scope[1:] != scope[:-1]) + 1))
            numbers, ends = scope[begins], np.maximum.reduceat(lane["end"], begins)
            # events may refer to scopes that do not exist
            real = (numbers >= 0) & (numbers < count)
            np.minimum.at(first, numbers[real], starts[begins][real])
            np.maximum.at(last, numbers[real], ends[real])
    found = np.flatnonzero(last >= first)
    found = found[np.lexsort((last[found], first[found]))]
    size = len(found)
    return Lane(
        kind="launches", group=unit, label="kernels",
        columns={
            "start": first[found], "end": last[found], "order": np.arange(size, dtype=np.int64),
            "role": np.full(size, Role.WORK, np.int8), "sublane": np.zeros(size, np.int16),
            "kernel": np.asarray(profile.scopes.kernel[found], np.int32), "scope": found.astype(np.int64),
        },
    )  # fmt: skip


def launch_sequences(profile: Profile, units: Sequence[int]) -> list[LaunchSequence]:
    """The launch sequences of some units, without empty ones. O(events)."""
    lanes = [launch_lane(profile, unit) for unit in units] if len(profile.scopes) else []
    sequences = [
        LaunchSequence(each.group, each["kernel"].astype(np.int64), each["start"], each["end"], each["scope"], "kernel")
        for each in lanes
    ]
    if not any(map(len, sequences)):
        sequences = [found for unit in units if (found := _of_names(profile, unit)) is not None]
    return [each for each in sequences if len(each)]


def _of_names(profile: Profile, unit: int) -> LaunchSequence | None:
    """Named work of the lane of a unit that has the most of it; None: no named work."""
    best: tuple[Lane, Ints] | None = None
    for lane in profile.lanes_of(unit):
        if not lane.in_sums or "name" not in lane:
            continue
        rows = np.flatnonzero((lane["role"] == Role.WORK) & (lane["name"] >= 0))
        if len(rows) > (len(best[1]) if best is not None else 0):
            best = lane, rows
    if best is None:
        return None
    lane, rows = best
    code, start, end = (lane.take(key, rows) for key in ("name", "start", "end"))
    return LaunchSequence(unit, code.astype(np.int64), start, end, np.zeros(0, np.int64), "name", lane, rows)
