"""Finds implausible records: overwritten ones, and ones with times that do not fit between their neighbours.

One such record would stretch the time line by seconds, so they are left out. Plausible irregularities are kept: a gap
between two launches, a counter wrap, the seam of a lapped ring, a record that was written late.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import I64, U32, Bools

WRAP = 1 << 32
HALF = 1 << 31
_ONES = WRAP - 1
#: Records of a serial engine may be written out of order by at most this many cycles.
DISORDER = 1 << 24
#: A record may overlap the start of the next by at most this many cycles.
_OVERLAP = 1 << 28
#: Longest run of outliers, in records, and fewest jumps that make a stretch noise.
_MOST_OUTLIERS = 256
_FEWEST_NOISE_JUMPS = 8
#: Fewest records, in total and per jump, from which outliers stand out.
_FEWEST_RECORDS, _RECORDS_PER_JUMP = 32, 16
#: Fewer records than this between two jumps do not establish a trend.
_SHORTEST_TREND = 32


def implausible_mask(words: U32, start: I64, end: I64, *, serial: bool, prompt: bool) -> Bools | None:
    """Mask of the records that are implausible; None if there are none.

    Args:
        words: (records, words) as dumped.
        start, end: Raw times, cycles modulo 2^32.
        serial: Whether the engine runs one command at a time, so that starts ascend except at wraps and gaps.
        prompt: Whether it also writes each record before the next begins, so that no record outlasts the next's start.
    """
    if not len(start) or (serial and _well_ordered(start, end)):
        return None
    bad = _overwritten(words, start, end)
    for rule in (_noise, *((_outliers,) if serial else ()), *((_too_long,) if serial and prompt else ())):
        rows = np.flatnonzero(~bad)
        bad[rows[rule(start[rows], end[rows])]] = True
    if serial:
        _reject_tail(bad, start)
    return bad if bad.any() else None


def _reject_tail(bad: Bools, start: I64) -> None:
    """Reject everything from the first bad record or jump on, where starts jump back repeatedly after a few records."""
    if not bad.any():
        return
    rows = np.flatnonzero(~bad)
    steps, jumps = _steps_and_jumps(start[rows])
    soon = np.diff(jumps, append=len(start) + _SHORTEST_TREND) < _SHORTEST_TREND
    back = jumps[soon & (steps[jumps] < 0)]
    if len(back) > 1:
        bad[min(int(bad.argmax()), int(rows[back[0] + 1])) :] = True


def _well_ordered(start: I64, end: I64) -> bool:
    """Whether every record begins after the one before has ended, and neither edge can have been overwritten."""
    empty = start[0] == end[0] == 0 or start[-1] == end[-1] == _ONES
    return not (empty or bool((start[1:] < end[:-1]).any()) or bool((end < start).any()))


def _overwritten(words: U32, start: I64, end: I64) -> Bools:
    """Mask of the records with all words equal to 0 or all ones, which no command leaves."""
    bad = np.zeros(len(start), np.bool_)
    rows = np.flatnonzero((start == end) & ((start == 0) | (start == _ONES)))
    some = words[rows]
    bad[rows] = (some == some[:, :1]).all(axis=1)
    return bad


def signed(values: I64) -> I64:
    """Differences of 32-bit counters as signed 32-bit numbers."""
    return ((values + HALF) & _ONES) - HALF


def _steps_and_jumps(start: I64) -> tuple[I64, I64]:
    """Differences of successive starts, and the indices of those that are jumps."""
    steps = signed(np.diff(start))
    return steps, np.flatnonzero(np.abs(steps) > DISORDER)


def _noise(start: I64, _: I64) -> Bools:
    """Mask of stretches in which nearly every start jumps, some forward and some back: not times at all."""
    bad = np.zeros(len(start), np.bool_)
    steps, jumps = _steps_and_jumps(start)
    if len(jumps) < _FEWEST_NOISE_JUMPS or len(start) < _FEWEST_RECORDS:
        return bad
    # jumps in close succession form a stretch
    ends = np.flatnonzero(np.diff(jumps, append=len(start) + 9) > 2)
    first = 0
    for last in ends.tolist():
        back = int(np.count_nonzero(steps[jumps[first : last + 1]] < 0))
        count = last + 1 - first
        if count >= _FEWEST_NOISE_JUMPS and min(back, count - back) * 4 >= count:
            bad[jumps[first] + 1 if jumps[first] else 0 : jumps[last] + 1] = True
            if jumps[last] + 2 >= len(start):
                bad[jumps[last] + 1 :] = True
        first = last + 1
    return bad


def _outliers(start: I64, _: I64) -> Bools:
    """Mask of short runs of outliers, after which the starts return to where they left off."""
    bad = np.zeros(len(start), np.bool_)
    steps, jumps = _steps_and_jumps(start)
    if len(jumps) < 2 or len(start) < max(_FEWEST_RECORDS, _RECORDS_PER_JUMP * len(jumps)):
        return bad
    heads = jumps + 1
    index = 0
    while index < len(jumps) - 1:
        left = int(start[jumps[index]])
        ahead = heads[index + 1 : index + 1 + _MOST_OUTLIERS]
        away = (start[ahead] - left) & _ONES
        near = np.flatnonzero((away <= DISORDER) & (ahead - heads[index] <= _MOST_OUTLIERS))
        back = index + 1 + int(near[0]) if len(near) else 0
        # jumps forward and back; jumps that are all forward may reach the same count after a wrap
        between = steps[jumps[index : back + 1]]
        if back and (between.min() < 0 < between.max() or bool((np.abs(between) > HALF - DISORDER).any())):
            bad[heads[index] : heads[back]] = True
            index = back + 1
        else:
            index += 1
    return bad


def _too_long(start: I64, end: I64) -> Bools:
    """Mask of the records that end long after the next has begun."""
    steps = signed(np.diff(start))
    available = np.where(steps < -DISORDER, steps + WRAP, np.maximum(steps, 0))
    length = (end - start) & _ONES
    bad = np.zeros(len(start), np.bool_)
    bad[:-1] = length[:-1] > available + _OVERLAP
    if len(bad) > 1:
        bad[-1] = bad[-2] and length[-1] > _OVERLAP
    return bad


def realignment_record(words: Callable[[int], U32]) -> int | None:
    """First record that must be counted from the end, where bytes were inserted or lost and shifted all records behind.

    Args:
        words: Records of a dump whose length is not a multiple of the record size, aligned to its beginning (0) or its
            end (1).

    Returns:
        Index of the first record to be aligned to the end; None where all records fit best aligned to the beginning.
    """
    from_start, from_end = (_in_sequence(words(end)) for end in (0, 1))
    if not len(from_start):
        return None
    fit = np.cumsum(from_start) + (from_end.sum() - np.cumsum(from_end))
    best = int(fit.argmax())
    return best + 1 if fit[best] > from_start.sum() + 3 else None


def _in_sequence(words: U32) -> Bools:
    """Mask of the records that are short and end before the next begins."""
    start, end = words[:, 0].astype(np.int64), words[:, 1].astype(np.int64)
    length, gap = (end - start) & _ONES, (start[1:] - end[:-1]) & _ONES
    fits: Bools = (length[:-1] < _OVERLAP) & (gap < HALF)
    return fits
