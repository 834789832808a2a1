"""Undoes counter wraps in times of CDMA ports, also where the counter wrapped while the port was idle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..problems import Report
from .implausible_records import DISORDER
from .monitor import BACK_IN_TIME, WRAP, RecordStream, signed


def unwrapped_port(stream: RecordStream, report: Report) -> RecordStream:
    """Records of a CDMA port with counter wraps undone.

    Ports are full duplex and write a record when its command ends: neighbours overlap freely, and one may have begun
    long before the record written before it, but none has ended long before that one began. So each record is placed so
    that its begin is nearest to the begin or the end of the one before, or its end to that one's end; a larger step
    back is a wrap within a gap of over 2.1 s.
    """
    if not len(stream):
        return stream
    length = (stream.end - stream.start) & (WRAP - 1)
    begins, ends = signed(np.diff(stream.start)), signed(np.diff(stream.end))
    gaps = signed(stream.start[1:] - stream.end[:-1])
    steps = np.stack([begins, length[:-1] + gaps, length[:-1] + ends - length[1:]])
    nearest = np.abs(np.stack([begins, gaps, ends])).argmin(axis=0)
    step = np.take_along_axis(steps, nearest[None], axis=0)[0]
    back = np.flatnonzero(step + length[1:] < -DISORDER) + 1
    step[back - 1] += WRAP
    stream.start = stream.start[0] + np.concatenate([[0], np.cumsum(step)])
    stream.end = stream.start + length
    if len(back):
        report.warning(*BACK_IN_TIME, lane=stream.label, count=len(back), records=stream.dump_indices(back))
    return stream


def wraps_into_window(start: int, stop: int, window: tuple[int, int], wrap: int) -> int | None:
    """Number of whole wraps, usually 0, that move the interval ``start``..``stop`` into a window; None if none does."""
    first, last = window
    wraps = 0
    if start < first or stop > last:
        wraps = round((first + last - start - stop) / (2 * wrap))
    inside = first <= start + wraps * wrap and stop + wraps * wrap <= last
    return wraps if inside else None


def filled_wraps(wraps: Sequence[int | None], starts: Sequence[int], stops: Sequence[int]) -> tuple[list[int], int]:
    """Wraps of every launch, filled in from the launches whose windows determine them.

    Args:
        wraps: Wraps by launch, in port order; None where no window determines them.
        starts, stops: Times of the launches by the port's counter.

    Returns:
        The wraps, and the number of launches that remain uncertain: those between two with different wraps, which get
        those of the nearer one.
    """
    determined = [number for number, each in enumerate(wraps) if each is not None]
    result = [0 if each is None else each for each in wraps]
    if not determined:
        return result, 0
    unsure = 0
    next_determined = np.searchsorted(determined, np.arange(len(wraps)))
    for number in (each for each in range(len(wraps)) if wraps[each] is None):
        after = int(next_determined[number])
        near = [determined[at] for at in (after - 1, after) if 0 <= at < len(determined)]
        result[number] = result[near[0]]
        if len(near) == 2 and result[near[0]] != result[near[1]]:
            unsure += 1
            later = starts[near[1]] - stops[number] < starts[number] - stops[near[0]]
            result[number] = result[near[later]]
    return result, unsure
