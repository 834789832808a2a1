"""Converts decimal texts of microseconds to integer ns, many at once, without binary floats."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.formats.decimals import numbers_in

#: Times of a larger magnitude, in ns, are invalid.
MOST_NS: Final = 1 << 62
_LONGEST: Final = 1 << 10


def text_of_times(texts: Sequence[Any]) -> bytes:
    """Joins JSON texts of numbers, or of strings that hold one, each followed by a comma; results may be concatenated.

    Args:
        texts: Bytes, or objects that convert to bytes.
    """
    joined = b",".join((*texts, b""))
    if joined.count(b",") != len(texts):
        # a text with a comma is no number
        joined = b",".join(b"" if b"," in (text := bytes(each)) else text for each in texts) + b","
    return joined


def is_number(text: bytes) -> bool:
    """Whether a JSON text is a finite number, or a string that holds one: a time that is out of range, not missing."""
    try:
        return len(text) <= _LONGEST and Decimal(text.strip(b' \t\r\n"').decode("ascii")).is_finite()
    except (InvalidOperation, UnicodeDecodeError):
        return False


def exact_ns(text: bytes) -> npt.NDArray[np.int64]:
    """Converts microseconds (joined by `text_of_times`) to whole ns, rounded half to even.

    Returns:
        int64; INT_MISSING for texts that are no valid time.
    """
    return numbers_in(text).nanoseconds()
