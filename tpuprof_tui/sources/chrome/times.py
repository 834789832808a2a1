"""Times of many events at once: their decimal texts of microseconds as integer ns, never by way of binary floats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.formats.decimals import numbers_in

#: Times beyond this many ns either side of zero are none.
MOST_NS: Final = 1 << 62


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


def exact_ns(text: bytes) -> npt.NDArray[np.int64]:
    """Whole ns of microseconds (``text_of_times``); what is finer is rounded half to even.

    Returns:
        int64; missing where a text is no time that a trace can have.
    """
    return numbers_in(text).nanoseconds()
