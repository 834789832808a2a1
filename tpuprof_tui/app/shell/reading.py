"""Opens captures in a thread, one at a time, and tells how far it is and what came of it."""

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
from .watching import Sighting, sighting

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.session import Session
    from tpuprof_tui.model import Profile
    from tpuprof_tui.sources.catalog import Catalog, Progress

#: Reports of progress reach the screen at most this often, s.
REPORT_EVERY = 0.2


class Capture(Struct, frozen=True):
    """What is open, or is to be opened.

    Attributes:
        path: Where it is; None: it is the profile.
        profile: What is shown instead of what is read from the path; None: it is read.
    """

    path: str | None = None
    profile: Profile | None = None


class Loaded(Message):
    """A profile is ready to show.

    Attributes:
        session: The profile with its indexes.
        looked: How the capture looked before it was read, or another could not be.
        error: Why another could not be read, in whose place this one is shown again; None: it is what was asked for.
        more: What is said of it while the rest of it is still being read; empty: it is whole.
    """

    def __init__(self, session: Session, looked: Sighting, error: TpuprofError | None = None, more: str = "") -> None:
        super().__init__()
        self.session = session
        self.looked = looked
        self.error = error
        self.more = more


class FolderFound(Message):
    """The path is a folder of captures."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path


class Failed(Message):
    """The capture could not be read; it looked so before."""

    def __init__(self, error: Exception, looked: Sighting) -> None:
        super().__init__()
        self.error = error
        self.looked = looked


class Reported(Message):
    """The reader has got further."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self.progress = progress


class CaptureReader:
    """Opens captures.

    Args:
        catalog: Gives the sources.
        options: Those of the source that reads a capture, by name.
        against: What captures are compared with; None: nothing.
        notes: File of notes that was named; empty or None: none was.
        run: Begins a function in a thread, in place of one that is at work there.
        post: Takes the messages of this module; called in the thread.
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

    def read(self, capture: Capture, error: TpuprofError | None = None, looked: Sighting | None = None) -> None:
        """Begins to open a capture; with an error a profile again, in place of what looked so and could not be read."""
        self._worker = self._run(partial(self._read, capture, error, looked or Sighting()))

    def cancel(self) -> None:
        """Stops what is being opened."""
        if self._worker is not None:
            self._worker.cancel()

    # in the thread

    def _read(self, capture: Capture, reason: TpuprofError | None, looked: Sighting) -> None:
        path, worker = capture.path or os.curdir, get_current_worker()
        try:
            profile = capture.profile
            if profile is None:
                if is_data_set(path) or (not is_capture(Path(path)) and holds_captures(Path(path))):
                    self._post(FolderFound(path))
                    return
                looked = sighting(path, self._catalog())
                profile = self._profile(path, looked, worker)
            if worker.is_cancelled:
                return
            session = prepared(profile)
            if reason is None:
                session = self._compared(session)
        except CancelledError:
            return
        except MemoryError:
            self._post(Failed(UnreadableError(NO_MEMORY), looked))
        except Exception as error:
            self._post(Failed(error, looked))
        else:
            if not worker.is_cancelled:
                self._post(Loaded(session, looked, reason))

    def _profile(self, path: str, looked: Sighting, worker: Worker[None]) -> Profile:
        from tpuprof_tui.sources.catalog import open_profile

        told = 0.0

        def report(progress: Progress) -> None:
            nonlocal told
            if worker.is_cancelled:
                raise CancelledError
            if progress.profile is not None and self.against is None:
                self._post(Loaded(prepared(progress.profile), looked, more=progress.text))
            elif progress.group or time.monotonic() - told > REPORT_EVERY:
                told = time.monotonic()
                self._post(Reported(progress))

        profile = open_profile(path, progress=report, **self._options)
        return replace(profile, notes=self._notes) if self._notes else profile

    def _compared(self, session: Session) -> Session:
        """The session with what it is compared with, the verdict for the first line, and what both are drawn with.

        Raises:
            TpuprofError: The two cannot be compared.
        """
        if self.against is None:
            return session
        from tpuprof_tui.analysis.selecting.state import Scope
        from tpuprof_tui.sources.catalog import open_profile
        from tpuprof_tui.views.comparing import Compared
        from tpuprof_tui.views.diff import headline
        from tpuprof_tui.views.differences import side_by_side
        from tpuprof_tui.views.query import Query

        baseline = prepared(open_profile(self.against, **self._options))
        session = replace(session, baseline=baseline)
        compared = Compared.of(Query(session, baseline=Query(baseline)))
        session.cache.get("verdict", lambda: headline(compared))
        both = side_by_side(session)
        if both is not None:
            both.axis(Scope())
        return session


def prepared(profile: Profile) -> Session:
    """A profile with all that its first frame needs: the event loop stays free for keys."""
    from tpuprof_tui.analysis.links.launches import build_full_session

    from ..explorer import screen as explorer  # noqa: F401 - drawing is imported here too

    return build_full_session(profile)
