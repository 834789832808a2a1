"""Captures below a folder with what is known of each, and those that keys and tree switch between.

Readers are imported when called, in a thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.errors import TpuprofError
from tpuprof_tui.formats.units import percent_text, time_text

#: Larger captures are listed, but not read only to fill in a column.
READ_AT_MOST: Final = 256 << 20
#: Folders beside the capture that are looked at.
MOST: Final = 2_000


class CancelledError(Exception):
    """Reading was cancelled by a key."""


class Found(Struct, frozen=True):
    """A capture in the list; what is not known yet is empty.

    Attributes:
        path: The capture.
        device, call: From the directory's name.
        mode, total, busiest: From the capture itself.
        failed: It could not be read.
    """

    path: Path
    device: str = ""
    call: str = ""
    mode: str = ""
    total: str = ""
    busiest: str = ""
    failed: bool = False

    def shown(self, root: str) -> str:
        """Path below ``root``; its name where it is ``root`` itself; as it was named where ``root`` is empty."""
        if not root:
            return str(self.path)
        relative = os.path.relpath(self.path, root)
        return self.path.resolve().name if relative == os.curdir else relative


def found_captures(root: Path, depth: int, seconds: float) -> Iterator[Found]:
    """Captures at and below ``root``, as they are found; ``root`` itself where it is a file."""
    from tpuprof_tui.sources.catalog import Catalog

    catalog = Catalog()
    for path in [root] if os.path.isfile(root) else catalog.find(root, depth=depth, seconds=seconds):
        device, call = ("" if number is None else str(number) for number in catalog.device_and_call(path))
        yield Found(path, device, call)


def facts_of(found: Found, cancelled: Callable[[], bool]) -> Found:
    """The same with what reading the capture tells.

    Raises:
        CancelledError: ``cancelled`` became true while reading.
    """
    from tpuprof_tui.analysis.totals.figures import build_indexes, headline
    from tpuprof_tui.sources.catalog import Catalog, Progress, open_profile

    def watch(_: Progress) -> None:
        if cancelled():
            raise CancelledError

    try:
        if Catalog().size(found.path) > READ_AT_MOST:
            return replace(found, busiest="large")
        profile = open_profile(found.path, progress=watch)
        watch(Progress("", 0, 0))
        figures = headline(profile, build_indexes(profile))
    except TpuprofError:
        return replace(found, busiest="unreadable", failed=True)
    unit = figures.busiest
    busiest = f"{unit.name:>3} {percent_text(unit.utilisation, guessed=unit.guessed)}" if unit else ""
    return replace(found, mode=profile.recording.short[-5:], total=time_text(figures.total_ns), busiest=busiest)


def is_capture(path: Path) -> bool:
    """Whether ``path`` is a capture or a file of one; anything that is not a folder is left to the sources to judge."""
    from tpuprof_tui.sources.catalog import Catalog

    return not os.path.isdir(path) or Catalog().source_of(path) is not None


def holds_captures(path: Path) -> bool:
    """Whether there are captures below a folder."""
    from tpuprof_tui.sources.catalog import Catalog

    return next(iter(Catalog().find(path)), None) is not None


def capture_of(path: str) -> Path:
    """The capture that a path belongs to: its folder, or the file that is all of it."""
    from tpuprof_tui.sources.catalog import Catalog

    return Catalog().whole(path)


def neighbours(named: Sequence[str], path: str, beside: Iterable[str]) -> list[tuple[str, str]]:
    """Names and paths of the captures to switch between.

    Args:
        named: Paths of those that were named, where several were.
        path: The capture on the screen; empty: it is none on disk.
        beside: Names of the captures in its folder, itself included.

    Returns:
        Those that were named, in that order; else those of the folder, in the order people count.
    """
    from tpuprof_tui.sources.catalog import natural_order

    if named:
        names = [capture_of(each).name for each in named]
        return [(name if names.count(name) == 1 else each, each) for name, each in zip(names, named, strict=True)]
    if not path:
        return []
    folder = capture_of(path).parent
    return [(name, str(folder / name)) for name in sorted(beside, key=natural_order)]


def place_of(captures: Sequence[tuple[str, str]], path: str) -> int:
    """Which of some captures a path is; -1: none."""
    ways = {Path(path).absolute(), capture_of(path)}
    return next((number for number, (_, each) in enumerate(captures) if Path(each).absolute() in ways), -1)
