"""Numbers of a JSON file as the text they are written in: microseconds become integers without passing a float."""

from __future__ import annotations

import re
from decimal import Context, Decimal
from typing import Final

#: Parts of a microsecond that times are held in while they are added up.
PER_MICROSECOND: Final = 10**9
PER_NANOSECOND: Final = 10**6
_DIGITS: Final = 9
#: Times beyond this many ns either side of zero are none.
MOST_NS: Final = 1 << 62
_LONGEST: Final = 64
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_EXACT: Final = Context(prec=200)


class Number(str):
    """The text of a number in a JSON file."""

    __slots__ = ()


def femtoseconds(value: object) -> int | None:
    """A time written in microseconds, as whole femtoseconds; digits beyond are cut off.

    Args:
        value: A ``Number``, or a string that holds one.

    Returns:
        The time; None where the value is no number, or no time that a trace can have.
    """
    if not isinstance(value, str) or len(value) > _LONGEST:
        return None
    whole, _, part = value.partition(".")
    if value.isascii() and whole.isdecimal() and (part.isdecimal() or not part):
        found = int(whole) * PER_MICROSECOND + int(part[:_DIGITS].ljust(_DIGITS, "0"))
    elif _NUMBER.fullmatch(value):
        # scaling is exact: the exponent has three digits at most
        found = int(Decimal(value).scaleb(_DIGITS, _EXACT)) if _magnitude(value) < _LONGEST else MOST_NS * 10**9
    else:
        return None
    return found if abs(found) < MOST_NS * PER_NANOSECOND else None


def nanoseconds(femto: int) -> int:
    """The integer part of a time in ns."""
    return femto // PER_NANOSECOND if femto >= 0 else -(-femto // PER_NANOSECOND)


def _magnitude(text: str) -> int:
    return Decimal(text).adjusted()
