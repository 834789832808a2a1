"""Times of many events at once: their decimal texts of microseconds as integer ns, never by way of binary floats."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import INT_MISSING

from .decimals import MOST_NS

I64 = npt.NDArray[np.int64]
#: Texts with more digits than this do not fit int64.
_DIGITS: Final = 19
_PLAIN: Final = b"0123456789.,-"
#: ns of the last digit, by how many stand behind the point.
_SCALES: Final = np.array([1000, 100, 10, 1], np.int64)
_EXACT: Final = Context(prec=200)
_LONGEST: Final = 64


def exact_ns(texts: Sequence[Any]) -> I64:
    """Whole ns of microseconds; what is finer is rounded half to even.

    Args:
        texts: JSON texts of numbers, or of strings that hold one, as bytes.

    Returns:
        int64; missing where a text is no time that a trace can have.
    """
    if not texts:
        return np.zeros(0, np.int64)
    joined = b",".join(texts)
    fast = None if joined.translate(None, _PLAIN) else _all_at_once(joined, len(texts))
    return np.array([_one(bytes(text)) for text in texts], np.int64) if fast is None else fast


def _all_at_once(joined: bytes, count: int) -> I64 | None:
    """The same of plain decimals of at most three places; None where there are others."""
    text = np.frombuffer(joined, np.uint8)
    commas = np.append(np.flatnonzero(text == 0x2C), len(text))
    if len(commas) != count:
        return None
    begin = np.concatenate([[0], commas[:-1] + 1])
    digits = commas - begin
    scale: I64 | int = 1000
    dots = np.flatnonzero(text == 0x2E) if b"." in joined else np.zeros(0, np.int64)
    if len(dots):
        row = np.arange(count) if len(dots) == count else np.searchsorted(commas, dots)
        places = commas[row] - dots - 1
        # one in each; neither ".5" nor "5.", which are no JSON
        if bool((np.diff(row) == 0).any() or (places < 1).any() or (places > 3).any() or (dots <= begin[row]).any()):
            return None
        digits[row] -= 1
        scale = np.full(count, 1000, np.int64)
        scale[row] = _SCALES[places]
        joined = joined.replace(b".", b"")
    if b"-" in joined:
        minus = np.flatnonzero(text == 0x2D)
        if not bool(np.isin(minus, begin).all()):
            return None
        digits[np.searchsorted(commas, minus)] -= 1
    if bool((digits < 1).any() or (digits > _DIGITS).any()):
        return None
    values = np.fromstring(joined.decode("ascii"), np.int64, sep=",")
    if len(values) != count:
        return None
    # what is beyond int64 was read as its limit
    return values * scale if bool((np.abs(values) < MOST_NS // scale).all()) else None


def _one(text: bytes) -> int:
    """One time of any form."""
    try:
        plain = text.decode("ascii").strip('"')
        value = Decimal(plain) if len(plain) <= _LONGEST else Decimal("NaN")
        if not value.is_finite() or value.adjusted() > 20:
            return INT_MISSING
        ns = int(value.scaleb(3, _EXACT).to_integral_value(ROUND_HALF_EVEN, _EXACT))
    except (InvalidOperation, UnicodeDecodeError, ValueError):
        return INT_MISSING
    return ns if abs(ns) < MOST_NS else INT_MISSING
