"""A profile made ready for the screen: indexes, numbers of instructions over all lanes, values of cells and sorts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from ..analysis.figures import Headline, Indexes, build_indexes, headline
from ..analysis.lane_index import rows_between
from ..model import COLUMNS, INT_MISSING, Column, Lane, Profile, is_missing
from ..model.lane import Array, Rows
from .state import Scope, Sort

Ints = npt.NDArray[np.int64]

#: Columns the table begins with: what, when, how long.
_FIRST: Final = ("engine", "core", "order", "name", "start", "duration", "kernel")
#: Columns that every lane can answer, whether the source names them or not.
_OF_LANE: Final = ("engine", "core", "port", "duration")


@dataclass(frozen=True, eq=False)
class Session:
    """A profile and what the views derive from it once.

    Instructions are numbered over all lanes: ``offsets[lane] + row``. Views hold such numbers, never rows of values.

    Attributes:
        profile: The profile.
        indexes: Index of each lane.
        offsets: int64, number of the first instruction of each lane, and the number of all at the end.
        headline: Figures of the whole profile.
    """

    profile: Profile
    indexes: Indexes
    offsets: Ints
    headline: Headline

    @classmethod
    def build(cls, profile: Profile) -> Session:
        """Everything of a profile that is computed once; meant for a thread."""
        indexes = build_indexes(profile)
        offsets = np.zeros(len(profile.lanes) + 1, dtype=np.int64)
        np.cumsum([len(lane) for lane in profile.lanes], out=offsets[1:])
        return cls(profile, indexes, offsets, headline(profile, indexes))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns the table shows: those that some lane knows, the preferred ones first."""
        known: set[str] = set().union(*(lane.keys() for lane in self.profile.lanes))
        known.update(_OF_LANE)
        if not self.profile.ports:
            known.discard("port")
        columns = [column for column in COLUMNS if column.key in known and self._in_some_lane(column)]
        return tuple(sorted(columns, key=_place_in_table))

    def _in_some_lane(self, column: Column) -> bool:
        return any(column.applies_to(lane.engine) for lane in self.profile.lanes) or not self.profile.lanes

    def number(self, lane: int, row: int) -> int:
        """Number of an instruction."""
        return int(self.offsets[lane]) + row

    def place(self, number: int) -> tuple[int, int]:
        """Lane and row of an instruction's number."""
        lane = int(np.searchsorted(self.offsets, number, side="right")) - 1
        return lane, number - int(self.offsets[lane])

    def lanes_in(self, scope: Scope) -> tuple[int, ...]:
        """Indexes of the lanes of a scope; of a core also the ports it submitted to."""
        if scope.lane >= 0:
            return (scope.lane,)
        lanes = range(len(self.profile.lanes))
        if scope.core < 0:
            return tuple(lanes)
        return tuple(number for number in lanes if self._belongs(self.profile.lanes[number], scope.core))

    def _belongs(self, lane: Lane, core: int) -> bool:
        if lane.core >= 0 or "core" not in lane:
            return lane.core == core
        return core in self._submitters[lane.port]

    @cached_property
    def _submitters(self) -> dict[int, set[int]]:
        return {
            lane.port: set(np.unique(lane["core"]).tolist())
            for lane in self.profile.lanes
            if lane.core < 0 and "core" in lane
        }

    def core_of(self, lane: int) -> int:
        """Core of a lane; -1 for ports."""
        return self.profile.lanes[lane].core

    def span_of(self, lane: int, row: int) -> tuple[int, int]:
        """Start and end of an instruction, ns."""
        rows = slice(row, row + 1)
        events = self.profile.lanes[lane]
        return int(events.take("start", rows)[0]), int(events.take("end", rows)[0])

    def scope_title(self, scope: Scope) -> str:
        """What a scope is called."""
        if scope.lane >= 0:
            return self.profile.lanes[scope.lane].title
        return "all cores" if scope.core < 0 else f"core {scope.core}"


def _place_in_table(column: Column) -> tuple[int, bool]:
    return (_FIRST.index(column.key) if column.key in _FIRST else len(_FIRST), not column.shown)


def lane_values(lane: Lane, key: str, rows: Rows) -> Array | None:
    """Values of a column for some rows of a lane; None where nothing is known.

    Text columns give codes, but ``engine`` may give nothing (ask the lane).
    """
    if key in lane:
        return lane.take(key, rows)
    if key == "duration":
        return np.asarray(lane.take("end", rows) - lane.take("start", rows))
    if key in ("core", "port"):
        number = lane.core if key == "core" else lane.port
        count = len(lane.take("start", rows))
        return np.full(count, number if number >= 0 else INT_MISSING, dtype=np.int64)
    return None


def numbers_in(session: Session, scope: Scope, window: tuple[int, int] | None) -> Ints:
    """Numbers of the instructions of a scope, by lane, then start.

    Args:
        session: The session.
        scope: A core's scope holds of a CDMA port only what the core submitted.
        window: Only those that run or start in [start, end); None: all.

    Returns:
        int64, ascending.
    """
    parts: list[Ints] = []
    for number in session.lanes_in(scope):
        lane = session.profile.lanes[number]
        rows = slice(0, len(lane)) if window is None else rows_between(session.indexes[number], *window)
        found = np.arange(rows.start, rows.stop, dtype=np.int64) if isinstance(rows, slice) else rows
        if scope.core >= 0 and scope.lane < 0 and lane.core != scope.core:
            found = found[lane.take("core", found) == scope.core]
        parts.append(found + session.offsets[number])
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def sort_keys(session: Session, key: str, numbers: Ints) -> Array:
    """Values to sort ``numbers`` by: int64 or float64, text as ranks; what is missing is INT_MISSING, -1 or NaN."""
    parts: list[Array] = []
    bounds = np.searchsorted(numbers, session.offsets)
    column = next((column for column in COLUMNS if column.key == key), None)
    text = column is not None and column.kind == "text"
    engines = sorted({lane.engine for lane in session.profile.lanes})
    for lane_number, lane in enumerate(session.profile.lanes):
        chosen = numbers[bounds[lane_number] : bounds[lane_number + 1]]
        if not len(chosen):
            continue
        rows = _rows(chosen - session.offsets[lane_number], len(lane))
        values = lane_values(lane, key, rows)
        if key == "engine" and values is None:
            parts.append(np.full(len(chosen), engines.index(lane.engine), dtype=np.int64))
        elif values is None:
            parts.append(np.full(len(chosen), -1, np.int32) if text else np.full(len(chosen), INT_MISSING, np.int64))
        elif text:
            parts.append(session.profile.strings[key].ranks[values])
        else:
            parts.append(values)
    if any(part.dtype.kind == "f" for part in parts):
        parts = [part if part.dtype.kind == "f" else _floats(part) for part in parts]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _rows(rows: Ints, length: int) -> Rows:
    """``rows`` as a slice where they follow one another: columns are then views, not copies."""
    if len(rows) and int(rows[-1]) - int(rows[0]) + 1 == len(rows):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def _floats(values: Array) -> npt.NDArray[np.float64]:
    return np.where(is_missing(values), np.nan, values.astype(np.float64))


def ordered(session: Session, numbers: Ints, sort: Sort) -> Ints:
    """``numbers`` in the order of a sort: equals stay as they were, what is missing comes last either way.

    Args:
        session: The session.
        numbers: int64, ascending.
        sort: Column and direction.

    Returns:
        int64, the same numbers in order.
    """
    keys = sort_keys(session, sort.key, numbers)
    if len(keys) and bool((keys[1:] >= keys[:-1]).all()) and not sort.down and not bool(is_missing(keys[:1])[0]):
        return numbers
    gone = is_missing(keys)
    known = np.flatnonzero(~gone) if bool(gone.any()) else None
    present = keys if known is None else keys[known]
    order = _stable_order(present, sort.down)
    if known is None:
        return np.asarray(numbers[order])
    return np.concatenate([numbers[known[order]], numbers[np.flatnonzero(gone)]])


def _stable_order(keys: Array, down: bool) -> Ints:
    if keys.dtype.kind == "f":
        return np.argsort(-keys if down else keys, kind="stable")
    low = int(keys.min()) if len(keys) else 0
    high = int(keys.max()) if len(keys) else 0
    if high - low < 1 << 62:
        shifted = high - keys if down else keys - low
        # numpy sorts 16-bit integers by radix: many columns hold small numbers
        narrow = np.uint16 if high - low < 1 << 16 else np.uint32 if high - low < 1 << 32 else np.int64
        return np.argsort(shifted.astype(narrow), kind="stable")
    if not down:
        return np.argsort(keys, kind="stable")
    return (len(keys) - 1 - np.argsort(keys[::-1], kind="stable"))[::-1]
