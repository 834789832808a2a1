"""Times of CDMA ports freed of the wraps of their counter, also where it wrapped in a pause of the port."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..problems import Report
from .implausible_records import DISORDER
from .monitor import BACK_IN_TIME, WRAP, Stream, signed


def unwrapped_port(stream: Stream, report: Report) -> Stream:
    """A CDMA port's records with times that do not wrap.

    Ports are full duplex and write a record when its command ends: neighbours overlap freely, one may have begun long
    before the one written ahead of it, but none has ended long before that one began. So each record lies where it
    begins beside the begin or the end of the one ahead, or ends beside its end, and a step back beyond is a wrap
    within a gap of over 2.1 s.
    """
    if not len(stream):
        return stream
    length = (stream.end - stream.start) & (WRAP - 1)
    begins, ends = signed(np.diff(stream.start)), signed(np.diff(stream.end))
    behind = signed(stream.start[1:] - stream.end[:-1])
    steps = np.stack([begins, length[:-1] + behind, length[:-1] + ends - length[1:]])
    nearest = np.abs(np.stack([begins, behind, ends])).argmin(axis=0)
    step = np.take_along_axis(steps, nearest[None], axis=0)[0]
    back = np.flatnonzero(step + length[1:] < -DISORDER) + 1
    step[back - 1] += WRAP
    stream.start = stream.start[0] + np.concatenate([[0], np.cumsum(step)])
    stream.end = stream.start + length
    if len(back):
        report.warning(*BACK_IN_TIME, lane=stream.label, count=len(back), records=stream.dumped(back))
    return stream


def turns_into(start: int, stop: int, window: tuple[int, int], wrap: int) -> int | None:
    """How many whole wraps, mostly none, put what ran from ``start`` to ``stop`` into a window; None if none does."""
    first, last = window
    turns = 0
    if start < first or stop > last:
        turns = round((first + last - start - stop) / (2 * wrap))
    inside = first <= start + turns * wrap and stop + turns * wrap <= last
    return turns if inside else None


def filled_turns(turns: Sequence[int | None], starts: Sequence[int], stops: Sequence[int]) -> tuple[list[int], int]:
    """Wraps of every launch, from those of the launches whose windows tell.

    Args:
        turns: Wraps by launch, in the order of the port; None where no window tells.
        starts, stops: When the launches ran by the port's counter.

    Returns:
        The wraps, and of how many launches nothing tells them: of those between two that differ, which then are those
        of the nearer one.
    """
    known = [number for number, each in enumerate(turns) if each is not None]
    result = [0 if each is None else each for each in turns]
    if not known:
        return result, 0
    unsure = 0
    behind = np.searchsorted(known, np.arange(len(turns)))
    for number in (each for each in range(len(turns)) if turns[each] is None):
        place = int(behind[number])
        near = [known[at] for at in (place - 1, place) if 0 <= at < len(known)]
        result[number] = result[near[0]]
        if len(near) == 2 and result[near[0]] != result[near[1]]:
            unsure += 1
            later = starts[near[1]] - stops[number] < starts[number] - stops[near[0]]
            result[number] = result[near[later]]
    return result, unsure
