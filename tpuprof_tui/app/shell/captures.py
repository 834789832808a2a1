"""Finds captures below a folder with the facts of each, and the neighbours that keys and tree switch to.

Readers are imported inside the functions, in the worker thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.errors import TpuprofError
from tpuprof_tui.formats.units import percent_text, time_text
from tpuprof_tui.sources.source import RECORDINGS, SessionEntry

if TYPE_CHECKING:
    from tpuprof_tui.views.sentence import Sentence

#: Largest capture, in bytes, that is read for the facts in the list.
MAX_READ_BYTES: Final = 256 << 20
#: Most folders next to the capture that are searched.
MAX_NEIGHBOURS: Final = 2_000


class CancelledError(Exception):
    """Reading was cancelled by the user."""


class CaptureEntry(Struct, frozen=True):
    """A capture in the list; facts not known yet are empty.

    Attributes:
        path: The capture.
        device, call: Numbers from the directory's name.
        mode, total, busiest: Facts read from the capture.
        told: The answer in one sentence, read from the capture; None: not known.
        failed: Whether it could not be read.
        session: For a session of a folder of recordings: what the list says of it; else None.
    """

    path: Path
    device: str = ""
    call: str = ""
    mode: str = ""
    total: str = ""
    busiest: str = ""
    failed: bool = False
    told: Sentence | None = None
    session: SessionEntry | None = None

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
    from tpuprof_tui.sources.catalog import Catalog

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
    from tpuprof_tui.sources.catalog import Catalog, Progress, open_profile
    from tpuprof_tui.views.report import total_ns
    from tpuprof_tui.views.sentence import sentence

    def watch(_: Progress) -> None:
        if cancelled():
            raise CancelledError

    try:
        size = Catalog().size(entry.path) if entry.session is None else entry.session.size
        if size > MAX_READ_BYTES:
            return replace(entry, busiest="large")
        chosen: dict[str, Any] = {} if entry.session is None else {RECORDINGS.name: entry.recordings}
        profile = open_profile(entry.path, progress=watch, **chosen)
        watch(Progress("", 0, 0))
        query = query_of(profile)
        figures = query.headline
        told = sentence(query)
    except TpuprofError:
        return replace(entry, busiest="unreadable", failed=True)
    unit = figures.busiest
    busiest = f"{unit.name:>3} {percent_text(unit.utilisation, guessed=unit.guessed)}" if unit else ""
    return replace(entry, mode=profile.recording.short, total=time_text(total_ns(query.session)), busiest=busiest,
                   told=told)  # fmt: skip


def is_capture(path: Path) -> bool:
    """Whether ``path`` is a capture directory, or no directory at all: sources check files when they are opened."""
    from tpuprof_tui.sources.catalog import Catalog

    return not os.path.isdir(path) or Catalog().source_of(path) is not None


def holds_captures(path: Path) -> bool:
    """Whether there is a capture below a folder."""
    from tpuprof_tui.sources.catalog import Catalog

    return next(iter(Catalog().find(path)), None) is not None


def capture_of(path: str) -> Path:
    """The capture that a path belongs to: its folder, or the file itself if that is the whole capture."""
    from tpuprof_tui.sources.catalog import Catalog

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
    from tpuprof_tui.sources.catalog import natural_order

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
