"""Streaming decompression: damage loses only the text behind it, memory is bounded by the size asked for."""

from __future__ import annotations

import os
import zlib
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.sources.source import BZIP2, GZIP, XZ, ZSTD

#: Compressed bytes read at a time: damage loses at most the text of these.
_READ_SIZE: Final = 4096
#: Raw deflate: checksums are compared here, so that a wrong one loses no text.
_DEFLATE: Final = -15
#: Longest header of a gzip member, and its flags.
_MOST_HEADER: Final = 1 << 17
_EXTRA, _NAME, _COMMENT, _HEADER_CHECKSUM = 4, 8, 16, 2
#: Bytes of text between restart points.
_RESTART_INTERVAL: Final = 4 << 20
#: A packed file is read up to this many bytes of text, plus this many times its own size.
ALWAYS_UNPACKED, MOST_UNPACKED = 64 << 20, 100
#: Most memory that decompressing xz may take.
_MOST_MEMORY: Final = 256 << 20


def text_of(path: Path, raw: BinaryIO) -> PackedText | BinaryIO:
    """A stream of the text of a file: decompressed if it is packed; of a Perfetto trace what decodes it.

    Raises:
        UnreadableError: The package that decompresses it is not installed.
    """
    head = unpacked(path, raw).read(1 << 12)
    raw.seek(0)
    if head.startswith(b"\n"):
        # few files are such traces
        from tpuprof_tui.sources.perfetto.packets import is_perfetto

        if is_perfetto(head):
            from tpuprof_tui.sources.perfetto.trace import PerfettoTrace

            return PerfettoTrace(raw, unpacked(path, raw))
    return unpacked(path, raw)


def unpacked(path: Path, raw: BinaryIO) -> PackedText | BinaryIO:
    """A stream of the bytes of a file, decompressed if its first bytes say that it is packed."""
    head = raw.read(6)
    raw.seek(0)
    if head.startswith(GZIP):
        return GzipText(raw)
    if head.startswith(ZSTD):
        return _ZstdText(path, raw)
    return _StreamText(raw, head) if head.startswith((BZIP2, XZ)) else raw


class PackedText(ABC):
    """The text of a packed file.

    Attributes:
        damaged: Whether the data ended early or could not be decompressed; the text before that is sound.
        wrong_checksum: Whether a checksum of the data is wrong; all the text was decompressed.
        too_long: Whether the text is longer than a sound file of this size holds; the rest is not read.
        is_text: Whether this is a text: the events of other formats are decoded to columns.
        ratio: Bytes of the text of a Chrome trace that a byte stands for, at most.
    """

    is_text = True
    ratio = 1

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self.damaged = self.wrong_checksum = self.too_long = False
        place = raw.tell()
        self._left = ALWAYS_UNPACKED + MOST_UNPACKED * raw.seek(0, os.SEEK_END)
        raw.seek(place)

    def read(self, count: int) -> bytes:
        """At most ``count`` bytes of text; none at the end, if the data are damaged or the text is too long."""
        self.too_long = self._left <= 0
        found = self._decompressed(min(count, self._left)) if self._left > 0 else b""
        self._left -= len(found)
        return found

    @abstractmethod
    def _decompressed(self, count: int) -> bytes:
        """At most ``count`` bytes of text."""

    @property
    def fault(self) -> tuple[str, str] | None:
        """What is wrong with the data, and what was read of them; None if they are sound."""
        if self.too_long:
            return f"The text is too long for such a file, over {ALWAYS_UNPACKED >> 20} MiB.", "The rest was not read."
        if self.damaged:
            return "The compressed data are damaged.", "What comes before is shown."
        if self.wrong_checksum:
            return "The compressed data are damaged: their checksum is wrong.", "All that could be unpacked is shown."
        return None


#: What the metadata of a converted trace say of its format (``format``).
FORMAT: Final = "Perfetto"


class RestartPoint(NamedTuple):
    """A restart point: state from which the text can be decompressed without reading what precedes it."""

    text_offset: int  #: Offset in the text
    raw_offset: int  #: Offset in the compressed file
    member: Any  #: State of the decompressor; None between members
    pending: bytes  #: Compressed bytes that were read but not yet decompressed


class GzipText(PackedText):
    """The text of a gzip file of one or more members.

    Attributes:
        restart_points: Restart points, ascending.
    """

    def __init__(self, raw: BinaryIO) -> None:
        super().__init__(raw)
        self._member: Any = None
        self._pending = b""
        self._offset = 0
        #: Of the text of the member so far.
        self._checksum = self._length = 0
        self.restart_points = [RestartPoint(0, 0, None, b"")]

    @classmethod
    def from_restart_point(cls, raw: BinaryIO, point: RestartPoint) -> GzipText:
        """A reader of the text from a restart point on."""
        raw.seek(point.raw_offset)
        found = cls(raw)
        found._member, found._pending = point.member and point.member.copy(), point.pending
        return found

    def _decompressed(self, count: int) -> bytes:
        parts = []
        left = count
        while left and not self.damaged:
            if self._member is None and not self._begin_member():
                break
            data = self._pending or self._raw.read(_READ_SIZE)
            self.damaged = not data
            try:
                part = self._member.decompress(data, left)
            except zlib.error:
                self.damaged = True
                break
            parts.append(part)
            left -= len(part)
            self._checksum, self._length = zlib.crc32(part, self._checksum), self._length + len(part)
            self._pending = self._member.unconsumed_tail
            if self._member.eof:
                self._pending = self._member.unused_data
                self._end_member()
        found = b"".join(parts)
        self._offset += len(found)
        if self._offset - self.restart_points[-1].text_offset >= _RESTART_INTERVAL and not self.damaged:
            member = self._member and self._member.copy()
            self.restart_points.append(RestartPoint(self._offset, self._raw.tell(), member, self._pending))
        return found

    def _begin_member(self) -> bool:
        """Reads the header of the next member; False if there is none."""
        while (
            (length := _header_length(self._pending)) == 0 and len(self._pending) < _MOST_HEADER and self._read_more()
        ):
            pass
        if length <= 0:
            # zeros may follow the last member
            self.damaged = bool(self._pending.strip(b"\0"))
            return False
        self._pending = self._pending[length:]
        self._member = zlib.decompressobj(_DEFLATE)
        self._checksum = self._length = 0
        return True

    def _end_member(self) -> None:
        """Reads the checksum and the length behind a member."""
        self._member = None
        while len(self._pending) < 8 and self._read_more():
            pass
        stated = [int.from_bytes(self._pending[begin : begin + 4], "little") for begin in (0, 4)]
        if len(self._pending) < 8 or stated != [self._checksum, self._length & 0xFFFFFFFF]:
            self.wrong_checksum = True
        self._pending = self._pending[8:]

    def _read_more(self) -> bool:
        data = self._raw.read(_READ_SIZE)
        self._pending += data
        return bool(data)


def _header_length(data: bytes) -> int:
    """Length of the header of a gzip member; 0 if it is incomplete, -1 if it is none."""
    if not data[:3].startswith((GZIP + b"\x08")[: len(data[:3])]):
        return -1
    if len(data) < 10:
        return 0
    flags, end = data[3], 10
    if flags & _EXTRA:
        end += 2 + int.from_bytes(data[end : end + 2], "little")
    for _ in range(bool(flags & _NAME) + bool(flags & _COMMENT)):
        zero = data.find(b"\0", end)
        if zero < 0:
            return 0
        end = zero + 1
    end += 2 * bool(flags & _HEADER_CHECKSUM)
    return end if end <= len(data) else 0


class _StreamText(PackedText):
    """The text of a bzip2 or xz file of one or more streams."""

    def __init__(self, raw: BinaryIO, head: bytes) -> None:
        super().__init__(raw)
        self._is_bzip2 = head.startswith(BZIP2)
        self._stream: Any = self._new_stream()
        self._pending = b""

    def _new_stream(self) -> Any:
        # rarely needed, and slow to import
        if self._is_bzip2:
            import bz2

            return bz2.BZ2Decompressor()
        import lzma

        return lzma.LZMADecompressor(memlimit=_MOST_MEMORY)

    def _decompressed(self, count: int) -> bytes:
        found = b""
        while not found and not self.damaged:
            if self._stream.eof:
                self._pending = (self._stream.unused_data or self._raw.read(_READ_SIZE)).lstrip(b"\0")
                if not self._pending:
                    break
                self._stream = self._new_stream()
            elif self._stream.needs_input and not self._pending:
                self._pending = self._raw.read(_READ_SIZE)
                self.damaged = not self._pending
            try:
                found = self._stream.decompress(self._pending, count)
            except Exception:  # lzma.LZMAError is no OSError, and lzma is imported only where it is needed
                self.damaged = True
            self._pending = b""
        return found


class _ZstdText(PackedText):
    """The text of a zstd file.

    Raises:
        UnreadableError: The package zstandard is not installed.
    """

    def __init__(self, path: Path, raw: BinaryIO) -> None:
        super().__init__(raw)
        try:
            import zstandard
        except ImportError:
            raise UnreadableError(
                f"{path} is packed with zstd, which needs the package zstandard.",
                "Install it (pip install zstandard), or unpack the file (zstd -d).",
            ) from None
        self._error = zstandard.ZstdError
        self._stream = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)

    def _decompressed(self, count: int) -> bytes:
        try:
            found: bytes = self._stream.read(count)
        except self._error:
            self.damaged, found = True, b""
        return found
