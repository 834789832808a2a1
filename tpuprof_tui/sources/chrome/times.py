"""Times of many events at once: their decimal texts of microseconds as integer ns, never by way of binary floats."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import INT_MISSING

I64 = npt.NDArray[np.int64]
#: Times beyond this many ns either side of zero are none.
MOST_NS: Final = 1 << 62
#: Texts with more digits than this do not fit int64.
_DIGITS: Final = 19
_PLAIN: Final = b"0123456789.,-"
#: ns of the last digit, by how many stand behind the point.
_SCALES: Final = np.array([1000, 100, 10, 1], np.int64)
#: Bytes that are looked at at once, what is next to digits, and what adds up pairs of them.
_WORD, _ALL, _COMMA, _POINT = 8, (1 << 64) - 1, 0xFC, 0xFE
_PAIRS, _HUNDREDS, _UNITS = map(np.uint64, (0x000000FF000000FF, 0x000F424000000064, 0x0000271000000001))
_EXACT: Final = Context(prec=200)
_LONGEST: Final = 64


def text_of_times(texts: Sequence[Any]) -> bytes:
    """JSON texts of numbers, or of strings that hold one, as one text: a comma behind each. Such may be put together.

    Args:
        texts: As bytes or what gives its bytes.
    """
    joined = b",".join((*texts, b""))
    if joined.count(b",") != len(texts):
        # what holds a comma is no number
        joined = b",".join(b"" if b"," in (text := bytes(each)) else text for each in texts) + b","
    return joined


def exact_ns(text: bytes) -> I64:
    """Whole ns of microseconds (``text_of_times``); what is finer is rounded half to even.

    Returns:
        int64; missing where a text is no time that a trace can have.
    """
    found = plain_ns(text)
    return np.array(list(map(_one, text.split(b",")[:-1])), np.int64) if found is None else found


def plain_ns(text: bytes) -> I64 | None:
    """The same where all are plain decimals of at most three places that a trace can have; else None."""
    plain = text.replace(b'"', b"")
    count = plain.count(b",")
    if not count:
        return np.zeros(0, np.int64)
    found = _of_one_form(plain, count)
    return _all_at_once(plain) if found is None and not plain.translate(None, _PLAIN) else found


def _of_one_form(joined: bytes, count: int) -> I64 | None:
    """Times of plain decimals that are all of one length, their points at one place; None where they are others."""
    width, rest = divmod(len(joined), count)
    dot = joined.find(b".", 0, width)
    if rest or -1 < dot < width - 5 or dot in (0, width - 2):
        return None
    behind = 0 if dot < 0 else width - dot - 2
    before = width - 1 - behind - (dot >= 0)
    if not 0 < before <= 2 * _WORD:
        return None
    padded = np.zeros(2 * _WORD + len(joined), np.uint8)
    digits = padded[2 * _WORD :]
    np.subtract(np.frombuffer(joined, np.uint8), np.uint8(0x30), out=digits)
    rows = digits.reshape(count, width)
    if bool((rows[:, -1] != _COMMA).any() or (dot >= 0 and (rows[:, dot] != _POINT).any())):
        return None
    # beyond 4e18 ns they may be too many
    if np.count_nonzero(digits > 9) > count * (1 + (dot >= 0)) or (before == 2 * _WORD and rows[:, 0].max() > 3):
        return None

    def number(end: int, length: int) -> npt.NDArray[np.uint64]:
        """Of each row the digits of that length before a place; eight at a time."""
        words = np.ndarray((count,), "<u8", padded, end + _WORD, (width,)) & np.uint64(
            -1 << 8 * (_WORD - length) & _ALL
        )
        words = words * np.uint64(10) + (words >> np.uint64(8))
        words = (words & _PAIRS) * _HUNDREDS + ((words >> np.uint64(16)) & _PAIRS) * _UNITS
        found: npt.NDArray[np.uint64] = words >> np.uint64(32)
        return found

    ns = number(before, min(before, _WORD))
    if before > _WORD:
        ns += number(before - _WORD, before - _WORD) * np.uint64(10**_WORD)
    ns *= np.uint64(1000)
    if behind:
        ns += number(width - 1, behind) * np.uint64(_SCALES[behind])
    return ns.view(np.int64)


def _all_at_once(joined: bytes) -> I64 | None:
    """The same of plain decimals of at most three places; None where there are others."""
    text = np.frombuffer(joined, np.uint8)
    commas = np.flatnonzero(text == 0x2C)
    begin = np.concatenate([[0], commas[:-1] + 1])
    digits = commas - begin
    scale: I64 | int = 1000
    dots = np.flatnonzero(text == 0x2E) if b"." in joined else np.zeros(0, np.int64)
    if len(dots):
        row = np.arange(len(dots)) if len(dots) == len(commas) else np.searchsorted(commas, dots)
        places = commas[row] - dots - 1
        # one in each; neither ".5" nor "5.", which are no JSON
        if bool((np.diff(row) == 0).any() or (places < 1).any() or (places > 3).any() or (dots <= begin[row]).any()):
            return None
        digits[row] -= 1
        scale = np.full(len(commas), 1000, np.int64)
        scale[row] = _SCALES[places]
        joined = joined.replace(b".", b"")
    if b"-" in joined:
        minus = np.flatnonzero(text == 0x2D)
        if not bool(np.isin(minus, begin).all()):
            return None
        digits[np.searchsorted(commas, minus)] -= 1
    if bool((digits < 1).any() or (digits > _DIGITS).any()):
        return None
    values = np.fromstring(joined[:-1].decode("ascii"), np.int64, sep=",")
    if len(values) != len(commas):
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
