"""Whether a capture on disk is still the one that was read."""

from __future__ import annotations

import os
from pathlib import Path

from .finding import belongs


def fingerprint(path: str | os.PathLike[str]) -> str:
    """A short text that changes when any file of a capture is added, removed, resized or rewritten.

    Args:
        path: Capture directory, or a file in it.

    Returns:
        Hexadecimal digits; empty where nothing can be seen.
    """
    directory = Path(path)
    if not os.path.isdir(directory):
        directory = directory.parent
    import hashlib  # not needed for opening a capture

    seen: list[tuple[str, int, int]] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if belongs(entry.name):
                    seen.append((entry.name, *_size_and_time(entry)))
    except OSError:
        return ""
    return hashlib.blake2b(repr(sorted(seen)).encode(), digest_size=12).hexdigest()


def _size_and_time(entry: os.DirEntry[str]) -> tuple[int, int]:
    """Size and time of the last change; -1 where a link leads nowhere."""
    try:
        state = entry.stat()
    except OSError:
        return -1, -1
    return state.st_size, state.st_mtime_ns
