"""The question before something costly or final."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import BindingType

from ..drawing.theme import Palette
from ..panes.keybar import KeyBar
from ..panes.lines import Line, LinesView, paragraph
from ..settings.actions import actions_of, bindings, key_text, keys_of
from .overlay import Overlay


class ConfirmPane(LinesView):
    """A question."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("confirm")]

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

    def action_yes(self) -> None:
        """Yes."""
        self._answer(True)

    def action_no(self) -> None:
        """No."""
        self._answer(False)

    def _answer(self, answer: bool) -> None:
        if isinstance(self.screen, ConfirmScreen):
            self.screen.dismiss(answer)


class ConfirmScreen(Overlay[bool]):
    """Asks before something costly or final."""

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
