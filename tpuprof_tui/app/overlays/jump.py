"""Jump mode: shows a letter on each pane; the key of the letter focuses it."""

from __future__ import annotations

from typing import ClassVar, Final

from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget

from ..drawing.theme import Palette
from ..settings.actions import bindings
from ..terminal.line_compositor import DrawnScreen

#: Letters, in the order panes are met from the top left.
LETTERS: Final = "asdfghjkl"


class JumpLabel(Widget):
    """The letter of a pane."""

    DEFAULT_CSS = "JumpLabel { position: absolute; width: 5; height: 1; }"

    def __init__(self, letter: str, pane: str, palette: Palette) -> None:
        super().__init__()
        self.letter = letter
        self.pane = pane
        self.palette = palette

    def render_line(self, y: int) -> Strip:
        """The letter, between brackets: seen without colours too."""
        return Strip([Segment(f"[ {self.letter} ]", self.rich_style + self.palette.chosen)], 5)


class JumpScreen(ModalScreen[str], DrawnScreen[str]):
    """Letters over the panes; ends with the id of the one that was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("app")]
    CSS = "JumpScreen { background: transparent; }"

    def __init__(self, panes: list[Widget], palette: Palette) -> None:
        super().__init__()
        placed = sorted(panes, key=lambda pane: (pane.region.y, pane.region.x))
        self.places = [(letter, pane.id or "", pane.region) for letter, pane in zip(LETTERS, placed, strict=False)]
        self.palette = palette

    def compose(self) -> ComposeResult:
        """A letter in the middle of each pane."""
        for letter, pane, region in self.places:
            label = JumpLabel(letter, pane, self.palette)
            label.styles.offset = (region.x + max(region.width // 2 - 2, 0), region.y + region.height // 2)
            yield label

    def on_key(self, event: events.Key) -> None:
        """A letter goes to its pane, any other printable key goes back."""
        chosen = next((pane for letter, pane, _ in self.places if letter == event.character), "")
        if chosen or (event.is_printable and event.character != "q"):
            event.stop()
            event.prevent_default()
            self.dismiss(chosen)
