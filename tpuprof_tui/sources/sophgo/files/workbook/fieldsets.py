"""Fields of the reference's register text, in its order: by chip family, engine, and kind of command.

A field is the key of a column of the model, a column that the reference writes under another name, or a constant text.
The latter (``Filler``) are in the register text only: no sheet has columns of them.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from tpuprof_tui.model import Lane

#: Register fields of every decoded DMA command, 0 where its layout lacks them (metrics 3.2).
DMA_REGISTERS: Final = ("mask_start_addr_h8", "mask_start_addr_l32")


class Alias(Struct, frozen=True):
    """A column that is written a second time, under another name."""

    name: str
    key: str


class Filler(Struct, frozen=True):
    """A field with the same text in every instruction, which carries no information."""

    name: str
    text: str


Entry = str | Alias | Filler
Entries = tuple[Entry, ...]


class Layout(Struct, frozen=True):
    """Fields of one engine of a chip family.

    Attributes:
        condensed: Fields of commands known by their node only, and of records without a command.
        decoded: Fields of commands with known registers; for transfers these follow the registers.
        after: Fields of decoded TIU commands after the registers.
        zeros: Registers of all decoded transfers, 0 where their layout lacks them.
        memory: Source and destination of decoded system transfers.
        no_format: Data type of decoded transfers without one in their registers.
        unless_rvt: Whether condensed commands of the RVT dispatch have no data format.
    """

    condensed: Entries
    decoded: Entries
    after: Entries = ()
    zeros: tuple[str, ...] = DMA_REGISTERS
    memory: str = "DDR"
    no_format: str = ""
    unless_rvt: bool = False


def layout_of(lane: Lane) -> Layout:
    """Fields of a lane's instructions; the chip family is recognised by the columns of the lane."""
    if lane.kind == "TIU":
        if "conflict_cycles" in lane:
            return _COUNTED_TIU
        return _MODELLED_TIU if "initial_ratio" in lane else _TIU
    if "ar_latency" in lane:
        return _COUNTED_TRANSFER
    return _WIDE_TRANSFER if "gmem_bytes" in lane else TRANSFER


#: Fields of all instructions after their own.
META: Final = ("order", "core", "mode", "kernel", "scope", "batch")

# -- AKS, AKSV (metrics 2.1, 2.3, 3.1, 3.2) -------------------------------------

_TIU: Final = Layout(
    condensed=("type", "name", "start", "end", "command_id", "cycles", "engine_id", "alg_ops", "uarch_ops",
               "alg_cycle", "uarch_rate"),
    decoded=("name", "type", "start", "end", "command_id", "cycles", "engine_id", "alg_ops", "uarch_ops",
             "uarch_rate", "alg_cycle"),
)  # fmt: skip
TRANSFER: Final = Layout(
    condensed=("engine_id", "direction", "from_memory", "to_memory", "data_format", "dma_type", "dma_function", "type",
               "name", "start", "end", "command_id", "dtype", "cycles", "stall", "bytes", "ddr_bandwidth",
               "transactions", "l2_bandwidth", "dst_addr", "src_addr"),
    decoded=("dst_addr", "src_addr", "engine_id", "direction", "from_memory", "to_memory", "type", "name", "start",
             "end", "command_id", "dtype", "cycles", "stall", "bytes", "transactions", "ddr_bandwidth",
             "l2_bandwidth"),
)  # fmt: skip

# -- BM1688, CV84X6 (metrics 2.2, 2.4, 2.5, 3.1, 3.3, 3.4) ------------------------

_DECODED_TIU: Final = ("name", "type", "start", "end", "command_id", "cycles", "engine_id", "alg_ops", "uarch_ops",
                       "alg_cycle", "uarch_rate", "initial_ratio")  # fmt: skip
_POWER: Final = Filler("Sim Power(W)", "0")
_MESSAGES: Final = ("message", "message_count")
#: Bursts, masked writes and unaligned starts, which are never counted.
_BURSTS: Final = tuple(
    Filler(name, "0")
    for name in ("gmem_bl_sum", "gmem_avg_burst_length", "lmem_bl_sum", "lmem_avg_burst_length")
)  # fmt: skip
_MASKED: Final = tuple(
    Filler(name, "0") for name in ("lmem_msk_wr_cnt", "gmem_msk_wr_cnt", "lmem_n32Ba_sa_cnt", "gmem_n32Ba_sa_cnt")
)
_BLANKS: Final = (Filler("funcName", " "), Filler("layer_ID", ""), Filler("index", " "), Filler("Msg Id", " "),
                  Filler("Sd\\Wt Count", " "), Filler("mask_data_format", " "))  # fmt: skip
_GLOBAL: Final = (Alias("gmem_xfer_bytes(B)", "gmem_bytes"), "gmem_bytes")
_LOCAL: Final = (Alias("lmem_xfer_bytes", "lmem_bytes"), "lmem_bytes")

_MODELLED_TIU: Final = Layout(_TIU.condensed, (*_DECODED_TIU, "conflict_ratio", _POWER), _MESSAGES)
_COUNTED_TIU: Final = Layout(
    condensed=("engine_id", "start", "end", "command_id", "cycles", "type", "name", "conflict_cycles",
               "conflict_ratio", "thread", "alg_ops", "uarch_ops", "alg_cycle", "uarch_rate", _POWER),
    decoded=(*_DECODED_TIU, "conflict_cycles", "conflict_ratio", "thread", _POWER),
    after=_MESSAGES,
    unless_rvt=True,
)  # fmt: skip
_WIDE_TRANSFER: Final = Layout(
    condensed=TRANSFER.condensed,
    decoded=("dst_addr", "src_addr", "engine_id", "direction", "from_memory", "to_memory", "type", "name", "start",
             "end", "command_id", "dtype", "cycles", "stall", _GLOBAL[0], "gmem_bandwidth", _GLOBAL[1], "transactions",
             _LOCAL[0], "lmem_bandwidth", _LOCAL[1], "lmem_transactions", "bytes", "ddr_bandwidth", *_BURSTS,
             "l2_bandwidth", *_MASKED, *_BLANKS),
    zeros=(*DMA_REGISTERS, "src_start_addr_h8", "dst_start_addr_h8"),
    memory="LMEM",
    no_format="INT8",
)  # fmt: skip
_COUNTED_TRANSFER: Final = Layout(
    condensed=("engine_id", "start", "end", "command_id", "cycles", "direction", "from_memory", "to_memory",
               "data_format", "dma_type", "dma_function", "type", "name", "dtype", "thread", "ar_latency", "stall",
               "bytes", *_GLOBAL, *_LOCAL, "gmem_bandwidth", "lmem_bandwidth", "ddr_bandwidth", "l2_bandwidth",
               "transactions", "lmem_transactions", *_BURSTS, *_MASKED, "dst_addr", "src_addr", *_BLANKS),
    decoded=("src_addr", "dst_addr", "engine_id", "direction", "from_memory", "to_memory", "type", "name", "start",
             "end", "command_id", "dtype", "cycles", "thread", "ar_latency", "stall", *_GLOBAL, *_LOCAL, "bytes",
             "gmem_bandwidth", "lmem_bandwidth", "ddr_bandwidth", "transactions", "lmem_transactions", *_BURSTS,
             "l2_bandwidth", *_MASKED, *_BLANKS),
    zeros=("src_start_addr_h13", "src_start_addr_l32", "dst_start_addr_h13", "dst_start_addr_l32"),
    memory="LMEM",
    no_format="INT8",
    unless_rvt=True,
)  # fmt: skip

#: Keys of all columns that the published converter has, whether or not it writes them for a chip.
PUBLISHED: Final = frozenset(
    entry.key if isinstance(entry, Alias) else entry
    for layout in (_TIU, TRANSFER, _MODELLED_TIU, _COUNTED_TIU, _WIDE_TRANSFER, _COUNTED_TRANSFER)
    for entry in (*layout.condensed, *layout.decoded, *layout.after, *META)
    if not isinstance(entry, Filler)
)
