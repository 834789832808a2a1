"""Marks: a letter stands for a time or a span, from whichever pane the keys are in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from textual import events

from tpuprof_tui.analysis.selecting.navigation import (
    gone_to_mark,
    marked,
    marks_text,
    nearest_start,
    selected,
    span_at_hand,
    spanned,
)
from tpuprof_tui.analysis.selecting.state import ViewState
from tpuprof_tui.analysis.selecting.time_scale import Measure, measure_of

from ..panes.keybar import KeyBar
from .filter_search import Finding


class Marking(Finding):
    """Keys that set marks and go to them; the explorer owns the state."""

    #: What the next letter is for; None: it is a key.
    _letter_for: Callable[[str], None] | None = None

    def action_mark(self) -> None:
        """Marks the cursor's time with the next letter."""
        self._letter_for = self._mark
        self._say("Mark with a letter ...")

    def action_go_to_mark(self) -> None:
        """Goes to the mark of the next letter."""
        if not self.view.marks and not self.view.spans:
            self._say("No marks yet: m and a letter mark the cursor's time.")
            return
        self._letter_for = self._go_to_mark
        self._say(f"Go to mark: {marks_text(self.view, self._measure)}")

    def action_keep_span(self) -> None:
        """Keeps the range, the selection's span or the window under the next letter."""
        self._letter_for = self._keep_span
        start, end = span_at_hand(self.view, self.session)
        self._say(f"Keep {self._span_text(start, end)} with a letter ...")

    def on_key(self, event: events.Key) -> None:
        """The key after ``m``, ``M`` or ``'`` is a letter, not a key."""
        taker, self._letter_for = self._letter_for, None
        if taker is None:
            return
        event.stop()
        letter = event.character or ""
        if letter.isascii() and letter.isalnum():
            taker(letter)
        else:
            self._say("Marks are letters or digits.")

    def on_descendant_blur(self) -> None:
        """A letter is waited for only while keys go where they went."""
        self._letter_for = None

    @property
    def _measure(self) -> Measure:
        return measure_of(self.session.profile.device, self.view.scale)

    def _here_and_now(self) -> ViewState:
        """The state with the cursor where the keys are: in the table at its row, selected by a key or not."""
        table = self.table
        if self.focused is not table or not len(table.rows.order):
            return self.view
        start, _ = self.session.span_of(*self.session.place(int(table.rows.order[table.rows.position])))
        return self.view.at(start)

    def _mark(self, letter: str) -> None:
        view = self._here_and_now()
        gone = (letter, view.cursor) in view.marks
        self._say(f"Mark {letter} {'taken away' if gone else 'at ' + self._measure.exact(view.cursor)}")
        self._set(marked(view, letter))

    def _keep_span(self, letter: str) -> None:
        start, end = span_at_hand(self.view, self.session)
        gone = (letter, start, end) in self.view.spans
        self._say(f"Span {letter} {'taken away' if gone else 'is ' + self._span_text(start, end)}")
        self._set(spanned(self.view, letter, start, end))

    def _span_text(self, start: int, end: int) -> str:
        return f"the span of {self._measure.length(end - start)} from {self._measure.exact(start)}"

    def _go_to_mark(self, letter: str) -> None:
        view = gone_to_mark(self.view, letter)
        if view is None:
            self._say(f"No mark {letter}: there are {marks_text(self.view, self._measure)}.")
            return
        self._set(view)
        self._say(f"At mark {letter}, {self._measure.exact(view.cursor)}.")
        if self.focused is self.table and len(self.table.rows.order):
            # a table has no cursor between its rows
            place = self.session.place(nearest_start(self.session, self.table.rows.order, view.cursor))
            self._set(replace(selected(self.session, view, *place), range=view.range))

    def _say(self, text: str) -> None:
        self.query_one(KeyBar).say(text)
