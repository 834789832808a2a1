"""Instructions as slices: a begin and an end event each, with the annotations of the reference, in its order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.formats.perfetto.tracks import (
    CATEGORIES,
    EVENT_CATEGORY,
    EVENT_FLOW,
    EVENT_FLOW_END,
    EVENT_NAME,
    EVENT_NAMES,
    EVENT_TYPE,
    NOTE_DOUBLE,
    NOTE_ENTRY,
    NOTE_INT,
    NOTE_NAME,
    NOTE_NAMES,
    NOTE_TEXT,
    NOTE_TEXTS,
    SLICE_BEGIN,
    SLICE_END,
    PacketSequence,
    Shaped,
)
from tpuprof_tui.formats.perfetto.wire import (
    Pieces,
    Values,
    fixed64_field,
    message_field,
    messages,
    varint_field,
)
from tpuprof_tui.model import INT_MISSING, Lane, Profile
from tpuprof_tui.model.lane import Rows, row_numbers
from tpuprof_tui.sources.sophgo.schema import column

from .flows import FlowEnds, LaneFlows

I64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

#: Function types of system commands: they carry neither rate, bandwidth, size nor places.
SYSTEM_TYPES: Final = ("sys", "SYS")

Form = Literal["int", "text", "percent", "register", "bandwidth", "place"]


class Note(Struct, frozen=True):
    """One annotation of a slice.

    Attributes:
        name: Its name, to the letter that of the reference.
        form: How its value is found and written.
        key: Column, register field, or memory (``bandwidth``, ``place``) it comes from.
        optional: Left out where the value is missing; else the reference's placeholder is written.
        system: Whether system commands have it.
    """

    name: str
    form: Form
    key: str
    optional: bool = False
    system: bool = True


_HEAD: Final = (
    Note("Batch Launch", "int", "batch", optional=True),
    Note("Kernel Function", "text", "kernel", optional=True),
    Note("Function Type", "text", "type"),
)
_NAMED: Final = (
    Note("Function Name", "text", "name"),
    Note("Mode", "text", "mode", optional=True),
    Note("Cmd Id", "int", "command_id"),
)
_COMPUTE: Final = (
    *_HEAD,
    *_NAMED,
    Note("uArch Rate", "percent", "uarch_rate", system=False),
    Note("des_cmd_short", "register", "cmd_short"),
    Note("des_cmd_id_dep", "register", "cmd_id_dep"),
    Note("Global Idx", "int", "order"),
)
_TRANSFER: Final = (
    *_HEAD,
    Note("cmd_id_dep", "register", "cmd_id_dep"),
    Note("Direction", "text", "direction", system=False),
    *_NAMED,
    Note("Data Type", "text", "dtype"),
    Note("DMA data size(B)", "int", "bytes", system=False),
    Note("DDR Bandwidth(GB/s)", "bandwidth", "ddr", system=False),
    Note("L2M Bandwidth(GB/s)", "bandwidth", "l2", system=False),
    Note("Global Idx", "int", "order"),
    Note("src_info", "place", "src", system=False),
    Note("dst_info", "place", "dst", system=False),
)
#: Columns whose absence is a matter of the row, in the order of their bits in a shape.
_OPTIONAL: Final = tuple(note.key for note in _COMPUTE if note.optional)
_PLACE_FIELDS: Final = tuple(f"{axis}{what}" for what in ("size", "stride") for axis in "nchw")
_NO_BANDWIDTH, _DDR, _L2 = range(3)
#: First bits of the parts of a shape's number; bit 0 says system command, then come the optional columns.
_MEMORY, _OPERATION, _FLOWS, _FLOW_BITS = 4, 8, 32, 6


class _Shape(Struct, frozen=True):
    """What slices of one shape have in common."""

    system: bool
    present: frozenset[str]
    operation: int
    memory: int
    flows: tuple[int, int, int]


def _shape(key: int) -> _Shape:
    present = frozenset(name for number, name in enumerate(_OPTIONAL, 1) if key >> number & 1)
    leaving, reaching, releasing = (
        key >> (_FLOWS + _FLOW_BITS * place) & ((1 << _FLOW_BITS) - 1) for place in range(3)
    )
    operation = (key >> _OPERATION & 0xFFFF) - 1
    return _Shape(bool(key & 1), present, operation, key >> _MEMORY & 3, (leaving, reaching, releasing))


class SliceEncoder:
    """Encodes the instructions of one lane for one track."""

    def __init__(
        self, profile: Profile, lane: Lane, sequence: PacketSequence, base_ns: int, flows: LaneFlows | None = None,
        rates: I64 | None = None,
    ) -> None:  # fmt: skip
        self._profile = profile
        self._lane = lane
        self._sequence = sequence
        self._base = base_ns
        self._flows = flows
        self._rates = rates
        self._notes = _COMPUTE if lane.kind == "TIU" else _TRANSFER
        self._systems = np.array([text in SYSTEM_TYPES for text in profile.strings["type"]] + [False])
        ways = [_memory_of(text) for text in profile.strings["direction"]]
        self._memories = np.array([*ways, _memory_of(_placeholder("direction"))], dtype=np.int64)
        self._named = {key: np.array([bool(text) for text in profile.strings[key]] + [False])
                       for key in ("kernel", "mode")}  # fmt: skip

    def encoded(self, rows: Rows, count: int) -> bytes:
        """The packets of some rows, which do not overlap and come in the order of time.

        Args:
            rows: The rows.
            count: How many they are.
        """
        shapes = self._shapes(rows, count)
        parts: list[Shaped] = []
        if bool((shapes == shapes[0]).all()):
            parts.append((None, self._table(_shape(int(shapes[0])), rows, count)))
        else:
            numbers = row_numbers(rows)
            for shape in np.unique(shapes).tolist():
                places = np.flatnonzero(shapes == shape)
                parts.append((places, self._table(_shape(shape), numbers[places], len(places))))
        return self._sequence.encoded(parts, count)

    # -- shapes ---------------------------------------------------------------

    def _shapes(self, rows: Rows, count: int) -> I64:
        """What decides which fields a row has, as one number per row."""
        lane = self._lane
        system = self._of_codes("type", rows, self._systems, count)
        bits = system.astype(np.int64)
        for number, key in enumerate(_OPTIONAL, 1):
            bits |= self._present(key, rows, count).astype(np.int64) << number
        operation = np.full(count, -1, np.int64)
        if lane.registers is not None:
            operation = lane.registers.operations(rows).astype(np.int64)
        memory = np.zeros(count, np.int64)
        if lane.kind != "TIU":
            touched = self._of_codes("direction", rows, self._memories, count)
            memory = np.where(system, _NO_BANDWIDTH, np.where(operation >= 0, touched, _DDR))
        shape = (operation + 1) << _OPERATION | memory << _MEMORY | bits
        if self._flows is not None:
            numbers = row_numbers(rows)
            for place, ends in enumerate(self._flows.ends):
                shape |= ends.counts(numbers) << (_FLOWS + _FLOW_BITS * place)
        return np.asarray(shape, dtype=np.int64)

    def _present(self, key: str, rows: Rows, count: int) -> Flags:
        if key not in self._lane:
            return np.zeros(count, np.bool_)
        if key in self._named:
            return np.asarray(self._of_codes(key, rows, self._named[key], count), dtype=np.bool_)
        return np.asarray(self._lane.take(key, rows) >= 0, dtype=np.bool_)

    def _of_codes(self, key: str, rows: Rows, table: Values, count: int) -> Values:
        """What a table says of the codes of a text column; its last entry is for codes without a text."""
        if key not in self._lane:
            return np.full(count, table[-1])
        codes = self._lane.take(key, rows)
        found: Values = table[np.where((codes >= 0) & (codes < len(table) - 1), codes, len(table) - 1)]
        return found

    # -- packets --------------------------------------------------------------

    def _table(self, shape: _Shape, rows: Rows, count: int) -> npt.NDArray[np.uint8]:
        """Begin and end packets of rows of one shape, a row each."""
        lane, sequence = self._lane, self._sequence
        category = varint_field(EVENT_CATEGORY, self._iids(CATEGORIES, "type", rows, count))
        begin = [
            *varint_field(EVENT_TYPE, SLICE_BEGIN),
            *varint_field(EVENT_NAME, self._iids(EVENT_NAMES, "name", rows, count)),
            *category,
        ]
        for note in self._notes:
            if note.system or not shape.system:
                begin += self._annotation(note, shape, rows, count)
        end = [*varint_field(EVENT_TYPE, SLICE_END), *category]
        if any(shape.flows) and self._flows is not None:
            leaving, reaching, releasing = shape.flows
            begin += _flow_fields(EVENT_FLOW, self._flows.leaving, rows, leaving)
            begin += _flow_fields(EVENT_FLOW_END, self._flows.reaching_begin, rows, reaching)
            end += _flow_fields(EVENT_FLOW_END, self._flows.reaching_end, rows, releasing)
        packets = [
            *sequence.packet(lane.take("start", rows) + self._base, begin),
            *sequence.packet(lane.take("end", rows) + self._base, end),
        ]
        return messages(packets, count)

    def _annotation(self, note: Note, shape: _Shape, rows: Rows, count: int) -> Pieces:
        """An annotation of rows of one shape; no pieces where they do not have it."""
        if note.optional and note.key not in shape.present:
            return []
        value = self._value(note, shape, rows, count)
        return self._sequence.annotation(note.name, value) if value else []

    def _value(self, note: Note, shape: _Shape, rows: Rows, count: int) -> Pieces:
        if note.form == "int":
            return varint_field(NOTE_INT, self._ints(note.key, rows))
        if note.form == "text":
            return varint_field(NOTE_TEXT, self._iids(NOTE_TEXTS, note.key, rows, count))
        if note.form == "percent":
            return varint_field(NOTE_TEXT, self._percents(note.key, rows))
        if note.form == "register":
            return self._register(note.key, shape, rows)
        if note.form == "bandwidth":
            mine = shape.memory == (_DDR if note.key == "ddr" else _L2)
            return self._bandwidth(f"{note.key}_bandwidth", rows, count) if mine else varint_field(NOTE_INT, 0)
        return self._place(note.key, shape, rows)

    def _ints(self, key: str, rows: Rows) -> int | Values:
        if key not in self._lane:
            return 0
        values = self._lane.take(key, rows)
        return np.where(values == INT_MISSING, 0, values)

    def _iids(self, table: int, key: str, rows: Rows, count: int) -> int | Values:
        """Numbers of the interned texts of a text column."""
        missing = _placeholder(key)
        if key not in self._lane:
            return self._sequence.iid(table, missing)
        codes = self._lane.take(key, rows)
        return self._sequence.iids(table, key, self._profile.strings[key], codes, missing)

    def _percents(self, key: str, rows: Rows) -> int | Values:
        """Numbers of percentages of one decimal, as texts."""
        if key not in self._lane:
            return self._sequence.iid(NOTE_TEXTS, _placeholder(key))
        found = tenths(self._lane.take(key, rows)) if self._rates is None else self._rates[rows]
        distinct, which = np.unique(found, return_inverse=True)
        known = [self._sequence.iid(NOTE_TEXTS, f"{value / 10:.1f}%") for value in distinct.tolist()]
        return np.array(known, dtype=np.int64)[which.reshape(-1)]

    def _bandwidth(self, key: str, rows: Rows, count: int) -> Pieces:
        values = self._lane.take(key, rows) if key in self._lane else np.zeros(count)
        return fixed64_field(NOTE_DOUBLE, np.where(np.isfinite(values), values, 0.0))

    def _register(self, name: str, shape: _Shape, rows: Rows) -> Pieces:
        registers = self._lane.registers
        if registers is None or shape.operation < 0 or name not in registers.field_names(shape.operation):
            return []
        return varint_field(NOTE_INT, registers.field(shape.operation, name, rows))

    def _place(self, end: str, shape: _Shape, rows: Rows) -> Pieces:
        """Shape, strides and address of one end of a transfer, as a dictionary."""
        names: list[str] = []
        if self._lane.registers is not None and shape.operation >= 0:
            wanted = {f"{end}_{name}" for name in _PLACE_FIELDS}
            names = [name for name in self._lane.registers.field_names(shape.operation) if name in wanted]
        values = [(name, self._register(name, shape, rows)) for name in names]
        values.append((f"{end}_start_addr", varint_field(NOTE_INT, self._ints(f"{end}_addr", rows))))
        entries: Pieces = []
        for name, value in values:
            key = varint_field(NOTE_NAME, self._sequence.iid(NOTE_NAMES, name))
            entries += message_field(NOTE_ENTRY, [*key, *value])
        return entries


def tenths(percents: npt.NDArray[np.float64]) -> I64:
    """Percentages in tenths, rounded as their text with one decimal is; 0 where there is none."""
    scaled = np.where(np.isfinite(percents), percents, 0.0) * 10
    rounded: npt.NDArray[np.float64] = np.rint(scaled)
    # a product close to a half may have been rounded itself: the text decides
    doubtful = np.flatnonzero(np.abs(np.abs(scaled - np.trunc(scaled)) - 0.5) < 1e-6)
    if len(doubtful):
        distinct, which = np.unique(percents[doubtful], return_inverse=True)
        exact = np.array([int(f"{value:.1f}".replace(".", "")) for value in distinct.tolist()], dtype=np.float64)
        rounded[doubtful] = exact[which.reshape(-1)]
    return np.asarray(np.clip(rounded, -(2**53), 2**53), dtype=np.int64)


def rates_of(lane: Lane, parts: Iterable[Rows]) -> I64 | None:
    """Rate (uArch) of some rows in tenths of a percent, by row of the lane; None where it knows none.

    Operations are counted from registers: once, for the slices and for the counter.
    """
    if "uarch_rate" not in lane:
        return None
    rates = np.zeros(len(lane), np.int64)
    for rows in parts:
        rates[rows] = tenths(lane.take("uarch_rate", rows))
    return rates


def system_rows(profile: Profile, lane: Lane, rows: Rows) -> Flags:
    """Whether each row is a system command by its function type."""
    systems = np.array([text in SYSTEM_TYPES for text in profile.strings["type"]] + [False])
    if "type" not in lane:
        return np.zeros(len(lane.take("start", rows)), np.bool_)
    codes = lane.take("type", rows)
    found: Flags = systems[np.where((codes >= 0) & (codes < len(systems) - 1), codes, len(systems) - 1)]
    return found


def _flow_fields(field: int, ends: FlowEnds, rows: Rows, count: int) -> Pieces:
    pieces: Pieces = []
    if count:
        for ids in ends.numbers(row_numbers(rows), count):
            pieces += fixed64_field(field, ids.astype(np.uint64))
    return pieces


def _memory_of(direction: str) -> int:
    return _DDR if "DDR" in direction else _L2 if "L2" in direction else _NO_BANDWIDTH


def _placeholder(key: str) -> str:
    found: Any = column(key).placeholder
    return "" if found is None else str(found)


def encoded_nesting(
    profile: Profile, lane: Lane, sequence: PacketSequence, steps: I64, begins: Flags, base_ns: int
) -> bytes:
    """Packets of slices that may lie within one another: names alone.

    Args:
        profile: The profile.
        lane: Where they are from.
        sequence: Of the track they go to.
        steps: Row of each event, in the order in which slices begin and end.
        begins: Whether each event is a begin.
        base_ns: Added to all times.
    """
    opening, closing = np.flatnonzero(begins), np.flatnonzero(~begins)
    parts: list[Shaped] = []
    if len(opening):
        rows = steps[opening]
        texts = profile.strings["name"]
        codes = lane.take("name", rows) if "name" in lane else np.full(len(rows), -1)
        name = varint_field(EVENT_NAME, sequence.iids(EVENT_NAMES, "name", texts, codes, _placeholder("name")))
        event = [*varint_field(EVENT_TYPE, SLICE_BEGIN), *name]
        parts.append((opening, messages(sequence.packet(lane.take("start", rows) + base_ns, event), len(rows))))
    if len(closing):
        event = varint_field(EVENT_TYPE, SLICE_END)
        ends = lane.take("end", steps[closing]) + base_ns
        parts.append((closing, messages(sequence.packet(ends, event), len(closing))))
    return sequence.encoded(parts, len(steps))


def named_slice(sequence: PacketSequence, name: str, start: int, end: int) -> bytes:
    """The packets of a single slice with a name alone."""
    begin = [*varint_field(EVENT_TYPE, SLICE_BEGIN), *varint_field(EVENT_NAME, sequence.iid(EVENT_NAMES, name))]
    packets = [
        *sequence.packet(np.array([start]), begin),
        *sequence.packet(np.array([end]), varint_field(EVENT_TYPE, SLICE_END)),
    ]
    return sequence.encoded([(None, messages(packets, 1))], 1)
