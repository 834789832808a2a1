"""The explorer's part in what goes on by itself, the live summary, and in going about: jump mode."""

from __future__ import annotations

from textual.screen import Screen
from textual.widget import Widget

from ..theme import Palette
from ..widgets.summary import SummaryPane


class LiveKeys(Screen[None]):
    """Actions of the explorer that hold, follow and jump."""

    palette: Palette

    def action_pause(self) -> None:
        """The summary keeps its figures, or follows the view again."""
        summary = self.query_one("#summary", SummaryPane)
        summary.pause(not summary.paused)

    def action_jump(self) -> None:
        """A letter on each pane that shows; the next key goes there."""
        from .jump import JumpScreen

        panes = [pane for pane in self.query(".pane").results(Widget) if pane.display and pane.region.area]

        def chosen(name: str | None) -> None:
            if name:
                self.query_one(f"#{name}").focus(scroll_visible=False)

        self.app.push_screen(JumpScreen(panes, self.palette), chosen)
