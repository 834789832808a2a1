"""Records and commands as pairing sees them."""

from __future__ import annotations

import numpy as np

from tpuprof_tui.sources.sophgo.read.pairing import UNKNOWN, EngineItems, paired


def items(ids: list[int], key: list[int] | None = None, kind: list[int] | None = None) -> EngineItems:
    return EngineItems(
        np.array(ids, np.int64),
        np.array(key if key is not None else range(len(ids)), np.int64),
        np.array(kind if kind is not None else [UNKNOWN] * len(ids), np.int8),
    )


def pair(records: list[EngineItems], commands: list[EngineItems], *, lapped: bool) -> list[np.ndarray]:
    """The commands alone of records of all engines."""
    return [bound for bound, _ in paired(records, commands, lapped=lapped)]
