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

from tpuprof_tui.analysis.index.axis import edges_of
from tpuprof_tui.analysis.links.launches import launch_text, launches, launches_with, unit_text
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.selecting.navigation import measured_text
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import ViewState
from tpuprof_tui.analysis.selecting.step_filter import chosen_step
from tpuprof_tui.analysis.steps.step_lane import step_lane
from tpuprof_tui.app.drawing.colouring import is_summed, title_of
from tpuprof_tui.app.drawing.glyphs import Glyphs
from tpuprof_tui.app.drawing.painter import Painted, merged, paint_lane, paint_passing, paint_unit
from tpuprof_tui.app.drawing.step_bars import paint_steps
from tpuprof_tui.app.drawing.strips import paint_strip
from tpuprof_tui.app.drawing.theme import Palette
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit
from tpuprof_tui.formats.units import GUESS, percent_text

from ..scrolling import SidesCache
from .lane_work import LaneWork
from .rows import Row, continued_label

#: Drawn lanes that are kept: a moved cursor or selection needs no new occupancy.
KEPT = 512
#: Narrower panes have no room for what a line is made of.
_NARROW = 24


class LaneView(LaneWork):
    """Lanes over time. Draws only what is visible; keeps what it has drawn until the window changes."""

    DEFAULT_CSS = "LaneView { height: 1fr; }"

    def __init__(self, session: Session, view: ViewState, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(session, view, palette, glyphs)
        self._drawn: OrderedDict[tuple[Hashable, ...], Painted] = OrderedDict()
        self._styles_cache = SidesCache()
        self._selected = -1
        self._titles = ("", "")

    def on_mount(self) -> None:
        """What the first state needs is asked for."""
        self.prepare()

    # state

    def show(self, view: ViewState) -> None:
        """Shows a state, repainting only what it changes."""
        old, self.view = self.view, view
        if (old.scope, old.rows, old.strip, old.pinned) != (view.scope, view.rows, view.strip, view.pinned):
            self._take_rows()
        top, before = self.top, self.selected_row(old)
        tied = {tie.lane for tie in self.ties}
        self._scroll_to_selection()
        self.prepare()
        same = replace(
            old, cursor=view.cursor, selection=view.selection, sort=view.sort, in_window=view.in_window,
            search=view.search, columns=view.columns, percent=view.percent, picked=view.picked,
            marks=view.marks, spans=view.spans, anchor=view.anchor,
        )  # fmt: skip
        if same == view and top == self.top:
            self._refresh_parts(old, before, tied | {tie.lane for tie in self.ties})
            return
        self.refresh()
        self.retitle()

    def retitle(self) -> None:
        """Sets titles that have changed: each setting repaints the whole pane."""
        titles = (self.title_text(), self.legend_text())
        if titles != self._titles:
            self._titles = titles
            self.border_title, self.border_subtitle = Content(titles[0]), Content(titles[1])

    def title_text(self) -> str:
        """The visible window, for the border, and what changes the meaning of what is drawn."""
        view, measure = self.view, self.measure
        window = f"{measure.exact(view.start, self.resolution)} to {measure.exact(view.end, self.resolution)}"
        part = "all" if view.fits_all else measure.length(view.span)
        scope = "" if view.scope.everything else f"  only {clean(self.session.scope_title(view.scope))}"
        chosen = view.colouring != "operation" and self.shows_colours
        colours = (
            ""
            if not chosen
            else f"  colours: {title_of(self.session.profile.vocabulary, view.colouring).partition(',')[0]}"
        )
        waiting = " (computing ...)" if self.is_summing() else ""
        passing = f"  pass {clean(view.filter)}" if view.filter else ""
        counted = self.session.counted(*view.figures_window)
        shares = "  % of range" if view.range is not None else ""
        shares = shares if counted == view.figures_window else "  % of the device's time"
        return f"1 Timeline{scope}{passing}  {window} ({part}){shares}{colours}{waiting}"

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
        if self.passing is not None:
            meaning += f"  {glyphs.hidden} filtered out"
        return f"{meaning}{above}{hidden}"

    def on_resize(self, event: events.Resize) -> None:
        """More or fewer lanes fit."""
        self._scroll_to_selection()
        self.retitle()

    def _scroll_to_selection(self) -> None:
        row = self.selected_row(self.view)
        top = min(self.top, max(len(self.rows) - self.lines, 0))
        if row >= 0:
            top = top if row < self.pins else min(max(top, row - self.lines + 1), row - self.pins)
        self.top = max(top, 0)

    def _refresh_parts(self, old: ViewState, before: int, tied: set[int]) -> None:
        """Repaints what a moved cursor or selection changes since ``old``, when ``before`` was the selected line.

        ``tied``: lanes with marks of dependencies, now or then.
        """
        view, (width, height) = self.view, self.size
        regions = [Region(0, 0, width, 1)]
        if self._info_lines:
            regions.append(Region(0, height - 1, width, 1))
        if old.selection != view.selection:
            lines = {self.line_of(number) for number in (before, self.selected_row(view)) if number >= 0}
            if tied:
                lines |= {self.line_of(number) for number, row in enumerate(self.rows) if row.lane in tied}
            regions += [Region(0, line + 1, width, 1) for line in lines if line >= 0]
        if old.cursor != view.cursor:
            cells = {self.cell_of(time) for time in (old.cursor, view.cursor)}
            regions += [Region(self.label_width + cell, 0, 1, height) for cell in cells if 0 <= cell < self.cells]
        self.refresh(*regions)

    # drawing

    def render_lines(self, crop: Region) -> list[Strip]:
        """Lines of a region; what they share is looked up once."""
        self._extent = self.size
        self._selected = self.selected_row(self.view)
        try:
            return super().render_lines(crop)
        finally:
            self._extent = None

    def render_line(self, y: int) -> Strip:
        """Ruler, lanes, and what is at the cursor."""
        width, height = self.extent
        if y == 0:
            segments = self._ruler()
        elif self._info_lines and y == height - 1:
            segments = self._bottom(width)
        else:
            number, below = self.number_at(y - 1), y - 1 - self.lines
            if number >= 0:
                # label and cells together are as wide as the pane: nothing needs to be measured
                known = width if width > _NARROW else None
                return Strip(self._lane(number), known).adjust_cell_length(width)
            if 0 <= below < len(self.legend_lines):
                segments = self.legend_lines[below]
            else:
                return Strip([Segment(" " * width)], width)
        return Strip(segments).adjust_cell_length(width)

    def _ruler(self) -> list[Segment]:
        view, count = self.view, self.cells
        marks = self.measure.ruler(view.start, view.end, count)
        chars = [" "] * count
        styles = [self.palette.quiet] * count
        pointer = self.cell_of(view.cursor)
        ends = [(letter, time) for letter, start, end in view.spans for time in (start, end - 1)]
        letters = [(letter, self.cell_of(time)) for letter, time in (*ends, *view.marks)]
        taken = [pointer, *(cell for _, cell in letters)]
        taken += [self.cell_of(view.range[0]), self.cell_of(view.range[1] - 1)] if view.range else []
        for cell, label in marks.ticks:
            # a label that a pointer or a letter would cut reads as another number
            text = self.glyphs.tick + ("" if any(cell <= each <= cell + len(label) for each in taken) else label)
            if cell + len(text) <= count:
                chars[cell : cell + len(text)] = list(text)
        self._rule_range(chars, styles)
        for letter, cell in letters:
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
        first, last = self.cell_of(start), self.cell_of(end - 1)
        low, high = max(first, 0), min(last, count - 1)
        styles[low : high + 1] = [self.palette.bar] * (high + 1 - low)
        if view.range is not None and last == high and last > first:
            chars[last] = "]"
        if first == low:
            chars[first] = "["

    def _lane(self, number: int) -> list[Segment]:
        row = self.rows[number]
        view = self.view
        painted = self._painted(row, view.start, view.end, self.cells)
        start, end = self.session.counted(*view.figures_window, row.lane)
        told = painted if (start, end) == (view.start, view.end) else self._painted(row, start, max(end, start + 1), 1)
        label = self._label(number, row, told.utilisation if end > start else 0.0)
        selected = view.selection.row >= 0 and row.lane == view.selection.lane
        if not selected and all(tie.lane != row.lane for tie in self.ties):
            return [*label, *self._with_cursor(painted)]
        chars, styles = list(painted.chars), list(painted.styles)
        self._overlay_selection(row, chars, styles)
        self._overlay_ties(row, chars, styles)
        self._overlay_cursor(chars, styles)
        return [*label, *merged(chars, styles)]

    def _painted(self, row: Row, start: int, end: int, cells: int) -> Painted:
        filtered = self.passing.text if self.passing is not None else ""
        pending = self._is_pending(row)
        chosen = chosen_step(self.view.filter) if row.kind == "steps" else None
        what = (row.kind, row.lane, row.unit, self.view.colouring, filtered, pending, chosen)
        key = (*what, start, end, cells, id(self.palette))
        found = self._drawn.get(key)
        if found is None:
            found = self._drawn[key] = self._paint(row, edges_of(start, end, cells), pending)
            if len(self._drawn) > KEPT:
                self._drawn.popitem(last=False)
        return found

    def _is_pending(self, row: Row) -> bool:
        """Whether sums that the line rests on are still being made."""
        if self._is_small or row.lane < 0 or row.kind == "utilisation":
            return False
        colouring = "bandwidth" if row.kind == "bandwidth" else self.view.colouring
        return not all(is_summed(session.indexes[row.lane], colouring) for session in self._sessions())

    def _paint(self, row: Row, edges: npt.NDArray[np.int64], pending: bool) -> Painted:
        if row.kind == "steps":
            view = self.view
            index, word = step_lane(self.session, view.scope.group), self.session.steps.word.one
            return paint_steps(index, word, chosen_step(view.filter), edges, self.palette, self.glyphs)
        whole = self._paint_of(self.session, row, edges, pending)
        if self.passing is None:
            return whole
        passing = self._paint_of(self.passing.session, row, edges, pending)
        # dots tell what is hidden beside what passes: where nothing of a lane does, it is empty
        return (
            passing
            if row.is_strip or not self._passes(row)
            else paint_passing(whole, passing, self.palette, self.glyphs)
        )

    def _passes(self, row: Row) -> bool:
        """Whether anything of a line passes the filter, wherever it lies."""
        if self.passing is None:
            return True
        lanes = self.passing.session.profile.lanes
        return (
            len(lanes[row.lane]) > 0
            if row.lane >= 0
            else any(len(lane) for number, lane in enumerate(lanes) if self.session.unit_of(number) == row.unit)
        )

    def _paint_of(self, session: Session, row: Row, edges: npt.NDArray[np.int64], pending: bool) -> Painted:
        """A line with the instructions of a session: all, or those that pass."""
        palette, glyphs, profile = self.palette, self.glyphs, self.session.profile
        if row.kind == "launches":
            whole = session is self.session
            index = launches(session, row.unit) if whole else launches_with(self.session, session, row.unit)
            return paint_lane(profile, index, edges, palette, glyphs, "kernel")
        if row.lane < 0:
            return paint_unit(session.indexes.by_unit[row.unit], edges, palette, glyphs)
        index = session.indexes[row.lane]
        if row.kind == "bandwidth" or row.kind == "utilisation":
            return paint_strip(profile, index, edges, row.kind, palette, glyphs, pending=pending)
        return paint_lane(profile, index, edges, palette, glyphs, self.view.colouring, pending=pending)

    def _label(self, number: int, row: Row, share: float) -> list[Segment]:
        width = self.label_width
        selected = number == self._selected
        mark = self.glyphs.mark if selected else " "
        percent = percent_text(share, guessed=row.guessed)
        room = width - len(percent) - 3
        label = row.label
        if row.is_strip:
            label = fit(label, min(self._longest, max(room, 0)), right=True)
        elif not row.first and not selected and self._continues(number):
            label = continued_label(self.rows, number)
        if room < 3:
            return [Segment(fit(mark + row.label, width), self.palette.text)]
        style = self.palette.strong if selected else self.palette.text
        number_style = self.palette.text if share else self.palette.quiet
        return [
            Segment(mark, self.palette.key),
            Segment(fit(label, room), style),
            Segment(f" {percent} ", number_style),
        ]

    def _with_cursor(self, painted: Painted) -> list[Segment]:
        """A line as it is drawn, but for the cell under the cursor."""
        cell = self.cell_of(self.view.cursor)
        if not 0 <= cell < len(painted.chars):
            return painted.runs[0]
        return painted.replaced(cell, *self._under_cursor(painted.chars[cell], painted.styles[cell]))

    def _overlay_cursor(self, chars: list[str], styles: list[Style]) -> None:
        cell = self.cell_of(self.view.cursor)
        if 0 <= cell < len(chars):
            chars[cell], styles[cell] = self._under_cursor(chars[cell], styles[cell])

    def _under_cursor(self, char: str, style: Style) -> tuple[str, Style]:
        if char == " " and not style.reverse and style.bgcolor is None:
            return self.glyphs.cursor, self.palette.quiet
        return char, self.palette.on_cursor(style)

    def _overlay_selection(self, row: Row, chars: list[str], styles: list[Style]) -> None:
        selection = self.view.selection
        if selection.row < 0 or row.lane != selection.lane or row.kind:
            return
        start, end = self.session.span_of(selection.lane, selection.row)
        if end < self.view.start or start >= self.view.end:
            return
        first = max(self.cell_of(start), 0)
        last = min(self.cell_of(max(end - 1, start)), self.cells - 1)
        for cell in range(first, last + 1):
            styles[cell] = self.palette.on_selected(styles[cell])
        if first <= last and last - first >= 2 and self.cell_of(start) == first:
            chars[first] = self.glyphs.mark

    def _overlay_ties(self, row: Row, chars: list[str], styles: list[Style]) -> None:
        """Where what released the selected instruction ended, and where what it released begins.

        What lies outside the window, that before on the left and that after on the right, is marked at its edge.
        """
        if row.kind or row.lane < 0:
            return
        last = len(chars) - 1
        for tie in reversed(self.ties):
            cell = self.cell_of(tie.time)
            cell = max(cell, 0) if tie.released else min(cell, last)
            if tie.lane == row.lane and 0 <= cell <= last:
                # half of a wide character would leave the line too short
                before, after = chars[cell] == "", cell < last and chars[cell + 1] == ""
                chars[cell] = self.glyphs.released if tie.released else self.glyphs.releases
                styles[cell] = self.palette.tie
                if before:
                    chars[cell - 1] = " "
                if after:
                    chars[cell + 1] = " "

    def _bottom(self, width: int) -> list[Segment]:
        """What is at the cursor, what is measured, and the legend where the border has no room for it."""
        info, measured = self._info(), measured_text(self.view, self.measure)
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
        view, measure = self.view, self.measure
        text = f" {measure.exact(view.cursor, self.resolution)}"
        number = self.selected_row(view)
        if not self.rows:
            return f"{text}  no lanes: 4 shows the problems, O opens another capture"
        if number < 0:
            return f"{text}  j k lane, Enter selects"
        row = self.rows[number]
        if row.kind == "launches":
            return f"{text}  {row.label}  {launch_text(self.session, row.unit, view.cursor, measure)}"
        if row.lane < 0:
            return f"{text}  {row.label}  {unit_text(self.session, row.unit, view.cursor, measure)}"
        found = self.event_under_cursor(row.lane, view)
        if found < 0:
            return f"{text}  {row.label}  idle"
        hidden = self.passing is not None and not self.passing.lane(row.lane)[found]
        ties = self._ties_text() if (row.lane, found) == (view.selection.lane, view.selection.row) else ""
        told, kernel = self.describe(row.lane, found)
        return f"{text}  {row.label}  {told}{'  (filtered out)' if hidden else ''}{ties}{kernel}"

    def _ties_text(self) -> str:
        """What released the selected instruction, and what it released; the closest by name."""
        told = ""
        for released, glyph, word in ((True, self.glyphs.released, "after"), (False, self.glyphs.releases, "before")):
            ties = [tie for tie in self.ties if tie.released is released]
            if ties:
                lane = self.session.profile.lanes[ties[0].lane]
                name = text_of(self.session.profile, lane, "name", ties[0].row) or self.session.say("{event}")
                more = f" and {len(ties) - 1:,} more" if len(ties) > 1 else ""
                title = clean(self.session.title_of(ties[0].lane))
                told += f"  {glyph} {self.measure.length(ties[0].slack_ns)} {word} {name} ({title}){more}"
        return told

    def describe(self, lane_number: int, row: int) -> tuple[str, str]:
        """An instruction in a few words, and its kernel function where that is known."""
        profile, lane = self.session.profile, self.session.profile.lanes[lane_number]
        start, end = self.session.span_of(lane_number, row)
        name = text_of(profile, lane, "name", row) or self.session.say("{event} {row:,}", row=row)
        kernel = text_of(profile, lane, "kernel", row)
        role = ("", f" ({GUESS if lane.role_guessed else ''}wait)", f" ({GUESS if lane.role_guessed else ''}sync)")
        what = role[int(lane.take("role", slice(row, row + 1))[0]) % 3]
        return f"{name}{what}  {self.measure.length(end - start)}", f"  in {kernel}" if kernel else ""
