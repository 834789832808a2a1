"""Indices of the instruction generator that RVT nodes of CV84X6 hold: a category and a variant of it."""

from __future__ import annotations

from .chips import LMEM
from .program import Row

#: By operation; of transfers by operation and whether they load.
_INDICES: dict[str | tuple[str, bool], tuple[int, int]] = {
    ("tensor", True): (7, 2), ("tensor", False): (7, 7), ("tensor_trans", True): (7, 4),
    ("matrix", True): (3, 0), ("matrix", False): (3, 1), ("gather", True): (0, 1), ("general", True): (1, 1),
    "dma_send": (13, 1), "dma_wait": (13, 2), "tiu_send": (24, 1), "tiu_wait": (24, 2),
    "ar_mul": (8, 18), "ar_add": (8, 13), "ar_sub": (8, 36), "ar_cast": (8, 8), "ar_copy": (8, 7), "ar_max": (8, 16),
    "ar_div": (8, 14), "dq0": (19, 0), "mm2_nn": (15, 4), "mm2_nt": (15, 5), "lin_mac": (14, 1), "pool_avg": (16, 3),
    "pool_max": (16, 4), "sfu_rsqrt": (20, 3), "sfu_taylor": (20, 4), "lane_bc": (12, 0),
}  # fmt: skip


def generator_index(row: Row) -> tuple[int, int]:
    """Category and variant of a command."""
    found = _INDICES.get(row.op.key)
    return _INDICES[row.op.key, row.dst == LMEM] if found is None else found
