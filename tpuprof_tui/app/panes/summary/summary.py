"""Summary pane: the answers of the source's views for the visible window, computed in the background."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np
from msgspec.structs import replace
from textual import events, work
from textual.binding import BindingType
from textual.strip import Strip
from textual.worker import get_current_worker

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filter_masks import is_filter_cached, with_condition
from tpuprof_tui.analysis.selecting.moves import select_event, select_pause
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope, SelectedItem
from tpuprof_tui.analysis.steps.step_detection import steps_of
from tpuprof_tui.app.drawing.glyphs import Glyphs
from tpuprof_tui.app.drawing.theme import Palette
from tpuprof_tui.app.settings.actions import bindings
from tpuprof_tui.app.shell.messages import Background, ChangeState, Request, ShowMessage
from tpuprof_tui.formats.units import time_text
from tpuprof_tui.views.answer import Answer, Target
from tpuprof_tui.views.registry import view_of
from tpuprof_tui.views.summary_views import DEFERRED, quick_views

from ..lines import Line, LinesView, as_text
from .page import Curves, PageBuilder, SummaryAnswers, SummaryPage, compute_answers, draw_curves

#: Most events for which quick views are computed synchronously; for more, in a worker thread.
AT_ONCE = 20_000
#: Debouncing: if keys are less than ``APART_SECONDS`` apart, answers are computed only for the last one, after a pause
#: of ``REST_SECONDS``.
APART_SECONDS, REST_SECONDS = 0.1, 0.04

#: A state change.
Update = Callable[[DisplayState], DisplayState]


class SummaryPane(LinesView):
    """Shows the views for the visible window and the selected unit; Enter goes to the target of a line."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("wide", "summary")]
    copied_as = ("line", "summary")
    # reserve the gutter: lines are built for a width that must not change when the scroll bar appears
    DEFAULT_CSS = "SummaryPane { scrollbar-gutter: stable; }"

    def __init__(self, session: Session, state: DisplayState, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(palette, "summary")
        self.session = session
        self.glyphs = glyphs
        self.answers = SummaryAnswers(session, state)
        self.page = SummaryPage()
        self._builder = PageBuilder(self.answers, palette, glyphs, 0, 0)
        self.paused = False
        self._state = state
        self._background = Background(self, "longest", small=session.profile.event_count <= AT_ONCE)
        self._requested_at = 0.0
        self._active = False
        self._built_height = -1
        #: Column of the page (0 or 1) that the cursor is in.
        self._column = 0

    # answers

    def show(self, state: DisplayState) -> None:
        """Shows the answers for a state, at once or when they are computed."""
        self._state = state
        if self._active and not self.paused:
            self._request()

    def activate(self, active: bool) -> None:
        """Sets whether the summary is visible; answers are computed only then."""
        self._active = active
        if active and not (self.paused and self.answers.by_view):
            self._request()

    def toggle_pause(self) -> None:
        """Freezes the answers, or follows the state again."""
        self.paused = not self.paused
        if not self.paused and self._active:
            self._request()
        self.rebuild()
        self.post_message(Request("titles"))

    def _request(self) -> None:
        query = self.answers.new_query(self._state)
        if query is None:
            return
        has_quick, first = self.session.profile.event_count <= AT_ONCE, self.answers.answered_query is None
        if has_quick:
            self._take(query, quick_views(query))
        before, self._requested_at = self._requested_at, time.monotonic()
        if has_quick and first:
            # so small that it does not delay the first frame
            self._compute(query, has_quick, 0.0, first=True)
        elif self._requested_at - before > APART_SECONDS:
            # paint the frame of the key first
            self.call_after_refresh(self._compute_if_latest, query, has_quick, first)
        else:
            self._compute(query, has_quick, REST_SECONDS)

    def _compute_if_latest(self, query: Query, has_quick: bool, first: bool) -> None:
        if query is self.answers.latest_query:
            self._compute(query, has_quick, 0.0, first=first)

    @work(thread=True, exclusive=True, group="summary", exit_on_error=False, description="summary")
    def _compute(self, query: Query, has_quick: bool, wait: float, *, first: bool = False) -> None:
        worker = get_current_worker()
        time.sleep(wait)
        # not read from the widget: its layout must be accessed in the event loop only
        width = self._built_for
        for answers in compute_answers(query, self.answers.view, lambda: worker.is_cancelled,
                                       has_quick=has_quick, first=first):  # fmt: skip
            self._deliver(query, answers, width)

    @work(thread=True, exclusive=True, group="charts", exit_on_error=False, description="charts")
    def _redraw(self, query: Query, answers: Mapping[str, Answer], width: int) -> None:
        worker = get_current_worker()
        time.sleep(REST_SECONDS)
        if not worker.is_cancelled:
            curves = draw_curves(query, answers, width, ascii_only=self.glyphs.letters)
            self.call_later(self._take_curves, answers, curves, width)

    def _deliver(self, query: Query, answers: Mapping[str, Answer], width: int) -> None:
        charted = {name: each for name, each in answers.items() if each.series}
        if charted and len(charted) < len(answers):
            # answers without curves need not wait for the drawing
            plain = {name: each for name, each in answers.items() if name not in charted}
            self.call_later(self._take, query, plain)
            answers = charted
        curves = draw_curves(query, answers, width, ascii_only=self.glyphs.letters)
        self.call_later(self._take, query, answers, curves, width)

    def _take(self, query: Query, answers: Mapping[str, Answer], curves: Curves | None = None, width: int = -1) -> None:
        """Shows answers, and curves drawn for ``width`` cells, unless the query is outdated."""
        if query is not self.answers.latest_query and query is not self.answers.answered_query:
            return
        self.answers.store(query, answers)
        self._take_curves(answers, curves or {}, width)
        self.post_message(Request("titles"))

    def _take_curves(self, answers: Mapping[str, Answer], curves: Curves, width: int) -> None:
        self.answers.store_curves(answers, curves, width)
        self.rebuild()

    # lines

    def choose(self, name: str) -> None:
        """Lets a view fill the pane; an empty name: shows all views.

        Raises:
            UsageError: There is no such view.
        """
        answers = self.answers
        answers.chosen = view_of(self.session.profile.vocabulary, name, screen=True).id if name else ""
        self.cursor = self._column = 0
        query = answers.latest_query
        if name and answers.by_view.get(answers.chosen, DEFERRED) is DEFERRED and query is not None:
            self._compute(query, answers.answered_query is query, 0.0)
        self.rebuild(keep_scroll=False)
        self.post_message(Request("titles"))

    def title_text(self) -> str:
        """Title for the border: the chosen view, scope, window and filter, and whether it is paused."""
        view, text = self.answers.view, self.answers.description
        text = text if view is None else f"{self.session.profile.vocabulary.say(view.title)} of {text}"
        return f"PAUSED (p): {text}" if self.paused else text

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Builds the page of all views, or of the chosen one."""
        self._built_height = self.size.height
        if self._builder.built_for != (self.palette, width, self._built_height):
            self._builder = PageBuilder(self.answers, self.palette, self.glyphs, width, self._built_height)
        self.page = self._builder.page(self._state, paused=self.paused)
        if not self.page.targets[self._column] and self.page.targets[0]:
            self._column = 0
        return self.page.lines, self.page.items[self._column]

    def rebuild(self, *, keep_scroll: bool = True) -> None:
        """Rebuilds the lines, and redraws curves in the background if the width has changed."""
        super().rebuild(keep_scroll=keep_scroll)
        query, width = self.answers.answered_query, self._built_for
        if query is not None and width > 0 and not self._closing:
            answers = self.answers.to_redraw(width)
            if answers:
                self._redraw(query, answers, width)

    def on_resize(self, event: events.Resize) -> None:
        """Rebuilds for another width or height: the number of rows of each view depends on the height."""
        if (self.scrollable_content_region.width, event.size.height) != (self._built_for, self._built_height):
            self.rebuild()

    def _highlighted(self, strip: Strip, number: int) -> Strip:
        """Highlights only the cursor's column of the line."""
        start, end = self.page.span(number, self._column)
        before, inside, after = strip.crop(0, start), strip.crop(start, end), strip.crop(end, strip.cell_length)
        return Strip.join([before, super()._highlighted(inside, number), after])

    # keys that move

    def move(self, lines: int) -> None:
        """Moves to the next item if it is near the viewport; otherwise scrolls."""
        if not self.has_cursor:
            super().move(lines)
            return
        height, top = max(self.scrollable_content_region.height, 1), self.scroll_offset.y
        if abs(lines) == 1:
            wanted = self.cursor + lines
            if wanted in self.items and top - 2 <= self.items.index(wanted) <= top + height + 1:
                self.go_to(wanted)
                return
        self.scroll_to(y=top + lines, animate=False, immediate=True)
        top = self.scroll_offset.y
        visible = [item for item in self.items[top : top + height] if item >= 0]
        if visible and self.cursor not in visible:
            self.cursor = visible[0] if lines > 0 else visible[-1]
        if abs(lines) > len(self.lines) and visible:
            self.cursor = visible[0] if lines < 0 else visible[-1]
        self.refresh()

    def action_scroll_columns(self, columns: int) -> None:
        """Moves the cursor to the nearest item of the first or the second column."""
        column = 0 if columns < 0 else 1
        if column == self._column or not self.page.targets[column]:
            return
        at = self.items.index(self.cursor) if self.cursor in self.items else 0
        self._column, self.items = column, self.page.items[column]
        places = [number for number, item in enumerate(self.items) if item >= 0]
        self.cursor = self.items[min(places, key=lambda number: abs(number - at))]
        self.go_to(self.cursor)

    def action_step_section(self, steps: int) -> None:
        """Scrolls to the next or the previous heading."""
        heads = [number for number, line in enumerate(self.lines)
                 if any(segment.style == self.palette.title for segment in line)]  # fmt: skip
        top = self.scroll_offset.y
        wanted = [head for head in heads if head > top] if steps > 0 else [head for head in heads if head < top]
        if wanted:
            self.scroll_to(y=wanted[0] if steps > 0 else wanted[-1], animate=False, immediate=True)
            visible = [item for item in self.items[self.scroll_offset.y :] if item >= 0]
            self.cursor = visible[0] if visible else self.cursor
            self.refresh()

    def action_step_view(self, steps: int) -> None:
        """Lets the view ``steps`` on fill the pane; after the last, shows all views."""
        self.choose(self.answers.stepped(steps))

    def on_click(self, event: events.Click) -> None:
        """Moves the cursor to the clicked item, in the clicked column."""
        offset = event.get_content_offset(self)
        if offset is not None:
            self.action_scroll_columns(self.page.column_at(offset.y + self.scroll_offset.y, offset.x) or -1)
        super().on_click(event)

    # targets of lines

    def _target(self) -> Target | None:
        targets = self.page.targets[self._column]
        if self.cursor < len(targets):
            return targets[self.cursor]
        self.post_message(ShowMessage("j and k choose a line; Enter then goes there, o shows only that."))
        return None

    def action_select(self) -> None:
        """Goes to the target of the line under the cursor in the other panes; if already there, narrows to it."""
        target = self._target()
        found = _target_update(self.session, target, self._state.selection) if target is not None else None
        if found is not None and target is not None and target.scope is not None and (
            found[0](self._state) == self._state
        ):  # fmt: skip
            # already selected
            self.narrow()
        elif found is not None:
            self._apply(*found)
        elif target is not None and target.condition:
            self._find_longest(target)

    def _apply(self, update: Update, message: str) -> None:
        self.post_message(ChangeState(update))
        if message:
            self.post_message(ShowMessage(message))

    def _find_longest(self, target: Target) -> None:
        query = self.answers.answered_query
        if query is None:
            return
        filter_text = with_condition(query.filter, target.condition)
        query = replace(query, filter=filter_text, scope=target.scope or query.scope)
        known = is_filter_cached(self.session, query.full_filter)
        self._background.compute("longest", query.longest_work, self._take_longest, at_once=known)

    def _take_longest(self, found: tuple[int, int] | None) -> None:
        if found is not None:
            start, end = self.session.span_of(*found)
            self._apply(*_event_update(self.session, *found, f"The longest, {time_text(end - start)}"))

    def narrow(self) -> None:
        """Narrows all panes to the target of the line under the cursor; a scope is toggled."""
        target = self._target()
        if target is None:
            return
        update = _narrowed_state(self.session, target)
        if target.condition or target.step is not None:
            if target.scope is not None:
                scope = target.scope
                self.post_message(ChangeState(lambda state: replace(state, scope=scope)))
            self.post_message(Request("narrow", target.condition, None if target.condition else target.step))
        elif update is not None:
            self.post_message(ChangeState(update))

    # copying

    def text_of_item(self) -> str:
        """Text to copy of the item under the cursor, from its column only."""
        numbers = [number for number, item in enumerate(self.items) if item == self.cursor]
        return as_text(self.lines[number].crop(*self.page.span(number, self._column)) for number in numbers)

    def action_copy_line(self) -> None:
        """Copies the line under the cursor, or all lines if there is no cursor."""
        if self.has_cursor:
            super().action_copy_line()
        else:
            self.action_copy_all()


def _target_update(session: Session, target: Target, now: SelectedItem) -> tuple[Update, str] | None:
    """State change of Enter on a target, and its message; None for a condition, which needs a search for events."""
    if target.condition:
        return None
    if target.event is not None:
        events = [target.event, *target.others]
        number = events.index((now.lane, now.row)) + 1 if (now.lane, now.row) in events else 0
        number %= len(events)
        prefix = f"Selected, {number + 1} of {len(events)} (Enter: the next)" if target.others else "Selected"
        return _event_update(session, *events[number], prefix)
    if target.time is not None and target.scope is not None and not target.scope.everything:
        return _pause_update(session, target.scope, target.time)
    if target.time is not None:
        return _time_update(*target.time), ""
    if target.step is not None:
        steps = steps_of(session).steps
        for place in np.flatnonzero(steps.number == target.step)[:1].tolist():
            return _time_update(int(steps.start[place]), int(steps.end[place])), ""
    if target.scope is not None:
        selection = _selection_of(session, target.scope)
        message = f"{session.scope_title(target.scope)}: Enter again shows only this."
        return lambda state: replace(state, selection=selection), message
    return None


def _event_update(session: Session, lane: int, row: int, prefix: str) -> tuple[Update, str]:
    message = f"{prefix}: {session.title_of(lane)}. f zooms to it, i shows details, o shows only this."
    return lambda state: select_event(session, state, lane, row), message


def _pause_update(session: Session, scope: Scope, pause: tuple[int, int]) -> tuple[Update, str]:
    selection = _selection_of(session, scope)
    length = time_text(pause[1] - pause[0])
    message = f"Pause of {length}: {session.scope_title(scope)}. f zooms to it, i tells what happened in it."
    return lambda state: select_pause(state, selection, pause), message


def _selection_of(session: Session, scope: Scope) -> SelectedItem:
    return SelectedItem(session.unit_of(scope.lane) if scope.lane >= 0 else scope.group, scope.lane)


def _time_update(start: int, end: int) -> Update:
    return lambda state: state.showing(start, end).at(start)


def _narrowed_state(session: Session, target: Target) -> Update | None:
    """State change that narrows to a time, or toggles the scope of an event or scope target; None for other targets."""
    if target.time is not None:
        start, end = target.time
        return lambda state: state.windowed(start, end - start).at(start)
    scope = target.scope
    if scope is None and target.event is not None:
        unit = session.unit_of(target.event[0])
        scope = Scope(unit) if unit >= 0 else Scope(lane=target.event[0])
    wanted = scope
    return None if wanted is None else lambda state: replace(state, scope=Scope() if state.scope == wanted else wanted)
