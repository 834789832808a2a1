"""Kernels of all operations: what the reference decodes, what it does not, and what nobody describes."""

from __future__ import annotations

from collections.abc import Callable

from .chips import GDMA, TIU
from .kernel_setting import Setting
from .layouts import encodable
from .ops import OPS, Op
from .program import Program


def zoo(s: Setting) -> Program:
    """Every operation of TIU and GDMA that the chip's reference decoder knows."""
    return _zoo(s, lambda op: s.chip.name not in op.undecodable_on)


def zoo_undecodable(s: Setting) -> Program:
    """Those it does not know, where the chip has registers for them at all."""
    return _zoo(s, lambda op: s.chip.name in op.undecodable_on)


def zoo_unknown(s: Setting) -> Program:
    """Operations without a description of their registers, among others, some in a row."""
    p = s.program("op_zoo")
    for key in ("tensor", *_UNDESCRIBED, "general", *_UNDESCRIBED[:2] * 3, "matrix"):
        p.load((1, 64, 1, 128), key=key)
    p.finish(s.cores, 13)
    return p


#: Operations without a description of their registers.
_UNDESCRIBED = ("compress", "decompress", "randmask", "transfer")


def _zoo(s: Setting, wanted: Callable[[Op], bool]) -> Program:
    p = s.program("op_zoo")
    for op in OPS.values():
        if not wanted(op) or op.key in (*_ZOO_LEFT_OUT, *_UNDESCRIBED) or not encodable(s.chip, op):
            continue
        if op.engine == TIU:
            p.nop(TIU, op.key) if op.system else p.tiu(op.key, (1, 64, 1, 64), k=4)
        elif op.engine == GDMA:
            p.nop(GDMA, op.key) if op.system else p.load((1, 64, 1, 128), key=op.key)
    p.finish(s.cores, 13)
    return p


#: Ends of a command stream have no place inside a kernel; the others are in every kernel anyway.
_ZOO_LEFT_OUT = frozenset({"tiu_end", "dma_end", "tiu_send", "tiu_wait", "dma_send", "dma_wait"})
