"""Instructions as rows in some order: virtual, so that a page costs what is visible, at a million as at ten."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual import events, work
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.worker import Worker, get_current_worker

from tpuprof_tui.analysis.selecting.cell_texts import header_text, row_texts
from tpuprof_tui.analysis.selecting.filter_masks import numbers_shown, total_duration
from tpuprof_tui.analysis.selecting.search import SEARCHED, pattern_of
from tpuprof_tui.analysis.selecting.session import Ints, Session, ordered
from tpuprof_tui.analysis.selecting.state import Selection, ViewState
from tpuprof_tui.export.table import SHARE
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit
from tpuprof_tui.model import Column

from ..drawing.glyphs import Glyphs
from ..drawing.painter import joined
from ..drawing.theme import Palette
from ..shell.messages import tell_failure
from .scrolling import SidesCache, set_extent

#: Up to this many instructions are sorted at once; more in a thread, so that no key waits.
AT_ONCE = 50_000
#: Rows whose texts are kept.
KEPT_ROWS = 2_000
GAP = 1
#: Columns that say which instruction a row is: in front they stay where the table scrolls sideways.
STAYING = ("engine", "core", "port", "order", "name")
#: Where they leave the others this share of the width at least.
_LEAST_SCROLLED = 0.4
#: How a cell that matches the search looks.
_FOUND = Style(bold=True, underline=True)


def shown_columns(session: Session, view: ViewState) -> tuple[Column, ...]:
    """The table's columns in a state: those chosen, else the usual ones; the share behind the duration."""
    known = {column.key: column for column in session.columns}
    columns = [known[key] for key in view.columns if key in known] or list(session.columns)
    if view.percent:
        place = next((number for number, column in enumerate(columns) if column.key == "duration"), len(columns) - 1)
        columns.insert(place + 1, SHARE)
    return tuple(columns)


def _rows_of(session: Session, view: ViewState) -> tuple[Ints, int]:
    """Numbers of the table's rows in their order, and the sum of their durations, ns."""
    numbers = numbers_shown(session, view)
    return ordered(session, numbers, view.sort), total_duration(session, numbers)


class InstructionRows(ScrollView, can_focus=True, inherit_bindings=False):
    """Instructions of the scope in some order, as indices into the model."""

    DEFAULT_CSS = """
    InstructionRows { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; overflow: auto auto; }
    """

    class Ordered(Message):
        """A thread has put the instructions in order."""

        def __init__(self, wanted: tuple[object, ...], order: Ints, total_ns: int) -> None:
            super().__init__()
            self.total_ns = total_ns
            self.wanted = wanted
            self.order = order

    def __init__(self, session: Session, view: ViewState, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(id="table")
        self.session = session
        self.view = view
        self.palette = palette
        self.glyphs = glyphs
        self.columns: tuple[Column, ...] = ()
        self.widths: list[int] = []
        #: Left edge of each column, and the right edge of the last.
        self.edges: list[int] = [0]
        self.column = 0
        self._texts: dict[int, list[str]] = {}
        self._lay_out(view)
        self.order: Ints = np.zeros(0, dtype=np.int64)
        self.position = 0
        self._wanted: tuple[object, ...] = ()
        self._have: tuple[object, ...] = ()
        self.total_ns = 0
        self._texts_for: tuple[int, ...] = ()
        self._active = False
        self._styles_cache = SidesCache()

    def _lay_out(self, view: ViewState) -> None:
        """Takes the columns of a state; the chosen one stays chosen."""
        chosen = self.columns[self.column].key if self.columns else view.sort.key
        self.columns = shown_columns(self.session, view)
        self.widths = [self._width_of(column) for column in self.columns]
        self.edges = [0, *np.cumsum([width + GAP for width in self.widths]).tolist()]
        keys = [column.key for column in self.columns]
        self.column = keys.index(chosen) if chosen in keys else 0
        self._texts.clear()

    def _width_of(self, column: Column) -> int:
        header, profile = len(header_text(column.title, column.unit)) + 2, self.session.profile
        # narrow where numbers are small: the more fits on the screen
        if column.key in ("start", "end"):
            return max(header, len(f"{profile.end_ns:,}"), len(f"{profile.start_ns:,}"))
        if column.key == "order":
            return max(header, len(f"{max(map(len, profile.lanes), default=0):,}"))
        return max(column.width, header)

    # state

    def show(self, view: ViewState) -> None:
        """Shows a state; a hidden table only remembers it."""
        old, self.view = self.view, view
        if (old.columns, old.percent) != (view.columns, view.percent):
            self._lay_out(view)
            self._set_size()
            self.refresh()
        if not self._active:
            return
        self._order_anew()
        if old.selection != view.selection:
            before = self.position
            self._follow(view.selection)
            self._refresh_rows(before, self.position, self._in_view(old.selection))
        if (old.sort, old.search, old.picked) != (view.sort, view.search, view.picked):
            self.refresh()

    def activate(self, active: bool) -> None:
        """Says whether the table is visible: order and texts are made only then."""
        self._active = active
        if active:
            self._order_anew()
            self._follow(self.view.selection)

    @property
    def busy(self) -> bool:
        """Whether a thread is still sorting."""
        return self._wanted != self._have

    @property
    def holds(self) -> tuple[object, ...]:
        """What the rows are: equal for equal rows in the same order."""
        return self._have

    def put(self, position: int) -> None:
        """Puts the cursor on a row without selecting it."""
        before, self.position = self.position, min(max(position, 0), max(len(self.order) - 1, 0))
        self._bring_into_view()
        self._refresh_rows(before, self.position)
        self.post_message(self.Retitled())

    def _order_anew(self) -> None:
        view = self.view
        window = view.figures_window if view.in_window else None
        wanted = (view.scope, view.sort, window, view.filter)
        if wanted == self._wanted:
            return
        self._wanted = wanted
        if self.session.profile.instructions <= AT_ONCE:
            self._take(wanted, *_rows_of(self.session, view))
        else:
            self._sort(wanted, view)
        self.post_message(self.Retitled())

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """What goes wrong in a thread is told."""
        tell_failure(self, event)

    @work(thread=True, exclusive=True, group="table", exit_on_error=False, description="order of the table")
    def _sort(self, wanted: tuple[object, ...], view: ViewState) -> None:
        worker = get_current_worker()
        order, total_ns = _rows_of(self.session, view)
        if not worker.is_cancelled:
            self.post_message(self.Ordered(wanted, order, total_ns))

    def on_instruction_rows_ordered(self, message: Ordered) -> None:
        """Takes an order, unless another one is wanted by now."""
        message.stop()
        if message.wanted == self._wanted:
            self._take(message.wanted, message.order, message.total_ns)

    def _take(self, wanted: tuple[object, ...], order: Ints, total_ns: int) -> None:
        resorted = bool(self._have) and self._have[1] != wanted[1]
        self._have = wanted
        self.order = order
        self.total_ns = total_ns
        self._texts.clear()
        self._set_size()
        self.position = 0
        # another order is asked for to see its first rows; else the selected row stays in view
        if not resorted:
            self._follow(self.view.selection)
        self._bring_into_view()
        self.refresh()
        self.post_message(self.Retitled())

    def _set_size(self) -> None:
        if self._closing or not self.is_attached:
            # a scroll bar made for a pane that goes would never go itself, and keep the capture
            return
        set_extent(self, Size(self.edges[-1] + 1, len(self.order) + 1))

    class Retitled(Message):
        """What the table holds has changed."""

    def title_text(self) -> str:
        """What the table holds, for the border."""
        view = self.view
        if self.busy:
            return f"sorting {self.session.profile.vocabulary.event.of(self.session.profile.instructions)} ..."
        window = "in the window" if view.range is None else "in the range"
        where = window if view.in_window else "whole capture"
        passing = f" pass {clean(view.filter)}" if view.filter else ""
        picked = f", {len(view.picked):,} picked" if view.picked else ""
        count = self.session.count_text(self.order)
        return f"{count}{passing}, {self.session.scope_title(view.scope)}, {where}{picked}"

    def place_text(self) -> str:
        """Where the cursor is."""
        return f"row {self.position + 1:,} of {len(self.order):,}" if len(self.order) else ""

    def _follow(self, selection: Selection) -> None:
        """Puts the cursor on the selected instruction, where the table holds it."""
        if selection.row < 0 or not len(self.order):
            return
        number = self.session.number(selection.lane, selection.row)
        if int(self.order[self.position]) == number:
            return
        places = np.flatnonzero(self.order == number)
        if len(places):
            self.position = int(places[0])
            self._bring_into_view()

    # drawing

    @property
    def page(self) -> int:
        """Rows that fit on the screen below the header."""
        return max(self.scrollable_content_region.height - 1, 1)

    def render_line(self, y: int) -> Strip:
        """Header or a row."""
        width = self.size.width
        if y == 0:
            return self._cropped(self._header(), " ", width, self.palette.header)
        position = self.scroll_offset.y + y - 1
        if position >= len(self.order):
            text = fit(self._empty_text(), width) if y == 1 and not len(self.order) else " " * width
            return Strip([Segment(text)], width)
        style = Style.null()
        if position == self.position:
            style = self.palette.row if self.has_focus else self.palette.row_blurred
        mark = self.glyphs.mark if int(self.order[position]) in self.view.picked else " "
        return self._cropped(self._row(position, style), mark, width, style)

    @property
    def mark_width(self) -> int:
        """Cells left of the columns, for the marks of picked rows."""
        return 1 if self.view.picked else 0

    def _cropped(self, cells: list[list[Segment]], mark: str, width: int, style: Style) -> Strip:
        """Cells of the columns in view as a line: those that stay, then the others as far as they are scrolled."""
        staying, width = self.staying, width - self.mark_width
        kept = [segment for cell in cells[:staying] for segment in cell]
        rest = [segment for cell in cells[staying:] for segment in cell]
        first = self._columns_in_view()[staying] if rest else staying
        left = self.edges[staying] + self.scroll_offset.x - self.edges[first]
        strip = Strip(rest).crop_extend(left, left + max(width - self.edges[staying], 0), style)
        marks = [Segment(mark, self.palette.key + style)] if self.mark_width else []
        return Strip(joined([*marks, *kept, *strip])).crop_extend(0, width + self.mark_width, style)

    @property
    def staying(self) -> int:
        """How many columns in front stay where the table scrolls sideways: as many as leave the others room."""
        count, room = 0, self.size.width * (1 - _LEAST_SCROLLED)
        while count < len(self.columns) and self.columns[count].key in STAYING and self.edges[count + 1] <= room:
            count += 1
        return count

    def _columns_in_view(self) -> tuple[int, ...]:
        """Places of the columns in view, those that stay in front: others cost nothing."""
        staying, left = self.staying, self.scroll_offset.x
        first = min(max(bisect_right(self.edges, self.edges[staying] + left) - 1, staying), len(self.columns) - 1)
        # one at least, also where there is no room for any
        last = min(max(bisect_left(self.edges, left + self.size.width), first + 1), len(self.columns))
        return (*range(staying), *range(max(first, staying), last))

    def _in_view(self, selection: Selection) -> int:
        """Where an instruction is among the rows in view; -1: nowhere."""
        top, number = self.scroll_offset.y, self.session.number(selection.lane, selection.row)
        places = np.flatnonzero(self.order[top : top + self.page] == number)
        return top + int(places[0]) if selection.row >= 0 and len(places) else -1

    def _refresh_rows(self, *positions: int) -> None:
        """Repaints single rows: cheap on slow lines."""
        top = self.scroll_offset.y
        shown = {position - top + 1 for position in positions if 0 <= position - top < self.page}
        if shown:
            self.refresh(*(Region(0, line, self.size.width, 1) for line in shown))

    def _empty_text(self) -> str:
        if self.busy:
            return " sorting ..."
        if not self.session.profile.instructions:
            return self.session.say(" This capture holds no {events}: see the problems (4).")
        if self.view.filter:
            return self.session.say(" No {event} here passes the filter: & changes it, Esc clears it.")
        told = " No {event} here: press 0 in the timeline to show the whole capture, or v for all {events}."
        return self.session.say(told)

    def _header(self) -> list[list[Segment]]:
        cells = []
        for place in self._columns_in_view():
            column, arrow = self.columns[place], ""
            if column.key == self.view.sort.key:
                arrow = f" {self.glyphs.down if self.view.sort.down else self.glyphs.up}"
            title = header_text(column.title, column.unit)
            width = self.widths[place]
            text = fit(fit(title, min(len(title), width - len(arrow))) + arrow, width, right=column.align == "right")
            style = self.palette.chosen if place == self.column else self.palette.header
            cells.append([Segment(text, style), Segment(" " * GAP, self.palette.header)])
        return cells

    def _row(self, position: int, style: Style) -> list[list[Segment]]:
        texts = self._texts_of(position)
        cells = []
        quiet = self.palette.quiet + style
        selection = self.view.selection
        selected = selection.row >= 0 and self.order[position] == self.session.number(selection.lane, selection.row)
        plain = (self.palette.strong if selected else self.palette.text) + style
        pattern = pattern_of(self.view.search) if self.view.search else None
        for place, text in zip(self._columns_in_view(), texts, strict=True):
            column, width = self.columns[place], self.widths[place]
            right = column.align == "right"
            if right and len(text) > width:
                text = text.replace(",", "")
            shown = fit(text, width, right=right) + " " * GAP
            found = pattern is not None and column.key in SEARCHED and pattern.search(text) is not None
            cells.append([Segment(shown, quiet if text == "-" else plain + _FOUND if found else plain)])
        return cells

    def _texts_of(self, position: int) -> list[str]:
        number = int(self.order[position])
        places = self._columns_in_view()
        if places != self._texts_for or len(self._texts) > KEPT_ROWS:
            self._texts.clear()
            self._texts_for = places
        found = self._texts.get(number)
        if found is None:
            top = self.scroll_offset.y
            low, high = min(top, position), max(top + self.page + 1, position + 1)
            numbers = self.order[low:high]
            columns = tuple(self.columns[place] for place in places)
            for each, texts in zip(numbers.tolist(), self._cells(columns, numbers), strict=True):
                self._texts[each] = texts
            found = self._texts[number]
        return found

    def _cells(self, columns: tuple[Column, ...], numbers: Ints) -> list[list[str]]:
        """Texts of some columns of some instructions, the share of the total among them."""
        rows = row_texts(self.session, columns, numbers)
        if SHARE in columns:
            place = columns.index(SHARE)
            for number, texts in zip(numbers.tolist(), rows, strict=True):
                start, end = self.session.span_of(*self.session.place(number))
                texts[place] = f"{100 * (end - start) / max(self.total_ns, 1):.{SHARE.decimals}f}%"
        return rows

    def text_of(self, numbers: list[int], only: int | None = None) -> str:
        """Rows as tab separated text under a header, numbers plain; of one column just the values, a line each."""
        columns = self.columns if only is None else self.columns[only : only + 1]
        rows = [
            [
                text if column.kind == "text" else text.replace(",", "")
                for column, text in zip(columns, each, strict=True)
            ]
            for each in self._cells(columns, np.array(numbers, dtype=np.int64))
        ]
        if only is not None:
            return "\n".join(row[0] for row in rows)
        header = [header_text(column.title, column.unit) for column in columns]
        return "\n".join("\t".join(cells) for cells in (header, *rows))

    def _bring_into_view(self) -> None:
        top = self.scroll_offset.y
        if self.position < top:
            self.scroll_to(y=self.position, animate=False, immediate=True)
        elif self.position >= top + self.page:
            self.scroll_to(y=self.position - self.page + 1, animate=False, immediate=True)

    def on_resize(self, event: events.Resize) -> None:
        """The cursor stays visible."""
        if len(self.order):
            self._bring_into_view()
