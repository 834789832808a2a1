"""Which event waited for which: the links that a profile's source knows, found from either end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.model import Lane, Links, Profile

from ..selecting.session import Session

I64 = npt.NDArray[np.int64]
#: Of so many a selected instruction waited for, or released, the timeline marks where they are.
MARKED: Final = 64


class Dependency(Struct, frozen=True):
    """One dependency, with lanes as places in ``Profile.lanes`` and rows of those lanes.

    Attributes:
        kind: What it means.
        waiter, releaser: Lane and row.
        slack_ns: As in ``Dependencies``.
        ends: Whether the releaser let the waiter end; else it let it begin.
        guessed: Whether it rests on guesswork.
    """

    kind: str
    waiter: tuple[int, int]
    releaser: tuple[int, int]
    slack_ns: int
    ends: bool
    guessed: bool


class Dependencies(Struct, frozen=True, eq=False, dict=True):
    """All dependencies of a profile, ordered by waiter.

    Attributes:
        links: As the source tells them, ordered by ``to_row``.
        waiter_lane, waiter_row: Who waited.
        releaser_lane, releaser_row: Who released it.
        slack_ns: Time between the releaser's end (in a collective its start) and the waiter's start (of a wait that it
            let end: its end). 0 means that nothing but the releaser held the waiter up; negative: the waiter began
            before.
    """

    links: Links
    waiter_lane: npt.NDArray[np.int32]
    waiter_row: I64
    releaser_lane: npt.NDArray[np.int32]
    releaser_row: I64
    slack_ns: I64

    def __len__(self) -> int:
        return len(self.links)

    def waits_for(self, lane: int, row: int) -> tuple[Dependency, ...]:
        """What a row waited for."""
        first, last = np.searchsorted(self._waiters, [lane << 40 | row, (lane << 40 | row) + 1])
        return tuple(self._at(place) for place in range(int(first), int(last)))

    def releases(self, lane: int, row: int) -> tuple[Dependency, ...]:
        """What waited for a row."""
        order, keys = self._releasers
        first, last = np.searchsorted(keys, [lane << 40 | row, (lane << 40 | row) + 1])
        return tuple(self._at(place) for place in order[int(first) : int(last)].tolist())

    def started_in(self, lanes: Sequence[Lane], lane: int, row: int) -> tuple[tuple[Dependency, ...], int]:
        """Of an event that holds others what these let begin on devices: the first of it, and how much there is."""
        own = lanes[lane]
        if "parent" not in own:
            return (), 0
        end = int(own.take("end", slice(row, row + 1))[0])
        order, keys = self._releasers
        stop = int(np.searchsorted(own["start"], end))
        places = order[np.searchsorted(keys, lane << 40 | row + 1) : np.searchsorted(keys, lane << 40 | stop)]
        on_device = np.array([not each.on_host for each in lanes], np.bool_)[self.waiter_lane[places]]
        places = places[on_device]
        places = places[own.take("end", self.releaser_row[places]) <= end]
        return tuple(map(self._at, places[:1].tolist())), len(places)

    def _at(self, place: int) -> Dependency:
        kind = int(self.links.kind[place])
        return Dependency(
            self.links.kinds[kind],
            (int(self.waiter_lane[place]), int(self.waiter_row[place])),
            (int(self.releaser_lane[place]), int(self.releaser_row[place])),
            int(self.slack_ns[place]),
            kind in self.links.ending,
            kind in self.links.guessed,
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
    """All dependencies of a profile as it was read; none where its source knows none, or without times. O(n log n)."""
    none = np.zeros(0, np.int64)
    known = profile.links is not None and profile.timed
    links = profile.links() if known and profile.links is not None else Links((), none.astype(np.int8), none, none)
    return dependencies_in(links, profile.lanes)


def dependencies_in(links: Links, lanes: Sequence[Lane]) -> Dependencies:
    """Links with the lanes, rows and times of what they lead from and to."""
    if (links.to_row[1:] < links.to_row[:-1]).any():
        order = np.argsort(links.to_row, kind="stable")
        links = replace(links, kind=links.kind[order], from_row=links.from_row[order], to_row=links.to_row[order])
    first = np.cumsum([0, *map(len, lanes)], dtype=np.int64)
    # of empty lanes, which begin where the next one does, the last
    waiter_lane, releaser_lane = (
        np.searchsorted(first, rows, side="right").astype(np.int32) - 1 for rows in (links.to_row, links.from_row)
    )
    waiter, releaser = links.to_row - first[waiter_lane], links.from_row - first[releaser_lane]
    ending, meeting = (np.isin(links.kind, list(kinds)) for kinds in (links.ending, links.meeting))
    slack = np.zeros(len(links), np.int64)
    for number, lane in enumerate(lanes):
        for key, mine in (("start", ~ending), ("end", ending)):
            rows = np.flatnonzero(mine & (waiter_lane == number))
            slack[rows] += lane.take(key, waiter[rows])
        for key, mine in (("end", ~meeting), ("start", meeting)):
            rows = np.flatnonzero(mine & (releaser_lane == number))
            slack[rows] -= lane.take(key, releaser[rows])
    return Dependencies(links, waiter_lane, waiter, releaser_lane, releaser, slack)


def known_dependencies(session: Session) -> Dependencies | None:
    """The dependencies where they have been found; None before."""
    found: Dependencies | None = session.derived.known("dependencies")
    return found


def dependencies_of(session: Session) -> Dependencies:
    """All dependencies of a profile, found once. O(n log n): to be asked for in a thread where there are many."""
    return session.derived.get("dependencies", lambda: find_dependencies(session.profile))


def may_have_dependencies(session: Session) -> bool:
    """Whether it is worth to look for dependencies: the source knows some."""
    return session.profile.links is not None


class Tie(Struct, frozen=True):
    """An instruction that the selected one waited for, or that waited for it.

    Attributes:
        lane, row: The instruction.
        time: When it released the selected one (its last ns), or was let go itself (of a wait its last ns).
        released: Whether it released the selected one; else it was released by it.
        slack_ns: Time between the two.
    """

    lane: int
    row: int
    time: int
    released: bool
    slack_ns: int


def ties_of(session: Session, lane: int, row: int) -> tuple[Tie, ...]:
    """What an instruction waited for, then what waited for it, the closest first; empty while that is not known.

    O(log dependencies), and at most ``MARKED`` of each.
    """
    dependencies = known_dependencies(session)
    if dependencies is None or row < 0:
        return ()
    before = sorted(dependencies.waits_for(lane, row), key=lambda each: each.slack_ns)[:MARKED]
    after = sorted(dependencies.releases(lane, row), key=lambda each: each.slack_ns)[:MARKED]
    ties = []
    for each in before:
        start, end = session.span_of(*each.releaser)
        ties.append(Tie(*each.releaser, max(end - 1, start), True, each.slack_ns))
    for each in after:
        start, end = session.span_of(*each.waiter)
        time = max(end - 1, start) if each.ends else start
        ties.append(Tie(*each.waiter, time, False, each.slack_ns))
    return tuple(ties)
