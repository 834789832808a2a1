"""Dependency links between commands: which command released which, from ids and messages in their registers.

The rules, and the conditions for a link:

*By command id.* A TIU command starts only after the GDMA command with the Cmd Id in its ``depends_on`` has retired, and
vice versa. Ids count from 1 since the last id reset and both engines of a core are idle at a reset, so the releaser is
the command with that id since the reset before the waiter. It must be in the same launch where launches are known, have
started after everything that the waiter's own engine did before that reset, and have retired when the waiter starts.
Where it is ambiguous or was not recorded, there is no link. On some chips further bits of TIU's register select an
engine (``depends_engine``), undocumented in public: where they are set, there is a link only if no SDMA command matches
as well. SDMA's own register has an id without the engine that it refers to; CDMA's commands have none.

*By message.* A wait is released when as many sends of its message have retired as its count states; the count of a send
is the number of waits that its message serves, after which the message can be reused. Ordered by end, the sends and
waits of one message in one kernel function are therefore runs of sends followed by runs of waits. A run of sends and
the following run of waits are linked if the count of each wait equals the number of these sends, and that of each send
the number of these waits: either all of them, or those of the same kind of engine (barriers of the kernel library: TIU
and GDMA of each core send and wait under one message, each counting the cores, and all are released by the last send).
Messages are matched within each core first, what remains across all cores, which share messages. The releaser is the
send that retires last. TIU, GDMA and SDMA take part alike; how CDMA's sends and waits encode their message is not
public. Where fewer than `_LEAST_AGREEING` of a profile's waits match, the matches are chance: its registers hold no
messages, and there is no link by message at all.

Both kinds need ids: registers without them (all zero, or counts that do not agree) give no such links.

*By time.* Waits without a link that end together on several cores are taken for a barrier (``inferred_barriers``). Such
links are guesses and marked so.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import partial
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.model import INT_MISSING, Groups, Lane, Links, Profile, Role
from tpuprof_tui.model.uniques import distinct_together, uniques

from .arrays import I64, Bools

#: Columns of links: kind, lane and row of the waiter, lane and row of the releaser.
LinkColumns = tuple[I64, I64, I64, I64, I64]

#: Links by message are used only if at least this share of the waits matches; lost records cost whole rounds.
_LEAST_AGREEING: Final = 1 / 16
#: Engines whose registers refer to each other's command ids.
_PAIRED: Final = ("TIU", "GDMA")


class LinkKind(IntEnum):
    """How a link was derived: codes of ``Links`` kinds."""

    COMMAND = 0
    MESSAGE = 1
    TOGETHER = 2


def with_dependencies(profile: Profile, *, by_launch: bool = True) -> Profile:
    """A profile with lazily computed links; unchanged if no register can name any and there is only one unit.

    ``by_launch``: whether scopes are launches, each with ids of its own; else they are layers.
    """
    named = any("depends_on" in lane or lane.registers is not None for lane in profile.lanes)
    if not named and len(profile.units) < 2:
        return profile
    return replace(profile, links=partial(dependencies, profile.lanes, profile.groups, by_launch=by_launch))


def dependencies(lanes: Sequence[Lane], groups: Groups, *, by_launch: bool = True) -> Links:
    """All links between timed commands, ordered by waiter. O(n log n)."""
    by_message = _message_links(lanes, groups)
    with_releaser = [(part[1], part[2]) for part in by_message]
    together = inferred_barriers(lanes, groups, with_releaser)
    parts = [*_command_links(lanes, groups, by_launch), *by_message, _part(LinkKind.TOGETHER, *together)]
    none = np.zeros(0, np.int64)
    kind, waiter_lane, waiter, releaser_lane, releaser = map(np.concatenate, zip((none,) * 5, *parts, strict=True))
    first = np.cumsum([0, *map(len, lanes)], dtype=np.int64)
    waiter, releaser = first[waiter_lane] + waiter, first[releaser_lane] + releaser
    order = np.lexsort((kind, waiter))
    return Links(("command id", "message", "ending together"), kind[order].astype(np.int8), releaser[order],
                 waiter[order], ending=frozenset((LinkKind.MESSAGE, LinkKind.TOGETHER)),
                 guessed=frozenset((LinkKind.TOGETHER,)))  # fmt: skip


def _part(kind: LinkKind, waiter_lane: Any, waiter: I64, releaser_lane: Any, releaser: I64) -> LinkColumns:
    """Columns of links; a scalar lane is broadcast to all rows."""
    kinds, waiters, releasers = (
        np.broadcast_to(np.asarray(each, np.int64), len(waiter)) for each in (int(kind), waiter_lane, releaser_lane)
    )
    return kinds, waiters, waiter, releasers, releaser


# -- by command id ------------------------------------------------------------


class _Epochs(Struct, frozen=True):
    """A lane split into epochs, at each restart of its ids or change of launch."""

    lane: Lane
    first: I64  #: First row of each epoch
    of_row: I64  #: Epoch of each row
    idle_before: I64  #: Time (ns) at which everything before the epoch had ended
    scope: I64  #: Launch of each row; -1 unknown


def _command_links(lanes: Sequence[Lane], groups: Groups, by_launch: bool) -> list[LinkColumns]:
    parts = []
    for unit in groups.units:
        within = groups.within(unit)
        numbers = {lane.kind: number for number, lane in enumerate(lanes) if lane.group in within}
        if not all(engine in numbers for engine in _PAIRED):
            continue
        epochs: dict[str, _Epochs] = {}
        for engine, other in (_PAIRED, _PAIRED[::-1]):
            lane = lanes[numbers[engine]]
            command_ids = lane["depends_on"] if "depends_on" in lane else np.zeros(0, np.int64)
            waiters = np.flatnonzero(command_ids > 0)
            if not len(waiters):
                continue
            for name in _PAIRED:
                epochs.setdefault(name, _epochs(lanes[numbers[name]], by_launch))
            rows, releasers = _releasers(epochs[engine], epochs[other], waiters, command_ids[waiters])
            if "depends_engine" in lane and "SDMA" in numbers:
                sure = lane.take("depends_engine", rows) == 0
                epochs.setdefault("SDMA", _epochs(lanes[numbers["SDMA"]], by_launch))
                either, _ = _releasers(epochs[engine], epochs["SDMA"], rows[~sure], command_ids[rows[~sure]])
                sure |= ~np.isin(rows, either)
                rows, releasers = rows[sure], releasers[sure]
            parts.append(_part(LinkKind.COMMAND, numbers[engine], rows, numbers[other], releasers))
    return parts


def _epochs(lane: Lane, by_launch: bool) -> _Epochs:
    ids = lane["command_id"]
    count = len(lane)
    scope = np.full(count, -1, np.int64)
    if by_launch and "scope" in lane:
        scope = np.where(lane["scope"] == INT_MISSING, -1, lane["scope"])
    cut = np.ones(count, np.bool_)
    cut[1:] = (ids[1:] <= ids[:-1]) | (scope[1:] != scope[:-1])
    first = np.flatnonzero(cut)
    ended = np.maximum.accumulate(lane["end"])
    idle = np.concatenate([[np.iinfo(np.int64).min], ended[first[1:] - 1]]) if count else np.zeros(0, np.int64)
    return _Epochs(lane, first, np.cumsum(cut) - 1, idle, scope)


def _releasers(waiting: _Epochs, releasing: _Epochs, waiters: I64, command_ids: I64) -> tuple[I64, I64]:
    """Rows of the waiters that have a releaser, and the releaser's row on the other lane."""
    none = np.zeros(0, np.int64)
    if not len(releasing.of_row):
        return none, none
    start = waiting.lane["start"][waiters]
    ids, their_start, their_end = releasing.lane["command_id"], releasing.lane["start"], releasing.lane["end"]
    before = np.searchsorted(their_start, start, side="left") - 1  # last row that started before
    keys = releasing.of_row << 32 | np.clip(ids, 0, (1 << 32) - 1)
    order = np.argsort(keys, kind="stable")
    queries = releasing.of_row[np.maximum(before, 0)] << 32 | command_ids
    low = np.searchsorted(keys[order], queries, side="left")
    high = np.searchsorted(keys[order], queries, side="right")
    found = (before >= 0) & (high - low == 1)
    row = order[np.where(found, low, 0)]
    found &= their_end[row] <= start
    found &= their_start[row] >= waiting.idle_before[waiting.of_row[waiters]]
    one, other = waiting.scope[waiters], releasing.scope[row]
    found &= (one == other) | (one < 0) | (other < 0)
    return waiters[found], row[found]


# -- by message ---------------------------------------------------------------


def _message_links(lanes: Sequence[Lane], groups: Groups) -> list[LinkColumns]:
    engines = {lane.kind: index for index, lane in enumerate(lanes)}
    parts = [
        _messages(lane, number, groups.unit_of(lane.group), engines[lane.kind])
        for number, lane in enumerate(lanes)
        if "message" in lane
    ]
    events = np.concatenate([np.zeros((len(_COLUMNS), 0), np.int64), *parts], axis=1)
    result = []
    waits = int(events[_COLUMNS.index("waits")].sum())
    for alone in (True, False):
        if events.shape[1]:
            matched, links = _rounds(events, alone)
            result.append(links)
            events = events[:, ~matched]
    agreeing = sum(len(part[0]) for part in result)
    return result if agreeing >= _LEAST_AGREEING * waits else []


#: Rows of the table of the sends and waits of all lanes.
_COLUMNS: Final = ("lane", "row", "unit", "engine", "message", "count", "waits", "end", "kernel")


def _messages(lane: Lane, number: int, unit: int, engine: int) -> I64:
    rows = np.flatnonzero(lane["message"] != INT_MISSING)
    rows = rows[lane.take("role", rows) != Role.WORK]
    columns = [lane.take(key, rows) for key in ("message", "message_count", "role", "end")]
    kernel = lane.take("kernel", rows) if "kernel" in lane else -1
    columns[2] = columns[2] == Role.WAIT
    return np.stack(np.broadcast_arrays(number, rows, unit, engine, *columns, kernel)).astype(np.int64)


def _rounds(events: I64, alone: bool) -> tuple[Bools, LinkColumns]:
    """Mask of the events in rounds whose counts agree, and the links of these rounds.

    ``alone``: whether only events of one unit are matched with each other.
    """
    unit, message, waits, end, kernel = (events[_COLUMNS.index(name)] for name in
                                         ("unit", "message", "waits", "end", "kernel"))  # fmt: skip
    order = np.lexsort((waits, end, kernel, message, unit * alone))
    lane, row, unit, engine, message, count, waits, _, kernel = events[:, order]
    is_wait = waits > 0
    cut = (np.diff(unit * alone) != 0) | (np.diff(message) != 0) | (np.diff(kernel) != 0) | (np.diff(waits) < 0)
    number = _runs(cut, len(order))
    rounds = int(number[-1]) + 1
    waits_in, sends_in = (np.bincount(number, each, rounds).astype(np.int64) for each in (is_wait, ~is_wait))
    agrees = (waits_in > 0) & (sends_in > 0)
    fits = count == np.where(is_wait, sends_in[number], waits_in[number])
    of_engine = distinct_together(number, engine)[0]
    counts = np.where(is_wait, np.bincount(of_engine, ~is_wait)[of_engine], np.bincount(of_engine, is_wait)[of_engine])
    agrees &= (np.bincount(number, ~fits, rounds) == 0) | (np.bincount(number, count != counts, rounds) == 0)
    waiting = np.flatnonzero(is_wait & agrees[number])
    last_send = (np.searchsorted(number, np.arange(rounds)) + sends_in - 1)[number[waiting]]
    matched = np.zeros(len(order), np.bool_)
    matched[order] = agrees[number]
    return matched, _part(LinkKind.MESSAGE, lane[waiting], row[waiting], lane[last_send], row[last_send])


# Infers barriers that no register names from waits of several cores that end within a cycle or two of each other.
#
# The engines of all cores at a barrier are released at once, by the last send. Without messages the remaining
# evidence is: waits of one kind of engine on several cores that end together, each right after a send of its engine.
# Engines of other kinds at the same barrier are released some cycles earlier or later. The releaser is the send that
# retires last among those of the engines at the barrier.

#: Waits of one kind of engine that end within this end together: two cycles at 900 MHz and rounding.
_TOGETHER_NS: Final = 3
#: Engines of different kinds at one barrier are released within this.
_ENGINES_NS: Final = 32
#: A barrier is released at most this long after the last send.
_LATENCY_NS: Final = 1_000


def inferred_barriers(
    lanes: Sequence[Lane], groups: Groups, linked: Sequence[tuple[I64, I64]]
) -> tuple[I64, I64, I64, I64]:
    """Lane and row of each wait at an inferred barrier and of the send that released it. O(waits log waits).

    ``linked``: lanes and rows of waits with a known releaser, which are left out.
    """
    none = np.zeros(0, np.int64)
    engines = {lane.kind: index for index, lane in enumerate(lanes)}
    parts: list[I64] = []
    for number, lane in enumerate(lanes):
        unit = groups.unit_of(lane.group)
        if unit < 0 or lane.on_host or not len(lane):
            continue
        role = lane["role"]
        rows = np.flatnonzero(role == Role.WAIT)
        linked_rows = [waiting[waiter == number] for waiter, waiting in linked]
        rows = np.setdiff1d(rows, np.concatenate([none, *linked_rows]), assume_unique=True)
        # at a barrier each engine sends its arrival, then waits
        rows = rows[(rows > 0) & (role[np.maximum(rows - 1, 0)] == Role.SYNC)]
        constants = (np.full(len(rows), each, np.int64) for each in (number, unit, engines[lane.kind]))
        parts.append(np.stack([*constants, rows, lane.take("end", rows), lane.take("end", rows - 1)]))
    if not parts:
        return none, none, none, none
    table = np.concatenate(parts, axis=1)
    table = table[:, np.lexsort((table[4], table[2]))]
    _, unit_of, engine, _, end, _ = table
    cluster = _runs((np.diff(engine) != 0) | (np.diff(end) > _TOGETHER_NS), len(end))
    size = np.bincount(cluster)
    units = np.bincount(uniques(cluster << 20 | unit_of) >> 20, minlength=len(size))
    # exactly one wait per core: other groups that end together do so by chance
    kept = ((units >= 2) & (units == size))[cluster]
    table = np.vstack([table, size[cluster]])[:, kept]
    lane_of, _, _, row, end, sent, size = table[:, np.argsort(table[4], kind="stable")]
    if not len(end):
        return none, none, none, none
    barrier = _runs((np.diff(end) > _ENGINES_NS) | (np.diff(size) != 0), len(end))
    first = np.flatnonzero(np.diff(barrier, prepend=-1))
    opened = end[first][barrier]
    # sends after the first release belong to another barrier
    prior = np.where(sent <= opened, sent, np.iinfo(np.int64).min)
    last = np.lexsort((prior, barrier))[np.append(first[1:], len(end)) - 1][barrier]
    valid = (prior[last] <= opened) & (opened - prior[last] <= _LATENCY_NS) & (prior[last] > np.iinfo(np.int64).min)
    last = last[valid]
    return lane_of[valid], row[valid], lane_of[last], row[last] - 1


def _runs(cut: Bools, count: int) -> I64:
    """Run number of each element; a run ends after each element where ``cut`` is true."""
    return np.concatenate([np.zeros(min(count, 1), np.int64), np.cumsum(cut)])
