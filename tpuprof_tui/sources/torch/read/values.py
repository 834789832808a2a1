"""Converts decoded values to columns: dictionary codes of texts, integers, floats."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import INT_MISSING

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Values = Sequence[Any]
#: Numbers of a larger magnitude are taken as missing (blocks per SM, percentages).
_MOST_FLOAT: Final = 1e12
_LAST: Final = (1 << 63) - 1
_LONGEST_NAME: Final = 1 << 16


class Codes(dict[Any, int]):
    """Maps values to dense integer codes, in order of first use."""

    def __missing__(self, key: Any) -> int:
        code = self[key] = len(self)
        return code


def text_codes(texts: Codes, values: list[Any]) -> I32:
    """Codes of the texts of values of any type."""
    return np.array([texts[str(value)] for value in values], np.int32)


def known(text: str) -> str | None:
    """The text of an id; None for that of a missing one."""
    return None if text in ("None", "") else text


def lookup(keys: I64, wanted: I64, values: I64 | None = None) -> I64:
    """Looks up ``wanted`` in ascending ``keys``: the value (default: the index) of the first equal key; -1 if none."""
    index = np.searchsorted(keys, wanted)
    found = np.full(len(wanted), -1, np.int64)
    inside = np.flatnonzero(index < len(keys))
    hit = inside[keys[index[inside]] == wanted[inside]]
    found[hit] = index[hit] if values is None else values[index[hit]]
    return found


def to_int64(values: Values, beyond: list[int] | None = None) -> I64:
    """int64 of integers and of decimal texts; missing for anything else.

    Args:
        values: Any values.
        beyond: Indices of integers outside int64 are appended to it.
    """
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, ValueError, OverflowError):
        # most often some values are null
        if beyond is not None:
            beyond += [row for row, each in enumerate(values) if type(each) is int and not INT_MISSING <= each <= _LAST]
        values = [each if type(each) is int and INT_MISSING <= each <= _LAST else _one_int64(each) for each in values]
        return np.array(values, np.int64)


def rows_to_int64(rows: Sequence[tuple[Any, ...]], beyond: list[int]) -> I64:
    """int64 array (rows, columns) of rows of values, converted as by `to_int64`."""
    try:
        return np.fromiter(chain.from_iterable(rows), np.int64, len(rows) * len(rows[0])).reshape(len(rows), -1)
    except (TypeError, ValueError, OverflowError):
        return np.stack([to_int64(column, beyond) for column in zip(*rows, strict=True)], axis=1)


def _one_int64(value: Any) -> int:
    if isinstance(value, str):
        digits = value.removeprefix("-")
        value = int(value) if digits.isascii() and digits.isdecimal() and len(digits) < 40 else None
    if not isinstance(value, int) or not INT_MISSING <= value <= _LAST:
        # map [2^63, 2^64) to negative numbers, so that such addresses and ids stay distinct
        return value - (1 << 64) if isinstance(value, int) and 0 <= value < 1 << 64 else INT_MISSING
    return int(value)


def floats(values: Values) -> F64:
    """float64 of numbers; NaN for anything else."""
    if not set(map(type, values)) <= {float, int}:
        values = [value if type(value) in (float, int) else np.nan for value in values]
    try:
        found = np.array(values, np.float64)
    except OverflowError:
        found = np.array([value if abs(value) < _MOST_FLOAT else np.nan for value in values], np.float64)
    return np.where(np.abs(found) < _MOST_FLOAT, found, np.nan)


def raw_codes(texts: Codes, values: Values) -> list[int]:
    """Codes of raw JSON texts; -1 for empty ones."""
    # joining and splitting converts them to bytes in half the time
    raw = b"\0".join(values).split(b"\0") if values else []
    if len(raw) != len(values):
        raw = list(map(bytes, values))
    return [texts[each] if each else -1 for each in raw]


def printable(text: str, most: int = _LONGEST_NAME) -> str:
    """A text without characters that cannot be shown or written, cut to ``most`` characters."""
    text = text[:most]
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
