"""Comparison of an event with its peers (same operation, similar operands) and its neighbours on the lane."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import Lane
from tpuprof_tui.model.missing import is_missing

from ..index.ordering import has_column
from ..selecting.session import Session

Ints = npt.NDArray[np.int64]


class Peers(Struct, frozen=True):
    """Statistics of the events of one operation, on all lanes of a kind, with similar operands."""

    count: int  #: Number of events
    median_ns: float  #: Median duration
    #: shortest_ns, longest_ns: Minimum and maximum duration.
    shortest_ns: int = 0
    longest_ns: int = 0
    longest: tuple[int, int] = (-1, -1)  #: Lane and row of the (first) longest; -1: none
    by: tuple[str, ...] = ()  #: Titles of the columns in which they agree: texts equal, numbers within a factor of two


def peers_of(session: Session, number: int, row: int) -> Peers:
    """Statistics of the peers of an event; cached per operation and operand classes."""
    lane = session.profile.lanes[number]
    name = int(lane.take("name", slice(row, row + 1))[0]) if "name" in lane else -1
    if name < 0:
        return Peers(0, 0.0)
    operands = (key for key in session.profile.vocabulary.operands if has_column(session.profile, lane, key))
    classes = tuple((key, int(_classes(session, lane, key, np.array([row]))[0])) for key in operands)
    return session.cache.get("peers", lambda: _peers(session, lane.kind, name, classes), lane.kind, name, classes)


def _classes(session: Session, lane: Lane, key: str, rows: Ints) -> Ints:
    """Classes of operand values: codes of texts; floor(log2) of numbers, -1 if 0 or missing."""
    values = lane.take(key, rows)
    if session.profile.vocabulary.is_text(key):
        return values.astype(np.int64)
    numbers = np.where(is_missing(values), 0, values).astype(np.float64)
    return np.where(numbers >= 1, np.floor(np.log2(np.maximum(numbers, 1))), -1).astype(np.int64)


def _peers(session: Session, kind: str, name: int, classes: tuple[tuple[str, int], ...]) -> Peers:
    lengths: list[Ints] = []
    longest_ns, longest = -1, (-1, -1)
    for number, lane in enumerate(session.profile.lanes):
        if lane.kind != kind or "name" not in lane:
            continue
        rows = np.flatnonzero(lane["name"] == name)
        for key, wanted in classes:
            rows = rows[_classes(session, lane, key, rows) == wanted] if key in lane else rows[:0]
        took = lane.take("end", rows) - lane.take("start", rows)
        if len(took) and int(took.max()) > longest_ns:
            longest_ns, longest = int(took.max()), (number, int(rows[took.argmax()]))
        lengths.append(took)
    every = np.concatenate(lengths) if lengths else np.zeros(0, np.int64)
    schema = session.profile.vocabulary.schema
    by = tuple(schema[key].title if key in schema else key for key, wanted in classes if wanted >= 0)
    return Peers(len(every), float(np.median(every)), int(every.min()), longest_ns, longest, by)


class Neighbour(Struct, frozen=True):
    """The previous or next row on a lane, and the gap to it, ns; negative if they overlap."""

    row: int
    gap_ns: int


def neighbours(session: Session, lane: int, row: int) -> tuple[Neighbour | None, Neighbour | None]:
    """The rows before and after a row of a lane, by start; None at the ends."""
    start, end = session.span_of(lane, row)
    before = after = None
    if row > 0:
        before = Neighbour(row - 1, start - session.span_of(lane, row - 1)[1])
    if row + 1 < len(session.profile.lanes[lane]):
        after = Neighbour(row + 1, session.span_of(lane, row + 1)[0] - end)
    return before, after
