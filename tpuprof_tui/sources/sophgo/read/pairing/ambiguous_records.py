"""Records that may belong to more than one launch: moved between launches at pauses, and marked as ambiguous.

Where an engine lost the first commands of a launch, its ids continue without a restart, so that the launch is detected
only when another engine's ids restart: the records before that may belong to either launch. And where whole launches
are lost, the few remaining records of their neighbours may fit several launches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import I64, Bools

if TYPE_CHECKING:
    from .pairing import Matcher


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
