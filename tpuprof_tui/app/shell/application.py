"""The application: what it is started with, and the keys that work everywhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import SystemCommand
from textual.binding import BindingType
from textual.screen import ModalScreen, Screen

from ..drawing.glyphs import ASCII, UNICODE, wants_ascii
from ..drawing.theme import Palette, plain_palette
from ..settings.actions import PANES, Action, actions_for, bindings, key_text, keys_of
from .opening import OpeningApp
from .terminal import TerminalApp

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.state import Place
    from tpuprof_tui.model import Profile, Vocabulary


class TpuprofApp(OpeningApp, TerminalApp):
    """The explorer.

    Args:
        path: Capture, file in one, or folder of captures; None: the captures below the current directory.
        paths: Several of them, to choose from; one or none: ``path`` says what is opened.
        options: Those of the source that reads it, by name.
        ascii_only: Draw with ASCII alone; None: as the terminal's locale asks.
        profile: A profile ready to show, instead of a path.
        debug: Let unexpected errors through.
        follow: Read the capture again when it changes on disk, and captures that appear beside it.
        against: What captures are compared with; None: nothing.
        notes: File of notes; empty: beside each capture; None: notes are not kept.
        place: What is shown first of what is opened first; None: all.
    """

    TITLE = "tpuprof"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("app")]
    CSS = """
    Screen { background: $background; color: $foreground; }
    ModalScreen { background: transparent; }
    LinesView { background: $background; }
    LoadingPane { background: $background; }
    CommandPalette SearchIcon { display: none; }
    """

    def __init__(
        self,
        path: str | None = None,
        *,
        paths: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
        ascii_only: bool | None = None,
        profile: Profile | None = None,
        debug: bool = False,
        follow: bool = False,
        against: str | None = None,
        notes: str | None = None,
        place: Place | None = None,
    ) -> None:
        # NO_COLOR: with an ansi theme from the start only default colours are sent, never greys
        plain = "NO_COLOR" in os.environ
        super().__init__(ansi_color=True if plain else None)
        self.theme = "ansi-dark" if plain else self.theme
        self.animation_level = "none"
        self.path = path
        self.paths = tuple(paths) if len(paths) > 1 else ()
        self.options = dict(options or {})
        self.profile = profile
        self.against = against
        self.notes = notes
        self.place = place
        self.debug_errors = debug
        self.ascii_only = wants_ascii(os.environ) if ascii_only is None else ascii_only
        self.glyphs = ASCII if self.ascii_only else UNICODE
        self.palette = plain_palette() if plain else Palette()
        self.take_up(plain)
        self._prepare_terminal()
        self._prepare_typing()
        self.crash: Exception | None = None
        self.follow = follow
        self._prepare_exports()

    def get_default_screen(self) -> Screen[None]:
        """The first frame: cheap, and painted before anything is read."""
        return self._loading_screen()

    def on_mount(self) -> None:
        """Reading begins when the first frame is on the screen."""
        self.guard_signals()
        self.call_after_refresh(self._begin)

    def _handle_exception(self, error: Exception) -> None:
        """Unexpected errors leave the screen first; who called ``run`` tells them."""
        if self.debug_errors or self.is_headless:
            super()._handle_exception(error)
        else:
            self.crash = self.crash or error
            self.exit(1, return_code=1)

    # keys

    @property
    def vocabulary(self) -> Vocabulary:
        """What the open profile calls things; before one is open, what those of this package's first source do."""
        from tpuprof_tui.sources.catalog import vocabularies

        return vocabularies()[0] if self.profile is None else self.profile.vocabulary

    def action_help(self) -> None:
        """Shows the help."""
        from ..overlays.help import HelpScreen

        if isinstance(self.screen, HelpScreen):
            self.pop_screen()
            return
        focused = self.screen.focused
        pane = focused.id if focused is not None and focused.id in PANES else ""
        self.push_screen(HelpScreen(self.palette, pane or "loading", self.vocabulary))

    def action_palette(self) -> None:
        """Opens the command palette."""
        self.action_command_palette()

    def action_command_palette(self) -> None:
        """Opens the command palette, unless it is open."""
        from .palette import Commands

        if not isinstance(self.screen, Commands):
            self.push_screen(Commands())

    async def action_quit(self) -> None:
        """Closes an overlay, else leaves."""
        if isinstance(self.screen, ModalScreen):
            self.pop_screen()
        else:
            self.leave()

    async def action_leave(self) -> None:
        """Leaves, whatever is open."""
        self.leave()

    async def action_back(self) -> None:
        """One step back; never out of the program."""
        if isinstance(self.screen, ModalScreen):
            self.pop_screen()
            return
        back = getattr(self.screen, "back", None)
        if back is not None:
            back()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """All actions of the registry that work on this screen."""
        focused = screen.focused.id if screen.focused is not None else None
        groups = PANES.get(focused or "", ("", ("app",)))[1]
        for action in actions_for(self.vocabulary):
            if action.pane in groups and action.id != "app.palette":
                keys = ", ".join(key_text(key) for key in keys_of(action))
                yield SystemCommand(action.text, f"{keys}  {action.help}", self._command(action, screen))

    def _command(self, action: Action, screen: Screen[object]):  # type: ignore[no-untyped-def]
        node = {"app": self, "explorer": screen}.get(action.pane, screen.focused)

        async def run() -> None:
            # a key pressed meanwhile may have closed what it was for
            if node is None or node is self or any(each in self.screen_stack for each in node.ancestors_with_self):
                await self.run_action(action.function, node)

        return run
