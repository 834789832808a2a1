"""The second half of a large trace, read by another process: decoding lets no other thread decode beside it.

The text is cut at what looks like the border between two events. The first half is read as if the list of events ended
there: only where it does, as strict JSON, is the border one, and what the other process read goes on from it.
"""

from __future__ import annotations

import gc
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Final

from msgspec import Struct

from tpuprof_tui.child_process import python_words

from .chunks import EventChunks

#: Bytes of text from which on another process is worth it, and what is read until it has begun.
_WORTH_IT: Final = 40 << 20
_STARTING: Final = 8 << 20
#: Bytes in which a border is looked for.
_NEAR: Final = 1 << 20
_BORDER: Final = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|ts|pid)"\s*:)')


class Border(Struct, frozen=True):
    """Where an event ends and where the next one begins, bytes."""

    end: int
    begin: int


def border_of(raw: BinaryIO, size: int) -> Border | None:
    """What looks like a border near the middle of a file; None of one too small, and where none is near."""
    if size < _WORTH_IT:
        return None
    place = size // 2 + _STARTING
    raw.seek(place)
    match = _BORDER.search(raw.read(_NEAR))
    raw.seek(0)
    return Border(place + match.start() + 1, place + match.end()) if match else None


def state_of(file: int) -> tuple[int, int]:
    """Size and time of the last change of an open file."""
    found = os.fstat(file)
    return found.st_size, found.st_mtime_ns


def memory_bytes() -> int:
    """Memory of the machine, or what the group of processes may take of it; 0 where it is not known."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 0
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        limit = ""
    return min(found, int(limit)) if limit.isdecimal() else found


class FirstHalf:
    """The text before a border, as if the list of events ended there."""

    def __init__(self, raw: BinaryIO, border: Border) -> None:
        self._raw, self._left, self._closing = raw, border.end, b"]"

    def read(self, count: int) -> bytes:
        """At most so many bytes; none at the end."""
        data = self._raw.read(min(count, self._left))
        self._left -= len(data)
        if not data:
            data, self._closing = self._closing, b""
        return data


def ends_at(border: Border, chunks: EventChunks[Any]) -> bool:
    """Whether the first half was read as a list that ends at the border, as if it were the list's end."""
    # the bracket was put there
    return chunks.found and not chunks.truncated and chunks.piece is not None and chunks.list_end == border.end + 1


@contextmanager
def second_half(path: Path, border: Border, reader: str) -> Iterator[Callable[[], Any] | None]:
    """Another process reads a file from a border on: what gives its half, None where it failed; None: none was begun.

    The process ends with the block. ``reader``: the module whose ``read_half`` reads it.
    """
    words = python_words(__name__, reader, str(path.absolute()), str(border.begin))
    try:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        yield None
        return

    def read() -> Any:
        assert process.stdout is not None
        with suppress(OSError, EOFError, ValueError, pickle.UnpicklingError):
            return pickle.load(process.stdout)
        return None

    try:
        yield read
    finally:
        process.kill()
        process.communicate()


def _main(reader: str, path: str, begin: str) -> None:
    # the many objects of a piece of text are no cycles and go with it
    gc.disable()
    half = import_module(reader).read_half(Path(path), int(begin))
    pickle.dump(half, sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    _main(*sys.argv[1:])
