"""The timeline: lanes over time, and the keys that move window, cursor and selection."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual import events
from textual.binding import BindingType

from tpuprof_tui.analysis.index.axis import cell_at, edges_of
from tpuprof_tui.analysis.index.lane_index import event_at
from tpuprof_tui.analysis.links.launches import stepped_launch
from tpuprof_tui.analysis.selecting.state import Selection, ViewState
from tpuprof_tui.analysis.steps.step_lane import step_lane
from tpuprof_tui.app.settings.actions import bindings
from tpuprof_tui.app.shell.messages import ChooseStep, ShowDetail

from .keys import TimelineTools
from .rows import Row, stepped_event


class Timeline(TimelineTools):
    """Keys and mouse of the timeline: each asks for another state."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("timeline")]

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
            known = [number for number, row in enumerate(self.rows) if row.can_be_selected]
            if not known:
                return view
            now = self.selected_row(view)
            if now < 0:
                wanted = next((number for number in known if self.rows[number].kind != "launches"), known[0])
            else:
                # the nearest that can be selected, in the direction of the step
                beyond = [number for number in known if (number >= now + lines if lines > 0 else number <= now + lines)]
                wanted = (beyond or known[-1:])[0] if lines > 0 else (beyond or known[:1])[-1]
            return view if wanted == now else replace(view, selection=self._selection_of(wanted))

        self._ask(stepped)

    def _selection_of(self, number: int) -> Selection:
        row = self.rows[number]
        return Selection(row.unit, row.lane)

    def action_fit(self) -> None:
        """The whole capture."""
        self._ask(ViewState.fitted)

    def action_engines(self) -> None:
        """Engines or cores."""
        self._ask(lambda view: replace(view, rows="cores" if view.rows == "engines" else "engines"))

    def action_previous(self) -> None:
        """The instruction before."""
        self.step_instructions(-1)

    def action_next(self) -> None:
        """The instruction after."""
        self.step_instructions(1)

    def step_instructions(self, steps: int) -> None:
        """Selects the instruction so many steps on, of the selected lane."""

        def stepped(view: ViewState) -> ViewState:
            found = self._stepped(view, steps)
            if found is view and view.filter:
                way = "later" if steps > 0 else "earlier"
                told = "No {way} {event} of this lane passes the filter; Esc clears it."
                self._say(self.session.say(told, way=way))
            return found

        self._ask(stepped)

    def _stepped(self, view: ViewState, steps: int) -> ViewState:
        row = self._launches_row(view)
        if row is not None:
            return stepped_launch(self.session, view, row.unit, steps)
        return stepped_event(self.session, view, steps, self._lane_for_steps(view))

    def _launches_row(self, view: ViewState) -> Row | None:
        """The selected line where it is one of launches."""
        number = self.selected_row(view)
        return self.rows[number] if number >= 0 and self.rows[number].kind == "launches" else None

    def _lane_for_steps(self, view: ViewState) -> int:
        if view.selection.lane >= 0:
            return view.selection.lane
        number = self.selected_row(view)
        unit = self.rows[number].unit if number >= 0 else -1
        lanes = self.session.profile.lanes
        fitting = [place for place in self.session.lanes_in(view.scope) if unit in (-1, self.session.unit_of(place))]
        return next((place for place in fitting if len(lanes[place])), -1)

    def action_select(self) -> None:
        """The instruction at the cursor becomes the selection; its detail shows. A launch becomes the range."""
        if self._launches_row(self.view) is not None:
            self._ask(lambda view: self._stepped(replace(view, range=None), 0))
            return

        def selected(view: ViewState) -> ViewState:
            lane = self._lane_for_steps(view)
            row = self.event_under_cursor(lane, view) if lane >= 0 else -1
            if row < 0:
                return view
            return replace(view, selection=Selection(self.session.unit_of(lane), lane, row))

        self._ask(selected)
        self.post_message(ShowDetail())

    # mouse

    def on_click(self, event: events.Click) -> None:
        """Puts the cursor where the mouse is and selects what is there."""
        offset = event.get_content_offset(self)
        if offset is None or offset.x < self.label_width:
            return
        cell, number = offset.x - self.label_width, self.number_at(offset.y - 1)
        if number >= 0 and self.rows[number].kind == "steps":
            self._choose_step(cell)
            return
        # as it was clicked: another size or filter may come before the click is answered
        cells, selection = self.cells, self._selection_of(number) if number >= 0 else None

        def clicked(view: ViewState) -> ViewState:
            edges = edges_of(view.start, view.end, cells)
            view = view.at((int(edges[cell]) + int(edges[cell + 1])) // 2)
            if selection is None:
                return view
            row = self.event_under_cursor(selection.lane, view) if selection.lane >= 0 else -1
            return replace(view, selection=replace(selection, row=row))

        self._ask(clicked)

    def _choose_step(self, cell: int) -> None:
        """Asks for the step that runs in a cell."""
        edges = edges_of(self.view.start, self.view.end, self.cells)
        index = step_lane(self.session, self.view.scope.group)
        row = event_at(index, (int(edges[cell]) + int(edges[cell + 1])) // 2)
        if row >= 0:
            self.post_message(ChooseStep(int(index.lane.take("number", slice(row, row + 1))[0])))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Zoom in."""
        event.stop()
        self.action_zoom_in()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Zoom out."""
        event.stop()
        self.action_zoom_out()
