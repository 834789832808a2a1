"""Screen that lists the captures below a folder, to open one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace
from rich.segment import Segment
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.worker import get_current_worker

from tpuprof_tui.errors import TpuprofError
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit
from tpuprof_tui.formats.units import GUESS, MISSING, bytes_text, clock_text, percent_text, time_text
from tpuprof_tui.sources import catalog as sources
from tpuprof_tui.sources.catalog import Catalog
from tpuprof_tui.sources.source import RECORDINGS, SessionEntry

from ..drawing.theme import Palette
from ..panes.headline import HeadlineBar
from ..panes.lines import Line, LinesView, paragraph
from ..panes.prompt import KeyBar
from ..settings.actions import bindings
from .messages import CaptureRequest
from .on_disk import CancelledError

if TYPE_CHECKING:
    from tpuprof_tui.views.sentence import Sentence

#: Limits of the search: seconds, and levels of folders.
SECONDS, DEPTH = 2.0, 3
#: Largest capture, in bytes, that is read for the facts in the list.
MAX_READ_BYTES: Final = 256 << 20


class CaptureEntry(Struct, frozen=True):
    """A capture in the list; facts not known yet are empty."""

    path: Path
    #: device, call: Numbers from the directory's name.
    device: str = ""
    call: str = ""
    #: mode, total, busiest: Facts read from the capture.
    mode: str = ""
    total: str = ""
    busiest: str = ""
    failed: bool = False  #: Whether it could not be read
    sentence: Sentence | None = None  #: The answer in one sentence, read from the capture; None: not known
    session: SessionEntry | None = None  #: For a session of a folder of recordings: what the list says of it; else None

    @property
    def recordings(self) -> str:
        """The names of its recordings, as an option of the source; empty for a whole capture."""
        return "" if self.session is None else ",".join(name.replace(",", "?") for name in self.session.names)

    @property
    def opened_path(self) -> Path:
        """The path to open: of a single recording its file."""
        single = self.session is not None and len(self.session.names) == 1
        return self.path / self.session.names[0] if single and self.session is not None else self.path

    def display_path(self, root: str) -> str:
        """Path relative to ``root``; the folder's name for ``root`` itself; the path as given if ``root`` is empty."""
        if self.session is not None:
            first, *others = self.session.names
            return f"{first} and {len(others)} more" if others else first
        if not root:
            return str(self.path)
        relative = os.path.relpath(self.path, root)
        return self.path.resolve().name if relative == os.curdir else relative


def find_captures(root: Path, depth: int, seconds: float) -> Iterator[CaptureEntry]:
    """Yields captures at and below ``root`` as they are found; ``root`` itself if it is a file."""
    catalog = Catalog()
    for path in [root] if os.path.isfile(root) else catalog.find(root, depth=depth, seconds=seconds):
        sessions = catalog.sessions(path)
        yield from (CaptureEntry(path, session=session) for session in sessions)
        if not sessions:
            device, call = ("" if number is None else str(number) for number in catalog.device_and_call(path))
            yield CaptureEntry(path, device, call)


def facts_of(entry: CaptureEntry, cancelled: Callable[[], bool]) -> CaptureEntry:
    """Reads the capture and fills in its facts.

    Raises:
        CancelledError: ``cancelled`` became true while reading.
    """
    from tpuprof_tui.analysis.query import query_of
    from tpuprof_tui.views.report import total_ns
    from tpuprof_tui.views.sentence import sentence

    def watch(_: object) -> None:
        if cancelled():
            raise CancelledError

    try:
        size = Catalog().size(entry.path) if entry.session is None else entry.session.size
        if size > MAX_READ_BYTES:
            return replace(entry, busiest="large")
        chosen: dict[str, Any] = {} if entry.session is None else {RECORDINGS.name: entry.recordings}
        profile = sources.open_profile(entry.path, progress=watch, **chosen)
        watch(None)
        query = query_of(profile)
        figures = query.headline
        told = sentence(query)
    except TpuprofError:
        return replace(entry, busiest="unreadable", failed=True)
    unit = figures.busiest
    busiest = f"{unit.name:>3} {percent_text(unit.utilisation, guessed=unit.guessed)}" if unit else ""
    return replace(entry, mode=profile.recording.short, total=time_text(total_ns(query.session)), busiest=busiest,
                   sentence=told)  # fmt: skip


def below(roots: Sequence[str]) -> str:
    """Describes where captures are searched."""
    return f"below {clean(roots[0])}" if len(roots) == 1 else f"at {len(roots)} paths"


class CaptureList(LinesView):
    """The list of captures, filled in by a worker thread: first the paths, then the facts of each."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("chooser")]

    def __init__(self, roots: Sequence[str], palette: Palette, base: str | None = None) -> None:
        super().__init__(palette, "chooser")
        self.roots = roots
        self.base = base
        #: Folder that paths are shown relative to; empty: paths are shown as given.
        self.root = roots[0] if len(roots) == 1 else ""
        self.entries: list[CaptureEntry] = []
        self.finished = False
        #: Indexes of the sessions that are marked to be opened together.
        self.marked: set[int] = set()

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Builds a header and a line for each capture."""
        if not self.entries:
            where = below(self.roots)
            text = (
                f"No capture {where} (looked {DEPTH} levels deep). Start tpuprof with the path of a "
                f"capture: {Catalog().expected}."
                if self.finished
                else f"Looking for captures {where} ..."
            )
            return paragraph(text, width, self.palette.quiet), []
        if all(each.session is not None for each in self.entries):
            return self._sessions(width)
        path_width = max(width - 51, 16)
        names = f" {fit('capture', path_width)} {'device':>7} {'call':>6} {'mode':>6} {'total':>11}  {'busiest':<13}"
        lines: list[Line] = [[Segment(fit(names, width), self.palette.header)]]
        items = [-1]
        for number, each in enumerate(self.entries):
            mode = fit(clean(each.mode) or MISSING, 6, right=True)
            facts = (f"{each.device or MISSING:>7} {each.call or MISSING:>6} {mode} "
                     f"{each.total or MISSING:>11}  {each.busiest or MISSING:<13}")  # fmt: skip
            style = self.palette.text if not each.failed else self.palette.quiet
            mark = " (base)" if self.base is not None and same_path(each.path, self.base) else ""
            path = f"{fit(clean(each.display_path(self.root)), path_width - len(mark))}{mark}"
            lines.append([Segment(f" {path} ", style), Segment(facts, self.palette.quiet)])
            items.append(number)
        if not self.finished:
            lines.append([Segment(" looking for more ...", self.palette.quiet)])
            items.append(-1)
        return lines, items

    def _sessions(self, width: int) -> tuple[list[Line], list[int]]:
        device_width = 24 if width >= 110 else 0
        name_width = max(width - 57 - device_width, 12)
        device = f" {fit('device', device_width)}" if device_width else ""
        names = (
            f"   {fit('recording', name_width)} {'run':>4} {'rank':>6}{device} {'start':<19} {'length':>10} {'size':>9}"
        )
        lines: list[Line] = [[Segment(fit(names, width), self.palette.header)]]
        for number, each in enumerate(self.entries):
            session = each.session
            assert session is not None
            begun = MISSING if session.begun_ns is None else clock_text(session.begun_ns)[:19]
            device = f" {fit(clean(session.device) or MISSING, device_width)}" if device_width else ""
            known = each.busiest if each.failed else each.total
            guess = "unknown" if session.length_ns is None else f"{GUESS}{time_text(session.length_ns)}"
            length = known or guess
            facts = (f"{session.run:>4} {fit(session.ranks or MISSING, 6, right=True)}{device} {begun:<19} "
                     f"{fit(length, 10, right=True)} {bytes_text(session.size):>9}")  # fmt: skip
            mark = "*" if number in self.marked else " "
            style = self.palette.text if not each.failed else self.palette.quiet
            lines.append([Segment(f" {mark} {fit(clean(each.display_path(self.root)), name_width)} ", style),
                          Segment(facts, self.palette.quiet)])  # fmt: skip
        more = "Several runs, or several recordings of one. Enter opens one, Space marks those to open together."
        notes = paragraph(more, width, self.palette.quiet)
        return [*lines, *notes], [-1, *range(len(self.entries)), *[-1] * len(notes)]

    def on_mount(self) -> None:
        """Starts the search in a worker thread."""
        self._search()

    @work(thread=True, exclusive=True, group="chooser", exit_on_error=False)
    def _search(self) -> None:
        worker = get_current_worker()
        found: list[CaptureEntry] = []
        reported_at = time.monotonic()
        for each in (each for root in self.roots for each in find_captures(Path(root), DEPTH, SECONDS)):
            found.append(each)
            if worker.is_cancelled:
                return
            if time.monotonic() - reported_at > 0.25:
                reported_at = time.monotonic()
                self.call_later(self._take, list(found), False)
        self.call_later(self._take, list(found), True)
        for index, each in enumerate(found):
            if worker.is_cancelled:
                return
            try:
                found[index] = facts_of(each, lambda: worker.is_cancelled)
            except CancelledError:
                return
            if time.monotonic() - reported_at > 0.25 or index == len(found) - 1:
                reported_at = time.monotonic()
                self.call_later(self._take, list(found), True)

    def _take(self, entries: list[CaptureEntry], finished: bool) -> None:
        self.entries, self.finished = entries, finished
        self.rebuild()
        self.cursor_changed()

    def cursor_changed(self) -> None:
        """Tells the sentence of the capture under the cursor in the headline."""
        for each in self.entries[self.cursor : self.cursor + 1]:
            self.screen.query_one(HeadlineBar).show_sentence(each.sentence)

    def action_open(self) -> None:
        """Opens the capture under the cursor, or the marked recordings together."""
        chosen = [self.entries[number] for number in sorted(self.marked)] or self.entries[self.cursor : self.cursor + 1]
        if len(chosen) == 1:
            (one,) = chosen
            single = one.opened_path != one.path
            self.post_message(CaptureRequest("choose", str(one.opened_path), "" if single else one.recordings))
        elif chosen:
            recordings = ",".join(each.recordings for each in chosen)
            self.post_message(CaptureRequest("choose", str(chosen[0].path), recordings))

    def action_mark(self) -> None:
        """Marks the recording under the cursor, or removes its mark; those of one folder can be opened together."""
        if self.entries and self.entries[self.cursor].session is not None:
            folder = self.entries[self.cursor].path
            self.marked = {number for number in self.marked if self.entries[number].path == folder} ^ {self.cursor}
            self.rebuild()

    def action_base(self) -> None:
        """Makes the capture under the cursor the baseline, or clears it if it is."""
        if self.entries:
            path = self.entries[self.cursor].opened_path
            self.base = None if self.base is not None and same_path(path, self.base) else str(path)
            self.rebuild()
            self.post_message(CaptureRequest("compare_with", self.base))


def same_path(path: Path, other: str) -> bool:
    """Whether two paths are equal once made absolute."""
    return os.path.abspath(path) == os.path.abspath(other)


class ChooseScreen(Screen[None]):
    """Screen with the list of captures."""

    AUTO_FOCUS = "#chooser"

    def __init__(self, roots: Sequence[str], palette: Palette, base: str | None = None) -> None:
        super().__init__()
        self.roots = roots
        self.palette = palette
        self.base = base

    def compose(self) -> ComposeResult:
        """Yields headline, list and key bar."""
        yield HeadlineBar(self.palette, f"tpuprof  captures {below(self.roots)}", lines=2)
        yield CaptureList(self.roots, self.palette, self.base)
        yield KeyBar(self.palette, "chooser")

    def back(self) -> None:
        """Returns to the capture that was open."""
        self.post_message(CaptureRequest("back"))
