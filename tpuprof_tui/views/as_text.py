"""Renderer of answers as text tables, for the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tpuprof_tui.formats.tables import Report
from tpuprof_tui.formats.tables import Table as TextTable

from .answer import TEXTS, Answer, Series, Table
from .cells import CellFormats, fact_text, is_all_zero, shown_columns, shown_facts, value_text

#: Default maximum of rows shown to people.
ROWS: Final = 20
#: Hint how to see the remaining rows.
MORE: Final = "--limit shows them"


def fact_lines(answer: Answer) -> tuple[str, ...]:
    """Facts, one line each."""
    shown = shown_facts(answer.facts)
    width = max((len(fact.title) for fact in shown), default=0)
    return tuple(f"{fact.title:{width}}  {fact_text(fact)}" for fact in shown)


def text_tables(answer: Answer, limit: int | None = ROWS, offset: int = 0, hint: str = MORE) -> Iterator[TextTable]:
    """Non-empty tables, and a summary of the series; ``hint`` tells how to see rows that are left out."""
    for table in answer.tables:
        if len(table) and table.shown:
            yield text_table(table.merged(), limit, offset, hint)
    if answer.series:
        yield _series_table(answer.series)


def answer_report(title: str, answer: Answer, limit: int | None = ROWS, offset: int = 0) -> Report:
    """A view's whole answer as a report, or a line that it is empty."""
    lines = (*fact_lines(answer), *answer.notes, *(each.sentence for each in answer.missing))
    tables = tuple(text_tables(answer, limit, offset))
    return Report(title, lines if lines or tables else ("Nothing here.",), tables)


def text_table(table: Table, limit: int | None = ROWS, offset: int = 0, hint: str = MORE) -> TextTable:
    """A table as texts: up to ``limit`` rows from ``offset``."""
    cells, indexes = CellFormats.of(table), shown_columns(table)
    columns = [table.columns[place] for place in indexes]
    stop = len(table) if limit is None else min(offset + limit, len(table))
    values, rows = table.rows(offset, stop), tuple(cells.rows(table, indexes, offset, stop))
    notes = list(table.notes)
    more = len(table) - len(rows)
    if more:
        position = f"Rows {offset + 1:,} to {stop:,} of {len(table):,}; " if offset else f"{more:,} more; "
        notes.append(f"{position}{hint}.")
    nil = (
        number for number, (column, place) in enumerate(zip(columns, indexes, strict=True))
        if values and is_all_zero(column, (row[place] for row in values))
    )  # fmt: skip
    return TextTable(
        cells.title(table), tuple(map(cells.header, columns)), rows,
        left=frozenset(number for number, column in enumerate(columns) if column.kind in TEXTS),
        notes=tuple(notes), total=table.total and not more, more=more, hint=hint,
        drop_first=tuple(column.drop_first for column in columns), nil=frozenset(nil),
    )  # fmt: skip


def _series_table(series: tuple[Series, ...]) -> TextTable:
    rows = []
    for each in series:
        known = each.values[each.values == each.values]
        figures = (float(known.mean()), float(known.max())) if len(known) else (None, None)
        texts = [value_text(figure, "number", each.unit) for figure in (*figures, each.peak or None)]
        rows.append((each.title, f"{len(each.values):,}", *texts))
    header = ("What", "Values", "Mean", "Most", "Peak")
    count = len(header) if any(each.peak for each in series) else len(header) - 1
    return TextTable("Over time", header[:count], tuple(row[:count] for row in rows), left=frozenset((0,)),
                     notes=("--json gives the values.",))  # fmt: skip
