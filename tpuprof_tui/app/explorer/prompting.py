"""Questions in the bottom line, and where the keys go when they are answered."""

from __future__ import annotations

from collections.abc import Callable

from textual.widget import Widget

from ..panes.prompt import Judge, Prompt, Question


class Prompting:
    """Opens the prompt in place of the keys, and gives the focus back when it is closed.

    Args:
        prompt: The bottom line.
        focused: The widget that has the focus.

    Attributes:
        asked_from: What had the focus before the prompt was opened.
    """

    def __init__(self, prompt: Prompt, focused: Callable[[], Widget | None]) -> None:
        self.prompt = prompt
        self.asked_from: Widget | None = None
        self._focused = focused

    @property
    def pane(self) -> Widget | None:
        """The pane that keys go to; while something is asked the one that they went to before."""
        focused = self._focused()
        return self.asked_from if focused in (None, self.prompt) else focused

    def ask(
        self,
        label: str,
        initial: str = "",
        on_change: Judge = lambda text: None,
        on_accept: Judge = lambda text: None,
        *,
        on_cancel: Callable[[], None] = lambda: None,
    ) -> None:
        """Asks for a line of text.

        Args:
            label: What the text is; texts of one label share their history.
            initial: The text to begin with.
            on_change: Judges each typed text: its note is shown beside it, with the place of a fault.
            on_accept: Takes the text; a note with a fault is shown and the prompt stays open.
            on_cancel: Called when the prompt is left.
        """
        self.open(Question(label, initial, on_change, on_accept, on_cancel))

    def open(self, question: Question) -> None:
        """Asks a question."""
        if not self.prompt.is_open:
            self.asked_from = self._focused()
        self.prompt.open(question)

    def closed(self) -> None:
        """Keys show again, and work where they did."""
        before = self.asked_from
        if self._focused() in (None, self.prompt) and before is not None and before.display:
            before.focus(scroll_visible=False)
