"""Records and commands of one engine as pairing compares them, and the bindings in doubt.

Where an engine lost the first commands of a launch, its ids continue without a restart, so that the launch is detected
only when another engine's ids restart: the records before that may belong to either launch. And where whole launches
are lost, the few remaining records of their neighbours may fit several launches. Such runs are moved at pauses, and
marked as ambiguous. Bindings out of order are removed; unbound records are bound as their neighbours imply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from ..arrays import I8, I64, Bools

if TYPE_CHECKING:
    from .pairing import Matcher

#: Kind of a record or command, as far as known; see `contradicts`.
UNKNOWN, SYSTEM, TO_LOCAL, TO_BUS, WORK = 0, 1, 2, 3, 4


class EngineItems(Struct):
    """Records or commands of one engine, reduced to the columns that pairing compares."""

    id: I64  #: Ids, restarting at resets
    key: I64  #: Sort key across engines: start in ns for records, node index for commands
    kind: I8  #: UNKNOWN, SYSTEM, TO_LOCAL, TO_BUS or WORK
    end: I64 | None = None  #: End of each record, ns; None for commands, or where it is not needed

    def end_of(self, row: int) -> int:
        """End of a record, ns; its key where ends are not known."""
        return int(self.key[row] if self.end is None else self.end[row])

    def section_starts(self) -> I64:
        """Index of the first item of each run of growing ids."""
        if not len(self.id):
            return np.zeros(0, np.int64)
        return np.concatenate([[0], np.flatnonzero(self.id[1:] <= self.id[:-1]) + 1])


def contradicts(recorded: I8, issued: I8) -> Bools:
    """Mask of the pairs of a record and a command, element by element, whose kinds cannot both be true.

    One is a system command and the other is not, or they move data in different directions.
    """
    differ = (recorded != UNKNOWN) & (issued != UNKNOWN) & (recorded != issued)
    result: Bools = differ & ((recorded == SYSTEM) | (issued == SYSTEM) | ((recorded != WORK) & (issued != WORK)))
    return result


#: A run is certain with at least the share `_CERTAIN_COVERAGE` of its launch's commands, if it has `_ENOUGH_RECORDS`
#: records or the `_NEIGHBOUR_RUNS` runs around it have a mean share of `_COMPLETE_COVERAGE`.
_CERTAIN_COVERAGE, _ENOUGH_RECORDS = 0.6, 8
_COMPLETE_COVERAGE, _NEIGHBOUR_RUNS = 0.9, 11
#: Most lost launches between two runs that are considered.
_MOST_BETWEEN = 8
#: Limits of the search for alternatives: lost launches in one stretch, and pairs of run and launch in total.
_MOST_SLACK, _MOST_TRIED = 64, 20_000


def split_runs(runs: Matcher) -> tuple[list[I64], list[Bools]]:
    """Launch of each record and mask of the ambiguous records, by engine; ``runs`` must have been aligned."""
    ambiguous = [np.zeros(len(records.id), np.bool_) for records in runs.records]
    if not len(runs.launch):
        return [np.full(len(records.id), -1) for records in runs.records], ambiguous
    launches = [np.repeat(runs.launch, np.diff(start)) for start in runs.run_start]
    for run in np.flatnonzero(_open_end_mask(runs)).tolist():
        _split(runs, run, launches, ambiguous)
    for first, last in _stretches(runs):
        for engine in (each for each, is_clean in enumerate(runs.is_clean) if not is_clean):
            ambiguous[engine][runs.rows(engine, first).start : runs.rows(engine, last).stop] = True
    return launches, ambiguous


def _open_end_mask(runs: Matcher) -> Bools:
    """Mask of the runs whose last records of an engine may belong to the next run: ids keep growing, or it has none."""
    result = np.zeros(len(runs.launch), np.bool_)
    for records, start, is_clean in zip(runs.records, runs.run_start, runs.is_clean, strict=True):
        count = np.diff(start)
        if is_clean or len(count) < 2 or not len(records.id):
            continue
        last, after = np.maximum(start[1:-1] - 1, 0), np.minimum(start[1:-1], len(records.id) - 1)
        result[:-1] |= (count[:-1] > 0) & ((count[1:] == 0) | (records.id[after] > records.id[last]))
    result[:-1] &= (runs.launch[:-1] >= 0) & (runs.launch[1:] >= 0)
    return result


def _items_and_pauses(runs: Matcher, run: int) -> tuple[list[tuple[int, int, int]], I64]:
    """Records of a run in time order, as (start, engine, row); pauses (ns) before each and before the next run."""
    items = sorted(
        (int(records.key[row]), engine, row)
        for engine, records in enumerate(runs.records)
        for row in range(*runs.run_start[engine][run : run + 2].tolist())
    )
    latest_end = np.maximum.accumulate([runs.records[engine].end_of(row) for _, engine, row in items])
    following = (runs.rows(engine, run + 1) for engine in range(len(runs.records)))
    heads = [int(records.key[rows.start]) for records, rows in zip(runs.records, following, strict=True)
             if rows.start < rows.stop]  # fmt: skip
    begin = min(heads, default=items[-1][0] if items else 0)
    starts = np.array([*(item[0] for item in items[1:]), begin])
    return items, np.concatenate([[0], starts - latest_end])


def _split(runs: Matcher, run: int, launches: list[I64], ambiguous: list[Bools]) -> None:
    """Move the last records of a run to the next launch, or to a launch between, from the longest pause on."""
    here, there = int(runs.launch[run]), int(runs.launch[run + 1])
    items, pauses = _items_and_pauses(runs, run)
    left = len(items)
    for target in range(there, max(here, there - _MOST_BETWEEN), -1):
        first = _movable(runs, run, items[:left], target, next_too=target == there)
        if not 0 < first < left:
            continue  # no record can move, or all of them can
        cut = first + int(np.argmax(pauses[first : left + (target == there)]))
        for _, engine, row in items[first:left]:
            ambiguous[engine][row] = True
        if target != there and pauses[cut] < pauses[:left].max():
            continue  # more likely, that launch was lost entirely
        for _, engine, row in items[cut:left]:
            launches[engine][row] = target
        left = cut


def _movable(runs: Matcher, run: int, items: list[tuple[int, int, int]], target: int, *, next_too: bool) -> int:
    """First of the trailing items that can all be of ``target``, with ``next_too`` ahead of the next run's."""
    movables: list[Bools] = []
    for engine, records in enumerate(runs.records):
        rows, following = runs.rows(engine, run), runs.rows(engine, run + 1)
        movable = np.zeros(rows.stop - rows.start, np.bool_)
        if not runs.is_clean[engine] and len(movable):
            movable = runs.fits(engine, rows, target)
            if next_too and following.start < following.stop:
                movable = movable & (records.id[rows] < records.id[following.start])
        movables.append(movable)
    at = len(items)
    while at and movables[items[at - 1][1]][items[at - 1][2] - runs.rows(items[at - 1][1], run).start]:
        at -= 1
    return at


def _stretches(runs: Matcher) -> list[tuple[int, int]]:
    """First and last run of each stretch next to lost launches in which a run fits more than one launch."""
    count = len(runs.launch)
    mean = np.convolve(np.minimum(runs.coverage, 1.0), np.ones(_NEIGHBOUR_RUNS), "same")
    mean /= np.convolve(np.ones(count), np.ones(_NEIGHBOUR_RUNS), "same")
    supported = (runs.records_in >= _ENOUGH_RECORDS) | (mean[:count] >= _COMPLETE_COVERAGE)
    covered = (runs.coverage >= _CERTAIN_COVERAGE) & supported
    covered[[0, -1]] = True
    certain = np.flatnonzero(covered & (runs.launch >= 0))
    result: list[tuple[int, int]] = []
    tried = 0
    for before, after in zip(certain[:-1].tolist(), certain[1:].tolist(), strict=True):
        slack = int(runs.launch[after] - runs.launch[before]) - (after - before)
        if after - before < 2 or slack < 1:
            continue
        tried += (after - before) * (slack + 1)
        if slack > _MOST_SLACK or tried > _MOST_TRIED:
            result.append((before + 1, after - 1))
            continue
        result += _ambiguous_runs(runs, before, after, slack)
    return result


def _ambiguous_runs(runs: Matcher, before: int, after: int, slack: int) -> list[tuple[int, int]]:
    """Runs between two certain ones that fit several launches, as (run, run)."""
    inside = range(before + 1, after)
    lowest = int(runs.launch[before]) + 1
    possible = [[lowest + number + more for more in range(slack + 1) if _run_fits(runs, run, lowest + number + more)]
                for number, run in enumerate(inside)]  # fmt: skip
    early, late = [0] * len(possible), [0] * len(possible)
    low = lowest - 1
    for number, launches in enumerate(possible):
        low = early[number] = min((each for each in launches if each > low), default=low)
    high = int(runs.launch[after])
    for number in range(len(possible) - 1, -1, -1):
        high = late[number] = max((each for each in possible[number] if each < high), default=high)
    return [(run, run) for number, run in enumerate(inside) if early[number] != late[number] and possible[number]]


def _run_fits(runs: Matcher, run: int, launch: int) -> bool:
    """Whether a launch has a matching command for every record of a run."""
    return all(bool(runs.fits(engine, rows, launch).all()) for engine in range(len(runs.records))
               if (rows := runs.rows(engine, run)).start < rows.stop)  # fmt: skip


def ordered(bindings: I64) -> I64:
    """Bindings without those that are out of order or repeated (changed in place); the first of two is kept."""
    bound = np.flatnonzero(bindings >= 0)
    if len(bound) < 2:
        return bindings
    value = bindings[bound]
    before = np.maximum.accumulate(value)
    wrong = np.concatenate([[False], value[1:] <= before[:-1]])
    bindings[bound[wrong]] = -1
    return bindings


def repaired(bindings: I64, records: EngineItems, commands: EngineItems) -> I64:
    """Bind unbound records to commands between those of their bound neighbours (changes ``bindings``).

    A record stays unbound when no command in between has its id and a kind that does not contradict it.
    """
    loose = np.flatnonzero(bindings < 0)
    if not len(loose) or len(loose) > 200_000:
        return bindings
    bound = np.flatnonzero(bindings >= 0)
    before = np.searchsorted(bound, loose) - 1
    last_bound = -1  # last command bound here; earlier ones are no longer available
    for number, row in enumerate(loose.tolist()):
        low = max(last_bound, int(bindings[bound[before[number]]]) if before[number] >= 0 else -1)
        after = before[number] + 1
        high = int(bindings[bound[after]]) if after < len(bound) else len(commands.id)
        if not 1 < high - low <= 4096:
            continue
        window = slice(low + 1, high)
        same = commands.id[window] == records.id[row]
        same &= ~contradicts(records.kind[row], commands.kind[window])
        hits = low + 1 + np.flatnonzero(same)
        if len(hits):
            neighbours = [int(bound[at]) for at in (after - 1, after) if 0 <= at < len(bound)]
            bindings[row] = last_bound = _likeliest(hits, row, neighbours, bindings, records.id)
    return bindings


def _likeliest(hits: I64, row: int, neighbours: list[int], bindings: I64, ids: I64) -> int:
    """The candidate in the same launch as a neighbour's command, as the ids of both records imply; else the first."""
    for near in sorted(neighbours, key=lambda other: abs(int(ids[other] - ids[row]))):
        expected = int(bindings[near] + ids[row] - ids[near])
        if (ids[row] - ids[near]) * (row - near) > 0 and expected in hits:
            return expected
    return int(hits[0])
