"""Memory view: memory over time, its peaks, allocations, and memory not released within the recording."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.analysis.pivot import count_true, key, least, most, total
from tpuprof_tui.analysis.pivot import rows as count
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.table import Table as Records
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table

from ..recorded import RecordedRank
from .ranks import falling, frame_of, lacks, moment, not_narrowed, per_rank, selected_rows, with_other_columns

I64 = npt.NDArray[np.int64]
_PROFILE: Final = "profile_memory=True (torch_npu.profiler)"
_KEPT: Final = "Memory not released within the recording is not necessarily a leak: weights and optimiser state stay."
_PARTS: Final = ("allocated", "reserved", "active")
_MEGABYTES: Final = tuple(
    Column(f"{part}_mb", part.capitalize(), "number", "MB", head=f"{part.capitalize()} (MB)") for part in _PARTS
)
#: Sums of the sizes of allocations by name.
_BY_NAME: Final = (
    (Column("name", "Name", narrows="name"), key("name", None)), (Column("count", "Allocations", "count"), count),
    (Column("total_kb", "Total", "number", "KB", bar=True, head="Total (KB)"), total("size")),
    (Column("min_kb", "Min", "number", "KB", spare=2, head="Min (KB)"), least("size")),
    (Column("max_kb", "Max", "number", "KB", spare=1, head="Max (KB)"), most("size")),
    (Column("never_released", "Not released", "count"), count_true("lost")),
)  # fmt: skip


@per_rank
def memory(query: Query, rank: RecordedRank) -> Answer:
    """The memory view of one rank."""
    tables: list[Table] = []
    facts: list[Fact] = []
    missing: list[Missing] = []
    curve, allocations, modules = (
        query.profile.table(name, rank.group) for name in ("memory", "allocations", "modules")
    )
    if curve is not None:
        rows = selected_rows(query, curve, "time")
        columns = (Column("component", "Component"), moment(rank, "time_us", "Time"),
                   *(replace(column, title=f"Total {column.title}") for column in _MEGABYTES),
                   Column("device", "Device Type", spare=1))  # fmt: skip
        tables += [Table.of_rows("peaks", "Peaks", (columns[0], *_MEGABYTES), _peaks(curve, rows, *_PARTS)),
                   _as_recorded("curve", "Over time", columns, curve, rows, "component", "time", *_PARTS,
                                "device")]  # fmt: skip
    else:
        missing.append(lacks("curve", "There is no memory over time.", "memory records",
                             f"{_PROFILE}, or msprof --sys-hardware-mem=on"))  # fmt: skip
    if allocations is not None:
        rows = selected_rows(query, allocations, "allocated")
        lost = allocations["released"][rows] == INT_MISSING
        size = np.nan_to_num(allocations["size"][rows])
        facts += [Fact("allocations", "Allocations", len(rows)),
                  Fact("never_released", "Not released within the recording", int(lost.sum())),
                  Fact("never_released_kb", "Their size", float(size[lost].sum()), "number", unit="KB",
                       head="Their size (KB)")]  # fmt: skip
        by_name = frame_of(allocations, ("name",), rows).with_columns(size=size, lost=lost)
        columns = (Column("name", "Name"), Column("size_kb", "Size", "number", "KB", bar=True, head="KB"),
                   moment(rank, "allocation_time_us", "Allocated"), moment(rank, "release_time_us", "Released"),
                   Column("duration_us", "Duration", "duration"))  # fmt: skip
        tables += [Table.of_pivot("by_name", "By name", by_name, ["name"], _BY_NAME, ("-total_kb",)),
                   _as_recorded("operators", "Allocations", columns, allocations, rows[falling(size)], "name", "size",
                                "allocated", "released", "duration")]  # fmt: skip
    else:
        missing.append(lacks("operators", "There are no allocations.", "allocations of operators", _PROFILE))
    if modules is not None:
        peaks = sorted(
            _peaks(modules, selected_rows(query, modules, "time"), "reserved"), key=lambda row: -np.nan_to_num(row[1])
        )
        columns = (Column("component", "Component"),
                   Column("peak_mb", "Peak", "number", "MB", bar=True, head="Peak (MB)"))  # fmt: skip
        tables.append(Table.of_rows("modules", "Components of CANN", columns, peaks))
    notes = [_KEPT] if allocations is not None else []
    notes += not_narrowed(query, "Memory, which has no events", ("filter",))
    source = next((table.file for table in (curve, allocations, modules) if table is not None), "")
    return Answer(tuple(facts), tuple(tables), notes=tuple(notes), missing=tuple(missing), source=source)


def _as_recorded(name: str, title: str, columns: tuple[Column, ...], table: Records, rows: I64, *keys: str) -> Table:
    return with_other_columns(Table(name, title, columns, tuple(table.values(key, rows) for key in keys)), table, rows)


def _peaks(table: Records, rows: I64, *keys: str) -> list[tuple[Any, ...]]:
    """Components, each with the largest known value in some columns; NaN without any."""
    component, parts = table["component"][rows], [table[key][rows] for key in keys]
    largest = [[np.fmax.reduce(values[component == code], initial=np.nan) for values in parts]
               for code in range(len(table.texts["component"]))]  # fmt: skip
    return [(name, *map(float, peaks)) for name, peaks in zip(table.texts["component"], largest, strict=True)]
