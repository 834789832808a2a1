"""What a view answers: facts, tables and series of raw values, for every renderer alike.

Times and durations are held in ns; renderers write us in JSON and a unit that reads well for people. What is not known
is None, NaN or ``INT_MISSING``, never 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.grouping import text_condition
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.notebook_display import html_table, short

#: ``duration`` and ``time`` (on the profile's time line) are ns, ``share`` is 0 to 1, ``rate`` GB/s, ``list`` plain
#: values for JSON that people are not shown.
Kind = Literal["text", "count", "duration", "time", "bytes", "rate", "share", "number", "flag", "list"]
#: Kinds that read from the left.
TEXTS: Final = ("text", "list")
#: Values that are made together at most while they are gone through.
_AT_ONCE: Final = 1 << 16


class Target(Struct, frozen=True):
    """What Enter on a row leads to: one of these.

    Attributes:
        condition: A condition to filter by.
        event: Lane and row of an event.
        time: Start and end of a stretch of time, ns.
        scope: A group or lane.
        step: Number of a step.
    """

    condition: str = ""
    event: tuple[int, int] | None = None
    time: tuple[int, int] | None = None
    scope: Scope | None = None
    step: int | None = None


class Column(Struct, frozen=True):
    """A column of a table.

    Attributes:
        key: Its name in JSON; stable.
        unit: Unit of a ``number``.
        spare: Left out where there is no room, the highest first; 0: never.
        bar: Whether screens draw a bar of it, full at the table's largest value.
        parts: Columns of durations that the bar shows one after another instead; together they fill it.
        shown: Whether people see it; others are for programs.
        names: Whether a text tells which row it is: rows of two profiles belong together by these.
        epoch_ns: What a clock says at the zero of the profile's time line, ns: programs get a ``time`` as that clock
            has it, as an exact decimal text; None: as a number since the worker's start.
        narrows: Key of a column of the events that has these texts: a row leads to the events with its text.
        head: A shorter header where people read it in a line with others; empty: its title.
        zero_unknown: Whether people read a 0 as not known; programs get the 0 that other tools have there.
    """

    key: str
    title: str
    kind: Kind = "text"
    unit: str = ""
    spare: int = 0
    bar: bool = False
    parts: tuple[str, ...] = ()
    shown: bool = True
    names: bool = True
    epoch_ns: int | None = None
    narrows: str = ""
    head: str = ""
    zero_unknown: bool = False


class Later(Sequence[Any]):
    """A column of ``count`` values that are made when asked for: ``take`` gives those of a slice without a step."""

    def __init__(self, count: int, take: Callable[[slice], Sequence[Any] | npt.NDArray[Any]]) -> None:
        self._count = count
        self._take = take

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            start, stop, step = place.indices(self._count)
            return plain_list(self._take(slice(start, max(start, stop)))) if step == 1 else list(self)[place]
        row = range(self._count)[place]
        return plain(self._take(slice(row, row + 1))[0])

    def __iter__(self) -> Iterator[Any]:
        # who looks whether there are any stops early
        first, count = 0, 1
        while first < self._count:
            yield from plain_list(self._take(slice(first, min(first + count, self._count))))
            first, count = first + count, min(2 * count, _AT_ONCE)


class Table(Struct, frozen=True, eq=False, dict=True):
    """A table, in the order it is first shown.

    Attributes:
        key: Its name in JSON; stable.
        values: For each column a sequence of one length: a list, a tuple or an array.
        target: What a row leads to, by its number; None: to its time where columns tell when it was, else to the
            events with its text, where a column narrows.
        guessed: Rows whose figures rest on guesswork; None: none.
        notes: Sentences below it.
        total: Whether the last row sums up the others.
        word: What one row is ("core", "kernel function").
        shown: Whether people see it; others are for programs.
        brief: Rows that a screen of several views tells, the first of them first; None: all, in their order.
        ordered: Whether rows of two profiles belong together by their place rather than by their texts.
        depth: How deep each row lies in a tree, for people: by so much its first text is indented; None: no tree.
        one_unit: Whether people read all of its durations in one unit: they are parts of one sum.
        alike: Rows that people read as one, by number, the one that tells the others first.
        where: Key of the column that then names the places of all of them.
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    values: tuple[Sequence[Any] | npt.NDArray[Any], ...]
    target: Callable[[int], Target | None] | None = None
    guessed: frozenset[int] | None = None
    notes: tuple[str, ...] = ()
    total: bool = False
    word: str = "row"
    shown: bool = True
    brief: Sequence[int] | None = None
    ordered: bool = False
    depth: Sequence[int] | npt.NDArray[np.int64] | None = None
    one_unit: bool = False
    alike: Sequence[Sequence[int]] = ()
    where: str = ""

    def __post_init__(self) -> None:
        lengths = {len(each) for each in self.values}
        if len(self.values) != len(self.columns) or len(lengths) > 1:
            raise ValueError(f"table {self.key}: {len(self.columns)} columns, values of lengths {sorted(lengths)}")

    @classmethod
    def of_rows(
        cls, key: str, title: str, columns: Sequence[Column], rows: Sequence[Sequence[Any]], **more: Any
    ) -> Table:
        """A table from rows."""
        values = tuple(zip(*rows, strict=True)) if rows else tuple(() for _ in columns)
        return cls(key, title, tuple(columns), values, **more)

    def __len__(self) -> int:
        return len(self.values[0]) if self.values else 0

    def row(self, number: int) -> tuple[Any, ...]:
        """Plain values of a row; None where nothing is known."""
        return tuple(plain(column[number]) for column in self.values)

    def rows(self, start: int = 0, stop: int | None = None) -> list[tuple[Any, ...]]:
        """Plain values of neighbouring rows."""
        return list(zip(*(plain_list(column[start:stop]) for column in self.values), strict=True))

    def column(self, key: str) -> list[Any]:
        """Plain values of a column, by its key."""
        return plain_list(self.values[self.place(key)])

    def largest(self, key: str) -> float:
        """The largest magnitude of the numbers of a column, by its key; 0 where none is known. Found once."""
        found = self._largest.get(key)
        if found is None:
            values = self.values[self.place(key)]
            if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
                known = values[~np.isnan(values) if values.dtype.kind == "f" else values != INT_MISSING]
                found = float(np.abs(known).max(initial=0))
            else:
                found = max((abs(value) for value in plain_list(values) if value is not None), default=0)
            self._largest[key] = found
        return found

    @cached_property
    def _largest(self) -> dict[str, float]:
        return {}

    def place(self, key: str) -> int:
        """Place of a column, by its key; -1 without one."""
        return next((place for place, column in enumerate(self.columns) if column.key == key), -1)

    def folded(self) -> Table:
        """The table that people read: of rows that are alike the first, which names the places of all."""
        if not self.alike:
            return self
        rest = {row for rows in self.alike for row in rows[1:]}
        kept = [row for row in range(len(self)) if row not in rest]
        places = self.column(self.where)
        several = {rows[0]: places_text([places[row] for row in rows]) for rows in self.alike}
        values = tuple(
            [several.get(row, places[row]) for row in kept] if column.key == self.where
            else [plain(told[row]) for row in kept]
            for column, told in zip(self.columns, self.values, strict=True)
        )  # fmt: skip
        order = {row: place for place, row in enumerate(kept)}
        brief = None if self.brief is None else [order[row] for row in self.brief if row in order]
        guessed = None if self.guessed is None else frozenset(order[row] for row in self.guessed if row in order)
        return replace(self, values=values, target=lambda row: self.leads_to(kept[row]), alike=(), brief=brief,
                       guessed=guessed)  # fmt: skip

    def depth_of(self, row: int) -> int:
        """How deep a row lies in the tree; 0 where rows make none."""
        return int(self.depth[row]) if self.depth is not None else 0

    def leads_to(self, row: int) -> Target | None:
        """What a row leads to."""
        if self.target is not None:
            return self.target(row)
        if self._stretch:
            start, *duration = (plain(column[row]) for column in self._stretch)
            if start is None or None in duration:
                return None
            # an instant is 1 ns long
            return Target(time=(int(start), int(start + max(sum(duration), 1))))
        for column, values in zip(self.columns, self.values, strict=True):
            if column.narrows and (text := plain(values[row])):
                return Target(condition=text_condition(column.narrows, text))
        return None

    @cached_property
    def _stretch(self) -> tuple[Any, ...]:
        """The first column of times, and the first of durations behind it, else before it, if there is one."""
        kinds = [column.kind for column in self.columns]
        if "time" not in kinds:
            return ()
        begin = kinds.index("time")
        if "duration" not in kinds:
            return (self.values[begin],)
        lasts = kinds.index("duration", begin) if "duration" in kinds[begin:] else kinds.index("duration")
        return self.values[begin], self.values[lasts]

    def to_pandas(self) -> Any:
        """A data frame of the values that JSON has, times in us; MissingPackageError where pandas is not installed."""
        from tpuprof_tui.errors import needed_for

        with needed_for("A data frame"):
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


#: Stretches of numbers of places that are named.
_MOST_STRETCHES: Final = 6


def places_text(places: Sequence[str]) -> str:
    """Several places, that which is told first, as one text: ``Rank 0-3, 6, e.g. 2`` where only numbers differ.

    Two are ``Rank 5, 0``; of places of which not all are named ``(20)`` says how many they are.
    """
    split = [re.fullmatch(r"(.*?)(\d+)", each) for each in places]
    names = {each[1] for each in split if each is not None}
    if None in split or len(names) > 1:
        return ", ".join(places)
    numbers = sorted({int(each[2]) for each in split if each is not None})
    starts = [n for n, number in enumerate(numbers) if not n or number > numbers[n - 1] + 1]
    stretches = [f"{numbers[start]}-{numbers[stop - 1]}" if stop - start > 1 else f"{numbers[start]}"
                 for start, stop in zip(starts, [*starts[1:], len(numbers)], strict=True)]  # fmt: skip
    name, first = names.pop(), places[0]
    if len(numbers) == 2:
        return f"{name}{', '.join(each.removeprefix(name) for each in places)}"
    more = f", ... ({len(numbers)})" if len(stretches) > _MOST_STRETCHES else ""
    return f"{name}{', '.join(stretches[:_MOST_STRETCHES])}{more}, e.g. {first.removeprefix(name)}"


class Series(Struct, frozen=True, eq=False):
    """Values over time.

    Attributes:
        times: int64 ns; value i holds from time i to time i + 1, so that there may be one time more than values.
        values: float64.
    """

    key: str
    title: str
    unit: str
    times: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]

    def table(self) -> Table:
        """The same as a table."""
        columns = (Column("time_us", "Time", "time"), Column("value", self.title, "number", self.unit))
        return Table(self.key, self.title, columns, (self.times[: len(self.values)], self.values))


class Fact(Struct, frozen=True):
    """One figure.

    Attributes:
        key: Its name in JSON; stable.
        value: The figure; None where it is not known.
        about: What it is a figure of ("core 3"); empty: all that was asked about.
        share: The same as a share of the window; None: no such.
        unit: Unit of a ``number``.
        guessed: Whether it rests on guesswork.
        shown: Whether people are told it; others are for programs.
        target: Where it leads.
        epoch_ns, head: As of columns.
    """

    key: str
    title: str
    value: Any
    kind: Kind = "count"
    about: str = ""
    share: float | None = None
    unit: str = ""
    guessed: bool = False
    shown: bool = True
    target: Target | None = None
    epoch_ns: int | None = None
    head: str = ""


class Missing(Struct, frozen=True):
    """Something that cannot be told: a sentence, or the key of a table and what people read; its needs; what to do."""

    what: str
    needs: str = ""
    do: str = ""
    told: str = ""

    @property
    def sentence(self) -> str:
        """All of it, for people."""
        return " ".join(filter(None, (self.told or self.what, self.needs and f"It needs {self.needs}.", self.do)))


class Answer(Struct, frozen=True):
    """All that a view says, what it cannot tell, and the name of the file that decided; empty: no single one."""

    facts: tuple[Fact, ...] = ()
    tables: tuple[Table, ...] = ()
    series: tuple[Series, ...] = ()
    notes: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    source: str = field(default="")

    def table(self, key: str) -> Table:
        """The table of a key; KeyError without one."""
        for table in self.tables:
            if table.key == key:
                return table
        raise KeyError(key)

    def figure(self, key: str) -> Any:
        """The value of a fact by its key; KeyError without one."""
        for fact in self.facts:
            if fact.key == key:
                return plain(fact.value)
        raise KeyError(key)

    @property
    def empty(self) -> bool:
        """Whether nothing at all is said."""
        return not (self.facts or self.series or self.missing or any(len(table) for table in self.tables))


def plain(value: Any) -> Any:
    """A value as Python has it; None where nothing is known."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value != value:
        return None
    return None if type(value) is int and value == INT_MISSING else value


def plain_list(values: Sequence[Any] | npt.NDArray[Any]) -> list[Any]:
    """Values as Python has them; None where nothing is known."""
    if not isinstance(values, np.ndarray):
        return [value if type(value) is str else plain(value) for value in values]
    found: list[Any] = values.tolist()
    if values.dtype.kind not in "iuf":
        return [value if type(value) is str else plain(value) for value in found]
    for row in np.flatnonzero(np.isnan(values) if values.dtype.kind == "f" else values == INT_MISSING).tolist():
        found[row] = None
    return found
