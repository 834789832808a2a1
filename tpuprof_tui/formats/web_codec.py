"""Compresses integer columns for the web page, in a form that browsers decode quickly.

An ascending column is delta-encoded. Values are made unsigned and split into byte planes: the lowest byte of every
value, then the next, as many as the largest value needs. Byte planes deflate well without a dictionary of values.
Several columns form a chunk, which is deflated as one stream and encoded as base64.
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

#: Values are clipped to this magnitude: JavaScript numbers are exact up to 2^53, and the sign takes one bit.
LARGEST: Final = 1 << 51
#: Deflate level: fast, and within 10 % of the smallest size on these columns.
_LEVEL: Final = 1


class Chunk(Struct):
    """Columns of one length, deflated as they are added."""

    count: int  #: Number of values of each column
    #: Header of each column for the decoder: key, number of byte planes, whether it is delta-encoded, and whether all
    #: values fit into 32 bits.
    columns: list[tuple[str, int, bool, bool]] = field(default_factory=list)
    _stream: Any = field(default_factory=lambda: zlib.compressobj(_LEVEL, zlib.DEFLATED, -15))
    _parts: list[bytes] = field(default_factory=list)

    def add(self, key: str, parts: Iterable[Ints], *, ascending: bool = False) -> None:
        """Adds a column, given as a sequence of arrays.

        Args:
            key: Key of the column.
            parts: Values; -1 is missing, lower values are allowed in ascending columns only.
            ascending: Whether values (nearly) ascend, so that the column is delta-encoded.
        """
        values = np.concatenate([np.zeros(0, np.int64), *parts])
        np.clip(values, -LARGEST, LARGEST, out=values)
        low, high = int(values.min(initial=0)), int(values.max(initial=0))
        steps = np.diff(values, prepend=np.int64(0))
        # zigzag encoding: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
        unsigned = (steps << 1) ^ (steps >> 63) if ascending else values + 1
        planes = (int(unsigned.max(initial=0)).bit_length() + 7) // 8
        octets = unsigned.astype("<i8").view(np.uint8).reshape(len(values), 8)
        for plane in range(planes):
            self._parts.append(self._stream.compress(octets[:, plane].tobytes()))
        self.columns.append((key, planes, ascending, low >= -(1 << 31) and high < 1 << 31))

    def base64(self) -> bytes:
        """Finishes the chunk and returns it as base64; no column can be added afterwards."""
        self._parts.append(self._stream.flush())
        return base64.b64encode(b"".join(self._parts))


def scaled(values: npt.NDArray[np.floating[Any]], scale: int) -> Ints:
    """Floats multiplied by ``scale`` and rounded to int64; -1 for negative and non-finite ones."""
    fine = np.isfinite(values) & (values >= 0)
    return np.where(fine, np.rint(np.minimum(np.where(fine, values, 0), LARGEST / scale) * scale), -1).astype(np.int64)


def or_minus_one(values: npt.NDArray[Any]) -> Ints:
    """Integers or codes as int64; -1 for missing and negative ones."""
    return np.maximum(values.astype(np.int64), -1)
