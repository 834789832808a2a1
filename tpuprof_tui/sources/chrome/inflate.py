"""Reading gzip so that damage costs only what comes after it, and so that no more is held than was asked for."""

from __future__ import annotations

import zlib
from typing import BinaryIO, Final

#: Compressed bytes that are taken at a time: damage costs the text of no more than these.
_PIECE: Final = 4096
_GZIP_FORMAT: Final = 31


class Inflated:
    """The text of a gzip file, in one or more members.

    Attributes:
        damaged: Whether the data ended early or could not be decompressed; the text before that is sound.
    """

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._member = zlib.decompressobj(_GZIP_FORMAT)
        self._waiting = b""
        self._begun = False
        self.damaged = False

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
        return b"".join(parts)
