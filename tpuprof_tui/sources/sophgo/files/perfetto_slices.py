"""Instructions and launches as slices with the reference's annotations in its order; dependencies as flows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import astuple

from tpuprof_tui.analysis.index.ordering import lane_offsets
from tpuprof_tui.analysis.links.dependencies import Dependencies
from tpuprof_tui.formats.perfetto import tracks
from tpuprof_tui.formats.perfetto.tracks import Flows, PacketSequence, Shaped, by_shape
from tpuprof_tui.formats.perfetto.wire import (
    Pieces,
    Values,
    fixed64_field,
    message_field,
    varint_field,
)
from tpuprof_tui.formats.rendering import tenths
from tpuprof_tui.model import INT_MISSING, Lane, Profile
from tpuprof_tui.model.lane import ALL, Rows, row_numbers, row_parts, select_rows

from ..read.arrays import map_texts
from ..schema import column

I64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

#: Function types of system commands, which have neither rate, bandwidth, size nor endpoints.
SYSTEM_TYPES: Final = ("sys", "SYS")

#: Order in which modes are listed; others follow.
MODES: Final = ("RVT", "TDI", "DES")
#: Rows of a lane that are looked through for launches at a time.
_ROWS: Final = 262_144
#: Rows whose operations are counted at a time.
_RATED: Final = 32_768

Form = Literal["int", "text", "percent", "register", "bandwidth", "endpoint"]


class Note(Struct, frozen=True):
    """One annotation of a slice.

    Batch, kernel function and mode are left out where missing; other annotations get the reference's placeholder.
    """

    name: str  #: Name, exactly as in the reference
    form: Form  #: How the value is read and encoded
    key: str  #: Column, register field, or memory (``bandwidth``, ``endpoint``) that it comes from
    system: bool = True  #: Whether system commands have it


_HEAD: Final = (
    Note("Batch Launch", "int", "batch"),
    Note("Kernel Function", "text", "kernel"),
    Note("Function Type", "text", "type"),
)
_NAMED: Final = (
    Note("Function Name", "text", "name"),
    Note("Mode", "text", "mode"),
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
    Note("src_info", "endpoint", "src", system=False),
    Note("dst_info", "endpoint", "dst", system=False),
)
_ENDPOINT_FIELDS: Final = frozenset(f"{axis}{kind}" for kind in ("size", "stride") for axis in "nchw")
_NO_BANDWIDTH, _DDR, _L2 = range(3)


class SliceEncoder:
    """Encodes the instructions of one lane for one track."""

    def __init__(
        self, profile: Profile, lane: Lane, sequence: PacketSequence, base_ns: int, flows: LaneFlows | None = None,
        rates: I64 | None = None,
    ) -> None:  # fmt: skip
        self._profile, self._lane, self._sequence, self._base = profile, lane, sequence, base_ns
        self._flows, self._rates = flows, rates
        self._notes = _COMPUTE if lane.kind == "TIU" else _TRANSFER

    def encoded(self, rows: Rows, count: int) -> bytes:
        """Packets of some rows, which must not overlap and must be in time order."""
        parts: list[Shaped] = []
        numbers = row_numbers(rows)
        for shape, indices in by_shape(self._shape(rows, numbers)):
            parts.append((indices, self._table(shape, numbers[indices])))
        return self._sequence.encoded(parts, count)

    def _shape(self, rows: Rows, numbers: I64) -> list[I64]:
        """Columns that determine which fields a row has.

        Numbers of flows to its end, to its begin and from it; its operation, -1 without one; the memory whose bandwidth
        it has; whether it has a mode, a kernel function, a batch; whether it is a system command.
        """
        profile, lane, count = self._profile, self._lane, len(numbers)
        none = np.zeros(count, np.int64)
        system = system_rows(profile, lane, rows)
        flows = [none] * 3 if self._flows is None else [each.counts[numbers] for each in reversed(self._flows)]
        operation = none - 1 if lane.registers is None else lane.registers.operations(rows).astype(np.int64)
        memory = none
        if lane.kind != "TIU":
            involved = map_texts(profile, lane, "direction", rows, _memory_of, _memory_of(_placeholder("direction")))
            memory = np.where(system, _NO_BANDWIDTH, np.where(operation >= 0, involved, _DDR))
        named = [map_texts(profile, lane, key, rows, bool).astype(np.int64) for key in ("mode", "kernel")]
        batch = (lane.take("batch", rows) >= 0).astype(np.int64) if "batch" in lane else none
        return [*flows, operation, memory, *named, batch, system.astype(np.int64)]

    def _table(self, shape: Sequence[int], rows: I64) -> npt.NDArray[np.uint8]:
        """Begin and end packets of rows of one shape, one table row each."""
        lane, sequence = self._lane, self._sequence
        releasing, reaching, leaving, operation, memory, mode, kernel, batch, system = shape
        absent = {key for key, known in (("mode", mode), ("kernel", kernel), ("batch", batch)) if not known}
        category = varint_field(tracks.EVENT_CATEGORY, self._iids(tracks.CATEGORIES, "type", rows))
        begin = [*varint_field(tracks.EVENT_NAME, self._iids(tracks.EVENT_NAMES, "name", rows)), *category]
        for note in self._notes:
            if (note.system or not system) and note.key not in absent:
                value = self._value(note, operation, memory, rows)
                name = scope_title(self._profile) if note.key == "kernel" else note.name
                begin += sequence.annotation(name, value) if value else []
        end = category
        if self._flows is not None:
            from_it, to_begin, to_end = self._flows
            begin += from_it.fields(tracks.EVENT_FLOW, rows, leaving) + to_begin.fields(
                tracks.EVENT_FLOW_END, rows, reaching
            )
            end = [*end, *to_end.fields(tracks.EVENT_FLOW_END, rows, releasing)]
        return sequence.slices(lane.take("start", rows) + self._base, lane.take("end", rows) + self._base, begin, end)

    def _value(self, note: Note, operation: int, memory: int, rows: I64) -> Pieces:
        """Value of an annotation; empty where the operation does not have it."""
        key = note.key
        if note.form == "int":
            return varint_field(tracks.NOTE_INT, self._ints(key, rows))
        if note.form == "text":
            return varint_field(tracks.NOTE_TEXT, self._iids(tracks.NOTE_TEXTS, key, rows))
        if note.form == "percent":
            return varint_field(tracks.NOTE_TEXT, self._percents(key, rows))
        if note.form == "register":
            return self._register(key, operation, rows)
        if note.form == "endpoint":
            return self._endpoint(key, operation, rows)
        if memory != (_DDR if key == "ddr" else _L2):
            return varint_field(tracks.NOTE_INT, 0)
        known = f"{key}_bandwidth" in self._lane
        values = self._lane.take(f"{key}_bandwidth", rows) if known else np.zeros(len(rows))
        return fixed64_field(tracks.NOTE_DOUBLE, np.where(np.isfinite(values), values, 0.0))

    def _ints(self, key: str, rows: Rows) -> int | Values:
        if key not in self._lane:
            return 0
        values = self._lane.take(key, rows)
        return np.where(values == INT_MISSING, 0, values)

    def _iids(self, table: int, key: str, rows: Rows) -> int | Values:
        missing = _placeholder(key)
        if key not in self._lane:
            return self._sequence.iid(table, missing)
        codes = self._lane.take(key, rows)
        return self._sequence.iids(table, key, self._profile.strings[key], codes, missing)

    def _percents(self, key: str, rows: Rows) -> int | Values:
        """Interned ids of percentages with one decimal, as texts."""
        if self._rates is None:
            return self._sequence.iid(tracks.NOTE_TEXTS, _placeholder(key))
        return _text_iids(self._sequence, tracks.NOTE_TEXTS, self._rates[rows], lambda value: f"{value / 10:.1f}%")

    def _register(self, name: str, operation: int, rows: Rows) -> Pieces:
        registers = self._lane.registers
        if registers is None or operation < 0 or name not in registers.field_names(operation):
            return []
        return varint_field(tracks.NOTE_INT, registers.field(operation, name, rows))

    def _endpoint(self, end: str, operation: int, rows: Rows) -> Pieces:
        """Shape, strides and address of one end of a transfer, as a dictionary."""
        registers = self._lane.registers
        fields = registers.field_names(operation) if registers is not None and operation >= 0 else ()
        values = [(name, self._register(name, operation, rows)) for name in fields
                  if name.startswith(f"{end}_") and name[len(end) + 1 :] in _ENDPOINT_FIELDS]  # fmt: skip
        values.append((f"{end}_start_addr", varint_field(tracks.NOTE_INT, self._ints(f"{end}_addr", rows))))
        entries: Pieces = []
        for name, value in values:
            key = varint_field(tracks.NOTE_NAME, self._sequence.iid(tracks.NOTE_NAMES, name))
            entries += message_field(tracks.NOTE_ENTRY, [*key, *value])
        return entries


def _text_iids(sequence: PacketSequence, table: int, values: I64, text: Callable[[int], str]) -> Values:
    """Interned ids of the texts of some numbers."""
    distinct, inverse = np.unique(values, return_inverse=True)
    known = [sequence.iid(table, text(value)) for value in distinct.tolist()]
    return np.array(known, dtype=np.int64)[inverse.reshape(-1)]


def rates_of(chosen: Iterable[tuple[Lane, Rows]], lane: Lane) -> I64 | None:
    """Rates (uArch) of a lane's chosen rows in tenths of a percent, by row; None if the lane has none.

    Operations are counted from registers, so this is done once for both slices and counter.
    """
    if "uarch_rate" not in lane:
        return None
    rates = np.zeros(len(lane), np.int64)
    for part, _ in row_parts(next(rows for each, rows in chosen if each is lane), _RATED):
        rates[part] = tenths(lane.take("uarch_rate", part))
    return rates


def system_rows(profile: Profile, lane: Lane, rows: Rows) -> Flags:
    """Mask of the system commands, by function type."""
    return map_texts(profile, lane, "type", rows, SYSTEM_TYPES.__contains__)


def _memory_of(direction: str) -> int:
    return _DDR if "DDR" in direction else _L2 if "L2" in direction else _NO_BANDWIDTH


def _placeholder(key: str) -> str:
    found: Any = column(key).placeholder
    return "" if found is None else str(found)


# Overview of kernel functions: one slice per launch on each core, and on each CDMA port that it uses.


def scope_title(profile: Profile) -> str:
    """Title of what issues instructions, as the reference writes it: kernel functions, or layers."""
    return profile.vocabulary.scope.one.title()


class Launches(Struct, frozen=True):
    """Launches of kernel functions on one track; arrays of one length."""

    start: I64
    end: I64
    kernel: I64  #: Codes into ``Profile.strings["kernel"]``
    scope: I64  #: Launch number
    #: first_batch, last_batch: Smallest and largest batch launch; the last is -1 without one.
    first_batch: I64
    last_batch: I64
    modes: I64  #: One bit per code of ``Profile.strings["mode"]``


#: How each column of a launch follows from its instructions'.
_REDUCTIONS: Final = (np.minimum, np.maximum, np.maximum, np.maximum, np.minimum, np.maximum, np.bitwise_or)


def launches_of(profile: Profile, chosen: Iterable[tuple[Lane, Rows]]) -> Launches:
    """Launches that the given instructions belong to, ordered by (start, end)."""
    known = ((lane, part) for lane, rows in chosen if "kernel" in lane for part, _ in row_parts(rows, _ROWS))
    parts = [_launched(profile, lane, part) for lane, part in known]
    launches = _merged([Launches(*[np.zeros(0, np.int64)] * len(_REDUCTIONS)), *parts])
    found: Launches = select_rows(launches, np.lexsort((launches.end, launches.start)))
    return found


def _launched(profile: Profile, lane: Lane, rows: Rows) -> Launches:
    """Launches of some of a lane's instructions with a kernel function."""
    named = row_numbers(rows)[map_texts(profile, lane, "kernel", rows, bool)]
    start, end, kernel, scope = (lane.take(key, named) for key in ("start", "end", "kernel", "scope"))
    batch, mode = (
        lane.take(key, named).astype(np.int64) if key in lane else np.full(len(named), -1) for key in ("batch", "mode")
    )
    known = (mode >= 0) & (mode < 63)
    modes = np.where(known, np.left_shift(1, np.where(known, mode, 0)), 0)
    smallest, largest = (np.where(batch >= 0, batch, missing) for missing in (np.iinfo(np.int64).max, -1))
    return _merged([Launches(start, end, kernel.astype(np.int64), scope, smallest, largest, modes)])


def _merged(parts: Sequence[Launches]) -> Launches:
    """One launch for each launch number."""
    merged = Launches(*map(np.concatenate, zip(*map(astuple, parts), strict=True)))
    if bool((merged.scope[1:] < merged.scope[:-1]).any()):
        merged = select_rows(merged, np.argsort(merged.scope, kind="stable"))
    first = np.flatnonzero(np.diff(merged.scope, prepend=-1))
    if not len(first):
        return merged
    return Launches(
        *(reduce.reduceat(column, first) for reduce, column in zip(_REDUCTIONS, astuple(merged), strict=True))
    )


def encoded_launches(profile: Profile, sequence: PacketSequence, base_ns: int, launches: Launches) -> bytes:
    """Packets of launches that do not overlap, in time order."""
    first, last = launches.first_batch, launches.last_batch
    columns = [launches.modes > 0, (last >= 0) & (first != last), last >= 0]
    parts: list[Shaped] = [
        (indices, _launch_table(profile, sequence, base_ns, select_rows(launches, indices), shape))
        for shape, indices in by_shape([column.astype(np.int64) for column in columns])
    ]
    return sequence.encoded(parts, len(first))


def _launch_table(
    profile: Profile, sequence: PacketSequence, base_ns: int, some: Launches, shape: Sequence[int]
) -> npt.NDArray[np.uint8]:
    has_mode, several, batched = shape
    kernels = profile.strings["kernel"]

    def modes(bits: int) -> str:
        """Names of modes, joined by slashes."""
        names = [text for code, text in enumerate(profile.strings["mode"]) if code < 63 and bits >> code & 1]
        ranked = [name for name in MODES if name in names]
        return "/".join([*ranked, *(name for name in names if name not in MODES)])

    def annotation(name: str, field: int, values: Values) -> Pieces:
        return sequence.annotation(name, varint_field(field, values))

    category = (
        varint_field(tracks.EVENT_CATEGORY, _text_iids(sequence, tracks.CATEGORIES, some.modes, modes))
        if has_mode
        else []
    )
    name = sequence.iids(tracks.NOTE_TEXTS, "kernel", kernels, some.kernel)
    begin = [
        *varint_field(tracks.EVENT_NAME, sequence.iids(tracks.EVENT_NAMES, "kernel", kernels, some.kernel)),
        *category,
        *annotation(scope_title(profile), tracks.NOTE_TEXT, name),
        *annotation("Func Scope Id", tracks.NOTE_INT, some.scope),
    ]
    if several:
        pairs = zip(some.first_batch.tolist(), some.last_batch.tolist(), strict=True)
        texts = [sequence.iid(tracks.NOTE_TEXTS, f"{first}/{last}") for first, last in pairs]
        begin += annotation("Batch Launch", tracks.NOTE_TEXT, np.array(texts, np.int64))
    elif batched:
        begin += annotation("Batch Launch", tracks.NOTE_INT, some.first_batch)
    if has_mode:
        begin += annotation("Mode", tracks.NOTE_TEXT, _text_iids(sequence, tracks.NOTE_TEXTS, some.modes, modes))
    return sequence.slices(some.start + base_ns, some.end + base_ns, begin, category)


#: Flows of a lane: from its instructions, to their begin, and to their end.
LaneFlows = tuple[Flows, Flows, Flows]

#: Most arrows from or to one instruction; more would be indistinguishable and are left out.
MOST_FLOWS: Final = 63


def lane_flows(profile: Profile, dependencies: Dependencies, chosen: Sequence[Rows]) -> dict[int, LaneFlows]:
    """Flows by index in ``Profile.lanes``.

    A flow ends at the begin of the waiter if that is later than the begin of the releaser, else at the waiter's end: a
    wait may begin long before it is released. A dependency is left out if it is impossible (the wait ends before the
    release begins), guessed, or if one of its instructions is not written.

    ``chosen``: rows that are written, by lane index.
    """
    flows: dict[int, LaneFlows] = {}
    if not len(dependencies):
        return flows
    offsets, lanes = lane_offsets(profile), profile.lanes
    written = np.zeros(int(offsets[-1]), np.bool_)
    for offset, rows in zip(offsets.tolist(), chosen, strict=False):
        written[offset:][rows] = True
    ends = (dependencies.releaser_lane, dependencies.releaser_row), (dependencies.waiter_lane, dependencies.waiter_row)
    releaser, waiter = (offsets[lane] + row for lane, row in ends)
    start, end = (np.concatenate([lane.take(key, ALL) for lane in lanes]) for key in ("start", "end"))
    at_begin = start[waiter] > start[releaser]
    drawn = written[releaser] & written[waiter] & (at_begin | (end[waiter] > start[releaser]))
    drawn &= ~np.isin(dependencies.links.kind, list(dependencies.links.guessed))
    for each in (releaser, waiter):
        drawn &= _rank_among_equals(each) < MOST_FLOWS
    sides = [(*ends[0], drawn), (*ends[1], drawn & at_begin), (*ends[1], drawn & ~at_begin)]
    for number, own in enumerate(lanes):
        places = [np.flatnonzero(which & (lane == number)) for lane, _, which in sides]
        if any(map(len, places)):
            leaving, beginning, ending = (
                Flows(row[place], place + 1, len(own)) for (_, row, _), place in zip(sides, places, strict=True)
            )
            flows[number] = leaving, beginning, ending
    return flows


def _rank_among_equals(keys: I64) -> I64:
    """Number of equal keys before each key."""
    order = np.argsort(keys, kind="stable")
    first = np.searchsorted(keys[order], keys[order], side="left")
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[order] = np.arange(len(keys)) - first
    return ranks
