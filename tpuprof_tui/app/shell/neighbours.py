"""The captures that keys and tree switch between: those that were named, else those in the folder of the open one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

#: Folders beside the capture that are looked at.
MOST: Final = 2_000


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
