"""The schema of columns: one table from which header, cells, files, filters and help are derived.

Names in files are those of the published converter, to the letter. Sources "metrics n" and "pipeline n" are the
sections of the capture format's description.
"""

from __future__ import annotations

from typing import Final

from .columns import Column
from .counters import COUNTERS

_DMA: Final = ("GDMA", "SDMA", "CDMA")
_TIU: Final = ("TIU",)
_NEEDS_COMMANDS: Final = "mode 1"
_NEEDS_REGISTERS: Final = "mode 2"

COLUMNS: Final[tuple[Column, ...]] = (
    Column("engine", "Engine", "engine", "text", width=6, shown=True, aliases=("e",),
           help="Engine that ran the instruction."),
    Column("core", "Core", "Core Id", width=4, shown=True, aliases=("c",),
           help="Core that ran it; for CDMA the core that submitted it."),
    Column("port", "Port", "Port", width=4, engines=("CDMA",), help="CDMA port."),
    Column("order", "Idx", "Global Idx", width=7, shown=True, aliases=("idx", "global_idx"),
           help="Place in the stream of its engine, from 0."),
    Column("command_id", "Cmd Id", "Cmd Id", width=7, aliases=("id", "cmd"),
           help="Command id, counted from 1 since the engine's last id reset.", source="metrics 1"),
    Column("name", "Function", "Function Name", "text", width=18, shown=True, needs=_NEEDS_COMMANDS,
           placeholder="unknown", aliases=("function", "op"), help="Operation of the instruction."),
    Column("type", "Type", "Function Type", "text", width=14, needs=_NEEDS_COMMANDS, placeholder="unknown",
           aliases=("function_type",), help="Family of the operation."),
    Column("kernel", "Kernel function", "kernel_func", "text", width=24, shown=True, needs=_NEEDS_COMMANDS,
           aliases=("kernel_func", "k"), help="Kernel function whose launch issued it."),
    Column("scope", "Launch", "func_scope_id", width=6, needs=_NEEDS_COMMANDS, aliases=("launch", "func_scope_id"),
           help="Number of the kernel function launch, over all cores."),
    Column("batch", "Batch", "batch_launch", width=6, needs=_NEEDS_COMMANDS, aliases=("batch_launch",),
           help="Batch launch index."),
    Column("mode", "Mode", "mode", "text", width=4, needs=_NEEDS_COMMANDS,
           help="How the command was issued: TDI, RVT or DES (a pre-built block)."),
    Column("start", "Start", "Start Time(ns)", unit="ns", width=13, shown=True, group="time",
           help="Start on the common time line of all cores.", source="pipeline 10"),
    Column("end", "End", "End Time(ns)", unit="ns", width=13, group="time",
           help="End on the common time line of all cores.", source="pipeline 10"),
    Column("duration", "Duration", "", unit="ns", width=11, shown=True, group="time", aliases=("dur", "d"),
           help="End minus start."),
    Column("cycles", "Cycles", "Asic Cycle", unit="cycles", width=9, shown=True, group="time",
           aliases=("asic_cycle", "cyc"), help="Cycles of the engine's own clock, both ends included; exact.",
           source="pipeline 4"),
    Column("direction", "Direction", "Direction", "text", width=11, shown=True, engines=_DMA, placeholder="DDR->DDR",
           needs=_NEEDS_COMMANDS, group="transfer", aliases=("dir",), help="From which memory to which."),
    Column("dtype", "Data type", "Data Type", "text", width=9, shown=True, engines=_DMA, placeholder="INT8",
           needs=_NEEDS_COMMANDS, group="transfer", aliases=("data_type", "dt"), help="Element format."),
    Column("bytes", "Bytes", "DMA data size(B)", unit="B", width=11, shown=True, engines=_DMA, group="transfer",
           aliases=("size",), help="Bytes moved, counted by the hardware.", source="metrics 2.3"),
    Column("ddr_bandwidth", "DDR BW", "DDR Bandwidth(GB/s)", "float", "GB/s", width=8, shown=True, engines=_DMA,
           placeholder=0, decimals=4, group="transfer", aliases=("ddr_bw",),
           help="Bytes over duration; from condensed commands approximate (any direction counts as DDR).",
           source="metrics 2.3, 3.2"),
    Column("l2_bandwidth", "L2M BW", "L2M Bandwidth(GB/s)", "float", "GB/s", width=8, engines=_DMA, placeholder=0,
           decimals=4, needs=_NEEDS_REGISTERS, group="transfer", aliases=("l2_bw",),
           help="Bytes over duration of moves that touch L2 memory and not DDR.", source="metrics 3.2"),
    Column("stall", "Stall", "Stall Cycle", unit="cycles", width=8, engines=_DMA, group="transfer", placeholder=0,
           aliases=("stall_cycle",), help="Cycles stalled on the local memory side.", source="metrics 2.3"),
    Column("transactions", "Xacts", "gmem_xact_cnt", width=8, engines=_DMA, group="transfer", aliases=("xact",),
           help="Handshakes with global memory.", source="metrics 2.3"),
    Column("src_addr", "Src addr", "src_start_addr", "hex", width=14, engines=_DMA, placeholder=0,
           needs=_NEEDS_REGISTERS, group="transfer", help="Start address of the source.", source="metrics 3.2"),
    Column("dst_addr", "Dst addr", "dst_start_addr", "hex", width=14, engines=_DMA, placeholder=0,
           needs=_NEEDS_REGISTERS, group="transfer", help="Start address of the destination.", source="metrics 3.2"),
    Column("alg_ops", "Alg ops", "Alg Ops", unit="ops", width=12, engines=_TIU, placeholder=1,
           needs=_NEEDS_REGISTERS, group="operation", aliases=("ops",),
           help="Operations the algorithm asks for.", source="metrics 4"),
    Column("uarch_ops", "uArch ops", "uArch Ops", unit="ops", width=12, engines=_TIU, placeholder=1,
           needs=_NEEDS_REGISTERS, group="operation",
           help="Operations the hardware performs, alignment to its lanes included.", source="metrics 4"),
    Column("alg_cycle", "Alg cycles", "Alg Cycle", unit="cycles", width=10, engines=_TIU, placeholder=0,
           needs=_NEEDS_REGISTERS, group="operation", help="Cycles the algorithm needs at peak rate.",
           source="metrics 4"),
    Column("uarch_rate", "uArch rate", "uArch Rate", "percent", "%", width=10, shown=True, engines=_TIU,
           placeholder="0.0%", decimals=1, needs=_NEEDS_REGISTERS, group="operation", aliases=("rate", "uarch"),
           help="Alg ops over uArch ops: the share of the hardware's work that the algorithm asked for.",
           source="metrics 3.1"),
    Column("engine_id", "Engine Id", "Engine Id", width=9, group="codes",
           help="0 TIU, 1 GDMA, 3 SDMA, 4 CDMA.", source="metrics 1"),
    Column("from_memory", "From", "from_addr", "text", width=6, engines=_DMA, placeholder="DDR",
           needs=_NEEDS_COMMANDS, group="codes", help="Memory read from."),
    Column("to_memory", "To", "to_addr", "text", width=6, engines=_DMA, placeholder="DDR", needs=_NEEDS_COMMANDS,
           group="codes", help="Memory written to."),
    Column("data_format", "Format", "src_data_format", width=6, engines=_DMA, placeholder=0, needs=_NEEDS_COMMANDS,
           group="codes", help="Code of the element format."),
    Column("dma_type", "Type code", "cmd_type", width=9, engines=_DMA, placeholder=31, needs=_NEEDS_COMMANDS,
           group="codes", help="Type code of the command."),
    Column("dma_function", "Function code", "cmd_special_function", width=13, engines=_DMA, placeholder=0,
           needs=_NEEDS_COMMANDS, group="codes", help="Function code of the command."),
    Column("node_type", "Node", "des_type", width=5, engines=_TIU, placeholder=0, needs=_NEEDS_COMMANDS,
           group="codes", help="Type of the command's node."),
    Column("node_engine", "Node engine", "des_engine", width=11, engines=_TIU, placeholder=0,
           needs=_NEEDS_COMMANDS, group="codes", help="Engine code of the command's node."),
    Column("tiu_type", "Type code", "des_tsk_typ", width=9, engines=_TIU, placeholder=31, needs=_NEEDS_COMMANDS,
           group="codes", help="Type code of the command."),
    Column("tiu_function", "Function code", "des_tsk_eu_typ", width=13, engines=_TIU, placeholder=0,
           needs=_NEEDS_COMMANDS, group="codes", help="Function code of the command."),
    Column("node_extra", "Extra bits", "extra_info", width=10, engines=_TIU, placeholder=0, needs=_NEEDS_COMMANDS,
           group="codes", help="The node's twelve extra bits."),
    Column("precision", "Precision", "des_opt_res0_prec", width=9, engines=_TIU, needs=_NEEDS_COMMANDS,
           group="codes", help="Code of the result's element format."),
    Column("dependency", "Dependency", "", "hex", width=10, needs=_NEEDS_REGISTERS, group="synchronisation",
           aliases=("cmd_id_dep",), help="The dependency register as it is: an id and bits that say whose it is."),
    Column("depends_on", "Depends on", "", width=10, engines=("TIU", "GDMA"), needs=_NEEDS_REGISTERS,
           group="synchronisation",
           help="Cmd Id of the other engine's command (GDMA's of TIU, TIU's of GDMA) that must retire first; 0: none."),
    Column("message", "Message", "", width=8, needs=_NEEDS_REGISTERS, group="synchronisation", aliases=("msg",),
           help="Message that a send or wait names."),
    Column("message_count", "Count", "", width=6, needs=_NEEDS_REGISTERS, group="synchronisation",
           help="Of a wait: how many sends of its message release it; of a send: how many waits its message serves."),
    *COUNTERS,
)  # fmt: skip

#: The same, by key.
SCHEMA: Final[dict[str, Column]] = {column.key: column for column in COLUMNS}


def column(key: str) -> Column:
    """The column with this key; KeyError without one."""
    return SCHEMA[key]
