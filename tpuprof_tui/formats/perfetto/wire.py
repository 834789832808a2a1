"""Vectorized protobuf encoder: many messages of one shape at once.

A message is a list of pieces: constant bytes, which are the same in all messages, and slots with one row of bytes per
message. A slot has the width of its largest value; shorter varints are padded with continuation bytes, which every
protobuf parser accepts. So all lengths, also of nested messages, are known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

U8 = npt.NDArray[np.uint8]
Values = npt.NDArray[Any]

_VARINT: Final = 0
_FIXED64: Final = 1
_LENGTH: Final = 2
_MASK64: Final = (1 << 64) - 1


class Slot(Struct, frozen=True):
    """Bytes that differ between messages."""

    data: U8  #: uint8 of shape (messages, width)

    @property
    def width(self) -> int:
        """Bytes per message."""
        return int(self.data.shape[1])


Piece = bytes | Slot
Pieces = list[Piece]


def varint(value: int) -> bytes:
    """Encodes a number as a varint; negative ones as 64-bit two's complement."""
    value &= _MASK64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(field: int, kind: int) -> bytes:
    """Tag of a field: field number and wire type."""
    return varint(field << 3 | kind)


def varint_field(field: int, values: int | Values) -> Pieces:
    """Encodes a varint field.

    Args:
        field: Field number.
        values: One value for all messages, or an array (int64 or uint64) with one value per message.
    """
    if isinstance(values, np.ndarray):
        if len(values) and bool((values == values[0]).all()):
            return [tag(field, _VARINT) + varint(int(values[0]))]
        return [tag(field, _VARINT), _varint_slot(values)]
    return [tag(field, _VARINT) + varint(values)]


def fixed64_field(field: int, values: Values) -> Pieces:
    """Encodes a fixed64 or double field from an array of 8-byte values, one per message."""
    data = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return [tag(field, _FIXED64), Slot(data.view(np.uint8).reshape(len(values), 8))]


def message_field(field: int, pieces: Sequence[Piece]) -> Pieces:
    """Encodes a nested message."""
    return [tag(field, _LENGTH) + varint(size_of(pieces)), *pieces]


def size_of(pieces: Iterable[Piece]) -> int:
    """Size of one message, bytes."""
    return sum(len(piece) if isinstance(piece, bytes) else piece.width for piece in pieces)


def messages(pieces: Sequence[Piece], count: int) -> U8:
    """Assembles ``count`` messages; uint8 of shape (count, message size)."""
    constant = b"".join(piece if isinstance(piece, bytes) else bytes(piece.width) for piece in pieces)
    table = np.empty((count, len(constant)), dtype=np.uint8)
    table[:] = np.frombuffer(constant, dtype=np.uint8)
    offset = 0
    for piece in pieces:
        if isinstance(piece, Slot):
            table[:, offset : offset + piece.width] = piece.data
            offset += piece.width
        else:
            offset += len(piece)
    return table


def interleaved(parts: Sequence[tuple[npt.NDArray[np.intp] | None, U8]], count: int) -> npt.NDArray[np.uint8]:
    """Concatenates messages of several shapes in order.

    Args:
        parts: For each shape the ascending indices of its messages among all (None: all of them), and the messages.
        count: Number of messages of all shapes.

    Returns:
        Concatenated bytes of all messages.
    """
    if len(parts) == 1:
        return parts[0][1].reshape(-1)
    lengths = np.zeros(count, dtype=np.int64)
    for places, table in parts:
        lengths[places] = table.shape[1]
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if count else 0
    starts = ends - lengths
    widest = max(table.shape[1] for _, table in parts)
    # a view with one whole message at each byte offset, so that one assignment copies all messages of a shape; the
    # extra bytes keep the last views within the buffer
    bytes_out = np.empty(total + widest, dtype=np.uint8)
    for places, table in parts:
        message_type = np.dtype((np.void, table.shape[1]))
        anywhere: npt.NDArray[Any] = np.ndarray((total,), message_type, bytes_out.data, 0, (1,))
        anywhere[starts[places]] = np.ascontiguousarray(table).view(message_type).reshape(-1)
    return bytes_out[:total]


def _varint_slot(values: Values) -> Slot:
    """Encodes varints padded to equal width."""
    unsigned = values.astype(np.uint64, copy=False) if values.dtype.kind == "u" else values.astype(np.int64).view("u8")
    width = max((int(unsigned.max()).bit_length() + 6) // 7, 1) if len(unsigned) else 1
    data = np.empty((len(unsigned), width), dtype=np.uint8)
    if width <= 4:
        unsigned = unsigned.astype(np.uint32)
    for index in range(width):
        # the cast keeps the low byte; its highest bit is replaced by the continuation bit
        column = (unsigned >> unsigned.dtype.type(7 * index)).astype(np.uint8)
        if index < width - 1:
            np.bitwise_or(column, 0x80, out=data[:, index])
        else:
            np.bitwise_and(column, 0x7F, out=data[:, index])
    return Slot(data)
