"""Records and commands as pairing sees them."""

from __future__ import annotations

import numpy as np

from tpuprof_tui.sources.sophgo.read.pairing.pairing import UNKNOWN, Side


def side(ids: list[int], key: list[int] | None = None, kind: list[int] | None = None) -> Side:
    return Side(
        np.array(ids, np.int64),
        np.array(key if key is not None else range(len(ids)), np.int64),
        np.array(kind if kind is not None else [UNKNOWN] * len(ids), np.int8),
    )
