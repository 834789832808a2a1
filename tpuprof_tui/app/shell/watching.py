"""Whether the capture on disk is still the one on the screen, and whether another has appeared beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tpuprof_tui.formats.escape import clean

from .captures import MOST, capture_of

if TYPE_CHECKING:
    from tpuprof_tui.sources.catalog import Catalog

#: Seconds between two looks; a look costs a listing of two folders.
EVERY: Final = 2.0
#: What the bottom line says of a capture that is not as it was.
CHANGED: Final = "changed on disk: R reloads"


class Sighting(Struct, frozen=True):
    """How a capture and its neighbourhood looked.

    Attributes:
        fingerprint: Of the capture's files; empty: it could not be seen.
        beside: Names of the captures in the same folder, itself included.
    """

    fingerprint: str = ""
    beside: frozenset[str] = frozenset()


class News(Struct, frozen=True):
    """What is different from when the capture was read.

    Attributes:
        path: The capture it is about.
        text: A sentence for the bottom line.
    """

    path: str
    text: str


class Unread(Struct, frozen=True):
    """A capture that could not be read (again).

    Attributes:
        path: The capture.
        fingerprint: How its files looked then; empty: they could not be seen.
        text: What the bottom line tells of it; empty: the screen tells it.
    """

    path: str
    fingerprint: str
    text: str = ""


class Look(Struct, frozen=True):
    """What one look has seen.

    Attributes:
        path: The capture on the screen.
        now: How it looks.
        unread: How the capture looks that could not be read; empty: there is none, or it cannot be seen.
    """

    path: str
    now: Sighting
    unread: str = ""


class Verdict(Struct, frozen=True):
    """What a look means.

    Attributes:
        news: What the bottom line tells; None: nothing.
        changed: What is to be read where changes are followed: it has changed, and rests; None: nothing.
        as_read: What could not be read is again as it was when it was read.
    """

    news: News | None = None
    changed: News | None = None
    as_read: bool = False


def sighting(path: str, catalog: Catalog | None = None) -> Sighting:
    """Looks at a capture and at its folder; reads no events. Never fails: what cannot be seen is empty."""
    if catalog is None:
        from tpuprof_tui.sources.catalog import Catalog

        catalog = Catalog()
    return Sighting(catalog.fingerprint(path), frozenset(catalog.beside(path, MOST)))


def news_of(path: str, read: Sighting, now: Sighting) -> News | None:
    """What has changed since the capture was read; None where nothing has, or nothing can be seen."""
    capture = capture_of(path)
    if now.fingerprint and read.fingerprint and now.fingerprint != read.fingerprint:
        return News(path, CHANGED)
    added = sorted(now.beside - read.beside - {capture.name})
    if added and read.fingerprint:
        more = f" (and {len(added) - 1} more)" if len(added) > 1 else ""
        return News(str(capture.parent / added[-1]), f"new: {clean(added[-1])}{more}, O lists it")
    return None


class CaptureWatcher:
    """Compares the capture on the screen, and one that could not be read, with what is on disk.

    Attributes:
        path: The capture on the screen, or that could not be opened at all; empty: none on disk.
        seen: How it looked before it was read.
        failed: What could not be read last; None: what was asked for is on the screen.
    """

    def __init__(self) -> None:
        self.path = ""
        self.seen = Sighting()
        self.failed: Unread | None = None
        self._latest: Look | None = None

    def show(self, path: str, seen: Sighting) -> None:
        """A capture is on the screen that looked so before it was read."""
        self.path, self.seen, self.failed, self._latest = path, seen, None, None

    def could_not_open(self, path: str, looked: Sighting) -> None:
        """A capture could not be read, as the screen tells; no other is on it."""
        self.path, self.seen, self._latest = path, looked, None
        self.failed = Unread(path, looked.fingerprint)

    def could_not_read(self, path: str, looked: Sighting) -> None:
        """A capture could not be read, and what was on the screen stays."""
        named = "" if path == self.path else f"{clean(capture_of(path).name)}: "
        told = f"{named}could not be read" + (": R tries again" if path == self.path else "")
        self.failed, self._latest = Unread(path, looked.fingerprint, told), None

    @property
    def notice(self) -> str:
        """What is told of the capture that could not be read, before anything is seen; empty: nothing."""
        return self.failed.text if self.failed is not None else ""

    @property
    def has_capture(self) -> bool:
        """Whether there is anything to look at."""
        return bool(self.path) and (bool(self.seen.fingerprint) or self.failed is not None)

    def look(self, catalog: Catalog) -> Look:
        """Looks at the disk; in a thread."""
        path, failed = self.path, self.failed
        now = sighting(path, catalog)
        if failed is None:
            return Look(path, now)
        return Look(path, now, now.fingerprint if failed.path == path else catalog.fingerprint(failed.path))

    def judge(self, look: Look) -> Verdict | None:
        """What a look means; None: it was for a capture that is on the screen no more."""
        if look.path != self.path:
            return None
        rests, self._latest = look == self._latest, look
        failed, news = self.failed, news_of(self.path, self.seen, look.now)
        told, as_read = news, False
        if failed is not None:
            if look.unread in ("", failed.fingerprint):
                # what could not be read is read again when it has changed
                news = None if news is not None and news.path == failed.path else news
                told = News(failed.path, failed.text) if failed.text else news
            elif failed.path == self.path and look.unread == self.seen.fingerprint:
                self.failed, as_read = None, True
            elif news is None:
                told = news = News(failed.path, CHANGED)
        # a capture that is still being written is followed when it rests
        return Verdict(told, news if rests else None, as_read)
