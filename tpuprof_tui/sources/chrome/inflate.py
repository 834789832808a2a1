"""Streaming gzip decompression: damage loses only the text behind it, memory is bounded by the size asked for."""

from __future__ import annotations

import zlib
from typing import Any, BinaryIO, Final, NamedTuple

#: Compressed bytes read at a time: damage loses at most the text of these.
_READ_SIZE: Final = 4096
_GZIP_FORMAT: Final = 31
#: First two bytes of a gzip file.
GZIP: Final = b"\x1f\x8b"
#: Bytes of text between restart points.
_RESTART_INTERVAL: Final = 4 << 20


def first_two(raw: BinaryIO) -> bytes:
    """The first two bytes of a file; rewinds it."""
    head = raw.read(2)
    raw.seek(0)
    return head


class RestartPoint(NamedTuple):
    """A restart point: state from which the text can be decompressed without reading what precedes it.

    Attributes:
        text_offset: Offset in the text.
        raw_offset: Offset in the compressed file.
        member: State of the decompressor.
        pending: Compressed bytes that were read but not yet decompressed.
    """

    text_offset: int
    raw_offset: int
    member: Any
    pending: bytes


class GzipText:
    """The text of a gzip file of one or more members.

    Attributes:
        damaged: Whether the data ended early or could not be decompressed; the text before that is sound.
        restart_points: Restart points, ascending.
    """

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._member = zlib.decompressobj(_GZIP_FORMAT)
        self._pending = b""
        self._in_member = False
        self._offset = 0
        self.damaged = False
        self.restart_points = [RestartPoint(0, 0, self._member.copy(), b"")]

    @classmethod
    def from_restart_point(cls, raw: BinaryIO, point: RestartPoint) -> GzipText:
        """A reader of the text from a restart point on."""
        raw.seek(point.raw_offset)
        found = cls(raw)
        found._member, found._pending, found._in_member = point.member.copy(), point.pending, bool(point.text_offset)
        return found

    def read(self, count: int) -> bytes:
        """At most ``count`` bytes of text; none at the end or if the data are damaged."""
        parts: list[bytes] = []
        left = count
        while left and not self.damaged:
            data = self._pending or self._raw.read(_READ_SIZE)
            if not data:
                self.damaged = self._in_member
                break
            try:
                part = self._member.decompress(data, left)
            except zlib.error:
                # zeros may follow the last member
                self.damaged = self._in_member or bool(data.strip(b"\0"))
                break
            parts.append(part)
            left -= len(part)
            self._in_member = not self._member.eof
            self._pending = self._member.unconsumed_tail
            if self._member.eof:
                self._pending = self._member.unused_data
                self._member = zlib.decompressobj(_GZIP_FORMAT)
        found = b"".join(parts)
        self._offset += len(found)
        if self._offset - self.restart_points[-1].text_offset >= _RESTART_INTERVAL and not self.damaged:
            self.restart_points.append(RestartPoint(self._offset, self._raw.tell(), self._member.copy(), self._pending))
        return found
