"""All keys, those of the focused pane first: made from the registry of actions."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import BindingType

from ..actions import GROUPS, PANES, actions_of, bindings, key_text, keys_of
from ..format import wrap
from ..theme import Palette
from ..widgets.keybar import KeyBar
from ..widgets.lines import Line, LinesView
from .overlay import Overlay

KEYS = 24

#: What the words of the screen mean, once.
WORDS: tuple[tuple[str, str], ...] = (
    ("work", "instructions other than system commands"),
    ("wait, sync", "system waits; the other system commands"),
    ("busy", "time with work on a lane (what overlaps counts once)"),
    ("idle", "time without work, wait and sync"),
    ("utilisation", "busy over the window"),
    ("compute", "work of a core's TIU"),
    ("transfer", "work of its GDMA and SDMA, and of the CDMA commands it submitted"),
    ("exposed", "transfer while the core does not compute"),
    ("~", "a figure that rests on guesswork: work and wait cannot be told apart for sure"),
    ("-", "not known in a capture of this mode"),
)


class HelpLines(LinesView):
    """The lines of the help screen."""

    def __init__(self, palette: Palette, pane: str) -> None:
        super().__init__(palette, "help")
        self.about = pane

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Keys by group, nearest first; then the others, then words."""
        near = PANES.get(self.about, ("", ("app",)))[1]
        lines: list[Line] = []
        for group in [*near, *(group for group in GROUPS if group not in near and group not in ("loading", "chooser"))]:
            lines += [[Segment(f" {GROUPS[group]}", self.palette.title)]]
            for action in actions_of(group):
                keys = "  ".join(key_text(key) for key in keys_of(action))
                lines += self._entry(keys, action.help, width)
            lines.append([])
        lines.append([Segment(" Words", self.palette.title)])
        for word, meaning in WORDS:
            lines += self._entry(word, meaning, width)
        return lines, []

    def _entry(self, keys: str, text: str, width: int) -> list[Line]:
        column = min(KEYS, max(width // 3, 6))
        first, *rest = wrap(text, max(width - column - 4, 8))
        lines: list[Line] = []
        if len(keys) > column:
            lines.append([Segment(f"   {keys}", self.palette.key)])
            keys = ""
        lines.append([Segment(f"   {keys:<{column}}", self.palette.key), Segment(first, self.palette.text)])
        return lines + [[Segment(" " * (column + 3) + line, self.palette.text)] for line in rest]


class HelpScreen(Overlay[None]):
    """Help over whatever is on the screen."""

    AUTO_FOCUS = "#help"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("app")]
    CSS = """
    HelpScreen { align: center middle; }
    HelpScreen #help { width: 88%; max-width: 96; height: 92%; border: round $accent; background: $surface; }
    """

    def __init__(self, palette: Palette, pane: str) -> None:
        super().__init__()
        self.palette = palette
        self.pane = pane

    def compose(self) -> ComposeResult:
        """The lines, and the keys that work here."""
        lines = HelpLines(self.palette, self.pane)
        lines.border_title = "Keys"
        lines.border_subtitle = "Esc or q closes"
        yield lines
        yield KeyBar(self.palette, "help")
