"""Result of a view: facts, tables and series of raw values, independent of the renderer.

Times and durations are in ns; renderers convert them to us in JSON and to a readable unit for people. Unknown values
are None, NaN or ``INT_MISSING``, never 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.analysis.pivot import Figure, Frame, pivot
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.notebook_display import html_table, short

#: ``duration`` and ``time`` (on the profile's time line) are in ns, ``share`` is 0 to 1, ``rate`` GB/s, ``list`` plain
#: values for JSON only.
ValueKind = Literal["text", "count", "duration", "time", "bytes", "rate", "share", "number", "flag", "list"]
#: Left-aligned kinds.
TEXTS: Final = ("text", "list")
#: Maximum number of values computed at once during iteration.
_CHUNK: Final = 1 << 16


class Target(Struct, frozen=True):
    """Destination of Enter on a row: one of the fields is set, or ``scope`` and one of ``condition`` and ``time``."""

    condition: str = ""  #: Filter condition, of the events of ``scope`` if that is set
    event: tuple[int, int] | None = None  #: Lane and row of an event
    others: tuple[tuple[int, int], ...] = ()  #: Further events: Enter again selects the next one
    time: tuple[int, int] | None = None  #: Start and end of an interval, ns; of a pause of ``scope`` if that is set
    scope: Scope | None = None  #: A group or lane
    step: int | None = None  #: Number of a step


class Column(Struct, frozen=True):
    """A column of a table."""

    key: str  #: Its name in JSON; stable
    title: str  #: Its title for people
    kind: ValueKind = "text"  #: Kind of its values
    unit: str = ""  #: Unit of a ``number``
    drop_first: int = 0  #: Priority for being left out in narrow tables, the highest first; 0: never
    bar: bool = False  #: Whether screens draw a bar for each value, full at the table's largest value
    parts: tuple[str, ...] = ()  #: Keys of duration columns that the bar stacks instead; together they fill it
    shown: bool = True  #: Whether people see it; otherwise it is for programs only
    #: For text columns, whether it identifies the row: rows of two profiles are joined by these columns.
    is_key: bool = True
    #: Clock time at the zero of the profile's time line, ns: JSON has a ``time`` as an exact decimal string of that
    #: clock; None: as a number since the worker's start.
    epoch_ns: int | None = None
    filter_column: str = ""  #: Key of the event column with the same texts: Enter filters the events by the row's text
    short_title: str = ""  #: Shorter header for people; empty: the title
    zero_unknown: bool = False  #: Whether people see 0 as unknown; programs get the 0 that other tools have there
    emphasis: str = ""  #: Key of a column of shares, 0 to 1, by which screens emphasise this one; empty: none
    guess: str = ""  #: Key of a column of flags: where it is true, people see that the value is a guess; empty: none


class LazyValues(Sequence[Any]):
    """Lazy column of ``count`` values: ``take`` computes those of a slice with step 1."""

    def __init__(self, count: int, take: Callable[[slice], Sequence[Any] | npt.NDArray[Any]]) -> None:
        self._count = count
        self._take = take

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._count)
            return plain_list(self._take(slice(start, max(start, stop)))) if step == 1 else list(self)[index]
        row = range(self._count)[index]
        return plain_value(self._take(slice(row, row + 1))[0])

    def __iter__(self) -> Iterator[Any]:
        # grow the chunks: a caller that only checks for any value stops early
        first, count = 0, 1
        while first < self._count:
            yield from plain_list(self._take(slice(first, min(first + count, self._count))))
            first, count = first + count, min(2 * count, _CHUNK)


class Table(Struct, frozen=True, eq=False, dict=True):
    """A table, in its initial order."""

    key: str  #: Its name in JSON; stable
    title: str  #: Its title for people
    columns: tuple[Column, ...]  #: Its columns
    #: For each column a sequence of one common length: a list, a tuple or an array.
    values: tuple[Sequence[Any] | npt.NDArray[Any], ...]
    #: Maps a row number to the destination of Enter; None: derived from the row's time columns, else from a column with
    #: ``filter_column``.
    target: Callable[[int], Target | None] | None = None
    guessed: frozenset[int] | None = None  #: Rows with inferred figures; None: no rows
    notes: tuple[str, ...] = ()  #: Sentences below the table
    total: bool = False  #: Whether the last row is the total of the others
    word: str = "row"  #: Noun for a row ("core", "kernel function")
    shown: bool = True  #: Whether people see it; otherwise it is for programs only
    brief: Sequence[int] | None = None  #: Rows shown in a summary of several views, in this order; None: all rows
    longest: str = ""  #: Key of a column: a summary without space for all rows shows those with its largest values
    ordered: bool = False  #: Whether rows of two profiles are joined by position rather than by texts
    #: Depth of each row in a tree, as indentation of its first text for people; None: no tree.
    depth: Sequence[int] | npt.NDArray[np.int64] | None = None
    one_unit: bool = False  #: Whether people see all durations in one unit, as parts of one sum
    #: Row numbers of each row that people see, the representative first; several: merged; empty: none.
    merge_groups: Sequence[Sequence[int]] = ()
    #: Merges the values of several rows for people.
    merge_rows: Callable[[Sequence[tuple[Any, ...]]], tuple[Any, ...]] = itemgetter(0)

    def __post_init__(self) -> None:
        lengths = {len(each) for each in self.values}
        if len(self.values) != len(self.columns) or len(lengths) > 1:
            raise ValueError(f"table {self.key}: {len(self.columns)} columns, values of lengths {sorted(lengths)}")

    @classmethod
    def of_rows(
        cls, key: str, title: str, columns: Sequence[Column], rows: Sequence[Sequence[Any]], **more: Any
    ) -> Table:
        """Builds a table from rows."""
        values = tuple(zip(*rows, strict=True)) if rows else tuple(() for _ in columns)
        return cls(key, title, tuple(columns), values, **more)

    @classmethod
    def of_pivot(
        cls, key: str, title: str, frame: Frame, keys: Sequence[str], figures: Sequence[tuple[Column, Figure]],
        order: Sequence[str], **more: Any,
    ) -> Table:  # fmt: skip
        """Builds a table with a row for each group of the frame's rows (`analysis.pivot`): a figure in each column."""
        rows = pivot(frame, keys, {column.key: figure for column, figure in figures}, order)
        return cls.of_rows(key, title, [column for column, _ in figures], rows, **more)

    def __len__(self) -> int:
        return len(self.values[0]) if self.values else 0

    def row(self, number: int) -> tuple[Any, ...]:
        """A row as plain values; None where unknown."""
        return tuple(plain_value(column[number]) for column in self.values)

    def rows(self, start: int = 0, stop: int | None = None) -> list[tuple[Any, ...]]:
        """Rows [start, stop) as plain values."""
        return list(zip(*(plain_list(column[start:stop]) for column in self.values), strict=True))

    def column(self, key: str) -> list[Any]:
        """A column, by key, as plain values."""
        return plain_list(self.values[self.column_index(key)])

    def largest(self, key: str) -> float:
        """The largest magnitude in a numeric column, by key; 0 if no value is known. Cached."""
        found = self._largest.get(key)
        if found is None:
            values = self.values[self.column_index(key)]
            if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
                known = values[~np.isnan(values) if values.dtype.kind == "f" else values != INT_MISSING]
                found = float(np.abs(known).max(initial=0))
            else:
                found = max((abs(value) for value in plain_list(values) if value is not None), default=0)
            self._largest[key] = found
        return found

    def bar_full(self, column: Column) -> float:
        """The value at which a bar is full: 1 for shares, else the largest of all columns of this kind with bars."""
        if column.kind == "share":
            return 1.0
        return max(self.largest(each.key) for each in self.columns if each.bar and each.kind == column.kind)

    @cached_property
    def _largest(self) -> dict[str, float]:
        return {}

    def column_index(self, key: str) -> int:
        """Index of a column by key; -1: none."""
        return next((index for index, column in enumerate(self.columns) if column.key == key), -1)

    def merged(self) -> Table:
        """The table with the rows of each of ``merge_groups`` merged; a merged row leads to the events of all."""
        if not self.merge_groups:
            return self
        merged = [self.merge_rows([self.row(row) for row in rows]) if len(rows) > 1 else self.row(rows[0])
                  for rows in self.merge_groups]  # fmt: skip
        order = {rows[0]: index for index, rows in enumerate(self.merge_groups)}
        brief = None if self.brief is None else [order[row] for row in self.brief if row in order]
        guessed = None if self.guessed is None else frozenset(order[row] for row in self.guessed if row in order)

        def target(row: int) -> Target | None:
            first, *rest = (self.target_of(each) for each in self.merge_groups[row])
            others = tuple(each.event for each in rest if each is not None and each.event is not None)
            return replace(first, others=others) if first is not None else None

        return replace(self, values=tuple(zip(*merged, strict=True)), target=target, merge_groups=(), brief=brief,
                       guessed=guessed)  # fmt: skip

    def is_guessed(self, row: int, column: Column) -> bool:
        """Whether people see that a value is a guess."""
        flag = column.guess and plain_value(self.values[self.column_index(column.guess)][row])
        return bool(flag) or row in (self.guessed or ())

    def depth_of(self, row: int) -> int:
        """Depth of a row in the tree; 0 without a tree."""
        return int(self.depth[row]) if self.depth is not None else 0

    def target_of(self, row: int) -> Target | None:
        """Destination of Enter on a row; None: none."""
        if self.target is not None:
            return self.target(row)
        if self._time_columns:
            start, *duration = (plain_value(column[row]) for column in self._time_columns)
            if start is None or None in duration:
                return None
            # an instant is shown as 1 ns
            return Target(time=(int(start), int(start + max(sum(duration), 1))))
        for column, values in zip(self.columns, self.values, strict=True):
            if column.filter_column and (text := plain_value(values[row])):
                return Target(condition=text_condition(column.filter_column, text))
        return None

    @cached_property
    def _time_columns(self) -> tuple[Any, ...]:
        """Values of the first time column and of the first duration column after (else before) it; empty: no times."""
        kinds = [column.kind for column in self.columns]
        if "time" not in kinds:
            return ()
        begin = kinds.index("time")
        if "duration" not in kinds:
            return (self.values[begin],)
        length = kinds.index("duration", begin) if "duration" in kinds[begin:] else kinds.index("duration")
        return self.values[begin], self.values[length]

    def to_pandas(self) -> Any:
        """A data frame with the values of the JSON form, times in us. Raises MissingPackageError without pandas."""
        from tpuprof_tui.errors import requires_package

        with requires_package("A data frame"):
            import pandas
        from .as_json import table_record

        values = zip(*table_record(self)["rows"], strict=True) if len(self) else ((),) * len(self.columns)
        return pandas.DataFrame(
            {column.key: pandas.Series(each, dtype=object if column.kind in TEXTS else None)
             for column, each in zip(self.columns, values, strict=True)}
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<Table {short(self.key)}: {len(self):,} rows of {', '.join(column.key for column in self.columns)}>"

    def _repr_html_(self) -> str:
        from .as_text import text_table

        table = text_table(self, hint="to_pandas() holds all")
        return html_table(table.title, table.header, table.rows, table.notes)


#: Maximum number of ranges of place numbers that are listed.
_MOST_RANGES: Final = 6


#: Behind the name of a rank that is only guessed.
_GUESSED: Final = " ~"


def places_text(places: Sequence[str], *, example: bool = True) -> str:
    """Several places as one text, the first as the example: ``Rank 0-3, 6, e.g. 2`` if they differ only in numbers.

    Two places are written ``Rank 5, 0``; if not all are listed, ``(20)`` gives their number. Without ``example`` that
    part is omitted.
    """
    places = [*dict.fromkeys(places)]
    if len(places) > 1 and all(each.endswith(_GUESSED) for each in places):
        return places_text([each.removesuffix(_GUESSED) for each in places], example=example) + _GUESSED
    split = [re.fullmatch(r"(.*?)(\d+)", each) for each in places]
    names = {each[1] for each in split if each is not None}
    if None in split or len(names) > 1:
        return ", ".join(places)
    numbers = sorted({int(each[2]) for each in split if each is not None})
    starts = [n for n, number in enumerate(numbers) if not n or number > numbers[n - 1] + 1]
    ranges = [f"{numbers[start]}-{numbers[stop - 1]}" if stop - start > 1 else f"{numbers[start]}"
                 for start, stop in zip(starts, [*starts[1:], len(numbers)], strict=True)]  # fmt: skip
    name, first = names.pop(), places[0]
    if len(numbers) < 3:
        return f"{name}{', '.join(each.removeprefix(name) for each in places)}"
    more = f", ... ({len(numbers)})" if len(ranges) > _MOST_RANGES else ""
    suffix = f", e.g. {first.removeprefix(name)}" if example else ""
    return f"{name}{', '.join(ranges[:_MOST_RANGES])}{more}{suffix}"


class Series(Struct, frozen=True, eq=False):
    """A time series."""

    key: str
    title: str
    unit: str
    #: int64 ns; value i holds from time i to time i + 1, so there may be one more time than values.
    times: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]  #: float64
    peak: float = 0.0  #: The most that is possible, in the same unit; 0: unknown

    def table(self) -> Table:
        """The series as a table; with its peak, where one is known."""
        columns = [Column("time_us", "Time", "time"), Column("value", self.title, "number", self.unit)]
        values: list[Any] = [self.times[: len(self.values)], self.values]
        if self.peak:
            columns.append(Column("peak", "Peak", "number", self.unit))
            values.append(np.full(len(self.values), self.peak))
        return Table(self.key, self.title, tuple(columns), tuple(values))


class Fact(Struct, frozen=True):
    """A single figure."""

    key: str  #: Its name in JSON; stable
    title: str  #: Its title for people
    value: Any  #: The figure; None: unknown
    kind: ValueKind = "count"
    about: str = ""  #: Subject of the figure ("core 3"); empty: everything the query selects
    share: float | None = None  #: The figure as a share of the window; None: not applicable
    unit: str = ""  #: Unit of a ``number``
    guessed: bool = False  #: Whether it is inferred
    shown: bool = True  #: Whether people see it; otherwise it is for programs only
    target: Target | None = None  #: Destination of Enter
    #: epoch_ns, short_title: As in ``Column``.
    epoch_ns: int | None = None
    short_title: str = ""


class Missing(Struct, frozen=True):
    """Something unavailable: a sentence or a table's key (``text``: text for people), what it needs, what to do."""

    what: str
    needs: str = ""
    do: str = ""
    text: str = ""

    @property
    def sentence(self) -> str:
        """Full text for people."""
        return " ".join(filter(None, (self.text or self.what, self.needs and f"It needs {self.needs}.", self.do)))


class Answer(Struct, frozen=True):
    """Result of a view: its contents, what is unavailable, and the file that provided the data (empty: several)."""

    facts: tuple[Fact, ...] = ()
    tables: tuple[Table, ...] = ()
    series: tuple[Series, ...] = ()
    notes: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    source: str = field(default="")

    def table(self, key: str) -> Table:
        """The table with a key; KeyError if there is none."""
        for table in self.tables:
            if table.key == key:
                return table
        raise KeyError(key)

    def figure(self, key: str) -> Any:
        """The value of the fact with a key; KeyError if there is none."""
        for fact in self.facts:
            if fact.key == key:
                return plain_value(fact.value)
        raise KeyError(key)

    @property
    def empty(self) -> bool:
        """Whether there is no content at all."""
        return not (self.facts or self.series or self.missing or any(len(table) for table in self.tables))


def plain_value(value: Any) -> Any:
    """Converts a value to plain Python; missing values to None."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value != value:
        return None
    return None if type(value) is int and value == INT_MISSING else value


def plain_list(values: Sequence[Any] | npt.NDArray[Any]) -> list[Any]:
    """Converts values to a list of plain Python values; missing values to None."""
    if not isinstance(values, np.ndarray):
        return [value if type(value) is str else plain_value(value) for value in values]
    found: list[Any] = values.tolist()
    if values.dtype.kind not in "iuf":
        return [value if type(value) is str else plain_value(value) for value in found]
    for row in np.flatnonzero(np.isnan(values) if values.dtype.kind == "f" else values == INT_MISSING).tolist():
        found[row] = None
    return found
