"""Decodes protobuf messages: the fields of one, or those of many messages at once as arrays.

Of many messages first the first fields of all are decoded, then the second ones, and so on: numpy's calls are as many
as the longest message has fields. Where few messages are left a loop over their bytes takes less time.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
_MASK: Final = (1 << 64) - 1
#: Bytes behind the last message that are looked at; fewer messages than these are decoded one by one; larger numbers of
#: fields are not told apart.
_BEHIND, _FEW, _LARGE = 32, 96, 32767
#: Bits of the bytes of a varint, and what moves their groups of seven bits together.
_ENDS, _SEVENS, _ONES = (np.uint64(int(each * 8, 16)) for each in ("80", "7f", "01"))
_STEPS: Final = tuple(
    (np.uint64(int(low, 16)), np.uint64(int(high, 16)), np.uint64(shift))
    for low, high, shift in (("007f" * 4, "7f00" * 4, 1), ("00003fff" * 2, "3fff0000" * 2, 2),
                             ("000000000fffffff", "0fffffff00000000", 4))
)  # fmt: skip
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


def _walked(data: bytes, at: int, end: int, found: list[tuple[int, int, int]]) -> bool:
    """Appends number, value and offset of the fields of a message as `Fields` has them; whether it is one."""
    try:
        while at < end:
            tag, at = varint(data, at)
            wire, place = tag & 7, -1
            if wire == 1 or wire == 5:
                size = 8 if wire == 1 else 4
                value = int.from_bytes(data[at : at + size], "little")
                at += size
            elif wire == 0 or wire == 2:
                value, at = varint(data, at)
                if wire == 2:
                    place = at
                    at += value
            else:
                return False
            if at > end:
                return False
            found.append((tag >> 3, value, place))
    except (IndexError, DamagedError):
        return False
    return True


def fields(data: bytes, *, cut: bool = False) -> list[Field]:
    """The fields of a message; ``cut``: of the begin of one, those that are there.

    Raises:
        DamagedError: It is none.
    """
    found: list[tuple[int, int, int]] = []
    if not _walked(data, 0, len(data), found) and not cut:
        raise DamagedError
    return [(number, value if at < 0 else data[at : at + value]) for number, value, at in found]


class Fields:
    """Fields of many messages.

    Attributes:
        owner: Number of the message.
        number: Number of the field.
        value: A number, as int64; of bytes their length.
        at: Offset of bytes; -1: a number.
    """

    def __init__(self, owner: I64, number: I64, value: I64, at: I64) -> None:
        self.owner, self.number, self.value, self.at = owner, number, value, at

    def __getitem__(self, rows: Any) -> Fields:
        return Fields(self.owner[rows], self.number[rows], self.value[rows], self.at[rows])

    @cached_property
    def _by_number(self) -> tuple[I64, npt.NDArray[np.int16]]:
        number = np.minimum(self.number, _LARGE).astype(np.int16)
        order = np.argsort(number, kind="stable")
        return order, number[order]

    def of(self, *numbers: int) -> Fields:
        """Those of some numbers (below 32767), by message, those of one in their order."""
        order, ordered = self._by_number
        low, high = (np.searchsorted(ordered, np.array(numbers, np.int16), side) for side in ("left", "right"))
        rows = np.concatenate([order[begin:end] for begin, end in zip(low, high, strict=True)])
        if len(numbers) > 1:
            rows = np.sort(rows)
        owner = self.owner[rows]
        if (owner[1:] < owner[:-1]).any():
            rows = rows[np.argsort(owner, kind="stable")]
        return self[rows]

    def last(self, number: int, otherwise: Any) -> I64:
        """The last number of a field of each message; ``otherwise``: an array of what others have."""
        found = self.of(number)
        values: I64 = otherwise.copy()
        values[found.owner] = found.value
        return values

    def of_other_types(self, numbers: Sequence[int], texts: Sequence[int]) -> I64:
        """Owners of fields whose values are bytes, or numbers, but should be numbers, or bytes."""
        isin = np.zeros(1 << 7, np.int8)
        isin[list(numbers)], isin[list(texts)] = 1, 2
        kind = isin[np.minimum(self.number, 127)]
        wrong: I64 = self.owner[((kind == 1) & (self.at >= 0)) | ((kind == 2) & (self.at < 0))]
        return wrong


class Data:
    """Bytes that hold messages."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw + bytes(_BEHIND)
        self._size = len(raw)
        self._bytes = np.frombuffer(self.raw, np.uint8)
        #: Eight bytes at every offset.
        self._words: U64 = np.ndarray((len(self.raw) - 7,), "<u8", self.raw, strides=(1,))

    def texts(self, fields: Fields) -> list[bytes]:
        """The bytes of fields."""
        raw = self.raw
        return [raw[at:end] for at, end in zip(fields.at.tolist(), (fields.at + fields.value).tolist(), strict=True)]

    def numbers(self, fields: Fields, fixed: Sequence[int] = ()) -> Fields:
        """Numbers of repeated fields one by one, also of those in a row; ``fixed``: fields that are fixed64."""
        several, single = np.flatnonzero(fields.at >= 0), np.flatnonzero(fields.at < 0)
        texts = zip(self.texts(fields[several]), fields.number[several].tolist(), strict=True)
        rows = [numbers(each, fixed=number in fixed) for each, number in texts]
        value = np.array([signed(each) for row in rows for each in row], np.int64)
        place = np.concatenate([single, np.repeat(several, np.array(list(map(len, rows)), np.int64))])
        return Fields(
            fields.owner[place], fields.number[place], np.append(fields.value[single], value), np.full(len(place), -1)
        )

    def equal(self, fields: Fields, wanted: bytes) -> I64:
        """Places of the fields whose bytes are some text."""
        rows = np.flatnonzero((fields.value == len(wanted)) & (fields.at >= 0))
        for begin in range(0, len(wanted), 8):
            part = wanted[begin : begin + 8]
            word = self._words[fields.at[rows] + begin] & np.uint64((1 << 8 * len(part)) - 1)
            rows = rows[word == np.uint64(int.from_bytes(part, "little"))]
        return rows

    def fields(self, begin: I64, end: I64) -> tuple[Fields, Mask]:
        """The fields of messages, and whether each is damaged: it has some of its fields then."""
        damaged = np.zeros(len(begin), np.bool_)
        who, at, parts = np.flatnonzero(begin < end), begin, [np.zeros((4, 0), np.int64)]
        at, end = begin[who], end[who]
        while len(who) > _FEW:
            number, value, place, behind = self._next(at, end)
            sound = behind >= 0
            if not sound.all():
                damaged[who[~sound]] = True
                who, number, value, place, behind, end = (
                    each[sound] for each in (who, number, value, place, behind, end)
                )
            parts.append(np.stack((who, number, value, place)))
            left = np.flatnonzero(behind < end)
            if len(left) < len(who):
                who, behind, end = who[left], behind[left], end[left]
            at = behind
        rest: list[tuple[int, int, int, int]] = []
        for owner, first, last_ in zip(who.tolist(), at.tolist(), end.tolist(), strict=True):
            found: list[tuple[int, int, int]] = []
            damaged[owner] = not _walked(self.raw, first, last_, found)
            rest += [(owner, number, signed(value), place) for number, value, place in found]
        parts.append(np.array(rest, np.int64).reshape(-1, 4).T)
        joined = np.concatenate(parts, axis=1)
        return Fields(*joined), damaged

    def _next(self, at: I64, end: I64) -> tuple[I64, I64, I64, I64]:
        """Number, value and offset of the field at each offset, and the offset behind it; -1: it is damaged."""
        tag, at = self._varints(at)
        at = np.minimum(at, self._size + 8)
        wire = tag & 7
        value, behind = self._varints(at)
        is_bytes = wire == 2
        place = np.where(is_bytes, behind, -1)
        wrong = is_bytes & ((value < 0) | (value > self._size))
        behind = behind + np.where(is_bytes & ~wrong, value, 0)
        fixed = np.flatnonzero((wire == 1) | (wire == 5))
        if len(fixed):
            short = wire[fixed] == 5
            word = self._words[at[fixed]]
            value[fixed] = np.where(short, word & np.uint64(0xFFFFFFFF), word).view(np.int64)
            behind[fixed] = at[fixed] + np.where(short, 4, 8)
        behind[wrong | (behind > end) | (wire == 3) | (wire == 4) | (wire > 5)] = -1
        return (tag >> 3) & 0x1FFFFFFFFFFFFFFF, value, place, behind

    def _varints(self, at: I64) -> tuple[I64, I64]:
        """The varints at offsets, and the offsets behind them; those of too long ones are far behind the data."""
        byte = self._bytes[at]
        value, behind = byte.astype(np.uint64), at + 1
        several = np.flatnonzero(byte > 127)
        if len(several):
            first = at[several]
            word = self._words[first]
            ends = ~word & _ENDS
            # all bits up to the end; where there is none in eight bytes these are all
            inside = ends ^ (ends - np.uint64(1))
            size = (((inside & _ONES) * _ONES) >> np.uint64(56)).view(np.int64)
            word &= inside & _SEVENS
            for low, high, shift in _STEPS:
                word = word & low | (word & high) >> shift
            long = np.flatnonzero(ends == 0)
            for place in (8, 9):
                byte = self._bytes[first[long] + place]
                word[long] |= (byte & 127).astype(np.uint64) << np.uint64(7 * place)
                size[long] += 1
                long = long[byte > 127]
            size[long] = 1 << 40
            value[several], behind[several] = word, first + size
        return value.view(np.int64), behind


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
    """Numbers of a repeated field: one, or several in a row as varints or fixed64, up to what is none."""
    if not isinstance(value, bytes):
        return (value,)
    if fixed:
        return struct.unpack(f"<{len(value) // 8}Q", value[: len(value) // 8 * 8])
    found, at = [], 0
    with suppress(IndexError, DamagedError):
        while at < len(value):
            number, at = varint(value, at)
            found.append(number)
    return found


def text(value: Any) -> str:
    """The text of a field."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
