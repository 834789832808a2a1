"""A lane: anything that runs one thing at a time, with its events in columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from .activity import Activity
from .notebook_display import html_table, known_keys, lane_frame, short

if TYPE_CHECKING:
    import pandas

    from .columns import Column
    from .strings import Strings

Array = npt.NDArray[Any]
#: Rows of a lane: a slice, or an array of indices.
Rows = slice | npt.NDArray[np.integer[Any]]
#: Computes a column for some rows; called anew each time, and at most what was asked for last is kept.
LazyColumn = Callable[[Rows], Array]

ALL = slice(None)
#: Rows of a column that are kept for others.
_MOST_KEPT = 1 << 14
Columns = TypeVar("Columns", bound=Struct)


def row_count(rows: Rows) -> int:
    """Number of rows asked for; a slice has both ends."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def row_numbers(rows: Rows) -> npt.NDArray[np.int64]:
    """Numbers of the rows asked for, int64; a slice has both ends."""
    return np.asarray(np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows, dtype=np.int64)


def row_part(rows: Rows, first: int, last: int) -> Rows:
    """The rows from place ``first`` to before ``last`` among some rows; a slice has both ends."""
    return slice(rows.start + first, rows.start + last) if isinstance(rows, slice) else rows[first:last]


def rows_at(rows: Rows, places: Rows) -> npt.NDArray[np.int64]:
    """Numbers of the rows at some places among rows, int64; a slice of rows has both ends, one of places may not."""
    if not isinstance(rows, slice):
        return np.asarray(rows[places], np.int64)
    if not isinstance(places, slice):
        return np.asarray(places + rows.start, np.int64)
    first, last, stride = places.indices(rows.stop - rows.start)
    return np.arange(rows.start + first, rows.start + last, stride, dtype=np.int64)


def row_parts(rows: Rows, size: int) -> Iterator[tuple[Rows, int]]:
    """Some rows, up to ``size`` at a time, each part with its number of rows; a slice has both ends."""
    count = row_count(rows)
    for first in range(0, count, size):
        last = min(first + size, count)
        yield row_part(rows, first, last), last - first


def taken(columns: Columns, rows: npt.NDArray[Any]) -> Columns:
    """Some rows of a struct whose fields are columns of one length."""
    return type(columns)(*(getattr(columns, name)[rows] for name in columns.__struct_fields__))


def constant(count: int, value: float, dtype: type[np.generic]) -> LazyColumn:
    """A column of ``count`` rows with the same value in each."""

    def values(rows: Rows) -> Array:
        asked = len(range(*rows.indices(count))) if isinstance(rows, slice) else len(rows)
        return np.full(asked, value, dtype)

    return values


def last_kept(read: LazyColumn) -> LazyColumn:
    """What ``read`` gives, kept of the slice asked for last: for columns that are made of it one after the other.

    Who asks does not change the values.
    """
    last: tuple[slice, Array] | None = None

    def values(rows: Rows) -> Array:
        nonlocal last
        known = last
        if isinstance(rows, slice) and known is not None and known[0] == rows:
            return known[1]
        found = read(rows)
        last = (rows, found) if isinstance(rows, slice) and len(found) <= _MOST_KEPT else None
        return found

    return values


class RegisterFields(Protocol):
    """Register fields of a lane's commands, decoded on demand."""

    def operations(self, rows: Rows) -> npt.NDArray[np.int16]:
        """Operation index of each row's command as files go by; -1 where they go by columns alone."""

    def operation_of(self, row: int) -> int:
        """Operation index of one row's command, whatever files go by; -1 where it cannot be decoded."""

    def field_names(self, operation: int) -> tuple[str, ...]:
        """Names of an operation's fields, in the order of the register."""

    def field(self, operation: int, name: str, rows: Rows) -> npt.NDArray[np.int64]:
        """Values of one field for rows that all have ``operation``."""

    def raw(self, row: int) -> bytes:
        """The command as it was captured; empty without registers."""

    def unexplained(self, row: int) -> bytes:
        """The same where not all of its fields are known; empty where they are."""


class Meaning(Struct, frozen=True, eq=False):
    """What the columns of a profile's lanes mean: the schema of its source, and the texts that codes stand for."""

    schema: Mapping[str, Column]
    strings: Mapping[str, Strings]


class Lane(Struct, frozen=True, kw_only=True, eq=False):
    """Events of one lane in columns of one length, ordered by start. Immutable.

    Columns every lane has: ``start`` and ``end`` (int64 ns), ``order`` (int64, place in the source's own order),
    ``role`` (int8, see ``Role``) and ``sublane`` (int16; events of one sub-lane do not overlap). Columns any lane may
    have: ``activity`` (int8, see ``Activity``), ``owner`` (int64, group whose unit submitted the event: lanes of no
    unit belong to units by it), ``depth`` and ``parent`` (row that an event is nested in). All others are in the schema
    of the source (``Vocabulary.columns``); ``lane.keys()`` says which are known here. Text columns hold int32 codes
    into ``Profile.strings[key]``.

    Attributes:
        kind: Key of its kind ("TIU", "GDMA", "stream").
        group: Id of the group it belongs to; -1: none.
        label: Name within its group, unique there.
        columns: Arrays, or functions from rows to values.
        number: Number among those of its kind in its group; -1 without one.
        activity: What all its events do; None where the column ``activity`` tells it of each. A column may be given
            here instead of among the others.
        counted: Whether figures of units, and sums over several lanes, hold its events; not so where they are told by
            other lanes as well, as a whole or in parts: the tasks of a collective beside the collective.
        role_guessed: True where work and wait are told apart by guesswork (PMU-only captures).
        registers: Register fields of the commands; None where the capture holds none.
        describe: One line that says what the event of a row did.
        arguments: What was recorded of the event of a row beyond its columns, by name, read when it is asked for.
        meaning: What its columns mean; its profile gives it.
    """

    kind: str
    group: int
    label: str
    columns: Mapping[str, Array | LazyColumn]
    number: int = -1
    activity: Activity | None = Activity.COMPUTE
    counted: bool = True
    role_guessed: bool = False
    registers: RegisterFields | None = None
    describe: Callable[[int], str] | None = None
    arguments: Callable[[int], Mapping[str, Any]] | None = None
    meaning: Meaning | None = None

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
        """Its events as in ``Profile.to_pandas``; ValueError without a profile, which says what columns mean."""
        if self.meaning is None:
            raise ValueError("the lane belongs to no profile")
        return lane_frame(self, self.meaning, counters=counters)

    @property
    def sublanes(self) -> int:
        """Number of sub-lanes; 1 where nothing overlaps."""
        return int(self["sublane"].max(initial=0)) + 1 if "sublane" in self else 1

    @property
    def on_host(self) -> bool:
        """Whether it ran beside the device, on its host: such lanes count in no figure of the device."""
        return self.activity is Activity.HOST

    @property
    def in_sums(self) -> bool:
        """Whether sums over several lanes hold its events; sums of this lane alone do anyway."""
        return self.counted and not self.on_host

    def doing(self, wanted: Collection[Activity], rows: Rows) -> npt.NDArray[np.bool_] | None:
        """Which of some rows do one of the activities; None where all do. Asks for no column where all do the same."""
        if self.activity is None:
            return np.isin(self.take("activity", rows), [int(each) for each in wanted])
        if self.activity in wanted:
            return None
        return np.zeros(len(self.take("start", rows)), np.bool_)

    def may_do(self, wanted: Collection[Activity]) -> bool:
        """Whether any event can do one of the activities; of a lane that mixes them any can."""
        return self.activity is None or self.activity in wanted

    def reading(self, row: int) -> str:
        """One line that says what an instruction did, as far as the capture knows; empty where nothing reads it."""
        return "" if self.describe is None else self.describe(row)

    def keys(self) -> tuple[str, ...]:
        """Keys of the columns this lane knows."""
        return tuple(self.columns)

    def __getitem__(self, key: str) -> Array:
        """A whole column; KeyError where the lane does not know it."""
        return self.take(key, ALL)

    def take(self, key: str, rows: Rows) -> Array:
        """A column's values for some rows in the order asked for, computing only those; KeyError without it."""
        values = self.columns[key]
        return values[rows] if isinstance(values, np.ndarray) else values(rows)

    def with_column(self, key: str, values: Array | LazyColumn) -> Lane:
        """The same lane with one more column, or another in its place."""
        return replace(self, columns={**self.columns, key: values})

    def taking(self, rows: Rows, *, eager: Collection[str] = ("start", "end"), only: Collection[str] = ()) -> Lane:
        """A lane of some of the rows, in that order, without registers; ``parent`` numbers these rows.

        ``eager``: columns that are taken now, ``start`` always, the others when they are asked for; ``only``: no other
        columns; empty: all.
        """
        numbers = np.arange(len(self))[rows] if isinstance(rows, slice) else rows
        keys = [key for key in self.columns if not only or key in only or key == "activity"]
        now = {"start", *eager}
        columns = {key: self.take(key, numbers) if key in now else _later(self, key, numbers) for key in keys}
        if "parent" in columns:
            columns["parent"] = self._parents_among(numbers)
        return replace(self, columns=columns, registers=None, describe=None, arguments=None)

    def _parents_among(self, numbers: npt.NDArray[Any]) -> LazyColumn:
        """The column ``parent`` of some rows alone: the innermost enclosing one of these rows; -1 without."""

        def values(rows: Rows) -> Array:
            parents = self["parent"]
            place = np.full(len(self) + 1, -1, np.int64)  # the last is of -1: there is none
            place[numbers] = np.arange(len(numbers))
            found = parents[numbers[rows]]
            while (left_out := (found >= 0) & (place[found] < 0)).any():
                found = np.where(left_out, parents[found], found)
            return np.asarray(place[found])

        return values

    def kept_arrays(self) -> Iterator[Array]:
        """The columns that are kept as arrays; the others are computed when they are asked for."""
        return (values for values in self.columns.values() if isinstance(values, np.ndarray))

    def arrays(self) -> dict[str, Array]:
        """All columns of the lane, computed; a dict of arrays of one length."""
        return {key: self[key] for key in self.columns}


def _later(lane: Lane, key: str, numbers: npt.NDArray[np.integer[Any]]) -> LazyColumn:
    return lambda wanted: lane.take(key, numbers[wanted])
