"""Vectorized parser of decimal numbers in a text buffer: exact mantissas and decimal places, no binary floats."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import INT_MISSING

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

#: Digits of the largest int64; 19-digit numbers that overflow come out negative.
_DIGITS: Final = 19
#: Texts of more bytes than these are parsed one by one, and are not numbers, respectively.
_WIDEST, _LONGEST = 28, 64
#: Times of this many ns or more are invalid.
_MOST_NS: Final = 1 << 62
_MOST_EXACT: Final = 1 << 53
_POWERS: Final = 10 ** np.arange(19, dtype=np.int64)
_EXACT: Final = Context(prec=200)
_BLANK: Final = b' \t\r\n"'
_NONE: Final = (b"", b"N/A", b"NA", b"NULL", b"None", b"nan", b"-", b"null")
_ROWS: Final = 1 << 15
#: Readable padding before and after the text, bytes.
_BEFORE: Final = 16
WIDEST: Final = 256


_WORD, _MOST = np.uint64(64), np.uint64(1 << 63)


def _times(byte: int) -> Any:
    return np.uint64(byte * 0x0101010101010101)


#: Masks of the first and of the last n bytes of an 8-byte word, and constants that check and combine eight digits.
MASKS: Final = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
_ENDS: Final = np.array([(1 << 64) - (1 << 8 * (8 - count)) for count in range(9)], np.uint64)
_ONES, _HIGH, _POINTS, _ZEROS, _UPPER, _SIXES, _THREES = map(_times, (0x01, 0x80, 0x2E, 0x30, 0xF0, 0x06, 0x33))
_PAIRS, _HUNDREDS, _UNITS = map(np.uint64, (0x000000FF000000FF, 0x000F424000000064, 0x0000271000000001))
_NOTHING: Final = np.uint64(int.from_bytes(b"N/A", "little"))


class Numbers(Struct, frozen=True, eq=False):
    """Parsed decimal numbers, in columns of one length."""

    mantissa: I64  #: int64, all digits as an integer
    places: I64  #: int64, number of digits after the point
    known: Mask  #: Mask of the numbers that ``mantissa`` and ``places`` hold
    others: Sequence[tuple[int, Decimal]]  #: (index, number) of the numbers that they cannot hold
    bad: tuple[int, ...]  #: Indices of texts that are neither numbers nor empty (see ``_NONE``)

    def nanoseconds(self, per_unit: int = 3) -> I64:
        """Converts numbers to whole ns, rounded half to even; one unit is ``10**per_unit`` ns.

        Returns:
            int64, ``INT_MISSING`` without a number or for times of ``_MOST_NS`` or more.
        """
        more = per_unit - self.places
        factor = _POWERS[np.clip(more, 0, 18)]
        fits = np.abs(self.mantissa) < _MOST_NS // factor
        rounded_ns = np.where(fits, self.mantissa, 0) * factor
        rows, rounded, _ = self._rounded(per_unit)
        rounded_ns[rows], fits[rows] = rounded, True
        found = np.where(self.known & fits, rounded_ns, INT_MISSING)
        for index, number in self.others:
            ns = int(number.scaleb(per_unit, _EXACT).to_integral_value(ROUND_HALF_EVEN, _EXACT))
            found[index] = ns if abs(ns) < _MOST_NS else INT_MISSING
        return found

    def finer(self, per_unit: int = 3) -> npt.NDArray[np.float32]:
        """Rounding remainder of `nanoseconds`, float32 ns; 0 without a number."""
        found = np.zeros(len(self.mantissa), np.float32)
        rows, _, rest = self._rounded(per_unit)
        found[rows] = rest
        for index, number in self.others:
            ns = number.scaleb(per_unit, _EXACT)
            found[index] = float(ns - ns.to_integral_value(ROUND_HALF_EVEN, _EXACT)) if abs(ns) < _MOST_NS else 0
        return found

    def _rounded(self, per_unit: int) -> tuple[I64, I64, F64]:
        """Numbers with fractions of a ns: their indices, whole ns rounded half to even, and the remainders, ns."""
        rows = np.flatnonzero(self.known & (self.places > per_unit))
        divisor = _POWERS[np.clip(self.places[rows] - per_unit, 0, 18)]
        part, rest = np.divmod(self.mantissa[rows], divisor)
        up = (2 * rest > divisor) | ((2 * rest == divisor) & (part & 1 == 1))
        return rows, part + up, rest / divisor - up

    def floats(self) -> F64:
        """Nearest float64 of each number; NaN without a number."""
        found = self.mantissa / _POWERS[np.clip(self.places, 0, 18)]
        found[~self.known] = np.nan
        # the quotient of two exact floats is correctly rounded; a mantissa beyond 2**53 is not exact
        for index in np.flatnonzero(self.known & (np.abs(self.mantissa) > _MOST_EXACT)).tolist():
            found[index] = float(Decimal(int(self.mantissa[index])).scaleb(-int(self.places[index]), _EXACT))
        for index, number in self.others:
            found[index] = float(number)
        return found


class Bytes:
    """A padded text buffer from which many 8-byte words are read at once."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        padded = b"".join((bytes(_BEFORE), data, bytes(WIDEST + 128 - len(data) % 64)))
        #: The bytes, padded with zeros to a multiple of 64.
        self.array = np.frombuffer(padded, np.uint8, len(data) + -len(data) % 64, _BEFORE)
        words = np.frombuffer(padded, "<u8", len(padded) // 8)
        self._words, self._next = words[:-1], words[1:]

    def words(self, offsets: I64) -> Words:
        """The 8-byte little-endian word at each offset; offsets from -16 to ``WIDEST`` after the end are valid."""
        offsets = offsets + _BEFORE
        word_index = offsets >> 3
        bits = ((offsets & 7) << 3).view(np.uint64)
        # numpy defines a shift by 64 bits as 0
        found: Words = (self._words.take(word_index) >> bits) | (self._next.take(word_index) << (_WORD - bits))
        return found


def numbers(text: Bytes, begin: I64, end: I64) -> Numbers:
    """Parses the numbers in byte ranges of a text.

    Args:
        text: The text; a number may be surrounded by quotes and blanks.
        begin, end: int64, byte offsets of each range.
    """
    mantissa, places, known = _parse_fast(text, begin, end)
    rows = np.flatnonzero(~known & (end > begin))
    # N/A is frequent: skip it before the slow path
    rows = rows[(end[rows] - begin[rows] != 3) | (text.words(begin[rows]) & MASKS[3] != _NOTHING)]
    others, bad = [], []
    for low in range(0, len(rows), _ROWS):
        chunk = rows[low : low + _ROWS]
        found = _parse_slow(text.array, begin[chunk], end[chunk])
        mantissa[chunk], places[chunk], known[chunk] = found.mantissa, found.places, found.known
        others += [(int(chunk[row]), number) for row, number in found.others]
        bad += chunk[list(found.bad)].tolist()
    return Numbers(mantissa, places, known, others, tuple(bad))


def numbers_in(text: bytes) -> Numbers:
    """Parses the numbers of a text in which each number ends with a comma."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == 0x2C)
    return numbers(Bytes(text), np.append(0, ends[:-1] + 1)[: len(ends)], ends)


def _parse_fast(text: Bytes, begin: I64, end: I64) -> tuple[I64, I64, Mask]:
    """Fast path: parses digits with an optional point that fit into int64, eight bytes at a time.

    Returns:
        Mantissa, number of digits after the point, and a mask of the texts that have this form.
    """
    bytes_ = text.array if len(text.array) else np.zeros(1, np.uint8)
    begin = begin + (bytes_.take(begin, mode="clip") == 0x22)
    last = bytes_.take(end - 1, mode="clip")
    end = end - ((last == 9) | (last == 13) | (last == 0x22))
    length = np.maximum(end - begin, 0)
    tail = text.words(end - 8)
    points = tail ^ _POINTS
    points = (points - _ONES) & ~points & _HIGH & _ENDS[np.minimum(length, 8)]
    # isolate the lowest set bit, which marks the point; its position is the exponent of the bit as a float
    lowest = points & (~points + np.uint64(1))
    has = points != 0
    fraction = np.where(has, 7 - (((lowest.astype(np.float64).view(np.int64) >> 52) - 1030) >> 3), 0)
    whole = length - fraction - has
    known = (whole >= 0) & (whole <= 16) & (whole + fraction > 0) & (whole + fraction <= _DIGITS)
    whole = np.where(known, whole, 0)
    at = end - fraction - has
    mantissa, sound = _eight(text.words(at - 8), whole)
    known &= sound
    if int(whole.max(initial=0)) > 8:
        more, sound = _eight(text.words(at - 16), whole - 8)
        mantissa += more * np.uint64(100_000_000)
        known &= sound
    if has.any():
        more, sound = _eight(tail, fraction)
        mantissa = mantissa * _POWERS[fraction].astype(np.uint64) + more
        known &= sound
    known &= mantissa < _MOST
    return np.where(known, mantissa, 0).astype(np.int64), np.where(known, fraction, 0), known


def _eight(words: Words, digits: I64) -> tuple[Words, Mask]:
    """Parses the last ``digits`` bytes of each 8-byte word (0 to 8; clipped) as a decimal number.

    Returns:
        The numbers (0 for no digits), and a mask of the words where these bytes are digits.
    """
    mask = _ENDS[np.clip(digits, 0, 8)]
    words = (words & mask) | (_ZEROS & ~mask)
    sound = ((words & _UPPER) | (((words + _SIXES) & _UPPER) >> np.uint64(4))) == _THREES
    words = words - _ZEROS
    words = words * np.uint64(10) + (words >> np.uint64(8))
    words = ((words & _PAIRS) * _HUNDREDS + ((words >> np.uint64(16)) & _PAIRS) * _UNITS) >> np.uint64(32)
    return words, sound


def _parse_slow(data: npt.NDArray[np.uint8], begin: I64, end: I64) -> Numbers:
    """Slow path: parses any decimal numbers, byte by byte, and unusual ones (exponents, many digits) one by one."""
    count = len(begin)
    width = int(min((end - begin).max(initial=0), _WIDEST))
    mantissa, digits, places = (np.zeros(count, np.int64) for _ in range(3))
    point, minus, odd, over = (np.zeros(count, np.bool_) for _ in range(4))
    odd |= end - begin > _WIDEST
    last = len(data) - 1
    for step in range(width):
        offset = begin + step
        character = data[np.minimum(offset, last)]
        character[offset >= end] = 9
        digit = character - np.uint8(48)
        is_digit = digit < 10
        odd |= is_digit & over
        np.copyto(mantissa, mantissa * 10 + digit, where=is_digit)
        digits += is_digit
        places += is_digit & point
        if is_digit.all():
            continue
        is_point = character == 0x2E
        odd |= is_point & (point | over)
        point |= is_point
        is_minus = character == 0x2D
        odd |= is_minus & (minus | point | over | (digits > 0))
        minus |= is_minus
        blank = (character == 9) | (character == 32) | (character == 13) | (character == 0x22)
        over |= blank & ((digits > 0) | point | minus)
        odd |= ~(is_digit | is_point | is_minus | blank)
    odd |= mantissa < 0
    odd |= (digits > _DIGITS) | ((digits == 0) & (point | minus))
    known = (digits > 0) & ~odd
    others, bad = [], []
    for row in np.flatnonzero(odd).tolist():
        text = data[begin[row] : min(end[row], begin[row] + 4 * _LONGEST)].tobytes().strip(_BLANK)
        number = _parse_decimal(text)
        if number is not None:
            others.append((row, number))
        elif text not in _NONE:
            bad.append(row)
    return Numbers(np.where(minus, -mantissa, mantissa), places, known, others, tuple(bad))


def _parse_decimal(text: bytes) -> Decimal | None:
    if not text or len(text) > _LONGEST or b"_" in text:
        return None
    try:
        number = Decimal(text.decode("ascii"))
    except (InvalidOperation, UnicodeDecodeError, ValueError):
        return None
    return number if number.is_finite() and abs(number.adjusted()) < 30 else None


def wholes(values: Sequence[Any], beyond: list[int] | None = None) -> I64:
    """Converts integers, texts of integers, and floats (truncated) to int64; ``INT_MISSING`` for anything else.

    Integers of 64 bits without a sign become negative from 2^63 on, so that such addresses and ids stay distinct.
    ``beyond``: indices of integers outside int64 are appended to it.
    """
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, ValueError, OverflowError):
        # most often some values are null
        if beyond is not None:
            beyond += [
                row for row, each in enumerate(values) if type(each) is int and not INT_MISSING <= each < 1 << 63
            ]
        values = [each if type(each) is int and INT_MISSING <= each < 1 << 63 else _whole(each) for each in values]
        return np.array(values, np.int64)


def _whole(value: Any) -> int:
    if not isinstance(value, (int, float, str)) or (isinstance(value, str) and len(value) > _LONGEST):
        return INT_MISSING
    try:
        found = int(value)
    except (ValueError, OverflowError):
        return INT_MISSING
    return found if INT_MISSING <= found < 1 << 63 else found - (1 << 64) if 0 <= found < 1 << 64 else INT_MISSING


def reals(values: Sequence[Any]) -> F64:
    """Converts numbers and texts of numbers to float64; NaN for anything else."""
    if set(map(type, values)) <= {int, float}:
        try:
            return np.array(values, np.float64)
        except OverflowError:
            pass
    return np.array(list(map(one_real, values)), np.float64)


def one_real(value: Any) -> float:
    """Converts one number or text of a number to a float; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return float("nan")
    try:
        return float(value)
    except (ValueError, OverflowError):
        return float("nan")
