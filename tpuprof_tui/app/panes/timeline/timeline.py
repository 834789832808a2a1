"""Timeline widget: lanes over time below a ruler, with title and legend; keys and mouse request state changes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from msgspec.structs import replace
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tpuprof_tui.analysis.counter_lines import counter_curve, counter_lines
from tpuprof_tui.analysis.index.lane_index import event_at
from tpuprof_tui.analysis.links.dependencies import LinkedEvent
from tpuprof_tui.analysis.links.launches import launch_text, unit_text
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.selecting.moves import go_to, measured_text, parse_time, pause_at
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, SelectedItem
from tpuprof_tui.analysis.selecting.time_scale import Measure
from tpuprof_tui.analysis.steps.step_figures import step_lane
from tpuprof_tui.app.drawing.colouring import known_names, name_numbers, title_of
from tpuprof_tui.app.drawing.glyphs import Glyphs
from tpuprof_tui.app.drawing.theme import Palette
from tpuprof_tui.app.settings.actions import bindings
from tpuprof_tui.app.shell.messages import Background, ChangeState, CopyText, Request, ShowMessage
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.parsing import TypedError, range_text
from tpuprof_tui.formats.text import fit
from tpuprof_tui.formats.units import GUESS, amount_text, span_text
from tpuprof_tui.model import INT_MISSING

from ..prompt import Hint, PromptRequest, ask
from .changes import CHANGES, StateChange, event_selected, event_stepped, lane_opened
from .layout import LaneLayout
from .painting import LaneData, LanePainter


def timeline_title(layout: LaneLayout, *, computing: bool) -> str:
    """Title: scope, filter, visible window, colouring, and whether colours are still being computed."""
    session, state, measure = layout.session, layout.state, layout.measure
    window = f"{measure.exact(state.start, layout.resolution)} to {measure.exact(state.end, layout.resolution)}"
    part = "all" if state.fits_all else measure.length(state.span)
    scope = "" if state.scope.everything else f"  only {clean(session.scope_title(state.scope))}"
    chosen = state.colouring != "operation" and layout.shows_colours
    meaning = title_of(session.profile.vocabulary, state.colouring).partition(",")[0]
    colours = f"  colours: {meaning}" if chosen else ""
    waiting = " (computing ...)" if computing else ""
    passing = f"  pass {clean(state.filter)}" if state.filter else ""
    scrolled = state.figures_window != (state.start, state.end)
    shares = "  % of range" if state.range is not None else f"  % of {span_text(*state.figures_window)}" if (
        scrolled and state.viewed) else "  % of the whole" if scrolled else ""  # fmt: skip
    clipped = session.clip_window(*state.figures_window)
    shares = shares if clipped == state.figures_window else "  % of the device's time"
    base = "  next to its base" if layout.has_base else ""
    return f"1 Timeline{scope}{base}{passing}  {window} ({part}){shares}{colours}{waiting}"


def glyph_legend(layout: LaneLayout, glyphs: Glyphs, *, filtered: bool) -> str:
    """Legend of the glyphs, and the number of lanes scrolled out of view."""
    below = len(layout.rows) - layout.top - layout.lines
    hidden = f"  {glyphs.down}{below} more" if below > 0 else ""
    above = f"  {glyphs.up}{layout.top} more" if layout.top else ""
    if layout.state.line_unit == "units":
        shade = "T" if glyphs.letters else "▒"
        meaning = f"{glyphs.levels[8]} compute  {shade} exposed transfer"
    else:
        meaning = f"{glyphs.levels[8]} work  {glyphs.wait} wait  {glyphs.sync} sync"
    if layout.has_base:
        meaning += f"  {glyphs.gap} nothing here"
    if filtered:
        meaning += f"  {glyphs.hidden} filtered out"
    return f"{meaning}{above}{hidden}"


def at_cursor(layout: LaneLayout, lane_data: LaneData, glyphs: Glyphs) -> str:
    """Describes what the selected line shows at the cursor."""
    session, state, measure = layout.session, layout.state, layout.measure
    text = f" {measure.exact(state.cursor, layout.resolution)}"
    number = layout.selected_row(state)
    if not layout.rows:
        return f"{text}  no lanes: 4 shows the problems, O opens another capture"
    if number < 0:
        return f"{text}  j k lane, Enter selects"
    row = layout.rows[number]
    if row.kind == "launches":
        return f"{text}  {row.label}  {launch_text(session, row.unit, state.cursor, measure)}"
    if row.kind == "counters":
        return f"{text}  {_counters_text(session, state, row.counters)}"
    if row.lane < 0:
        return f"{text}  {row.label}  {unit_text(session, row.unit, state.cursor, measure)}"
    found, pause = layout.event_under_cursor(row.lane, state), state.selection.pause
    if found < 0 or (pause is not None and pause[0] <= state.cursor < pause[1]):
        pause = pause_at(session, state.selection, state, state.cursor)
        return f"{text}  {row.label}  {f'pause  {measure.length(pause[1] - pause[0])}' if pause else 'idle'}"
    hidden = lane_data.passing is not None and not lane_data.passing.lane(row.lane)[found]
    is_selected = (row.lane, found) == (state.selection.lane, state.selection.row)
    linked = _linked_events_text(session, lane_data.linked_events, measure, glyphs) if is_selected else ""
    description, kernel = _described(session, row.lane, found, measure)
    if (named := session.profile.vocabulary.names(state.colouring)) is not None:
        number = int(name_numbers(session.indexes[row.lane], np.array([found]), named.key)[0])
        if (names := known_names(session, named.key)) and number >= 0:
            # before the event's name, which may be longer than the line
            description = f"{named.title} {clean(names[number])}  {description}"
    return f"{text}  {row.label}  {description}{'  (filtered out)' if hidden else ''}{linked}{kernel}"


def _counters_text(session: Session, state: DisplayState, number: int) -> str:
    line = counter_lines(session)[number]
    title = f"{clean(session.profile.groups.title(line.group))} {line.label}" if line.group >= 0 else line.label
    if line.is_parent:
        verb = "folds" if number in state.unfolded else "shows"
        return f"{title}: {len(line.counters):,} counters, Enter {verb} them"
    curve, unit = counter_curve(session, line.counters[0]), session.profile.counters[line.counters[0]].unit
    start, end = state.figures_window
    mean = float(curve.means(np.array([start, end], np.int64))[0])
    values = [amount_text(value, unit) for value in (curve.at(state.cursor), mean, curve.maximum(start, end))]
    return "{}  {}  mean {}  max {}".format(title, *values)


def _linked_events_text(session: Session, ties: tuple[LinkedEvent, ...], measure: Measure, glyphs: Glyphs) -> str:
    text = ""
    for released, glyph, word in ((True, glyphs.released, "after"), (False, glyphs.releases, "before")):
        found = [tie for tie in ties if tie.released is released]
        if found:
            lane = session.profile.lanes[found[0].lane]
            name = text_of(session.profile, lane, "name", found[0].row, readable=True) or session.say("{event}")
            more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
            where = clean(session.title_of(found[0].lane))
            slack = found[0].slack_ns
            gap = f"{measure.length(abs(slack))} {word if slack >= 0 else 'together with'}"
            text += f"  {glyph} {gap} {name} ({where}){more}"
    return text


def _described(session: Session, lane_number: int, row: int, measure: Measure) -> tuple[str, str]:
    profile, lane = session.profile, session.profile.lanes[lane_number]
    start, end = session.span_of(lane_number, row)
    name = text_of(profile, lane, "name", row, readable=True) or session.say("{event} {row:,}", row=row)
    kernel = text_of(profile, lane, "kernel", row)
    roles = ("", f" ({GUESS if lane.role_guessed else ''}wait)", f" ({GUESS if lane.role_guessed else ''}sync)")
    role = roles[int(lane.take("role", slice(row, row + 1))[0]) % 3]
    return f"{name}{role}  {measure.length(end - start)}", f"  in {kernel}" if kernel else ""


def copied(session: Session, lane_number: int, row: int) -> str:
    """Text to copy of an event: one line with exact times in ns."""
    profile, lane = session.profile, session.profile.lanes[lane_number]
    start, end = session.span_of(lane_number, row)
    name = text_of(profile, lane, "name", row) or session.say("{event} {row}", row=row)
    kernel, reading = text_of(profile, lane, "kernel", row), clean(lane.description(row))
    times = ("no times",) if start == INT_MISSING else (range_text(start, end), f"{end - start} ns")
    parts = (clean(profile.title_of(lane)), name, *times, kernel, reading)
    return "  ".join(part for part in parts if part)


#: Greatest width at which the length of a line must be measured, as its parts may not fit.
_NARROW = 24


class TimelinePane(Widget, can_focus=True):
    """Lanes over time. Only visible rows are drawn; a moved cursor or selection repaints only the affected parts."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("timeline")]
    DEFAULT_CSS = "TimelinePane { height: 1fr; }"
    _drawn_style: Style | None = None

    def __init__(self, session: Session, state: DisplayState, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(id="timeline")
        self.session = session
        self.glyphs = glyphs
        self.lanes = LaneLayout(session, state)
        self.lane_data = self._data_of(session)
        self.base = None if session.baseline is None else self._data_of(session.baseline)
        self.palette = palette
        self._selected = -1
        self._titles = ("", "")

    @property
    def palette(self) -> Palette:
        """The palette; setting it creates a new painter."""
        return self._palette

    @palette.setter
    def palette(self, palette: Palette) -> None:
        self._palette = palette
        self.painter = LanePainter(self.lanes, self.lane_data, self.base, palette, self.glyphs)

    def on_mount(self) -> None:
        """Starts computing the data for the first state."""
        self._prepare()

    # state

    def show(self, state: DisplayState) -> None:
        """Shows a state; repaints only what has changed."""
        lanes, old = self.lanes, self.lanes.state
        before, linked_lanes = lanes.selected_row(old), self._linked_lanes
        opened = lanes.state.opened != state.opened
        lanes.show(state)
        # first, as the height of the legend depends on known names
        self._prepare()
        if opened:
            lanes.take_opened()
        self._fit()
        top = lanes.top
        lanes.scroll_to_selection()
        same = replace(
            old, cursor=state.cursor, selection=state.selection, sort=state.sort, in_window=state.in_window,
            search=state.search, columns=state.columns, percent=state.percent, picked=state.picked,
            marks=state.marks, spans=state.spans, anchor=state.anchor,
        )  # fmt: skip
        if same == state and top == lanes.top:
            self._refresh_parts(old, before, linked_lanes | self._linked_lanes)
            return
        self.refresh()
        self._retitle()

    @property
    def _linked_lanes(self) -> set[int]:
        return {tie.lane for tie in self.lane_data.linked_events}

    def _fit(self) -> None:
        width, height = self.size
        self.lanes.fit(width, height, len(self.painter.legend(width)))

    def wanted_height(self) -> int:
        """Number of lines needed to show all rows."""
        return len(self.lanes.rows) + 2 + len(self.painter.legend(self.size.width))

    def on_resize(self, event: events.Resize) -> None:
        """Fits the layout to the new size."""
        self._fit()
        self.lanes.scroll_to_selection()
        self._retitle()

    def title_text(self) -> str:
        """Title for the border: scope, filter, visible window, colouring."""
        return timeline_title(self.lanes, computing=self.lane_data.computing_colours(self.lanes.state))

    def legend_text(self) -> str:
        """Legend of the glyphs, and the number of lanes scrolled out of view."""
        return glyph_legend(self.lanes, self.glyphs, filtered=self.lane_data.passing is not None)

    def _retitle(self) -> None:
        """Sets the titles if they have changed: each assignment repaints the whole pane."""
        titles = (self.title_text(), self.legend_text())
        if titles != self._titles:
            self._titles = titles
            self.border_title, self.border_subtitle = Content(titles[0]), Content(titles[1])

    # background computations

    def _data_of(self, session: Session) -> LaneData:
        return LaneData(session, Background(self, "lanes", small=False), self._take_computed)

    def _prepare(self) -> None:
        state = self.lanes.state
        self.lane_data.prepare(state)
        if self.base is not None:  # events of the baseline cannot be selected
            self.base.prepare(replace(state, selection=SelectedItem()))

    def _take_computed(self) -> None:
        self._prepare()
        self.lanes.take_opened()
        self._fit()
        self.refresh()
        self._retitle()

    # drawing

    def _refresh_parts(self, old: DisplayState, before: int, linked_lanes: set[int]) -> None:
        """Repaints what differs from ``old`` after a moved cursor or selection; ``before``: the row selected then.

        ``linked_lanes``: lanes that have, or had, marks of dependencies.
        """
        lanes, state, (width, height) = self.lanes, self.lanes.state, self.size
        regions = [Region(0, 0, width, 1)]
        if lanes.info_lines:
            regions.append(Region(0, height - 1, width, 1))
        if old.selection != state.selection:
            lines = {lanes.line_of(number) for number in (before, lanes.selected_row(state)) if number >= 0}
            if linked_lanes:
                lines |= {lanes.line_of(number) for number, row in enumerate(lanes.rows) if row.lane in linked_lanes}
            # the counterpart of the selected event may be in any row of the baseline
            lines |= {lanes.line_of(number) for number, row in enumerate(lanes.rows) if row.base is not None}
            regions += [Region(0, line + 1, width, 1) for line in lines if line >= 0]
        if old.cursor != state.cursor:
            cells = {lanes.cell_of(time) for time in (old.cursor, state.cursor)}
            regions += [Region(lanes.label_width + cell, 0, 1, height) for cell in cells if 0 <= cell < lanes.cells]
        self.refresh(*regions)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Renders the lines of a region; layout, selected row and the pane's style are found once for all of them."""
        self._fit()
        self._drawn_style = self.rich_style
        self._selected = self.lanes.selected_row(self.lanes.state)
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Renders a line: the ruler, a row, the legend, or the description at the cursor."""
        return self._line(y).apply_style(self._drawn_style or self.rich_style)

    def _line(self, y: int) -> Strip:
        lanes, width = self.lanes, self.lanes.width
        if y == 0:
            segments = self.painter.ruler()
        elif lanes.info_lines and y == lanes.height - 1:
            segments = self._bottom(width)
        else:
            number, below = lanes.number_at(y - 1), y - 1 - lanes.lines
            if number >= 0:
                # label and cells fill the width exactly, so the length need not be measured
                known = width if width > _NARROW else None
                return Strip(self.painter.line(number, self._selected), known).adjust_cell_length(width)
            if not 0 <= below < lanes.legend:
                return Strip([Segment(" " * width)], width)
            segments = self.painter.legend(width)[below]
        return Strip(segments).adjust_cell_length(width)

    def _bottom(self, width: int) -> list[Segment]:
        info = at_cursor(self.lanes, self.lane_data, self.glyphs)
        measured = measured_text(self.lanes.state, self.lanes.measure)
        span = f" {measured} " if measured else ""
        legend = f" {self.legend_text()} " if not self.styles.border_bottom[0] else ""
        if cell_len(info) + cell_len(span) + cell_len(legend) + 1 > width:
            legend = ""
        info = fit(info, max(width - cell_len(span) - cell_len(legend), 0))
        return [
            Segment(info, self.palette.text), Segment(span, self.palette.strong), Segment(legend, self.palette.quiet),
        ]  # fmt: skip

    # keys

    def action_do(self, name: str) -> None:
        """Requests the state change of an entry in ``CHANGES``, and shows its message."""
        self._request(CHANGES[name])

    def step_events(self, steps: int) -> None:
        """Selects the event ``steps`` on in the selected lane."""
        self._request(lambda lanes, state: event_stepped(lanes, state, steps))

    def _request(self, change: StateChange) -> None:
        def changed(state: DisplayState) -> DisplayState:
            state, message = change(self.lanes, state)
            if message:
                self.post_message(ShowMessage(message))
            return state

        self.post_message(ChangeState(changed))

    def action_select(self) -> None:
        """Selects the event at the cursor and shows its detail; a launch becomes the range."""
        state = self.lanes.state
        shows_detail = self.lanes.launches_row(state) is None and state.selection.counters < 0
        self.post_message(ChangeState(lambda state: event_selected(self.lanes, state)))
        if shows_detail:
            self.post_message(Request("show-detail"))

    def action_go_to_time(self) -> None:
        """Prompts for a time and goes there."""
        device = self.session.profile.device

        def validate(text: str) -> Hint | None:
            try:
                return (
                    Hint(self.lanes.measure.exact(parse_time(text, self.lanes.state, device))) if text.strip() else None
                )
            except TypedError as error:
                return Hint(str(error), fault=True)

        def accepted(text: str) -> Hint | None:
            hint = validate(text)
            if hint is None or hint.fault:
                return hint
            time = parse_time(text, self.lanes.state, device)
            self.post_message(ChangeState(lambda state: go_to(state, time)))
            return None

        ask(self, PromptRequest("Go to time", changed=validate, accepted=accepted))

    def action_copy(self) -> None:
        """Copies the range, the selected event, or the window."""
        state = self.lanes.state
        if state.range is None and state.selection.row >= 0:
            text = copied(self.session, state.selection.lane, state.selection.row)
            self.post_message(CopyText(text, self.session.say("{event}")))
        else:
            self.post_message(CopyText(range_text(*state.figures_window), "window" if state.range is None else "range"))

    # mouse

    def on_click(self, event: events.Click) -> None:
        """Moves the cursor to the clicked time and selects what is there; on the steps, chooses the step."""
        lanes, offset = self.lanes, event.get_content_offset(self)
        if offset is None:
            return
        cell, number = offset.x - lanes.label_width, lanes.number_at(offset.y - 1)
        if cell < 0:
            if number >= 0 and lanes.rows[number].lane >= 0:
                chosen = lanes.selection_of(number)
                self._request(lambda lanes, state: lane_opened(lanes, replace(state, selection=chosen)))
            return
        if number >= 0 and lanes.rows[number].kind == "steps":
            self._choose_step(lanes.middle_of(cell))
            return
        # captured at the click: size or filter may change before the request is handled
        cells, axis, selection = lanes.cells, lanes.axis, lanes.selection_of(number) if number >= 0 else None

        def clicked(state: DisplayState) -> DisplayState:
            edges = axis.edges(state.start, state.end, cells)
            state = state.at((int(edges[cell]) + int(edges[cell + 1])) // 2)
            if selection is None:
                return state
            row = self.lanes.event_under_cursor(selection.lane, state) if selection.lane >= 0 else -1
            return replace(state, selection=replace(selection, row=row))

        self.post_message(ChangeState(clicked))

    def _choose_step(self, time: int) -> None:
        index = step_lane(self.session, self.lanes.state.scope.group)
        row = event_at(index, time)
        if row >= 0:
            self.post_message(Request("step", int(index.lane.take("number", slice(row, row + 1))[0])))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Zooms in."""
        event.stop()
        self.action_do("zoom-in")

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Zooms out."""
        event.stop()
        self.action_do("zoom-out")
