"""The kernels of a decode step, as programs of one core.

Loads run one tile ahead of the TIU (two buffers): a load waits for the compute
that last read its buffer, a compute waits for its load.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .chips import CDMA, DDR, FP16, FP32, GDMA, INT8, INT32, L2M, LMEM, SDMA, TIU
from .kernel_setting import Setting
from .ops import OPS
from .program import NOTHING, STATIC, Program
from .streams import COPY_IN, COPY_OUT, RUNTIME
from .zoo import zoo, zoo_undecodable, zoo_unknown


def embedding(s: Setting) -> Program:
    p = s.program("index_select")
    computed = NOTHING
    for _ in range(2 + s.extra):
        p.load((1, 1, 1, 64), INT32, key="general")
        rows = p.load((1, 1, 1, 4096), key="gather", after=_real(computed))
        computed = p.tiu("ar_mul", (1, 64, 1, 64), after=(rows,))
        p.store((1, 1, 1, 4096), after=(computed,))
    p.finish(s.cores, 1)
    return p


def rmsnorm(s: Setting) -> Program:
    p = s.program("rmsnorm")
    p.load((1, 1, 1, 4096))
    free: list[int] = [NOTHING, NOTHING]
    for tile in range(4 + s.extra):
        rows = p.load((1, 4, 1, 4096), after=_real(free[tile % 2]))
        p.tiu("ar_cast", (1, 4, 1, 4096), after=(rows,))
        p.tiu("ar_mul", (1, 4, 1, 4096), FP32)
        p.tiu("pool_avg", (1, 4, 1, 32), FP32, k=128)
        p.tiu("lin_mac", (1, 4, 1, 32), FP32)
        p.tiu("sfu_rsqrt", (1, 4, 1, 1), FP32)
        p.tiu("lane_bc", (1, 64, 1, 16))
        p.tiu("ar_mul", (1, 4, 1, 4096), FP32)
        done = p.tiu("ar_cast", (1, 4, 1, 4096))
        free[tile % 2] = p.store((1, 4, 1, 4096), after=(done,))
    p.finish(s.cores, 2)
    return p


def _matmul(s: Setting, name: str, tiles: int, width: int, quantised: bool) -> Program:
    p = s.program(name)
    first = p.load((1, 1, 16, 4096), key="matrix")
    free: list[int] = [first, first]
    done = first
    for tile in range(tiles + s.extra):
        weights = p.load((1, 1, 4096, width), INT8 if quantised else FP16, _real(free[tile % 2]), "matrix")
        if quantised:
            scales = p.load((1, 64, 1, 4))
            p.tiu("dq0", (1, 64, 1, 512), after=(weights, scales))
        done = p.tiu("mm2_nn", (1, 16, 1, width), k=4096, after=(weights,))
        free[tile % 2] = done
    p.store((1, 16, 1, 768), after=(done,))
    p.finish(s.cores, 3)
    return p


def a16_matmul(s: Setting) -> Program:
    return _matmul(s, "a16_matmul", 10, 64, True)


def matmul(s: Setting) -> Program:
    return _matmul(s, "matmul", 4, 128, False)


def lm_head(s: Setting) -> Program:
    """The widest product of the step: transfers of 4 MiB, tens of microseconds each."""
    p = s.program("lm_head_matmul")
    first = p.load((1, 1, 64, 4096), key="matrix")
    free: list[int] = [first, first]
    for tile in range(3 + s.extra):
        weights = p.load((1, 1, 4096, 512), FP16, (free[tile % 2],), "matrix")
        free[tile % 2] = p.tiu("mm2_nn", (1, 64, 1, 512), k=4096, after=(weights,))
        p.store((1, 64, 1, 512), after=(free[tile % 2],))
    p.finish(s.cores, 3)
    return p


def rope(s: Setting) -> Program:
    p = s.program("rope")
    p.load((1, 1, 1, 2048))
    for _ in range(3 + s.extra):
        rows = p.load((1, 1, 1, 4096), key="tensor_trans")
        p.tiu("ar_mul", (1, 16, 1, 256), after=(rows,))
        p.tiu("ar_mul", (1, 16, 1, 256))
        turned = p.tiu("ar_add", (1, 16, 1, 256))
        p.store((1, 1, 1, 4096), after=(turned,))
    p.finish(s.cores, 4)
    return p


def attention(s: Setting) -> Program:
    p = s.program("llama_attention")
    p.load((1, 1, 16, 128), key="matrix")
    free: list[int] = [NOTHING, NOTHING]
    done = 0
    for block in range(8 + s.extra):
        keys = p.load((1, 16, 16, 128), after=_real(free[block % 2]))
        if s.sdma:
            p.dma("tensor", (1, 1, 64, 128), DDR, DDR, engine=SDMA)
        values = p.load((1, 16, 16, 128), after=_real(free[block % 2]))
        p.tiu("mm2_nt", (1, 16, 1, 256), k=128, after=(keys,))
        p.tiu("ar_mul", (1, 16, 1, 256))
        p.tiu("pool_max", (1, 16, 1, 8), k=32)
        p.tiu("ar_max", (1, 16, 1, 1))
        p.tiu("ar_sub", (1, 16, 1, 256), FP32)
        p.tiu("sfu_taylor", (1, 16, 1, 256), FP32, k=8)
        p.tiu("pool_avg", (1, 16, 1, 8), FP32, k=32)
        free[block % 2] = p.tiu("mm2_nn", (1, 16, 1, 128), k=256, after=(values,))
        p.tiu("ar_mul", (1, 16, 1, 128), FP32)
        done = p.tiu("ar_add", (1, 16, 1, 128), FP32)
        if block % 4 == 3:
            p.handover(GDMA, TIU, 7)
    if s.sdma:
        p.send(SDMA, 12)
        p.wait(SDMA, done, 12)
    done = p.tiu("ar_div", (1, 16, 4, 128), FP32, after=(done,))
    p.store((1, 16, 4, 128), after=(done,))
    p.finish(s.cores, 5)
    return p


def mlp(s: Setting) -> Program:
    p = s.program("llama_mlp")
    p.load((1, 1, 16, 4096), key="matrix")
    free: list[int] = [NOTHING, NOTHING]
    done = 0
    for tile in range(8 + s.extra):
        gate = p.load((1, 1, 4096, 64), INT8, _real(free[tile % 2]), "matrix")
        up = p.load((1, 1, 4096, 64), INT8, _real(free[tile % 2]), "matrix")
        p.tiu("dq0", (1, 64, 1, 512), after=(gate,))
        p.tiu("mm2_nn", (1, 16, 1, 64), k=4096)
        p.tiu("sfu_taylor", (1, 16, 1, 64), k=8)
        p.tiu("ar_div", (1, 16, 1, 64))
        p.tiu("dq0", (1, 64, 1, 512), after=(up,))
        p.tiu("mm2_nn", (1, 16, 1, 64), k=4096)
        done = p.tiu("ar_mul", (1, 16, 1, 64))
        free[tile % 2] = done
    spread = p.dma("tensor", (1, 16, 1, 1024), LMEM, L2M, after=(done,))
    p.dma("tensor", (1, 16, 1, 1024), L2M, LMEM, after=(spread,))
    down = p.load((1, 1, 1024, 256), INT8, key="matrix")
    done = p.tiu("mm2_nn", (1, 16, 1, 256), k=1024, after=(down,))
    p.store((1, 1, 16, 256), after=(done,), key="matrix")
    p.finish(s.cores, 6)
    return p


def all_reduce(s: Setting) -> Program:
    p = s.program("all_reduce")
    done = NOTHING
    for _ in range(3 + s.extra):
        mine = p.load((1, 16, 1, 1024))
        other = p.dma("tensor", (1, 16, 1, 1024), L2M, LMEM)
        done = p.tiu("ar_add", (1, 16, 1, 1024), after=(mine, other))
        p.store((1, 16, 1, 1024), after=(done,))
    for slot in range(s.slots):
        _cdma_launch(p, slot, s, done)
    p.finish(s.cores, 7)
    return p


def _cdma_launch(p: Program, slot: int, s: Setting, ready: int) -> None:
    """Sends and receives on one port, both directions at once."""
    p.nop(CDMA, "cdma_tx_wait", slot, until=ready)
    flavour = s.flavour + (s.slot_flavours * slot)
    pairs = s.cdma_pairs or 6 + flavour % 4
    for pair in range(pairs):
        p.cdma("cdma_write" if flavour % 3 == 2 else "cdma_send", 6000 + 977 * ((pair + flavour) % 7), slot)
        p.cdma("cdma_read" if flavour % 3 == 2 else "cdma_receive", 4200 + 1409 * ((pair + flavour) % 9), slot)
    p.nop(CDMA, "cdma_tx_send", slot)
    p.nop(CDMA, "cdma_rx_wait", slot)


def cdma_zoo(s: Setting) -> Program:
    """Every operation of the CDMA ports."""
    p = s.program("cdma_zoo")
    rows = p.load((1, 16, 1, 1024))
    done = p.tiu("ar_add", (1, 16, 1, 1024), after=(rows,))
    for slot in range(s.slots):
        p.nop(CDMA, "cdma_tx_wait", slot, until=done)
        for number, op in enumerate(op for op in OPS.values() if op.engine == CDMA and op.key not in _CDMA_EDGES):
            if op.system:
                p.nop(CDMA, op.key, slot)
            else:
                p.cdma(op.key, 4000 + 512 * number + 64 * s.flavour, slot)
        p.nop(CDMA, "cdma_rx_wait", slot)
    p.finish(s.cores, 7)
    return p


#: An end has no place inside a kernel; the waits open and close it.
_CDMA_EDGES = frozenset(("cdma_end", "cdma_tx_wait", "cdma_rx_wait"))


def sampling(s: Setting) -> Program:
    p = s.program("topp_sampling")
    for _ in range(2 + s.extra):
        logits = p.load((1, 64, 1, 512))
        p.tiu("ar_max", (1, 64, 1, 512), after=(logits,))
        p.tiu("cmp_sel_gt", (1, 64, 1, 512))
        p.tiu("sfu_taylor", (1, 64, 1, 512), FP32, k=8)
        p.tiu("pool_avg", (1, 64, 1, 16), FP32, k=32)
        done = p.tiu("ar_select", (1, 64, 1, 512))
        p.store((1, 64, 1, 16), INT32, after=(done,))
    p.finish(s.cores, 8)
    return p


def prefill(s: Setting) -> Program:
    """A long kernel without id reset inside: ids grow as far as asked."""
    p = s.program("flash_attention_prefill")
    free: list[int] = [NOTHING, NOTHING]
    for tile in range(s.prefill_tiles):
        rows = p.load((1, 16, 16, 128), after=_real(free[tile % 2]))
        p.tiu("mm2_nt", (1, 16, 1, 256), k=128, after=(rows,))
        p.tiu("ar_max", (1, 16, 1, 256))
        p.tiu("ar_sub", (1, 16, 1, 256))
        p.tiu("sfu_taylor", (1, 16, 1, 256), FP32, k=8)
        free[tile % 2] = p.tiu("mm2_nn", (1, 16, 1, 128), k=256)
    p.finish(s.cores, 9)
    return p


def exchange(s: Setting) -> Program:
    """Three engines that wait for one another by messages alone."""
    p = s.program("exchange")
    for tile in range(4 + s.extra):
        rows = p.load((1, 16, 1, 1024))
        p.handover(GDMA, SDMA, 7, (rows,))
        spread = p.dma("tensor", (1, 1, 64, 128), DDR, DDR, engine=SDMA)
        p.handover(SDMA, TIU, 8, (spread,))
        done = p.tiu("ar_add", (1, 16, 1, 1024), after=(rows,))
        if tile % 2:
            p.handover(TIU, SDMA, 9, (done,))
            p.dma("tensor", (1, 1, 64, 64), DDR, DDR, engine=SDMA)
        p.handover(SDMA, GDMA, 10)
        p.store((1, 16, 1, 1024), after=(done,))
    p.finish(s.cores, 11)
    return p


def sync_only(s: Setting) -> Program:
    """A kernel of nothing but synchronisation."""
    p = s.program("barrier")
    p.handover(GDMA, TIU, 10)
    p.finish(s.cores, 10)
    return p


def subnet(s: Setting) -> Program:
    """Part of a compiled model: kernels without nodes, closed by an end command on each engine."""
    p = Program("", s.chip, STATIC, open_end=True)
    for kernel in (rmsnorm, a16_matmul, rope, attention, mlp):
        kernel(replace(s, shared=p))
    for slot in range(s.slots):
        _cdma_launch(p, slot, s, len(p.rows) - 1)
        p.nop(CDMA, "cdma_end", slot)
    p.nop(TIU, "tiu_end")
    for engine in (GDMA, SDMA) if s.sdma else (GDMA,):
        p.nop(engine, "dma_end")
    return p


def compiled(s: Setting) -> Program:
    """A compiled model: SDMA has nothing to do but to end, where it runs at all."""
    p = Program("", s.chip, STATIC, open_end=True)
    for kernel in (rmsnorm, rope, matmul):
        kernel(replace(s, shared=p, sdma=False))
    p.nop(TIU, "tiu_end")
    for engine in (GDMA, SDMA) if s.sdma else (GDMA,):
        p.nop(engine, "dma_end")
    return p


def launch_pair(s: Setting, first_id: int = 0) -> Program:
    """A send and a wait on each engine, which the runtime issues before a launch of a compiled model."""
    p = Program("", s.chip, first_id=(first_id, first_id, first_id, 1))
    for key in ("send", "wait"):
        p.nop(GDMA, f"dma_{key}")
        p.nop(SDMA, f"dma_{key}")
        p.nop(TIU, f"tiu_{key}")
    return p


def first_pair(s: Setting) -> Program:
    """The same before the first launch: ids go on from the profiler's opening pair."""
    return launch_pair(s, 2)


def runtime_pair(s: Setting) -> Program:
    """The same on hardware, which does not log it."""
    p = launch_pair(s)
    p.infra = RUNTIME
    return p


def measured_model(s: Setting) -> Program:
    """A compiled model on hardware: the end of an SDMA that has nothing to do is the runtime's."""
    p = compiled(replace(s, sdma=True))
    p.rows[-1].infra = RUNTIME
    return p


def copy_in(s: Setting) -> Program:
    """The runtime copies an input before a launch."""
    p = Program("", s.chip, infra=COPY_IN)
    p.dma("tensor", (1, 3, 128, 256), DDR, DDR)
    return p


def copy_out(s: Setting) -> Program:
    """The runtime copies two outputs behind a launch."""
    p = Program("", s.chip, infra=COPY_OUT)
    for width in (896, 56):
        p.dma("tensor", (1, 1, 32, width), DDR, DDR)
    return p


def plain_subnet(s: Setting) -> Program:
    """Part of a compiled model of operations that every chip has."""
    p = Program("", s.chip, STATIC, open_end=True)
    for kernel in (rmsnorm, a16_matmul, rope, matmul):
        kernel(replace(s, shared=p))
    p.nop(TIU, "tiu_end")
    p.nop(GDMA, "dma_end")
    return p


#: Length of the series that approximates an exponential.
_TERMS = 6


def _tiny(name: str, key: str, loads: int) -> Callable[[Setting], Program]:
    def build(s: Setting) -> Program:
        p = s.program(name)
        rows = [p.load((1, 16, 1, 256 << number)) for number in range(loads)]
        done = p.tiu(key, (1, 16, 1, 256), k=_TERMS if key.startswith("sfu") else 0, after=rows)
        p.store((1, 16, 1, 256), after=(done,))
        p.finish(s.cores, 11)
        return p

    return build


def _real(row: int) -> tuple[int, ...]:
    return () if row < 0 else (row,)


KERNELS: dict[str, Callable[[Setting], Program]] = {
    "embedding": embedding,
    "rmsnorm": rmsnorm,
    "a16_matmul": a16_matmul,
    "rope": rope,
    "attention": attention,
    "matmul": matmul,
    "lm_head": lm_head,
    "all_reduce": all_reduce,
    "cdma_zoo": cdma_zoo,
    "mlp": mlp,
    "sampling": sampling,
    "prefill": prefill,
    "exchange": exchange,
    "sync_only": sync_only,
    "subnet": subnet,
    "plain_subnet": plain_subnet,
    "compiled": compiled,
    "launch_pair": launch_pair,
    "first_pair": first_pair,
    "runtime_pair": runtime_pair,
    "measured_model": measured_model,
    "copy_in": copy_in,
    "copy_out": copy_out,
    "zoo": zoo,
    "zoo_undecodable": zoo_undecodable,
    "zoo_unknown": zoo_unknown,
    "tiny_add": _tiny("elementwise_add", "ar_add", 2),
    "tiny_mul": _tiny("elementwise_mul", "ar_mul", 2),
    "tiny_cast": _tiny("cast", "ar_cast", 1),
    "tiny_exp": _tiny("exp", "sfu_taylor4x", 1),
    "tiny_copy": _tiny("copy", "ar_copy", 1),
}

LAYER: tuple[str, ...] = (
    "rmsnorm", "a16_matmul", "rope", "attention", "matmul", "all_reduce", "rmsnorm", "mlp", "all_reduce",
)  # fmt: skip
TINY: tuple[str, ...] = ("tiny_add", "tiny_cast", "tiny_mul", "tiny_copy", "tiny_exp", "tiny_add")
