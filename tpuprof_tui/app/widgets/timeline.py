"""The timeline: a line for each engine or core, cells of exact occupancy, one cursor in time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from ...analysis.lane_index import event_at
from ..actions import bindings
from ..axis import cell_at, edges_of, ruler
from ..format import GUESS, exact_time, fit, percent_text, time_text
from ..glyphs import Glyphs
from ..messages import Change, ShowDetail
from ..painter import Painted, merged, paint_core, paint_lane, text_of
from ..session import Session
from ..state import Selection, ViewState
from ..theme import Palette

#: Drawn lanes that are kept: a moved cursor or selection needs no new occupancy.
KEPT = 256


@dataclass(frozen=True)
class Row:
    """A line of the timeline: a lane (index into ``Profile.lanes``), or a whole core where ``lane`` is -1."""

    lane: int
    core: int
    label: str
    guessed: bool
    first: bool


def rows_of(session: Session, view: ViewState) -> list[Row]:
    """The lines of the timeline for a state, in the profile's order."""
    lanes = session.profile.lanes
    numbers = session.lanes_in(view.scope)
    if view.rows == "cores" and view.scope.lane < 0:
        cores = [core for core in session.profile.cores if view.scope.core in (-1, core)]
        guessed = any(lane.role_guessed for lane in lanes)
        rows = [Row(-1, core, f"Core {core}", guessed, True) for core in cores]
        return rows + [_lane_row(session, number, True) for number in numbers if lanes[number].core < 0]
    previous = ""
    rows = []
    for number in numbers:
        rows.append(_lane_row(session, number, lanes[number].group != previous))
        previous = lanes[number].group
    return rows


def _lane_row(session: Session, number: int, first: bool) -> Row:
    lane = session.profile.lanes[number]
    return Row(number, lane.core, f"{lane.group} {lane.label}", lane.role_guessed, first)


class Timeline(Widget, can_focus=True):
    """Lanes over time. Draws only what is visible; keeps what it has drawn until the window changes."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("timeline")]
    DEFAULT_CSS = "Timeline { height: 1fr; }"

    def __init__(self, session: Session, view: ViewState, palette: Palette, glyphs: Glyphs, *, id: str) -> None:
        super().__init__(id=id)
        self.session = session
        self.view = view
        self.palette = palette
        self.glyphs = glyphs
        self.rows: list[Row] = []
        self.top = 0
        self._drawn: OrderedDict[tuple[int, int, int, int, int], Painted] = OrderedDict()
        self._longest = 6
        self._base = Style.null()
        self._titles = ("", "")
        self._take_rows()

    def _take_rows(self) -> None:
        self.rows = rows_of(self.session, self.view)
        self._longest = max((len(row.label) for row in self.rows), default=6)

    # what is where

    @property
    def label_width(self) -> int:
        """Cells left of the time axis: labels and utilisation."""
        return min(self._longest + 10, max(self.size.width // 3, 0))

    @property
    def cells(self) -> int:
        """Cells of the time axis."""
        return max(self.size.width - self.label_width, 1)

    @property
    def lines(self) -> int:
        """Lanes that fit on the screen: one line is the ruler, one tells what is at the cursor."""
        return max(self.size.height - 1 - self._info_lines, 1)

    @property
    def _info_lines(self) -> int:
        return 1 if self.size.height >= 4 else 0

    def wanted_height(self) -> int:
        """Lines it would take to show everything."""
        return len(self.rows) + 2

    def selected_row(self, view: ViewState) -> int:
        """Line of the selected lane or core; -1 without one."""
        selection = view.selection
        for number, row in enumerate(self.rows):
            if row.lane == selection.lane if row.lane >= 0 else selection.core == row.core:
                return number
        if selection.lane < 0 and selection.core >= 0:
            return next((number for number, row in enumerate(self.rows) if row.core == selection.core), -1)
        return -1

    # state

    def show(self, view: ViewState) -> None:
        """Shows a state, repainting only what it changes."""
        old, self.view = self.view, view
        if (old.scope, old.rows) != (view.scope, view.rows):
            self._take_rows()
        top, before = self.top, self.selected_row(old)
        self._scroll_to_selection()
        same = replace(old, cursor=view.cursor, selection=view.selection, sort=view.sort, in_window=view.in_window)
        if same == view and top == self.top:
            self._refresh_parts(old, before)
            return
        self.refresh()
        self._retitle()

    def _retitle(self) -> None:
        """Sets titles that have changed: each setting repaints the whole pane."""
        titles = (self.title_text(), self.legend_text())
        if titles != self._titles:
            self._titles = titles
            self.border_title, self.border_subtitle = Content(titles[0]), Content(titles[1])

    def title_text(self) -> str:
        """The visible window, for the border."""
        view = self.view
        resolution = max(view.span // max(self.cells, 1), 1)
        window = f"{exact_time(view.start, resolution)} to {exact_time(view.end, resolution)}"
        part = "all" if view.fits_all else time_text(view.span)
        return f"1 Timeline  {window} ({part})"

    def legend_text(self) -> str:
        """What the glyphs mean, and how many lanes are out of sight."""
        glyphs = self.glyphs
        below = len(self.rows) - self.top - self.lines
        hidden = f"  {glyphs.down}{below} more" if below > 0 else ""
        above = f"  {glyphs.up}{self.top} more" if self.top else ""
        if self.view.rows == "cores":
            shade = "T" if glyphs.letters else "▒"
            meaning = f"{glyphs.levels[8]} compute  {shade} exposed transfer"
        else:
            meaning = f"{glyphs.levels[8]} work  {glyphs.wait} wait  {glyphs.sync} sync"
        return f"{meaning}{above}{hidden}"

    def on_resize(self, event: events.Resize) -> None:
        """More or fewer lanes fit."""
        self._scroll_to_selection()
        self._retitle()

    def _scroll_to_selection(self) -> None:
        row = self.selected_row(self.view)
        top = min(self.top, max(len(self.rows) - self.lines, 0))
        if row >= 0:
            top = min(max(top, row - self.lines + 1), row)
        self.top = max(top, 0)

    def _refresh_parts(self, old: ViewState, before: int) -> None:
        """Repaints what a moved cursor or selection changes: cheap on slow lines.

        Args:
            old: The state shown so far.
            before: The line selected so far.
        """
        view, (width, height) = self.view, self.size
        regions = [Region(0, 0, width, 1)]
        if self._info_lines:
            regions.append(Region(0, height - 1, width, 1))
        if old.selection != view.selection:
            shown = range(self.top, self.top + self.lines)
            lines = {line for line in (before, self.selected_row(view)) if line in shown}
            regions += [Region(0, line - self.top + 1, width, 1) for line in lines]
        if old.cursor != view.cursor:
            cells = {cell_at(time, view.start, view.end, self.cells) for time in (old.cursor, view.cursor)}
            regions += [Region(self.label_width + cell, 0, 1, height) for cell in cells if 0 <= cell < self.cells]
        self.refresh(*regions)

    # drawing

    def render_lines(self, crop: Region) -> list[Strip]:
        """Lines of a region; what they share is looked up once."""
        self._base = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Ruler, lanes, and what is at the cursor."""
        width, height = self.size
        base = self._base
        if y == 0:
            segments = self._ruler()
        elif self._info_lines and y == height - 1:
            segments = self._bottom(width)
        else:
            number = y - 1 + self.top
            if not 0 <= number < len(self.rows) or y > self.lines:
                return Strip([Segment(" " * width, base)], width)
            segments = self._lane(number)
        return Strip(segments).adjust_cell_length(width, base).apply_style(base)

    def _ruler(self) -> list[Segment]:
        view, count = self.view, self.cells
        marks = ruler(view.start, view.end, count)
        chars = [" "] * count
        styles = [self.palette.quiet] * count
        pointer = cell_at(view.cursor, view.start, view.end, count)
        for cell, label in marks.ticks:
            # a label the pointer would cut reads as another number
            text = self.glyphs.tick + ("" if cell < pointer <= cell + len(label) or cell == pointer else label)
            if cell + len(text) <= count:
                chars[cell : cell + len(text)] = list(text)
        if 0 <= pointer < count:
            chars[pointer], styles[pointer] = self.glyphs.pointer, self.palette.cursor
        unit = fit(f"{marks.unit.name} ", self.label_width, right=True)
        return [Segment(unit, self.palette.quiet), *merged(chars, styles)]

    def _lane(self, number: int) -> list[Segment]:
        row = self.rows[number]
        painted = self._painted(row)
        chars, styles = list(painted.chars), list(painted.styles)
        self._overlay_selection(row, chars, styles)
        self._overlay_cursor(chars, styles)
        return [*self._label(number, row, painted.utilisation), *merged(chars, styles)]

    def _painted(self, row: Row) -> Painted:
        view = self.view
        key = (row.lane, row.core, view.start, view.end, self.cells)
        found = self._drawn.get(key)
        if found is None:
            edges = edges_of(view.start, view.end, self.cells)
            if row.lane >= 0:
                index = self.session.indexes[row.lane]
                found = paint_lane(self.session.profile, index, edges, self.palette, self.glyphs)
            else:
                found = paint_core(self.session.indexes.by_core[row.core], edges, self.palette, self.glyphs)
            self._drawn[key] = found
            if len(self._drawn) > KEPT:
                self._drawn.popitem(last=False)
        return found

    def _label(self, number: int, row: Row, share: float) -> list[Segment]:
        width = self.label_width
        selected = number == self.selected_row(self.view)
        mark = self.glyphs.mark if selected else " "
        percent = percent_text(share, guessed=row.guessed)
        room = width - len(percent) - 3
        label = row.label
        group, _, own = label.rpartition(" ")
        if not row.first and row.lane >= 0 and number > self.top and not selected:
            label = " " * (len(group) + 1) + own
        if room < 3:
            return [Segment(fit(mark + row.label, width), self.palette.text)]
        style = self.palette.strong if selected else self.palette.text
        number_style = self.palette.text if share else self.palette.quiet
        return [
            Segment(mark, self.palette.key),
            Segment(fit(label, room), style),
            Segment(f" {percent} ", number_style),
        ]

    def _overlay_cursor(self, chars: list[str], styles: list[Style]) -> None:
        cell = cell_at(self.view.cursor, self.view.start, self.view.end, self.cells)
        if not 0 <= cell < len(chars):
            return
        if chars[cell] == " " and not styles[cell].reverse and styles[cell].bgcolor is None:
            chars[cell], styles[cell] = self.glyphs.cursor, self.palette.quiet
        else:
            styles[cell] = self.palette.on_cursor(styles[cell])

    def _overlay_selection(self, row: Row, chars: list[str], styles: list[Style]) -> None:
        selection = self.view.selection
        if selection.row < 0 or row.lane != selection.lane:
            return
        start, end = self.session.span_of(selection.lane, selection.row)
        view, count = self.view, self.cells
        if end < view.start or start >= view.end:
            return
        first = max(cell_at(start, view.start, view.end, count), 0)
        last = min(cell_at(max(end - 1, start), view.start, view.end, count), count - 1)
        for cell in range(first, last + 1):
            styles[cell] = self.palette.on_selected(styles[cell])
        if first <= last and last - first >= 2 and cell_at(start, view.start, view.end, count) == first:
            chars[first] = self.glyphs.mark

    def _bottom(self, width: int) -> list[Segment]:
        """What is at the cursor, and the legend where the border has no room for it."""
        info = self._info()
        legend = f" {self.legend_text()} " if not self.styles.border_bottom[0] else ""
        room = width - cell_len(info) - cell_len(legend)
        if room < 1:
            return [Segment(fit(info, width), self.palette.text)]
        return [Segment(info + " " * room, self.palette.text), Segment(legend, self.palette.quiet)]

    def _info(self) -> str:
        """What is at the cursor, in words."""
        view = self.view
        resolution = max(view.span // max(self.cells, 1), 1)
        text = f" {exact_time(view.cursor, resolution)}"
        number = self.selected_row(view)
        if number < 0:
            return f"{text}  j k lane, Enter selects"
        row = self.rows[number]
        if row.lane < 0:
            return f"{text}  {row.label}  (e: its engines)"
        found = self.event_under_cursor(row.lane, view)
        if found < 0:
            return f"{text}  {row.label}  idle"
        return f"{text}  {row.label}  {self.describe(row.lane, found)}"

    def describe(self, lane_number: int, row: int) -> str:
        """An instruction in one line."""
        profile, lane = self.session.profile, self.session.profile.lanes[lane_number]
        start, end = self.session.span_of(lane_number, row)
        name = text_of(profile, lane, "name", row) or f"instruction {row:,}"
        kernel = text_of(profile, lane, "kernel", row)
        role = ("", f" ({GUESS if lane.role_guessed else ''}wait)", f" ({GUESS if lane.role_guessed else ''}sync)")
        what = role[int(lane.take("role", slice(row, row + 1))[0]) % 3]
        return f"{name}{what}  {time_text(end - start)}{f'  in {kernel}' if kernel else ''}"

    def event_under_cursor(self, lane: int, view: ViewState) -> int:
        """Row of the instruction at the cursor, or the nearest inside the cursor's cell; -1 without one."""
        near = max((view.end - view.start) // max(self.cells, 1), 1)
        index = self.session.indexes[lane]
        return event_at(index, view.cursor, near) if len(index.lane) else -1

    # keys

    def _ask(self, update: Callable[[ViewState], ViewState]) -> None:
        self.post_message(Change(update))

    def action_zoom_in(self) -> None:
        """Half the span."""
        self._ask(lambda view: view.zoomed(view.span // 2, self.cells))

    def action_zoom_out(self) -> None:
        """Twice the span."""
        self._ask(lambda view: view.zoomed(view.span * 2, self.cells))

    def action_pan_left(self) -> None:
        """A tenth of the window back."""
        self._ask(lambda view: view.panned(-max(view.span // 10, 1)))

    def action_pan_right(self) -> None:
        """A tenth of the window on."""
        self._ask(lambda view: view.panned(max(view.span // 10, 1)))

    def action_window_left(self) -> None:
        """A whole window back."""
        self._ask(lambda view: view.panned(-view.span))

    def action_window_right(self) -> None:
        """A whole window on."""
        self._ask(lambda view: view.panned(view.span))

    def action_cursor_left(self) -> None:
        """A cell back."""
        self._step_cursor(-1)

    def action_cursor_right(self) -> None:
        """A cell on."""
        self._step_cursor(1)

    def _step_cursor(self, cells: int) -> None:
        count = self.cells

        def stepped(view: ViewState) -> ViewState:
            cell = cell_at(view.cursor, view.start, view.end, count) + cells
            if 0 <= cell < count:
                edges = edges_of(view.start, view.end, count)
                return view.at((int(edges[cell]) + max(int(edges[cell + 1]) - 1, int(edges[cell]))) // 2)
            return view.at(view.cursor + cells * max(view.span // count, 1))

        self._ask(stepped)

    def action_lane_first(self) -> None:
        """Cursor to the window's start."""
        self._ask(lambda view: view.at(view.start))

    def action_lane_last(self) -> None:
        """Cursor to the window's end."""
        self._ask(lambda view: view.at(view.end - 1))

    def action_lane_down(self) -> None:
        """The lane below."""
        self._step_lane(1)

    def action_lane_up(self) -> None:
        """The lane above."""
        self._step_lane(-1)

    def action_lane_page_down(self) -> None:
        """A screenful of lanes down."""
        self._step_lane(self.lines)

    def action_lane_page_up(self) -> None:
        """A screenful of lanes up."""
        self._step_lane(-self.lines)

    def _step_lane(self, lines: int) -> None:
        def stepped(view: ViewState) -> ViewState:
            if not self.rows:
                return view
            now = self.selected_row(view)
            wanted = 0 if now < 0 else min(max(now + lines, 0), len(self.rows) - 1)
            return view if wanted == now else replace(view, selection=self._selection_of(wanted))

        self._ask(stepped)

    def _selection_of(self, number: int) -> Selection:
        row = self.rows[number]
        return Selection(row.core, row.lane)

    def action_fit(self) -> None:
        """The whole capture."""
        self._ask(ViewState.fitted)

    def action_engines(self) -> None:
        """Engines or cores."""
        self._ask(lambda view: replace(view, rows="cores" if view.rows == "engines" else "engines"))

    def action_previous(self) -> None:
        """The instruction before."""
        self._step_event(-1)

    def action_next(self) -> None:
        """The instruction after."""
        self._step_event(1)

    def _step_event(self, steps: int) -> None:
        self._ask(lambda view: stepped_event(self.session, view, steps, self._lane_for_steps(view)))

    def _lane_for_steps(self, view: ViewState) -> int:
        if view.selection.lane >= 0:
            return view.selection.lane
        number = self.selected_row(view)
        core = self.rows[number].core if number >= 0 else -1
        lanes = self.session.profile.lanes
        fitting = [place for place in self.session.lanes_in(view.scope) if core < 0 or lanes[place].core == core]
        return next((place for place in fitting if len(lanes[place])), -1)

    def action_select(self) -> None:
        """The instruction at the cursor becomes the selection; its detail shows."""

        def selected(view: ViewState) -> ViewState:
            lane = self._lane_for_steps(view)
            row = self.event_under_cursor(lane, view) if lane >= 0 else -1
            if row < 0:
                return view
            return replace(view, selection=Selection(self.session.core_of(lane), lane, row))

        self._ask(selected)
        self.post_message(ShowDetail())

    # mouse

    def on_click(self, event: events.Click) -> None:
        """Puts the cursor where the mouse is and selects what is there."""
        offset = event.get_content_offset(self)
        if offset is None or offset.x < self.label_width:
            return
        cell, line = offset.x - self.label_width, offset.y - 1 + self.top

        def clicked(view: ViewState) -> ViewState:
            edges = edges_of(view.start, view.end, self.cells)
            view = view.at((int(edges[cell]) + int(edges[cell + 1])) // 2)
            if not 0 <= line < len(self.rows) or not 1 <= offset.y <= self.lines:
                return view
            selection = self._selection_of(line)
            row = self.event_under_cursor(selection.lane, view) if selection.lane >= 0 else -1
            return replace(view, selection=replace(selection, row=row))

        self._ask(clicked)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Zoom in."""
        event.stop()
        self.action_zoom_in()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Zoom out."""
        event.stop()
        self.action_zoom_out()


def stepped_event(session: Session, view: ViewState, steps: int, lane: int) -> ViewState:
    """The state with the instruction ``steps`` after the selected one, or the nearest to the cursor, selected."""
    if lane < 0 or not len(session.profile.lanes[lane]):
        return view
    if view.selection.lane == lane and view.selection.row >= 0:
        row = view.selection.row + steps
    else:
        row = event_at(session.indexes[lane], view.cursor, view.full_end - view.full_start)
    row = min(max(row, 0), len(session.profile.lanes[lane]) - 1)
    start, end = session.span_of(lane, row)
    moved = view.showing(start, max(end, start + 1)).at(start)
    return replace(moved, selection=Selection(session.core_of(lane), lane, row))
