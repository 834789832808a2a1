"""One time line for the engines of a core, and for cores: from what must have happened before what."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from ..arrays import I64, Bools
from ..records.monitor import RecordStream


class ModelRecords(Struct, frozen=True):
    """Records of an engine that are commands of the model.

    Attributes:
        rows: Their rows in ``stream``, whose times are ns.
        number: Number of each one's command, from 1.
        depends: Number of the other engine's command that it waits for; 0 without one.
    """

    stream: RecordStream
    rows: I64
    number: I64
    depends: I64


class Offset(Struct, frozen=True):
    """Time to add to the records of TIU, ns, and how many of the dependencies then hold."""

    ns: int
    held: int
    dependencies: int


def engine_offset(tiu: ModelRecords, gdma: ModelRecords) -> Offset | None:
    """Offset between the counters of two engines by their dependencies; None where no recorded pair has one.

    A TIU command that waits for a GDMA command cannot start before it has ended, and vice versa: each dependency is a
    bound. The offset is the middle between the greatest lower and the smallest upper bound; where these contradict, one
    that satisfies as many as possible.
    """
    lower, upper = _distances(tiu, gdma), -_distances(gdma, tiu)
    count = len(lower) + len(upper)
    if not count:
        return None
    first, last = lower.max(initial=np.iinfo(np.int64).min), upper.min(initial=np.iinfo(np.int64).max)
    if not len(lower) or not len(upper):  # nothing else is known: as close together as allowed
        return Offset(int(first if len(lower) else last), count, count)
    if first <= last:
        return Offset(int((first + last) // 2), count, count)
    bounds = np.sort(np.concatenate([lower, upper]))
    held = np.searchsorted(np.sort(lower), bounds, "right") + len(upper) - np.searchsorted(np.sort(upper), bounds)
    best = int(held.argmax())
    return Offset(int(bounds[best]), int(held[best]), count)


def _distances(waiting: ModelRecords, other: ModelRecords) -> I64:
    """Time from the start of each command that waits to the end of what it waits for, if both are recorded."""
    row_of = np.full(int(max(other.number.max(initial=0), waiting.depends.max(initial=0))) + 1, -1, np.int64)
    row_of[other.number] = other.rows
    row_of[0] = -1
    found = row_of[waiting.depends]
    known = found >= 0
    distances: I64 = other.stream.end[found[known]] - waiting.stream.start[waiting.rows[known]]
    return distances


def core_shifts(waits: Sequence[I64], timers: Sequence[int | None]) -> list[int | None]:
    """Time to add to each core, ns, so that all are on the time line of the first; None where it is not known.

    Args:
        waits: By core: starts of its waits for messages, which are recorded when they are released: the k-th ones of
            all cores at once.
        timers: By core: when its counters started, ns by the firmware's timer, which all cores share.
    """
    shifts: list[int | None] = [0]
    for own, timer in zip(waits[1:], timers[1:], strict=True):
        if len(own) and len(own) == len(waits[0]):
            shifts.append(int(np.median(waits[0] - own)))
        elif timer is not None and timers[0] is not None:
            shifts.append(timer - timers[0])
        else:
            shifts.append(None)
    return shifts


def model_section(ids: I64, most: int) -> Bools:
    """Mask of the records of the model: ids restart at each sequence of copies by the runtime; the longest section.

    Args:
        most: Number of commands of the model; 0 unknown. A section with greater ids is not the model's.
    """
    cuts = np.flatnonzero(ids[1:] <= ids[:-1]) + 1
    if not len(cuts):
        return np.ones(len(ids), np.bool_)
    first, last = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(ids)]])
    length = np.where((ids[last - 1] < most) | (most == 0), last - first, 0)
    best = int(length.argmax())
    mask = np.zeros(len(ids), np.bool_)
    mask[first[best] : last[best]] = True
    return mask
