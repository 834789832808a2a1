"""The figures of lanes, units and the whole profile inside a window of time.

Definitions: *work* is what events do that neither wait nor synchronise, *wait* waits, *sync* the other commands that
do no work. *Busy* is the union of work, *idle* the window without any of the three, *utilisation* busy over window.
*Compute*, *transfer* and *communication* are the unions of work by activity over a unit's lanes and over what it
submitted to lanes of no unit; *overlap* is what compute and one of the others cover, *exposed* transfer without compute
and communication, *exposed communication* that without compute.
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
from tpuprof_tui.model.lane import Rows, row_count

from ..index.intervals import Intervals
from ..index.lane_index import LaneIndex, build_index, starting_between
from ..index.running_sums import BLOCK, FEWEST, RunningSums, inner_blocks

Array = npt.NDArray[Any]
Result = TypeVar("Result")

#: Instructions from which threads save more than they cost.
MANY = 2_000_000

#: Columns of what a unit submitted elsewhere that its figures need.
_NEEDED: Final = ("start", "end", "role", "activity", "bytes")


class LaneFigures(Struct, frozen=True):
    """What a lane did in a window.

    Attributes:
        busy, wait, sync, idle: ns inside the window.
        window: Length of the window, ns.
        count: Events that start in the window.
        bytes: Bytes of work in the window (of an instruction at its edge the share inside); None where unknown.
        guessed: Work and wait are told apart by guesswork.
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
    def summed(cls, parts: Iterable[LaneFigures]) -> LaneFigures:
        """Figures of several lanes added up: times are then of lanes, not of the clock."""
        figures = list(parts)
        sizes = [part.bytes for part in figures if part.bytes is not None]
        sums = {
            key: sum(getattr(part, key) for part in figures)
            for key in ("busy", "wait", "sync", "idle", "window", "count")
        }
        return cls(**sums, bytes=sum(sizes) if sizes else None, guessed=any(part.guessed for part in figures))


class UnitFigures(Struct, frozen=True):
    """What a unit did in a window; all times are ns.

    Attributes:
        unit: Its id.
        number: Its number; -1 without one.
        compute, transfer, communication: Time of each activity.
        overlap: Computing together with one of the others.
        exposed: Moving data alone.
        exposed_communication: Communication without computing.
        busy: Any of them.
        idle: Without any event, system commands included.
        window: Length of the window.
        guessed: Work and wait are told apart by guesswork.
        lanes: Figures by kind of lane, several lanes of a kind added up; lanes of no unit count by what it submitted.
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
        """What it is called in a column of units: its number, else its label."""
        return str(self.number) if self.number >= 0 else self.label

    @property
    def utilisation(self) -> float:
        """Busy over window, 0 to 1."""
        return self.busy / self.window if self.window else 0.0

    @property
    def wait(self) -> int:
        """Time with system commands alone, waits and others, ns: what busy and idle leave of the window."""
        return self.window - self.busy - self.idle


class Headline(Struct, frozen=True):
    """Where the time of a whole profile went, in one line; units of which there is none are None.

    Attributes:
        busiest, idlest: Units with the most and the least busy time (the first of equals).
        most_exposed: The unit with the most exposed transfer (the first of equals): what "exposed transfer" of a whole
            profile is everywhere, as a mean would be that of no unit.
        guessed: Some lane's work and wait are told apart by guesswork.
    """

    total_ns: int
    instructions: int
    busiest: UnitFigures | None
    idlest: UnitFigures | None
    most_exposed: UnitFigures | None
    guessed: bool
    units: tuple[UnitFigures, ...]


class UnitIndex(Struct, frozen=True, eq=False):
    """A unit with the sums its figures need.

    Attributes:
        compute, transfer, communication: When it did which.
        moving: When it did one of the last two.
        covering: When it did one that covers a transfer: computed or communicated.
        either: When it did any of the three; of a unit with lanes of the host alone when these worked.
        rest: When a system command ran on it and it did neither.
        lanes: Indexes of its lanes; of each kind of lane of no unit one more, of what it submitted to them.
    """

    compute: Intervals
    transfer: Intervals
    communication: Intervals
    moving: Intervals
    covering: Intervals
    either: Intervals
    rest: Intervals
    lanes: tuple[LaneIndex, ...]


class Indexes(tuple[LaneIndex, ...]):
    """The indexes of a profile's lanes, in their order, with those of its units beside them (``by_unit``)."""

    profile: Profile

    @cached_property
    def by_unit(self) -> dict[int, UnitIndex]:
        """The index of each unit; made when the first is asked for."""
        made = _mapped(self.profile, lambda unit: build_unit_index(self.profile, self, unit), self.profile.units)
        return dict(zip(self.profile.units, made, strict=True))


def build_indexes(profile: Profile) -> Indexes:
    """All that the figures of a profile are made from; once per profile, on several threads where there is much."""
    indexes = Indexes(_mapped(profile, partial(build_index, arrays=profile.arrays), profile.lanes))
    indexes.profile = profile
    return indexes


def _mapped(profile: Profile, function: Callable[..., Result], each: Iterable[Any]) -> list[Result]:
    """What a function gives for each of many things, in their order; on several threads for a large profile."""
    if profile.instructions < MANY:
        return list(map(function, each))
    # imported only where it pays
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as pool:
        return list(pool.map(function, each))


def build_unit_index(profile: Profile, indexes: Iterable[LaneIndex], unit: int) -> UnitIndex:
    """The index of one unit, from those of all lanes.

    Lanes of the host count in no figure, but in those of a unit that has no others; lanes that are not counted with
    their waits alone.
    """
    within = profile.groups.within(unit)
    own: list[LaneIndex] = []
    shared: dict[str, list[Lane]] = {}
    for index in indexes:
        if index.lane.group in within:
            own.append(index)
        elif "owner" in index.lane and profile.unit_of(index.lane) < 0 and not index.lane.on_host:
            shared.setdefault(index.lane.kind, []).append(index.lane)
    device = [index for index in own if not index.lane.on_host]
    device += [build_index(lane) for each in shared.values() if (lane := submitted_lane(each, within)) is not None]
    lanes = device or own
    compute, transfer, communication = (
        _joined(work_of(index, activity) for index in lanes if index.lane.counted)
        for activity in (Activity.COMPUTE, Activity.TRANSFER, Activity.COMMUNICATION)
    )
    moving, covering = transfer.union_with(communication), compute.union_with(communication)
    either = compute.union_with(moving) if device else _joined(index.work for index in own)
    rest = _joined(index.rest for index in lanes).minus(either)
    return UnitIndex(compute, transfer, communication, moving, covering, either, rest, tuple(lanes))


def work_of(index: LaneIndex, activity: Activity) -> Intervals:
    """When a lane's events of an activity did work; of a lane of one activity as its index has it."""
    lane = index.lane
    if not lane.may_do((activity,)):
        return Intervals.empty()
    chosen = lane.doing((activity,), slice(0, len(lane)))
    if chosen is None:
        return index.work
    chosen &= lane["role"] == Role.WORK
    return Intervals.union(lane["start"][chosen], lane["end"][chosen])


def submitted_lane(lanes: Iterable[Lane], within: Collection[int]) -> Lane | None:
    """What some groups submitted to lanes of one kind as one, with the columns figures need; None without any."""
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
    """The figures of a lane in the window [start, end); O(log n), plus O(rows in the window) for its bytes; kept."""
    return index.derived.get("figures", lambda: _lane_figures(index, start, end), start, end, most=1)


def _lane_figures(index: LaneIndex, start: int, end: int) -> LaneFigures:
    window = max(end - start, 0)
    busy = index.work.between(start, end)
    timeless = bool((index.starts[:1] == INT_MISSING).any())  # what has no times belongs to any window
    return LaneFigures(
        busy=busy,
        wait=index.wait.between(start, end),
        sync=index.sync.between(start, end),
        idle=window - busy - index.rest.between(start, end),
        window=window,
        count=len(index.lane) if timeless else starting_between(index, start, end),
        bytes=bytes_between(index, start, end),
        guessed=index.lane.role_guessed,
    )


def unit_figures(profile: Profile, indexes: Sequence[LaneIndex], unit: int, start: int, end: int) -> UnitFigures:
    """The figures of a unit, by the id of its group, in the window [start, end); without lanes it is idle.

    Indexes that ``build_indexes`` gives answer without work over all events.
    """
    known = indexes.by_unit.get(unit) if isinstance(indexes, Indexes) else None
    index = known or build_unit_index(profile, indexes, unit)
    compute, transfer, communication, moving, covering, busy, rest = (
        spans.between(start, end)
        for spans in (index.compute, index.transfer, index.communication, index.moving, index.covering, index.either,
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
        # a unit of host lanes alone is busy with none of the three
        overlap=max(compute + moving - busy, 0),
        exposed=min(transfer, busy - covering),
        exposed_communication=covering - compute,
        busy=busy,
        idle=window - busy - rest,
        window=window,
        guessed=any(lane.lane.role_guessed for lane in index.lanes),
        lanes={kind: each[0] if len(each) == 1 else LaneFigures.summed(each) for kind, each in kinds.items()},
    )


def headline(profile: Profile, indexes: Sequence[LaneIndex]) -> Headline:
    """Where the time of the whole profile went; of one without a device what the host did."""
    device = profile.device_part
    device = device if device.instructions else profile
    start, end = device.start_ns, device.end_ns
    units = tuple(unit_figures(profile, indexes, unit, start, end) for unit in profile.units)
    return Headline(
        total_ns=end - start,
        instructions=device.instructions,
        busiest=max(units, key=lambda unit: unit.busy, default=None),
        idlest=min(units, key=lambda unit: unit.busy, default=None),
        most_exposed=max(units, key=lambda unit: unit.exposed, default=None),
        guessed=any(lane.role_guessed for lane in profile.lanes),
        units=units,
    )


def bytes_between(index: LaneIndex, start: int, end: int) -> int | None:
    """Bytes of work in the window [start, end), of an instruction at its edge the share inside; None where unknown.

    O(blocks) after one pass over the lane; of a short lane O(rows in the window).
    """
    lane = index.lane
    if "bytes" not in lane:
        return None
    first, last, rest = inner_blocks(index, start, end, 1)
    inner = slice(first, last)
    if len(lane) < FEWEST * BLOCK:
        total = int(_work_bytes(lane, inner).sum())
    else:
        sums = index.derived.get("bytes moved", lambda: RunningSums(len(lane), partial(_work_bytes, lane)))
        total = int(sums.over(inner)[0])
    if not row_count(rest):
        return total
    sizes = _work_bytes(lane, rest)[0]
    begins, ends = lane.take("start", rest), lane.take("end", rest)
    inside = np.minimum(ends, end) - np.maximum(begins, start)
    cut = inside < ends - begins
    outside = sizes[cut] * (1.0 - inside[cut] / np.maximum(ends - begins, 1)[cut])
    return total + int(sizes.sum()) - round(float(outside.sum()))


def _work_bytes(lane: Lane, rows: Rows) -> Array:
    """int64 (1, rows): bytes of what is work, 0 where they are missing."""
    sizes = lane.take("bytes", rows)
    counted = (lane.take("role", rows) == Role.WORK) & (sizes != INT_MISSING)
    return np.where(counted, sizes, 0).reshape(1, -1)


def _joined(parts: Iterable[Intervals]) -> Intervals:
    joined = Intervals.empty()
    for part in parts:
        joined = joined.union_with(part)
    return joined
