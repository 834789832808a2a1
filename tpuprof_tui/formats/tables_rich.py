"""Prints reports to a terminal with Rich: with emphasis, fitted to the width."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from .tables import Report, Table, table_lines

#: Styles of words that are emphasized if they are the whole text of a cell.
_EMPHASIS = {"error": "bold red", "warning": "yellow", "note": "dim"}


def print_report(report: Report, console: Console | None = None) -> None:
    """Prints a report to a console, by default stdout; tables that are too wide are reduced by `Table.fitted`."""
    out = console or Console(highlight=False, markup=False, emoji=False)
    if report.lead:
        out.print(Text(report.lead))
        out.print()
    out.print(Text(report.title, style="bold"))
    for line in report.lines:
        out.print(Text(line))
    for table in report.tables:
        for part in table.fitted(out.width):
            out.print()
            _print_table(part, out)


def _print_table(table: Table, out: Console) -> None:
    if table.width > out.width and not table.wraps:
        # never truncate numbers: let the terminal wrap the lines
        out.print(Text("\n".join(table_lines(table))), soft_wrap=True)
        return
    out.print(Text(table.title, style="bold"))
    shown = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold dim")
    last = len(table.header) - 1
    for place, title in enumerate(table.header):
        wraps = place == last and table.wraps
        shown.add_column(Text(title), justify=table.align(place), no_wrap=not wraps, overflow="fold")
    for number, row in enumerate(table.rows):
        sums = table.total and number == len(table.rows) - 1
        cells = [Text(cell, style=_EMPHASIS.get(cell, "bold" if sums else "")) for cell in row]
        shown.add_row(*cells)
    out.print(shown)
    for note in table.notes:
        out.print(Text(note, style="dim"))
