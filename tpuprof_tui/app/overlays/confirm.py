"""Asks for confirmation before something costly, or something that cannot be undone."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.screen import ModalScreen

from ..drawing.theme import Palette
from ..panes.keybar import KeyBar
from ..panes.lines import Line, LinesView, paragraph
from ..settings.actions import actions_of, bindings, key_text, keys_of
from ..terminal.line_compositor import DrawnScreen


class ConfirmPane(LinesView):
    """A question and the keys that answer it."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("confirm")]

    class Answered(Message):
        """The question is answered."""

        def __init__(self, answer: bool) -> None:
            super().__init__()
            self.answer = answer

    def __init__(self, question: str, palette: Palette) -> None:
        super().__init__(palette, "confirm")
        self.question = question

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """The question, and the keys that answer it."""
        lines = paragraph(self.question, width, self.palette.text)
        answer: Line = []
        for action in actions_of("confirm"):
            answer += [Segment(f" {key_text(keys_of(action)[0])}", self.palette.key), Segment(f" {action.text} ")]
        return [*lines, [], answer], []

    def action_answer(self, answer: bool) -> None:
        """Yes or no."""
        self.post_message(self.Answered(answer))


class ConfirmScreen(ModalScreen[bool], DrawnScreen[bool]):
    """A question over the explorer; closes with the answer."""

    AUTO_FOCUS = "#confirm"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("app")]
    CSS = """
    ConfirmScreen { align: center middle; }
    ConfirmScreen #confirm { width: 92%; max-width: 72; height: 8; border: round $accent; background: $surface; }
    """

    def __init__(self, question: str, palette: Palette) -> None:
        super().__init__()
        self.question = question
        self.palette = palette

    def compose(self) -> ComposeResult:
        """The question, and the keys."""
        yield ConfirmPane(self.question, self.palette)
        yield KeyBar(self.palette, "confirm")

    def on_confirm_pane_answered(self, message: ConfirmPane.Answered) -> None:
        """Closes with the answer."""
        message.stop()
        self.dismiss(message.answer)
