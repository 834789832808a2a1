"""The application: which screen shows, reading in a thread, keys that work everywhere."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import SystemCommand
from textual.binding import BindingType
from textual.message import Message
from textual.screen import ModalScreen, Screen
from textual.worker import Worker, WorkerState, get_current_worker

from tpuprof_tui.errors import NO_MEMORY, TpuprofError, UnreadableError

from ..drawing.glyphs import ASCII, UNICODE, wants_ascii
from ..drawing.theme import Palette, plain_palette
from ..settings.actions import ACTIONS, PANES, Action, bindings, key_text, keys_of
from ..settings.preferences import RememberingApp
from .captures import CancelledError
from .garbage_collection import unsettle
from .loading import LoadingPane, LoadingScreen
from .messages import ThreadFailed
from .terminal import TerminalApp
from .watching import sighting

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.session import Session
    from tpuprof_tui.model import Profile
    from tpuprof_tui.sources.catalog import Progress

    from .capture_list import CaptureList

#: Reports of progress reach the screen at most this often, s.
REPORT_EVERY = 0.2


class TpuprofApp(RememberingApp, TerminalApp):
    """The explorer.

    Args:
        path: Capture, file in one, or folder of captures; None: the captures below the current directory.
        chip: Chip name for captures that do not name it.
        tiu_mhz: TIU clock in MHz.
        trace_file: Host trace to show beside the capture.
        ascii_only: Draw with ASCII alone; None: as the terminal's locale asks.
        profile: A profile ready to show, instead of a path.
        debug: Let unexpected errors through.
        follow: Read the capture again when it changes on disk, and captures that appear beside it.
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

    class Loaded(Message):
        """A profile is ready to show."""

        def __init__(self, session: Session) -> None:
            super().__init__()
            self.session = session

    class Folder(Message):
        """The path is a folder of captures."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    class Failed(Message):
        """The capture could not be read."""

        def __init__(self, error: TpuprofError) -> None:
            super().__init__()
            self.error = error

    class Reported(Message):
        """The reader has got further."""

        def __init__(self, progress: Progress) -> None:
            super().__init__()
            self.progress = progress

    def __init__(
        self,
        path: str | None = None,
        *,
        chip: str | None = None,
        tiu_mhz: int | None = None,
        trace_file: str | None = None,
        ascii_only: bool | None = None,
        profile: Profile | None = None,
        debug: bool = False,
        follow: bool = False,
    ) -> None:
        # NO_COLOR: with an ansi theme from the start only default colours are sent, never greys
        plain = "NO_COLOR" in os.environ
        super().__init__(ansi_color=True if plain else None)
        self.theme = "ansi-dark" if plain else self.theme
        self.animation_level = "none"
        self.path = path
        self.chip = chip
        self.tiu_mhz = tiu_mhz
        self.trace_file = trace_file
        self.profile = profile
        self.debug_errors = debug
        self.ascii_only = wants_ascii(os.environ) if ascii_only is None else ascii_only
        self.glyphs = ASCII if self.ascii_only else UNICODE
        self.palette = plain_palette() if plain else Palette()
        self.take_up(plain)
        self._prepare_terminal()
        self.crash: Exception | None = None
        # of what was opened last: why it could not be, or else the exit status
        self.failure: TpuprofError | None = None
        self.status = 0
        self._reading: Worker[None] | None = None
        self._opened_last: tuple[str | None, Profile | None] | None = None
        self.follow = follow
        self._prepare_exports()

    def get_default_screen(self) -> Screen[None]:
        """The first frame: cheap, and painted before anything is read."""
        return self._loading_screen()

    def _loading_screen(self) -> LoadingScreen:
        what = self.path or (self.profile.name if self.profile else os.getcwd())
        return LoadingScreen(what, self.palette, self.glyphs)

    def on_mount(self) -> None:
        """Reading begins when the first frame is on the screen."""
        self.guard_signals()
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        if self.profile is None and self.path is None:
            self._choose(os.getcwd())
        else:
            self._reading = self._read()

    # reading

    @work(thread=True, exclusive=True, group="reading", exit_on_error=False)
    def _read(self) -> None:
        worker = get_current_worker()
        try:
            session = self._session(worker)
        except CancelledError:
            return
        except TpuprofError as error:
            self.post_message(self.Failed(error))
            return
        except MemoryError:
            self.post_message(self.Failed(UnreadableError(NO_MEMORY)))
            return
        if session is not None and not worker.is_cancelled:
            self.post_message(self.Loaded(session))

    def _session(self, worker: Worker[None]) -> Session | None:
        """The profile with its indexes; None where the path is a folder of captures."""
        from tpuprof_tui.analysis.opening import opened
        from tpuprof_tui.sources.catalog import open_profile

        from .captures import holds_captures, is_capture

        profile = self.profile
        if profile is None:
            path = self.path or os.curdir
            if not is_capture(Path(path)) and holds_captures(Path(path)):
                self.post_message(self.Folder(path))
                return None
            told = 0.0

            def report(progress: Progress) -> None:
                nonlocal told
                if worker.is_cancelled:
                    raise CancelledError
                if progress.core >= 0 or time.monotonic() - told > REPORT_EVERY:
                    told = time.monotonic()
                    self.post_message(self.Reported(progress))

            self.seen = sighting(path)
            self.fingerprint = self.seen.fingerprint
            profile = open_profile(path, chip=self.chip, tiu_mhz=self.tiu_mhz, progress=report)
            if self.trace_file is not None:
                from tpuprof_tui.sources.sophgo.read.host_trace import with_host_trace

                profile = with_host_trace(profile, self.trace_file)
            self.note_reading(profile)
        if worker.is_cancelled:
            raise CancelledError
        session = opened(profile)
        # drawing is imported here too: the event loop stays free for keys
        from ..explorer import screen as explorer  # noqa: F401

        return session

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """An unexpected error while reading ends in a sentence, not in a traceback."""
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None:
            told = self._told(error)
            if told:
                self.post_message(self.Failed(TpuprofError(told, "Try tpuprof --debug, and report it.")))

    def on_thread_failed(self, message: ThreadFailed) -> None:
        """The same for the threads of panes: what else is on the screen stays usable."""
        told = self._told(message.error)
        if told:
            self.say(told)

    def _told(self, error: BaseException) -> str:
        """The sentence about an unexpected error, whose details go to a log; with ``--debug`` it is raised."""
        if self.debug_errors and isinstance(error, Exception):
            self._handle_exception(error)
            return ""
        from tpuprof_tui.crash_log import reported

        return reported(error, [self.path or ""])

    def _handle_exception(self, error: Exception) -> None:
        """Unexpected errors leave the screen first; who called ``run`` tells them."""
        if self.debug_errors or self.is_headless:
            super()._handle_exception(error)
        else:
            self.crash = self.crash or error
            self.exit(1, return_code=1)

    def on_tpuprof_app_reported(self, message: Reported) -> None:
        """Shows progress."""
        if isinstance(self.screen, LoadingScreen):
            self.screen.pane.show_progress(message.progress)

    def on_tpuprof_app_failed(self, message: Failed) -> None:
        """Says why there is nothing to see, and what to do next."""
        if isinstance(self.screen, LoadingScreen):
            self.failure = message.error
            self.screen.pane.show_failure(message.error.message, message.error.hint)

    def on_tpuprof_app_folder(self, message: Folder) -> None:
        """A folder of captures: one is to be chosen."""
        self._choose(message.path)

    def on_tpuprof_app_loaded(self, message: Loaded) -> None:
        """Opens the explorer."""
        from tpuprof_tui.model import Severity, worst

        from ..explorer.screen import ExplorerScreen

        self.failure = None
        self.status = int(worst(message.session.profile.problems) == Severity.ERROR)
        kept = self.view_for(message.session)
        view = kept or self.first_view(message.session)
        screen = ExplorerScreen(message.session, self.palette, self.glyphs, view, self.captures_beside())
        if kept is not None:
            self.lay_out(screen)
        self._opened_last = self.path, self.profile
        self._replace(screen)
        self.call_after_refresh(self.watch_capture)
        self.call_after_refresh(self.tell_arrival)
        self.settle_soon()

    def may_look(self) -> bool:
        """Whether a capture is on the screen, and none is being read."""
        # none is left while the application closes
        return bool(self.screen_stack) and not isinstance(self.screen, LoadingScreen)

    def on_loading_pane_cancelled(self, message: LoadingPane.Cancelled) -> None:
        """Stops reading and lists captures instead."""
        message.stop()
        if self._reading is not None:
            self._reading.cancel()
        self.open_other()

    def _replace(self, screen: Screen[None]) -> None:
        """Shows another screen in place of all there are."""
        for each in self.screen_stack[1:]:
            self.forget(each)
        # the first screen cannot be switched: it stays below
        while len(self.screen_stack) > 2:
            self.pop_screen()
        if len(self.screen_stack) > 1:
            self.switch_screen(screen)
        else:
            self.push_screen(screen)

    def _choose(self, root: str) -> None:
        from .capture_list import ChooseScreen

        self._replace(ChooseScreen(root, self.palette))

    def on_capture_list_chosen(self, message: CaptureList.Chosen) -> None:
        """Opens the chosen capture."""
        message.stop()
        self.path, self.profile, self._kept = message.path, None, None
        self.reload()

    def reload(self) -> None:
        """Reads the capture (again); what is looked at stays."""
        self.keep_view()
        self._replace(self._loading_screen())
        unsettle()
        self._reading = self._read()

    def open_other(self) -> None:
        """Lists the captures beside the open one, or below the folder it was looked for in."""
        self.keep_view()
        path = Path(self.path or os.curdir)
        folder = path.parent if self.path and not (os.path.isdir(path) and not _is_capture_name(path)) else path
        self._choose(str(folder if os.path.isdir(folder) else Path.cwd()))

    def return_to_capture(self) -> None:
        """Opens the capture that was shown last, as it was looked at; nothing where none was."""
        if self._opened_last is not None:
            self.path, self.profile = self._opened_last
            self.reload()

    # keys

    def action_help(self) -> None:
        """Shows the help."""
        from ..overlays.help import HelpScreen

        if isinstance(self.screen, HelpScreen):
            self.pop_screen()
            return
        focused = self.screen.focused
        pane = focused.id if focused is not None and focused.id in PANES else ""
        self.push_screen(HelpScreen(self.palette, pane or "loading"))

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
        for action in ACTIONS:
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


def _is_capture_name(path: Path) -> bool:
    """Whether a directory looks like a capture, without importing the readers."""
    try:
        names = os.listdir(path)
    except OSError:
        return False
    return any(name == "global.profile" or name.startswith(("cdmlib", "cdma")) for name in names)
