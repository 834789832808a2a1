"""The application's part in what is remembered for a user: theme, keys, columns, sort."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from textual.widget import Widget

from tpuprof_tui.analysis.selecting.state import ViewState

from ..drawing.themes import THEMES, TITLES, after
from ..panes.lines import LinesView
from ..shell.watching import WatchingApp
from .actions import remap, with_way_out
from .config import LOOKS, Config, read_config, write_config

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.session import Session
    from tpuprof_tui.model import Profile

#: How often it is asked whether there still is a terminal, s: nohup keeps away the signal that would say so.
GONE_SECONDS = 1.0


class RememberingApp(WatchingApp):
    """Takes up what was remembered, and remembers what is chosen.

    Attributes:
        config: What was remembered when the explorer started, and what has been chosen since.
        theme_name: Name of the theme; empty where colours are not wanted.
    """

    config: Config
    theme_name: str = ""
    _terminal: select.poll | None = None

    def take_up(self, plain: bool) -> None:
        """Applies what is remembered; ``plain`` terminals keep their own colours."""
        self.config = read_config()
        for theme, _ in THEMES.values():
            self.register_theme(theme)
        if not plain:
            self._use_theme(self.config.theme if self.config.theme in THEMES else next(iter(THEMES)))
        keys = with_way_out(self.config.keys)
        remap(keys)
        self.set_keymap(keys)

    def _use_theme(self, name: str) -> None:
        theme, self.palette = THEMES[name]
        self.theme, self.theme_name = theme.name, name

    def action_theme(self) -> None:
        """The next theme, on all that is on the screen."""
        if not self.theme_name:
            self.say("Colours are switched off by NO_COLOR.")
            return
        self._use_theme(after(self.theme_name))
        for widget in self._all_widgets():
            if hasattr(widget, "palette"):
                widget.palette = self.palette
            if isinstance(widget, LinesView) and widget.size.width:
                widget.rebuild()
            widget.refresh()
        self._remember({"theme": self.theme_name}, theme=self.theme_name)
        self.say(f"Theme: {TITLES[self.theme_name]}")

    def _all_widgets(self) -> Iterator[Widget]:
        for screen in self.screen_stack:
            if hasattr(screen, "palette"):
                screen.palette = self.palette
            yield from screen.walk_children(Widget)

    def first_view(self, session: Session) -> ViewState:
        """The view a profile opens with: columns and sort as they were last, as far as this profile has them."""
        profile = session.profile
        view = ViewState.of(profile.start_ns, profile.end_ns)
        known = {column.key for column in session.columns}
        columns = tuple(key for key in self.config.columns if key in known)
        sort = self.config.sort
        view = replace(view, columns=columns, sort=sort if sort is not None and sort.key in known else view.sort)
        return self._with_looks(view, profile)

    def _with_looks(self, view: ViewState, profile: Profile) -> ViewState:
        """The view with the looks that were chosen last, as far as the profile knows what they show."""
        from tpuprof_tui.analysis.selecting.time_scale import clock_of
        from tpuprof_tui.app.drawing.colouring import is_known

        looks: dict[str, Any] = dict(self.config.looks)
        if not is_known(profile, looks.get("colouring", "operation")):
            looks.pop("colouring", None)
        if looks.get("strip") == "bandwidth" and not is_known(profile, "bandwidth"):
            del looks["strip"]
        if not clock_of(profile.device):
            looks.pop("scale", None)
        return replace(view, **looks)

    def remember_view(self) -> None:
        """Remembers columns, sort and the timeline's looks, where they are not as they were."""
        from ..explorer.screen import ExplorerScreen

        screen = next((each for each in self.screen_stack if isinstance(each, ExplorerScreen)), None)
        if screen is None:
            return
        view, first = screen.view, self.first_view(screen.session)
        changes: dict[str, Any] = {}
        if view.columns != first.columns:
            changes["columns"] = list(view.columns)
        if view.sort != first.sort:
            changes["sort"] = [view.sort.key, view.sort.down]
        if changes:
            self._remember(changes, columns=view.columns, sort=view.sort)
        if any(getattr(view, name) != getattr(first, name) for name in LOOKS):
            looks = {name: getattr(view, name) for name in LOOKS}
            self._remember({"timeline": looks}, looks=looks)

    def _remember(self, changes: dict[str, Any], **fields: Any) -> None:
        self.config = replace(self.config, **fields)
        write_config(changes)

    def guard_signals(self) -> None:
        """A terminal that is closed, or a request to end, costs nothing that was chosen and leaves no export behind."""
        if self.is_headless:
            return
        for number in (signal.SIGHUP, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup asked for that
                asyncio.get_running_loop().add_signal_handler(number, self._end_by, number)
        if sys.__stdin__ and sys.__stdin__.isatty():
            self._terminal = select.poll()
            # that a terminal is closed is told whatever is asked for
            self._terminal.register(sys.__stdin__.fileno(), 0)
            self.set_interval(GONE_SECONDS, self._end_without)

    def _is_gone(self) -> bool:
        """Whether the terminal was closed: nothing could be read or shown any more."""
        return self._terminal is None or bool(self._terminal.poll(0))

    def _end_without(self) -> None:
        """Ends where no signal said that the terminal was closed."""
        if self._is_gone():
            self._end_by(signal.SIGHUP)

    def _end_by(self, number: int) -> None:
        self.exporter.stop()
        if number == signal.SIGTERM or not self._is_gone():
            # the terminal lives: it is left as it was found
            self.exit(return_code=128 + number)
            return
        self.remember_view()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def exit(self, *arguments: Any, **settings: Any) -> None:
        """Leaves; what was chosen is remembered."""
        self.remember_view()
        super().exit(*arguments, **settings)
