"""Numbers as digits, whole columns at a time: groups of four digits are looked up in tables.

Each function gives one line of bytes per number, filled up with NUL bytes that the caller drops.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]


def _groups(base: int) -> npt.NDArray[np.uint32]:
    """Four bytes per number of up to four digits: first padded with NUL, then with zeros, then nothing."""
    rest = np.arange(base**4)[:, None] // base ** np.arange(3, -1, -1)
    then = np.frombuffer(b"0123456789abcdef", np.uint8)[rest % base]
    first = np.where((rest > 0) | (np.arange(4) == 3), then, np.uint8(0))
    return np.concatenate((first, then, np.zeros((1, 4), np.uint8))).view(np.uint32).ravel()


def _fractions() -> npt.NDArray[np.uint64]:
    """Eight bytes per number below 10,000: the point and four digits without zeros at their end."""
    numbers = np.arange(10_000)[:, None]
    digits = numbers // 10 ** np.arange(3, -1, -1) % 10 + ord("0")
    found = np.zeros((10_000, 8), np.uint8)
    found[:, :1] = np.where(numbers > 0, ord("."), 0)
    found[:, 1:5] = np.where(numbers % 10 ** np.arange(4, 0, -1) > 0, digits, 0)
    return found.view(np.uint64).ravel()


_DECIMAL: Final = _groups(10)
_HEXADECIMAL: Final = _groups(16)
_FRACTIONS: Final = _fractions()


def digits(array: Array) -> Bytes:
    """Decimal digits of whole numbers of at least 0, one line each, with NUL bytes before them."""
    return _in_groups(array.astype(np.uint64), _DECIMAL, 10_000)


def hex_digits(array: Array) -> Bytes:
    """Hexadecimal digits of whole numbers (int64 ones as 64 bits), one line each, with NUL bytes before them."""
    return _in_groups(array.astype(np.uint64), _HEXADECIMAL, 1 << 16)


def _in_groups(rest: npt.NDArray[np.uint64], groups: npt.NDArray[np.uint32], base: int) -> Bytes:
    """Groups of four digits: leading zeros only where digits stand before; nothing for a number used up."""
    parts: list[npt.NDArray[np.uint32]] = []
    whole = np.uint64(base)
    while True:
        if not len(rest) or int(rest.max()) < base:
            place = rest.astype(np.int64)
            if parts:
                place[rest == 0] = 2 * base
            parts.append(groups[place])
            break
        higher = rest // whole
        place = (rest - higher * whole).astype(np.int64)
        place[higher > 0] += base
        if parts:
            place[rest == 0] = 2 * base
        parts.append(groups[place])
        rest = higher
    joined = np.stack(parts[::-1], axis=1)
    return joined.view(np.uint8).reshape(len(joined), -1)


def fractions(scaled: npt.NDArray[np.uint64], unit: int) -> Bytes:
    """``scaled / unit`` in decimal digits, without zeros at its end."""
    whole = scaled // np.uint64(unit)
    rest = (scaled - whole * np.uint64(unit)).astype(np.int64) * (10_000 // unit)
    ends = _FRACTIONS[rest].view(np.uint8).reshape(len(scaled), 8)
    return np.concatenate([digits(whole), ends], axis=1)


def rounded_rates(percent: Array) -> npt.NDArray[np.uint64]:
    """Percentages in thousandths of the whole, rounded as text with one decimal is."""
    finite = np.where(np.isfinite(percent) & (percent > 0), percent, 0.0)
    tenths = finite * 10
    result: Array = np.rint(tenths)
    for place in np.flatnonzero(np.abs(tenths - np.floor(tenths) - 0.5) < 1e-6).tolist():
        result[place] = round(float(f"{finite[place]:.1f}") * 10)
    rounded: npt.NDArray[np.uint64] = result.astype(np.uint64)
    return rounded
