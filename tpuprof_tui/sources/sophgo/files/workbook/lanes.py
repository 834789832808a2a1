"""The chosen instructions of a lane, with the values of every column of workbook and merged CSV."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.export.selection import Selection, ordered_lanes
from tpuprof_tui.formats.xlsx.rows import SheetColumn, Source
from tpuprof_tui.model import INT_MISSING, Lane, Profile, Role
from tpuprof_tui.model.columns import COUNTERS as COUNTER_GROUP
from tpuprof_tui.model.lane import Rows, row_numbers, row_parts
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.sophgo.counters import COUNTERS
from tpuprof_tui.sources.sophgo.schema import SCHEMA
from tpuprof_tui.sources.sophgo.schema import column as column_of

from ...read.layers import LayerMap
from ..instructions import ENGINES
from ..published_rows import published_rows
from ..registers_text import chosen_rows
from .columns import extra_names, reference_names, sheet_columns
from .fields import LaneFields, data_type_source, recent_cycle_source
from .fieldsets import PUBLISHED

Array = npt.NDArray[Any]

#: Columns of dependencies and messages.
_LINKS: Final = ("depends_on", "message", "message_count")
#: Rows read and written at a time.
SLICE: Final = 16_384


def chosen_lanes(profile: Profile, selection: Selection, layers: LayerMap | None = None) -> list[LaneRows]:
    """Lanes with chosen instructions: by core, then TIU, GDMA, SDMA; then the ports."""
    lanes = []
    for lane in ordered_lanes(profile):
        rows, count = chosen_rows(profile, lane, selection)
        if count and lane.kind in ENGINES:
            by_start = selection.rows(profile, lane)
            lanes.append(LaneRows(profile, lane, rows, count, by_start, LaneFields(profile, lane), layers))
    return lanes


class LaneRows(Struct, dict=True):
    """The chosen instructions of a lane, in the terms of workbook and merged CSV.

    Attributes:
        rows: Chosen rows in stream order.
        count: Number of these rows.
        by_start: The same rows in the order of their start.
        fields: Fields of the reference.
        layers: Layer of each command; None where it is not known.
    """

    profile: Profile
    lane: Lane
    rows: Rows
    count: int
    by_start: Rows
    fields: LaneFields
    layers: LayerMap | None = None

    @property
    def title(self) -> str:
        """Name of its sheet."""
        return f"{self.lane.kind}_{self.profile.number_of(self.lane)}"

    @cached_property
    def counted_rows(self) -> Rows:
        """Those of the rows that the published converter counts, in stream order."""
        counted = published_rows(self.profile, self.lane)
        if isinstance(counted, slice) and counted == slice(0, len(self.lane)):
            return self.rows
        numbers = row_numbers(self.rows)
        return numbers[np.isin(numbers, row_numbers(counted))]

    @cached_property
    def operations(self) -> list[int]:
        """Operations among the rows, ascending; -1 for condensed commands and rows without a command."""
        registers, parts = self.lane.registers, (part for part, _ in row_parts(self.rows, SLICE))
        if registers is None:
            return [-1]
        return sorted({number for rows in parts for number in uniques(registers.operations(rows)).tolist()})

    @cached_property
    def occurring(self) -> list[str]:
        """Names of the fields of these rows in the register text, without fillers."""
        return [name for name, source in self._text_sources.items() if not source.filler]

    @cached_property
    def _text_sources(self) -> dict[str, Source]:
        """Fields of these rows in the register text."""
        found: dict[str, Source] = {}
        for operation in self.operations:
            fields = self.fields.of(operation)
            for name, source in {**fields.main, **fields.extra}.items():
                written = source.values is not None or source.absent is not None
                if written and not (source.filler and name in found):
                    found[name] = source
        return found

    @cached_property
    def extra_sources(self) -> dict[str, Source]:
        """Columns that the register text lacks: dependencies, messages, raw counters, others with a name in files."""
        keys = [*_LINKS, *(column.key for column in COUNTERS)]
        named = [
            key for key, spec in SCHEMA.items()
            if spec.file_name and spec.group != "codes" and key != "engine" and key not in PUBLISHED
        ]  # fmt: skip
        sources: dict[str, Source] = {}
        for key in dict.fromkeys([*keys, *named]):
            spec = column_of(key)
            name = spec.key if spec.group == COUNTER_GROUP else spec.file_name or spec.title
            if key in self.lane and spec.applies_to(self.lane.kind) and name not in self.occurring:
                source = Source("int", partial(self.lane.take, key)) if key in keys else self.fields.source_of(key)
                sources[name] = source
        return sources

    @cached_property
    def sources(self) -> dict[int, dict[str, Source]]:
        """Source of the values of each column, by operation."""
        recent = recent_cycle_source(self.lane) if self.lane.kind == "TIU" else None
        found = {}
        for operation in self.operations:
            fields = self.fields.of(operation)
            sources = {**self.extra_sources, **fields.all, **self._layer_sources}
            if recent is not None:
                sources |= {"Avg Cycle Last 200": recent, "Data Type": data_type_source(fields)}
            else:
                for name, text in (("Direction", "-"), ("Data Type", "None")):
                    sources[name] = self._with_system_text(sources[name], text)
            if self.lane.kind == "CDMA":
                sources["Port"] = Source("int", None, self.lane.number)
            found[operation] = sources
        return found

    @cached_property
    def _layer_sources(self) -> dict[str, Source]:
        layers, lane = self.layers, self.lane
        if layers is None or lane.kind not in ("TIU", "GDMA"):
            by_scope = self.profile.vocabulary.scope.one == "layer" and "kernel" in lane
            name = replace(self.fields.source_of("kernel"), absent="-") if by_scope else Source("text", None, "-")
            return {"Layer Id": Source("text", None, "-"), "Layer Name": name}

        def number(rows: Rows) -> npt.NDArray[Any]:
            layer_indices = layers.indices(lane, rows)
            return np.where(layer_indices < 0, INT_MISSING, layer_indices + 1)

        names = [layer.name for layer in layers.network.layers]
        return {
            "Layer Id": Source("int", number, "-"),
            "Layer Name": Source("text", lambda rows: layers.indices(lane, rows).astype(np.int32), "-", names),
        }

    def _with_system_text(self, source: Source, text: str) -> Source:
        """A text column with ``text`` for system commands, which move nothing."""
        texts = [*source.texts, text, "" if source.absent is None else str(source.absent)]
        system, missing = len(texts) - 2, len(texts) - 1

        def values(rows: Rows) -> Array:
            role = self.lane.take("role", rows)
            codes = np.full(len(role), missing) if source.values is None else source.values(rows)
            codes = np.where(codes < 0, missing, codes)
            return np.where(role == Role.WORK, codes, system).astype(np.int32)

        return Source("text", values, None, texts)

    def reference_names(self, lanes: Sequence[LaneRows]) -> list[str]:
        """Names of the reference's columns; those of ``lanes`` with the same register text file count as well."""
        names = dict.fromkeys(self._text_sources)
        unit_of = self.profile.unit_of
        for other in lanes:
            if unit_of(other.lane) == unit_of(self.lane) >= 0 and {other.lane.kind, self.lane.kind} == {"GDMA", "SDMA"}:
                names |= dict.fromkeys(other._text_sources)
        return reference_names(self.lane.kind, list(names))

    def columns(self, lanes: Sequence[LaneRows]) -> list[SheetColumn]:
        """Columns of the sheet, given those of other lanes."""
        extra = [*self.occurring, *(["Port"] if self.lane.kind == "CDMA" else []), *self.extra_sources]
        names = [*self.reference_names(lanes), *extra_names(self.lane.kind, extra)]
        known: dict[str, Source] = {}
        for sources in self.sources.values():
            for name, source in sources.items():
                if name not in known or known[name].values is None:
                    known[name] = source
        return sheet_columns(names, known)
