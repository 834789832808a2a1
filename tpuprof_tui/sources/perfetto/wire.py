"""Decodes protobuf messages: their fields, one after the other.

A loop over the bytes takes less time than the classes of the package protobuf, whose values are fetched one by one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

_MASK: Final = (1 << 64) - 1
#: A field of a message: its number, and its value: bytes, or an unsigned number.
Field = tuple[int, Any]


class DamagedError(ValueError):
    """Bytes that are no message."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The varint at an offset, as uint64, and the offset behind it.

    Raises:
        IndexError: The data end within it.
        DamagedError: It has more than ten bytes.
    """
    value = shift = 0
    while (byte := data[at]) > 127:
        value |= (byte & 127) << shift
        shift += 7
        at += 1
        if shift > 63:
            raise DamagedError
    return (value | byte << shift) & _MASK, at + 1


def fields(data: bytes, *, cut: bool = False) -> list[Field]:
    """The fields of a message; ``cut``: of the begin of one, those that are there.

    Raises:
        DamagedError: It is none.
    """
    found: list[Field] = []
    at, end = 0, len(data)
    try:
        while at < end:
            tag = data[at]
            at += 1
            if tag > 127:
                tag, at = varint(data, at - 1)
            wire = tag & 7
            if wire == 1 or wire == 5:
                size = 8 if wire == 1 else 4
                value: Any = int.from_bytes(data[at : at + size], "little")
                at += size
            elif wire == 0 or wire == 2:
                value = data[at]
                at += 1
                if value > 127:
                    byte = data[at]
                    at += 1
                    # most have two bytes
                    value = value & 127 | byte << 7
                    if byte > 127:
                        value, at = varint(data, at - 2)
                if wire == 2:
                    at += value
                    value = data[at - value : at]
            else:
                raise DamagedError
            found.append((tag >> 3, value))
    except IndexError:
        if not cut:
            raise DamagedError from None
    else:
        if at > end and not cut:
            raise DamagedError
    return found


def last(data: Any) -> dict[int, Any]:
    """The fields of a message by number, of repeated ones the last."""
    return dict(fields(data)) if isinstance(data, bytes) else {}


def signed(value: Any) -> int:
    """The signed number that a varint or fixed64 holds; 0 for bytes."""
    return 0 if isinstance(value, bytes) else value - (1 << 64) if value >> 63 else int(value)


def double(value: Any) -> float:
    """The double that a fixed64 holds; NaN for bytes."""
    return float("nan") if isinstance(value, bytes) else float(struct.unpack("<d", value.to_bytes(8, "little"))[0])


def numbers(value: Any, *, fixed: bool = False) -> Sequence[int]:
    """Numbers of a repeated field: one, or several in a row as varints or fixed64."""
    if not isinstance(value, bytes):
        return (value,)
    if fixed:
        return struct.unpack(f"<{len(value) // 8}Q", value[: len(value) // 8 * 8])
    found, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        found.append(number)
    return found


def text(value: Any) -> str:
    """The text of a field."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
