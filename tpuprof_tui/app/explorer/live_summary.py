"""The explorer's part in what goes on by itself, the live summary, and in going about: jump mode."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.screen import Screen
from textual.widget import Widget

from ..drawing.theme import Palette
from ..panes.keybar import KeyBar
from ..panes.summary.summary import SummaryPane
from ..panes.tree import GroupTree
from ..shell.watching import WatchingApp


class LiveKeys(Screen[None]):
    """Actions of the explorer that hold, follow and jump."""

    palette: Palette

    def action_pause(self) -> None:
        """The summary keeps its figures, or follows the view again."""
        summary = self.query_one("#summary", SummaryPane)
        summary.pause(not summary.paused)

    def action_next_capture(self) -> None:
        """The next capture beside this one."""
        self._switch(1)

    def action_previous_capture(self) -> None:
        """The capture before this one."""
        self._switch(-1)

    def _switch(self, steps: int) -> None:
        if isinstance(self.app, WatchingApp) and not self.app.switch_capture(steps):
            self.query_one(KeyBar).say("No other capture beside this one: O looks for captures further away.")

    @on(GroupTree.OpenCapture)
    def open_capture(self, message: GroupTree.OpenCapture) -> None:
        """A capture chosen in the tree."""
        message.stop()
        if isinstance(self.app, WatchingApp):
            self.app.switch_to(message.path)

    def action_reload(self) -> None:
        """Reads the capture again."""
        self._ask_app("reload")

    def action_open_other(self) -> None:
        """Lists captures."""
        self._ask_app("open_other")

    def _ask_app(self, name: str) -> None:
        method: Callable[[], None] | None = getattr(self.app, name, None)
        if method is not None:
            method()

    def action_jump(self) -> None:
        """A letter on each pane that shows; the next key goes there."""
        from ..overlays.jump import JumpScreen

        panes = [pane for pane in self.query(".pane").results(Widget) if pane.display and pane.region.area]

        def chosen(name: str | None) -> None:
            if name:
                self.query_one(f"#{name}").focus(scroll_visible=False)

        self.app.push_screen(JumpScreen(panes, self.palette), chosen)
