"""Fields of an instruction as the reference writes them: by name, in its order, as columns that are read on demand.

Register text, workbook and merged CSV are three formats of these fields. A command with known registers (*decoded*) has
other fields than a condensed one, so a lane has one set of fields per operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.analysis.index.ordering import constant_value
from tpuprof_tui.export.selection import Selection
from tpuprof_tui.formats.xlsx.rows import Source
from tpuprof_tui.model import INT_MISSING, Lane, Profile, Role, is_missing
from tpuprof_tui.model.lane import Rows, row_numbers
from tpuprof_tui.sources.sophgo.schema import column

from ..text_columns import map_texts
from .fieldsets import META, TRANSFER, Alias, Entry, Filler, layout_of

Array = npt.NDArray[Any]

EVERYTHING: Final = Selection()

#: Names of element formats by code, of results of TIU commands and of sources of transfers.
DATA_TYPES: Final = ("INT8", "FP16", "FP32", "INT16", "INT32", "BFP16", "INT4", "FP8", "FP20", "TF32")
_FORMATS: Final = (*DATA_TYPES, *(f"unknown_{code}" for code in range(len(DATA_TYPES), 128)))
_SIDES: Final = (*_FORMATS, "None")
_NO_FORMAT: Final = len(_FORMATS)
_PAIRS: Final = tuple(f"{operand} -> {result}" for operand in _SIDES for result in _SIDES)


class FieldSet(Struct, frozen=True, eq=False):
    """Fields of commands of one kind.

    Attributes:
        main: Fields by name, in order.
        extra: Further fields, which the register text has under a line of their own (TIU).
    """

    main: dict[str, Source]
    extra: dict[str, Source] = field(default_factory=dict)

    @property
    def all(self) -> dict[str, Source]:
        """Main and extra fields in order, without fillers."""
        return {name: source for name, source in {**self.main, **self.extra}.items() if not source.filler}


_NODE: Final = {"node_type": "type", "node_engine": "engine", "tiu_type": "des_tsk_typ",
                "tiu_function": "des_tsk_eu_typ", "node_extra": "extra_info"}  # fmt: skip


class LaneFields:
    """Fields of one lane's instructions."""

    def __init__(self, profile: Profile, lane: Lane) -> None:
        self.profile = profile
        self.lane = lane
        self._sets: dict[int, FieldSet] = {}
        self._sources: dict[str, Source] = {}

    def of(self, operation: int) -> FieldSet:
        """Fields of the commands decoded as ``operation``; for -1, of condensed ones and of rows without a command."""
        if operation not in self._sets:
            self._sets[operation] = self._tiu(operation) if self.lane.kind == "TIU" else self._transfer(operation)
        return self._sets[operation]

    # -- sets -------------------------------------------------------------

    def _tiu(self, operation: int) -> FieldSet:
        layout = layout_of(self.lane)
        if operation < 0:
            extra = {name: self.source_of(key) for key, name in _NODE.items()}
            extra["des_opt_res0_prec"] = Source("int", self._precision)
            return FieldSet(self._named((*layout.condensed, *META)), extra)
        extra = self._registers(operation, "des_")
        for key in layout.after:
            # a command without a message gets message 0
            source = self.source_of(str(key))
            extra[column(str(key)).file_name] = Source("int", source.values, 0)
        return FieldSet(self._named((*layout.decoded, *META)), extra)

    def _transfer(self, operation: int) -> FieldSet:
        layout = layout_of(self.lane)
        if operation < 0:
            fields = self._named((*layout.condensed, *META))
            if layout.unless_rvt:
                for name in (column("data_format").file_name, column("dtype").file_name):
                    fields[name] = self._missing_for_rvt(fields[name])
            return FieldSet(fields)
        registers = self._registers(operation)
        for name in layout.zeros:
            registers.setdefault(name, Source("int", None, 0))
        named = self._named((*layout.decoded, *META))
        # a register takes precedence over the reference's filler of the same name
        named = {name: source for name, source in named.items() if not (source.filler and name in registers)}
        fields = {**registers, **named}
        for key, absent in (("direction", f"{layout.memory}->{layout.memory}"), ("from_memory", layout.memory),
                            ("to_memory", layout.memory)):  # fmt: skip
            fields[column(key).file_name] = replace(self.source_of(key), absent=absent)
        if layout is TRANSFER:
            for key, memory, other in (("ddr_bandwidth", "DDR", ""), ("l2_bandwidth", "L2M", "DDR")):
                fields[column(key).file_name] = Source("float", partial(self._bandwidth, key, memory, other), 0)
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

    def _registers(self, operation: int, prefix: str = "") -> dict[str, Source]:
        registers = self.lane.registers
        assert registers is not None
        return {
            f"{prefix}{name}": Source("int", partial(registers.field, operation, name))
            for name in registers.field_names(operation)
        }

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
            fixed = constant_value(self.profile, lane, key)
            return Source(kind, None, fixed if fixed >= 0 else absent)
        texts = self.profile.strings[key] if spec.kind == "text" else ()
        return Source(kind, partial(lane.take, key), absent, texts)

    def _rvt_mask(self, rows: Rows) -> Array:
        """Mask of the rows dispatched by RVT."""
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
        return np.where(self._rvt_mask(rows), INT_MISSING, found) if layout_of(self.lane).unless_rvt else found

    def _bandwidth(self, key: str, memory: str, other: str, rows: Rows) -> Array:
        """A bandwidth where the direction contains ``memory`` and not ``other``; else NaN."""

        def matches(text: str) -> bool:
            return memory in text and not (other and other in text)

        unknown = matches(str(column("direction").placeholder))
        involved = map_texts(self.profile, self.lane, "direction", rows, matches, unknown)
        return np.where(involved, self.lane.take(key, rows), np.nan)


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
    order = lane["order"]
    stream = None if bool((order[1:] >= order[:-1]).all()) else np.argsort(order, kind="stable")
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
