"""Implausible records: overwritten ones, and times that do not fit between those of their neighbours.

One such record would stretch the time line by seconds, so they are left out. Nothing is dropped that could have been:
a gap between two launches, a counter that wraps, the seam of a lapped ring, a record that was written late.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import I64, U32, Bools

_WRAP = 1 << 32
_HALF = 1 << 31
_ONES = _WRAP - 1
#: Records of a serial engine may be written this many cycles out of order, not more.
DISORDER = 1 << 24
#: A record may run on so many cycles after the next has begun.
_OVERLAP = 1 << 28
#: Records beside the course of their engine: so many in a row at most, and at least so many without any course.
_MOST_STRANGERS = 256
_FEWEST_NOISE = 8
#: Fewer records than this show no course that others could stand beside, nor do those that leap at every so many.
_ENOUGH, _RARE = 32, 16
#: Fewer records than this between two leaps have no course of their own.
_FEW = 32


def impossible(words: U32, start: I64, end: I64, *, serial: bool, prompt: bool) -> Bools | None:
    """Which records cannot be; None where all can.

    Args:
        words: (records, words) as dumped.
        start, end: Their raw times, cycles modulo 2^32.
        serial: Whether the engine runs one thing at a time, so that starts ascend but for wraps and gaps.
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
    """Where bad records are among others that leap back after a few again and again, nothing from there on is sound."""
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
    """Whether every record begins when the one before has ended, and neither edge could have been overwritten."""
    empty = start[0] == end[0] == 0 or start[-1] == end[-1] == _ONES
    return not (empty or bool((start[1:] < end[:-1]).any()) or bool((end < start).any()))


def _overwritten(words: U32, start: I64, end: I64) -> Bools:
    """Records of zeros alone, or of ones alone: no command leaves such."""
    bad = np.zeros(len(start), np.bool_)
    rows = np.flatnonzero((start == end) & ((start == 0) | (start == _ONES)))
    some = words[rows]
    bad[rows] = (some == some[:, :1]).all(axis=1)
    return bad


def _steps(start: I64) -> I64:
    """From each start to the next, as signed 32-bit numbers."""
    return ((np.diff(start) + _HALF) & _ONES) - _HALF


def _noise(start: I64, end: I64) -> Bools:
    """Stretches in which nearly every start leaps, some ahead and some back: no times at all."""
    del end
    bad = np.zeros(len(start), np.bool_)
    steps = _steps(start)
    leaps = np.flatnonzero(np.abs(steps) > DISORDER)
    if len(leaps) < _FEWEST_NOISE or len(start) < _ENOUGH:
        return bad
    # leaps that follow one another closely make a stretch
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
    """A few records from which the course returns to where it left: they stand beside it."""
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
        # ahead and back again; some that all lead ahead may meet the same count after a wrap
        led = steps[leaps[place : back + 1]]
        if back and (led.min() < 0 < led.max() or bool((np.abs(led) > _HALF - DISORDER).any())):
            bad[heads[place] : heads[back]] = True
            place = back + 1
        else:
            place += 1
    return bad


def _endless(start: I64, end: I64) -> Bools:
    """Records that end long after the next has begun."""
    steps = _steps(start)
    room = np.where(steps < -DISORDER, steps + _WRAP, np.maximum(steps, 0))
    length = (end - start) & _ONES
    bad = np.zeros(len(start), np.bool_)
    bad[:-1] = length[:-1] > room + _OVERLAP
    if len(bad) > 1:
        bad[-1] = bad[-2] and length[-1] > _OVERLAP
    return bad


def found_again(words: Callable[[int], U32]) -> int | None:
    """Where bytes were put among records or taken from them, so that all behind lie beside their places.

    Args:
        words: Records of a dump whose length is no multiple of theirs, counted from its beginning (0) or from its
            end (1).

    Returns:
        The first record to be counted from the end; None where all fit best as they are counted from the beginning.
    """
    ahead, behind = (_follow(words(side)) for side in (0, 1))
    if not len(ahead):
        return None
    fit = np.cumsum(ahead) + (behind.sum() - np.cumsum(behind))
    best = int(fit.argmax())
    return best + 1 if fit[best] > ahead.sum() + 3 else None


def _follow(words: U32) -> Bools:
    """Which records end before the next begins, and do not last for long."""
    start, end = words[:, 0].astype(np.int64), words[:, 1].astype(np.int64)
    length, gap = (end - start) & _ONES, (start[1:] - end[:-1]) & _ONES
    fits: Bools = (length[:-1] < _OVERLAP) & (gap < _HALF)
    return fits
