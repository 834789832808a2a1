"""Indexes of the lanes of a profile, and of its units: when each computed, moved data, communicated and waited."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.model import Activity, Lane, Profile, Role
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.model.uniques import uniques

from .lane_index import LaneIndex, build_index

Array = npt.NDArray[Any]
Result = TypeVar("Result")

#: Number of events from which multiple threads pay off.
MANY = 2_000_000

#: Columns that the figures of a unit need from what it submitted to other lanes.
_NEEDED: Final = ("start", "end", "role", "activity", "bytes")
#: Sets of groups for which the index of a lane they share is cached.
_SUBMITTERS: Final = 64


class UnitIndex(Struct, frozen=True, eq=False):
    """A unit with the interval sets of its figures."""

    #: compute, transfer, communication: When it did each activity.
    compute: Intervals
    transfer: Intervals
    communication: Intervals
    transfer_or_communication: Intervals
    compute_or_communication: Intervals  #: What hides a transfer that runs at the same time
    busy: Intervals  #: Union of all three; for a unit with host lanes only, when these worked
    waiting: Intervals  #: When it waited or synchronised and was not busy
    #: Indexes of its lanes, plus one for each kind of lane outside any unit, of what it submitted to them.
    lanes: tuple[LaneIndex, ...]


class Indexes(tuple[LaneIndex, ...]):
    """Indexes of a profile's lanes in their order, with those of its units (``by_unit``)."""

    profile: Profile

    @cached_property
    def by_unit(self) -> dict[int, UnitIndex]:
        """Index of each unit by id; all are built on first access."""
        made = _map(self.profile, lambda unit: build_unit_index(self.profile, self, unit), self.profile.units)
        return dict(zip(self.profile.units, made, strict=True))


def build_indexes(profile: Profile) -> Indexes:
    """Builds the indexes of all lanes; once per profile, on several threads for a large profile."""
    device_end = profile.device_part.end_ns

    def index(lane: Lane) -> LaneIndex:
        return build_index(lane, profile.arrays, profile.end_ns if lane.on_host else device_end)

    indexes = Indexes(_map(profile, index, profile.lanes))
    indexes.profile = profile
    return indexes


def _map(profile: Profile, function: Callable[..., Result], each: Iterable[Any]) -> list[Result]:
    if profile.event_count < MANY:
        return list(map(function, each))
    # lazy import: costs time at startup
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as pool:
        return list(pool.map(function, each))


def build_unit_index(profile: Profile, indexes: Iterable[LaneIndex], unit: int) -> UnitIndex:
    """Builds the index of one unit from those of all lanes.

    Host lanes count only for a unit that has no others; of lanes that are not ``counted``, only waits count.
    """
    within = profile.groups.within(unit)
    own: list[LaneIndex] = []
    shared: dict[str, list[LaneIndex]] = {}
    for index in indexes:
        if index.lane.group in within:
            own.append(index)
        elif "owner" in index.lane and profile.unit_of(index.lane) < 0 and not index.lane.on_host:
            shared.setdefault(index.lane.kind, []).append(index)
    device = [index for index in own if not index.lane.on_host]
    device += [build_index(lane, last=each[0].last) for each in shared.values()
               if (lane := submitted_lane((index.lane for index in each), within)) is not None]  # fmt: skip
    lanes = device or own
    compute, transfer, communication = (
        _union(work_of(index, activity) for index in lanes if index.lane.counted)
        for activity in (Activity.COMPUTE, Activity.TRANSFER, Activity.COMMUNICATION)
    )
    moves, hides = transfer.union_with(communication), compute.union_with(communication)
    busy = compute.union_with(moves) if device else _union(index.work for index in own)
    waiting = _union(index.waiting for index in lanes).difference(busy)
    return UnitIndex(compute, transfer, communication, moves, hides, busy, waiting, tuple(lanes))


def work_of(index: LaneIndex, activity: Activity) -> Intervals:
    """When a lane's events of an activity did work."""
    lane = index.lane
    if not lane.can_have_activity((activity,)):
        return Intervals.empty()
    chosen = lane.activity_mask((activity,), slice(0, len(lane)))
    if chosen is None:
        return index.work
    chosen &= lane["role"] == Role.WORK
    return Intervals.union(lane["start"][chosen], lane["end"][chosen])


def submitted_lane(lanes: Iterable[Lane], within: Collection[int]) -> Lane | None:
    """Merges what some groups submitted to lanes of one kind into one lane with ``_NEEDED`` columns; None: nothing."""
    parts: dict[str, list[Array]] = {}
    found: Lane | None = None
    for lane in lanes:
        rows = np.flatnonzero(np.isin(lane["owner"], list(within)))
        if not len(rows):
            continue
        found = lane
        for key in _NEEDED:
            if key in lane:
                parts.setdefault(key, []).append(lane.take(key, rows))
    if found is None:
        return None
    order = np.argsort(np.concatenate(parts["start"]), kind="stable")
    columns = {key: np.concatenate(values)[order] for key, values in parts.items()}
    return replace(found, label=found.kind, number=-1, columns=columns, registers=None, describe=None, arguments=None)


def owners_of(index: LaneIndex) -> frozenset[int]:
    """Groups that submitted the events of a lane, with ``INT_MISSING`` if some have no owner; O(n) once."""
    if "owner" not in index.lane:
        return frozenset()
    return index.cache.get("owners", lambda: frozenset(uniques(index.lane["owner"]).tolist()))


def submitted_rows(lane: Lane, groups: Collection[int]) -> npt.NDArray[np.int64] | slice:
    """Rows of a lane that belong to these groups: all, of a lane outside them those that they submitted."""
    if lane.group in groups or "owner" not in lane:
        return slice(0, len(lane))
    return np.flatnonzero(np.isin(lane["owner"], list(groups)))


def submitted(index: LaneIndex, groups: frozenset[int]) -> LaneIndex:
    """The index, of a lane outside these groups restricted to the events that they submitted; cached."""
    lane = index.lane
    if lane.group in groups or "owner" not in lane or owners_of(index) <= groups:
        return index
    return index.cache.get(
        "submitted",
        lambda: build_index(lane.select_rows(submitted_rows(lane, groups)), last=index.last),
        groups,
        limit=_SUBMITTERS,
    )


def indexes_in_sums(profile: Profile, indexes: Iterable[LaneIndex], groups: frozenset[int]) -> Iterator[LaneIndex]:
    """Indexes of the device lanes in sums: of these groups, and of what these submitted to lanes outside any unit."""
    for index in indexes:
        lane = index.lane
        if lane.in_sums and (lane.group in groups or (profile.unit_of(lane) < 0 and "owner" in lane)):
            yield submitted(index, groups)


def _union(parts: Iterable[Intervals]) -> Intervals:
    found = Intervals.empty()
    for part in parts:
        found = found.union_with(part)
    return found
