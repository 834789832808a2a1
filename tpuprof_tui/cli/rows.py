"""Rows of SQL as text, CSV and JSON."""

from __future__ import annotations

from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tpuprof_tui.dataset.query import Rows
    from tpuprof_tui.formats.tables import Report

#: Default number of rows of text.
ROWS: Final = 20
#: Maximum width of a cell of text.
_WIDEST: Final = 60
#: Maximum width of a table of text output without --limit, so that its rows stay below the limit of text answers.
_WIDEST_TABLE: Final = 300


def print_csv(found: Rows, limit: int | None) -> None:
    """Prints a heading and the rows as CSV."""
    from tpuprof_tui.formats.escape import csv_text

    print(",".join(csv_text(name) for name, _ in found.columns))
    for row in islice(found.rows, limit):
        print(",".join("" if value is None else csv_text(str(value)) for value in row))


def print_json(
    about: dict[str, Any], found: Rows, limit: int | None, skipped: int, *, counted: bool = True
) -> None:  # fmt: skip
    """Prints one JSON object, ``about`` and the rows, which are streamed.

    Args:
        about: What comes before the rows.
        found: The rows.
        limit: Most rows; None: all.
        skipped: Number of rows before them.
        counted: Whether all further rows are counted; else their number is null if there are any.
    """
    from tpuprof_tui.formats.answers import answer_text

    columns = [{"name": name, "type": kind} for name, kind in found.columns]
    opening = answer_text({**about, "columns": columns}, indent=None)
    print(f'{opening[:-1]}, "rows": [', end="")
    count = 0
    for count, row in enumerate(islice(found.rows, limit), 1):
        # answer_text applies the common rules for NaN, infinity and types unknown to JSON
        text = answer_text({"row": list(row)}, indent=None)
        print(f"{',' if count > 1 else ''}\n{text[text.index('[') : -1]}", end="")
    more = sum(1 for _ in found.rows)
    truncated = "true" if skipped or more else "false"
    print(f'\n], "total_rows": {skipped + count + more if counted or not more else "null"}, "truncated": {truncated}}}')


def rows_page(out: str, title: str, found: Rows, limit: int | None) -> Report:
    """The rows as a table of text.

    Args:
        out: What was asked, the heading.
        title: Title of the table.
        found: The rows.
        limit: Most rows; None: 20, and only the columns that fit.
    """
    from tpuprof_tui.formats.escape import line_text
    from tpuprof_tui.formats.tables import Report, Table

    rows = list(islice(found.rows, limit or ROWS))
    more = next(found.rows, None) is not None
    notes = ("There are more: --limit N shows them, --csv all.",) if more else ()
    left = frozenset(
        index for index, (_, kind) in enumerate(found.columns)
        if not kind.startswith(("BIGINT", "INTEGER", "DOUBLE", "FLOAT", "HUGEINT", "DECIMAL", "UBIGINT"))
    )  # fmt: skip
    cells = tuple(tuple(_cell(value) for value in row) for row in rows)
    header = tuple(_cell(name) for name, _ in found.columns)
    widths = accumulate(2 + max(map(len, column)) for column in zip(header, *cells, strict=True))
    fitting = len(header) if limit else sum(width <= _WIDEST_TABLE for width in widths)
    if fitting < len(header):
        notes = (*notes, f"Columns left out: {len(header) - fitting:,}. Name those to show in the SQL, or --csv.")
    cells, header = tuple(row[:fitting] for row in cells), header[:fitting]
    table = Table(title, header, cells, left, notes or (() if rows else ("Nothing.",)))
    return Report(line_text(out), (), (table,))


def _cell(value: Any) -> str:
    from tpuprof_tui.formats.escape import line_text

    if value is None:
        return "-"
    if isinstance(value, float):
        # never a zero for what is none
        return f"{value:,.3f}" if 0.0005 <= abs(value) < 1e15 or value == 0 else f"{value:g}"
    return f"{value:,}" if type(value) is int else line_text(str(value), _WIDEST)
