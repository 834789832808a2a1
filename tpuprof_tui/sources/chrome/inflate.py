"""Reading gzip so that damage costs only what comes after it, and so that no more is held than was asked for."""

from __future__ import annotations

import zlib
from typing import Any, BinaryIO, Final, NamedTuple

#: Compressed bytes that are taken at a time: damage costs the text of no more than these.
_PIECE: Final = 4096
_GZIP_FORMAT: Final = 31
#: How gzip begins.
GZIP: Final = b"\x1f\x8b"
#: Bytes of text between places from which reading can go on later.
_BETWEEN: Final = 4 << 20


def first_two(raw: BinaryIO) -> bytes:
    """The first two bytes of a file, which goes on from its beginning."""
    head = raw.read(2)
    raw.seek(0)
    return head


class Place(NamedTuple):
    """From where the text can be read without what comes before.

    Attributes:
        text: Bytes of text before it.
        raw: Compressed bytes before it.
        member: What decompresses from there on.
        waiting: Compressed bytes that were taken before it.
    """

    text: int
    raw: int
    member: Any
    waiting: bytes


class Inflated:
    """The text of a gzip file, in one or more members.

    Attributes:
        damaged: Whether the data ended early or could not be decompressed; the text before that is sound.
        places: From where the text can be read again, ascending.
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
        """The text from one of ``places`` on."""
        raw.seek(place.raw)
        found = cls(raw)
        found._member, found._waiting, found._begun = place.member.copy(), place.waiting, bool(place.text)
        return found

    def read(self, count: int) -> bytes:
        """At most ``count`` bytes of text; none at the end or where the data are damaged."""
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
