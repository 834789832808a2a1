"""Loads captures in a worker thread, one at a time; posts progress and result as messages."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace
from textual.message import Message
from textual.worker import Worker, get_current_worker

from tpuprof_tui.dataset import is_data_set
from tpuprof_tui.errors import NO_MEMORY, TpuprofError, UnreadableError

from .captures import CancelledError, holds_captures, is_capture
from .watching import DiskState, read_disk_state

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.session import Session
    from tpuprof_tui.model import Profile
    from tpuprof_tui.sources.catalog import Catalog, Progress

#: Least interval of progress messages, in seconds.
REPORT_EVERY = 0.2


class Capture(Struct, frozen=True):
    """A capture that is open or to be opened.

    Attributes:
        path: Its path; None: ``profile`` is shown or, without one, the captures below the current directory are listed.
        profile: Profile to show instead of reading ``path``; None: the path is read.
        recordings: Names of the recordings to open of a folder of several; empty: it is listed to choose from.
    """

    path: str | None = None
    profile: Profile | None = None
    recordings: str = ""


class Loaded(Message):
    """Posted when a profile is ready to show.

    Attributes:
        session: The profile with its indexes.
        disk_state: State on disk of the requested capture before it was read.
        error: Why the requested capture could not be read and this one is shown again; None: this is the requested one.
        partial_message: Message to show while the rest of the profile is still being read; empty: it is complete.
    """

    def __init__(
        self, session: Session, disk_state: DiskState, error: TpuprofError | None = None, partial_message: str = ""
    ) -> None:
        super().__init__()
        self.session, self.disk_state = session, disk_state
        self.error, self.partial_message = error, partial_message


class FolderFound(Message):
    """Posted when the path is a folder of captures or a data set."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path


class Failed(Message):
    """Posted when the capture could not be read; ``disk_state``: its state on disk before."""

    def __init__(self, error: Exception, disk_state: DiskState) -> None:
        super().__init__()
        self.error = error
        self.disk_state = disk_state


class Reported(Message):
    """Posted on progress of the reader."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self.progress = progress


class CaptureReader:
    """Loads captures in a worker thread.

    Args:
        catalog: Returns the catalog of sources.
        options: Options of the source that reads a capture, by name.
        against: Path of the baseline; None: no comparison.
        notes: Notes file given by the user; empty or None: none.
        run: Runs a function in a worker thread, and cancels the previous one.
        post: Posts a message of this module; called in the worker thread.
    """

    def __init__(
        self, catalog: Callable[[], Catalog], options: Mapping[str, Any], against: str | None, notes: str | None, *,
        run: Callable[[Callable[[], None]], Worker[None]], post: Callable[[Message], object],
    ) -> None:  # fmt: skip
        self._catalog = catalog
        self._notes = notes
        self._options = options
        self.against = against
        self._run = run
        self._post = post
        self._worker: Worker[None] | None = None

    def read(self, capture: Capture, error: TpuprofError | None = None, disk_state: DiskState | None = None) -> None:
        """Starts loading a capture.

        With ``error`` the profile of ``capture`` is shown again because another capture, whose state on disk was
        ``disk_state``, could not be read.
        """
        self._worker = self._run(partial(self._read, capture, error, disk_state or DiskState()))

    def cancel(self) -> None:
        """Cancels loading."""
        if self._worker is not None:
            self._worker.cancel()

    # in the worker thread

    def _read(self, capture: Capture, earlier_error: TpuprofError | None, disk_state: DiskState) -> None:
        path, worker = capture.path or os.curdir, get_current_worker()
        try:
            profile = capture.profile
            if profile is None:
                listed = not capture.recordings and self._catalog().sessions(path)
                if is_data_set(path) or listed or (not is_capture(Path(path)) and holds_captures(Path(path))):
                    self._post(FolderFound(path))
                    return
                disk_state = read_disk_state(path, self._catalog())
                profile = self._profile(path, disk_state, worker)
            if worker.is_cancelled:
                return
            session = prepared_session(profile)
            if earlier_error is None:
                session = self._compared(session)
        except CancelledError:
            return
        except MemoryError:
            self._post(Failed(UnreadableError(NO_MEMORY), disk_state))
        except Exception as error:
            self._post(Failed(error, disk_state))
        else:
            if not worker.is_cancelled:
                self._post(Loaded(session, disk_state, earlier_error))

    def _profile(self, path: str, disk_state: DiskState, worker: Worker[None]) -> Profile:
        from tpuprof_tui.sources.catalog import open_profile

        reported_at = 0.0

        def report(progress: Progress) -> None:
            nonlocal reported_at
            if worker.is_cancelled:
                raise CancelledError
            if progress.profile is not None and self.against is None:
                self._post(Loaded(prepared_session(progress.profile), disk_state, partial_message=progress.text))
            elif progress.group or time.monotonic() - reported_at > REPORT_EVERY:
                reported_at = time.monotonic()
                self._post(Reported(progress))

        profile = open_profile(path, progress=report, **self._options)
        return replace(profile, notes=self._notes) if self._notes else profile

    def _compared(self, session: Session) -> Session:
        """The session with its baseline; computes the verdict of the headline and the common time axis in advance.

        Raises:
            TpuprofError: The two cannot be compared.
        """
        if self.against is None:
            return session
        from tpuprof_tui.analysis.query import Query
        from tpuprof_tui.analysis.selecting.state import Scope
        from tpuprof_tui.sources.catalog import open_profile
        from tpuprof_tui.views.comparing import Compared
        from tpuprof_tui.views.differences import side_by_side

        baseline = prepared_session(open_profile(self.against, **self._options))
        session = replace(session, baseline=baseline)
        compared = Compared.of(Query(session, baseline=Query(baseline)))
        session.cache.get("verdict", lambda: compared.verdict.headline)
        both = side_by_side(session)
        if both is not None:
            both.axis(Scope())
        return session


def prepared_session(profile: Profile) -> Session:
    """Opens a session with everything that its first frame needs, so that the event loop stays free for keys."""
    from tpuprof_tui.views import screen

    from ..explorer import screen as explorer  # noqa: F401 - drawing is imported here too

    return screen.prepared_session(profile)
