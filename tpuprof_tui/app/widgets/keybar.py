"""The bottom line: the keys that work here, and what was just done."""

from __future__ import annotations

from rich.segment import Segment
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from ..actions import footer_actions, key_text
from ..format import clean, fit
from ..theme import Palette


class KeyBar(Widget):
    """One line: keys of the focused pane on the left, a passing message instead of them for a few seconds."""

    DEFAULT_CSS = "KeyBar { dock: bottom; height: 1; background: $panel; color: $foreground; }"
    SHOWN_SECONDS = 4.0

    def __init__(self, palette: Palette, pane: str) -> None:
        super().__init__()
        self.palette = palette
        self.pane = pane
        self.message = ""
        self._timer: Timer | None = None

    def show_pane(self, pane: str) -> None:
        """Shows the keys of ``pane``."""
        if pane != self.pane:
            self.pane = pane
            self.refresh()

    def say(self, message: str) -> None:
        """Shows a message for a few seconds."""
        self.message = clean(message)
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(self.SHOWN_SECONDS, self._silence)
        self.refresh()

    def _silence(self) -> None:
        self.message = ""
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """The line."""
        width = self.size.width
        base = self.rich_style
        if self.message:
            return Strip([Segment(fit(f" {self.message}", width), base + self.palette.strong)], width)
        segments: list[Segment] = []
        used = 0
        for action in footer_actions(self.pane):
            key = f" {key_text(action.keys[0])}"
            text = f" {action.text} "
            if used + len(key) + len(text) > width:
                continue
            segments += [Segment(key, base + self.palette.key), Segment(text, base)]
            used += len(key) + len(text)
        segments.append(Segment(" " * (width - used), base))
        return Strip(segments, width)
