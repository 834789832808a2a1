"""Prints reports to a terminal with Rich: with emphasis, fitted to the width."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.text import Text

from .table_layout import GAP
from .tables import Report, Table
from .text import fit

#: Styles of words that are emphasized if they are the whole text of a cell.
_EMPHASIS: Final = {"error": "bold red", "warning": "yellow", "note": "dim"}
_GAP: Final = " " * GAP


def print_report(report: Report, console: Console | None = None) -> None:
    """Prints a report to a console, by default stdout; tables that are too wide are laid out by `Table.parts`."""
    out = console or Console(highlight=False, markup=False, emoji=False)
    if report.lead:
        out.print(Text(report.lead))
        out.print()
    out.print(Text(report.title, style="bold"))
    for line in report.lines:
        out.print(Text(line))
    for table in report.tables:
        out.print()
        # never truncate numbers: the terminal wraps lines that are too long
        out.print(Text("\n").join(_lines(table, out.width)), soft_wrap=True)


def _lines(table: Table, width: int) -> Iterator[Text]:
    yield Text(table.title, style="bold")
    # several columns may have one title
    left_out = Counter(title for place, title in enumerate(table.header) if place not in table.nil)
    for part in table.parts(width):
        yield Text(_GAP.join(fit(each.header, each.width, right=not each.is_text) for each in part), "bold dim")
        for row in range(len(table.rows)):
            sums = "bold" if table.total and row == len(table.rows) - 1 else ""
            cells = [(each.lines(row), _EMPHASIS.get(each.texts[row], sums)) for each in part]
            for number in range(max(len(texts) for texts, _ in cells)):
                yield Text(_GAP).join(
                    Text(texts[number] if number < len(texts) else " " * each.width, style)
                    for each, (texts, style) in zip(part, cells, strict=True)
                )
        left_out.subtract(each.header for each in part if not each.nil)
    notes = table.notes
    if titles := ", ".join(title for title, count in left_out.items() if count > 0):
        notes = (*notes, f"No room for {titles}: a wider terminal, or a file, shows them.")
    yield from (Text(note, style="dim") for note in notes)
