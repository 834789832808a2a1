"""NumPy array types used by the reader, and arrays of what follows from the columns of a lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.lane import ALL, Rows

I8 = npt.NDArray[np.int8]
I16 = npt.NDArray[np.int16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
U8 = npt.NDArray[np.uint8]
#: Contents of a file.
Bytes = U8


def id_sections(ids: I64) -> tuple[I64, I64]:
    """First row of each run of growing ids, and the row after its last: counting restarts between them."""
    begin = np.flatnonzero(np.diff(ids, prepend=ids[:1]) <= 0)
    return begin, np.append(begin, len(ids))[1:]


def map_texts(
    profile: Profile, lane: Lane, key: str, rows: Rows, function: Callable[[str], Any], missing: Any = False
) -> npt.NDArray[Any]:
    """``function(text)`` for the text of each row; ``missing`` where there is none."""
    texts = profile.strings[key]
    # the last entry is for codes without a text
    table = np.array([*map(function, texts), missing])
    if key not in lane:
        return np.full(len(lane.take("start", rows)), missing)
    codes = lane.take(key, rows)
    return np.asarray(table[np.where((codes >= 0) & (codes < len(texts)), codes, len(texts))])


def stream_order(lane: Lane, rows: Rows = ALL) -> I64 | None:
    """Places of some rows in stream order; None if they are in that order."""
    order = lane.take("order", rows)
    return None if bool((order[1:] >= order[:-1]).all()) else np.argsort(order, kind="stable")
