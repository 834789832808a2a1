"""Captures below a folder and what is known of each. Readers are imported when called, in a thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.errors import TpuprofError
from tpuprof_tui.formats.units import percent_text, time_text

#: Larger captures are listed, but not read only to fill in a column.
READ_AT_MOST: Final = 256 << 20


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
