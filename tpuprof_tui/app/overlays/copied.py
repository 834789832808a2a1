"""Copies text to the clipboard and shows it, to be selected by hand where the terminal has not taken it."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import ModalScreen, Screen

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit

from ..drawing.theme import Palette
from ..panes.keybar import KeyBar
from ..panes.lines import Line, LinesView
from ..settings.actions import bindings
from ..terminal.line_compositor import DrawnScreen

#: What to do where nothing arrives in the clipboard.
HINT: Final = "In tmux: set -g set-clipboard on. Else select it here with Shift and the mouse."
LISTED: Final = 2_000


def copy_text(screen: Screen[Any], palette: Palette, text: str, what: str) -> None:
    """Copies a text to the terminal's clipboard; of several lines it is also shown, as not every terminal takes it."""
    screen.app.copy_to_clipboard(text)
    if "\n" in text:
        screen.app.push_screen(CopiedScreen(palette, text, what))
    else:
        screen.query_one(KeyBar).say(f"Copied {what}: {clean(text)}   {HINT.split('.')[0]}.")


class CopiedLines(LinesView):
    """The text, line by line."""

    def __init__(self, palette: Palette, text: str, what: str) -> None:
        super().__init__(palette, "copied")
        self.copied = text.split("\n")
        self.border_title = Content(f"Copied {what}, {len(text):,} characters")
        self.border_subtitle = Content("Esc closes")

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """The hint, then the text."""
        lines: list[Line] = [[Segment(fit(f" {HINT}", width), self.palette.quiet)], []]
        lines += [[Segment(clean(line), self.palette.text)] for line in self.copied[:LISTED]]
        if len(self.copied) > LISTED:
            lines.append([Segment(f" ... and {len(self.copied) - LISTED:,} lines more", self.palette.quiet)])
        return lines, []


class CopiedScreen(ModalScreen[None], DrawnScreen[None]):
    """The text over the explorer."""

    AUTO_FOCUS = "#copied"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("app")]
    CSS = """
    CopiedScreen { align: center bottom; }
    CopiedScreen #copied { width: 100%; height: 1fr; max-height: 60%; border: round $accent; background: $surface; }
    """

    def __init__(self, palette: Palette, text: str, what: str) -> None:
        super().__init__()
        self.palette = palette
        self.lines = CopiedLines(palette, text, what)

    def compose(self) -> ComposeResult:
        """Text and keys."""
        yield self.lines
        yield KeyBar(self.palette, "copied")
