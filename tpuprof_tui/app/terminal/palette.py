"""The command palette: Textual's own, for keys that come faster than it opens and closes: they would end the explorer.

Relies on ``OptionList._on_click``, ``CommandPalette._action_command_list`` and ``CommandPalette._gather_commands``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from textual import events, work
from textual.app import ComposeResult
from textual.command import CommandList, CommandPalette
from textual.css.query import NoMatches
from textual.timer import Timer

from .line_compositor import DrawnScreen

#: What it does for each text, without the thread of its own.
_gather: Callable[[CommandPalette, str], Awaitable[None]] = CommandPalette._gather_commands.__wrapped__  # type: ignore[attr-defined]


class Options(CommandList, can_focus=False):
    """The commands that match."""

    def _on_click(self, event: events.Click) -> None:  # type: ignore[override]
        """A click on what was there before the list changed is passed over: Textual 8.2.8 looks it up."""
        option = event.style.meta.get("option")
        if option is not None and option >= self.option_count:
            event.prevent_default()


class Commands(CommandPalette, DrawnScreen[Any]):
    """All actions by name."""

    def compose(self) -> ComposeResult:
        """As Textual's, with a list of our own."""
        for widget in super().compose():
            yield Options() if isinstance(widget, CommandList) else widget

    def _action_command_list(self, action: str) -> None:
        """A page key that comes before the list is laid out is passed over: Textual 8.2.8 looks its lines up."""
        with suppress(KeyError, IndexError, NoMatches):
            super()._action_command_list(action)

    def set_timer(self, delay: float, callback: Any = None, **settings: Any) -> Timer:
        """Its countdowns may end when its list is gone already."""

        def ended() -> Any:
            with suppress(NoMatches):
                return callback()

        return super().set_timer(delay, ended if callback is not None else None, **settings)

    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        """Lists the commands that match, unless it was closed meanwhile: its list is gone then."""
        with suppress(NoMatches):
            await _gather(self, search_value)
