"""What follows from the text of each row, worked out once for each text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.lane import Rows


def by_text(
    profile: Profile, lane: Lane, key: str, rows: Rows, told: Callable[[str], Any], missing: Any = False
) -> npt.NDArray[Any]:
    """What ``told`` says of the text of each of some rows; ``missing`` where there is none."""
    texts = profile.strings[key]
    # the last place is that of codes without a text
    table = np.array([*map(told, texts), missing])
    if key not in lane:
        return np.full(len(lane.take("start", rows)), missing)
    codes = lane.take(key, rows)
    return np.asarray(table[np.where((codes >= 0) & (codes < len(texts)), codes, len(texts))])
