"""Dependencies between events (waiter and releaser), as recorded by the source, looked up from either end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.model import Lane, Links, Profile, Role
from tpuprof_tui.model.lane import row_numbers

from ..index.lane_index import rows_between
from ..selecting.session import Session

I64 = npt.NDArray[np.int64]
#: Maximum number of dependencies, each way, that the timeline marks for the selected event.
MARKED: Final = 64
#: Kind of a dependency that only the times suggest.
BY_TIME: Final = "time"


class Dependency(Struct, frozen=True):
    """One dependency between two events, each given as (index in ``Profile.lanes``, row)."""

    kind: str  #: Kind of dependency, in words
    #: waiter, releaser: Lane and row.
    waiter: tuple[int, int]
    releaser: tuple[int, int]
    slack_ns: int  #: As in ``Dependencies``
    ends: bool  #: Whether the releaser ended the waiter; else it allowed it to start
    guessed: bool  #: Whether the link is inferred rather than recorded
    launched: bool  #: Whether the releaser launched the waiter


class Dependencies(Struct, frozen=True, eq=False, dict=True):
    """All dependencies of a profile as columns of one length, ordered by waiter."""

    links: Links  #: The links of the source, ordered by ``to_row``
    #: waiter_lane, waiter_row: The event that waited.
    waiter_lane: npt.NDArray[np.int32]
    waiter_row: I64
    #: releaser_lane, releaser_row: The event that released it.
    releaser_lane: npt.NDArray[np.int32]
    releaser_row: I64
    #: From the releaser's end (in a collective its start) to the waiter's start (for a wait that the releaser ended:
    #: its end). 0 means that only the releaser delayed the waiter; negative: the waiter started earlier.
    slack_ns: I64

    def __len__(self) -> int:
        return len(self.links)

    def waits_for(self, lane: int, row: int) -> tuple[Dependency, ...]:
        """The dependencies in which a row is the waiter."""
        first, last = np.searchsorted(self._waiters, [lane << 40 | row, (lane << 40 | row) + 1])
        return tuple(self._at(index) for index in range(int(first), int(last)))

    def releases(self, lane: int, row: int) -> tuple[Dependency, ...]:
        """The dependencies in which a row is the releaser."""
        order, keys = self._releasers
        first, last = np.searchsorted(keys, [lane << 40 | row, (lane << 40 | row) + 1])
        return tuple(self._at(index) for index in order[int(first) : int(last)].tolist())

    def started_in(self, lanes: Sequence[Lane], lane: int, row: int) -> tuple[tuple[Dependency, ...], int]:
        """Device events that the children of a host event started: the first dependency (or none), and the count."""
        own = lanes[lane]
        if "parent" not in own:
            return (), 0
        end = int(own.take("end", slice(row, row + 1))[0])
        order, keys = self._releasers
        stop = int(np.searchsorted(own["start"], end))
        indexes = order[np.searchsorted(keys, lane << 40 | row + 1) : np.searchsorted(keys, lane << 40 | stop)]
        on_device = np.array([not each.on_host for each in lanes], np.bool_)[self.waiter_lane[indexes]]
        indexes = indexes[on_device]
        indexes = indexes[own.take("end", self.releaser_row[indexes]) <= end]
        return tuple(map(self._at, indexes[:1].tolist())), len(indexes)

    def _at(self, index: int) -> Dependency:
        kind = int(self.links.kind[index])
        return Dependency(
            self.links.kinds[kind],
            (int(self.waiter_lane[index]), int(self.waiter_row[index])),
            (int(self.releaser_lane[index]), int(self.releaser_row[index])),
            int(self.slack_ns[index]),
            kind in self.links.ending,
            kind in self.links.guessed,
            kind in self.links.launching,
        )

    @cached_property
    def _waiters(self) -> I64:
        return self.waiter_lane.astype(np.int64) << 40 | self.waiter_row

    @cached_property
    def _releasers(self) -> tuple[I64, I64]:
        keys = self.releaser_lane.astype(np.int64) << 40 | self.releaser_row
        order = np.argsort(keys, kind="stable")
        return order, keys[order]


def find_dependencies(profile: Profile) -> Dependencies:
    """All dependencies of a profile; empty if its source records none, or it has no times. O(n log n)."""
    none = np.zeros(0, np.int64)
    known = profile.links is not None and profile.timed
    links = profile.links() if known and profile.links is not None else Links((), none.astype(np.int8), none, none)
    return dependencies_in(links, profile.lanes)


def dependencies_in(links: Links, lanes: Sequence[Lane]) -> Dependencies:
    """Resolves links into lanes, rows and slack."""
    if (links.to_row[1:] < links.to_row[:-1]).any():
        order = np.argsort(links.to_row, kind="stable")
        links = replace(links, kind=links.kind[order], from_row=links.from_row[order], to_row=links.to_row[order])
    first = np.cumsum([0, *map(len, lanes)], dtype=np.int64)
    # empty lanes share the offset of the lane after them; side="right" picks the last, which holds the row
    waiter_lane, releaser_lane = (
        np.searchsorted(first, rows, side="right").astype(np.int32) - 1 for rows in (links.to_row, links.from_row)
    )
    waiter, releaser = links.to_row - first[waiter_lane], links.from_row - first[releaser_lane]
    ending, meeting = (np.isin(links.kind, list(kinds)) for kinds in (links.ending, links.meeting))
    slack = np.zeros(len(links), np.int64)
    for number, lane in enumerate(lanes):
        for key, chosen in (("start", ~ending), ("end", ending)):
            rows = np.flatnonzero(chosen & (waiter_lane == number))
            slack[rows] += lane.take(key, waiter[rows])
        for key, chosen in (("end", ~meeting), ("start", meeting)):
            rows = np.flatnonzero(chosen & (releaser_lane == number))
            slack[rows] -= lane.take(key, releaser[rows])
    return Dependencies(links, waiter_lane, waiter, releaser_lane, releaser, slack)


def cached_dependencies(session: Session) -> Dependencies | None:
    """The dependencies if they have been computed; None before."""
    found: Dependencies | None = session.cache.peek("dependencies")
    return found


def dependencies_of(session: Session) -> Dependencies:
    """All dependencies of a profile, cached. O(n log n) the first time: call it from a worker thread."""
    return session.cache.get("dependencies", lambda: find_dependencies(session.profile))


def may_have_dependencies(session: Session) -> bool:
    """Whether the source of the profile can have dependencies."""
    return session.profile.links is not None


def likely_release(session: Session, number: int, row: int) -> Dependency | None:
    """What likely released work without a recorded cause: that of another lane that ended last in the gap before.

    Only lanes of its unit count, and ends between the work before it on its own lane and its start. O(lanes log n).
    """
    lane, unit = session.profile.lanes[number], session.unit_of(number)
    if unit < 0 or lane.on_host or not session.profile.timed or int(lane.take("role", slice(row, row + 1))[0]):
        return None
    start, index = session.span_of(number, row)[0], session.indexes[number]
    latest, found = int(index.max_end[row - 1]) if row else session.profile.start_ns, None
    for other, each in enumerate(session.profile.lanes):
        if other == number or session.unit_of(other) != unit or not each.in_sums:
            continue
        ends = session.indexes[other].sorted_ends
        place = int(np.searchsorted(ends, start, side="right")) - 1
        if place < 0 or int(ends[place]) <= latest:
            continue
        end = int(ends[place])
        rows = row_numbers(rows_between(session.indexes[other], end - 1, end))
        rows = rows[(each.take("end", rows) == end) & (each.take("role", rows) == Role.WORK)]
        if len(rows):
            latest, found = end, (other, int(rows[-1]))
    return None if found is None else Dependency(BY_TIME, (number, row), found, start - latest, False, True, False)


class LinkedEvent(Struct, frozen=True):
    """An event that released the selected one, or was released by it."""

    #: lane, row: The event.
    lane: int
    row: int
    time: int  #: When it released the selected one (its last ns), or was released itself (for a wait: its last ns)
    released: bool  #: Whether it released the selected one; else it was released by it
    slack_ns: int  #: As in ``Dependencies``


def linked_events(session: Session, lane: int, row: int) -> tuple[LinkedEvent, ...]:
    """The releasers of an event, then the events it released, each by slack; empty until computed.

    O(log dependencies), and at most ``MARKED`` of each.
    """
    dependencies = cached_dependencies(session)
    if dependencies is None or row < 0:
        return ()
    before = sorted(dependencies.waits_for(lane, row), key=lambda each: each.slack_ns)[:MARKED]
    after = sorted(dependencies.releases(lane, row), key=lambda each: each.slack_ns)[:MARKED]
    found = []
    for each in before:
        start, end = session.span_of(*each.releaser)
        found.append(LinkedEvent(*each.releaser, max(end - 1, start), True, each.slack_ns))
    for each in after:
        start, end = session.span_of(*each.waiter)
        time = max(end - 1, start) if each.ends else start
        found.append(LinkedEvent(*each.waiter, time, False, each.slack_ns))
    return tuple(found)
