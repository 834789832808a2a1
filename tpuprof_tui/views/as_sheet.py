"""Renderer of answers as workbook sheets: raw values with number formats, independent of a spreadsheet library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.formats.escape import clean, sheet_text
from tpuprof_tui.formats.text import in_sentence
from tpuprof_tui.lazy_names import lazy_pattern

from .answer import Fact, Series, Table, ValueKind
from .registry import answer, views_of

#: Maximum rows of a table in a sheet: more take minutes to open, and `tpuprof report` has all of them.
MOST_SHOWN: Final = 100_000
#: Number formats. Durations and times are us.
_FORMS: Final[dict[ValueKind, str]] = {
    "count": "#,##0", "duration": "#,##0.000", "time": "#,##0.000", "bytes": "#,##0", "rate": "0.00",
    "share": "0.00%", "number": "0.00",
}  # fmt: skip
_UNITS: Final[dict[ValueKind, str]] = {"duration": "us", "time": "us", "bytes": "B"}
#: Characters not allowed in sheet names, and their maximum length.
_NOT_IN_TITLES: Final = lazy_pattern(r"[\[\]:*?/\\']")
_LONGEST_TITLE: Final = 31


class Sheet(Struct, frozen=True):
    """A sheet: unique name, column titles with units, number formats, rows of raw values."""

    title: str
    header: tuple[str, ...]
    forms: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def sheets(
    query: Query, leaving_out: frozenset[str] = frozenset(), selection: tuple[Fact, ...] = ()
) -> Iterator[Sheet]:
    """Sheets of all views except some (by id): facts, notes, each non-empty table, and problems.

    The facts about the ``selection`` come first.
    """
    found = [(view, answer(view, query)) for view in views_of(query.vocabulary) if view.id not in leaving_out]
    taken: set[str] = set()
    facts: list[tuple[Any, ...]] = [("Selection", fact.title, "", fact.value, "", None) for fact in selection]
    facts += [
        (query.vocabulary.say(view.title), fact.title, fact.about, _scaled(fact.value, fact.kind),
         fact.unit or _UNITS.get(fact.kind, ""), fact.share)
        for view, each in found for fact in each.facts if fact.shown and fact.value is not None
    ]  # fmt: skip
    if facts:
        yield Sheet(_title("Overview", taken), ("View", "Figure", "Of", "Value", "Unit", "Share"),
                    ("General", "General", "General", "#,##0.000", "General", "0.00%"), facts)  # fmt: skip
    notes = [
        (query.vocabulary.say(view.title), of, clean(note)) for view, each in found
        for of, texts in [("", (*each.notes, *(one.sentence for one in each.missing))),
                         *((table.title, table.notes) for table in each.tables if len(table))]
        for note in texts
    ]  # fmt: skip
    if notes:
        yield Sheet(_title("Notes", taken), ("View", "Of", "Note"), ("General",) * 3, notes)
    # the sheet of problems is included even if empty
    tables = [
        (query.vocabulary.say(view.title), table)
        for view, each in found
        for table in (*each.tables, *map(Series.table, each.series))
        if len(table) or table.key == "problems"
    ]
    titles = Counter(table.title.casefold() for _, table in tables)
    for view_title, table in tables:
        alone = titles[table.title.casefold()] == 1 or table.title == view_title
        title = table.title if alone else f"{view_title}, {in_sentence(table.title)}"
        yield _sheet(table, _title(title, taken))


def _sheet(table: Table, title: str) -> Sheet:
    places = [place for place, column in enumerate(table.columns) if column.shown]
    columns = [table.columns[place] for place in places]
    shown = min(len(table), MOST_SHOWN)
    rows = [tuple(_scaled(row[place], table.columns[place].kind) for place in places) for row in table.rows(0, shown)]
    forms = tuple(_FORMS.get(column.kind, "General") for column in columns)
    units = [column.unit or _UNITS.get(column.kind, "") for column in columns]
    header = tuple(f"{column.title} ({unit})" if unit not in ("", column.title) else column.title
                   for column, unit in zip(columns, units, strict=True))  # fmt: skip
    if shown < len(table):
        note = f"{len(table) - shown:,} more rows are not in this sheet, but in tpuprof report."
        rows.append((note, *[None] * (len(columns) - 1)))
    return Sheet(title, header, forms, rows)


def _scaled(value: Any, kind: ValueKind) -> Any:
    if value is None or kind not in ("duration", "time"):
        return str(value) if isinstance(value, (list, dict)) else value
    return value / 1000


def _title(wanted: str, taken: set[str]) -> str:
    """A valid sheet name that is unique ignoring case, as spreadsheets require."""
    plain = _NOT_IN_TITLES.sub(" ", sheet_text(wanted)).strip()[:_LONGEST_TITLE] or "Sheet"
    name, number = plain, 1
    while name.casefold() in taken:
        number += 1
        name = f"{plain[: _LONGEST_TITLE - 5]} ({number})"
    taken.add(name.casefold())
    return name
