"""How an instruction compares: with those of the same operation, and with what runs before and after it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import Lane
from tpuprof_tui.model.missing import is_missing

from ..index.ordering import knows
from ..selecting.session import Session

Ints = npt.NDArray[np.int64]


class Peers(Struct, frozen=True):
    """Events of one operation on all lanes of a kind that were asked to do about the same.

    Attributes:
        count: How many there are.
        median_ns: Median of their durations.
        shortest_ns, longest_ns: The least and the most of them.
        longest: Lane and row of the (first) longest; -1 without any.
        by: Titles of the columns in which they are of one text, or of one size up to a factor of two.
    """

    count: int
    median_ns: float
    shortest_ns: int = 0
    longest_ns: int = 0
    longest: tuple[int, int] = (-1, -1)
    by: tuple[str, ...] = ()


def peers_of(session: Session, number: int, row: int) -> Peers:
    """Figures of the peers of an event; looked through once for each operation and what it was asked to do."""
    lane = session.profile.lanes[number]
    name = int(lane.take("name", slice(row, row + 1))[0]) if "name" in lane else -1
    if name < 0:
        return Peers(0, 0.0)
    operands = (key for key in session.profile.vocabulary.operands if knows(session.profile, lane, key))
    asked = tuple((key, int(_classes(session, lane, key, np.array([row]))[0])) for key in operands)
    return session.derived.get("peers", lambda: _peers(session, lane.kind, name, asked), lane.kind, name, asked)


def _classes(session: Session, lane: Lane, key: str, rows: Ints) -> Ints:
    """Codes of texts; of numbers the power of two they lie above, -1 where they are 0 or not known."""
    values = lane.take(key, rows)
    if session.profile.vocabulary.is_text(key):
        return values.astype(np.int64)
    numbers = np.where(is_missing(values), 0, values).astype(np.float64)
    return np.where(numbers >= 1, np.floor(np.log2(np.maximum(numbers, 1))), -1).astype(np.int64)


def _peers(session: Session, kind: str, name: int, asked: tuple[tuple[str, int], ...]) -> Peers:
    lengths: list[Ints] = []
    longest_ns, longest = -1, (-1, -1)
    for number, lane in enumerate(session.profile.lanes):
        if lane.kind != kind or "name" not in lane:
            continue
        rows = np.flatnonzero(lane["name"] == name)
        for key, wanted in asked:
            rows = rows[_classes(session, lane, key, rows) == wanted] if key in lane else rows[:0]
        took = lane.take("end", rows) - lane.take("start", rows)
        if len(took) and int(took.max()) > longest_ns:
            longest_ns, longest = int(took.max()), (number, int(rows[took.argmax()]))
        lengths.append(took)
    every = np.concatenate(lengths) if lengths else np.zeros(0, np.int64)
    schema = session.profile.vocabulary.schema
    by = tuple(schema[key].title if key in schema else key for key, wanted in asked if wanted >= 0)
    return Peers(len(every), float(np.median(every)), int(every.min()), longest_ns, longest, by)


class Neighbour(Struct, frozen=True):
    """The row before or after another on its lane, and the time between the two, ns; negative where they overlap."""

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
