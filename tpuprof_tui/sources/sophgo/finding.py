"""Captures below a folder."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

_NAME = re.compile(r"cdm_profile_data_dev(\d+)(?:-(\d+))?")


def device_and_call(name: str) -> tuple[int, int | None] | None:
    """Device and call number (None without one) that a capture directory's name tells; None if named otherwise."""
    match = _NAME.fullmatch(name)
    return (int(match[1][:9]), int(match[2][:9]) if match[2] else None) if match else None


def find_captures(root: str | os.PathLike[str], *, depth: int = 3, seconds: float = 2.0) -> Iterator[Path]:
    """Capture directories at and below a folder, as they are found, level by level.

    Args:
        root: Where to look; itself a capture: the only one yielded.
        depth: How many levels below it are looked at.
        seconds: After this time the search ends; what was found stays.

    Yields:
        Directories; links to directories are not followed, unreadable ones are passed over.
    """
    end = time.monotonic() + seconds
    level = [Path(root)]
    for remaining in range(depth, -1, -1):
        below: list[Path] = []
        for folder in level:
            if time.monotonic() > end:
                return
            names, folders = _listed(folder)
            if any(belongs(name) for name in names):
                yield folder
            elif remaining:
                below.extend(folder / name for name in folders)
        level = below


def belongs(name: str) -> bool:
    """Whether a file of this name belongs to a capture."""
    return name == "global.profile" or (name.startswith(("cdmlib", "cdma")) and name.endswith(".profile"))


def _listed(folder: Path) -> tuple[list[str], list[str]]:
    """Names of the files and of the folders in a folder, in natural order."""
    names: list[str] = []
    folders: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if not entry.name.startswith("."):
                        folders.append(entry.name)
                else:
                    names.append(entry.name)
    except OSError:
        return [], []
    return names, sorted(folders, key=_natural)


def _natural(name: str) -> list[tuple[bool, int, str]]:
    parts = re.split(r"(\d+)", name)
    return [(not part.isdecimal(), int(part[:18]) if part.isdecimal() else 0, part) for part in parts]
