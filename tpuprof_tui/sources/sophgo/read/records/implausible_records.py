"""Finds implausible records: overwritten ones, and ones with times that do not fit between their neighbours.

One such record would stretch the time line by seconds, so they are left out. Plausible irregularities are kept: a gap
between two launches, a counter wrap, the seam of a lapped ring, a record that was written late.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import I64, U32, Bools

_WRAP = 1 << 32
_HALF = 1 << 31
_ONES = _WRAP - 1
#: Records of a serial engine may be written out of order by at most this many cycles.
DISORDER = 1 << 24
#: A record may overlap the start of the next by at most this many cycles.
_OVERLAP = 1 << 28
#: Longest run of outliers, in records, and fewest jumps that make a stretch noise.
_MOST_STRANGERS = 256
_FEWEST_NOISE = 8
#: Outliers need at least `_ENOUGH` records, and at least `_RARE` records per jump, to stand out from a trend.
_ENOUGH, _RARE = 32, 16
#: Fewer records than this between two jumps do not establish a trend.
_FEW = 32


def impossible(words: U32, start: I64, end: I64, *, serial: bool, prompt: bool) -> Bools | None:
    """Mask of the records that are impossible; None if there are none.

    Args:
        words: (records, words) as dumped.
        start, end: Raw times, cycles modulo 2^32.
        serial: Whether the engine runs one command at a time, so that starts ascend except at wraps and gaps.
        prompt: Whether it also writes each record before the next begins, so that no record outlasts the next's start.
    """
    if not len(start) or (serial and _in_course(start, end)):
        return None
    bad = _overwritten(words, start, end)
    for rule in (_noise, *((_strangers,) if serial else ()), *((_endless,) if serial and prompt else ())):
        rows = np.flatnonzero(~bad)
        bad[rows[rule(start[rows], end[rows])]] = True
    if serial:
        _drop_the_rest(bad, start)
    return bad if bad.any() else None


def _drop_the_rest(bad: Bools, start: I64) -> None:
    """Reject everything from the first bad record or jump on, where starts jump back repeatedly after a few records."""
    if not bad.any():
        return
    rows = np.flatnonzero(~bad)
    steps = _steps(start[rows])
    leaps = np.flatnonzero(np.abs(steps) > DISORDER)
    soon = np.diff(leaps, append=len(start) + _FEW) < _FEW
    back = leaps[soon & (steps[leaps] < 0)]
    if len(back) > 1:
        bad[min(int(bad.argmax()), int(rows[back[0] + 1])) :] = True


def _in_course(start: I64, end: I64) -> bool:
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


def _steps(start: I64) -> I64:
    """Differences of successive starts, as signed 32-bit numbers."""
    return ((np.diff(start) + _HALF) & _ONES) - _HALF


def _noise(start: I64, end: I64) -> Bools:
    """Mask of stretches in which nearly every start jumps, some forward and some back: not times at all."""
    del end
    bad = np.zeros(len(start), np.bool_)
    steps = _steps(start)
    leaps = np.flatnonzero(np.abs(steps) > DISORDER)
    if len(leaps) < _FEWEST_NOISE or len(start) < _ENOUGH:
        return bad
    # jumps in close succession form a stretch
    ends = np.flatnonzero(np.diff(leaps, append=len(start) + 9) > 2)
    first = 0
    for last in ends.tolist():
        back = int(np.count_nonzero(steps[leaps[first : last + 1]] < 0))
        count = last + 1 - first
        if count >= _FEWEST_NOISE and min(back, count - back) * 4 >= count:
            bad[leaps[first] + 1 if leaps[first] else 0 : leaps[last] + 1] = True
            if leaps[last] + 2 >= len(start):
                bad[leaps[last] + 1 :] = True
        first = last + 1
    return bad


def _strangers(start: I64, end: I64) -> Bools:
    """Mask of short runs of outliers, after which the starts return to where they left off."""
    del end
    bad = np.zeros(len(start), np.bool_)
    steps = _steps(start)
    leaps = np.flatnonzero(np.abs(steps) > DISORDER)
    if len(leaps) < 2 or len(start) < max(_ENOUGH, _RARE * len(leaps)):
        return bad
    heads = leaps + 1
    place = 0
    while place < len(leaps) - 1:
        left = int(start[leaps[place]])
        ahead = heads[place + 1 : place + 1 + _MOST_STRANGERS]
        away = (start[ahead] - left) & _ONES
        near = np.flatnonzero((away <= DISORDER) & (ahead - heads[place] <= _MOST_STRANGERS))
        back = place + 1 + int(near[0]) if len(near) else 0
        # jumps forward and back; jumps that are all forward may reach the same count after a wrap
        led = steps[leaps[place : back + 1]]
        if back and (led.min() < 0 < led.max() or bool((np.abs(led) > _HALF - DISORDER).any())):
            bad[heads[place] : heads[back]] = True
            place = back + 1
        else:
            place += 1
    return bad


def _endless(start: I64, end: I64) -> Bools:
    """Mask of the records that end long after the next has begun."""
    steps = _steps(start)
    room = np.where(steps < -DISORDER, steps + _WRAP, np.maximum(steps, 0))
    length = (end - start) & _ONES
    bad = np.zeros(len(start), np.bool_)
    bad[:-1] = length[:-1] > room + _OVERLAP
    if len(bad) > 1:
        bad[-1] = bad[-2] and length[-1] > _OVERLAP
    return bad


def found_again(words: Callable[[int], U32]) -> int | None:
    """First record that must be counted from the end, where bytes were inserted or lost and shifted all records behind.

    Args:
        words: Records of a dump whose length is not a multiple of the record size, aligned to its beginning (0) or its
            end (1).

    Returns:
        Index of the first record to be aligned to the end; None where all records fit best aligned to the beginning.
    """
    ahead, behind = (_follow(words(side)) for side in (0, 1))
    if not len(ahead):
        return None
    fit = np.cumsum(ahead) + (behind.sum() - np.cumsum(behind))
    best = int(fit.argmax())
    return best + 1 if fit[best] > ahead.sum() + 3 else None


def _follow(words: U32) -> Bools:
    """Mask of the records that are short and end before the next begins."""
    start, end = words[:, 0].astype(np.int64), words[:, 1].astype(np.int64)
    length, gap = (end - start) & _ONES, (start[1:] - end[:-1]) & _ONES
    fits: Bools = (length[:-1] < _OVERLAP) & (gap < _HALF)
    return fits
