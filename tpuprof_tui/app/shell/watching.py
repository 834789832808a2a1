"""Watches the capture on disk: detects that it changed, or that a new capture appeared in its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tpuprof_tui.formats.escape import clean

from .captures import MOST, capture_of

if TYPE_CHECKING:
    from tpuprof_tui.sources.catalog import Catalog

#: Polling interval in seconds; a poll lists two folders.
EVERY: Final = 2.0
#: Message for a capture that changed on disk.
CHANGED: Final = "changed on disk: R reloads"


class Sighting(Struct, frozen=True):
    """State on disk of a capture and its folder.

    Attributes:
        fingerprint: Fingerprint of the capture's files; empty: not accessible.
        beside: Names of the captures in the same folder, including this one.
    """

    fingerprint: str = ""
    beside: frozenset[str] = frozenset()


class News(Struct, frozen=True):
    """A change on disk since the capture was read.

    Attributes:
        path: The capture that changed or appeared.
        text: Message for the bottom line.
    """

    path: str
    text: str


class Unread(Struct, frozen=True):
    """A capture that could not be read or reloaded.

    Attributes:
        path: The capture.
        fingerprint: Fingerprint of its files at that time; empty: not accessible.
        text: Message for the bottom line; empty: the screen itself shows the error.
    """

    path: str
    fingerprint: str
    text: str = ""


class Look(Struct, frozen=True):
    """Result of one poll.

    Attributes:
        path: The capture on the screen.
        now: Its state on disk.
        unread: Fingerprint of the capture that could not be read; empty: there is none, or it is not accessible.
    """

    path: str
    now: Sighting
    unread: str = ""


class Verdict(Struct, frozen=True):
    """Interpretation of a poll.

    Attributes:
        news: Change to show in the bottom line; None: no change.
        changed: Change to load in follow mode, once two polls agree (writing has ended); None: nothing to load.
        as_read: Whether the capture that could not be reloaded is again identical to the one on the screen.
    """

    news: News | None = None
    changed: News | None = None
    as_read: bool = False


def sighting(path: str, catalog: Catalog | None = None) -> Sighting:
    """Polls a capture and its folder without reading events; never raises: inaccessible parts are empty."""
    if catalog is None:
        from tpuprof_tui.sources.catalog import Catalog

        catalog = Catalog()
    return Sighting(catalog.fingerprint(path), frozenset(catalog.beside(path, MOST)))


def news_of(path: str, read: Sighting, now: Sighting) -> News | None:
    """The change since the capture was read; None without a change or if nothing is accessible."""
    capture = capture_of(path)
    if now.fingerprint and read.fingerprint and now.fingerprint != read.fingerprint:
        return News(path, CHANGED)
    added = sorted(now.beside - read.beside - {capture.name})
    if added and read.fingerprint:
        more = f" (and {len(added) - 1} more)" if len(added) > 1 else ""
        return News(str(capture.parent / added[-1]), f"new: {clean(added[-1])}{more}, O lists it")
    return None


class CaptureWatcher:
    """Compares the capture on the screen, and one that could not be read, with their state on disk.

    Attributes:
        path: The capture on the screen, or the one that could not be opened; empty: none on disk.
        seen: Its state on disk before it was read.
        failed: The capture that could not be read last; None: the requested one is on the screen.
    """

    def __init__(self) -> None:
        self.path = ""
        self.seen = Sighting()
        self.failed: Unread | None = None
        self._latest: Look | None = None

    def show(self, path: str, seen: Sighting) -> None:
        """Watches a capture that is now on the screen; ``seen``: its state on disk before it was read."""
        self.path, self.seen, self.failed, self._latest = path, seen, None, None

    def could_not_open(self, path: str, looked: Sighting) -> None:
        """Watches a capture that could not be read, with no other capture on the screen."""
        self.path, self.seen, self._latest = path, looked, None
        self.failed = Unread(path, looked.fingerprint)

    def could_not_read(self, path: str, looked: Sighting) -> None:
        """Also watches a capture that could not be read; the previous one stays on the screen."""
        named = "" if path == self.path else f"{clean(capture_of(path).name)}: "
        told = f"{named}could not be read" + (": R tries again" if path == self.path else "")
        self.failed, self._latest = Unread(path, looked.fingerprint, told), None

    @property
    def notice(self) -> str:
        """Message about the capture that could not be read, until the first poll; empty: none."""
        return self.failed.text if self.failed is not None else ""

    @property
    def has_capture(self) -> bool:
        """Whether there is a capture on disk to poll."""
        return bool(self.path) and (bool(self.seen.fingerprint) or self.failed is not None)

    def look(self, catalog: Catalog) -> Look:
        """Polls the disk; called in a worker thread."""
        path, failed = self.path, self.failed
        now = sighting(path, catalog)
        if failed is None:
            return Look(path, now)
        return Look(path, now, now.fingerprint if failed.path == path else catalog.fingerprint(failed.path))

    def judge(self, look: Look) -> Verdict | None:
        """Interprets a poll; None if it is for a capture that is no longer on the screen."""
        if look.path != self.path:
            return None
        rests, self._latest = look == self._latest, look
        failed, news = self.failed, news_of(self.path, self.seen, look.now)
        told, as_read = news, False
        if failed is not None:
            if look.unread in ("", failed.fingerprint):
                # unchanged since it could not be read: reading it again would fail again
                news = None if news is not None and news.path == failed.path else news
                told = News(failed.path, failed.text) if failed.text else news
            elif failed.path == self.path and look.unread == self.seen.fingerprint:
                self.failed, as_read = None, True
            elif news is None:
                told = news = News(failed.path, CHANGED)
        # a capture still being written is loaded only after two equal polls
        return Verdict(told, news if rests else None, as_read)
