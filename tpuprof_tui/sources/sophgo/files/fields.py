"""Fields of an instruction as the reference writes them: by name, in its order, as columns that are read on demand.

Register text, workbook and merged CSV are three formats of these fields. A command with known registers (*decoded*) has
other fields than a condensed one, so a lane has one set of fields per operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.analysis.index.ordering import unit_or_port
from tpuprof_tui.formats.rendering import Field
from tpuprof_tui.formats.xlsx.rows import Source
from tpuprof_tui.model import INT_MISSING, Lane, Profile, Role, is_missing
from tpuprof_tui.model.lane import Rows, row_numbers

from ..read.arrays import map_texts, stream_order
from ..schema import column

# Fields of the reference's register text, in its order: by chip family, engine, and kind of command.
#
# A field is the key of a column of the model, a column that the reference writes under another name, or a constant
# text. The latter (``Filler``) are in the register text only: no sheet has columns of them.

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
    """Fields of one engine of a chip family."""

    condensed: Entries  #: Fields of commands known by their node only, and of records without a command
    decoded: Entries  #: Fields of commands with known registers; for transfers these follow the registers
    after: Entries = ()  #: Fields of decoded TIU commands after the registers
    zeros: tuple[str, ...] = DMA_REGISTERS  #: Registers of all decoded transfers, 0 where their layout lacks them
    memory: str = "DDR"  #: Source and destination of decoded system transfers
    no_format: str = ""  #: Data type of decoded transfers without one in their registers
    unless_rvt: bool = False  #: Whether condensed commands of the RVT dispatch have no data format


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


Array = npt.NDArray[Any]


#: Names of element formats by code, of results of TIU commands and of sources of transfers.
DATA_TYPES: Final = ("INT8", "FP16", "FP32", "INT16", "INT32", "BFP16", "INT4", "FP8", "FP20", "TF32")
_FORMATS: Final = (*DATA_TYPES, *(f"unknown_{code}" for code in range(len(DATA_TYPES), 128)))
_SIDES: Final = (*_FORMATS, "None")
_NO_FORMAT: Final = len(_FORMATS)
_PAIRS: Final = tuple(f"{operand} -> {result}" for operand in _SIDES for result in _SIDES)


class FieldSet(Struct, frozen=True, eq=False):
    """Fields of commands of one kind."""

    main: dict[str, Source]  #: Fields by name, in order
    #: Further fields, which the register text has under a line of their own (TIU).
    extra: dict[str, Source] = field(default_factory=dict)

    @property
    def all(self) -> dict[str, Source]:
        """Main and extra fields in order, without fillers."""
        return {name: source for name, source in {**self.main, **self.extra}.items() if not source.filler}


_NODE: Final = {"node_type": "type", "node_engine": "engine", "tiu_type": "des_tsk_typ",
                "tiu_function": "des_tsk_eu_typ", "node_extra": "extra_info"}  # fmt: skip


#: Directions that have a bandwidth, by its column.
_MOVES: Final[dict[str, Callable[[str], bool]]] = {
    "ddr_bandwidth": lambda text: "DDR" in text,
    "l2_bandwidth": lambda text: "L2M" in text and "DDR" not in text,
}


class LaneFields:
    """Fields of one lane's instructions."""

    def __init__(self, profile: Profile, lane: Lane) -> None:
        self.profile = profile
        self.lane = lane
        self.layout = layout_of(lane)
        self._sets: dict[int, FieldSet] = {}
        self._sources: dict[str, Source] = {}

    def of(self, operation: int) -> FieldSet:
        """Fields of the commands decoded as ``operation``; for -1, of condensed ones and of rows without a command."""
        if operation not in self._sets:
            self._sets[operation] = self._tiu(operation) if self.lane.kind == "TIU" else self._transfer(operation)
        return self._sets[operation]

    # -- sets -------------------------------------------------------------

    def _tiu(self, operation: int) -> FieldSet:
        layout = self.layout
        if operation < 0:
            extra = {name: self.source_of(key) for key, name in _NODE.items()}
            extra["des_opt_res0_prec"] = Source("int", self._precision)
            return FieldSet(self._named((*layout.condensed, *META)), extra)
        extra = self.registers(operation)
        for key in layout.after:
            # a command without a message gets message 0
            source = self.source_of(str(key))
            extra[column(str(key)).file_name] = Source("int", source.values, 0)
        return FieldSet(self._named((*layout.decoded, *META)), extra)

    def _transfer(self, operation: int) -> FieldSet:
        layout = self.layout
        if operation < 0:
            fields = self._named((*layout.condensed, *META))
            if layout.unless_rvt:
                for name in (column("data_format").file_name, column("dtype").file_name):
                    fields[name] = self._missing_for_rvt(fields[name])
            return FieldSet(fields)
        registers = self.registers(operation, layout.zeros)
        named = self._named((*layout.decoded, *META))
        # a register takes precedence over the reference's filler of the same name
        named = {name: source for name, source in named.items() if not (source.filler and name in registers)}
        fields = {**registers, **named}
        for key, absent in (("direction", f"{layout.memory}->{layout.memory}"), ("from_memory", layout.memory),
                            ("to_memory", layout.memory)):  # fmt: skip
            fields[column(key).file_name] = replace(self.source_of(key), absent=absent)
        if layout is TRANSFER:
            for key, matches in _MOVES.items():
                fields[column(key).file_name] = Source("float", partial(self._bandwidth, key, matches), 0)
        kind = registers.get("src_data_format")
        fields[column("dtype").file_name] = (
            Source("text", None, layout.no_format)
            if kind is None
            else Source("text", kind.values, texts=_formats(layout.no_format))
        )
        return FieldSet(fields)

    def _missing_for_rvt(self, source: Source) -> Source:
        """A column that is missing for RVT commands, and filled for all others."""
        texts = (*source.texts, str(source.absent))
        filled = len(texts) - 1 if source.kind == "text" else source.absent or 0

        def values(rows: Rows) -> Array:
            found = self._missing(source.kind, rows) if source.values is None else source.values(rows)
            return np.where(is_missing(found) & ~self._rvt_mask(rows), found.dtype.type(filled), found)

        return Source(source.kind, values, None, texts if source.kind == "text" else ())

    def _named(self, entries: Sequence[Entry]) -> dict[str, Source]:
        fields: dict[str, Source] = {}
        for entry in entries:
            if isinstance(entry, Filler):
                fields[entry.name] = Source("text", None, entry.text, filler=True)
            elif isinstance(entry, Alias):
                fields[entry.name] = self.source_of(entry.key)
            else:
                name, source = column(entry).file_name, self.source_of(entry)
                # layers are no kernel functions, whose columns stay empty
                known = self.profile.vocabulary.schema[entry].file_name == name
                fields[name] = source if known else replace(source, values=partial(self._missing, source.kind))
        return fields

    def _missing(self, kind: str, rows: Rows) -> Array:
        return np.full(len(self.lane.take("start", rows)), np.int32(-1) if kind == "text" else INT_MISSING)

    def registers(self, operation: int, zeros: Sequence[str] = DMA_REGISTERS) -> dict[str, Source]:
        """Register fields of an operation by name; of transfers also ``zeros``, 0 where their layout lacks them."""
        registers, prefix = self.lane.registers, "des_" if self.lane.kind == "TIU" else ""
        assert registers is not None
        names = registers.field_names(operation)
        found = {f"{prefix}{name}": Source("int", partial(registers.field, operation, name)) for name in names}
        lacking = () if prefix else (name for name in zeros if name not in found)
        return found | {name: Source("int", None, 0) for name in lacking}

    # -- fields -----------------------------------------------------------

    def source_of(self, key: str) -> Source:
        """Source of a column of the model, cached: repeated calls return the same object."""
        if key not in self._sources:
            self._sources[key] = self._new_source(key)
        return self._sources[key]

    def _new_source(self, key: str) -> Source:
        spec, lane = column(key), self.lane
        kind = "int" if spec.kind == "hex" else spec.kind
        absent = "None" if key == "core" else spec.placeholder
        if key not in lane:
            fixed = unit_or_port(self.profile, lane, key)
            return Source(kind, None, fixed if fixed >= 0 else absent)
        texts = self.profile.strings[key] if spec.kind == "text" else ()
        return Source(kind, partial(lane.take, key), absent, texts)

    def _rvt_mask(self, rows: Rows) -> Array:
        return map_texts(self.profile, self.lane, "mode", rows, "RVT".__eq__)

    def _precision(self, rows: Rows) -> Array:
        """Format code of the result.

        Missing for system commands, and on some chips for RVT commands; 0 for work without a command.
        """
        works = self.lane.take("role", rows) == Role.WORK
        if "precision" not in self.lane:
            return np.where(works, 0, INT_MISSING)
        values = self.lane.take("precision", rows)
        found = np.where((values == INT_MISSING) & works, 0, values)
        return np.where(self._rvt_mask(rows), INT_MISSING, found) if self.layout.unless_rvt else found

    def _bandwidth(self, key: str, matches: Callable[[str], bool], rows: Rows) -> Array:
        """A bandwidth where the direction matches; else NaN."""
        unknown = matches(str(column("direction").placeholder))
        involved = map_texts(self.profile, self.lane, "direction", rows, matches, unknown)
        return np.where(involved, self.lane.take(key, rows), np.nan)


def text_field(source: Source, lead: str, absent: str, spell: Callable[[str], str] = str) -> Field | str:
    """A field of rows of text: ``lead`` and the value as the reference writes it; ``absent`` without one."""
    if source.values is None:
        return absent
    if source.kind == "text":
        return Field(source.values, lead, absent, source.texts, spell)
    form = "%.1f%%" if source.kind == "percent" else "%s"
    return Field(source.values, lead, absent, form=form, decimals=4 if source.kind == "float" else None, span=64)


def in_stream_order(lane: Lane, rows: Rows) -> Rows:
    """Ascending rows of a lane in stream order."""
    order = stream_order(lane, rows)
    return rows if order is None else row_numbers(rows)[order]


# -- fields that only workbook and CSV have -------------------------------


def data_type_source(fields: FieldSet) -> Source:
    """``{operand} -> {result}`` of TIU commands; without an operand the result twice; ``None`` without a format.

    System commands have neither.
    """
    result, operand = fields.extra.get("des_opt_res0_prec"), fields.extra.get("des_opt_opd0_prec")
    operand = operand or result

    def values(rows: Rows) -> Array:
        codes = _format_codes(operand, rows) * len(_SIDES) + _format_codes(result, rows)
        return np.asarray(codes, dtype=np.int32)

    if operand is None:
        return Source("text", None, "None -> None")
    return Source("text", values, "None -> None", _PAIRS)


def _formats(unknown: str) -> Sequence[str]:
    """Texts of data formats by code; codes without a format are ``unknown``, or named by number if that is empty."""
    return (*DATA_TYPES, *[unknown] * (len(_FORMATS) - len(DATA_TYPES))) if unknown else _FORMATS


def _format_codes(source: Source | None, rows: Rows) -> Array:
    if source is None or source.values is None:
        return np.array(_NO_FORMAT)
    codes = source.values(rows)
    return np.where(is_missing(codes), _NO_FORMAT, codes & (len(_FORMATS) - 1))


def recent_cycle_source(lane: Lane) -> Source:
    """``Avg Cycle Last 200``: ns per command over the last 200 of the stream (metrics 6.1).

    The first 199 rows have their end divided by their command id instead.
    """
    stream = stream_order(lane)
    index_of_row = None if stream is None else np.argsort(stream)

    def values(rows: Rows) -> Array:
        indices = row_numbers(rows) if index_of_row is None else index_of_row[rows]
        ends = lane.take("end", rows)
        before = np.maximum(indices - 199, 0)
        starts = lane.take("start", before if stream is None else stream[before])
        first = ends / np.maximum(lane.take("command_id", rows), 1)
        recent = np.where(indices < 199, first, (ends - starts) / 200)
        return np.where(ends == INT_MISSING, INT_MISSING, np.asarray(np.rint(recent), dtype=np.int64))

    return Source("int", values)
