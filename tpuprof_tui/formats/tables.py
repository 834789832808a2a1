"""Tables of reports, and their plain text and Markdown forms; `tables_rich` prints them to a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from .escape import markdown_text

Align = Literal["left", "right"]
_GAP = "  "
#: Maximum length of texts that are never wrapped, characters.
_WORD: Final = 12


class Table(Struct, frozen=True):
    """A titled table of texts."""

    title: str  #: Heading
    header: tuple[str, ...]  #: One text per column
    rows: tuple[tuple[str, ...], ...]  #: Cells, one list per row, as long as the header
    left: frozenset[int] = frozenset()  #: Indices of the left-aligned columns; all others are right-aligned
    notes: tuple[str, ...] = ()  #: Lines below the table
    total: bool = False  #: Whether the last row is the total
    spare: tuple[str, ...] = ()  #: Headers of columns to drop if the table is too wide, in the order of dropping
    more: int = 0  #: Number of further rows that are not included; the last note states it
    hint: str = "--limit shows them"  #: How to see further rows; the end of the sentence
    view: str = ""  #: Id of the view that the table belongs to; may be empty

    def align(self, column: int) -> Align:
        """Alignment of a column, by index."""
        return "left" if column in self.left else "right"

    @property
    def widths(self) -> tuple[int, ...]:
        """Width of each column, characters."""
        return tuple(max(map(len, cells)) for cells in zip(self.header, *self.rows, strict=True))

    @property
    def width(self) -> int:
        """Width of a line, characters."""
        return sum(self.widths) + len(_GAP) * (len(self.header) - 1)

    @property
    def wraps(self) -> bool:
        """Whether the last column is text that may be wrapped: longer than a word."""
        last = len(self.header) - 1
        return last in self.left and max((len(row[last]) for row in self.rows), default=0) > _WORD

    def fitted(self, width: int) -> list[Table]:
        """The table fitted to ``width`` characters if possible: without spare columns, or transposed if all numeric."""
        if self.width <= width or self.wraps:
            return [self]
        if not self.left:
            return self.transposed(width)
        for place, title in enumerate(self.spare, 1):
            narrow = self._without(self.spare[:place])
            if narrow.width <= width or title == self.spare[-1]:
                return [narrow]
        return [self]

    def _without(self, titles: tuple[str, ...]) -> Table:
        kept = [column for column, title in enumerate(self.header) if title not in titles]
        return replace(
            self,
            header=tuple(self.header[column] for column in kept),
            rows=tuple(tuple(row[column] for column in kept) for row in self.rows),
            left=frozenset(number for number, column in enumerate(kept) if column in self.left),
            notes=(*self.notes, f"The terminal is too narrow for: {', '.join(titles)}."),
            spare=(),
        )

    def shortened(self, count: int) -> Table:
        """The table with at most ``count`` rows; a total row is kept."""
        if len(self.rows) <= count:
            return self
        kept = self.rows[: count - self.total] + self.rows[len(self.rows) - self.total :]
        more = self.more + len(self.rows) - len(kept)
        notes = self.notes[:-1] if self.more else self.notes
        return replace(self, rows=kept, more=more, notes=(*notes, f"{more:,} more; {self.hint}."))

    def transposed(self, width: int) -> list[Table]:
        """The transposed table, split into parts that fit into ``width`` characters."""
        parts: list[Table] = []
        first = 0
        while first < len(self.rows):
            count = len(self.rows) - first
            part = self._transposed_part(first, count)
            while part.width > width and count > 1:
                count -= 1
                part = self._transposed_part(first, count)
            parts.append(part)
            first += count
        return parts

    def _transposed_part(self, first: int, count: int) -> Table:
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
        cell.ljust(width) if table.align(column) == "left" else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return _GAP.join(padded).rstrip()
