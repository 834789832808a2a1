"""Many protobuf messages of one shape at once: numpy places the bytes that differ, all others are written once.

A message is a list of pieces: bytes that are the same in every message, and slots, one row of bytes per message. Within
one call a slot has one width for all messages, that of its largest value; shorter varints are padded with continuation
bytes, which every protobuf parser reads as the same number. So all lengths are known beforehand, also nested ones.
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
    """Bytes that differ from message to message.

    Attributes:
        data: uint8, one row per message; all rows are as long.
    """

    data: U8

    @property
    def width(self) -> int:
        """Bytes per message."""
        return int(self.data.shape[1])


Piece = bytes | Slot
Pieces = list[Piece]


def varint(value: int) -> bytes:
    """A number as a varint; negative ones as 64-bit two's complement."""
    value &= _MASK64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(field: int, kind: int) -> bytes:
    """What stands before a field's value."""
    return varint(field << 3 | kind)


def varint_field(field: int, values: int | Values) -> Pieces:
    """A varint field.

    Args:
        field: Its number.
        values: One value for all messages, or an integer array of one per message (int64 or uint64).
    """
    if isinstance(values, np.ndarray):
        if len(values) and bool((values == values[0]).all()):
            return [tag(field, _VARINT) + varint(int(values[0]))]
        return [tag(field, _VARINT), _varint_slot(values)]
    return [tag(field, _VARINT) + varint(values)]


def fixed64_field(field: int, values: Values) -> Pieces:
    """A fixed64 or double field, from an array of 8-byte values, one per message."""
    data = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return [tag(field, _FIXED64), Slot(data.view(np.uint8).reshape(len(values), 8))]


def message_field(field: int, pieces: Sequence[Piece]) -> Pieces:
    """A nested message."""
    return [tag(field, _LENGTH) + varint(size_of(pieces)), *pieces]


def size_of(pieces: Iterable[Piece]) -> int:
    """Bytes of one message."""
    return sum(len(piece) if isinstance(piece, bytes) else piece.width for piece in pieces)


def messages(pieces: Sequence[Piece], count: int) -> U8:
    """All messages; uint8 of shape (count, size of one)."""
    constant = b"".join(piece if isinstance(piece, bytes) else bytes(piece.width) for piece in pieces)
    table = np.empty((count, len(constant)), dtype=np.uint8)
    table[:] = np.frombuffer(constant, dtype=np.uint8)
    place = 0
    for piece in pieces:
        if isinstance(piece, Slot):
            table[:, place : place + piece.width] = piece.data
            place += piece.width
        else:
            place += len(piece)
    return table


def interleaved(parts: Sequence[tuple[npt.NDArray[np.intp] | None, U8]], count: int) -> npt.NDArray[np.uint8]:
    """Messages of several shapes in one order.

    Args:
        parts: For each shape the places of its messages among all (ascending; None: all of them), and the messages.
        count: Number of messages of all shapes.

    Returns:
        Their bytes, one after another.
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
    # a view of whole messages at every byte: one assignment copies all of a shape; the last views need room
    bytes_out = np.empty(total + widest, dtype=np.uint8)
    for places, table in parts:
        whole = np.dtype((np.void, table.shape[1]))
        anywhere: npt.NDArray[Any] = np.ndarray((total,), whole, bytes_out.data, 0, (1,))
        anywhere[starts[places]] = np.ascontiguousarray(table).view(whole).reshape(-1)
    return bytes_out[:total]


def _varint_slot(values: Values) -> Slot:
    """Varints of equal width."""
    unsigned = values.astype(np.uint64, copy=False) if values.dtype.kind == "u" else values.astype(np.int64).view("u8")
    width = max((int(unsigned.max()).bit_length() + 6) // 7, 1) if len(unsigned) else 1
    data = np.empty((len(unsigned), width), dtype=np.uint8)
    if width <= 4:
        unsigned = unsigned.astype(np.uint32)
    for place in range(width):
        # taking the low byte alone is a cast; the continuation bit replaces its highest bit
        column = (unsigned >> unsigned.dtype.type(7 * place)).astype(np.uint8)
        if place < width - 1:
            np.bitwise_or(column, 0x80, out=data[:, place])
        else:
            np.bitwise_and(column, 0x7F, out=data[:, place])
    return Slot(data)
