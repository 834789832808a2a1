"""The explorer's part in what goes on by itself: the live summary."""

from __future__ import annotations

from textual.screen import Screen

from ..widgets.summary import SummaryPane


class LiveKeys(Screen[None]):
    """Actions of the explorer that hold or follow."""

    def action_pause(self) -> None:
        """The summary keeps its figures, or follows the view again."""
        summary = self.query_one("#summary", SummaryPane)
        summary.pause(not summary.paused)
