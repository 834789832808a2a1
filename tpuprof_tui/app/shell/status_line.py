"""The bottom lines of all screens: passing messages, and what is at work or waits for a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tpuprof_tui.formats.escape import clean

from ..panes.keybar import KeyBar


class StatusLine:
    """Tells the same in the bottom line of every screen, also below an overlay.

    Args:
        bars: Gives the bottom lines there are.
    """

    def __init__(self, bars: Callable[[], Iterable[KeyBar]]) -> None:
        self._bars = bars
        self._work = ""
        self._notice = ""

    def say(self, text: str) -> None:
        """Shows a passing message."""
        for bar in self._bars():
            bar.say(text)

    def show_work(self, text: str) -> None:
        """Shows how far an export is; empty: none is at work."""
        self._work = text
        self._show()

    def show_notice(self, text: str) -> None:
        """Shows what waits for a key, while no export is at work; empty: nothing does."""
        if text != self._notice:
            self._notice = text
            self._show()

    def _show(self) -> None:
        for bar in self._bars():
            bar.status = clean(self._work or self._notice)
