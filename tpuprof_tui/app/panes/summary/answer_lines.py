"""Renders the answer of a view as lines: facts, tables with as many columns as fit, curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from typing import Final

from msgspec import Struct, field
from rich.segment import Segment
from rich.style import Style

from tpuprof_tui.app.drawing.charts import MISSING
from tpuprof_tui.app.drawing.colouring import kernel_category, lane_shades
from tpuprof_tui.app.drawing.glyphs import Glyphs, bar, stacked_bar
from tpuprof_tui.app.drawing.theme import Palette
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.table_layout import GAP, LaidColumn, fixed, parts, wanted
from tpuprof_tui.formats.text import cell_len, fit
from tpuprof_tui.model import Vocabulary
from tpuprof_tui.views.answer import TEXTS, Answer, Column, Fact, Series, Table, Target, plain_value
from tpuprof_tui.views.cells import CellFormats, fact_text, is_all_zero, shown_columns, shown_facts, value_text

from ..lines import Line, paragraph

#: A line, and the target of Enter on it.
Entry = tuple[Line, Target | None]

#: Most rows of a table, and most curves, of a view that fills the pane: the command line shows more.
MOST_ROWS, MOST_CURVES = 1000, 24
#: Greatest width of a text that is not wrapped for which other columns are dropped: of names, of droppable columns.
_WIDEST, _DROPPABLE_WIDEST = 100, 30
#: Widths in cells: least and greatest of a bar, and of the first column of a table with bars.
_BAR, _LONGEST_BAR, _NAMES = 8, 30, 24
#: Least width at which bars are drawn.
_BARS_FROM: Final = 50
#: Margin left and right of a table, cells.
_MARGINS: Final = 2


class _Column(LaidColumn, kw_only=True):
    """A column, its bars and what emphasises it."""

    column: Column
    #: For each row the shares (0 to 1) of the parts of its bar; empty: no bar.
    bars: list[list[float]] = field(default_factory=list)
    levels: Sequence[float] = ()  #: Share of each row by which its text is emphasised; empty: none


class AnswerLines(Struct):
    """Renders answers for a width."""

    vocabulary: Vocabulary
    palette: Palette
    glyphs: Glyphs
    width: int
    rows: int  #: Most rows of each table
    whole: bool = False  #: Whether one view fills the pane: complete tables and notes, long texts wrapped
    curves: Mapping[str, Sequence[str]] = field(default_factory=dict)  #: Lines of drawn series, by key
    scopes: Mapping[str, int] = field(default_factory=dict)  #: Codes of kernel functions, by name
    awaited: bool = False  #: Whether these are answers to an earlier query, which headings then say

    def entries(self, title: str, answer: Answer) -> list[Entry]:
        """All lines of a view; missing data is listed only if the view fills the pane."""
        tables = [table for table in (each.merged() for each in answer.tables) if self._rows_of(table)]
        facts = self._facts(shown_facts(answer.facts))
        notes = self.sentence_lines(*answer.notes)
        missing = self.sentence_lines(*(each.sentence for each in answer.missing if self.whole))
        # if the first table has the view's title, its heading also serves for the facts
        headed = not tables or tables[0].title != title
        entries: list[Entry] = []
        if ((facts or notes) and headed) or missing:
            entries.append((self.heading(title), None))
        entries += [*facts, *notes] if headed else []
        for number, table in enumerate(tables):
            entries += list(self._table(table, self._rows_of(table)))
            entries += [*facts, *notes] if not number and not headed else []
        return [*entries, *self._series(answer.series), *missing]

    def needed(self, answer: Answer) -> int:
        """Least width in cells at which tables show as much as at ``width``: the same columns, no more cut names."""
        most = 0
        for table in (each.merged() for each in answer.tables):
            rows = self._rows_of(table)
            if rows:
                kept, _ = next(self._parts(self._columns(table, CellFormats.of(table), rows), 0))
                most = max(most, min(wanted(kept) + _MARGINS, self.width))
        return most

    def _rows_of(self, table: Table) -> Sequence[int]:
        if not table.shown:
            return ()
        if self.whole:
            return range(min(len(table), MOST_ROWS))
        rows = range(len(table)) if table.brief is None else table.brief
        if table.longest and len(rows) > self.rows:
            values = table.column(table.longest)
            return sorted(nlargest(self.rows, rows, key=lambda row: values[row] or 0))
        return rows[: self.rows]

    def heading(self, text: str, note: str = "", heads: Sequence[tuple[int, str]] = ()) -> Line:
        """Heading of a section: title, a note if there is room, and column headers as (first cell, text)."""
        text = f" {clean(text)}{' ...' if self.awaited else ''} "
        title = fit(text, min(cell_len(text), self.width))
        free = heads[0][0] if heads else self.width
        note = f"{note} " if note and cell_len(title) + cell_len(note) + 2 <= free else ""
        line, used = [Segment(title, self.palette.title), Segment(note, self.palette.quiet)], cell_len(title + note)
        for start, header in heads:
            filler = self.glyphs.rule if (start, header) == heads[0] else " "
            room = max(start - used - 1, 0)
            line += [Segment(filler * room + " " * min(start - used, 1), self.palette.rule)]
            line += [Segment(header, self.palette.quiet)]
            used = start + cell_len(header)
        room = self.width - used - (1 if heads else 0)
        return [*line, Segment(f"{' ' if heads and room > 0 else ''}{self.glyphs.rule * room}", self.palette.rule)]

    def sentence_lines(self, *sentences: str) -> list[Entry]:
        """Dim paragraphs without a target."""
        return [(line, None) for each in sentences for line in paragraph(each, self.width, self.palette.quiet)]

    def _facts(self, facts: Sequence[Fact]) -> list[Entry]:
        """Lines of facts, several per line; one per line if the view fills the pane."""
        names = max((cell_len(fact.title) for fact in facts), default=0) if self.whole else 0
        entries: list[Entry] = []
        used = self.width
        for fact in facts:
            title = clean(fact.title)
            named = Segment(f" {fit(title, max(names, cell_len(title)))} ", self.palette.quiet)
            value = Segment(clean(fact_text(fact)), self.palette.text)
            length = cell_len(named.text + value.text) + 1
            if length > self.width:
                lines = paragraph(named.text + value.text, self.width, self.palette.text)
                entries += [(line, fact.target if self.whole else None) for line in lines]
                used = self.width
            elif self.whole or used + length > self.width:
                entries.append(([named, value], fact.target if self.whole else None))
                used = length - 1
            else:
                entries[-1][0].extend((Segment(" "), named, value))
                used += length
        return entries

    def _series(self, series: Sequence[Series]) -> Iterator[Entry]:
        shown = series[: MOST_CURVES if self.whole else self.rows]
        for each in shown:
            known = each.values[each.values == each.values]
            figures = (float(known.mean()), float(known.max())) if len(known) else (None, None)
            mean, most, peak = (value_text(figure, "bytes" if each.unit == "B" else "number", clean(each.unit))
                                for figure in (*figures, each.peak))  # fmt: skip
            # its axis ends at the largest mean of a cell, which is less than the largest value
            curve = self.curves.get(each.key, ())
            more = f", peak {peak}" if each.peak else ", curve: cell means" if curve else ""
            yield self.heading(each.title, f"mean {mean}, most {most}{more}"), None
            style = self.palette.transfer
            if self.vocabulary.lane_kind(each.key) is not None:
                style = self.palette.shaded(lane_shades(self.vocabulary, each.key))
            yield from (([Segment(f" {text}", style)], None) for text in curve)
        if series and MISSING:
            yield from self.sentence_lines(MISSING)
        if len(shown) < len(series):
            yield from self.sentence_lines(f"{len(series) - len(shown):,} more.")

    def _table(self, table: Table, rows: Sequence[int]) -> Iterator[Entry]:
        cells = CellFormats.of(table)
        columns, title = self._columns(table, cells, rows), cells.title(table)
        note = f"{len(rows):,} of {len(table):,}" if len(rows) < len(table) else self._bar_legend(columns)
        named = cell_len(clean(title)) + 3
        if table.longest and len(rows) < len(table) and not self.whole:
            # steps are missing in between: the title always states why
            note = f"longest {note}"
            named += cell_len(note) + 1
        # room of the title, which always states that rows are missing
        titled = cell_len(clean(title)) + 3 + (cell_len(note) + 1 if len(rows) < len(table) and not self.whole else 0)
        styles = [self._shade(table, row) for row in rows]
        first = True
        left_out = {each.column.key: clean(each.column.title) for each in columns if not each.nil}
        for part, bar_width in self._parts(columns, named):
            for each in part:
                left_out.pop(each.column.key, None)
            heads = self._heads(part, bar_width)
            # the heading's title stands for the header of the first column
            beside = heads[1:] if part[0].is_text else heads
            beside = beside if first and beside and max(named, titled) < beside[0][0] else []
            if first:
                yield self.heading(title, note, beside), None
            if not beside and len(heads) > 1:
                header = ""
                for start, text in heads:
                    header += " " * (start - cell_len(header)) + text
                yield [Segment(header, self.palette.quiet)], None
            first = False
            for place, row in enumerate(rows):
                target = table.target_of(row)
                strong = table.total and row == len(table) - 1
                for line in self._row(part, bar_width, place, styles[place], strong=strong):
                    yield line, target
        if self.whole:
            if left_out:
                names = ", ".join(left_out.values())
                yield from self.sentence_lines(f"No room for {names}: see a wider pane or tpuprof report.")
            yield from self.sentence_lines(*table.notes)
            if len(rows) < len(table):
                yield from self.sentence_lines(f"{len(table) - len(rows):,} more: tpuprof report lists all.")

    def _bar_legend(self, columns: Sequence[_Column]) -> str:
        looks = [look for each in columns if each.column.parts for look in self._looks(each.column)]
        return "  ".join(f"{char} {name}" for char, _, name in looks if name)

    def _columns(self, table: Table, cells: CellFormats, rows: Sequence[int]) -> list[_Column]:
        """The displayed columns, with the one that names the rows first."""
        found = []
        for place in shown_columns(table):
            column = table.columns[place]
            values = [plain_value(table.values[place][row]) for row in rows]
            # cleaned: characters that terminals draw with other widths would shift the columns after them
            texts = [clean(cells.text(column, value, guessed=table.is_guessed(row, column), depth=table.depth_of(row)))
                     for row, value in zip(rows, values, strict=True)]  # fmt: skip
            bars = _bars(table, column, rows)
            beside = _BAR + GAP if bars and self.width >= _BARS_FROM else 0
            unfolded = {} if self.whole else {"most": _DROPPABLE_WIDEST if column.drop_first else _WIDEST}
            found.append(_Column(
                clean(cells.header(column)), texts, column.kind in TEXTS, column.drop_first,
                is_all_zero(column, values),
                folds=self.whole and column.kind in TEXTS and column.key != cells.indented,
                beside=beside, repeats=bool(beside) and not column.parts,
                column=column, bars=bars, levels=_levels(table, column, rows), **unfolded,
            ))  # fmt: skip
        needed = [each for each in found if not each.drop_first]
        if needed and not needed[0].is_text and needed[-1].is_text:
            found.remove(needed[-1])
            found.insert(0, needed[-1])
        return found

    def _parts(self, columns: list[_Column], title: int) -> Iterator[tuple[list[_Column], int]]:
        """Yields groups of columns with the width of bars; the first column is ``title`` wide if possible."""
        width = self.width - _MARGINS
        for part in parts(columns, width, all_below=False):
            free = max(width - fixed(part) - sum(each.width for each in part), 0)
            bars = sum(1 for each in part if each.beside)
            if part[0].is_text:
                # leave room for the title in the heading, and align tables below one another
                grown = max(min(max(title, _NAMES if bars else 0) - part[0].width, free), 0)
                part[0].width, free = part[0].width + grown, free - grown
            yield part, min(_BAR + free // bars, _LONGEST_BAR) if bars else 0
            title = 0

    def _heads(self, columns: Sequence[_Column], bar_width: int) -> list[tuple[int, str]]:
        place, found = 1, []
        for each in columns:
            place += bar_width + GAP if each.beside else 0
            header = fit(each.header, min(cell_len(each.header), each.width))
            found.append((place if each.is_text else place + each.width - cell_len(header), header))
            place += each.width + GAP
        return found

    def _row(
        self, columns: Sequence[_Column], bar_width: int, row: int, shade: Style | None, *, strong: bool
    ) -> Iterator[Line]:
        """Lines of a row: several if its texts are wrapped."""
        folded = [each.lines(row) for each in columns]
        for number in range(max(map(len, folded))):
            line: Line = [Segment(" ")]
            for each, texts in zip(columns, folded, strict=True):
                if each.beside and not number:
                    line += self._bar(each, row, bar_width, shade)
                elif each.beside:
                    line.append(Segment(" " * (bar_width + GAP)))
                text = texts[number] if number < len(texts) else " " * each.width
                style = self.palette.strong if strong or each.bars else self.palette.text
                style = self.palette.level(each.levels[row]) if each.levels else style
                line.append(Segment(text + ("" if each is columns[-1] else " " * GAP), style))
            yield line

    def _bar(self, column: _Column, row: int, width: int, shade: Style | None) -> Line:
        if not column.column.parts:
            # the colour of a bar depends on the kind of value: share, duration or other
            own = {"share": self.palette.compute, "duration": self.palette.exposed}.get(column.column.kind)
            style = shade or own or self.palette.transfer
            return [Segment(bar(column.bars[row][0], width, self.glyphs) + " " * GAP, style)]
        cells = stacked_bar(column.bars[row], width)
        looks = self._looks(column.column)
        line = [Segment(char * count, style) for (char, style, _), count in zip(looks, cells, strict=True) if count]
        return [*line, Segment(" " * (width - sum(cells) + GAP))]

    def _looks(self, column: Column) -> list[tuple[str, Style, str]]:
        glyphs, palette = self.glyphs, self.palette
        exposed = "T" if glyphs.letters else "▒"
        known = {
            "compute_us": (glyphs.steps[8], palette.compute, "compute"), "wait_us": (glyphs.wait, palette.wait, "wait"),
            "exposed_us": (exposed, palette.exposed, "exposed"),
            "exposed_communication_us": (glyphs.sync, palette.sync, "exposed comm."),
        }  # fmt: skip
        return [known.get(key, (" ", palette.quiet, "")) for key in column.parts]

    def _shade(self, table: Table, row: int) -> Style | None:
        """Colour of the kernel function or kind of lane that names a row; None for other rows."""
        key = "name" if table.word == self.vocabulary.scope.one else "kind"
        name = next((str(values[row]) for column, values in zip(table.columns, table.values, strict=True)
                     if column.key == key), None)  # fmt: skip
        if name is None or (name not in self.scopes if key == "name" else self.vocabulary.lane_kind(name) is None):
            return None
        shades = kernel_category(self.scopes[name], "").shades if key == "name" else lane_shades(self.vocabulary, name)
        return self.palette.shaded(shades)


def _levels(table: Table, column: Column, rows: Sequence[int]) -> list[float]:
    """Share of each row by which a column is emphasised, 0 if unknown; empty without (``Column.emphasis``)."""
    by = next(
        (values for each, values in zip(table.columns, table.values, strict=True) if each.key == column.emphasis), ()
    )
    return [plain_value(by[row]) or 0.0 for row in rows] if len(by) else []


def _bars(table: Table, column: Column, rows: Sequence[int]) -> list[list[float]]:
    """Shares (0 to 1) of the parts of each row's bar."""
    if not column.bar:
        return []
    if column.parts:
        columns = [table.values[table.column_index(key)] for key in column.parts]
        parts = [[float(plain_value(values[row]) or 0) for values in columns] for row in rows]
        return [[part / sum(each) if sum(each) else 0.0 for part in each] for each in parts]
    values, full = table.values[table.column_index(column.key)], table.bar_full(column)
    return [[min(abs(plain_value(values[row]) or 0) / full, 1.0) if full else 0.0] for row in rows]
