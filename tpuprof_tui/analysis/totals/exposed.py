"""How much of each move of data nothing covered.

Of a transfer the part of its time in which its unit neither computed nor communicated; of communication the part in
which its unit did not compute.
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
from tpuprof_tui.model.lane import Rows

from ..derived import Derived
from ..index.intervals import Intervals

Ints = npt.NDArray[np.int64]

#: The column's key.
KEY: Final = "exposed"

#: What covers each.
_COVERS: Final = {
    Activity.TRANSFER: (Activity.COMPUTE, Activity.COMMUNICATION),
    Activity.COMMUNICATION: (Activity.COMPUTE,),
}
_ALL: Final = slice(None)
#: Which of some rows.
_Chosen = slice | npt.NDArray[np.bool_]
#: When a unit did one of some activities, by its id.
_Covering = Callable[[int, tuple[Activity, ...]], Intervals]


def with_exposed(profile: Profile) -> Profile:
    """The profile, its lanes that may move data with a column ``exposed``: ns of each move that is work, else missing.

    Nothing is computed before it is asked for; then O(rows log covering events).
    """
    if any(KEY in lane for lane in profile.lanes):
        return profile

    known, groups = profile.lanes, profile.groups
    # of the lanes alone: the profile itself is not kept by what is made of it
    covering = partial(_covering, known, groups, Derived())

    def exposed(lane: Lane) -> Lane:
        return lane.with_column(KEY, partial(_exposed, lane, groups, covering)) if lane.may_do(MOVES) else lane

    lanes = tuple(map(exposed, known))
    return replace(profile, lanes=lanes)


def _covering(
    lanes: Sequence[Lane], groups: Groups, derived: Derived, unit: int, activities: tuple[Activity, ...]
) -> Intervals:
    """When a unit did work of some activities; made once."""

    def make() -> Intervals:
        within = groups.within(unit)
        found = Intervals.empty()
        for lane in lanes:
            shared = "owner" in lane and groups.unit_of(lane.group) < 0
            if lane.counted and lane.may_do(activities) and (shared or lane.group in within):
                work = lane["role"] == Role.WORK
                chosen = lane.doing(activities, slice(0, len(lane)))
                work = work if chosen is None else work & chosen
                work = work & np.isin(lane["owner"], list(within)) if shared else work
                found = found.union_with(Intervals.union(lane["start"][work], lane["end"][work]))
        return found

    return derived.get("computing time", make, unit, activities)


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
        # of no unit each event counts against the unit that submitted it; without one nothing is known
        owners = groups.units_of(lane.take("owner", rows) if "owner" in lane else np.full(len(starts), INT_MISSING))
        work &= owners >= 0
        units = [(unit, owners == unit) for unit in np.unique(owners[work]).tolist()]
    for activity, doing in parts:
        for unit, own in units:
            chosen = own if isinstance(doing, slice) else doing if isinstance(own, slice) else doing & own
            busy = covering(unit, _COVERS[activity])
            result[chosen] -= busy.covered(ends[chosen]) - busy.covered(starts[chosen])
    return np.where(work, result, INT_MISSING)
