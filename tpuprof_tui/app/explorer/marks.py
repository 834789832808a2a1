"""Marks: a letter or digit names a time or a span; available in every pane."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace
from textual import events

from tpuprof_tui.analysis.selecting.navigation import (
    default_span,
    go_to_mark,
    marks_text,
    nearest_start,
    select_event,
    toggle_mark,
    toggle_span,
)
from tpuprof_tui.analysis.selecting.time_scale import Measure, measure_of

from ..settings.actions import ActionTable
from .services import Services


class Marks:
    """Sets marks and goes to them; the key after the action is the letter."""

    def __init__(self, services: Services) -> None:
        self.store, self.position, self.say = services.store, services.position, services.say
        #: Handler of the next letter; None: keys have their usual meaning.
        self._letter_handler: Callable[[str], None] | None = None
        self.actions: ActionTable = {"mark": self.mark, "go-to-mark": self.go_to_mark, "keep-span": self.keep_span}

    def mark(self) -> None:
        """Marks the cursor's time, or removes that mark, with the next letter."""
        self._letter_handler = self._mark
        self.say("Mark with a letter ...")

    def go_to_mark(self) -> None:
        """Goes to the mark of the next letter."""
        state = self.store.state
        if not state.marks and not state.spans:
            self.say("No marks yet: m and a letter mark the cursor's time.")
            return
        self._letter_handler = self._go_to_mark
        self.say(f"Go to mark: {marks_text(state, self._measure)}")

    def keep_span(self) -> None:
        """Keeps the range, else the selection's span, else the window under the next letter."""
        self._letter_handler = self._keep_span
        start, end = default_span(self.store.state, self.store.session)
        self.say(f"Keep {self._span_text(start, end)} with a letter ...")

    def take(self, event: events.Key) -> None:
        """Takes a key as the letter if an action is waiting for one."""
        handler, self._letter_handler = self._letter_handler, None
        if handler is None:
            return
        event.stop()
        letter = event.character or ""
        if letter.isascii() and letter.isalnum():
            handler(letter)
        else:
            self.say("Marks are letters or digits.")

    def stop_waiting(self) -> None:
        """Stops waiting for a letter."""
        self._letter_handler = None

    @property
    def _measure(self) -> Measure:
        return measure_of(self.store.session.profile.device, self.store.state.scale)

    def _mark(self, letter: str) -> None:
        state, session = self.store.state, self.store.session
        if self.position.in_table and self.position.row >= 0:
            # the row at the cursor counts, whether it is selected or not
            state = state.at(session.span_of(*session.locate(self.position.row))[0])
        removed = (letter, state.cursor) in state.marks
        self.say(f"Mark {letter} {'removed' if removed else 'at ' + self._measure.exact(state.cursor)}")
        self.store.change(toggle_mark(state, letter))

    def _keep_span(self, letter: str) -> None:
        state = self.store.state
        start, end = default_span(state, self.store.session)
        removed = (letter, start, end) in state.spans
        self.say(f"Span {letter} {'removed' if removed else 'is ' + self._span_text(start, end)}")
        self.store.change(toggle_span(state, letter, start, end))

    def _span_text(self, start: int, end: int) -> str:
        return f"the span of {self._measure.length(end - start)} from {self._measure.exact(start)}"

    def _go_to_mark(self, letter: str) -> None:
        state = go_to_mark(self.store.state, letter)
        if state is None:
            self.say(f"No mark {letter}: there are {marks_text(self.store.state, self._measure)}.")
            return
        self.store.change(state)
        self.say(f"At mark {letter}, {self._measure.exact(state.cursor)}.")
        if self.position.in_table and self.position.row >= 0:
            # the table's cursor is always on a row: take the one that starts nearest
            session = self.store.session
            place = session.locate(nearest_start(session, self.position.table.rows.order, state.cursor))
            self.store.change(replace(select_event(session, state, *place), range=state.range))
