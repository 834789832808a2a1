"""The application's part in what the terminal gets: characters it can show, and nothing it shows already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.filter import LineFilter
from textual.screen import Screen
from textual.timer import Timer

from ..drawing.glyphs import AsciiFilter
from ..terminal.changed_cells import ShownCells
from .screen_release import ForgettingApp

if TYPE_CHECKING:
    from rich.console import RenderableType

#: Sizes change many times while a window is dragged: everything is sent anew when they rest, s.
REST_SECONDS = 0.1


class TerminalApp(ForgettingApp):
    """Sends only what has changed, in characters the terminal can show.

    Attributes:
        ascii_only: Whether nothing but ASCII is sent.
    """

    ascii_only: bool
    _resting: Timer | None = None

    def _prepare_terminal(self) -> None:
        self._shown = ShownCells()
        self._ascii_filter = AsciiFilter()

    def on_mount(self) -> None:
        """What another program left on the terminal is overwritten."""
        self.app_resume_signal.subscribe(self, lambda _: self.action_repaint())

    def get_line_filters(self) -> list[LineFilter]:
        """Nothing but ASCII reaches a terminal that cannot show more."""
        filters = list(super().get_line_filters())
        return [*filters, self._ascii_filter] if self.ascii_only else filters

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Sends what the terminal does not show yet."""
        # all that has segments may be displayed, as Textual's own updates are
        super()._display(screen, self._shown.only_changes(renderable))  # type: ignore[arg-type]

    def on_resize(self, event: events.Resize) -> None:
        """A terminal may have lost what it showed, also where it ends up as large as before."""
        if self._resting is None:
            # the first of all: nothing was shown before it
            self._resting = self.set_timer(0, lambda: None)
        else:
            self._resting.stop()
            self._resting = self.set_timer(REST_SECONDS, self.action_repaint)

    def action_repaint(self) -> None:
        """Draws everything anew."""
        self._shown.forget()
        # none is left when the time comes while the application closes
        for screen in self.screen_stack[-1:]:
            screen.refresh(repaint=True, layout=True)

    def action_suspend(self) -> None:
        """Back to the shell."""
        self.action_suspend_process()
