"""Tables for people: what they hold, and as plain text. How a terminal shows them is in `tables_rich`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from .escape import markdown_text

Align = Literal["left", "right"]
_GAP = "  "
#: Characters of a text that is not broken.
_WORD: Final = 12


class Table(Struct, frozen=True):
    """A titled table of texts.

    Attributes:
        title: Heading.
        header: One text per column.
        rows: Cells, one list per row, as long as the header.
        left: Places of the columns that read from the left; all others line up on the right.
        notes: Lines below the table.
        total: The last row sums up the others.
        spare: Headers of columns to leave out where the table is too wide, first to go first.
        more: Rows that follow and are not here; the last note says so.
        hint: How to see rows that are not here, the rest of a sentence.
        view: Id of the view it is of; empty: of none.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()
    total: bool = False
    spare: tuple[str, ...] = ()
    more: int = 0
    hint: str = "--limit shows them"
    view: str = ""

    def align(self, place: int) -> Align:
        """How a column lines up."""
        return "left" if place in self.left else "right"

    @property
    def widths(self) -> tuple[int, ...]:
        """Widest cell of each column, in characters."""
        return tuple(max(map(len, cells)) for cells in zip(self.header, *self.rows, strict=True))

    @property
    def width(self) -> int:
        """Characters of a line."""
        return sum(self.widths) + len(_GAP) * (len(self.header) - 1)

    @property
    def wraps(self) -> bool:
        """Whether the last column is text that may take several lines: more than a word."""
        last = len(self.header) - 1
        return last in self.left and max((len(row[last]) for row in self.rows), default=0) > _WORD

    def fitted(self, width: int) -> list[Table]:
        """The table in ``width`` characters, if it can be: without spare columns, or turned where no column is text."""
        if self.width <= width or self.wraps:
            return [self]
        if not self.left:
            return self.turned(width)
        for place, title in enumerate(self.spare, 1):
            narrow = self._without(self.spare[:place])
            if narrow.width <= width or title == self.spare[-1]:
                return [narrow]
        return [self]

    def _without(self, titles: tuple[str, ...]) -> Table:
        kept = [place for place, title in enumerate(self.header) if title not in titles]
        return replace(
            self,
            header=tuple(self.header[place] for place in kept),
            rows=tuple(tuple(row[place] for place in kept) for row in self.rows),
            left=frozenset(number for number, place in enumerate(kept) if place in self.left),
            notes=(*self.notes, f"Left out in so narrow a terminal: {', '.join(titles)}."),
            spare=(),
        )

    def shortened(self, count: int) -> Table:
        """The table with its first rows, ``count`` at most; the row that sums up stays."""
        if len(self.rows) <= count:
            return self
        kept = self.rows[: count - self.total] + self.rows[len(self.rows) - self.total :]
        more = self.more + len(self.rows) - len(kept)
        notes = self.notes[:-1] if self.more else self.notes
        return replace(self, rows=kept, more=more, notes=(*notes, f"{more:,} more; {self.hint}."))

    def turned(self, width: int) -> list[Table]:
        """The table with rows and columns exchanged, in as many parts as ``width`` characters ask for."""
        parts: list[Table] = []
        place = 0
        while place < len(self.rows):
            count = len(self.rows) - place
            part = self._turned(place, count)
            while part.width > width and count > 1:
                count -= 1
                part = self._turned(place, count)
            parts.append(part)
            place += count
        return parts

    def _turned(self, first: int, count: int) -> Table:
        chosen = self.rows[first : first + count]
        columns = list(zip(self.header, *chosen, strict=True))
        return Table(
            title=self.title if first == 0 else f"{self.title} (continued)",
            header=columns[0],
            rows=tuple(columns[1:]),
            left=frozenset((0,)),
            notes=self.notes if first + count == len(self.rows) else (),
        )


class Report(Struct, frozen=True):
    """A page of text: lines at the head, then tables."""

    title: str
    lines: tuple[str, ...] = ()
    tables: tuple[Table, ...] = field(default_factory=tuple)

    def text(self) -> str:
        """The whole page in plain text, as wide as it needs to be."""
        blocks = ["\n".join((self.title, *self.lines)), *("\n".join(table_lines(table)) for table in self.tables)]
        return "\n\n".join(blocks)

    def markdown(self) -> str:
        """The whole page as Markdown."""
        blocks = [f"### {markdown_text(self.title)}"]
        if any(self.lines):
            blocks.append("\n".join(f"- {markdown_text(line)}" for line in self.lines if line))
        return "\n\n".join([*blocks, *("\n".join(markdown_lines(table)).rstrip() for table in self.tables)])


def table_lines(table: Table) -> list[str]:
    """A table in plain text."""
    widths = table.widths
    rule = "-" * max(table.width, len(table.title))
    body = [_line(table, row, widths) for row in table.rows]
    if table.total and len(body) > 1:
        body.insert(-1, rule)
    return [table.title, rule, _line(table, table.header, widths), rule, *body, *table.notes]


def markdown_lines(table: Table) -> Iterator[str]:
    """A table as Markdown has them, with an empty line behind it."""
    yield from (f"**{markdown_text(table.title)}**", "")
    yield f"| {' | '.join(map(markdown_text, table.header))} |"
    yield f"|{'|'.join(':--' if place in table.left else '--:' for place in range(len(table.header)))}|"
    yield from (f"| {' | '.join(map(markdown_text, row))} |" for row in table.rows)
    yield ""
    yield from (markdown_text(note) for note in table.notes)


def _line(table: Table, cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.ljust(width) if table.align(place) == "left" else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return _GAP.join(padded).rstrip()
