"""Distinct values of arrays, and codes of their rows."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from .missing import INT_MISSING

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Scalar = TypeVar("Scalar", bound=np.generic)

#: Value ranges up to this size, or up to four times the number of rows, are counted in a dense table.
_DENSE: Final = 1 << 16


def uniques(values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """The distinct values, ascending.

    ``numpy.unique`` of an array alone loads ``numpy.ma``, which takes longer than a small profile takes to read.
    """
    ordered = np.sort(values, axis=None)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def distinct(values: Array) -> tuple[Array, Ints]:
    """Distinct values, ascending, and for each row the index of its value among them."""
    if values.dtype.kind == "f":
        found, places = np.unique(values, return_inverse=True)
        return found, places
    if not len(values):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if values.dtype.itemsize < 4:
        # differences of small integer types may overflow
        values = values.astype(np.int32)
    low, high = int(values.min()), int(values.max())
    if low == INT_MISSING < high:
        # the known ones may be close to one another
        low = int(values.min(where=values != INT_MISSING, initial=high)) - 1
        found, places = distinct(np.maximum(values, low))
        found[0] = INT_MISSING
        return found, places
    if high - low >= max(_DENSE, 4 * len(values)):
        found, places = np.unique(values.astype(np.int64), return_inverse=True)
        return found, places
    shifted = values - values.dtype.type(low) if low else values
    present = np.bincount(shifted, minlength=high - low + 1) > 0
    if bool(present.all()):
        return np.arange(low, high + 1, dtype=np.int64), shifted
    return np.flatnonzero(present) + low, (np.cumsum(present) - 1)[shifted]


def distinct_together(*codes: Array) -> tuple[Array, int]:
    """Dense index (in ascending order) of each row's combination of codes, and the number of distinct combinations."""
    places, size = _small(codes[0]) if len(codes) > 1 else (codes[0], 1)
    for values in codes[1:]:
        own, count = _small(values)
        if size * count >= max(_DENSE, 4 * len(own)):
            places = distinct(places)[1]
            size = int(places.max(initial=-1)) + 1
        places, size = places * np.int64(count) + own, size * count
    places = distinct(places)[1]
    return places, int(places.max()) + 1 if len(places) else 0


def _small(values: Array) -> tuple[Array, int]:
    """Integers from 0 in the order of the values, and their number: of codes the differences from the first one."""
    if values.dtype.kind != "f" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < max(_DENSE, 4 * len(values)):
            return values.astype(np.int64) - low, high - low + 1
    found, places = distinct(values)
    return places, len(found)
