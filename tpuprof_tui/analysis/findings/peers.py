"""How an instruction compares: with those of the same operation, and with what runs before and after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..selecting.session import Session

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Alike:
    """Instructions of one operation on all lanes of a kind.

    Attributes:
        count: How many there are.
        median_ns: Median of their durations.
        shortest_ns, longest_ns: The least and the most of them.
        longest: Lane and row of the (first) longest; -1 without any.
    """

    count: int
    median_ns: float
    shortest_ns: int = 0
    longest_ns: int = 0
    longest: tuple[int, int] = (-1, -1)


def alike(session: Session, kind: str, name: int) -> Alike:
    """Figures of all instructions of an operation; looked through once per operation."""
    return session.derived.get("peers", lambda: _alike(session, kind, name), kind, name)


def _alike(session: Session, kind: str, name: int) -> Alike:
    lengths: list[Ints] = []
    longest_ns, longest = -1, (-1, -1)
    for number, lane in enumerate(session.profile.lanes):
        if lane.kind != kind or "name" not in lane:
            continue
        rows = np.flatnonzero(lane["name"] == name)
        took = lane.take("end", rows) - lane.take("start", rows)
        if len(took) and int(took.max()) > longest_ns:
            longest_ns, longest = int(took.max()), (number, int(rows[took.argmax()]))
        lengths.append(took)
    every = np.concatenate(lengths) if lengths else np.zeros(0, np.int64)
    if not len(every):
        return Alike(0, 0.0)
    return Alike(len(every), float(np.median(every)), int(every.min()), longest_ns, longest)


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
