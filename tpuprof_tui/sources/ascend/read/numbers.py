"""Decimal numbers in a buffer of text, many at once: mantissas and places, never by way of binary floats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import INT_MISSING

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

#: Digits of the longest numbers that int64 holds; such that are beyond it come out below 0.
_DIGITS: Final = 19
#: Texts that are longer are read one by one, and such that are longer than that are no numbers.
_WIDEST, _LONGEST = 28, 64
#: Times beyond this many ns are none.
_MOST_NS: Final = 1 << 62
_MOST_EXACT: Final = 1 << 53
_POWERS: Final = 10 ** np.arange(19, dtype=np.int64)
_EXACT: Final = Context(prec=200)
_BLANK: Final = b' \t\r\n"'
_NONE: Final = (b"", b"N/A", b"NA", b"NULL", b"None", b"nan", b"-", b"null")
_ROWS: Final = 1 << 15


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers as they are written, in columns of one length.

    Attributes:
        mantissa: int64, all digits.
        places: int64, how many of them stand behind the point.
        known: Whether mantissa and places hold it.
        others: What they do not hold: place and number; None where there is none.
        bad: Places of texts that say something and are no numbers.
    """

    mantissa: I64
    places: I64
    known: Mask
    others: Sequence[tuple[int, Decimal]]
    bad: tuple[int, ...]

    def nanoseconds(self, per_unit: int = 3) -> I64:
        """Whole ns of numbers of a unit that is 10 to ``per_unit`` ns; what is finer is rounded half to even.

        Returns:
            int64, ``INT_MISSING`` where there is no number or no time that can be.
        """
        more = per_unit - self.places
        factor = _POWERS[np.clip(more, 0, 18)]
        fits = np.abs(self.mantissa) < _MOST_NS // factor
        whole = np.where(fits, self.mantissa, 0) * factor
        finer = more < 0
        if finer.any():
            divisor = _POWERS[np.clip(-more, 0, 18)]
            part, rest = np.divmod(self.mantissa, divisor)
            up = (2 * rest > divisor) | ((2 * rest == divisor) & (part & 1 == 1))
            whole = np.where(finer, part + up, whole)
            fits |= finer
        found = np.where(self.known & fits, whole, INT_MISSING)
        for place, number in self.others:
            ns = int(number.scaleb(per_unit, _EXACT).to_integral_value(ROUND_HALF_EVEN, _EXACT))
            found[place] = ns if abs(ns) < _MOST_NS else INT_MISSING
        return found

    def finer(self, per_unit: int = 3) -> npt.NDArray[np.float32]:
        """What `nanoseconds` rounds away, ns; 0 where there is no number."""
        found = np.zeros(len(self.mantissa), np.float32)
        rows = np.flatnonzero(self.known & (self.places > per_unit))
        divisor = _POWERS[np.clip(self.places[rows] - per_unit, 0, 18)]
        part = self.mantissa[rows] % divisor / divisor
        found[rows] = part - (self.nanoseconds(per_unit)[rows] - self.mantissa[rows] // divisor)
        for place, number in self.others:
            ns = number.scaleb(per_unit, _EXACT)
            found[place] = float(ns - ns.to_integral_value(ROUND_HALF_EVEN, _EXACT)) if abs(ns) < _MOST_NS else 0
        return found

    def floats(self) -> F64:
        """float64, NaN where there is no number; the nearest one to what is written."""
        found = self.mantissa / _POWERS[np.clip(self.places, 0, 18)]
        found[~self.known] = np.nan
        # the quotient of two exact numbers is rounded once; of others the text is read again
        for place in np.flatnonzero(self.known & (np.abs(self.mantissa) > _MOST_EXACT)).tolist():
            found[place] = float(Decimal(int(self.mantissa[place])).scaleb(-int(self.places[place]), _EXACT))
        for place, number in self.others:
            found[place] = float(number)
        return found


def numbers(data: npt.NDArray[np.uint8], begin: I64, end: I64) -> Numbers:
    """The numbers in stretches of a text.

    Args:
        data: Bytes; those of a stretch may stand between quotes and blanks.
        begin, end: int64, where each stretch begins and ends.
    """
    parts = [_some(data, begin[low : low + _ROWS], end[low : low + _ROWS], low) for low in range(0, len(begin), _ROWS)]
    if len(parts) == 1:
        return parts[0]
    empty = np.zeros(0, np.int64)
    return Numbers(
        np.concatenate([each.mantissa for each in parts] or [empty]),
        np.concatenate([each.places for each in parts] or [empty]),
        np.concatenate([each.known for each in parts] or [empty.astype(np.bool_)]),
        [other for each in parts for other in each.others], tuple(place for each in parts for place in each.bad),
    )  # fmt: skip


def numbers_of(texts: Sequence[Any]) -> Numbers:
    """The numbers that texts hold, each as bytes or what gives its bytes."""
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    starts = np.append(0, ends[:-1])[: len(ends)].astype(np.int64)
    return numbers(np.frombuffer(b"".join(texts), np.uint8), starts, ends)


def _some(data: npt.NDArray[np.uint8], begin: I64, end: I64, first: int) -> Numbers:
    count = len(begin)
    width = int(min((end - begin).max(initial=0), _WIDEST))
    mantissa, digits, places = (np.zeros(count, np.int64) for _ in range(3))
    point, minus, odd, over = (np.zeros(count, np.bool_) for _ in range(4))
    odd |= end - begin > _WIDEST
    last = max(len(data) - 1, 0)
    for step in range(width):
        place = begin + step
        sign = data[np.minimum(place, last)] if len(data) else np.full(count, 9, np.uint8)
        sign[place >= end] = 9
        digit = sign - np.uint8(48)
        is_digit = digit < 10
        odd |= is_digit & over
        np.copyto(mantissa, mantissa * 10 + digit, where=is_digit)
        digits += is_digit
        places += is_digit & point
        if is_digit.all():
            continue
        is_point = sign == 0x2E
        odd |= is_point & (point | over)
        point |= is_point
        is_minus = sign == 0x2D
        odd |= is_minus & (minus | point | over | (digits > 0))
        minus |= is_minus
        blank = (sign == 9) | (sign == 32) | (sign == 13) | (sign == 0x22)
        over |= blank & ((digits > 0) | point | minus)
        odd |= ~(is_digit | is_point | is_minus | blank)
    odd |= mantissa < 0
    odd |= (digits > _DIGITS) | ((digits == 0) & (point | minus))
    known = (digits > 0) & ~odd
    others, bad = [], []
    for row, text in _texts(data, begin, end, np.flatnonzero(odd)):
        number = _one(text)
        if number is not None:
            others.append((first + row, number))
        elif text not in _NONE:
            bad.append(first + row)
    return Numbers(np.where(minus, -mantissa, mantissa), places, known, others, tuple(bad))


def _texts(data: npt.NDArray[np.uint8], begin: I64, end: I64, rows: I64) -> Iterator[tuple[int, bytes]]:
    """The texts of some rows, those that say plainly that there is nothing left out."""
    if not len(rows):
        return
    nothing = end[rows] - begin[rows] == 3
    starts = np.minimum(begin[rows], max(len(data) - 3, 0))
    nothing &= (
        (data[starts] == 0x4E) & (data[starts + 1] == 0x2F) & (data[starts + 2] == 0x41) if len(data) > 2 else False
    )
    rows = rows[~nothing]
    for row, low, high in zip(rows.tolist(), begin[rows].tolist(), end[rows].tolist(), strict=True):
        yield row, data[low : min(high, low + 4 * _LONGEST)].tobytes().strip(_BLANK)


def _one(text: bytes) -> Decimal | None:
    if not text or len(text) > _LONGEST:
        return None
    try:
        number = Decimal(text.decode("ascii"))
    except (InvalidOperation, UnicodeDecodeError, ValueError):
        return None
    return number if number.is_finite() and abs(number.adjusted()) < 30 else None
