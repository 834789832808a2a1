"""Group-by of instructions on a column: count, total, mean and maximum duration."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import INT_MISSING, is_missing

Ints = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

#: Value ranges up to this size, or up to four times the number of rows, are counted in a dense table.
_DENSE: Final = 1 << 16
_STEPS: Final = (1, 2, 5)
#: Lower bound of range edges: no column has smaller values.
_SMALLEST: Final = 1e-12


class Groups(Struct, frozen=True, eq=False):
    """Groups of rows with equal values; arrays of one length, by ascending value, missing values last.

    Attributes:
        values: Value of each group: int64 (codes of text columns) or float64; INT_MISSING or NaN where missing.
        count: Number of rows, int64.
        total: Sum of durations, int64 ns.
        longest: Maximum duration, int64 ns.
    """

    values: Array
    count: Ints
    total: Ints
    longest: Ints

    def __len__(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> npt.NDArray[np.float64]:
        """Mean duration of each group, ns."""
        return self.total / np.maximum(self.count, 1)

    @property
    def share(self) -> npt.NDArray[np.float64]:
        """Share of the total duration of all groups, 0 to 1."""
        return self.total / max(int(self.total.sum()), 1)

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """Mask of the group of missing values."""
        return is_missing(self.values)


def grouped(values: Array, durations: Ints) -> Groups:
    """Groups rows by value (int64 or float64 as in columns, or int32 codes); durations in ns.

    O(rows) for integers in a small range, such as codes, else O(rows log rows).
    """
    gone = is_missing(values)
    missing = bool(gone.any())
    if missing:
        values, kept = values[~gone], durations[~gone]
    else:
        kept = durations
    found, places = distinct(values)
    parts = _sums(places, kept, len(found))
    if missing:
        rest = durations[gone]
        parts = [np.append(part, last) for part, last in zip(parts, (len(rest), rest.sum(), rest.max()), strict=True)]
        found = np.append(found, np.nan if found.dtype.kind == "f" else INT_MISSING)
    return Groups(found, *parts)


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
    places = distinct(codes[0])[1]
    for each in codes[1:]:
        found, of_code = distinct(each)
        places = distinct(np.asarray(places, np.int64) * len(found) + of_code)[1]
    return places, int(places.max()) + 1 if len(places) else 0


def _sums(places: Array, durations: Ints, size: int) -> list[Ints]:
    """Count, sum and maximum by group index."""
    longest = np.zeros(size, dtype=np.int64)
    np.maximum.at(longest, places, durations)
    # float64 sums are exact below 2**53 ns, about a hundred days
    total = np.bincount(places, weights=durations, minlength=size).astype(np.int64)
    return [np.bincount(places, minlength=size), total, longest]


def even_edges(low: float, high: float, most: int = 20) -> list[float]:
    """Edges of at most ``most`` equal ranges that contain [low, high], at multiples of 1, 2 or 5 times 10**n."""
    step = next_step((high - low) / most if high > low else 1)
    first = math.floor(low / step)
    last = max(math.floor(high / step) + 1, first + 1)
    return sorted({_tidy(place * step) for place in range(first, last + 1)})


def wide_edges(low: float, high: float) -> list[float]:
    """Ascending edges 1, 2, 5, 10, ... for non-negative values that span orders of magnitude.

    Values below a millionth of the largest fall into the first range. The first edge is at most ``low``, the last is
    above ``high``.
    """
    if high <= 0:
        return [0.0, 1.0]
    exponent = math.floor(math.log10(max(low, high / 1e6, _SMALLEST)))
    edges = [0.0] if low < 10.0**exponent else []
    while True:
        for step in _STEPS:
            edges.append(_tidy(step * 10.0**exponent))
            if edges[-1] > high:
                below = [edge for edge in edges if edge <= low]
                return edges[max(len(below) - 1, 0) :]
        exponent += 1


def next_step(size: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is at least ``size``."""
    exponent = math.floor(math.log10(size)) if size > 0 else 0
    return next(
        _tidy(step * 10.0**power)
        for power in (exponent, exponent + 1)
        for step in _STEPS
        if step * 10.0**power >= size * (1 - 1e-12)
    )


def _tidy(value: float) -> float:
    """Rounds to 15 digits: 0.30000000000000004 becomes 0.3."""
    return float(f"{value:.15g}")


def in_ranges(values: Array, edges: list[float]) -> Ints:
    """Index of the range of each value (``edges[i] <= value < edges[i + 1]``); INT_MISSING for missing values."""
    places = np.searchsorted(np.array(edges), values, side="right") - 1
    return np.where(is_missing(values), INT_MISSING, np.clip(places, 0, len(edges) - 2))
