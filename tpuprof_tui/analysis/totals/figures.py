"""Figures of lanes, units and the whole profile in a time window.

Definitions: *work* is what events do that neither wait nor synchronise, *wait* waits, *sync* the other commands that
do no work. *Busy* is the union of work, *wait* the time of waits without work, *sync* the time of the others without
both, *idle* the window without any of the three, *utilisation* busy / window.
*Compute*, *transfer* and *communication* are the unions of work by activity over a unit's lanes and over what it
submitted to lanes outside any unit; *overlap* is the time of compute together with one of the others, *exposed*
transfer without compute and communication, *exposed communication* communication without compute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from tpuprof_tui.model import INT_MISSING, Lane, Role
from tpuprof_tui.model.lane import Rows, row_count

from ..index.lane_index import BLOCK, MIN_BLOCKS, LaneIndex, RunningSums, count_starting, inner_blocks
from ..selecting.session import Session

Array = npt.NDArray[Any]


class LaneFigures(Struct, frozen=True):
    """Figures of a lane in a window."""

    #: busy, wait, sync, idle: ns inside the window.
    busy: int
    wait: int
    sync: int
    idle: int
    window: int  #: Length of the window, ns
    count: int  #: Number of events that start in the window
    #: Bytes of work in the window (of an event at its edge the share inside); None: unknown.
    bytes: int | None = None
    guessed: bool = False  #: Whether the distinction of work and wait is inferred

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
    """Figures of a unit in a window; all times in ns."""

    unit: int  #: Id of the unit
    label: str
    number: int  #: Number of the unit; -1: none
    #: compute, transfer, communication: Time of each activity.
    compute: int
    transfer: int
    communication: int
    overlap: int  #: Compute together with one of the others
    exposed: int  #: Transfer without compute and communication
    exposed_communication: int  #: Communication without compute
    busy: int  #: Any of the three
    idle: int  #: Without any event, system commands included
    window: int  #: Length of the window
    guessed: bool  #: Whether the distinction of work and wait is inferred
    #: Figures by kind of lane, summed per kind; lanes outside any unit count by what the unit submitted.
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
    """Summary of a profile or of a selection; units are None if there are none."""

    #: Window of the figures: first start to last end on the device (on the host if it has none), or the selected part
    #: of that; of several sessions the sum.
    device_ns: int
    event_count: int  #: Number of events that start in it
    #: busiest, idlest: Units with the most and the least busy time (the first of equals).
    busiest: UnitFigures | None
    idlest: UnitFigures | None
    #: The unit with the most exposed transfer (the first of equals): the "exposed transfer" of a whole profile
    #: everywhere, since a mean would be the figure of no unit.
    most_exposed: UnitFigures | None
    guessed: bool  #: Whether the distinction of work and wait is inferred in any lane
    units: tuple[UnitFigures, ...]  #: Figures of each unit

    @classmethod
    def of(cls, device_ns: int, event_count: int, units: Sequence[UnitFigures], guessed: bool) -> Headline:
        """Chooses the units to name."""
        return cls(
            device_ns=device_ns, event_count=event_count,
            busiest=max(units, key=lambda unit: unit.busy, default=None),
            idlest=min(units, key=lambda unit: unit.busy, default=None),
            most_exposed=max(units, key=lambda unit: unit.exposed, default=None), guessed=guessed, units=tuple(units),
        )  # fmt: skip


def lane_figures(index: LaneIndex, start: int, end: int) -> LaneFigures:
    """Figures of a lane in [start, end), the latest cached; O(log n), plus O(rows in the window) for its bytes."""
    return index.cache.get("figures", lambda: _lane_figures(index, start, end), start, end, limit=1)


def _lane_figures(index: LaneIndex, start: int, end: int) -> LaneFigures:
    window = max(end - start, 0)
    busy = index.work.between(start, end)
    return LaneFigures(
        busy=busy,
        wait=index.wait.between(start, end),
        sync=index.sync.between(start, end),
        idle=window - busy - index.waiting.between(start, end),
        window=window,
        count=count_starting(index, start, end),
        bytes=bytes_between(index, start, end),
        guessed=index.lane.role_guessed,
    )


def unit_figures(session: Session, unit: int, start: int, end: int) -> UnitFigures:
    """Figures of a unit (by group id) in the window [start, end); a unit without lanes is idle."""
    index, groups = session.indexes.by_unit[unit], session.profile.groups
    compute, transfer, communication, moves, hides, busy, waiting = (
        spans.between(start, end)
        for spans in (index.compute, index.transfer, index.communication, index.transfer_or_communication,
                      index.compute_or_communication, index.busy, index.waiting)
    )  # fmt: skip
    window = max(end - start, 0)
    kinds: dict[str, list[LaneFigures]] = {}
    for lane in index.lanes:
        kinds.setdefault(lane.lane.kind, []).append(lane_figures(lane, start, end))
    return UnitFigures(
        unit=unit,
        label=groups.title(unit),
        number=groups.number(unit),
        compute=compute,
        transfer=transfer,
        communication=communication,
        # a unit with host lanes only is busy without any of the three
        overlap=max(compute + moves - busy, 0),
        exposed=min(transfer, busy - hides),
        exposed_communication=hides - compute,
        busy=busy,
        idle=window - busy - waiting,
        window=window,
        guessed=any(lane.lane.role_guessed for lane in index.lanes),
        lanes={kind: each[0] if len(each) == 1 else LaneFigures.sum_of(each) for kind, each in kinds.items()},
    )


def bytes_between(index: LaneIndex, start: int, end: int) -> int | None:
    """Bytes of work in the window [start, end), for an event at its edge the share inside; None: unknown.

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
