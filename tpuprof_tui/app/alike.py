"""How an instruction compares: with those of the same operation, and with what runs before and after it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .session import Session


@dataclass(frozen=True)
class Alike:
    """Instructions of one operation on all lanes of an engine.

    Attributes:
        count: How many there are.
        median_ns: Median of their durations.
    """

    count: int
    median_ns: float


@lru_cache(maxsize=256)
def alike(session: Session, engine: str, name: int) -> Alike:
    """Figures of all instructions of an operation; looked through once per operation."""
    lengths = []
    for lane in session.profile.lanes:
        if lane.engine == engine and "name" in lane:
            rows = np.flatnonzero(lane["name"] == name)
            lengths.append(lane.take("end", rows) - lane.take("start", rows))
    every = np.concatenate(lengths) if lengths else np.zeros(0, np.int64)
    return Alike(len(every), float(np.median(every)) if len(every) else 0.0)


@dataclass(frozen=True)
class Neighbour:
    """The instruction before or after another on its lane.

    Attributes:
        row: Its row.
        gap_ns: Time between the two; negative where they overlap.
    """

    row: int
    gap_ns: int


def neighbours(session: Session, lane: int, row: int) -> tuple[Neighbour | None, Neighbour | None]:
    """What starts before and after a row of a lane."""
    start, end = session.span_of(lane, row)
    before = after = None
    if row > 0:
        before = Neighbour(row - 1, start - session.span_of(lane, row - 1)[1])
    if row + 1 < len(session.profile.lanes[lane]):
        after = Neighbour(row + 1, session.span_of(lane, row + 1)[0] - end)
    return before, after
