"""Table pane: the events as sorted rows, of which only the visible page is rendered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final

from msgspec.structs import replace
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tpuprof_tui.analysis.selecting.cell_texts import header_text
from tpuprof_tui.analysis.selecting.moves import step_event
from tpuprof_tui.analysis.selecting.search import SEARCHED, pattern_of
from tpuprof_tui.analysis.selecting.session import Ints, Session
from tpuprof_tui.analysis.selecting.state import DisplayState, SelectedItem, Sort
from tpuprof_tui.export.table import SHARE
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import ELLIPSIS, fit, label_cut
from tpuprof_tui.formats.units import plural
from tpuprof_tui.model.columns import LANE_KIND

from ..drawing.glyphs import Glyphs
from ..drawing.theme import Palette
from ..settings.actions import bindings, columns_named
from ..shell.messages import Background, ChangeState, CopyText, Request, ShowMessage
from .lines import MOVES
from .prompt import Hint, PromptRequest, ask
from .table_rows import AT_ONCE, GAP, ColumnLayout, SortedRows, sorted_rows

#: Most rows of a column that are copied: clipboards cannot hold millions.
MAX_COPIED_ROWS = 10_000
#: A cut column with at most this many visible cells is blanked.
_MIN_CUT_CELLS: Final = 3
#: Numeric columns that are sorted in ascending order first, as texts are.
_ASCENDING_FIRST: Final = frozenset({"start", "end", "order", "core", "port"})
#: Style of a cell that matches the search.
_MATCH_STYLE = Style(bold=True, underline=True)
#: State changes of keys, by the last part of the action id.
_CHANGES: Final[Mapping[str, Callable[[DisplayState], DisplayState]]] = {
    "reverse": lambda state: replace(state, sort=replace(state.sort, down=not state.sort.down)),
    "window-only": lambda state: replace(state, in_window=not state.in_window),
    "percent": lambda state: replace(state, percent=not state.percent),
    "clear-picks": lambda state: replace(state, picked=()),
}


class EventTable(ScrollView, can_focus=True, inherit_bindings=False):
    """Events of the scope as rows; keys move the cursor, choose columns, or request state changes."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("list", "wide", "table")]
    DEFAULT_CSS = """
    EventTable { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; overflow: auto auto; }
    """

    _drawn_style: Style | None = None

    def __init__(self, session: Session, state: DisplayState, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(id="table")
        self.session = session
        self.state = state
        self.palette = palette
        self.glyphs = glyphs
        self.columns = ColumnLayout(session, state)
        self.rows = SortedRows(session)
        self._background = Background(self, "table", small=session.profile.event_count <= AT_ONCE)
        self._active = False

    # state

    def show(self, state: DisplayState) -> None:
        """Shows a state; a hidden table only stores it."""
        old, self.state = self.state, state
        if (old.columns, old.percent) != (state.columns, state.percent):
            self.columns.show(state)
            self._set_size()
            self._scroll_to_column()
            self.refresh()
        if not self._active:
            return
        self._request_rows()
        if old.selection != state.selection:
            before = self.rows.position
            self._follow()
            seen = self.rows.row_of(old.selection, self.scroll_offset.y, self.page)
            self._refresh_rows(before, self.rows.position, seen)
        if (old.sort, old.search, old.picked) != (state.sort, state.search, state.picked):
            self.refresh()

    def activate(self, active: bool) -> None:
        """Sets whether the table is visible; rows are sorted and rendered only then."""
        self._active = active
        if active:
            self._request_rows()
            self._follow()

    def _request_rows(self) -> None:
        state = self.state
        if self.rows.request(state):
            self._background.compute("order", partial(sorted_rows, self.session, state), self._take)
            self.post_message(Request("titles"))

    def _take(self, found: tuple[Ints, int]) -> None:
        key, rows = self.rows.current_key, self.rows
        resorted = bool(key) and key[1] != rows.requested_key[1]
        rows.take(*found)
        self._set_size()
        # after a change of order the first rows are of interest; otherwise keep the selected row in view
        if not resorted:
            rows.follow(self.state.selection)
        self._bring_into_view()
        self.refresh()
        self.post_message(Request("titles"))

    def _set_size(self) -> None:
        if self._closing or not self.is_attached:
            # a scroll bar created while the pane closes would never be removed, and would keep the capture in memory
            return
        self.virtual_size = Size(self.columns.edges[-1] + 1, len(self.rows.order) + 1)

    def title_text(self) -> str:
        """Title for the border: number of rows, filter, scope, window, picked rows."""
        state = self.state
        if self.rows.is_sorting:
            return f"sorting {self.session.profile.vocabulary.event.of(self.session.profile.event_count)} ..."
        window = "in the window" if state.range is None else "in the range"
        where = window if state.in_window else "whole capture"
        passing = f" pass {clean(state.filter)}" if state.filter else ""
        picked = f", {len(state.picked):,} picked" if state.picked else ""
        count = self.session.count_text(self.rows.order)
        return f"{count}{passing}, {self.session.scope_title(state.scope)}, {where}{picked}"

    def position_text(self) -> str:
        """Position of the cursor (``row 1 of 10``); empty if there are no rows."""
        count = len(self.rows.order)
        return f"row {self.rows.position + 1:,} of {count:,}" if count else ""

    # the cursor

    def go_to(self, position: int) -> None:
        """Puts the cursor on a row, and selects its event in all panes."""
        if len(self.rows.order):
            self.put(position)
            self._select()

    def put(self, position: int) -> None:
        """Puts the cursor on a row without selecting it."""
        before = self.rows.position
        self.rows.put(position)
        self._bring_into_view()
        self._refresh_rows(before, self.rows.position)
        self.post_message(Request("titles"))

    def _follow(self) -> None:
        if self.rows.follow(self.state.selection):
            self._bring_into_view()

    def _bring_into_view(self) -> None:
        top, position = self.scroll_offset.y, self.rows.position
        if not top <= position < top + self.page:
            top_row = position if position < top else position - self.page + 1
            self.scroll_to(y=top_row, animate=False, immediate=True)

    def on_resize(self, event: events.Resize) -> None:
        """Adapts the column widths, and keeps the cursor visible."""
        if self.columns.resized(event.size.width):
            self._set_size()
            self.refresh()
        if len(self.rows.order):
            self._bring_into_view()

    # drawing

    @property
    def page(self) -> int:
        """Number of rows that fit below the header."""
        return max(self.scrollable_content_region.height - 1, 1)

    def _refresh_rows(self, *positions: int) -> None:
        """Repaints single rows, which sends little over slow connections."""
        top = self.scroll_offset.y
        lines = {position - top + 1 for position in positions if 0 <= position - top < self.page}
        if lines:
            self.refresh(*(Region(0, line, self.size.width, 1) for line in lines))

    def render_lines(self, crop: Region) -> list[Strip]:
        """Renders the lines of a region in the style of the pane, computed once."""
        self._drawn_style = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Renders the header or a row."""
        return self._line(y).apply_style(self._drawn_style or self.rich_style)

    def _line(self, y: int) -> Strip:
        width, rows = self.size.width, self.rows
        indices = self.columns.in_view(self.scroll_offset.x, width)
        if y == 0:
            return self._cropped(self._header(indices), indices, " ", self.palette.header)
        position = self.scroll_offset.y + y - 1
        if position >= len(rows.order):
            text = fit(self._empty_text(), width) if y == 1 and not len(rows.order) else " " * width
            return Strip([Segment(text)], width)
        style = Style.null()
        if position == rows.position:
            style = self.palette.row if self.has_focus else self.palette.row_blurred
        mark = self.glyphs.mark if int(rows.order[position]) in self.state.picked else " "
        return self._cropped(self._row(position, indices, style), indices, mark, style)

    def _cropped(self, cells: list[list[Segment]], indices: Sequence[int], mark: str, style: Style) -> Strip:
        """Joins the cells of the columns in view to a line: frozen columns, then the scrolled ones, cropped."""
        # a column for marks on the left, if any rows are picked
        marks = [Segment(mark, self.palette.key + style)] if self.state.picked else []
        edges, width = self.columns.edges, self.scrollable_content_region.width - len(marks)
        frozen = self.columns.frozen_count(self.size.width)
        frozen_cells = [segment for cell in cells[:frozen] for segment in cell]
        scrolled = cells[frozen:]
        left = edges[frozen] + self.scroll_offset.x - edges[indices[frozen] if scrolled else frozen]
        if left and len(scrolled) > 1:
            # blank a column cut at its left: the rest of a number would read as another number
            scrolled[0] = [Segment(" " * segment.cell_length, segment.style) for segment in scrolled[0]]
        room = max(width - edges[frozen], 0)
        full = Strip([segment for cell in scrolled for segment in cell])
        strip = full.crop_extend(left, left + room, style)
        if room and full.crop(left + room).text.strip():
            # the start of a number would read as another number too
            visible = left + room - (edges[indices[-1]] - edges[indices[frozen]])
            end = ELLIPSIS if visible > _MIN_CUT_CELLS else " " * visible
            strip = Strip([*strip.crop(0, room - len(end)), Segment(end, scrolled[-1][0].style)])
        return Strip([*marks, *frozen_cells, *strip]).simplify().crop_extend(0, self.size.width, style)

    def _header(self, indices: Sequence[int]) -> list[list[Segment]]:
        cells = []
        for index in indices:
            column, arrow = self.columns.columns[index], ""
            if column.key == self.state.sort.key:
                arrow = f" {self.glyphs.down if self.state.sort.down else self.glyphs.up}"
            title = header_text(column.title, column.unit)
            width = self.columns.widths[index]
            text = fit(fit(title, min(len(title), width - len(arrow))) + arrow, width, right=column.align == "right")
            style = self.palette.chosen if index == self.columns.chosen_index else self.palette.header
            cells.append([Segment(text, style), Segment(" " * GAP, self.palette.header)])
        return cells

    def _row(self, position: int, indices: Sequence[int], style: Style) -> list[list[Segment]]:
        columns = tuple(self.columns.columns[index] for index in indices)
        texts = self.rows.texts(position, columns, self.scroll_offset.y, self.page)
        quiet = self.palette.quiet + style
        selection = self.state.selection
        selected = selection.row >= 0 and self.rows.order[position] == self.session.number(
            selection.lane, selection.row
        )
        plain = (self.palette.strong if selected else self.palette.text) + style
        pattern = pattern_of(self.state.search) if self.state.search else None
        cells, keys = [], [column.key for column in columns]
        for index, column, text in zip(indices, columns, texts, strict=True):
            width, right = self.columns.widths[index], column.align == "right"
            if right and len(text) > width:
                text = text.replace(",", "")
            text = label_cut(text, width) if column.key == LANE_KIND.key else text
            cell_text = fit(text, width, right=right) + " " * GAP
            found = pattern is not None and column.key in SEARCHED and pattern.search(text) is not None
            share = texts[keys.index(column.emphasis)] if column.emphasis in keys and not selected else "-"
            shade = plain if share == "-" else self.palette.level(float(share)) + style
            cells.append([Segment(cell_text, quiet if text == "-" else shade + _MATCH_STYLE if found else shade)])
        return cells

    def _empty_text(self) -> str:
        if self.rows.is_sorting:
            return " sorting ..."
        if not self.session.profile.event_count:
            return self.session.say(" This capture holds no {events}: see the problems (4).")
        if self.state.filter:
            return self.session.say(" No {event} here passes the filter: & changes it, Esc clears it.")
        text = " No {event} here: press 0 in the timeline to show the whole capture, or v for all {events}."
        return self.session.say(text)

    # keys that move

    def action_do(self, name: str) -> None:
        """Moves the cursor, or requests the state change of an entry in ``_CHANGES``."""
        if name in MOVES:
            self.go_to(self.rows.position + MOVES[name](self.page, len(self.rows.order)))
        else:
            self.post_message(ChangeState(_CHANGES[name]))

    def action_centre(self) -> None:
        """Scrolls the cursor's row to the middle."""
        self.scroll_to(y=max(self.rows.position - self.page // 2, 0), animate=False, immediate=True)

    def action_scroll_columns(self, columns: int) -> None:
        """Scrolls horizontally to the start of the previous or next column."""
        left = self.columns.scrolled(columns, self.scroll_offset.x, self.size.width)
        self.scroll_to(x=left, animate=False, immediate=True)

    def _select(self) -> None:
        lane, row = self.session.locate(self.rows.number)
        selection = SelectedItem(self.session.unit_of(lane), lane, row)
        start, _ = self.session.span_of(lane, row)
        self.post_message(ChangeState(lambda state: replace(state.at(start), selection=selection)))

    def action_select(self) -> None:
        """Selects the row's event and shows its detail."""
        if len(self.rows.order):
            self._select()
            self.post_message(Request("show-detail"))

    def action_step(self, steps: int) -> None:
        """Selects the event ``steps`` after this one on the same lane."""
        if len(self.rows.order):
            lane, row = self.session.locate(self.rows.number)
            selection = SelectedItem(self.session.unit_of(lane), lane, row)
            self.post_message(
                ChangeState(lambda state: step_event(self.session, replace(state, selection=selection), steps, lane))
            )

    # columns and order

    def action_choose_column(self, steps: int) -> None:
        """Chooses the column ``steps`` places to the right."""
        self._choose(self.columns.chosen_index + steps)

    def choose(self, key: str) -> None:
        """Chooses a column by key, if it is visible, and scrolls it into view."""
        index = self.columns.index_of(key)
        if index >= 0:
            self._choose(index)

    def _scroll_to_column(self) -> None:
        left = self.scroll_offset.x
        index, width = self.columns.chosen_index, self.scrollable_content_region.width
        scroll_x = self.columns.offset_for(index, left, self.size.width, width) if width > 0 else left
        if scroll_x != left:
            self.scroll_to(x=scroll_x, animate=False, immediate=True)

    def _choose(self, index: int) -> None:
        columns = self.columns
        columns.chosen_index = min(max(index, 0), len(columns.columns) - 1)
        self._scroll_to_column()
        self.refresh()
        self.post_message(ShowMessage(f"{columns.chosen.title}: {columns.chosen.help}  (s sorts)"))

    def action_sort(self) -> None:
        """Sorts by the chosen column; if already sorted by it, reverses the order."""
        # the share has the order of the durations
        key = "duration" if self.columns.chosen is SHARE else self.columns.chosen.key
        falls = not self.session.profile.vocabulary.is_text(key) and key not in _ASCENDING_FIRST

        def sorted_by(state: DisplayState) -> DisplayState:
            return replace(state, sort=Sort(key, not state.sort.down if state.sort.key == key else falls))

        self.post_message(ChangeState(sorted_by))

    def action_sort_by(self) -> None:
        """Prompts for the column to sort by."""
        columns = self.session.profile.vocabulary.phrase("sort_hint", "a column: name, duration, ...")
        hint = Hint(f"{columns}  Enter sorts, then s reverses")

        def validate(text: str) -> Hint | None:
            found = columns_named(self.columns.columns, text)
            if not text.strip():
                return hint
            if not found:
                return Hint("no such column here: c chooses columns", fault=True)
            return Hint(", ".join(column.title for column in found[:4]))

        def accepted(text: str) -> Hint | None:
            found = columns_named(self.columns.columns, text)
            if found:
                self.choose(found[0].key)
                self.action_sort()
            return None if found or not text.strip() else validate(text)

        ask(self, PromptRequest("Sort by", "", validate, accepted))

    def action_frequencies(self) -> None:
        """Requests the groups of the chosen column."""
        self.post_message(Request("group-by", self.columns.chosen.key))

    def action_columns(self) -> None:
        """Requests the column chooser."""
        self.post_message(Request("choose-columns"))

    # picked rows, copying

    def action_pick(self) -> None:
        """Picks or unpicks the row, and moves to the next."""
        if not len(self.rows.order):
            return
        number = self.rows.number

        def toggled(state: DisplayState) -> DisplayState:
            picked = tuple(each for each in state.picked if each != number)
            return replace(state, picked=picked if len(picked) < len(state.picked) else (*picked, number))

        self.post_message(ChangeState(toggled))
        self.go_to(self.rows.position + 1)

    @property
    def _picked(self) -> list[int]:
        """Event numbers of the picked rows that exist: a reloaded capture may have fewer events."""
        return [number for number in self.state.picked if number < self.session.profile.event_count]

    def action_copy_rows(self) -> None:
        """Copies the picked rows, or the one under the cursor."""
        numbers = self._picked or ([self.rows.number] if len(self.rows.order) else [])
        if numbers:
            text = self.rows.as_tsv(numbers, self.columns.columns)
            self.post_message(CopyText(text, plural(len(numbers), "row")))

    def action_copy_cell(self) -> None:
        """Copies the cell of the chosen column."""
        if len(self.rows.order):
            self._copy_column([self.rows.number], self.columns.chosen.title)

    def action_copy_column(self) -> None:
        """Copies the chosen column of the picked rows, or of the first ``MAX_COPIED_ROWS`` rows."""
        count = len(self.rows.order)
        numbers = self._picked or self.rows.order[:MAX_COPIED_ROWS].tolist()
        label = f"{self.columns.chosen.title} of {plural(len(numbers), 'row')}"
        if not self._picked and len(numbers) < count:
            label += f", the first of {count:,}"
        if numbers:
            self._copy_column(numbers, label)

    def _copy_column(self, numbers: list[int], label: str) -> None:
        self.post_message(CopyText(self.rows.as_tsv(numbers, (self.columns.chosen,), header=False), label))

    def on_click(self, event: events.Click) -> None:
        """Sorts by the clicked header, or selects the clicked row."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        row = self.scroll_offset.y + offset.y - 1
        if offset.y == 0:
            self._choose(self.columns.at(offset.x - bool(self.state.picked), self.scroll_offset.x, self.size.width))
            self.action_sort()
        elif row < len(self.rows.order):
            self.go_to(row)
