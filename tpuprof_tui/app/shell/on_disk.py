"""Captures on disk: which one a path belongs to, its neighbours, and changes while one is on the screen."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.sources.catalog import Catalog, natural_order

#: Most folders next to the capture that are searched.
MAX_NEIGHBOURS: Final = 2_000
#: Polling interval in seconds; a poll lists two folders.
POLL_SECONDS: Final = 2.0
#: Message for a capture that changed on disk.
CHANGED: Final = "changed on disk: R reloads"


class CancelledError(Exception):
    """Reading was cancelled by the user."""


def is_capture(path: Path) -> bool:
    """Whether ``path`` is a capture directory, or no directory at all: sources check files when they are opened."""
    return not os.path.isdir(path) or Catalog().source_of(path) is not None


def capture_of(path: str) -> Path:
    """The capture that a path belongs to: its folder, or the file itself if that is the whole capture."""
    return Catalog().whole(path)


def neighbours(named: Sequence[str], path: str, folder_names: Iterable[str]) -> list[tuple[str, str]]:
    """Names and paths of the captures to switch between.

    Args:
        named: Paths given on the command line, if more than one.
        path: The capture on the screen; empty: not on disk.
        folder_names: Names of the captures in its folder, including itself.

    Returns:
        (name, path) of the named captures in that order, else of those in the folder in natural order.
    """
    if named:
        names = [capture_of(each).name for each in named]
        return [(name if names.count(name) == 1 else each, each) for name, each in zip(names, named, strict=True)]
    if not path:
        return []
    folder = capture_of(path).parent
    return [(name, str(folder / name)) for name in sorted(folder_names, key=natural_order)]


def index_of(captures: Sequence[tuple[str, str]], path: str) -> int:
    """Index of a path in a list of captures; -1: not found."""
    paths = {Path(path).absolute(), capture_of(path)}
    return next((number for number, (_, each) in enumerate(captures) if Path(each).absolute() in paths), -1)


class DiskState(Struct, frozen=True):
    """Fingerprint of a capture's files (empty: not accessible), and names of the captures in its folder, itself too."""

    fingerprint: str = ""
    folder_names: frozenset[str] = frozenset()


class DiskChange(Struct, frozen=True):
    """A capture that changed, appeared, or could not be read (with its fingerprint then), and a message about it."""

    path: str
    text: str = ""
    fingerprint: str = ""


class PollResult(Struct, frozen=True):
    """State on disk of the capture on the screen, and fingerprint of the one that could not be read; empty: none."""

    path: str
    state: DiskState
    failed_fingerprint: str = ""


def read_disk_state(path: str, catalog: Catalog | None = None) -> DiskState:
    """Polls a capture and its folder without reading events; never raises: inaccessible parts are empty."""
    catalog = catalog or Catalog()
    return DiskState(catalog.fingerprint(path), frozenset(catalog.siblings(path, MAX_NEIGHBOURS)))


def disk_change(path: str, read: DiskState, current: DiskState) -> DiskChange | None:
    """The change since the capture was read; None without a change or if nothing is accessible."""
    capture = capture_of(path)
    if current.fingerprint and read.fingerprint and current.fingerprint != read.fingerprint:
        return DiskChange(path, CHANGED)
    added = sorted(current.folder_names - read.folder_names - {capture.name})
    if added and read.fingerprint:
        more = f" (and {len(added) - 1} more)" if len(added) > 1 else ""
        return DiskChange(str(capture.parent / added[-1]), f"new: {clean(added[-1])}{more}, O lists it")
    return None


class CaptureWatcher:
    """Compares the capture on the screen, and one that could not be read, with their state on disk."""

    def __init__(self) -> None:
        self.path = ""  #: The capture on the screen, or the one that could not be opened; empty: none on disk
        self.disk_state = DiskState()  #: Its state on disk before it was read
        #: The capture that could not be read last, without a message if the screen itself shows the error; None: the
        #: requested one is on the screen.
        self.failed: DiskChange | None = None
        self._last_poll: PollResult | None = None

    def show(self, path: str, disk_state: DiskState) -> None:
        """Watches a capture that is now on the screen; ``disk_state``: its state on disk before it was read."""
        self.path, self.disk_state, self.failed, self._last_poll = path, disk_state, None, None

    def could_not_open(self, path: str, disk_state: DiskState) -> None:
        """Watches a capture that could not be read, with no other capture on the screen."""
        self.path, self.disk_state, self._last_poll = path, disk_state, None
        self.failed = DiskChange(path, fingerprint=disk_state.fingerprint)

    def could_not_read(self, path: str, disk_state: DiskState) -> None:
        """Also watches a capture that could not be read; the previous one stays on the screen."""
        prefix = "" if path == self.path else f"{clean(capture_of(path).name)}: "
        text = f"{prefix}could not be read" + (": R tries again" if path == self.path else "")
        self.failed, self._last_poll = DiskChange(path, text, disk_state.fingerprint), None

    @property
    def notice(self) -> str:
        """Message about the capture that could not be read, until the first poll; empty: none."""
        return self.failed.text if self.failed is not None else ""

    @property
    def has_capture(self) -> bool:
        """Whether there is a capture on disk to poll."""
        return bool(self.path) and (bool(self.disk_state.fingerprint) or self.failed is not None)

    def poll(self, catalog: Catalog) -> PollResult:
        """Polls the disk; called in a worker thread."""
        path, failed = self.path, self.failed
        now = read_disk_state(path, catalog)
        if failed is None:
            return PollResult(path, now)
        return PollResult(path, now, now.fingerprint if failed.path == path else catalog.fingerprint(failed.path))

    def interpret(self, poll: PollResult) -> tuple[str, str]:
        """Interprets a poll of the capture on the screen.

        Returns:
            Message for the bottom line, and path of the capture to load in follow mode; empty: none.
        """
        stable, self._last_poll = poll == self._last_poll, poll
        failed, change = self.failed, disk_change(self.path, self.disk_state, poll.state)
        to_show = change
        if failed is not None:
            if poll.failed_fingerprint in ("", failed.fingerprint):
                # unchanged since it could not be read: reading it again would fail again
                change = None if change is not None and change.path == failed.path else change
                to_show = failed if failed.text else change
            elif failed.path == self.path and poll.failed_fingerprint == self.disk_state.fingerprint:
                self.failed = None
            elif change is None:
                to_show = change = DiskChange(failed.path, CHANGED)
        # a capture still being written is loaded only after two equal polls
        return to_show.text if to_show else "", change.path if change and stable else ""
