"""Modal screens: the overlay that hosts a pane, copied text, a yes/no question, and letters to jump to a pane."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final

from rich.cells import chop_cells
from rich.segment import Segment
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Static

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.model.vocabulary import GENERIC, Vocabulary

from ..drawing.theme import Palette
from ..panes.lines import Line, LinesView, paragraph
from ..panes.prompt import KeyBar, Prompt
from ..settings.actions import actions_of, bindings, key_text, keys_of
from ..shell.messages import ExportChanged
from ..terminal import OnceScreen

#: Hint for terminals whose clipboard does not receive the text.
HINT: Final = "In tmux: set -g set-clipboard on. Else select it here with Shift and the mouse."
MAX_LISTED: Final = 2_000
#: Letters of the panes, in reading order from the top left.
LETTERS: Final = "asdfghjkl"


class Close(Message):
    """Posted by the pane of an overlay to close it with a result."""

    def __init__(self, result: object) -> None:
        super().__init__()
        self.result = result


class Overlay(ModalScreen[Any], OnceScreen):
    """Modal screen that hosts a pane, with key bar and prompt, and optionally an input ``field``, below it.

    The pane's id is also the screen's CSS class. The screen's result is that of the pane's ``Close`` message.
    """

    AUTO_FOCUS = "LinesView"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("app")]
    CSS_PATH = Path(__file__).with_name("overlay.tcss")

    def __init__(
        self, pane: LinesView, palette: Palette, vocabulary: Vocabulary = GENERIC, field: Widget | None = None
    ) -> None:
        super().__init__(classes=pane.id)
        self.pane = pane
        self.palette = palette
        self.prompt = Prompt(palette, pane.id or "", vocabulary)
        self.field = field

    def compose(self) -> ComposeResult:
        """Yields the pane, the bottom line and the field."""
        yield self.pane
        yield self.prompt
        if self.field is not None:
            yield self.field

    @on(Close)
    def close(self, message: Close) -> None:
        """Closes with the pane's result."""
        message.stop()
        self.dismiss(message.result)

    @on(ExportChanged)
    def export_changed(self) -> None:
        """Updates the pane after progress or the end of an export."""
        if self.is_mounted:
            self.pane.rebuild()


def copy_text(screen: Screen[Any], palette: Palette, text: str, label: str) -> None:
    """Copies a text to the terminal's clipboard; multi-line text is also shown, as not every terminal accepts it."""
    screen.app.copy_to_clipboard(text)
    if "\n" in text:
        screen.app.push_screen(Overlay(CopiedLines(palette, text, label), palette))
    else:
        screen.query_one(KeyBar).say(f"Copied {label}: {clean(text)}   {HINT.split('.')[0]}.")


class CopiedLines(LinesView):
    """Shows a copied text, so that it can be selected by hand if the terminal did not accept it."""

    def __init__(self, palette: Palette, text: str, label: str) -> None:
        super().__init__(palette, "copied")
        self.copied = text.split("\n")
        self.border_title = Content(f"Copied {label}, {len(text):,} characters")
        self.border_subtitle = Content("Esc closes")

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Builds the hint and the lines of the text."""
        lines: list[Line] = [*paragraph(HINT, width, self.palette.quiet), []]
        # long lines go on below: what is not on the screen cannot be selected
        lines += [[Segment(part, self.palette.text)]
                  for line in self.copied[:MAX_LISTED] for part in chop_cells(clean(line), width) or [""]]  # fmt: skip
        if len(self.copied) > MAX_LISTED:
            lines.append([Segment(f" ... and {len(self.copied) - MAX_LISTED:,} lines more", self.palette.quiet)])
        return lines, []


class ConfirmPane(LinesView):
    """A yes/no question before something costly or irreversible; closes with the answer."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("confirm")]

    def __init__(self, question: str, palette: Palette) -> None:
        super().__init__(palette, "confirm")
        self.question = question

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Builds the question and the keys that answer it."""
        lines = paragraph(self.question, width, self.palette.text)
        answer: Line = []
        for action in actions_of("confirm"):
            answer += [Segment(f" {key_text(keys_of(action)[0])}", self.palette.key), Segment(f" {action.text} ")]
        return [*lines, [], answer], []

    def action_answer(self, answer: bool) -> None:
        """Closes with the answer."""
        self.post_message(Close(answer))


def confirm(push: Callable[..., object], palette: Palette, question: str, act: Callable[[], object]) -> None:
    """Opens an overlay (``push``) with a yes/no question, and acts if the answer is yes."""
    push(Overlay(ConfirmPane(question, palette), palette), lambda yes: act() if yes else None)


class JumpScreen(ModalScreen[Any], OnceScreen):
    """Shows a letter over each pane; its result is the id of the chosen pane, empty if none."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("app")]
    CSS_PATH = Path(__file__).with_name("overlay.tcss")

    def __init__(self, panes: list[Widget], palette: Palette) -> None:
        super().__init__()
        placed = sorted(panes, key=lambda pane: (pane.region.y, pane.region.x))
        self.targets = [(letter, pane.id or "", pane.region) for letter, pane in zip(LETTERS, placed, strict=False)]
        self.palette = palette

    def compose(self) -> ComposeResult:
        """Yields a letter for the middle of each pane, in brackets to be visible without colours."""
        for letter, _, region in self.targets:
            label = Static(Text(f"[ {letter} ]", self.palette.chosen))
            label.styles.offset = (region.x + max(region.width // 2 - 2, 0), region.y + region.height // 2)
            yield label

    def on_key(self, event: events.Key) -> None:
        """Closes with the pane of the letter; any other printable key cancels (``q`` keeps its binding)."""
        chosen = next((pane for letter, pane, _ in self.targets if letter == event.character), "")
        if chosen or (event.is_printable and event.character != "q"):
            event.stop()
            event.prevent_default()
            self.dismiss(chosen)
