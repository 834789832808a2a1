"""Lanes over time as they are drawn: ruler, a line for each engine or core, one cursor."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.content import Content
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from ...analysis.lane_index import event_at
from ..axis import cell_at, edges_of, ruler
from ..colouring import TITLES
from ..format import GUESS, clean, exact_time, fit, percent_text, time_text
from ..glyphs import Glyphs
from ..launches import core_text, launch_text, launches
from ..navigation import measured_text
from ..painter import Painted, merged, paint_core, paint_lane, text_of
from ..rows import Row, is_pinned, rows_of
from ..session import Session
from ..state import Colouring, ViewState
from ..strips import legend_lines, paint_strip
from ..theme import Palette

#: Drawn lanes that are kept: a moved cursor or selection needs no new occupancy.
KEPT = 256


class LaneView(Widget, can_focus=True):
    """Lanes over time. Draws only what is visible; keeps what it has drawn until the window changes."""

    DEFAULT_CSS = "LaneView { height: 1fr; }"

    def __init__(self, session: Session, view: ViewState, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(id="timeline")
        self.session = session
        self.view = view
        self.palette = palette
        self.glyphs = glyphs
        self.rows: list[Row] = []
        self.top = 0
        self._drawn: OrderedDict[tuple[Hashable, ...], Painted] = OrderedDict()
        self._legend: tuple[tuple[Colouring, int], list[list[Segment]]] = (("operation", -1), [])
        self._longest = 6
        self._base = Style.null()
        self._titles = ("", "")
        self._take_rows()

    def _take_rows(self) -> None:
        self.rows = rows_of(self.session, self.view)
        self._longest = max((len(row.label) for row in self.rows), default=6)
        self._pinned = next((n for n, row in enumerate(self.rows) if not is_pinned(row, self.view)), len(self.rows))

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
        return max(self.size.height - 1 - self._info_lines - len(self.legend_lines), 1)

    @property
    def legend_lines(self) -> list[list[Segment]]:
        """Lines that explain the colours; none where they are not wanted or have no room."""
        width, height = self.size
        if not self.view.legend or (height < 6 and height):
            return []
        key = (self.view.colouring, width)
        if self._legend[0] != key:
            profile, colouring = self.session.profile, self.view.colouring
            self._legend = key, legend_lines(profile, colouring, width, self.palette, self.glyphs)
        return self._legend[1]

    @property
    def pins(self) -> int:
        """Lines on top that do not scroll: the pinned ones, unless they would leave no room for others."""
        return self._pinned if self._pinned < self.lines - 1 else 0

    def number_at(self, line: int) -> int:
        """Place in ``rows`` of a line below the ruler; -1 where there is none."""
        number = line if line < self.pins else line + self.top
        return number if 0 <= line < self.lines and number < len(self.rows) else -1

    def line_of(self, number: int) -> int:
        """The line below the ruler that shows a place in ``rows``; -1 where it is out of sight."""
        line = number if number < self.pins else number - self.top
        return line if (number < self.pins or line >= self.pins) and 0 <= line < self.lines else -1

    @property
    def _info_lines(self) -> int:
        return 1 if self.size.height >= 4 else 0

    def wanted_height(self) -> int:
        """Lines it would take to show everything."""
        return len(self.rows) + 2 + len(self.legend_lines)

    def selected_row(self, view: ViewState) -> int:
        """Line of the selected lane or core; -1 without one."""
        selection = view.selection
        for number, row in enumerate(self.rows):
            if row.is_strip or (row.kind and selection.lane >= 0):
                continue
            if row.lane == selection.lane if row.lane >= 0 else selection.core == row.core:
                return number
        if selection.lane < 0 and selection.core >= 0:
            return next((number for number, row in enumerate(self.rows) if row.core == selection.core), -1)
        return -1

    # state

    def show(self, view: ViewState) -> None:
        """Shows a state, repainting only what it changes."""
        old, self.view = self.view, view
        if (old.scope, old.rows, old.strip, old.pinned) != (view.scope, view.rows, view.strip, view.pinned):
            self._take_rows()
        top, before = self.top, self.selected_row(old)
        self._scroll_to_selection()
        same = replace(
            old, cursor=view.cursor, selection=view.selection, sort=view.sort, in_window=view.in_window,
            search=view.search, columns=view.columns, percent=view.percent, picked=view.picked,
            marks=view.marks, range=view.range, anchor=view.anchor,
        )  # fmt: skip
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
        scope = "" if view.scope.everything else f"  only {clean(self.session.scope_title(view.scope))}"
        colours = "" if view.colouring == "operation" else f"  colours: {TITLES[view.colouring].partition(',')[0]}"
        return f"1 Timeline{scope}  {window} ({part}){colours}"

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
            top = top if row < self.pins else min(max(top, row - self.lines + 1), row - self.pins)
        self.top = max(top, 0)

    def _refresh_parts(self, old: ViewState, before: int) -> None:
        """Repaints what a moved cursor or selection changes since ``old``, when ``before`` was the selected line."""
        view, (width, height) = self.view, self.size
        regions = [Region(0, 0, width, 1)]
        if self._info_lines:
            regions.append(Region(0, height - 1, width, 1))
        if old.selection != view.selection:
            lines = {self.line_of(number) for number in (before, self.selected_row(view)) if number >= 0}
            regions += [Region(0, line + 1, width, 1) for line in lines if line >= 0]
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
            number, below = self.number_at(y - 1), y - 1 - self.lines
            if number >= 0:
                segments = self._lane(number)
            elif 0 <= below < len(self.legend_lines):
                segments = self.legend_lines[below]
            else:
                return Strip([Segment(" " * width, base)], width)
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
        self._rule_range(chars, styles)
        for letter, time in view.marks:
            cell = cell_at(time, view.start, view.end, count)
            if 0 <= cell < count:
                chars[cell], styles[cell] = letter, self.palette.chosen
        if 0 <= pointer < count:
            chars[pointer], styles[pointer] = self.glyphs.pointer, self.palette.cursor
        unit = fit(f"{marks.unit.name} ", self.label_width, right=True)
        return [Segment(unit, self.palette.quiet), *merged(chars, styles)]

    def _rule_range(self, chars: list[str], styles: list[Style]) -> None:
        """The range on the ruler: its ends in brackets, what lies between on another ground."""
        view, count = self.view, len(chars)
        if view.range is None and view.anchor is None:
            return
        start, end = view.range or (view.anchor or 0, (view.anchor or 0) + 1)
        if end <= view.start or start >= view.end:
            return
        first = cell_at(start, view.start, view.end, count)
        last = cell_at(end - 1, view.start, view.end, count)
        low, high = max(first, 0), min(last, count - 1)
        styles[low : high + 1] = [self.palette.bar] * (high + 1 - low)
        if view.range is not None and last == high and last > first:
            chars[last] = "]"
        if first == low:
            chars[first] = "["

    def _lane(self, number: int) -> list[Segment]:
        row = self.rows[number]
        painted = self._painted(row)
        chars, styles = list(painted.chars), list(painted.styles)
        self._overlay_selection(row, chars, styles)
        self._overlay_cursor(chars, styles)
        return [*self._label(number, row, painted.utilisation), *merged(chars, styles)]

    def _painted(self, row: Row) -> Painted:
        view = self.view
        key = (row.kind, row.lane, row.core, view.start, view.end, self.cells, view.colouring)
        found = self._drawn.get(key)
        if found is None:
            found = self._paint(row, edges_of(view.start, view.end, self.cells))
            self._drawn[key] = found
            if len(self._drawn) > KEPT:
                self._drawn.popitem(last=False)
        return found

    def _paint(self, row: Row, edges: npt.NDArray[np.int64]) -> Painted:
        session, palette, glyphs = self.session, self.palette, self.glyphs
        profile = session.profile
        if row.kind == "launches":
            return paint_lane(profile, launches(session, row.core), edges, palette, glyphs, "kernel")
        if row.lane < 0:
            return paint_core(session.indexes.by_core[row.core], edges, palette, glyphs)
        if row.kind:
            return paint_strip(profile, session.indexes[row.lane], edges, row.kind, palette, glyphs)
        return paint_lane(profile, session.indexes[row.lane], edges, palette, glyphs, self.view.colouring)

    def _label(self, number: int, row: Row, share: float) -> list[Segment]:
        width = self.label_width
        selected = number == self.selected_row(self.view)
        mark = self.glyphs.mark if selected else " "
        percent = percent_text(share, guessed=row.guessed)
        room = width - len(percent) - 3
        label = row.label
        group, _, own = label.rpartition(" ")
        if row.is_strip:
            label = fit(label, min(self._longest, max(room, 0)), right=True)
        elif not row.first and not selected and self._continues(number):
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

    def _continues(self, number: int) -> bool:
        """Whether the line above belongs to the same core or group, so that it need not be named again."""
        line, row = self.line_of(number), self.rows[number]
        if line == 0 or line <= self.pins or row.lane < 0:
            return False
        above = self.rows[number - 1]
        lanes = self.session.profile.lanes
        group = lanes[row.lane].group
        return above.core == row.core if above.lane < 0 else lanes[above.lane].group == group

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
        if selection.row < 0 or row.lane != selection.lane or row.kind:
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
        """What is at the cursor, what is measured, and the legend where the border has no room for it."""
        info, measured = self._info(), measured_text(self.view)
        told = f" {measured} " if measured else ""
        legend = f" {self.legend_text()} " if not self.styles.border_bottom[0] else ""
        if cell_len(info) + cell_len(told) + cell_len(legend) + 1 > width:
            legend = ""
        info = fit(info, max(width - cell_len(told) - cell_len(legend), 0))
        return [
            Segment(info, self.palette.text), Segment(told, self.palette.strong), Segment(legend, self.palette.quiet),
        ]  # fmt: skip

    def _info(self) -> str:
        """What is at the cursor, in words."""
        view = self.view
        resolution = max(view.span // max(self.cells, 1), 1)
        text = f" {exact_time(view.cursor, resolution)}"
        number = self.selected_row(view)
        if number < 0:
            return f"{text}  j k lane, Enter selects"
        row = self.rows[number]
        if row.kind == "launches":
            return f"{text}  {row.label}  {launch_text(self.session, row.core, view.cursor)}"
        if row.lane < 0:
            return f"{text}  {row.label}  {core_text(self.session, row.core, view.cursor)}"
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
