"""Which command released which, from what the commands' registers name.

The rule, and what must hold before a dependency is shown:

*By command id.* A TIU command starts only when the GDMA command whose Cmd Id it names (``depends_on``) has retired, and
the other way round. Ids count from 1 since the last id reset and both engines of a core are idle at a reset, so the
command meant is the one with that id among those since the reset before the waiter: of the same launch where launches
are known, started after everything the waiter's own engine did before that reset, and retired when the waiter starts.
Where two could be meant, or it was not recorded, there is no dependency. On some chips further bits of TIU's register
select an engine (``depends_engine``) in a way that no public text explains: where they are set, there is a dependency
only if no SDMA command could be meant as well. SDMA's own register has an id but nothing that says whose it is, CDMA's
commands have none.

*By message.* A wait is released when as many sends of its message have retired as its count asks; a send says how many
waits its message serves, after which the message may be used anew. Ordered by when they end, the sends and waits of one
message in one kernel function are therefore runs of sends followed by runs of waits. A run of sends and the run of
waits behind it are linked if each wait counts exactly these sends and each send exactly these waits. The messages
of a core are looked at alone first, what is left over on all cores together: they share their messages. The releaser
is the send that retires last. TIU, GDMA and SDMA take part alike; how CDMA's sends and waits name their message is not
public. Where next to no wait of a profile agrees, what agrees does so by chance: its registers hold no messages, and
there is no dependency at all.

Both kinds need ids: captures whose registers name nothing (all zero, or counts that do not agree) have no dependencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import INT_MISSING, Lane, Profile, Role

I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Share of the waits that must find their sends before any of them is believed; lost records cost whole rounds.
_LEAST_AGREEING = 1 / 16
#: Engines that name each other's commands.
_PAIRED = ("TIU", "GDMA")


class DependencyKind(IntEnum):
    """How a waiter names its releaser."""

    COMMAND = 0
    MESSAGE = 1


@dataclass(frozen=True)
class Dependency:
    """One dependency, with lanes as places in ``Profile.lanes`` and rows of those lanes."""

    kind: DependencyKind
    waiter: tuple[int, int]
    releaser: tuple[int, int]
    slack_ns: int


@dataclass(frozen=True, eq=False)
class Dependencies:
    """All dependencies of a profile, ordered by waiter.

    Attributes:
        kind: ``DependencyKind`` of each.
        waiter_lane, waiter_row: Who waited.
        releaser_lane, releaser_row: Who released it.
        slack_ns: Time between the releaser's end and the waiter's start (of a wait: its end); never negative. 0 means
            that nothing but the releaser held the waiter up.
    """

    kind: npt.NDArray[np.int8]
    waiter_lane: npt.NDArray[np.int32]
    waiter_row: I64
    releaser_lane: npt.NDArray[np.int32]
    releaser_row: I64
    slack_ns: I64

    def __len__(self) -> int:
        return len(self.kind)

    def waits_for(self, lane: int, row: int) -> tuple[Dependency, ...]:
        """What a row waited for."""
        first, last = np.searchsorted(self._waiters, [lane << 40 | row, (lane << 40 | row) + 1])
        return tuple(self._at(place) for place in range(int(first), int(last)))

    def releases(self, lane: int, row: int) -> tuple[Dependency, ...]:
        """What waited for a row."""
        order, keys = self._releasers
        first, last = np.searchsorted(keys, [lane << 40 | row, (lane << 40 | row) + 1])
        return tuple(self._at(place) for place in order[int(first) : int(last)].tolist())

    def _at(self, place: int) -> Dependency:
        return Dependency(
            DependencyKind(int(self.kind[place])),
            (int(self.waiter_lane[place]), int(self.waiter_row[place])),
            (int(self.releaser_lane[place]), int(self.releaser_row[place])),
            int(self.slack_ns[place]),
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
    """All dependencies of a profile; none where its registers name nothing, or without times. O(n log n)."""
    profile = profile.timed_part
    parts = [*_by_command_id(profile), *_by_message(profile)]
    none = np.zeros(0, np.int64)
    columns = [np.concatenate([part[place] for part in parts]) if parts else none for place in range(6)]
    order = np.lexsort((columns[0], columns[2], columns[1]))
    kind, waiter_lane, waiter_row, releaser_lane, releaser_row, slack = (column[order] for column in columns)
    lanes = waiter_lane.astype(np.int32), releaser_lane.astype(np.int32)
    return Dependencies(kind.astype(np.int8), lanes[0], waiter_row, lanes[1], releaser_row, slack)


def _part(
    kind: DependencyKind, waiter_lane: Any, waiter: I64, releaser_lane: Any, releaser: I64, slack: I64
) -> list[I64]:
    """Columns of some dependencies; lanes may be one number for all."""
    count = len(waiter)
    lanes = [np.broadcast_to(np.asarray(lane, np.int64), count) for lane in (waiter_lane, releaser_lane)]
    return [np.full(count, int(kind), np.int64), lanes[0], waiter, lanes[1], releaser, slack]


# -- by command id ------------------------------------------------------------


@dataclass(frozen=True)
class _Epochs:
    """A lane cut where its ids restart.

    Attributes:
        lane: The lane.
        first: First row of each stretch.
        of_row: Stretch of each row.
        idle_before: When everything before the stretch had ended.
        scope: Launch of each row; -1 unknown.
    """

    lane: Lane
    first: I64
    of_row: I64
    idle_before: I64
    scope: I64


def _by_command_id(profile: Profile) -> list[list[I64]]:
    parts = []
    for unit in profile.units:
        within = profile.groups.within(unit)
        numbers = {lane.kind: number for number, lane in enumerate(profile.lanes) if lane.group in within}
        if not all(engine in numbers for engine in _PAIRED):
            continue
        epochs: dict[str, _Epochs] = {}
        for engine, other in (_PAIRED, _PAIRED[::-1]):
            lane = profile.lanes[numbers[engine]]
            wanted = lane["depends_on"] if "depends_on" in lane else np.zeros(0, np.int64)
            waiters = np.flatnonzero(wanted > 0)
            if not len(waiters):
                continue
            for name in _PAIRED:
                epochs.setdefault(name, _epochs(profile.lanes[numbers[name]]))
            rows, releasers = _releasers(epochs[engine], epochs[other], waiters, wanted[waiters])
            if "depends_engine" in lane and "SDMA" in numbers:
                sure = lane.take("depends_engine", rows) == 0
                epochs.setdefault("SDMA", _epochs(profile.lanes[numbers["SDMA"]]))
                either, _ = _releasers(epochs[engine], epochs["SDMA"], rows[~sure], wanted[rows[~sure]])
                sure |= ~np.isin(rows, either)
                rows, releasers = rows[sure], releasers[sure]
            slack = lane["start"][rows] - profile.lanes[numbers[other]]["end"][releasers]
            parts.append(_part(DependencyKind.COMMAND, numbers[engine], rows, numbers[other], releasers, slack))
    return parts


def _epochs(lane: Lane) -> _Epochs:
    ids = lane["command_id"]
    count = len(lane)
    scope = np.full(count, -1, np.int64)
    if "scope" in lane:
        scope = np.where(lane["scope"] == INT_MISSING, -1, lane["scope"])
    cut = np.ones(count, np.bool_)
    cut[1:] = (ids[1:] <= ids[:-1]) | (scope[1:] != scope[:-1])
    first = np.flatnonzero(cut)
    ended = np.maximum.accumulate(lane["end"])
    idle = np.concatenate([[np.iinfo(np.int64).min], ended[first[1:] - 1]]) if count else np.zeros(0, np.int64)
    return _Epochs(lane, first, np.cumsum(cut) - 1, idle, scope)


def _releasers(mine: _Epochs, theirs: _Epochs, waiters: I64, wanted: I64) -> tuple[I64, I64]:
    """Waiters that have a releaser, and its row on the other lane."""
    none = np.zeros(0, np.int64)
    if not len(theirs.of_row):
        return none, none
    start = mine.lane["start"][waiters]
    ids, their_start, their_end = theirs.lane["command_id"], theirs.lane["start"], theirs.lane["end"]
    before = np.searchsorted(their_start, start, side="left") - 1  # the last that had begun
    keys = theirs.of_row << 32 | np.clip(ids, 0, (1 << 32) - 1)
    order = np.argsort(keys, kind="stable")
    asked = theirs.of_row[np.maximum(before, 0)] << 32 | wanted
    low = np.searchsorted(keys[order], asked, side="left")
    high = np.searchsorted(keys[order], asked, side="right")
    found = (before >= 0) & (high - low == 1)
    row = order[np.where(found, low, 0)]
    found &= their_end[row] <= start
    found &= their_start[row] >= mine.idle_before[mine.of_row[waiters]]
    one, other = mine.scope[waiters], theirs.scope[row]
    found &= (one == other) | (one < 0) | (other < 0)
    return waiters[found], row[found]


# -- by message ---------------------------------------------------------------


@dataclass(frozen=True)
class _Messages:
    """Sends and waits of all lanes, one entry each."""

    lane: I64
    row: I64
    unit: I64
    message: I64
    count: I64
    waits: Bools
    end: I64
    kernel: I64

    def take(self, rows: npt.NDArray[Any]) -> _Messages:
        return _Messages(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def __len__(self) -> int:
        return len(self.row)


def _by_message(profile: Profile) -> list[list[I64]]:
    parts = [part for number in range(len(profile.lanes)) if (part := _messages(profile, number)) is not None]
    if not parts:
        return []
    names = _Messages.__dataclass_fields__
    everything = _Messages(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
    result = []
    waits = int(everything.waits.sum())
    for alone in (True, False):
        if len(everything):
            done, dependencies = _rounds(everything, everything.unit if alone else np.zeros(len(everything), np.int64))
            result.append(dependencies)
            everything = everything.take(~done)
    agreeing = sum(len(part[0]) for part in result)
    return result if agreeing >= _LEAST_AGREEING * waits else []


def _messages(profile: Profile, number: int) -> _Messages | None:
    lane = profile.lanes[number]
    if "message" not in lane:
        return None
    rows = np.flatnonzero(lane["message"] != INT_MISSING)
    if not len(rows):
        return None
    role = lane.take("role", rows)
    rows = rows[role != Role.WORK]
    kernel = lane.take("kernel", rows).astype(np.int64) if "kernel" in lane else np.full(len(rows), -1, np.int64)
    return _Messages(
        np.full(len(rows), number, np.int64),
        rows,
        np.full(len(rows), profile.unit_of(lane), np.int64),
        lane.take("message", rows),
        lane.take("message_count", rows),
        lane.take("role", rows) == Role.WAIT,
        lane.take("end", rows),
        kernel,
    )


def _rounds(events: _Messages, group: I64) -> tuple[Bools, list[I64]]:
    """Which events belong to a round that agrees, and the dependencies of these rounds.

    Args:
        events: Sends and waits.
        group: Those of one value are looked at together.
    """
    order = np.lexsort((events.waits, events.end, events.kernel, events.message, group))
    sorted_ = events.take(order)
    anew = np.ones(len(order), np.bool_)
    anew[1:] = (group[order][1:] != group[order][:-1]) | (sorted_.message[1:] != sorted_.message[:-1])
    anew[1:] |= sorted_.kernel[1:] != sorted_.kernel[:-1]
    anew[1:] |= sorted_.waits[:-1] & ~sorted_.waits[1:]
    number = np.cumsum(anew) - 1
    rounds = int(number[-1]) + 1
    waits = np.bincount(number, sorted_.waits, rounds).astype(np.int64)
    sends = np.bincount(number, ~sorted_.waits, rounds).astype(np.int64)
    agrees = (waits > 0) & (sends > 0)
    fits = sorted_.count == np.where(sorted_.waits, sends[number], waits[number])
    first = np.flatnonzero(anew)
    agrees &= np.bincount(number, ~fits, rounds) == 0
    waiting = np.flatnonzero(sorted_.waits & agrees[number])
    last_send = (first + sends - 1)[number[waiting]]
    slack = sorted_.end[waiting] - sorted_.end[last_send]
    done = np.zeros(len(order), np.bool_)
    done[order] = agrees[number]
    dependencies = _part(DependencyKind.MESSAGE, sorted_.lane[waiting], sorted_.row[waiting], sorted_.lane[last_send],
                  sorted_.row[last_send], slack)  # fmt: skip
    return done, dependencies
