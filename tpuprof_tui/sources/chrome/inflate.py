"""Streaming gzip decompression: damage loses only the text behind it, memory is bounded by the size asked for."""

from __future__ import annotations

import zlib
from typing import Any, BinaryIO, Final, NamedTuple

#: Compressed bytes read at a time: damage loses at most the text of these.
_PIECE: Final = 4096
_GZIP_FORMAT: Final = 31
#: First two bytes of a gzip file.
GZIP: Final = b"\x1f\x8b"
#: Bytes of text between restart points.
_BETWEEN: Final = 4 << 20


def first_two(raw: BinaryIO) -> bytes:
    """The first two bytes of a file; rewinds it."""
    head = raw.read(2)
    raw.seek(0)
    return head


class Place(NamedTuple):
    """A restart point: state from which the text can be decompressed without reading what precedes it.

    Attributes:
        text: Offset in the text.
        raw: Offset in the compressed file.
        member: State of the decompressor.
        waiting: Compressed bytes that were read but not yet decompressed.
    """

    text: int
    raw: int
    member: Any
    waiting: bytes


class Inflated:
    """The text of a gzip file of one or more members.

    Attributes:
        damaged: Whether the data ended early or could not be decompressed; the text before that is sound.
        places: Restart points, ascending.
    """

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._member = zlib.decompressobj(_GZIP_FORMAT)
        self._waiting = b""
        self._begun = False
        self._given = 0
        self.damaged = False
        self.places = [Place(0, 0, self._member.copy(), b"")]

    @classmethod
    def from_place(cls, raw: BinaryIO, place: Place) -> Inflated:
        """A reader of the text from a restart point on."""
        raw.seek(place.raw)
        found = cls(raw)
        found._member, found._waiting, found._begun = place.member.copy(), place.waiting, bool(place.text)
        return found

    def read(self, count: int) -> bytes:
        """At most ``count`` bytes of text; none at the end or if the data are damaged."""
        parts: list[bytes] = []
        left = count
        while left and not self.damaged:
            data = self._waiting or self._raw.read(_PIECE)
            if not data:
                self.damaged = self._begun
                break
            try:
                part = self._member.decompress(data, left)
            except zlib.error:
                # zeros may follow the last member
                self.damaged = self._begun or bool(data.strip(b"\0"))
                break
            parts.append(part)
            left -= len(part)
            self._begun = not self._member.eof
            self._waiting = self._member.unconsumed_tail
            if self._member.eof:
                self._waiting = self._member.unused_data
                self._member = zlib.decompressobj(_GZIP_FORMAT)
        found = b"".join(parts)
        self._given += len(found)
        if self._given - self.places[-1].text >= _BETWEEN and not self.damaged:
            self.places.append(Place(self._given, self._raw.tell(), self._member.copy(), self._waiting))
        return found
