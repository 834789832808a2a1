"""Opens captures: reads one in a worker thread, shows it with the view of the one before, watches it on disk."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace
from textual.worker import Worker, get_current_worker

from tpuprof_tui.analysis.selecting.state import DisplayState, Scope, SelectedItem
from tpuprof_tui.dataset import is_data_set
from tpuprof_tui.errors import NO_MEMORY, TpuprofError, UnreadableError
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.sources import catalog as sources
from tpuprof_tui.sources.catalog import Catalog, Progress
from tpuprof_tui.sources.source import RECORDINGS

from . import on_disk, process
from .loading import LoadingScreen
from .on_disk import CancelledError, CaptureWatcher, DiskState, PollResult, capture_of, is_capture

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.session import Session
    from tpuprof_tui.analysis.selecting.state import Place
    from tpuprof_tui.model import Lane, Profile

    from ..explorer.panes import PaneLayout
    from .application import TpuprofApp
    from .data_set import DataSetViewState

#: Least interval of progress messages, in seconds.
REPORT_EVERY: Final = 0.2


class Capture(Struct, frozen=True):
    """A capture that is open or to be opened."""

    #: Its path; None: ``profile`` is shown or, without one, the captures below the current directory are listed.
    path: str | None = None
    profile: Profile | None = None  #: Profile to show instead of reading ``path``; None: the path is read
    recordings: str = ""  #: Names of the recordings to open of a folder of several; empty: it is listed to choose from


class LoadResult(Struct, frozen=True):
    """A profile that is ready to show."""

    session: Session  #: The profile with its indexes
    disk_state: DiskState  #: State on disk of the requested capture before it was read
    #: Why the requested capture could not be read and this one is shown again; None: this is the requested one.
    error: TpuprofError | None = None
    #: Message to show while the rest of the profile is still being read; empty: it is complete.
    partial_message: str = ""


class Opening:
    """Opens captures on the screens of the application.

    Args that differ from `tpuprof_tui.app.run`:
        capture: What to open first.
        notes: None: notes are not saved.
    """

    def __init__(
        self, app: TpuprofApp, capture: Capture, paths: Sequence[str], options: Mapping[str, Any], *, follow: bool,
        against: str | None, notes: str | None, place: Place | None,
    ) -> None:  # fmt: skip
        self.capture = capture  #: The capture that is open or being opened
        self.against = against  #: Path of the baseline; None: no comparison
        self.options = dict(options)
        self.data_set = ""  #: Folder or address of the data set that captures are chosen from; empty: none
        self.failure: TpuprofError | None = None  #: Why the last capture could not be opened; None if it could
        self.status = 0  #: Exit status for the last capture: 1 if an error is among its problems, else 0
        self.watcher = CaptureWatcher()  #: Compares it with its state on disk
        self._app = app
        self._paths = tuple(paths) if len(paths) > 1 else ()
        self._follow = follow
        self._notes = notes
        self._place = place
        self._data_set_view: DataSetViewState | None = None
        #: The capture on the screen (or shown last), and its state on disk before it was read.
        self._last_shown: tuple[Capture, DiskState] | None = None
        #: View to carry over to the next profile: display state, its profile, and layout.
        self._view_to_restore: tuple[DisplayState, Profile, PaneLayout] | None = None
        #: Message to show when the capture being read is on the screen.
        self._message_when_loaded = ""
        #: Whether the previous capture is shown again if reading fails.
        self._restore_on_failure = False
        #: Message while the rest of the profile on the screen is being read; empty: it is complete.
        self._partial_message = ""
        #: Profile that was loaded while an overlay covered the loading screen; shown when it closes.
        self._pending: LoadResult | None = None
        self._worker: Worker[None] | None = None
        self._polls = False

    @cached_property
    def catalog(self) -> Catalog:
        """Catalog of the sources; plug-ins of other packages are loaded only once."""
        return Catalog()

    @property
    def has_shown(self) -> bool:
        """Whether a capture is or was on the screen."""
        return self._last_shown is not None

    def start(self) -> None:
        """Reads the first capture, or lists captures."""
        if self.capture.profile is None and self.capture.path is None:
            self._show_list(*(self._paths or [os.getcwd()]))
        else:
            self._start_reading(self.capture)

    def loading_screen(self) -> LoadingScreen:
        """A screen for the progress of the capture."""
        profile = self.capture.profile
        name = self.capture.path or (profile.name if profile is not None else os.getcwd())
        return LoadingScreen(name, self._app.preferences.palette, self._app.glyphs)

    def read(self, capture: Capture, *, restore_on_failure: bool = True) -> None:
        """Reads or reloads a capture; the view is carried over as far as it fits.

        ``restore_on_failure``: whether to show the previous capture again if it cannot be read.
        """
        self._save_view()
        self.capture = capture
        self.options.pop(RECORDINGS.name, None)
        self.options |= {RECORDINGS.name: capture.recordings} if capture.recordings else {}
        self._restore_on_failure = restore_on_failure and self._view_to_restore is not None
        self._partial_message = ""
        self._replace_screens(self.loading_screen())
        process.unfreeze()
        self._start_reading(capture)

    def _save_view(self) -> None:
        explorer = self._app.explorer
        if explorer is not None:
            self._view_to_restore = explorer.state, explorer.session.profile, replace(explorer.manager.layout)

    def _replace_screens(self, screen: Any) -> None:
        self._pending = None
        self._app.replace_screens(screen)

    # reading, in a worker thread

    def _start_reading(
        self, capture: Capture, error: TpuprofError | None = None, disk_state: DiskState | None = None
    ) -> None:
        """Starts reading a capture and cancels the one before.

        With ``error`` the profile of ``capture`` is shown again because another capture, whose state on disk was
        ``disk_state``, could not be read.
        """
        self._worker = self._app.run_worker(
            lambda: self._read(capture, error, disk_state or DiskState()), group="reading", exclusive=True, thread=True,
            exit_on_error=False,
        )  # fmt: skip

    def _post(self, take: Callable[..., None], *arguments: object) -> None:
        self._app.call_later(take, *arguments)

    def _read(self, capture: Capture, earlier_error: TpuprofError | None, disk_state: DiskState) -> None:
        path, worker = capture.path or os.curdir, get_current_worker()
        try:
            profile = capture.profile
            if profile is None:
                listed = not capture.recordings and self.catalog.sessions(path)
                empty = not is_capture(Path(path)) and next(iter(self.catalog.find(Path(path))), None) is not None
                if is_data_set(path) or listed or empty:
                    self._post(self._show_list, path)
                    return
                disk_state = on_disk.read_disk_state(path, self.catalog)
                profile = self._read_profile(path, disk_state, worker)
            if worker.is_cancelled:
                return
            session = _prepared(profile)
            if earlier_error is None:
                session = self._compared(session)
        except CancelledError:
            return
        except MemoryError:
            self._post(self._show_failure, UnreadableError(NO_MEMORY), disk_state)
        except Exception as error:
            self._post(self._show_failure, error, disk_state)
        else:
            if not worker.is_cancelled:
                self._post(self._show, LoadResult(session, disk_state, earlier_error))

    def _read_profile(self, path: str, disk_state: DiskState, worker: Worker[None]) -> Profile:
        reported_at = 0.0

        def report(progress: Progress) -> None:
            nonlocal reported_at
            if worker.is_cancelled:
                raise CancelledError
            if progress.profile is not None and self.against is None:
                part = LoadResult(_prepared(progress.profile), disk_state, partial_message=progress.text)
                self._post(self._show, part)
            elif progress.group or time.monotonic() - reported_at > REPORT_EVERY:
                reported_at = time.monotonic()
                self._post(self._show_progress, progress)

        profile = sources.open_profile(path, progress=report, **self.options)
        return replace(profile, notes=self._notes) if self._notes else profile

    def _compared(self, session: Session) -> Session:
        """The session with its baseline; computes the verdict of the headline and the common time axis in advance.

        Raises:
            TpuprofError: The two cannot be compared.
        """
        if self.against is None:
            return session
        from tpuprof_tui.analysis.query import Query
        from tpuprof_tui.views.comparing import Compared
        from tpuprof_tui.views.differences import side_by_side

        baseline = _prepared(sources.open_profile(self.against, **self.options))
        session = replace(session, baseline=baseline)
        compared = Compared.of(Query(session, baseline=Query(baseline)))
        session.cache.get("verdict", lambda: compared.verdict.headline)
        both = side_by_side(session)
        if both is not None:
            both.axis(Scope())
        return session

    # showing what was read

    def _show_progress(self, progress: Progress) -> None:
        if self._app.loading is not None:
            self._app.loading.pane.show_progress(progress)

    def _show_failure(self, error: Exception, disk_state: DiskState) -> None:
        """Shows the previous capture again if there is one; else shows the error and a hint."""
        loading = self._app.loading
        if loading is None:
            return
        if not isinstance(error, TpuprofError):
            text = self._app.log_unexpected(error)
            if not text:
                return
            error = TpuprofError(text, "Try tpuprof --debug, and report it.")
        if self._restore_on_failure and self._view_to_restore is not None:
            self._restore_on_failure = False
            self._start_reading(Capture(profile=self._view_to_restore[1]), error, disk_state)
            return
        self._app.key_queue.clear()
        self.failure = error
        self.watcher.could_not_open(self.capture.path or "", disk_state)
        loading.show_failure(error.message, error.hint)
        self._watch()

    def _show(self, loaded: LoadResult) -> None:
        """Opens the explorer; if an overlay covers the loading screen, waits until it closes."""
        app = self._app
        if app.loading is not None and app.screen is not app.loading:
            self._pending = loaded
            return
        from tpuprof_tui.analysis.selecting.notes import notes_path
        from tpuprof_tui.model import Severity, worst

        from ..explorer.screen import ExplorerScreen

        if self._partial_message:
            # a part of this profile is on the screen, unless another screen was opened meanwhile
            if app.explorer is None:
                return
            if not isinstance(app.screen, ExplorerScreen):
                if not loaded.partial_message:
                    app.set_timer(REPORT_EVERY, lambda: self._show(loaded))
                return
            self._save_view()
        self._partial_message = loaded.partial_message
        requested, session = self.capture, loaded.session
        self.failure, self._restore_on_failure = None, False
        if loaded.error is None or self._last_shown is None:
            self._last_shown = requested, loaded.disk_state
        self.capture, disk_state = self._last_shown
        path = self.capture.path or ""
        self.watcher.show(path, disk_state)
        app.exports.show(path, disk_state.fingerprint)
        self.status = int(worst(session.profile.problems) == Severity.ERROR)
        layout, error_text, view = None, "", ""
        notes = notes_path(session.profile) if self._notes == "" else Path(self._notes) if self._notes else None
        if self._view_to_restore is not None:
            old_state, old_profile, layout = self._view_to_restore
            state, self._view_to_restore = carried_state(old_state, old_profile, session), None
        else:
            initial, place, self._place = app.preferences.initial_state(session), self._place, None
            state, notes, error_text = _with_notes_and_place(session, initial, notes, place)
            view = place.view if place is not None else ""
        screen = ExplorerScreen(
            session, app.preferences.palette, app.glyphs, app.exports, state, self._neighbours(), layout, notes, view
        )
        self._replace_screens(screen)
        if error_text:
            app.call_after_refresh(screen.prompt.say, error_text)
        if loaded.error is not None:
            self.watcher.could_not_read(requested.path or "", loaded.disk_state)
            self._message_when_loaded = f"{loaded.error.message.rstrip('.')}: the earlier state stays open."
        text, self._message_when_loaded = self._message_when_loaded or loaded.partial_message, ""
        app.call_after_refresh(self._watch)
        if text:
            app.call_after_refresh(app.say, text)
        app.collect_later()

    # what screens request (``CaptureRequest``)

    def resume(self) -> None:
        """Shows the profile that was loaded while an overlay covered the loading screen."""
        pending, self._pending = self._pending, None
        if pending is not None and self._app.loading is not None:
            self._show(pending)

    def cancel(self) -> None:
        """Stops reading and lists captures instead."""
        if self._worker is not None:
            self._worker.cancel()
        self.list_captures()

    def reload(self) -> None:
        """Reads the capture again."""
        self.read(self.capture)

    def choose(self, path: str, recordings: str = "") -> None:
        """Opens a capture of the list, without the view of the one before."""
        self._view_to_restore = None
        self.read(Capture(path, recordings=recordings))

    def compare_with(self, path: str | None) -> None:
        """Sets or clears the baseline for captures opened from now on."""
        self.against = path

    def list_captures(self) -> None:
        """Lists the captures of the data set, else those named at start, else those in the folder of the open one."""
        self._save_view()
        if self.data_set or self._paths:
            self._show_list(*([self.data_set] if self.data_set else self._paths))
            return
        path = Path(self.capture.path or os.curdir)
        folder = path.parent if self.capture.path and not self.capture.recordings and is_capture(path) else path
        self._show_list(str(folder if os.path.isdir(folder) else Path.cwd()))

    def back(self) -> None:
        """Opens the capture that was shown last, with its view; does nothing if there was none."""
        if self._last_shown is not None:
            self.read(self._last_shown[0])

    def open_capture(self, path: str) -> None:
        """Opens another capture; the view is carried over as far as it fits."""
        captures = self._neighbours()
        index = on_disk.index_of(captures, path)
        position = f", {index + 1} of {len(captures)}: ( and ) go on" if index >= 0 else ""
        self._message_when_loaded = f"Capture {clean(capture_of(path).name)}{position}"
        self.read(Capture(path), restore_on_failure=False)

    def switch(self, steps: int) -> None:
        """Opens the capture ``steps`` places after this one in its folder, cyclic."""
        captures = self._neighbours()
        if len(captures) < 2:
            self._app.say("No other capture in this folder: O searches further away.")
            return
        index = max(on_disk.index_of(captures, self.capture.path or ""), 0)
        self.open_capture(captures[(index + steps) % len(captures)][1])

    def swap(self) -> None:
        """Opens the baseline, with the current capture as its baseline."""
        base, path = self.against, self.capture.path
        if base is not None and path is not None:
            self.against = path
            self.open_capture(base)

    def leave_comparison(self) -> None:
        """Reloads the capture without a baseline."""
        self.against = None
        self.reload()

    def _neighbours(self) -> Sequence[tuple[str, str]]:
        return on_disk.neighbours(self._paths, self.capture.path or "", self.watcher.disk_state.folder_names)

    def _show_list(self, *roots: str) -> None:
        app = self._app
        app.key_queue.clear()
        process.set_gc_threshold()
        if self._partial_message and self._worker is not None:
            self._worker.cancel()
        self.data_set = roots[0] if len(roots) == 1 and ("://" in roots[0] or is_data_set(roots[0])) else ""
        palette = app.preferences.palette
        if self.data_set:
            from .data_set import DataSetScreen, DataSetViewState

            if self._data_set_view is None or self._data_set_view.location != self.data_set:
                self._data_set_view = DataSetViewState(self.data_set)
            self._replace_screens(DataSetScreen(self._data_set_view, palette, app.glyphs))
            return
        from .capture_list import ChooseScreen

        self._replace_screens(ChooseScreen(roots, palette, self.against))

    # changes on disk

    def _watch(self) -> None:
        self._app.show_notice(self.watcher.notice)
        if not self._polls:
            self._polls = True
            self._app.set_interval(on_disk.POLL_SECONDS, self.poll)

    def may_poll(self) -> bool:
        """Whether to poll: no capture is being read."""
        # no screen is left while the application closes
        return bool(self._app.screen_stack) and self._app.loading is None

    def poll(self) -> None:
        """Looks at the disk in a worker thread."""
        if self.watcher.has_capture and self.may_poll():
            self._app.run_worker(lambda: self._post(self._take_poll, self.watcher.poll(self.catalog)), name="watch",
                                 group="watching", exclusive=True, thread=True, exit_on_error=False)  # fmt: skip

    def _take_poll(self, result: PollResult) -> None:
        if not self.may_poll() or result.path != self.watcher.path:
            return
        failed = self.watcher.failed
        text, path = self.watcher.interpret(result)
        if failed is not self.watcher.failed:
            self._app.say("The capture on disk has not changed.")
        self._app.show_notice(text)
        if path and self._follow:
            self._message_when_loaded = ("Read again: it changed on disk." if path == self.capture.path
                                         else f"New capture: {clean(capture_of(path).name)}.")  # fmt: skip
            self.read(Capture(path))


def _prepared(profile: Profile) -> Session:
    """Opens a session with everything that its first frame needs, so that the event loop stays free for keys."""
    from tpuprof_tui.views import summary_views

    from ..explorer import screen as explorer  # noqa: F401 - drawing is imported here too

    return summary_views.prepared_session(profile)


def _path_of(profile: Profile, lane: Lane) -> tuple[str, ...]:
    return (*profile.groups.path(lane.group), lane.label)


def carried_state(state: DisplayState, old: Profile, session: Session) -> DisplayState:
    """Carries a state over to another profile: window, scope, marks, range, sort and filter as far as they fit.

    Groups and lanes are matched by their labels; an event stays selected if the same row of the same lane starts
    at the same time.
    """
    new = session.profile
    fresh = DisplayState.of(new.start_ns, new.end_ns)
    lanes = {_path_of(new, lane): number for number, lane in enumerate(new.lanes)}

    def new_lane(lane: int) -> int:
        return lanes.get(_path_of(old, old.lanes[lane]), -1) if 0 <= lane < len(old.lanes) else -1

    def new_group(old_group: int) -> int:
        return new.groups.at_path(old.groups.path(old_group)) if old_group >= 0 else -1

    def new_row(lane: int, number: int) -> int:
        index = new_lane(lane)
        return number if index >= 0 and _start(new.lanes[index], number) == _start(old.lanes[lane], number) else -1

    same_counters = [each.name for each in old.counters] == [each.name for each in new.counters]
    scope, chosen = state.scope, state.selection
    selection = SelectedItem(new_group(chosen.group), new_lane(chosen.lane), new_row(chosen.lane, chosen.row))
    carried = replace(
        state,
        full_start=fresh.full_start, full_end=fresh.full_end,
        selection=selection,
        scope=Scope(new_group(scope.group), new_lane(scope.lane)),
        picked=(),
        marks=tuple(mark for mark in state.marks if fresh.start <= mark[1] < fresh.end),
        spans=tuple(span for span in state.spans if fresh.start <= span[1] and span[2] <= fresh.end),
        range=state.range if state.range and fresh.start <= state.range[0] and state.range[1] <= fresh.end else None,
        anchor=state.anchor if state.anchor is not None and fresh.start <= state.anchor < fresh.end else None,
        pinned=tuple((new_lane(lane) if lane >= 0 else lane, new_group(unit), line) for lane, unit, line in state.pinned
                     if (new_lane(lane) >= 0 if lane >= 0 else new_group(unit) >= 0) and (same_counters or line < 0)),
        unfolded=state.unfolded if same_counters else (),
        opened=tuple(lane for each in state.opened if (lane := new_lane(each)) >= 0),
    )  # fmt: skip
    start, end = state.viewed or (fresh.start, fresh.end)
    carried = carried.windowed(start, end - start)
    return carried if state.fits_all else carried.scrolled(state.start, state.span)


def _start(lane: Lane, row: int) -> int | None:
    return int(lane.take("start", slice(row, row + 1))[0]) if 0 <= row < len(lane) else None


def _with_notes_and_place(
    session: Session, state: DisplayState, path: Path | None, place: Place | None
) -> tuple[DisplayState, Path | None, str]:  # fmt: skip
    """Applies the notes in a file and the place asked for to a state.

    Returns:
        The state; the notes file, None if notes are not saved; an error sentence, or an empty text.
    """
    from tpuprof_tui.analysis.selecting.filters import compile_filter
    from tpuprof_tui.analysis.selecting.moves import at_place
    from tpuprof_tui.analysis.selecting.notes import NotesError, read_notes

    error_text = ""
    try:
        if path is not None:
            state = read_notes(path).applied_to(state)
    except NotesError as error:
        # never overwrite a file that is not ours
        path, error_text = None, f"Notes are kept until tpuprof ends: {error.message}"
    try:
        compile_filter(state.filter, session.profile)
    except TpuprofError:
        state = replace(state, filter="")
    try:
        state = state if place is None else at_place(session, state, place)
    except TpuprofError as error:
        error_text = f"{error.message} {error.hint or ''}".strip()
    return state, path, error_text
