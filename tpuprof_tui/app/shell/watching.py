"""Whether the capture on disk is still the one on the screen, and whether another has appeared beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual.timer import Timer

from tpuprof_tui.analysis.selecting.state import Scope, Selection, ViewState
from tpuprof_tui.formats.escape import clean

from .exporting import ExportingApp

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.session import Session
    from tpuprof_tui.model import Lane, Profile
    from tpuprof_tui.sources.catalog import Catalog

    from ..explorer.layout import Layout

#: Seconds between two looks; a look costs a listing of two folders.
EVERY: Final = 2.0
#: What the bottom line says of a capture that is not as it was.
CHANGED: Final = "changed on disk: R reloads"
#: Folders beside the capture that are looked at.
MOST: Final = 2_000


@dataclass(frozen=True)
class Sighting:
    """How a capture and its neighbourhood looked.

    Attributes:
        fingerprint: Of the capture's files; empty: it could not be seen.
        beside: Names of the captures in the same folder, itself included.
    """

    fingerprint: str = ""
    beside: frozenset[str] = frozenset()


@dataclass(frozen=True)
class News:
    """What is different from when the capture was read.

    Attributes:
        path: The capture it is about.
        text: A sentence for the bottom line.
    """

    path: str
    text: str


@dataclass(frozen=True)
class Unread:
    """A capture that could not be read (again).

    Attributes:
        path: The capture.
        fingerprint: How its files looked then; empty: they could not be seen.
        text: What the bottom line tells of it; empty: the screen tells it.
    """

    path: str
    fingerprint: str
    text: str = ""


def sighting(path: str, catalog: Catalog | None = None) -> Sighting:
    """Looks at a capture and at its folder; reads no events. Never fails: what cannot be seen is empty."""
    if catalog is None:
        from tpuprof_tui.sources.catalog import Catalog

        catalog = Catalog()
    return Sighting(catalog.fingerprint(path), frozenset(catalog.beside(path, MOST)))


def capture_of(path: str) -> Path:
    """The capture that a path belongs to: its folder, or the file that is all of it."""
    from tpuprof_tui.sources.catalog import Catalog

    return Catalog().whole(path)


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


def _path_of(profile: Profile, lane: Lane) -> tuple[str, ...]:
    """Labels of a lane and of all it belongs to."""
    return (*profile.groups.path(lane.group), lane.label)


def kept_view(view: ViewState, old: Profile, session: Session) -> ViewState:
    """A view of one profile carried over to another: window, scope, marks, range, sort and filter as far as they fit.

    Groups and lanes are known by their labels; an instruction stays selected where the same lane has one that starts
    at the same time in the same row.
    """
    new = session.profile
    fresh = ViewState.of(new.start_ns, new.end_ns)
    lanes = {_path_of(new, lane): number for number, lane in enumerate(new.lanes)}

    def moved(lane: int) -> int:
        return lanes.get(_path_of(old, old.lanes[lane]), -1) if 0 <= lane < len(old.lanes) else -1

    def group(known: int) -> int:
        return new.groups.at_path(old.groups.path(known)) if known >= 0 else -1

    def row(lane: int, number: int) -> int:
        place = moved(lane)
        return number if place >= 0 and _start(new.lanes[place], number) == _start(old.lanes[lane], number) else -1

    selection, scope = view.selection, view.scope
    kept = replace(
        view,
        full_start=fresh.full_start,
        full_end=fresh.full_end,
        selection=Selection(group(selection.group), moved(selection.lane), row(selection.lane, selection.row)),
        scope=Scope(group(scope.group), moved(scope.lane)),
        picked=(),
        marks=tuple(mark for mark in view.marks if fresh.start <= mark[1] < fresh.end),
        spans=tuple(span for span in view.spans if fresh.start <= span[1] and span[2] <= fresh.end),
        range=view.range if view.range and fresh.start <= view.range[0] and view.range[1] <= fresh.end else None,
        anchor=view.anchor if view.anchor is not None and fresh.start <= view.anchor < fresh.end else None,
        pinned=tuple((moved(lane) if lane >= 0 else lane, group(unit)) for lane, unit in view.pinned
                     if (moved(lane) >= 0 if lane >= 0 else group(unit) >= 0)),
    )  # fmt: skip
    if view.fits_all:
        return kept.windowed(fresh.start, fresh.span)
    return kept.windowed(view.start, view.span)


def _start(lane: Lane, row: int) -> int | None:
    return int(lane.take("start", slice(row, row + 1))[0]) if 0 <= row < len(lane) else None


def _counted(name: str) -> list[tuple[int, str]]:
    """A name with its numbers as numbers: dev2 comes before dev10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


class WatchingApp(ExportingApp):
    """Says when the capture on disk has changed; with ``follow`` it is read again without a key.

    Attributes:
        follow: Whether changes are followed.
        failed: What could not be read last; None: what was asked for is on the screen.
        paths: The captures that were named, where several were.
    """

    follow: bool = False
    paths: tuple[str, ...] = ()
    _catalog: Catalog | None = None
    #: What was seen before the capture on the screen was read.
    seen: Sighting = Sighting()
    failed: Unread | None = None
    _watching: Timer | None = None
    _news: News | None = None
    _latest: tuple[Sighting, str] | None = None
    _kept: tuple[ViewState, Profile] | None = None
    #: What is told when the capture now read is on the screen.
    _arrival: str = ""
    #: The layout of the explorer whose view was kept.
    _layout: Layout

    @property
    def fingerprint(self) -> str:
        """How the capture on the screen looked before it was read."""
        return self.seen.fingerprint

    def could_not_read(self, path: str, looked: Sighting, reason: str = "") -> None:
        """Remembers what could not be read; with a ``reason`` it is told, and what is on the screen stays."""
        told = ""
        if reason:
            named = "" if path == self.path else f"{clean(capture_of(path).name)}: "
            told = f"{named}could not be read" + (": R tries again" if path == self.path else "")
            self._arrival = f"{reason.rstrip('.')}: what was read before stays."
        self.failed = Unread(path, looked.fingerprint, told)

    def watch_capture(self) -> None:
        """Begins to look, now that a capture has been read, or could not be."""
        self._latest = None
        failed = self.failed
        self._tell_news(News(failed.path, failed.text) if failed is not None and failed.text else None)
        if self._watching is None:
            self._watching = self.set_interval(EVERY, self._look)

    def _look(self) -> None:
        if self.path is not None and (self.seen.fingerprint or self.failed is not None) and self.may_look():
            self.run_worker(self._sight, name="watch", group="watching", exclusive=True, thread=True,
                            exit_on_error=False)  # fmt: skip

    def may_look(self) -> bool:
        """Whether a capture is on the screen, and none is being read."""
        return True

    @property
    def catalog(self) -> Catalog:
        """The sources; those of other packages are loaded once."""
        if self._catalog is None:
            from tpuprof_tui.sources.catalog import Catalog

            self._catalog = Catalog()
        return self._catalog

    def _sight(self) -> None:
        path, failed = self.path or "", self.failed
        now = sighting(path, self.catalog)
        again = ""
        if failed is not None:
            again = now.fingerprint if failed.path == path else self.catalog.fingerprint(failed.path)
        self.call_from_thread(self._sighted, path, now, again)

    def _sighted(self, path: str, now: Sighting, again: str) -> None:
        """Takes what was seen of the capture on the screen, and of what could not be read."""
        if path != self.path or not self.may_look():
            return
        steady, self._latest = (now, again) == self._latest, (now, again)
        failed, news = self.failed, news_of(path, self.seen, now)
        told = news
        if failed is not None:
            if again in ("", failed.fingerprint):
                # what could not be read is read again when it has changed
                news = None if news is not None and news.path == failed.path else news
                told = News(failed.path, failed.text) if failed.text else news
            elif failed.path == path and again == self.seen.fingerprint:
                self.failed = None
                self.say("The capture on disk is as it was read.")
            elif news is None:
                told = news = News(failed.path, CHANGED)
        self._tell_news(told)
        # a capture that is still being written is followed when it rests
        if news is not None and self.follow and steady:
            self.keep_view()
            self._arrival = ("Read again: it changed on disk." if news.path == path
                             else f"New capture: {clean(capture_of(news.path).name)}.")  # fmt: skip
            self.path = news.path
            self.reload()

    def _tell_news(self, news: News | None) -> None:
        if news != self._news:
            self._news = news
            self.notice = news.text if news is not None else ""
            self.show_status()

    def captures_beside(self) -> list[tuple[str, str]]:
        """Names and paths of the captures that were named, else of those in the folder of this one.

        Those of a folder include this one, in the order people count.
        """
        if self.paths:
            named = [capture_of(path).name for path in self.paths]
            return [(name if named.count(name) == 1 else path, path)
                    for name, path in zip(named, self.paths, strict=True)]  # fmt: skip
        if self.path is None:
            return []
        folder = capture_of(self.path).parent
        return [(name, str(folder / name)) for name in sorted(self.seen.beside, key=_counted)]

    def switch_capture(self, steps: int) -> bool:
        """Opens the capture ``steps`` after this one in its folder; False where it is alone."""
        names = self.captures_beside()
        if len(names) < 2:
            return False
        here = max(self._place(names, self.path or ""), 0)
        self.switch_to(names[(here + steps) % len(names)][1])
        return True

    @staticmethod
    def _place(names: list[tuple[str, str]], path: str) -> int:
        """Which of some captures a path is; -1: none."""
        ways = {Path(path).absolute(), capture_of(path)}
        return next((number for number, (_, each) in enumerate(names) if Path(each).absolute() in ways), -1)

    def switch_to(self, path: str) -> None:
        """Opens another capture; what is looked at stays as far as it fits."""
        name = capture_of(path).name
        names = self.captures_beside()
        here = self._place(names, path)
        place = f", {here + 1} of {len(names)}: ( and ) go on" if here >= 0 else ""
        self._arrival = f"Capture {clean(name)}{place}"
        self.path, self.profile = path, None
        self.reload(comes_back=False)

    def tell_arrival(self) -> None:
        """Says which capture is on the screen, where no key named it."""
        text, self._arrival = self._arrival, ""
        if text:
            self.say(text)

    def keep_view(self) -> None:
        """Remembers the view for the profile that is read next."""
        from ..explorer.screen import ExplorerScreen

        screen = next((each for each in self.screen_stack if isinstance(each, ExplorerScreen)), None)
        if screen is not None:
            self._kept = screen.view, screen.session.profile
            self._layout = replace(screen.manager.layout)

    def view_for(self, session: Session) -> ViewState | None:
        """The remembered view, for a profile that was just read; None where none is remembered."""
        kept, self._kept = self._kept, None
        return kept_view(kept[0], kept[1], session) if kept is not None else None

    def reload(self, *, comes_back: bool = True) -> None:
        """Reads the capture (again)."""
        raise NotImplementedError
