"""The application's part in opening: reads captures in a thread, and shows what came of it."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.message import Message
from textual.screen import Screen
from textual.worker import Worker, WorkerState, get_current_worker

from tpuprof_tui.dataset import is_data_set
from tpuprof_tui.errors import NO_MEMORY, TpuprofError, UnreadableError

from ..drawing.glyphs import Glyphs
from ..settings.preferences import RememberingApp
from .captures import CancelledError
from .garbage_collection import unsettle
from .loading import LoadingPane, LoadingScreen
from .messages import ThreadFailed
from .typing_order import TypingApp
from .watching import Sighting, sighting

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.session import Session
    from tpuprof_tui.analysis.selecting.state import Place, ViewState
    from tpuprof_tui.model import Profile
    from tpuprof_tui.sources.catalog import Progress

    from .capture_list import CaptureList

#: Reports of progress reach the screen at most this often, s.
REPORT_EVERY = 0.2


class OpeningApp(RememberingApp, TypingApp):
    """Opens captures, one at a time.

    Attributes:
        failure: Why what was opened last could not be; None where it could.
        status: Exit status of what was opened last.
    """

    glyphs: Glyphs
    debug_errors: bool
    against: str | None = None
    notes: str | None = None
    place: Place | None = None
    #: Folder of the data set that captures are chosen from; empty: they are not.
    data_set: str = ""
    failure: TpuprofError | None = None
    status: int = 0
    _reading: Worker[None] | None = None
    _opened_last: tuple[str | None, Profile | None] | None = None
    #: What the capture looked like before it was read, for what is being read.
    _looked: Sighting = Sighting()
    #: What is read takes the place of the same capture, which comes back where that fails.
    _comes_back: bool = False
    #: What was read while an overlay lay over the loading screen.
    _arrived: OpeningApp.Loaded | None = None
    #: What is said of the profile on the screen while the rest of it is being read; empty: it is whole.
    _more: str = ""

    class Loaded(Message):
        """A profile is ready to show; with an error it is the one that was shown, as another could not be read.

        Attributes:
            more: What is said of it while the rest of it is still being read; empty: it is whole.
        """

        def __init__(self, session: Session, error: TpuprofError | None = None, more: str = "") -> None:
            super().__init__()
            self.session = session
            self.error = error
            self.more = more

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

    def _loading_screen(self) -> LoadingScreen:
        what = self.path or (self.profile.name if self.profile else os.getcwd())
        return LoadingScreen(what, self.palette, self.glyphs)

    def _begin(self) -> None:
        if self.profile is None and self.path is None:
            self._choose(*(self.paths or [os.getcwd()]))
        else:
            self._reading = self._read()

    # in a thread

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

    @work(thread=True, exclusive=True, group="reading", exit_on_error=False)
    def _read_back(self, profile: Profile, error: TpuprofError) -> None:
        """Shows a profile again in place of what could not be read."""
        worker = get_current_worker()
        try:
            session = _made(profile)
        except MemoryError:
            self.post_message(self.Failed(UnreadableError(NO_MEMORY)))
            return
        if not worker.is_cancelled:
            self.post_message(self.Loaded(session, error))

    def _session(self, worker: Worker[None]) -> Session | None:
        """The profile with its indexes; None where the path is a folder of captures."""
        from tpuprof_tui.sources.catalog import open_profile

        from .captures import holds_captures, is_capture

        profile = self.profile
        if profile is None:
            path = self.path or os.curdir
            if is_data_set(path) or (not is_capture(Path(path)) and holds_captures(Path(path))):
                self.post_message(self.Folder(path))
                return None
            told = 0.0

            def report(progress: Progress) -> None:
                nonlocal told
                if worker.is_cancelled:
                    raise CancelledError
                if progress.profile is not None and self.against is None:
                    self.post_message(self.Loaded(_made(progress.profile), more=progress.text))
                elif progress.group or time.monotonic() - told > REPORT_EVERY:
                    told = time.monotonic()
                    self.post_message(self.Reported(progress))

            self._looked = sighting(path, self.catalog)
            profile = open_profile(path, progress=report, **self.options)
            profile = replace(profile, notes=self.notes) if self.notes else profile
            self.note_reading(profile)
        if worker.is_cancelled:
            raise CancelledError
        return self._compared(_made(profile))

    def _compared(self, session: Session) -> Session:
        """The session with what it is compared with, and the verdict for the first line.

        Raises:
            TpuprofError: The two cannot be compared.
        """
        if self.against is None:
            return session
        from dataclasses import replace

        from tpuprof_tui.sources.catalog import open_profile
        from tpuprof_tui.views.comparing import Compared
        from tpuprof_tui.views.diff import headline
        from tpuprof_tui.views.query import Query

        session = replace(session, baseline=_made(open_profile(self.against, **self.options)))
        assert session.baseline is not None
        compared = Compared.of(Query(session, baseline=Query(session.baseline)))
        session.derived.get("verdict", lambda: headline(compared))
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

    # what came of it

    def on_opening_app_reported(self, message: Reported) -> None:
        """Shows progress."""
        if self.loading is not None:
            self.loading.pane.show_progress(message.progress)

    def on_opening_app_failed(self, message: Failed) -> None:
        """Goes back to the capture that was to be read again; else says why there is nothing to see, what to do."""
        loading = self.loading
        if loading is None:
            return
        if self._comes_back and self._kept is not None:
            self._comes_back = False
            self._reading = self._read_back(self._kept[1], message.error)
            return
        self.drop_typed()
        self.failure = message.error
        self.seen = self._looked
        self.could_not_read(self.path or "", self._looked)
        loading.show_failure(message.error.message, message.error.hint)
        self.watch_capture()

    def on_opening_app_folder(self, message: Folder) -> None:
        """A folder of captures: one is to be chosen."""
        self._choose(message.path)

    def on_opening_app_loaded(self, message: Loaded) -> None:
        """Opens the explorer; as soon as no overlay needs its keys any more."""
        if self.loading is not None and self.screen is not self.loading:
            self._arrived = message
            return
        from tpuprof_tui.model import Severity, worst

        from ..explorer.screen import ExplorerScreen

        if self._more:
            # a part of it is on the screen, unless something else was asked for meanwhile
            if not any(isinstance(screen, ExplorerScreen) for screen in self.screen_stack):
                return
            if not isinstance(self.screen, ExplorerScreen):
                if not message.more:
                    self.set_timer(REPORT_EVERY, lambda: self.post_message(message))
                return
            self.keep_view()
        self._more = message.more
        self.failure, self._comes_back = None, False
        path = self.path or ""
        if message.error is None:
            self.seen, self.failed = self._looked, None
        elif self._opened_last is not None:
            self.path, self.profile = self._opened_last
        self.status = int(worst(message.session.profile.problems) == Severity.ERROR)
        kept = self.view_for(message.session)
        view, where, told = kept or self.first_view(message.session), self._notes_path(message.session), ""
        if kept is None:
            view, where, told = self._as_left(message.session, view, where)
        layout = self._layout if kept is not None else None
        screen = ExplorerScreen(message.session, self.palette, self.glyphs, view, self.captures_beside(), layout,
                                where)  # fmt: skip
        self._opened_last = self.path, self.profile
        self._replace(screen)
        if told:
            self.call_after_refresh(screen.prompt.say, told)
        if message.error is not None:
            self.could_not_read(path, self._looked, message.error.message)
        self.call_after_refresh(self.watch_capture)
        self._arrival = self._arrival or message.more
        self.call_after_refresh(self.tell_arrival)
        self.settle_soon()

    def _notes_path(self, session: Session) -> Path | None:
        from tpuprof_tui.analysis.selecting.notes import notes_path

        if self.notes is None:
            return None
        return Path(self.notes) if self.notes else notes_path(session.profile)

    def _as_left(self, session: Session, view: ViewState, path: Path | None) -> tuple[ViewState, Path | None, str]:
        """The first state with the notes in a file and at the place asked for; the file, and what was wrong."""
        from tpuprof_tui.analysis.selecting.filters import compile_filter
        from tpuprof_tui.analysis.selecting.notes import NotesError, read_notes
        from tpuprof_tui.analysis.selecting.place import at_place

        place, self.place = self.place, None
        told = ""
        try:
            if path is not None:
                view = read_notes(path).in_view(view)
        except NotesError as error:
            # what somebody else wrote there stays
            path, told = None, f"Notes are kept until tpuprof is left: {error.message}"
        try:
            compile_filter(view.filter, session.profile)
        except TpuprofError:
            view = replace(view, filter="")
        try:
            view = view if place is None else at_place(session, view, place)
        except TpuprofError as error:
            told = f"{error.message} {error.hint or ''}".strip()
        return view, path, told

    def on_loading_screen_uncovered(self) -> None:
        """The overlay over the loading screen has closed: what has been read meanwhile is shown."""
        arrived, self._arrived = self._arrived, None
        if arrived is not None and self.loading is not None:
            self.post_message(self.Loaded(arrived.session, arrived.error, arrived.more))

    def may_look(self) -> bool:
        """Whether a capture is on the screen or could not be read, and none is being read."""
        # no screen is left while the application closes
        return bool(self.screen_stack) and self.loading is None

    def on_loading_pane_cancelled(self, message: LoadingPane.Cancelled) -> None:
        """Stops reading and lists captures instead."""
        message.stop()
        if self._reading is not None:
            self._reading.cancel()
        self.open_other()

    def on_loading_pane_again(self, message: LoadingPane.Again) -> None:
        """Tries once more to read what could not be read."""
        message.stop()
        self.reload()

    # which screen shows

    def _replace(self, screen: Screen[None]) -> None:
        """Shows another screen in place of all there are."""
        self._arrived = None
        for each in self.screen_stack[1:]:
            self.forget(each)
        # the first screen cannot be switched: it stays below
        while len(self.screen_stack) > 2:
            self.pop_screen()
        if len(self.screen_stack) > 1:
            self.switch_screen(screen)
        else:
            self.push_screen(screen)

    def _choose(self, *roots: str) -> None:
        self.drop_typed()
        if self._more and self._reading is not None:
            self._reading.cancel()
        self.data_set = roots[0] if len(roots) == 1 and is_data_set(roots[0]) else ""
        if self.data_set:
            from .data_set import DataSetScreen

            self._replace(DataSetScreen(self.data_set, self.palette, self.glyphs))
            return
        from .capture_list import ChooseScreen

        self._replace(ChooseScreen(roots, self.palette))

    def on_capture_list_chosen(self, message: CaptureList.Chosen) -> None:
        """Opens the chosen capture."""
        message.stop()
        self.path, self.profile, self._kept = message.path, None, None
        self.reload()

    def reload(self, *, comes_back: bool = True) -> None:
        """Reads the capture (again); what is looked at stays.

        Args:
            comes_back: Where it cannot be read, what was on the screen before comes back.
        """
        self.keep_view()
        self._comes_back = comes_back and self._kept is not None
        self._more = ""
        self._replace(self._loading_screen())
        unsettle()
        self._reading = self._read()

    def open_other(self) -> None:
        """Lists the captures of the data set or those that were named, else those beside the open one or below it."""
        from .captures import is_capture

        self.keep_view()
        if self.data_set or self.paths:
            self._choose(*([self.data_set] if self.data_set else self.paths))
            return
        path = Path(self.path or os.curdir)
        folder = path.parent if self.path and is_capture(path) else path
        self._choose(str(folder if os.path.isdir(folder) else Path.cwd()))

    def return_to_capture(self) -> None:
        """Opens the capture that was shown last, as it was looked at; nothing where none was."""
        if self._opened_last is not None:
            self.path, self.profile = self._opened_last
            self.reload()


def _made(profile: Profile) -> Session:
    """A profile with all that its first frame needs: the event loop stays free for keys."""
    from tpuprof_tui.analysis.opening import opened

    from ..explorer import screen as explorer  # noqa: F401 - drawing is imported here too

    return opened(profile)
