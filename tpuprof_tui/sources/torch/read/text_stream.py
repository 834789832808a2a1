"""What reading a file requires: enough memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, Final

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.formats.units import bytes_text
from tpuprof_tui.sources.chrome.collector import opened
from tpuprof_tui.sources.chrome.inflate import GZIP, first_two, text_of
from tpuprof_tui.sources.chrome.sections import memory_bytes

#: Memory needed per byte of text, measured on traces of 34 to 99 MB, with a margin.
_MEMORY_PER_BYTE: Final = 0.7
#: Largest expected ratio of a compressed trace's text to its file, where the file does not state the size.
_MOST_RATIO: Final = 25
#: Size of text from which on memory is checked, in bytes.
_LARGE: Final = 256 << 20


def too_large(path: Path) -> int:
    """Size of a file's text in bytes if there is not enough memory to read it; else 0."""
    with opened(path) as raw:
        size = os.fstat(raw.fileno()).st_size
        text_size = size if text_of(path, raw) is raw else _text_size(raw, size)
    return text_size if text_size >= _LARGE and fitting_share(text_size) < 1 else 0


def fitting_share(text_size: int) -> float:
    """Share of the events of a text that fits into memory; 1 if the memory size is unknown."""
    memory = memory_bytes()
    return memory / (text_size * _MEMORY_PER_BYTE) if memory else 1.0


def refusal(path: Path, text_size: int) -> UnreadableError:
    """The error for a file whose text does not fit into memory."""
    return UnreadableError(
        f"{path} holds {bytes_text(text_size)} of text: reading it takes about "
        f"{bytes_text(int(text_size * _MEMORY_PER_BYTE))} of memory, and there are {bytes_text(memory_bytes())}.",
        "report, instructions and export read a part of it, with --range 1s..2s or --step N; or record fewer steps "
        "(torch.profiler.schedule).",
    )


def _text_size(raw: BinaryIO, size: int) -> int:
    """Bytes of text in a packed file, at most: that of gzip states the size modulo 4 GiB; bounded by a likely ratio."""
    if first_two(raw) != GZIP:
        return size * _MOST_RATIO
    if size < 18:
        return 0
    raw.seek(-4, os.SEEK_END)
    text_size = int.from_bytes(raw.read(4), "little")
    raw.seek(0)
    while text_size < size:
        text_size += 1 << 32
    return min(text_size, size * _MOST_RATIO)
