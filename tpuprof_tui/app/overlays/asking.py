"""Screens that can ask for a line of text."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.screen import Screen
from textual.widget import Widget

from ..panes.prompt import Judge, Prompt, Question


class Asking(Screen[None]):
    """Opens the prompt in place of the keys, and gives the focus back when it is closed."""

    _focused_before: Widget | None = None

    @property
    def prompt(self) -> Prompt:
        """The line to type in."""
        return self.query_one("#prompt", Prompt)

    def ask(
        self,
        label: str,
        initial: str = "",
        on_change: Judge | None = None,
        on_accept: Judge | None = None,
        *,
        on_cancel: Callable[[], None] | None = None,
        kind: str = "",
    ) -> None:
        """Asks for a line of text.

        Args:
            label: What the text is.
            initial: The text to begin with.
            on_change: Judges each typed text: its note is shown beside it, with the place of a fault.
            on_accept: Takes the text; a note with a fault is shown and the prompt stays open.
            on_cancel: Called when the prompt is left.
            kind: Texts of one kind share their history; the label where empty.
        """
        nothing: Judge = lambda text: None  # noqa: E731
        self._ask(
            Question(label, initial, on_change or nothing, on_accept or nothing, on_cancel or (lambda: None), kind)
        )

    @on(Prompt.Ask)
    def asked(self, message: Prompt.Ask) -> None:
        """A pane has a question."""
        message.stop()
        self._ask(message.question)

    def _ask(self, question: Question) -> None:
        if not self.prompt.is_open:
            self._focused_before = self.focused
        self.prompt.open(question)

    @on(Prompt.Accepted)
    @on(Prompt.Cancelled)
    def answered(self) -> None:
        """Keys show again, and work where they did."""
        before = self._focused_before
        if self.focused in (None, self.prompt) and before is not None and before.display:
            before.focus(scroll_visible=False)
