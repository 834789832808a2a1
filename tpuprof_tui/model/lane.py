"""A lane: the events of one engine, stream or thread, stored in columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from .activity import Activity, Role
from .missing import INT_MISSING
from .notebook_display import html_table, known_keys, lane_frame, short

if TYPE_CHECKING:
    import pandas

    from .columns import Column
    from .strings import Strings

Array = npt.NDArray[Any]
#: Rows of a lane: a slice, or an array of indices.
Rows = slice | npt.NDArray[np.integer[Any]]
#: Computes a column for some rows; called at each access, caches at most the last result.
LazyColumn = Callable[[Rows], Array]

ALL = slice(None)
#: Kind of the lanes of events that are set aside: their times are not believed.
ASIDE = "aside"
#: Maximum number of rows that `cache_last_slice` caches.
_MOST_CACHED = 1 << 14
Columns = TypeVar("Columns", bound=Struct)


def row_count(rows: Rows) -> int:
    """Number of rows in a selection; a slice must have both ends."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def row_numbers(rows: Rows) -> npt.NDArray[np.int64]:
    """Row indices of a selection, int64; a slice must have both ends."""
    return np.asarray(np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows, dtype=np.int64)


def row_part(rows: Rows, first: int, last: int) -> Rows:
    """Positions ``first`` up to (not including) ``last`` of a row selection; a slice must have both ends."""
    return slice(rows.start + first, rows.start + last) if isinstance(rows, slice) else rows[first:last]


def rows_at(rows: Rows, positions: Rows) -> npt.NDArray[np.int64]:
    """Row indices (int64) at positions ``positions`` of a selection; a slice ``rows`` must have both ends."""
    if not isinstance(rows, slice):
        return np.asarray(rows[positions], np.int64)
    if not isinstance(positions, slice):
        return np.asarray(positions + rows.start, np.int64)
    first, last, stride = positions.indices(rows.stop - rows.start)
    return np.arange(rows.start + first, rows.start + last, stride, dtype=np.int64)


def row_parts(rows: Rows, size: int) -> Iterator[tuple[Rows, int]]:
    """Splits a row selection into parts of at most ``size`` rows; yields (part, number of rows).

    A slice must have both ends.
    """
    count = row_count(rows)
    for first in range(0, count, size):
        last = min(first + size, count)
        yield row_part(rows, first, last), last - first


def select_rows(columns: Columns, rows: npt.NDArray[Any]) -> Columns:
    """Selects rows of a struct whose fields are columns of one length."""
    return type(columns)(*(getattr(columns, name)[rows] for name in columns.__struct_fields__))


def constant(count: int, value: float, dtype: type[np.generic]) -> LazyColumn:
    """A lazy column of ``count`` rows that all hold ``value``."""

    def values(rows: Rows) -> Array:
        length = len(range(*rows.indices(count))) if isinstance(rows, slice) else len(rows)
        return np.full(length, value, dtype)

    return values


def cache_last_slice(read: LazyColumn) -> LazyColumn:
    """Caches the result of ``read`` for the last slice, for columns that are derived from it one after the other.

    Callers must not modify the arrays.
    """
    last: tuple[slice, Array] | None = None

    def values(rows: Rows) -> Array:
        nonlocal last
        cached = last
        if isinstance(rows, slice) and cached is not None and cached[0] == rows:
            return cached[1]
        found = read(rows)
        last = (rows, found) if isinstance(rows, slice) and len(found) <= _MOST_CACHED else None
        return found

    return values


class RegisterFields(Protocol):
    """Register fields of the commands of a lane, decoded on demand."""

    def operations(self, rows: Rows) -> npt.NDArray[np.int16]:
        """Operation index of each row's command, int16; -1 if exported files use columns instead of registers."""

    def operation_of(self, row: int) -> int:
        """Operation index of one row's command, regardless of exported files; -1 if it cannot be decoded."""

    def field_names(self, operation: int) -> tuple[str, ...]:
        """Names of the fields of an operation, in the order of the register."""

    def field(self, operation: int, name: str, rows: Rows) -> npt.NDArray[np.int64]:
        """Values of one field for rows that all have ``operation``."""

    def raw(self, row: int) -> bytes:
        """Bytes of the command as captured; empty without registers."""

    def unexplained(self, row: int) -> bytes:
        """Bytes of the command if some of its fields are unknown; else empty."""


def aside_columns(columns: Mapping[str, Array | LazyColumn]) -> dict[str, Array | LazyColumn]:
    """Columns of a lane of kind ``ASIDE`` from those of its events: without times, and in no figure."""
    count = len(columns["order"])  # type: ignore[arg-type]
    missing = np.full(count, INT_MISSING, np.int64)
    return {**columns, "start": missing, "end": missing, "role": constant(count, Role.ANNOTATION, np.int8),
            "sublane": constant(count, 0, np.int16)}  # fmt: skip


class Meaning(Struct, frozen=True, eq=False):
    """Schema of the source and the string tables of text columns, by column key."""

    schema: Mapping[str, Column]
    strings: Mapping[str, Strings]


class Lane(Struct, frozen=True, kw_only=True, eq=False):
    """Events of one lane in columns of one length, ordered by start. Immutable.

    Columns every lane has: ``start`` and ``end`` (int64 ns), ``order`` (int64, index in the source's own order),
    ``role`` (int8, see ``Role``) and ``sublane`` (int16; events of one sub-lane do not overlap). Optional columns of
    any lane: ``activity`` (int8, see ``Activity``), ``owner`` (int64, group whose unit submitted the event: assigns
    events of lanes without a unit to units), ``depth`` and ``parent`` (row of the enclosing event). All other columns
    are in the schema of the source (``Vocabulary.columns``); ``lane.keys()`` lists those of this lane. Text columns
    hold int32 codes into ``Profile.strings[key]``.
    """

    kind: str  #: Key of the kind of lane ("TIU", "GDMA", "stream")
    group: int  #: Id of its group; -1: none
    label: str  #: Name, unique within the group
    columns: Mapping[str, Array | LazyColumn]  #: Arrays, or functions from rows to values
    number: int = -1  #: Number among the lanes of its kind in the group; -1 without one
    #: Activity of all events; None if the column ``activity`` holds it for each event.
    activity: Activity | None = Activity.COMPUTE
    #: Whether figures of units and sums over several lanes include its events; False if other lanes hold the same time,
    #: as a whole or in parts: the tasks of a collective and the collective itself.
    counted: bool = True
    role_guessed: bool = False  #: Whether the distinction of work and wait is a guess (PMU-only captures)
    registers: RegisterFields | None = None  #: Register fields of the commands; None if the capture holds none
    describe: Callable[[int], str] | None = None  #: Returns one line that describes the event of a row
    #: Reads the recorded arguments of the event of a row that are not columns, by name.
    arguments: Callable[[int], Mapping[str, Any]] | None = None
    meaning: Meaning | None = None  #: Schema and string tables; set by the profile

    def __post_init__(self) -> None:
        columns = dict(self.columns)
        force_setattr(self, "columns", columns)
        force_setattr(self, "activity", None if "activity" in columns else self.activity)
        for values in columns.values():
            if isinstance(values, np.ndarray):
                values.flags.writeable = False

    def __len__(self) -> int:
        return len(self.columns["start"])  # type: ignore[arg-type]

    def __contains__(self, key: str) -> bool:
        return key in self.columns

    def __repr__(self) -> str:
        return f"<Lane {short(self.label)} ({short(self.kind)}) of group {self.group}: {len(self):,} events>"

    def _repr_html_(self) -> str:
        known = ", ".join(known_keys(self, self.meaning.schema)) if self.meaning is not None else ", ".join(self.keys())
        rows = ("kind", self.kind), ("group", str(self.group)), ("events", f"{len(self):,}"), ("columns", known)
        return html_table(self.label, (), rows)

    def to_pandas(self, *, counters: bool = False) -> pandas.DataFrame:
        """The events as a data frame, as in ``Profile.to_pandas``; ValueError for a lane without a profile."""
        if self.meaning is None:
            raise ValueError("the lane belongs to no profile")
        return lane_frame(self, self.meaning, counters=counters)

    @property
    def sublanes(self) -> int:
        """Number of sub-lanes; 1 if no events overlap."""
        return int(self["sublane"].max(initial=0)) + 1 if "sublane" in self else 1

    @property
    def is_aside(self) -> bool:
        """Whether its events are set aside: they have no times, and are in no figure and no picture."""
        return self.kind == ASIDE

    @property
    def on_host(self) -> bool:
        """Whether it ran on the host; figures of the device exclude such lanes."""
        return self.activity is Activity.HOST

    @property
    def in_sums(self) -> bool:
        """Whether sums over several lanes include its events; sums of this lane alone always do."""
        return self.counted and not self.on_host

    def activity_mask(self, wanted: Collection[Activity], rows: Rows) -> npt.NDArray[np.bool_] | None:
        """Mask of the rows with one of the wanted activities; None if all rows have one.

        Reads no column if all events of the lane have the same activity.
        """
        if self.activity is None:
            return np.isin(self.take("activity", rows), [int(each) for each in wanted])
        if self.activity in wanted:
            return None
        return np.zeros(len(self.take("start", rows)), np.bool_)

    def can_have_activity(self, wanted: Collection[Activity]) -> bool:
        """Whether events can have one of the wanted activities; always True for lanes of mixed activities."""
        return self.activity is None or self.activity in wanted

    def description(self, row: int) -> str:
        """One line that describes the event of a row; empty if the lane has no ``describe``."""
        return "" if self.describe is None else self.describe(row)

    def keys(self) -> tuple[str, ...]:
        """Keys of the columns of this lane."""
        return tuple(self.columns)

    def __getitem__(self, key: str) -> Array:
        """A whole column; KeyError if the lane does not have it."""
        return self.take(key, ALL)

    def take(self, key: str, rows: Rows) -> Array:
        """Values of a column for some rows, in their order; computes only these. KeyError without the column."""
        values = self.columns[key]
        return values[rows] if isinstance(values, np.ndarray) else values(rows)

    def with_column(self, key: str, values: Array | LazyColumn) -> Lane:
        """A copy of the lane with a column added or replaced."""
        return replace(self, columns={**self.columns, key: values})

    def select_rows(self, rows: Rows, *, eager: Collection[str] = ("start", "end"), only: Collection[str] = ()) -> Lane:
        """A lane with the selected rows, in that order, without registers; ``parent`` is renumbered to the new rows.

        Args:
            rows: The rows to select.
            eager: Columns to copy now (``start`` always); the others are lazy.
            only: Columns to keep; empty: all.
        """
        numbers = np.arange(len(self))[rows] if isinstance(rows, slice) else rows
        keys = [key for key in self.columns if not only or key in only or key == "activity"]
        now = {"start", *eager}
        columns = {key: self.take(key, numbers) if key in now else _lazy_selection(self, key, numbers) for key in keys}
        if "parent" in columns:
            columns["parent"] = self._remapped_parents(numbers)
        return replace(self, columns=columns, registers=None, describe=None, arguments=None)

    def _remapped_parents(self, numbers: npt.NDArray[Any]) -> LazyColumn:
        """Lazy column ``parent`` of a selection: the innermost enclosing row within the selection; -1 without one."""

        def values(rows: Rows) -> Array:
            parents = self["parent"]
            position = np.full(len(self) + 1, -1, np.int64)  # the last entry is for parent -1
            position[numbers] = np.arange(len(numbers))
            found = parents[numbers[rows]]
            while (left_out := (found >= 0) & (position[found] < 0)).any():
                found = np.where(left_out, parents[found], found)
            return np.asarray(position[found])

        return values

    def stored_arrays(self) -> Iterator[Array]:
        """Columns stored as arrays, without the lazy ones."""
        return (values for values in self.columns.values() if isinstance(values, np.ndarray))

    def arrays(self) -> dict[str, Array]:
        """All columns by key, lazy ones computed; arrays of one length."""
        return {key: self[key] for key in self.columns}


def _lazy_selection(lane: Lane, key: str, numbers: npt.NDArray[np.integer[Any]]) -> LazyColumn:
    return lambda wanted: lane.take(key, numbers[wanted])
