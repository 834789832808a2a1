"""The Textual App: start-up and exit, screen switching, loading and watching captures, and global key actions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import events, on
from textual.app import SystemCommand
from textual.binding import BindingType
from textual.filter import LineFilter
from textual.screen import ModalScreen, Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.sources.catalog import vocabularies
from tpuprof_tui.sources.source import RECORDINGS

from ..drawing.glyphs import ASCII, UNICODE, AsciiFilter, wants_ascii
from ..drawing.theme import THEMES, TITLES
from ..panes.lines import LinesView
from ..panes.prompt import KeyBar
from ..settings.actions import PANES, Action, actions_for, bindings, key_text, keymap_of, keys_of, remap
from ..settings.config import Preferences
from ..terminal import ActionPalette, TerminalApp
from . import messages, process
from .exports import Exports
from .key_queue import KeyQueue
from .loading import LoadingScreen
from .opening import Capture, Opening

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.state import Place
    from tpuprof_tui.model import Profile, Vocabulary

    from ..explorer.screen import ExplorerScreen

#: Seconds without a resize before a full repaint: the size changes many times while a window is dragged.
REPAINT_DELAY: Final = 0.1


class TpuprofApp(TerminalApp):
    """The tpuprof application.

    Args that differ from `tpuprof_tui.app.run`:
        path: Capture, file in a capture, or folder of captures; None: lists captures below the current directory.
        paths: More than one: listed to choose from; otherwise ``path`` is opened.
        profile: A profile to show instead of reading a path.
        notes: Notes file; empty: next to each capture; None: notes are not saved.
    """

    TITLE = "tpuprof"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("app")]
    CSS_PATH = Path(__file__).with_name("application.tcss")

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
        # NO_COLOR: an ansi theme must be set from the start, so that only default colours are sent, never greys
        plain = "NO_COLOR" in os.environ
        super().__init__(ansi_color=True if plain else None, debug=debug)
        self.animation_level = "none"
        self.ascii_only = wants_ascii(os.environ) if ascii_only is None else ascii_only
        self.glyphs = ASCII if self.ascii_only else UNICODE
        self._ascii_filter = AsciiFilter()
        self._repaint_timer: Timer | None = None
        self.preferences = Preferences(colours=not plain)
        self._apply_preferences()
        #: Notice in the bottom line (such as a change on disk), shown while no export is running; empty: none.
        self._notice = ""
        options = options or {}
        self.opening = Opening(
            self, Capture(path, profile, options.get(RECORDINGS.name, "")), paths, options, follow=follow,
            against=against, notes=notes, place=place,
        )  # fmt: skip
        self.exports = Exports(self, self.opening.options)
        self.key_queue = KeyQueue(self, super().on_event)

    # start-up and exit

    def get_default_screen(self) -> Screen[None]:
        """Returns the loading screen: cheap, so that the first frame is painted before anything is read."""
        return self.opening.loading_screen()

    def on_mount(self) -> None:
        """Sets up signals, memory and threads for the lifetime of the application."""
        self.keep_context()
        if not self.is_headless:
            process.Signals(self).watch()
        process.use_single_malloc_arena()
        asyncio.get_running_loop().set_default_executor(process.ContextFreePool(thread_name_prefix="tpuprof"))
        # after a suspend, overwrite what other programs left on the terminal
        self.app_resume_signal.subscribe(self, lambda _: self.action_repaint())

    def on_ready(self) -> None:
        """Starts reading once the first frame is on the screen."""
        self.opening.start()

    def exit(self, *arguments: Any, **settings: Any) -> None:
        """Exits, after saving the state as preferences."""
        self.save_state()
        self.key_queue.close()
        super().exit(*arguments, **settings)

    def save_state(self) -> None:
        """Saves columns and timeline options of the open capture as preferences."""
        explorer = self.explorer
        if explorer is not None:
            self.preferences.save_state(explorer.state, explorer.session)

    def leave(self) -> None:
        """Exits; asks first if an export is running."""
        running = self.exports.running
        if running is None:
            self.exit(0)
            return
        if self.screen.has_class("confirm"):
            return
        from ..overlays.overlay import confirm

        def end() -> None:
            self.exports.end()
            self.exit(0)

        text = f"An export is running: {running.text}. Stop it and quit?"
        confirm(self.push_screen, self.preferences.palette, text, end)

    # screens

    @property
    def explorer(self) -> ExplorerScreen | None:
        """The explorer screen of the open capture, even if covered by overlays; None if there is none."""
        if not self.opening.has_shown:
            return None
        from ..explorer.screen import ExplorerScreen

        return next((each for each in self.screen_stack if isinstance(each, ExplorerScreen)), None)

    @property
    def loading(self) -> LoadingScreen | None:
        """The loading screen while a capture is read, even if covered by an overlay; None otherwise."""
        screen = next((each for each in reversed(self.screen_stack) if not each.is_modal), None)
        return screen if isinstance(screen, LoadingScreen) and not screen.failed else None

    @on(messages.CaptureRequest)
    def dispatch_request(self, message: messages.CaptureRequest) -> None:
        """Lets a screen open or list captures."""
        getattr(self.opening, message.action)(*message.arguments)

    # messages

    @on(messages.CopyText)
    def copy(self, message: messages.CopyText) -> None:
        """Copies a text of a pane."""
        from ..overlays.overlay import copy_text

        copy_text(self.screen, self.preferences.palette, message.text, message.label)

    def _bars(self) -> list[KeyBar]:
        return [bar for screen in self.screen_stack for bar in screen.query(KeyBar)]

    def say(self, text: str) -> None:
        """Shows a transient message."""
        for bar in self._bars():
            bar.say(text)

    def show_notice(self, text: str) -> None:
        """Sets the notice; shows it unless an export is running, which shows its progress."""
        self._notice = text
        running = self.exports.running
        for bar in self._bars():
            bar.status = clean(running.text if running is not None else text)

    def export_changed(self) -> None:
        """Shows the state of exports, after one started, progressed or ended."""
        self.show_notice(self._notice)
        # no screen is left while the application closes
        for screen in self.screen_stack[-1:]:
            screen.post_message(messages.ExportChanged())

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Reports an error of a worker thread."""
        messages.post_worker_failure(self, event)

    def on_thread_failed(self, message: messages.ThreadFailed) -> None:
        """Shows an unexpected error of a thread as a sentence; the screen stays usable."""
        text = self.log_unexpected(message.error)
        if text:
            self.say(text)

    def log_unexpected(self, error: BaseException) -> str:
        """Logs an unexpected error and returns a sentence about it; with ``--debug``, exits with the traceback."""
        if self.debug_errors and isinstance(error, Exception):
            self._handle_exception(error)
            return ""
        from tpuprof_tui.crash_log import reported

        return reported(error, [self.opening.capture.path or ""])

    # keys

    async def on_event(self, event: events.Event) -> None:
        """Passes keyboard input through the key queue; drops all input once the application is exiting."""
        typed = isinstance(event, events.Key | events.Paste)
        if self.key_queue.closed and (typed or isinstance(event, events.InputEvent)):
            return
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self.key_queue.take(event)
        else:
            await super().on_event(event)

    @property
    def vocabulary(self) -> Vocabulary:
        """Vocabulary of the open profile; without one, of the first source of this package."""
        explorer = self.explorer
        if explorer is not None:
            return explorer.session.profile.vocabulary
        return vocabularies()[0]

    def action_help(self) -> None:
        """Opens or closes the help."""
        if self.screen.has_class("help"):
            self.pop_screen()
            return
        from ..overlays.help import HelpLines
        from ..overlays.overlay import Overlay

        focused = self.screen.focused
        pane = focused.id if focused is not None and focused.id in PANES else ""
        palette, vocabulary = self.preferences.palette, self.vocabulary
        self.push_screen(Overlay(HelpLines(palette, pane or "loading", vocabulary), palette, vocabulary))

    def action_command_palette(self) -> None:
        """Opens the command palette, unless it is open."""
        if not isinstance(self.screen, ActionPalette):
            self.push_screen(ActionPalette())

    async def action_quit(self) -> None:
        """Closes the overlay if one is open, else exits."""
        if isinstance(self.screen, ModalScreen):
            self.pop_screen()
        else:
            self.leave()

    async def action_leave(self) -> None:
        """Exits, even if an overlay is open."""
        self.leave()

    async def action_back(self) -> None:
        """Closes an overlay or undoes one step; never exits."""
        if isinstance(self.screen, ModalScreen):
            self.pop_screen()
            return
        back = getattr(self.screen, "back", None)
        if back is not None:
            back()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yields the registry's actions that are available on this screen."""
        focused = screen.focused.id if screen.focused is not None else None
        groups = PANES.get(focused or "", ("", ("app",)))[1]
        for action in actions_for(self.vocabulary):
            if action.pane in groups and action.id != "app.palette":
                keys = ", ".join(key_text(key) for key in keys_of(action))
                yield SystemCommand(action.text, f"{keys}  {action.help}", self._command(action, screen))

    def _command(self, action: Action, screen: Screen[object]):  # type: ignore[no-untyped-def]
        node = {"app": self, "explorer": screen}.get(action.pane, screen.focused)

        async def run() -> None:
            # a key pressed meanwhile may have closed the screen of the node
            if node is None or node is self or any(each in self.screen_stack for each in node.ancestors_with_self):
                await self.run_action(action.function, node)

        return run

    # appearance

    def _apply_preferences(self) -> None:
        for theme, _ in THEMES.values():
            self.register_theme(theme)
        self.theme = self.preferences.textual_theme
        keys = keymap_of(self.preferences.config.keys)
        remap(keys)
        self.set_keymap(keys)

    def action_theme(self) -> None:
        """Switches to the next theme, on all screens."""
        if not self.preferences.theme:
            self.say("Colours are switched off by NO_COLOR.")
            return
        self.preferences.next_theme()
        self.theme = self.preferences.textual_theme
        for screen in self.screen_stack:
            for node in (screen, *screen.walk_children(Widget)):
                if hasattr(node, "palette"):
                    node.palette = self.preferences.palette
                if isinstance(node, LinesView) and node.size.width:
                    node.rebuild()
                node.refresh()
        self.say(f"Theme: {TITLES[self.preferences.theme]}")

    def get_line_filters(self) -> list[LineFilter]:
        """Adds a filter to ASCII for terminals that cannot show more."""
        filters = list(super().get_line_filters())
        return [*filters, self._ascii_filter] if self.ascii_only else filters

    def on_resize(self, event: events.Resize) -> None:
        """Repaints after a resize: the terminal may have lost its contents, even if its final size is unchanged."""
        if self._repaint_timer is None:
            # first resize: nothing to repaint yet; a real delay, as stopping a timer of 0 s fails in Textual
            self._repaint_timer = self.set_timer(REPAINT_DELAY, lambda: None)
        else:
            self._repaint_timer.stop()
            self._repaint_timer = self.set_timer(REPAINT_DELAY, self.action_repaint)

    def action_repaint(self) -> None:
        """Repaints the whole screen."""
        self.terminal_cells.forget()
        # the stack is empty if the timer fires while the application closes
        for screen in self.screen_stack[-1:]:
            screen.refresh(repaint=True, layout=True)
