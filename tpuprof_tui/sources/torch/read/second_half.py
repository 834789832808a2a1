"""The second half of a large trace, read by another process: decoding lets no other thread decode beside it.

The text is cut at what looks like the border between two events. The first half is read as if the list of events ended
there: only where it does, as strict JSON, is the border one, and what the other process read goes on from it.
"""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.child_process import python_words
from tpuprof_tui.sources.chrome.chunks import Tally

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


class Half(Struct, frozen=True, eq=False):
    """What was read from a border on; codes and numbers are its own, offsets those of the file.

    Attributes:
        state: Size and time of change of the file.
        first, offset: Number of the first complete event of each piece of text, and where each begins.
        names, keys, texts: What is numbered, in order.
        list_end, passed: Where the list and the text end.
    """

    state: tuple[int, int]
    count: int
    first: list[int]
    offset: list[int]
    names: list[Any]
    keys: list[Any]
    texts: list[Any]
    events: dict[str, npt.NDArray[Any]]
    work: dict[str, npt.NDArray[Any]]
    memory: dict[str, npt.NDArray[Any]]
    series: dict[tuple[str, str], Any]
    process_names: dict[str, str]
    thread_names: dict[tuple[str, str], str]
    has_flows: bool
    seen: dict[str, Any]
    metadata: dict[str, Any]
    tallies: dict[str, Tally]
    truncated: bool
    list_end: int
    passed: int


def border_of(raw: BinaryIO, size: int) -> Border | None:
    """What looks like a border near the middle of a file; None of one too small, and where none is near."""
    if size < _WORTH_IT:
        return None
    place = size // 2 + _STARTING
    raw.seek(place)
    match = _BORDER.search(raw.read(_NEAR))
    raw.seek(0)
    return Border(place + match.start() + 1, place + match.end()) if match else None


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


@contextmanager
def second_half(path: Path, border: Border) -> Iterator[Callable[[], Half | None] | None]:
    """Another process reads a file from a border on: what gives its half, None where it failed; None: none was begun.

    The process ends with the block.
    """
    words = python_words(__name__, str(path.absolute()), str(border.begin))
    try:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        yield None
        return

    def read() -> Half | None:
        assert process.stdout is not None
        with suppress(OSError, EOFError, ValueError, pickle.UnpicklingError):
            found = pickle.load(process.stdout)
            return found if isinstance(found, Half) else None
        return None

    try:
        yield read
    finally:
        process.kill()
        process.communicate()


def _main(path: str, begin: str) -> None:
    from .reading import read_half

    pickle.dump(read_half(Path(path), int(begin)), sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    _main(*sys.argv[1:])
