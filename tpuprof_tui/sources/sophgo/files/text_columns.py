"""Values derived from the text of each row, computed once per distinct text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.lane import Rows


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
