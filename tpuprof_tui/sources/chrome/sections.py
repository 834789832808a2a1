"""Large traces are read in sections, all but the first by other processes: decoding holds the interpreter's lock.

The text is cut at what looks like the border between two events. Each section but the last is read as if the list of
events ended there: only where it does, as strict JSON, is the border one; else one process reads the whole file.
"""

from __future__ import annotations

import gc
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Final

from msgspec import Struct

from tpuprof_tui.child_process import python_words

from .chunks import EventChunks

#: Bytes of the smallest section that is worth a process, and what the first process reads until the others have begun.
_SMALLEST: Final = 20 << 20
_STARTING: Final = 16 << 20
#: More processes than this gain little: what they read is put together by one.
_MOST: Final = 8
#: Bytes in which a border is looked for.
_NEAR: Final = 1 << 20
_BORDER: Final = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|ts|pid)"\s*:)')


class Section(Struct, frozen=True):
    """Bytes of a file from the beginning of an event to the end of another.

    Attributes:
        begin: Of its first event; 0: the beginning of the file.
        end: Behind its last event; -1: the end of the file.
    """

    begin: int
    end: int


def section_count(size: int, processes: int) -> int:
    """Into how many sections a file of so many bytes is cut for at most so many processes; below 2: it is not."""
    return min(processes, _MOST, size // _SMALLEST)


def sections_of(raw: BinaryIO, size: int, processes: int) -> list[Section]:
    """Sections of a file for at most so many processes, in order; a single one of small files."""
    count = section_count(size, processes)
    borders = set()
    for number in range(1, count):
        place = _STARTING + number * (size - _STARTING) // count
        raw.seek(place)
        if match := _BORDER.search(raw.read(_NEAR)):
            borders.add((place + match.start() + 1, place + match.end()))
    raw.seek(0)
    ends, begins = zip(*sorted(borders), strict=True) if borders else ((), ())
    return [Section(begin, end) for begin, end in zip((0, *begins), (*ends, -1), strict=True)]


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


class SectionText:
    """The text of a section, as if the list of events ended behind it."""

    def __init__(self, raw: BinaryIO, section: Section) -> None:
        raw.seek(section.begin)
        self._raw, self._left, self._closing = raw, section.end - section.begin, b"]"
        self.read: Callable[[int], bytes] = raw.read if section.end < 0 else self._read

    def _read(self, count: int) -> bytes:
        data = self._raw.read(min(count, self._left))
        self._left -= len(data)
        if not data:
            data, self._closing = self._closing, b""
        return data


def was_section(section: Section, chunks: EventChunks[Any]) -> bool:
    """Whether the events that were read of it are a list that ends with the section."""
    # the bracket was put there
    return section.end < 0 or (
        chunks.found and not chunks.truncated and chunks.piece is not None and chunks.list_end == section.end + 1
    )


@contextmanager
def other_processes(path: Path, sections: Sequence[Section], reader: str) -> Iterator[list[Callable[[], Any]]]:
    """Processes that each read one section of a file; they end with the block.

    Args:
        path: The file.
        sections: Those of the file.
        reader: Name of the module whose ``read_section`` reads one.

    Returns:
        In the order of the sections, functions that wait for what was read; None where that failed.
    """
    with ExitStack() as stack:
        yield [stack.enter_context(_process(path, section, reader)) for section in sections]


@contextmanager
def _process(path: Path, section: Section, reader: str) -> Iterator[Callable[[], Any]]:
    words = python_words(__name__, reader, str(path.absolute()), str(section.begin), str(section.end))
    try:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        yield lambda: None
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


def _main(reader: str, path: str, begin: str, end: str) -> None:
    # the many objects of a chunk are in no cycles
    gc.disable()
    found = import_module(reader).read_section(Path(path), Section(int(begin), int(end)))
    pickle.dump(found, sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    _main(*sys.argv[1:])
