"""Prints reports and rows: styled for a terminal, as plain text, Markdown, JSON or CSV; shortened by default."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from tpuprof_tui.dataset.query import Rows
    from tpuprof_tui.formats.tables import Report, Table

#: Maximum size of an output without ``--limit``, bytes.
MOST_BYTES: Final = 8000
#: Numbers of rows per table that are tried in turn until the output fits.
_ROWS: Final = (20, 10, 5, 3, 1)
#: Bytes reserved for the line that lists omitted tables.
_ROOM: Final = 400
#: Views whose tables are omitted last.
_FIRST: Final = ("findings", "problems", "overview")


def pages_of(options: argparse.Namespace) -> Pages:
    """Printer for the given options: shortens reports unless ``--limit`` or ``--offset`` is given."""
    whole = getattr(options, "limit", None) is not None or bool(getattr(options, "offset", 0))
    return Pages(markdown=bool(getattr(options, "markdown", False)), whole=whole)


class Pages(Struct, frozen=True):
    """Printer of the reports of a command."""

    markdown: bool = False  #: Whether to print Markdown, regardless of stdout
    whole: bool = False  #: Whether to print reports of any length

    def show(self, pages: Iterable[Report], more: str = "") -> None:
        """Prints reports, separated by empty lines.

        Args:
            pages: The reports.
            more: Hint how to see omitted parts, printed if reports are shortened.
        """
        reports = list(pages)
        left_out = ""
        if not self.whole:
            reports, left_out = shortened(reports, _markdown if self.markdown else _text, more)
        tell = (lambda page: print(_markdown(page))) if self.markdown else _for_stdout()
        for number, page in enumerate(reports):
            if number:
                print()
            tell(page)
        if left_out:
            print(f"\n{left_out}")


def shortened(pages: Sequence[Report], form: Callable[[Report], str], more: str = "") -> tuple[list[Report], str]:
    """Shortens reports to at most `MOST_BYTES`; returns them and a line that lists omitted tables.

    Rows are removed before tables; tables of `_FIRST` are kept longest, then the first ones.
    """

    def size(found: Iterable[Report]) -> int:
        return sum(len(form(page).encode("utf-8", "backslashreplace")) + 2 for page in found)

    shorter = list(pages)
    for rows in _ROWS:
        if size(shorter) <= MOST_BYTES:
            return shorter, ""
        shorter = [replace(page, tables=tuple(each.shortened(rows) for each in page.tables)) for page in pages]
    # even single rows are too long: with a few rows per table, keep as many pages and then tables as fit
    shorter = [replace(page, tables=tuple(each.shortened(_ROWS[-2]) for each in page.tables)) for page in pages]
    room = MOST_BYTES - _ROOM
    cut: dict[int, Report] = {}
    left_out: list[str] = []
    for index in sorted(range(len(shorter)), key=lambda index: min(map(_rank, shorter[index].tables), default=9)):
        head = replace(shorter[index], tables=())
        if size((head,)) <= room - MOST_BYTES // 3:
            room -= size((head,))
            cut[index] = head
        else:
            left_out.append(head.title)
    tables = [(index, table) for index in cut for table in shorter[index].tables]
    for index, table in sorted(tables, key=lambda each: (_rank(each[1]), each[0])):
        need = size((replace(cut[index], title="", lines=(), tables=(table,)),))
        if need <= room:
            room -= need
            cut[index] = replace(cut[index], tables=(*cut[index].tables, table))
        else:
            left_out.append(table.view or table.title)
    named = ", ".join(dict.fromkeys(left_out))
    if len(named) > _ROOM - 120:
        named = f"{named[: _ROOM - 140].rpartition(', ')[0]}, ..."
    kept = [cut[index] for index in sorted(cut) if cut[index].tables or cut[index].lines]
    return kept, f"Left out, as it is long: {named}. {more}".rstrip()


def _rank(table: Table) -> int:
    return _FIRST.index(table.view) if table.view in _FIRST else len(_FIRST)


def _text(page: Report) -> str:
    return page.text()


def _markdown(page: Report) -> str:
    return page.markdown()


def _for_stdout() -> Callable[[Report], None]:
    """Returns a function that prints a report: styled and fitted on a terminal, plain text otherwise."""
    if sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown"):
        # without rich: plain text
        with contextlib.suppress(ModuleNotFoundError):
            from tpuprof_tui.formats.tables_rich import print_report

            return print_report
    return lambda page: print(_text(page))


#: Default number of rows of text.
ROWS: Final = 20
#: Maximum width of a cell of text.
_WIDEST: Final = 60
#: Maximum width of a table of text output without --limit, so that its rows stay below the limit of text answers.
_WIDEST_TABLE: Final = 300


def print_csv(rows: Rows, limit: int | None) -> None:
    """Prints a heading and the rows as CSV."""
    from tpuprof_tui.formats.escape import csv_text

    print(",".join(csv_text(name) for name, _ in rows.columns))
    for row in islice(rows.rows, limit):
        print(",".join("" if value is None else csv_text(str(value)) for value in row))


def print_json(
    about: dict[str, Any], rows: Rows, limit: int | None, skipped: int, *, counted: bool = True
) -> None:  # fmt: skip
    """Prints one JSON object, ``about`` and the rows, which are streamed.

    Args:
        about: What comes before the rows.
        rows: The rows.
        limit: Most rows; None: all.
        skipped: Number of rows before them.
        counted: Whether all further rows are counted; else their number is null if there are any.
    """
    from tpuprof_tui.formats.answers import answer_text

    columns = [{"name": name, "type": kind} for name, kind in rows.columns]
    opening = answer_text({**about, "columns": columns}, indent=None)
    print(f'{opening[:-1]}, "rows": [', end="")
    count = 0
    for count, row in enumerate(islice(rows.rows, limit), 1):
        # answer_text applies the common rules for NaN, infinity and types unknown to JSON
        text = answer_text({"row": list(row)}, indent=None)
        print(f"{',' if count > 1 else ''}\n{text[text.index('[') : -1]}", end="")
    more = sum(1 for _ in rows.rows)
    truncated = "true" if skipped or more else "false"
    print(f'\n], "total_rows": {skipped + count + more if counted or not more else "null"}, "truncated": {truncated}}}')


def rows_page(out: str, title: str, rows: Rows, limit: int | None) -> Report:
    """The rows as a table of text.

    Args:
        out: What was asked, the heading.
        title: Title of the table.
        rows: The rows.
        limit: Most rows; None: 20, and only the columns that fit.
    """
    from tpuprof_tui.formats.escape import line_text
    from tpuprof_tui.formats.tables import Report, Table

    shown = list(islice(rows.rows, limit or ROWS))
    more = next(rows.rows, None) is not None
    notes = ("There are more: --limit N shows them, --csv all.",) if more else ()
    left = frozenset(
        index for index, (_, kind) in enumerate(rows.columns)
        if not kind.startswith(("BIGINT", "INTEGER", "DOUBLE", "FLOAT", "HUGEINT", "DECIMAL", "UBIGINT"))
    )  # fmt: skip
    cells = tuple(tuple(_cell(value) for value in row) for row in shown)
    header = tuple(_cell(name) for name, _ in rows.columns)
    widths = accumulate(2 + max(map(len, column)) for column in zip(header, *cells, strict=True))
    fitting = len(header) if limit else sum(width <= _WIDEST_TABLE for width in widths)
    if fitting < len(header):
        notes = (*notes, f"Columns left out: {len(header) - fitting:,}. Name those to show in the SQL, or --csv.")
    cells, header = tuple(row[:fitting] for row in cells), header[:fitting]
    table = Table(title, header, cells, left, notes or (() if shown else ("Nothing.",)))
    return Report(line_text(out), (), (table,))


def _cell(value: Any) -> str:
    from tpuprof_tui.formats.escape import line_text

    if value is None:
        return "-"
    if isinstance(value, float):
        # never a zero for what is none
        return f"{value:,.3f}" if 0.0005 <= abs(value) < 1e15 or value == 0 else f"{value:g}"
    return f"{value:,}" if type(value) is int else line_text(str(value), _WIDEST)
