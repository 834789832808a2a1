"""Tables of reports, and their plain text and Markdown forms; `tables_rich` prints them to a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from .escape import markdown_text
from .table_layout import GAP, LaidColumn, parts

_GAP: Final = " " * GAP


class Table(Struct, frozen=True):
    """A titled table of texts."""

    title: str  #: Heading
    header: tuple[str, ...]  #: One text per column
    rows: tuple[tuple[str, ...], ...]  #: Cells, one list per row, as long as the header
    left: frozenset[int] = frozenset()  #: Indices of the left-aligned columns; all others are right-aligned
    notes: tuple[str, ...] = ()  #: Lines below the table
    total: bool = False  #: Whether the last row is the total
    drop_first: tuple[int, ...] = ()  #: `LaidColumn.drop_first` of each column; or empty
    nil: frozenset[int] = frozenset()  #: Indices of columns with only 0 or unknown values: left out before others
    more: int = 0  #: Number of further rows that are not included; the last note states it
    hint: str = "--limit shows them"  #: How to see further rows; the end of the sentence
    view: str = ""  #: Id of the view that the table belongs to; may be empty

    @property
    def widths(self) -> tuple[int, ...]:
        """Width of each column, characters."""
        return tuple(max(map(len, cells)) for cells in zip(self.header, *self.rows, strict=True))

    @property
    def width(self) -> int:
        """Width of a line, characters."""
        return sum(self.widths) + len(_GAP) * (len(self.header) - 1)

    def parts(self, width: int) -> list[list[LaidColumn]]:
        """The columns in a width, as `layout.parts` lays them out: those of a part below those of the one before."""
        columns = [
            LaidColumn(
                title, texts, place in self.left, self.drop_first[place] if self.drop_first else 0, place in self.nil,
                folds=place in self.left and not any(text.startswith(" ") for text in texts),
            )
            for place, (title, *texts) in enumerate(zip(self.header, *self.rows, strict=True))
        ]  # fmt: skip
        named = columns[-1:] if columns and not columns[0].is_text and columns[-1].is_text else []
        found = list(parts([*named, *columns[: len(columns) - len(named)]], width))
        if named and len(found) == 1:
            # what names the rows stays where it is
            found[0].append(found[0].pop(0))
        return found

    def shortened(self, count: int) -> Table:
        """The table with at most ``count`` rows; a total row is kept."""
        if len(self.rows) <= count:
            return self
        kept = self.rows[: count - self.total] + self.rows[len(self.rows) - self.total :]
        more = self.more + len(self.rows) - len(kept)
        notes = self.notes[:-1] if self.more else self.notes
        return replace(self, rows=kept, more=more, notes=(*notes, f"{more:,} more; {self.hint}."))


class Report(Struct, frozen=True):
    """A report: title, lines of text, then tables; above the title a sentence, or nothing."""

    title: str
    lines: tuple[str, ...] = ()
    tables: tuple[Table, ...] = field(default_factory=tuple)
    lead: str = ""

    def text(self) -> str:
        """The report as plain text of any width."""
        lead = (self.lead,) if self.lead else ()
        blocks = [
            *lead,
            "\n".join((self.title, *self.lines)),
            *("\n".join(table_lines(table)) for table in self.tables),
        ]
        return "\n\n".join(blocks)

    def markdown(self) -> str:
        """The report as Markdown."""
        blocks = [*((markdown_text(self.lead),) if self.lead else ()), f"### {markdown_text(self.title)}"]
        if any(self.lines):
            blocks.append("\n".join(f"- {markdown_text(line)}" for line in self.lines if line))
        return "\n\n".join([*blocks, *("\n".join(markdown_lines(table)).rstrip() for table in self.tables)])


def table_lines(table: Table) -> list[str]:
    """Lines of a table in plain text."""
    widths = table.widths
    rule = "-" * max(table.width, len(table.title))
    body = [_line(table, row, widths) for row in table.rows]
    if table.total and len(body) > 1:
        body.insert(-1, rule)
    return [table.title, rule, _line(table, table.header, widths), rule, *body, *table.notes]


def markdown_lines(table: Table) -> Iterator[str]:
    """Lines of a table in Markdown, followed by an empty line and the notes."""
    yield from (f"**{markdown_text(table.title)}**", "")
    yield f"| {' | '.join(map(markdown_text, table.header))} |"
    yield f"|{'|'.join(':--' if place in table.left else '--:' for place in range(len(table.header)))}|"
    yield from (f"| {' | '.join(map(markdown_text, row))} |" for row in table.rows)
    yield ""
    yield from (markdown_text(note) for note in table.notes)


def _line(table: Table, cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.ljust(width) if column in table.left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return _GAP.join(padded).rstrip()
