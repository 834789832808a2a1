"""The columns of these captures: one table from which header, cells, files, filters and help are derived.

Names in files are those of the published converter, to the letter. Sources "metrics n" and "pipeline n" are the
sections of the capture format's description.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from tpuprof_tui.model import columns
from tpuprof_tui.model.vocabulary import DETAIL, NAMES


class Column(columns.Column, frozen=True):
    """A column whose name in files is exactly that of the published converter."""

    #: Value written to files where it is missing and the converter writes something.
    placeholder: str | int | float | None = None


_CORE_DMA: Final = ("GDMA", "SDMA")

#: Key, title, unit, help.
_Entry = tuple[str, str, str, str]

#: Counters of each layout of records, as entries; ``port_phases``, ``wide_interfaces``: name in the layout, title, and
#: what it is of phases of a CDMA command, and of interfaces of the wide DMA record.
_COUNTERS: Final[dict[str, list[Any]]] = json.loads(
    Path(__file__).with_name("chips").joinpath("common", "counters.json").read_text(encoding="utf-8")
)

_WIDE_BYTES: Final = (("aw", "AW", "write addresses"), ("wr", "wr", "writes"), ("ar", "AR", "read addresses"))
_WIDE_DIRECTIONS: Final = (("wr", "writes"), ("rd", "reads"))


def _columns(entries: Iterable[_Entry], engines: tuple[str, ...]) -> list[Column]:
    return [
        Column(key, title, unit=unit, width=max(10, len(title)), lanes=engines, group=columns.COUNTERS, help=text,
               source="capture 5")
        for key, title, unit, text in entries
    ]  # fmt: skip


def _phases(phases: Iterable[tuple[str, str, str]]) -> list[_Entry]:
    return [
        (f"{name}_{end}", f"{title} {word}", "cycles", f"Clock count when {noun} {verb}; 32 bits, wraps.")
        for name, title, noun in phases
        for end, word, verb in (("st", "start", "began"), ("end", "end", "ended"))
    ]


def _wide() -> list[_Entry]:
    entries: list[_Entry] = [
        (f"{interface}_{part}_bytes", f"{title} {word}", "B", f"Bytes of {noun} at {where}.")
        for interface, title, where in _COUNTERS["wide_interfaces"]
        for part, word, noun in _WIDE_BYTES
    ]
    for kind, word, noun in (("valid", "shakes", "Handshakes"), ("stall", "stall", "Stalls")):
        entries += [
            (f"{interface}_{way}_{kind}_bytes", f"{title} {way} {word}", "", f"{noun} of {nouns} at {where}.")
            for interface, title, where in _COUNTERS["wide_interfaces"]
            for way, nouns in _WIDE_DIRECTIONS
        ]
    parts = {"axi": ("aw", "ar", "wr", "rd"), "gif": ("ar", "wr", "rd")}
    entries += _phases(
        (f"{interface}_{part}", f"{title} {part}", f"{part.upper()} at {where}")
        for interface, title, where in _COUNTERS["wide_interfaces"]
        for part in parts[interface[:3]]
    )
    return entries


COUNTERS: Final[tuple[Column, ...]] = (
    *_columns(_COUNTERS["tiu"], ("TIU",)),
    *_columns([("thread_id", "Thread", "", "Issuing thread.")], ("TIU", *_CORE_DMA, "CDMA")),
    *_columns([("bank_conflict", "Bank conflict", "cycles", "Cycles lost to bank conflicts.")], ("TIU",)),
    *_columns(_COUNTERS["transfer"], _CORE_DMA),
    *_columns(_wide(), _CORE_DMA),
    *_columns(_COUNTERS["port"], ("CDMA",)),
    *_columns(_phases(_COUNTERS["port_phases"]), ("CDMA",)),
)
"""Columns of all counters of all record layouts, in the order of the records."""


_DMA: Final = ("GDMA", "SDMA", "CDMA")
_COPIED: Final = (*_DMA, "COPY")
_TIU: Final = ("TIU",)

_transfer = partial(Column, lanes=_DMA, group="transfer")
_operation = partial(Column, lanes=_TIU, group="operation")
_headroom = partial(Column, group="headroom")
_dma_code = partial(Column, lanes=_DMA, needs=NAMES, group="codes")
_tiu_code = partial(Column, lanes=_TIU, needs=NAMES, group="codes")
_waits = partial(Column, needs=DETAIL, group="synchronisation")

COLUMNS: Final[tuple[Column, ...]] = (
    Column("engine", "Engine", "engine", "text", width=6, shown=True, aliases=("e",),
           help="Engine that ran the instruction."),
    Column("core", "Core", "Core Id", width=4, shown=True, aliases=("c",),
           help="Core that ran it; for CDMA the core that submitted it."),
    Column("port", "Port", "Port", width=4, shown=True, lanes=("CDMA",), help="CDMA port."),
    Column("order", "Idx", "Global Idx", width=7, shown=True, aliases=("idx", "global_idx"),
           help="Place in the stream of its engine, from 0."),
    Column("command_id", "Cmd Id", "Cmd Id", width=7, aliases=("id", "cmd"),
           help="Command id, counted from 1 since the engine's last id reset.", source="metrics 1"),
    Column("name", "Function", "Function Name", "text", width=18, shown=True, needs=NAMES,
           placeholder="unknown", aliases=("function", "op"), help="Operation of the instruction."),
    Column("type", "Type", "Function Type", "text", width=14, needs=NAMES, placeholder="unknown",
           aliases=("function_type",), help="Family of the operation."),
    Column("kernel", "Kernel function", "kernel_func", "text", width=24, shown=True, needs=NAMES,
           aliases=("kernel_func", "k"), help="Kernel function whose launch issued it."),
    Column("scope", "Launch", "func_scope_id", width=6, needs=NAMES, aliases=("launch", "func_scope_id"),
           help="Number of the kernel function launch, over all cores."),
    Column("batch", "Batch", "batch_launch", width=6, needs=NAMES, aliases=("batch_launch",),
           help="Batch launch index."),
    Column("mode", "Mode", "mode", "text", width=4, needs=NAMES,
           help="How the command was issued: TDI, RVT or DES (a pre-built block)."),
    Column("start", "Start", "Start Time(ns)", unit="ns", width=13, shown=True, group="time",
           help="Start on the common time line of all cores.", source="pipeline 10"),
    Column("end", "End", "End Time(ns)", unit="ns", width=13, group="time",
           help="End on the common time line of all cores.", source="pipeline 10"),
    Column("duration", "Duration", "", unit="ns", width=11, shown=True, group="time", aliases=("dur", "d"),
           help="End minus start."),
    Column("exposed", "Exposed", "", unit="ns", width=10, lanes=_DMA, group="time", aliases=("exp",),
           help="Part of the duration in which the TIU of its core did no work."),
    Column("cycles", "Cycles", "Asic Cycle", unit="cycles", width=9, shown=True, group="time",
           aliases=("asic_cycle", "cyc"), help="Cycles of the engine's own clock, both ends included; exact.",
           source="pipeline 4"),
    _transfer("direction", "Direction", "Direction", "text", width=11, shown=True, placeholder="DDR->DDR", needs=NAMES,
              aliases=("dir",), help="From which memory to which."),
    _transfer("dtype", "Data type", "Data Type", "text", width=9, shown=True, placeholder="INT8", needs=NAMES,
              aliases=("data_type", "dt"), help="Element format."),
    _transfer("bytes", "Bytes", "DMA data size(B)", unit="B", width=11, shown=True, lanes=_COPIED, aliases=("size",),
              help="Bytes moved, counted by the hardware.", source="metrics 2.3"),
    _transfer("ddr_bandwidth", "DDR BW", "DDR Bandwidth(GB/s)", "float", "GB/s", width=8, shown=True, lanes=_COPIED,
              placeholder=0, decimals=4, aliases=("ddr_bw",),
              help="Bytes over duration; from condensed commands approximate (any direction counts as DDR).",
              source="metrics 2.3, 3.2"),
    _transfer("l2_bandwidth", "L2M BW", "L2M Bandwidth(GB/s)", "float", "GB/s", width=8, placeholder=0, decimals=4,
              needs=DETAIL, aliases=("l2_bw",), help="Bytes over duration of moves that touch L2 memory and not DDR.",
              source="metrics 3.2"),
    _transfer("stall", "Stall", "Stall Cycle", unit="cycles", width=8, placeholder=0, aliases=("stall_cycle",),
              help="Cycles stalled on the local memory side.", source="metrics 2.3"),
    _transfer("transactions", "Xacts", "gmem_xact_cnt", width=8, aliases=("xact",),
              help="Handshakes with global memory.", source="metrics 2.3"),
    _transfer("gmem_bytes", "Gmem bytes", "gmem_dma_data_size(B)", unit="B", width=11,
              help="Bytes moved from and to global memory, on chips that count them apart.", source="metrics 2.5, 3.3"),
    _transfer("lmem_bytes", "LMEM bytes", "lmem_dma_data_size(B)", unit="B", width=11,
              help="Bytes moved from and to local memory, on chips that count them apart.", source="metrics 2.5, 3.3"),
    _transfer("gmem_bandwidth", "Gmem BW", "gmem_bandwidth", "float", "GB/s", width=8, decimals=4,
              help="Bytes of global memory over duration.", source="metrics 2.5, 3.3"),
    _transfer("lmem_bandwidth", "LMEM BW", "lmem_bandwidth", "float", "GB/s", width=8, decimals=4,
              help="Bytes of local memory over duration.", source="metrics 2.5, 3.3"),
    _transfer("lmem_transactions", "LMEM xacts", "lmem_xact_cnt", width=10, help="Handshakes with local memory.",
              source="metrics 2.5, 3.3"),
    _transfer("ar_latency", "AR latency", "AR Latency Cycle", unit="cycles", width=10,
              help="Latency of read addresses.", source="metrics 2.5"),
    _transfer("src_addr", "Src addr", "src_start_addr", "hex", width=14, placeholder=0, needs=DETAIL,
              help="Start address of the source.", source="metrics 3.2"),
    _transfer("dst_addr", "Dst addr", "dst_start_addr", "hex", width=14, placeholder=0, needs=DETAIL,
              help="Start address of the destination.", source="metrics 3.2"),
    _operation("alg_ops", "Alg ops", "Alg Ops", unit="ops", width=12, placeholder=1, needs=DETAIL, aliases=("ops",),
               help="Operations the algorithm asks for.", source="metrics 4"),
    _operation("uarch_ops", "uArch ops", "uArch Ops", unit="ops", width=12, placeholder=1, needs=DETAIL,
               help="Operations the hardware performs, alignment to its lanes included.", source="metrics 4"),
    _operation("alg_cycle", "Alg cycles", "Alg Cycle", unit="cycles", width=10, placeholder=0, needs=DETAIL,
               help="Cycles the algorithm needs at peak rate.", source="metrics 4"),
    _operation("uarch_rate", "uArch rate", "uArch Rate", "percent", "%", width=10, shown=True, placeholder="0.0%",
               decimals=1, needs=DETAIL, aliases=("rate", "uarch"),
               help="Alg ops over uArch ops: the share of the hardware's work that the algorithm asked for.",
               source="metrics 3.1"),
    _operation("initial_ratio", "Initial", "Initial Cycle Ratio", "percent", "%", width=8, decimals=1, needs=DETAIL,
               help="Modelled cycles before the first result, of all cycles.", source="metrics 4.4"),
    _operation("conflict_cycles", "Conflicts", "Bank Conflict Cycle", unit="cycles", width=9,
               help="Cycles lost to bank conflicts, counted by the hardware.", source="metrics 2.2"),
    _operation("conflict_ratio", "Conflict %", "Bank Conflict Ratio", "percent", "%", width=10, decimals=1,
               help="Bank conflicts, counted or modelled, of all cycles.", source="metrics 2.2, 3.1"),
    Column("thread", "Thread", "Thread Id", width=6, help="Issuing thread.", source="metrics 2.2"),
    _headroom("ideal", "Ideal", "", "float", "ns", width=9, decimals=1,
              help="Time it would need at the chip's peak: algorithmic cycles, or bytes over the memory's bandwidth."),
    _headroom("at_peak", "At peak", "", "percent", "%", width=8, decimals=1, aliases=("headroom", "of_peak"),
              help="Ideal time over time taken: 100 % leaves nothing to gain."),
    _headroom("excess", "Excess", "", "float", "ns", width=10, decimals=1, aliases=("lost",),
              help="Duration minus ideal time: what there is to gain against the chip's peak."),
    Column("layer", "Layer", "", "text", width=20, needs=NAMES,
           help="Layer of the network, where the compiler's files lie beside the capture (tensor_location.json)."),
    _headroom("forecast", "Forecast", "", unit="ns", width=10, aliases=("sim",),
              help="Duration that the compiler expected (net_stat.sim); of core 0 alone."),
    _headroom("forecast_ratio", "Measured/forecast", "", "float", width=17, decimals=2, aliases=("ratio",),
              help="Duration over forecast: above 1, slower than the compiler expected."),
    Column("engine_id", "Engine Id", "Engine Id", width=9, group="codes",
           help="0 TIU, 1 GDMA, 3 SDMA, 4 CDMA.", source="metrics 1"),
    _dma_code("from_memory", "From", "from_addr", "text", width=6, placeholder="DDR", help="Memory read from."),
    _dma_code("to_memory", "To", "to_addr", "text", width=6, placeholder="DDR", help="Memory written to."),
    _dma_code("data_format", "Format", "src_data_format", width=6, placeholder=0, help="Code of the element format."),
    _dma_code("dma_type", "Type code", "cmd_type", width=9, placeholder=31, help="Type code of the command."),
    _dma_code("dma_function", "Function code", "cmd_special_function", width=13, placeholder=0,
              help="Function code of the command."),
    _tiu_code("node_type", "Node", "des_type", width=5, placeholder=0, help="Type of the command's node."),
    _tiu_code("node_engine", "Node engine", "des_engine", width=11, placeholder=0,
              help="Engine code of the command's node."),
    _tiu_code("tiu_type", "Type code", "des_tsk_typ", width=9, placeholder=31, help="Type code of the command."),
    _tiu_code("tiu_function", "Function code", "des_tsk_eu_typ", width=13, placeholder=0,
              help="Function code of the command."),
    _tiu_code("node_extra", "Extra bits", "extra_info", width=10, placeholder=0, help="The node's twelve extra bits."),
    _tiu_code("precision", "Precision", "des_opt_res0_prec", width=9, help="Code of the result's element format."),
    _waits("dependency", "Dependency", "", "hex", width=10, aliases=("cmd_id_dep",),
           help="The dependency register as it is: an id and bits that say whose it is."),
    _waits("depends_on", "Depends on", "", width=10, lanes=("TIU", "GDMA"),
           help="Cmd Id of the other engine's command (GDMA's of TIU, TIU's of GDMA) that must retire first; 0: none."),
    _waits("depends_engine", "Of engine", "", width=9, lanes=("TIU", "GDMA"),
           help="Bits above the id in the dependency register: which engine's command is meant; 0: the usual one."),
    _waits("message", "Message", "Msg Id", width=8, aliases=("msg",), help="Message that a send or wait names."),
    _waits("message_count", "Count", "Sd\\Wt Count", width=6,
           help="Of a wait: how many sends of its message release it; of a send: how many waits its message serves."),
    _waits("message_destination", "Destination", "", "hex", width=11,
           help="Register bits of a send or wait besides id and count, as recorded: where the message goes."),
    *COUNTERS,
)  # fmt: skip

#: Columns by key.
SCHEMA: Final[dict[str, Column]] = {column.key: column for column in COLUMNS}


def column(key: str) -> Column:
    """The column with this key; KeyError without one."""
    return SCHEMA[key]


def _changed(key: str, name: str, title: str, help_text: str, *aliases: str) -> Column:
    return replace(column(key), title=title, help=help_text, aliases=aliases, file_name=name, shown=key != "scope")


#: In captures of libbmrt a layer of the network takes the place of a kernel function.
_LAYERS: Final = {
    "kernel": _changed("kernel", "layer", "Layer", "Layer of the network that it belongs to.", "k"),
    "scope": _changed(
        "scope", "layer_run", "Layer run", "Number of the layer's run, over all cores: it has one per tile.", "launch"
    ),
    "batch": replace(column("batch"), title="Run", help="Number of the run of the model or subnet.", file_name="run"),
    "forecast": replace(column("forecast"), shown=True),
}
LAYER_COLUMNS: Final = tuple(_LAYERS.get(column.key, column) for column in COLUMNS if column.key != "layer")
