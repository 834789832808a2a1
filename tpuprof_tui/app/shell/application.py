"""The Textual App: start-up and exit, screen switching, loading and watching captures, and global key actions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final
from weakref import WeakSet

from msgspec.structs import replace
from textual import events, on
from textual.app import SystemCommand
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.filter import LineFilter
from textual.screen import ModalScreen, Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker

from tpuprof_tui.dataset import is_data_set
from tpuprof_tui.errors import TpuprofError
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.sources.source import RECORDINGS

from ..drawing.glyphs import ASCII, UNICODE, AsciiFilter, wants_ascii
from ..drawing.theme import THEMES, TITLES
from ..panes.keybar import KeyBar
from ..panes.lines import LinesView
from ..settings.actions import PANES, Action, actions_for, bindings, key_text, keymap_of, keys_of, remap
from ..settings.preferences import Preferences
from ..terminal.application import TerminalApp
from . import memory_tuning, messages, reading, watching
from .captures import capture_of, index_of, neighbours
from .exports import ExportRunner
from .initial_state import apply_notes_and_place, carried_state
from .key_queue import KeyQueue
from .loading import LoadingPane, LoadingScreen
from .reading import Capture, CaptureReader
from .signals import Signals
from .watching import CaptureWatcher, DiskState

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.state import DisplayState, Place
    from tpuprof_tui.model import Profile, Vocabulary
    from tpuprof_tui.sources.catalog import Catalog

    from ..explorer.layout import Layout
    from ..explorer.screen import ExplorerScreen
    from .capture_list import CaptureList
    from .data_set import DataSetViewState

#: Delays in seconds of garbage collection, the first after a capture is shown: when the previous screen is removed, and
#: for a replaced capture again when worker threads have released it. The last is repeated until they have.
COLLECT_SECONDS: Final = (1.0, 10.0)
#: Seconds without a resize before a full repaint: the size changes many times while a window is dragged.
REPAINT_DELAY: Final = 0.1


class TpuprofApp(TerminalApp):
    """The tpuprof application.

    Args that differ from `tpuprof_tui.app.run`:
        path: Capture, file in a capture, or folder of captures; None: lists captures below the current directory.
        paths: More than one: listed to choose from; otherwise ``path`` is opened.
        profile: A profile to show instead of reading a path.
        notes: Notes file; empty: next to each capture; None: notes are not saved.

    Attributes:
        capture: The capture that is open or being opened.
        failure: Why the last capture could not be opened; None if it could.
        status: Exit status for the last capture: 1 if an error is among its problems, else 0.
    """

    TITLE = "tpuprof"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("app")]
    CSS = """
    Screen { background: $background; color: $foreground; }
    ModalScreen, CommandPalette { background: transparent; }
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
        # NO_COLOR: an ansi theme must be set from the start, so that only default colours are sent, never greys
        plain = "NO_COLOR" in os.environ
        super().__init__(ansi_color=True if plain else None, debug=debug)
        self.animation_level = "none"
        self.options = dict(options or {})
        self.capture = Capture(path, profile, self.options.get(RECORDINGS.name, ""))
        self.paths = tuple(paths) if len(paths) > 1 else ()
        self.follow = follow
        self.notes = notes
        self.place = place
        self.ascii_only = wants_ascii(os.environ) if ascii_only is None else ascii_only
        self.glyphs = ASCII if self.ascii_only else UNICODE
        #: Folder or address of the data set that captures are chosen from; empty: none.
        self.data_set = ""
        self._data_set_view: DataSetViewState | None = None
        self.failure: TpuprofError | None = None
        self.status = 0
        #: The capture on the screen (or shown last), and its state on disk before it was read.
        self._last_shown: tuple[Capture, DiskState] | None = None
        #: View to carry over to the next profile: display state, its profile, and layout.
        self._view_to_restore: tuple[DisplayState, Profile, Layout] | None = None
        #: Message to show when the capture being read is on the screen.
        self._message_when_loaded = ""
        #: Whether the previous capture is shown again if reading fails.
        self._restore_on_failure = False
        #: Message while the rest of the profile on the screen is being read; empty: it is complete.
        self._partial_message = ""
        #: Profile that was loaded while an overlay covered the loading screen; shown when it closes.
        self._pending_loaded: reading.Loaded | None = None
        self._ascii_filter = AsciiFilter()
        self._repaint_timer: Timer | None = None
        self._poll_timer: Timer | None = None
        self._collect_timer: Timer | None = None
        #: Replaced screens of captures that are still in memory.
        self._replaced = WeakSet[Screen[None]]()

        self.preferences = Preferences(colours=not plain)
        self._apply_preferences()
        #: Notice in the bottom line (such as a change on disk), shown while no export is running; empty: none.
        self._notice = ""
        self.exports = ExportRunner(
            self.options, run=self._run_export, say=self._say, changed=self._export_changed,
            failed=lambda error: self.post_message(messages.ThreadFailed(error)),
        )  # fmt: skip
        self.key_queue = KeyQueue(super().on_event, self._key_target, self._loading_with_keys, self.set_timer)
        self.watcher = CaptureWatcher()
        self.reader = CaptureReader(
            lambda: self.catalog, self.options, against, notes, post=self.post_message,
            run=partial(self.run_worker, group="reading", exclusive=True, thread=True, exit_on_error=False),
        )  # fmt: skip
        self.signals = Signals(self._leave_by_signal, self._abandon)

    # start-up and exit

    def get_default_screen(self) -> Screen[None]:
        """Returns the loading screen: cheap, so that the first frame is painted before anything is read."""
        return self._loading_screen()

    def on_mount(self) -> None:
        """Sets up signals, memory and threads for the lifetime of the application."""
        self.keep_context()
        if not self.is_headless:
            self.signals.watch(self.set_interval)
        memory_tuning.use_single_malloc_arena()
        asyncio.get_running_loop().set_default_executor(memory_tuning.ContextFreePool(thread_name_prefix="tpuprof"))
        # after a suspend, overwrite what other programs left on the terminal
        self.app_resume_signal.subscribe(self, lambda _: self.action_repaint())

    def on_ready(self) -> None:
        """Starts reading once the first frame is on the screen."""
        if self.capture.profile is None and self.capture.path is None:
            self._show_capture_list(*(self.paths or [os.getcwd()]))
        else:
            self.reader.read(self.capture)

    def exit(self, *arguments: Any, **settings: Any) -> None:
        """Exits, after saving the state as preferences."""
        self._save_state()
        self.key_queue.close()
        super().exit(*arguments, **settings)

    def _save_state(self) -> None:
        explorer = self.explorer
        if explorer is not None:
            self.preferences.save_state(explorer.state, explorer.session)

    def _leave_by_signal(self, status: int) -> None:
        self.exports.end()
        self.exit(return_code=status)

    def _abandon(self) -> None:
        self.exports.end()
        self._save_state()

    def leave(self) -> None:
        """Exits; asks first if an export is running."""
        running = self.exports.exporter.running
        if running is None:
            self.exit(0)
            return
        if self.screen.has_class("confirm"):
            return
        from ..overlays.overlay import ConfirmPane, Overlay

        def answered(yes: bool | None) -> None:
            if yes:
                self.exports.end()
                self.exit(0)

        text = f"An export is running: {running.text}. Stop it and quit?"
        palette = self.preferences.palette
        self.push_screen(Overlay(ConfirmPane(text, palette), palette), answered)

    # opening

    @cached_property
    def catalog(self) -> Catalog:
        """Catalog of the sources; plug-ins of other packages are loaded only once."""
        from tpuprof_tui.sources.catalog import Catalog

        return Catalog()

    @property
    def explorer(self) -> ExplorerScreen | None:
        """The explorer screen of the open capture, even if covered by overlays; None if there is none."""
        if self._last_shown is None:
            return None
        from ..explorer.screen import ExplorerScreen

        return next((each for each in self.screen_stack if isinstance(each, ExplorerScreen)), None)

    @property
    def loading(self) -> LoadingScreen | None:
        """The loading screen while a capture is read, even if covered by an overlay; None otherwise."""
        screen = next((each for each in reversed(self.screen_stack) if not each.is_modal), None)
        return screen if isinstance(screen, LoadingScreen) and not screen.failed else None

    def read(self, capture: Capture, *, restore_on_failure: bool = True) -> None:
        """Reads or reloads a capture; the view is carried over as far as it fits.

        Args:
            capture: The capture to read.
            restore_on_failure: Whether to show the previous capture again if it cannot be read.
        """
        self._save_view()
        self.capture = capture
        self.options.pop(RECORDINGS.name, None)
        self.options |= {RECORDINGS.name: capture.recordings} if capture.recordings else {}
        self._restore_on_failure = restore_on_failure and self._view_to_restore is not None
        self._partial_message = ""
        self._replace_screens(self._loading_screen())
        memory_tuning.unfreeze()
        self.reader.read(capture)

    @on(reading.Reported)
    def show_progress(self, message: reading.Reported) -> None:
        """Shows the progress of reading."""
        if self.loading is not None:
            self.loading.pane.show_progress(message.progress)

    @on(reading.Failed)
    def reading_failed(self, message: reading.Failed) -> None:
        """Shows the previous capture again if there is one; else shows the error and a hint."""
        loading = self.loading
        if loading is None:
            return
        error = message.error
        if not isinstance(error, TpuprofError):
            text = self._log_unexpected(error)
            if not text:
                return
            error = TpuprofError(text, "Try tpuprof --debug, and report it.")
        if self._restore_on_failure and self._view_to_restore is not None:
            self._restore_on_failure = False
            self.reader.read(Capture(profile=self._view_to_restore[1]), error, message.disk_state)
            return
        self.key_queue.clear()
        self.failure = error
        self.watcher.could_not_open(self.capture.path or "", message.disk_state)
        loading.show_failure(error.message, error.hint)
        self._watch()

    @on(reading.FolderFound)
    def folder_found(self, message: reading.FolderFound) -> None:
        """Lists the captures of the folder."""
        self._show_capture_list(message.path)

    @on(reading.Loaded)
    def show_loaded(self, message: reading.Loaded) -> None:
        """Opens the explorer; if an overlay covers the loading screen, waits until it closes."""
        if self.loading is not None and self.screen is not self.loading:
            self._pending_loaded = message
            return
        from tpuprof_tui.analysis.selecting.notes import notes_path
        from tpuprof_tui.model import Severity, worst

        from ..explorer.screen import ExplorerScreen

        if self._partial_message:
            # a part of this profile is on the screen, unless another screen was opened meanwhile
            if self.explorer is None:
                return
            if not isinstance(self.screen, ExplorerScreen):
                if not message.partial_message:
                    self.set_timer(reading.REPORT_EVERY, lambda: self.post_message(message))
                return
            self._save_view()
        self._partial_message = message.partial_message
        requested, session = self.capture, message.session
        delays = COLLECT_SECONDS[:1] if self._last_shown is None else COLLECT_SECONDS
        self.failure, self._restore_on_failure = None, False
        if message.error is None or self._last_shown is None:
            self._last_shown = requested, message.disk_state
        self.capture, disk_state = self._last_shown
        path = self.capture.path or ""
        self.watcher.show(path, disk_state)
        self.exports.show(path, disk_state.fingerprint)
        self.status = int(worst(session.profile.problems) == Severity.ERROR)
        layout, error_text, view = None, "", ""
        notes = notes_path(session.profile) if self.notes == "" else None if self.notes is None else Path(self.notes)
        if self._view_to_restore is not None:
            old_state, old_profile, layout = self._view_to_restore
            state, self._view_to_restore = carried_state(old_state, old_profile, session), None
        else:
            initial = self.preferences.initial_state(session)
            state, notes, error_text = apply_notes_and_place(session, initial, notes, self.place)
            view = self.place.view if self.place is not None else ""
            self.place = None
        screen = ExplorerScreen(
            session, self.preferences.palette, self.glyphs, self.exports, state, self._neighbours(), layout, notes,
            view,
        )  # fmt: skip
        self._replace_screens(screen)
        if error_text:
            self.call_after_refresh(screen.prompt.say, error_text)
        if message.error is not None:
            self.watcher.could_not_read(requested.path or "", message.disk_state)
            self._message_when_loaded = f"{message.error.message.rstrip('.')}: the earlier state stays open."
        text, self._message_when_loaded = self._message_when_loaded or message.partial_message, ""
        self.call_after_refresh(self._watch)
        if text:
            self.call_after_refresh(self._say, text)
        self._collect_later(delays)

    @on(LoadingScreen.Resumed)
    def show_pending(self) -> None:
        """Shows the profile that was loaded while an overlay covered the loading screen."""
        pending, self._pending_loaded = self._pending_loaded, None
        if pending is not None and self.loading is not None:
            self.show_loaded(pending)

    @on(LoadingPane.Cancelled)
    def cancel_reading(self, message: LoadingPane.Cancelled) -> None:
        """Stops reading and lists captures instead."""
        message.stop()
        self.reader.cancel()
        self.list_captures()

    @on(LoadingPane.Again)
    def reload(self) -> None:
        """Reads the capture again."""
        self.read(self.capture)

    def _save_view(self) -> None:
        """Keeps the view of the current profile for the next one."""
        explorer = self.explorer
        if explorer is not None:
            self._view_to_restore = explorer.state, explorer.session.profile, replace(explorer.manager.layout)

    def _collect_later(self, delays: Sequence[float]) -> None:
        """Frees the replaced screen and capture after each of some delays."""
        if self._collect_timer is not None:
            self._collect_timer.stop()
        self._collect_timer = self.set_timer(delays[0], partial(self._release, delays[1:]))

    def _release(self, delays: Sequence[float]) -> None:
        self.release_widgets()
        self.call_after_refresh(self._collect_garbage, delays)

    def _collect_garbage(self, delays: Sequence[float]) -> None:
        memory_tuning.collect_and_freeze()
        if delays or self._replaced:
            # what a thread still refers to was frozen with the rest, and would stay when the thread has ended
            self._collect_later(delays or COLLECT_SECONDS[-1:])

    # choosing a capture

    @on(messages.CaptureRequest)
    def dispatch_request(self, message: messages.CaptureRequest) -> None:
        """Dispatches the request of a screen."""
        handlers: dict[str, Callable[..., None]] = {
            "open": self.open_capture, "switch": self.switch_capture, "reload": self.reload, "list": self.list_captures,
            "return": self.return_to_capture, "swap": self.swap_sides, "leave": self.leave_comparison,
        }  # fmt: skip
        handlers[message.action](*message.arguments)

    def _show_capture_list(self, *roots: str) -> None:
        self.key_queue.clear()
        memory_tuning.set_gc_threshold()
        if self._partial_message:
            self.reader.cancel()
        self.data_set = roots[0] if len(roots) == 1 and ("://" in roots[0] or is_data_set(roots[0])) else ""
        if self.data_set:
            from .data_set import DataSetScreen, DataSetViewState

            if self._data_set_view is None or self._data_set_view.location != self.data_set:
                self._data_set_view = DataSetViewState(self.data_set)
            self._replace_screens(DataSetScreen(self._data_set_view, self.preferences.palette, self.glyphs))
            return
        from .capture_list import ChooseScreen

        self._replace_screens(ChooseScreen(roots, self.preferences.palette, self.reader.against))

    def on_capture_list_base_chosen(self, message: CaptureList.BaseChosen) -> None:
        """Sets or clears the baseline for captures opened from now on."""
        message.stop()
        self.reader.against = message.path

    def on_capture_list_chosen(self, message: CaptureList.Chosen) -> None:
        """Opens the chosen capture."""
        message.stop()
        self._view_to_restore = None
        self.read(Capture(message.path, recordings=message.recordings))

    def list_captures(self) -> None:
        """Lists the captures of the data set, else those named at start, else those in the folder of the open one."""
        from .captures import is_capture

        self._save_view()
        if self.data_set or self.paths:
            self._show_capture_list(*([self.data_set] if self.data_set else self.paths))
            return
        path = Path(self.capture.path or os.curdir)
        folder = path.parent if self.capture.path and not self.capture.recordings and is_capture(path) else path
        self._show_capture_list(str(folder if os.path.isdir(folder) else Path.cwd()))

    def return_to_capture(self) -> None:
        """Opens the capture that was shown last, with its view; does nothing if there was none."""
        if self._last_shown is not None:
            self.read(self._last_shown[0])

    def open_capture(self, path: str) -> None:
        """Opens another capture; the view is carried over as far as it fits."""
        captures = self._neighbours()
        index = index_of(captures, path)
        position = f", {index + 1} of {len(captures)}: ( and ) go on" if index >= 0 else ""
        self._message_when_loaded = f"Capture {clean(capture_of(path).name)}{position}"
        self.read(Capture(path), restore_on_failure=False)

    def switch_capture(self, steps: int) -> None:
        """Opens the capture ``steps`` places after this one in its folder, cyclic."""
        captures = self._neighbours()
        if len(captures) < 2:
            self._say("No other capture in this folder: O searches further away.")
            return
        index = max(index_of(captures, self.capture.path or ""), 0)
        self.open_capture(captures[(index + steps) % len(captures)][1])

    def swap_sides(self) -> None:
        """Opens the baseline, with the current capture as its baseline."""
        base, path = self.reader.against, self.capture.path
        if base is not None and path is not None:
            self.reader.against = path
            self.open_capture(base)

    def leave_comparison(self) -> None:
        """Reloads the capture without a baseline."""
        self.reader.against = None
        self.reload()

    def _neighbours(self) -> list[tuple[str, str]]:
        return neighbours(self.paths, self.capture.path or "", self.watcher.disk_state.folder_names)

    # changes on disk

    def _watch(self) -> None:
        """Shows the notice, and starts polling if it has not been started."""
        self._show_notice(self.watcher.notice)
        if self._poll_timer is None:
            self._poll_timer = self.set_interval(watching.POLL_SECONDS, self._poll)

    def _may_poll(self) -> bool:
        """Whether to poll: no capture is being read."""
        # no screen is left while the application closes
        return bool(self.screen_stack) and self.loading is None

    def _poll(self) -> None:
        if self.watcher.has_capture and self._may_poll():
            self.run_worker(self._poll_in_thread, name="watch", group="watching", exclusive=True, thread=True,
                            exit_on_error=False)  # fmt: skip

    def _poll_in_thread(self) -> None:
        self.call_from_thread(self._take_poll_result, self.watcher.poll(self.catalog))

    def _take_poll_result(self, result: watching.PollResult) -> None:
        verdict = self.watcher.interpret(result) if self._may_poll() else None
        if verdict is None:
            return
        if verdict.restored:
            self._say("The capture on disk has not changed.")
        self._show_notice(verdict.to_show.text if verdict.to_show is not None else "")
        if verdict.to_load is not None and self.follow:
            path = verdict.to_load.path
            self._message_when_loaded = ("Read again: it changed on disk." if path == self.capture.path
                                         else f"New capture: {clean(capture_of(path).name)}.")  # fmt: skip
            self.read(Capture(path))

    # switching screens

    def _loading_screen(self) -> LoadingScreen:
        profile = self.capture.profile
        capture_name = self.capture.path or (profile.name if profile is not None else os.getcwd())
        return LoadingScreen(capture_name, self.preferences.palette, self.glyphs)

    def _replace_screens(self, screen: Screen[None]) -> None:
        """Replaces all screens by one."""
        self._pending_loaded = None
        explorer = self.explorer
        if explorer is not None:
            self._replaced.add(explorer)
        # Textual cannot switch the first screen: it stays at the bottom of the stack
        while len(self.screen_stack) > 2:
            self.pop_screen()
        if len(self.screen_stack) > 1:
            self.switch_screen(screen)
        else:
            self.push_screen(screen)

    # messages

    def _bars(self) -> list[KeyBar]:
        """Bottom lines of all screens on the stack."""
        return [bar for screen in self.screen_stack for bar in screen.query(KeyBar)]

    def _say(self, text: str) -> None:
        for bar in self._bars():
            bar.say(text)

    def _show_notice(self, text: str) -> None:
        """Sets the notice; shows it unless an export is running, which shows its progress."""
        self._notice = text
        running = self.exports.exporter.running
        for bar in self._bars():
            bar.status = clean(running.text if running is not None else text)

    def _run_export(self, export: Coroutine[Any, Any, None], name: str) -> None:
        self.run_worker(export, name=name, group="export", exit_on_error=False)

    def _export_changed(self) -> None:
        self._show_notice(self._notice)
        # no screen is left while the application closes
        for screen in self.screen_stack[-1:]:
            screen.post_message(messages.ExportChanged())

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Reports an error of a worker thread."""
        messages.post_worker_failure(self, event)

    def on_thread_failed(self, message: messages.ThreadFailed) -> None:
        """Shows an unexpected error of a thread as a sentence; the screen stays usable."""
        text = self._log_unexpected(message.error)
        if text:
            self._say(text)

    def _log_unexpected(self, error: BaseException) -> str:
        """Logs an unexpected error and returns a sentence about it; with ``--debug``, exits with the traceback."""
        if self.debug_errors and isinstance(error, Exception):
            self._handle_exception(error)
            return ""
        from tpuprof_tui.crash_log import reported

        return reported(error, [self.capture.path or ""])

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

    def _key_target(self) -> DOMNode | None:
        """Node that gets the next key; None while no screen accepts keys."""
        return (self.focused or self.screen) if self.screen_stack and self.screen.is_mounted else None

    def _loading_with_keys(self) -> LoadingScreen | None:
        """The loading screen while a capture is read and no overlay covers it; None otherwise."""
        loading = self.loading
        return loading if loading is not None and loading is self.screen else None

    @property
    def vocabulary(self) -> Vocabulary:
        """Vocabulary of the open profile; without one, of the first source of this package."""
        explorer = self.explorer
        if explorer is not None:
            return explorer.session.profile.vocabulary
        from tpuprof_tui.sources.catalog import vocabularies

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
        from ..terminal.palette import Commands

        if not isinstance(self.screen, Commands):
            self.push_screen(Commands())

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
            self._say("Colours are switched off by NO_COLOR.")
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
        self._say(f"Theme: {TITLES[self.preferences.theme]}")

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
