"""Formatting of answer values for people, shared by screen, text, sheet and page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.formats.kernel_names import readable_names
from tpuprof_tui.formats.units import (
    GUESS,
    MISSING,
    TimeUnit,
    bytes_text,
    column_unit,
    exact_time,
    percent_text,
    signed,
    time_text,
    time_unit,
)

from .answer import TEXTS, Column, Fact, Table, ValueKind, plain_value

#: Maximum characters of a text in a cell, and of a name in a line.
TEXT_WIDTH: Final = 300
NAME_WIDTH: Final = 80
#: Most rows of a table whose names are shortened.
_MOST_NAMES: Final = 20_000
#: Prefix of the keys of difference columns.
DELTA: Final = "delta_"
#: Beginnings of the keys of columns that are compared: the same figure of both sides, of host and device.
_COMPARED: Final = (("base_", "other_"), ("host_", "device_"), (f"{DELTA}host_", f"{DELTA}device_"))
#: Indentation per tree level, and the deepest level that is indented.
INDENT: Final = "  "
MOST_INDENTED: Final = 20


class CellFormats(Struct, frozen=True):
    """Formatting of a table's cells: each column of times has one unit."""

    units: dict[str, TimeUnit]  #: Units of the visible duration columns, by key
    main: TimeUnit | None  #: The largest of them; None: no durations
    indented: str = ""  #: Key of the column that is indented by tree depth; empty: no tree
    names: Mapping[str, str] = {}  #: Names of kernels as people read them
    #: Units of the columns of points in time, by key: cells name them, so that they can be given as a range.
    moments: Mapping[str, TimeUnit] = {}

    @classmethod
    def of(cls, table: Table) -> CellFormats:
        """Chooses readable units for a table; columns that are compared have one."""
        figures = _compared_figures(
            [column.key for column in table.columns if column.kind == "duration" and column.shown]
        )
        largest: dict[str, float] = {}
        for key, figure in figures.items():
            largest[figure] = max(largest.get(figure, 0), table.largest(key))
        units = {key: column_unit(largest[figure]) for key, figure in figures.items()}
        main = max(units.values(), key=lambda unit: unit.ns, default=None)
        if main is not None:
            # a column of zeros can use the main unit
            units = {key: main if table.one_unit or not largest[figures[key]] else unit for key, unit in units.items()}
        texts = (column.key for column in table.columns if column.shown and column.kind == "text")
        index = table.column_index("name")
        names = readable_names(map(str, table.column("name"))) if index >= 0 and len(table) <= _MOST_NAMES else {}
        times = (column.key for column in table.columns if column.kind == "time")
        moments = {key: time_unit(table.largest(key)) for key in times}
        return cls(units, main, next(texts, "") if table.depth is not None else "", names, moments)

    def title(self, table: Table) -> str:
        """A table's heading, with its main unit of time."""
        return f"{table.title} ({self.main.name})" if self.main is not None else table.title

    def header(self, column: Column) -> str:
        """A column's header, with its unit if that differs from the table's."""
        unit = self.units.get(column.key)
        title = column.short_title or column.title
        return title if unit is None or unit == self.main else f"{title} ({unit.name})"

    def text(self, column: Column, value: Any, *, guessed: bool = False, depth: int = 0) -> str:
        """Text of a cell; ``depth``: depth of its row in a tree."""
        value = None if column.zero_unknown and not value else value
        if column.key == "name" and isinstance(value, str):
            value = self.names.get(value, value)
        if column.key == self.indented:
            indent = INDENT * min(depth, MOST_INDENTED)
            return f"{indent}{value_text(value, column.kind, column.unit, named=False)}"
        unit = self.units.get(column.key)
        if unit is not None and value is not None:
            text = f"{GUESS if guessed else ''}{unit.number(value)}"
        elif column.key in self.moments and value is not None:
            text = exact_time(int(value), unit=self.moments[column.key])
        else:
            text = value_text(value, column.kind, column.unit, guessed=guessed, named=False)
        return signed(text, value) if value and column.key.startswith(DELTA) else text

    def rows(self, table: Table, indexes: Sequence[int], start: int, stop: int) -> Iterator[tuple[str, ...]]:
        """Cell texts of rows [start, stop) in some columns (by index)."""
        columns = [table.columns[index] for index in indexes]
        for number, row in enumerate(table.rows(start, stop), start):
            depth = table.depth_of(number)
            yield tuple(self.text(column, row[index], guessed=table.is_guessed(number, column), depth=depth)
                        for column, index in zip(columns, indexes, strict=True))  # fmt: skip


def _compared_figures(keys: Sequence[str]) -> dict[str, str]:
    """The figure of each column, by key; columns that are compared have the same."""
    figures = {key: key for key in keys}
    for prefixes in _COMPARED:
        known = set(figures.values())
        for key, figure in figures.items():
            prefix = next((each for each in prefixes if figure.startswith(each)), "")
            if prefix and all(f"{each}{figure[len(prefix) :]}" in known for each in prefixes):
                figures[key] = f"{figure[len(prefix) :]}{prefixes}"
    return figures


def value_text(value: Any, kind: ValueKind, unit: str = "", *, guessed: bool = False, named: bool = True) -> str:
    """A value as text; ``named``: include a unit that a header could give."""
    value = plain_value(value)
    mark = GUESS if guessed else ""
    if value is None or value == "":
        return MISSING
    if kind in TEXTS:
        return line_text(str(value), TEXT_WIDTH)
    if kind == "duration":
        return f"{mark}{time_text(round(value))}"
    if kind == "time":
        return exact_time(int(value))
    if kind == "share":
        return percent_text(value, guessed=guessed)
    if kind == "bytes":
        return bytes_text(int(value))
    if kind == "flag":
        return "yes" if value else "no"
    digits = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
    ending = {"rate": "GB/s"}.get(kind, unit) if named else ""
    return f"{mark if kind != 'count' else ''}{digits}{f' {ending}' if ending and ending != 'x' else ending}"


def shown_facts(facts: Sequence[Fact]) -> list[Fact]:
    """The facts for people: known ones; of several times that are 0 one names them all."""
    known = [fact for fact in facts if fact.shown and fact.value is not None]
    zeros = [fact for fact in known if fact.kind == "duration" and not fact.value and not fact.about]
    if len(zeros) < 2:
        return known
    named = Fact("zeros", f"{len(zeros)} times are 0", ", ".join(fact.title for fact in zeros), "text")
    return [*(fact for fact in known if fact not in zeros), named]


def fact_text(fact: Fact) -> str:
    """A fact as text, without its title."""
    text = value_text(fact.value, fact.kind, fact.unit, guessed=fact.guessed)
    text = signed(text, fact.value) if fact.value and fact.key.startswith(DELTA) else text
    share = f", {percent_text(fact.share, guessed=fact.guessed)}" if fact.share is not None else ""
    return f"{line_text(fact.about, NAME_WIDTH)}: {text}{share}" if fact.about else text + share


def shown_columns(table: Table) -> list[int]:
    """Indexes of the columns for people: without those for programs and those without any known value."""
    return [index for index, column in enumerate(table.columns) if column.shown and _has_values(table, index)]


def _has_values(table: Table, index: int) -> bool:
    values: Iterable[Any] = table.values[index]
    nothing = (None, "", 0) if table.columns[index].zero_unknown else (None, "")
    return not len(table) or any(plain_value(value) not in nothing for value in values)


def is_all_zero(column: Column, values: Iterable[Any]) -> bool:
    """Whether a numeric column has only 0 and unknown values: such columns are left out first."""
    return column.kind not in (*TEXTS, "flag", "time", "share") and not column.bar and not any(values)
