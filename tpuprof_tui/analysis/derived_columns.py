"""Columns that analysis adds to the lanes of any profile: ``step``, and ``exposed``.

Exposed time of data movement is the part that no other activity of the unit covers: for a transfer, time in which its
unit neither computed nor communicated; for communication, time in which its unit did not compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.model import INT_MISSING, Activity, Groups, Lane, Profile, Role
from tpuprof_tui.model.activity import MOVES
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.model.lane import Rows
from tpuprof_tui.model.uniques import uniques

from .result_cache import ResultCache
from .steps.step_detection import with_steps

Ints = npt.NDArray[np.int64]

#: The column's key.
KEY: Final = "exposed"

#: Activities that cover each kind of data movement.
_COVERS: Final = {
    Activity.TRANSFER: (Activity.COMPUTE, Activity.COMMUNICATION),
    Activity.COMMUNICATION: (Activity.COMPUTE,),
}
_ALL: Final = slice(None)
#: Mask or slice of some rows.
_Chosen = slice | npt.NDArray[np.bool_]
#: Maps a unit's id and activities to the times in which the unit did any of them.
_Covering = Callable[[int, tuple[Activity, ...]], Intervals]


def with_derived_columns(profile: Profile) -> Profile:
    """The profile with both columns where its lanes can have them; nothing is computed yet."""
    return with_steps(with_exposed(profile))


def with_exposed(profile: Profile) -> Profile:
    """The profile with a lazy column ``exposed`` in lanes that may move data: ns for moves that are work, else missing.

    O(rows log covering events) when the column is read.
    """
    if any(KEY in lane for lane in profile.lanes):
        return profile

    known, groups = profile.lanes, profile.groups
    # computed from the lanes alone: the cache must not hold a reference to the profile
    covering = partial(_covering_time, known, groups, ResultCache())

    def exposed(lane: Lane) -> Lane:
        column = partial(_exposed, lane, groups, covering)
        return lane.with_column(KEY, column) if lane.can_have_activity(MOVES) else lane

    lanes = tuple(map(exposed, known))
    return replace(profile, lanes=lanes)


def _covering_time(
    lanes: Sequence[Lane], groups: Groups, cache: ResultCache, unit: int, activities: tuple[Activity, ...]
) -> Intervals:
    def make() -> Intervals:
        within = groups.within(unit)
        found = Intervals.empty()
        for lane in lanes:
            shared = "owner" in lane and groups.unit_of(lane.group) < 0
            if lane.counted and lane.can_have_activity(activities) and (shared or lane.group in within):
                work = lane["role"] == Role.WORK
                chosen = lane.activity_mask(activities, slice(0, len(lane)))
                work = work if chosen is None else work & chosen
                work = work & np.isin(lane["owner"], list(within)) if shared else work
                found = found.union_with(Intervals.union(lane["start"][work], lane["end"][work]))
        return found

    return cache.get("computing time", make, unit, activities)


def _exposed(lane: Lane, groups: Groups, covering: _Covering, rows: Rows) -> Ints:
    starts, ends = lane.take("start", rows), lane.take("end", rows)
    result = ends - starts
    work = lane.take("role", rows) == Role.WORK
    parts: list[tuple[Activity, _Chosen]] = []
    if lane.activity is not None:
        parts.append((lane.activity, _ALL))
    else:
        does = lane.take("activity", rows)
        parts += [(activity, does == activity) for activity in MOVES]
        work &= np.isin(does, MOVES)
    units: list[tuple[int, _Chosen]] = [(groups.unit_of(lane.group), _ALL)]
    if units[0][0] < 0:
        # on lanes outside any unit an event counts for the unit that submitted it; without one, exposed is missing
        owners = groups.units_of(lane.take("owner", rows) if "owner" in lane else np.full(len(starts), INT_MISSING))
        work &= owners >= 0
        units = [(unit, owners == unit) for unit in uniques(owners[work]).tolist()]
    for activity, doing in parts:
        for unit, own in units:
            chosen = own if isinstance(doing, slice) else doing if isinstance(own, slice) else doing & own
            busy = covering(unit, _COVERS[activity])
            result[chosen] -= busy.covered(ends[chosen]) - busy.covered(starts[chosen])
    return np.where(work, result, INT_MISSING)
