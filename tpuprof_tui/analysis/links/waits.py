"""Waits and the unit that released each; barriers and the unit that arrived last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import Role
from tpuprof_tui.model.lane import row_numbers, select_rows
from tpuprof_tui.model.uniques import distinct, uniques

from ..index.lane_index import rows_between
from ..selecting.cell_texts import text_of
from ..selecting.session import Session
from .dependencies import dependencies_of

I64 = npt.NDArray[np.int64]

#: With this many events or more only their sum is reported: grouping by name would delay the key press.
MOST_NAMED: Final = 20_000


class Waits(Struct, frozen=True, eq=False):
    """Waits as columns of one length, ordered by number."""

    waiter: I64  #: Number of the wait (``Session.number``)
    releaser: I64  #: Number of the event that ended it; -1: unknown
    #: start, end: The wait, ns.
    start: I64
    end: I64
    unit: I64  #: Id of the unit that waited
    released_by: I64  #: Id of the unit that released it; -1: unknown
    guessed: npt.NDArray[np.bool_]  #: Whether the releaser is inferred rather than recorded


class Barriers(Struct, frozen=True, eq=False):
    """Barriers (events that released waits of several units): columns of one length, by ``waited_ns`` descending."""

    releaser: I64  #: Number of the releasing event (``Session.number``)
    unit: I64  #: Id of its unit, which arrived last
    time: I64  #: When it released the waits, ns
    late_ns: I64  #: How much later it arrived than the last of the other units
    waited_ns: I64  #: Sum of the waits of the other units
    waits: I64  #: Number of waits it released
    guessed: npt.NDArray[np.bool_]  #: Whether any of its links is inferred rather than recorded

    def __len__(self) -> int:
        return len(self.releaser)


def waits_of(session: Session) -> Waits:
    """All waits of units, cached; O(n log n) the first time."""
    return session.cache.get("releases", lambda: _find_waits(session))


def _find_waits(session: Session) -> Waits:
    dependencies = dependencies_of(session)
    links, offsets = dependencies.links, session.offsets
    ending = np.flatnonzero(np.isin(links.kind, list(links.ending)))
    # of several releasers the last one, with the least slack, is the cause
    order = ending[np.lexsort((dependencies.slack_ns[ending], links.to_row[ending]))]
    waiter, first = np.unique(links.to_row[order], return_index=True)
    releaser, kind = links.from_row[order[first]], links.kind[order[first]]
    parts: list[tuple[I64, ...]] = []
    for number, lane in enumerate(session.profile.lanes):
        if not lane.on_host:
            rows = np.flatnonzero(lane["role"] == Role.WAIT)
            units = _units_of(session, number, rows)
            rows, units = rows[units >= 0], units[units >= 0]
            parts.append((rows + offsets[number], lane.take("start", rows), lane.take("end", rows), units))
    none = np.zeros(0, np.int64)
    numbers, start, end, unit = (np.concatenate([none, *(part[column] for part in parts)]) for column in range(4))
    link = np.minimum(np.searchsorted(waiter, numbers), max(len(waiter) - 1, 0))
    known = waiter[link] == numbers if len(waiter) else np.zeros(len(numbers), np.bool_)
    link = link[known]
    released = np.full(len(numbers), -1, np.int64)
    released[known] = releaser[link]
    released_by, guessed = np.full(len(numbers), -1, np.int64), np.zeros(len(numbers), np.bool_)
    released_by[known] = _by_lane(session, releaser[link], lambda lane, rows: _units_of(session, lane, rows))
    guessed[known] = np.isin(kind[link], list(links.guessed))
    return Waits(numbers, released, start, end, unit, released_by, guessed)


def barriers_in(session: Session, waits: Waits) -> Barriers:
    """The barriers among some waits, which must include all waits of each barrier. O(waits log waits)."""
    waits = select_rows(waits, (waits.released_by >= 0) & (waits.unit >= 0))
    waits = select_rows(waits, np.lexsort((waits.unit, waits.releaser)))
    bounds = np.flatnonzero(np.diff(waits.releaser, prepend=-1, append=-1))
    first, last = bounds[:-1], bounds[1:] - 1
    several = waits.unit[first] != waits.unit[last]
    first, last = first[several], last[several]
    # reduceat also sums the rows between two barriers; [::2] drops these sums
    ends = np.column_stack((first, last + 1)).ravel()
    others = waits.unit != waits.released_by
    took, start = np.where(others, waits.end - waits.start, 0), np.where(others, waits.start, np.iinfo(np.int64).min)
    waited, latest, guessed = (
        reduce(np.append(values, values[-1:]), ends)[::2]
        for reduce, values in ((np.add.reduceat, took), (np.maximum.reduceat, start),
                               (np.logical_or.reduceat, waits.guessed))
    )  # fmt: skip
    releaser = waits.releaser[first]
    time = _ends(session, releaser)
    order = np.argsort(-waited, kind="stable")
    columns = releaser, waits.released_by[first], time, np.maximum(time - latest, 0), waited, last + 1 - first, guessed
    return select_rows(Barriers(*columns), order)


def barrier_of(session: Session, releaser: tuple[int, int]) -> Barriers:
    """The barrier that an event (lane, row) released, as one row; empty if it released none. O(waits)."""
    waits = waits_of(session)
    return barriers_in(session, select_rows(waits, waits.releaser == session.number(*releaser)))


def _units_of(session: Session, number: int, rows: I64) -> I64:
    """Units of events of a lane: that of the lane, else the one that submitted the event; -1: unknown."""
    unit, lane = session.unit_of(number), session.profile.lanes[number]
    if unit < 0 and "owner" in lane:
        return np.asarray(session.profile.groups.units_of(lane.take("owner", rows)), np.int64)
    return np.full(len(rows), unit, np.int64)


def _by_lane(session: Session, numbers: I64, values: Callable[[int, I64], I64]) -> I64:
    """Values of events by their numbers, from those of some rows of a lane."""
    result = np.zeros(len(numbers), np.int64)
    lanes = np.searchsorted(session.offsets, numbers, side="right") - 1
    for lane in uniques(lanes).tolist():
        chosen = lanes == lane
        result[chosen] = values(lane, numbers[chosen] - session.offsets[lane])
    return result


def _ends(session: Session, numbers: I64) -> I64:
    return _by_lane(session, numbers, lambda lane, rows: session.profile.lanes[lane].take("end", rows))


class LaneWork(Struct, frozen=True):
    """Work of one lane during an interval."""

    lane: int  #: Index in ``Profile.lanes``
    busy: float  #: Busy share of the interval, 0 to 1
    name: str  #: Name with the longest time; empty with ``MOST_NAMED`` events or more
    share: float  #: Its share of the interval, 0 to 1


def lane_work_during(session: Session, unit: int, start: int, end: int) -> list[LaneWork]:
    """Work of the device lanes of a unit during an interval.

    Left out are idle lanes, those of the host, and those that describe the work of others.
    """
    found, length = [], end - start
    for number, lane in enumerate(session.profile.lanes):
        if session.unit_of(number) != unit or not lane.in_sums:
            continue
        index = session.indexes[number]
        busy = index.work.between(start, end)
        if not busy:
            continue
        rows = row_numbers(rows_between(index, start, end))
        if len(rows) >= MOST_NAMED:
            found.append(LaneWork(number, busy / length, "", 0.0))
            continue
        rows = rows[lane.take("role", rows) == Role.WORK]
        within = np.minimum(lane.take("end", rows), end) - np.maximum(lane.take("start", rows), start)
        _, code = distinct(lane.take("name", rows) if "name" in lane else np.zeros(len(rows)))
        by_name = np.bincount(code, within)
        most = int(by_name.argmax())
        name = text_of(session.profile, lane, "name", int(rows[code == most][0])) or "work"
        found.append(LaneWork(number, busy / length, name, min(float(by_name[most]) / length, 1.0)))
    return found


def work_during_text(session: Session, unit: int, start: int, end: int) -> str:
    """Describes the name that a unit worked on longest in an interval, with lane and share; empty if it was idle."""
    most = max(lane_work_during(session, unit, start, end), key=lambda each: each.share, default=None)
    if most is None or not most.share:
        return ""
    return f"{session.profile.lanes[most.lane].label} {most.name} ({most.share:.0%})"
