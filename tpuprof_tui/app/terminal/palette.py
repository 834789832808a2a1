"""The command palette: Textual's own, hardened against keys that arrive while it opens or closes.

Without the overrides such a key raises in Textual 8.2.8 and ends the explorer.

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

from .application import OnceScreen

#: Textual's implementation without the ``work`` decorator, so that it can be awaited.
_gather: Callable[[CommandPalette, str], Awaitable[None]] = CommandPalette._gather_commands.__wrapped__  # type: ignore[attr-defined]


class Options(CommandList, can_focus=False):
    """The list of matching commands."""

    def _on_click(self, event: events.Click) -> None:  # type: ignore[override]
        """Ignores a click on an option that is no longer in the list: Textual 8.2.8 looks it up without a check."""
        option = event.style.meta.get("option")
        if option is not None and option >= self.option_count:
            event.prevent_default()


class Commands(CommandPalette, OnceScreen):
    """Command palette of all actions."""

    def compose(self) -> ComposeResult:
        """Yields Textual's widgets, with ``Options`` as the list."""
        for widget in super().compose():
            yield Options() if isinstance(widget, CommandList) else widget

    def _action_command_list(self, action: str) -> None:
        """Ignores a page key that arrives before the list is laid out: Textual 8.2.8 looks its lines up."""
        with suppress(KeyError, IndexError, NoMatches):
            super()._action_command_list(action)

    def set_timer(self, delay: float, callback: Any = None, **settings: Any) -> Timer:
        """Overrides ``set_timer``: a callback is ignored if the list has been removed before the timer fires."""

        def ended() -> Any:
            with suppress(NoMatches):
                return callback()

        return super().set_timer(delay, ended if callback is not None else None, **settings)

    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        """Lists the matching commands; ignored if the palette closes meanwhile and its list is removed."""
        with suppress(NoMatches):
            await _gather(self, search_value)
