"""Textual's application with what is overridden of its private parts: what it sends, and how it ends when it fails.

Relies on ``App._display`` (see ``changed_cells``) and ``App._handle_exception``: Textual has no public way to leave the
terminal as it was before a sentence about an unexpected error is written; it prints the traceback of all frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App
from textual.screen import Screen

from .changed_cells import ShownCells

if TYPE_CHECKING:
    from rich.console import RenderableType


class TerminalApp(App[int]):
    """Sends what has changed alone, and leaves the screen before an unexpected error is told.

    Attributes:
        shown_cells: What the terminal shows.
        debug: Unexpected errors go through with their traceback.
        crash: What ended the application unexpectedly; who called ``run`` tells it.
    """

    def __init__(self, *, ansi_color: bool | None = None, debug: bool = False) -> None:
        super().__init__(ansi_color=ansi_color)
        self.shown_cells = ShownCells()
        self.debug_errors = debug
        self.crash: Exception | None = None

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        # all that has segments may be displayed, as Textual's own updates are
        super()._display(screen, self.shown_cells.only_changes(renderable))  # type: ignore[arg-type]

    def _handle_exception(self, error: Exception) -> None:
        if self.debug_errors or self.is_headless:
            super()._handle_exception(error)
        else:
            self.crash = self.crash or error
            self.exit(1, return_code=1)
