"""Operation counts and believable durations.

Counts follow the published operation model of AKS and AKSV; durations are of
our own making: what the count allows, times an efficiency, plus a start-up.
"""

from __future__ import annotations

from .chips import CDMA, DDR, L2M, SDMA, Chip
from .ops import Op

#: Vector elements per lane and cycle, by data type code.
_VECTOR = (64, 32, 16, 32, 16, 32, 128, 64)
#: Matrix multiply-adds per lane and cycle, by data type code.
_CUBE = (64, 32, 1, 32, 1, 32, 128, 64)

_PER_ELEMENT: dict[str, int] = {
    "ar_div": 5,
    "rq0": 3,
    "dq0": 3,
    "lin_mac": 2,
    "lin_square_sum": 2,
    "cmp_sel_gt": 2,
    "sfu_normalize": 1,
    "sfu_rsqrt": 30,
}
_PLAIN_LAYOUTS = frozenset({"sAR", "sRQ&sDQ", "sLIN", "sCMP", "sCW&sBC", "sSG", "sSGL"})


def algorithmic_ops(op: Op, shape: tuple[int, int, int, int], k: int) -> int:
    """Operations the command stands for; -1 where no plain formula exists.

    ``k`` is the inner length of a matrix product, the kernel area of a pooling,
    the table length of a Taylor series, the products per result of a convolution.
    """
    n, c, h, w = shape
    elements = n * c * h * w
    if op.system or op.layout == "SYS_TR_ACC":
        return 1
    if op.key in ("mm2_nn", "mm2_nt"):
        return 2 * c * w * k
    if op.key in ("pool_avg", "pool_max", "depthwise"):
        return elements * (2 * k - 1)
    if op.key in ("sfu_taylor", "sfu_taylor4x"):
        return elements * k
    if op.key == "conv":
        return elements * 2 * k
    if op.key in _PER_ELEMENT or op.layout in _PLAIN_LAYOUTS:
        return elements * _PER_ELEMENT.get(op.key, 1)
    return -1


def tiu_cycles(op: Op, shape: tuple[int, int, int, int], k: int, dtype: int) -> int:
    """A typical duration in cycles."""
    work = max(algorithmic_ops(op, shape, k), shape[1] * shape[2] * shape[3])
    if op.layout in ("sMM2", "sMM", "sCONV"):
        return 56 + int(work / (_CUBE[dtype] * 4 * 64 * 2 * 0.55))
    busy_lanes = min(64, max(shape[1], 1))
    return 25 + int(work / (_VECTOR[dtype] * busy_lanes * 0.7))


def transfer_ns(engine: int, chip: Chip, size: int, src: int, dst: int) -> int:
    """The shortest duration of a transfer; never above the peak bandwidth."""
    if engine == CDMA:
        return 480 + int(size / (0.85 * chip.cdma_gbps))
    if engine == SDMA:
        return 160 + int(size / (0.40 * chip.ddr_gbps))
    if DDR in (src, dst):
        return 150 + int(size / (0.90 * chip.ddr_gbps))
    if L2M in (src, dst):
        return 90 + int(size / (0.90 * chip.l2_gbps))
    return 60 + int(size / (1.4 * chip.l2_gbps))
