"""Columns of integers as few bytes as a browser can still unpack in a moment.

A column is turned into its differences (where its values ascend), made unsigned, and split into planes: the lowest byte
of every value, then the next, as many as the largest value needs. Planes deflate well and need no dictionary of values.
Chunks of several columns are deflated as one stream and written as base64.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

Ints = npt.NDArray[np.int64]

#: Values beyond are cut: a browser's numbers are exact up to 2^53, and a sign takes one bit.
LARGEST: Final = 1 << 51
#: Fast, and within a tenth of the smallest size on these columns.
_LEVEL: Final = 1


class Chunk(Struct):
    """Columns of one length, deflated as they come.

    Attributes:
        count: Values of each column.
        columns: What a reader needs to know of each: key, number of planes, whether they are differences, and whether
            32 bits hold every value.
    """

    count: int
    columns: list[tuple[str, int, bool, bool]] = field(default_factory=list)
    _stream: Any = field(default_factory=lambda: zlib.compressobj(_LEVEL, zlib.DEFLATED, -15))
    _parts: list[bytes] = field(default_factory=list)

    def add(self, key: str, parts: Iterable[Ints], *, ascending: bool = False) -> None:
        """Adds a column in pieces: -1 is missing, lower values occur in ascending columns only.

        Of an ``ascending`` one neighbours are close, so that differences are smaller than values.
        """
        values = np.concatenate([np.zeros(0, np.int64), *parts])
        np.clip(values, -LARGEST, LARGEST, out=values)
        low, high = int(values.min(initial=0)), int(values.max(initial=0))
        steps = np.diff(values, prepend=np.int64(0))
        # signed values as unsigned ones: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
        unsigned = (steps << 1) ^ (steps >> 63) if ascending else values + 1
        planes = (int(unsigned.max(initial=0)).bit_length() + 7) // 8
        octets = unsigned.astype("<i8").view(np.uint8).reshape(len(values), 8)
        for plane in range(planes):
            self._parts.append(self._stream.compress(octets[:, plane].tobytes()))
        self.columns.append((key, planes, ascending, low >= -(1 << 31) and high < 1 << 31))

    def base64(self) -> bytes:
        """The finished chunk; nothing can be added after."""
        self._parts.append(self._stream.flush())
        return base64.b64encode(b"".join(self._parts))


def scaled(values: npt.NDArray[np.floating[Any]], scale: int) -> Ints:
    """Floats as integers, ``scale`` to one; -1 where they are negative or no numbers."""
    fine = np.isfinite(values) & (values >= 0)
    return np.where(fine, np.rint(np.minimum(np.where(fine, values, 0), LARGEST / scale) * scale), -1).astype(np.int64)


def known(values: npt.NDArray[Any]) -> Ints:
    """Integers or codes, -1 where they are missing or negative."""
    return np.maximum(values.astype(np.int64), -1)
