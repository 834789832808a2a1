"""Figures of lanes, units and the whole profile in a time window.

Definitions: *work* is what events do that neither wait nor synchronise, *wait* waits, *sync* the other commands that
do no work. *Busy* is the union of work, *wait* the time of waits without work, *sync* the time of the others without
both, *idle* the window without any of the three, *utilisation* busy / window.
*Compute*, *transfer* and *communication* are the unions of work by activity over a unit's lanes and over what it
submitted to lanes outside any unit; *overlap* is the time of compute together with one of the others, *exposed*
transfer without compute and communication, *exposed communication* communication without compute.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property, partial
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.model import INT_MISSING, Activity, Lane, Profile, Role
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.model.lane import Rows, row_count

from ..index.lane_index import LaneIndex, build_index, count_starting
from ..index.running_sums import BLOCK, MIN_BLOCKS, RunningSums, inner_blocks

Array = npt.NDArray[Any]
Result = TypeVar("Result")

#: Number of instructions from which multiple threads pay off.
MANY = 2_000_000

#: Columns that the figures of a unit need from what it submitted to other lanes.
_NEEDED: Final = ("start", "end", "role", "activity", "bytes")


class LaneFigures(Struct, frozen=True):
    """Figures of a lane in a window.

    Attributes:
        busy, wait, sync, idle: ns inside the window.
        window: Length of the window, ns.
        count: Number of events that start in the window.
        bytes: Bytes of work in the window (of an instruction at its edge the share inside); None: unknown.
        guessed: Whether the distinction of work and wait is inferred.
    """

    busy: int
    wait: int
    sync: int
    idle: int
    window: int
    count: int
    bytes: int | None = None
    guessed: bool = False

    @property
    def utilisation(self) -> float:
        """Busy over window, 0 to 1; 0 in an empty window."""
        return self.busy / self.window if self.window else 0.0

    @classmethod
    def sum_of(cls, parts: Iterable[LaneFigures]) -> LaneFigures:
        """Sums figures of several lanes; times are then lane time, not wall-clock time."""
        figures = list(parts)
        sizes = [part.bytes for part in figures if part.bytes is not None]
        sums = {
            key: sum(getattr(part, key) for part in figures)
            for key in ("busy", "wait", "sync", "idle", "window", "count")
        }
        return cls(**sums, bytes=sum(sizes) if sizes else None, guessed=any(part.guessed for part in figures))


class UnitFigures(Struct, frozen=True):
    """Figures of a unit in a window; all times in ns.

    Attributes:
        unit: Id of the unit.
        number: Number of the unit; -1: none.
        compute, transfer, communication: Time of each activity.
        overlap: Compute together with one of the others.
        exposed: Transfer without compute and communication.
        exposed_communication: Communication without compute.
        busy: Any of the three.
        idle: Without any event, system commands included.
        window: Length of the window.
        guessed: Whether the distinction of work and wait is inferred.
        lanes: Figures by kind of lane, summed per kind; lanes outside any unit count by what the unit submitted.
    """

    unit: int
    label: str
    number: int
    compute: int
    transfer: int
    communication: int
    overlap: int
    exposed: int
    exposed_communication: int
    busy: int
    idle: int
    window: int
    guessed: bool
    lanes: dict[str, LaneFigures] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Short name for a column of units: the number, else the label."""
        return str(self.number) if self.number >= 0 else self.label

    @property
    def utilisation(self) -> float:
        """Busy over window, 0 to 1."""
        return self.busy / self.window if self.window else 0.0

    @property
    def wait(self) -> int:
        """Time in which only system commands (waits and others) ran, ns: window - busy - idle."""
        return self.window - self.busy - self.idle


class Headline(Struct, frozen=True):
    """Summary of a profile or of a selection; units are None if there are none.

    Attributes:
        device_ns: Window of the figures: first start to last end on the device (on the host if it has none), or the
            selected part of that; of several sessions the sum.
        instructions: Number of instructions that start in it.
        busiest, idlest: Units with the most and the least busy time (the first of equals).
        most_exposed: The unit with the most exposed transfer (the first of equals): the "exposed transfer" of a whole
            profile everywhere, since a mean would be the figure of no unit.
        guessed: Whether the distinction of work and wait is inferred in any lane.
        units: Figures of each unit.
    """

    device_ns: int
    instructions: int
    busiest: UnitFigures | None
    idlest: UnitFigures | None
    most_exposed: UnitFigures | None
    guessed: bool
    units: tuple[UnitFigures, ...]

    @classmethod
    def of(cls, device_ns: int, instructions: int, units: Sequence[UnitFigures], guessed: bool) -> Headline:
        """Chooses the units to name."""
        return cls(
            device_ns=device_ns, instructions=instructions,
            busiest=max(units, key=lambda unit: unit.busy, default=None),
            idlest=min(units, key=lambda unit: unit.busy, default=None),
            most_exposed=max(units, key=lambda unit: unit.exposed, default=None), guessed=guessed, units=tuple(units),
        )  # fmt: skip


class UnitIndex(Struct, frozen=True, eq=False):
    """A unit with the interval sets of its figures.

    Attributes:
        compute, transfer, communication: When it did each activity.
        moving: Union of transfer and communication.
        covering: Union of compute and communication, which cover a transfer.
        busy: Union of all three; for a unit with host lanes only, when these worked.
        rest: When a system command ran and the unit was not busy.
        lanes: Indexes of its lanes, plus one for each kind of lane outside any unit, of what it submitted to them.
    """

    compute: Intervals
    transfer: Intervals
    communication: Intervals
    moving: Intervals
    covering: Intervals
    busy: Intervals
    rest: Intervals
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
    """Maps a function over items, in order; on several threads for a large profile."""
    if profile.instructions < MANY:
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
    moving, covering = transfer.union_with(communication), compute.union_with(communication)
    busy = compute.union_with(moving) if device else _union(index.work for index in own)
    rest = _union(index.rest for index in lanes).difference(busy)
    return UnitIndex(compute, transfer, communication, moving, covering, busy, rest, tuple(lanes))


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


def lane_figures(index: LaneIndex, start: int, end: int) -> LaneFigures:
    """Figures of a lane in [start, end), the latest cached; O(log n), plus O(rows in the window) for its bytes."""
    return index.cache.get("figures", lambda: _lane_figures(index, start, end), start, end, limit=1)


def _lane_figures(index: LaneIndex, start: int, end: int) -> LaneFigures:
    window = max(end - start, 0)
    busy = index.work.between(start, end)
    timeless = bool((index.starts[:1] == INT_MISSING).any())  # events without times belong to any window
    return LaneFigures(
        busy=busy,
        wait=index.wait.between(start, end),
        sync=index.sync.between(start, end),
        idle=window - busy - index.rest.between(start, end),
        window=window,
        count=len(index.lane) if timeless else count_starting(index, start, end),
        bytes=bytes_between(index, start, end),
        guessed=index.lane.role_guessed,
    )


def unit_figures(profile: Profile, indexes: Sequence[LaneIndex], unit: int, start: int, end: int) -> UnitFigures:
    """Figures of a unit (by group id) in the window [start, end); a unit without lanes is idle.

    With ``indexes`` from ``build_indexes`` no pass over all events is needed.
    """
    cached = indexes.by_unit.get(unit) if isinstance(indexes, Indexes) else None
    index = cached or build_unit_index(profile, indexes, unit)
    compute, transfer, communication, moving, covering, busy, rest = (
        spans.between(start, end)
        for spans in (index.compute, index.transfer, index.communication, index.moving, index.covering, index.busy,
                      index.rest)
    )  # fmt: skip
    window = max(end - start, 0)
    kinds: dict[str, list[LaneFigures]] = {}
    for lane in index.lanes:
        kinds.setdefault(lane.lane.kind, []).append(lane_figures(lane, start, end))
    return UnitFigures(
        unit=unit,
        label=profile.groups.title(unit),
        number=profile.groups.number(unit),
        compute=compute,
        transfer=transfer,
        communication=communication,
        # a unit with host lanes only is busy without any of the three
        overlap=max(compute + moving - busy, 0),
        exposed=min(transfer, busy - covering),
        exposed_communication=covering - compute,
        busy=busy,
        idle=window - busy - rest,
        window=window,
        guessed=any(lane.lane.role_guessed for lane in index.lanes),
        lanes={kind: each[0] if len(each) == 1 else LaneFigures.sum_of(each) for kind, each in kinds.items()},
    )


def headline(profile: Profile, indexes: Sequence[LaneIndex]) -> Headline:
    """Summary of the whole profile; of the host if it has no device."""
    device = profile.device_part
    device = device if device.instructions else profile
    units = [unit_figures(profile, indexes, unit, *profile.window_of_group(unit)) for unit in profile.units]
    guessed = any(lane.role_guessed for lane in profile.lanes)
    return Headline.of(profile.device_ns, device.instructions, units, guessed)


def bytes_between(index: LaneIndex, start: int, end: int) -> int | None:
    """Bytes of work in the window [start, end), for an instruction at its edge the share inside; None: unknown.

    O(blocks) after one pass over the lane; for a short lane O(rows in the window).
    """
    lane = index.lane
    if "bytes" not in lane:
        return None
    moved = _bytes_inside(index, start, end)
    # no bytes are known to have moved only if the size of any work is known
    return moved or (0 if index.cache.get("bytes known", lambda: _knows_bytes(lane)) else None)


def _bytes_inside(index: LaneIndex, start: int, end: int) -> int:
    lane = index.lane
    first, last, rest = inner_blocks(index, start, end, 1)
    inner = slice(first, last)
    if len(lane) < MIN_BLOCKS * BLOCK:
        total = int(_work_bytes(lane, inner).sum())
    else:
        sums = index.cache.get("bytes moved", lambda: RunningSums(len(lane), partial(_work_bytes, lane)))
        total = int(sums.over(inner)[0])
    if not row_count(rest):
        return total
    sizes = _work_bytes(lane, rest)[0]
    begins, ends = lane.take("start", rest), lane.take("end", rest)
    inside = np.minimum(ends, end) - np.maximum(begins, start)
    cut = inside < ends - begins
    outside = sizes[cut] * (1.0 - inside[cut] / np.maximum(ends - begins, 1)[cut])
    return total + int(sizes.sum()) - round(float(outside.sum()))


def _knows_bytes(lane: Lane) -> bool:
    return bool((lane["bytes"] != INT_MISSING).any())


def _work_bytes(lane: Lane, rows: Rows) -> Array:
    """Bytes of each row that is work, else 0, also where missing; int64 (1, rows)."""
    sizes = lane.take("bytes", rows)
    counted = (lane.take("role", rows) == Role.WORK) & (sizes != INT_MISSING)
    return np.where(counted, sizes, 0).reshape(1, -1)


def _union(parts: Iterable[Intervals]) -> Intervals:
    found = Intervals.empty()
    for part in parts:
        found = found.union_with(part)
    return found
