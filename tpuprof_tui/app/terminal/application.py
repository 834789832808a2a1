"""Base application: overrides of Textual's App for differential output and error exit.

Relies on ``App._display`` (see ``changed_cells``) and ``App._handle_exception``: Textual has no public way to restore
the terminal before a one-sentence message about an unexpected error; it prints the traceback of all frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.await_complete import AwaitComplete
from textual.screen import Screen

from .changed_cells import TerminalCells

if TYPE_CHECKING:
    from rich.console import RenderableType


class OnceScreen(Screen[Any]):
    """A screen that is dismissed once: a second key that comes before it is gone would close the screen below."""

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Closes the screen unless it is closed already."""
        return super().dismiss(result) if self.is_active else AwaitComplete()


class TerminalApp(App[int]):
    """Sends only changed cells, and restores the terminal before it reports an error.

    Attributes:
        terminal_cells: The cells that the terminal currently shows.
        debug_errors: Whether unexpected errors propagate with their traceback.
        crash: The unexpected error that ended the application, to be reported by the caller of ``run``.
    """

    def __init__(self, *, ansi_color: bool | None = None, debug: bool = False) -> None:
        super().__init__(ansi_color=ansi_color)
        self.terminal_cells = TerminalCells()
        self.debug_errors = debug
        self.crash: Exception | None = None

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        # any object with segments may be displayed, as Textual's own updates are
        super()._display(screen, self.terminal_cells.wrap_update(renderable))  # type: ignore[arg-type]

    def _handle_exception(self, error: Exception) -> None:
        if self.debug_errors or self.is_headless:
            super()._handle_exception(error)
        else:
            self.crash = self.crash or error
            self.exit(1, return_code=1)
