"""Memory view: memory over time, its peaks, allocations, and memory not released within the recording."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.analysis.pivot import Groups
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
    Column(f"{key}_mb", key.capitalize(), "number", "MB", head=f"{key.capitalize()} (MB)") for key in _PARTS
)


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
        tables += [_peaks(curve, rows), with_other_columns(_curve(rank, curve, rows), curve, rows)]
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
        tables += [_by_name(allocations, rows, size, lost), _allocations(rank, allocations, rows[falling(size)])]
    else:
        missing.append(lacks("operators", "There are no allocations.", "allocations of operators", _PROFILE))
    if modules is not None:
        tables.append(_modules(modules, selected_rows(query, modules, "time")))
    notes = [_KEPT] if allocations is not None else []
    notes += not_narrowed(query, "Memory, which has no events", ("filter",))
    source = next((table.file for table in (curve, allocations, modules) if table is not None), "")
    return Answer(tuple(facts), tuple(tables), notes=tuple(notes), missing=tuple(missing), source=source)


def _curve(rank: RecordedRank, curve: Records, rows: I64) -> Table:
    columns = (
        Column("component", "Component"), moment(rank, "time_us", "Time"),
        *(replace(column, title=f"Total {column.title}") for column in _MEGABYTES),
        Column("device", "Device Type", spare=1),
    )  # fmt: skip
    keys = ("component", "time", *_PARTS, "device")
    return Table("curve", "Over time", columns, tuple(curve.values(key, rows) for key in keys))


def _largest(values: npt.NDArray[np.float64]) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.max()) if len(known) else None


def _peaks(curve: Records, rows: I64) -> Table:
    component, parts = curve["component"][rows], [curve[key][rows] for key in _PARTS]
    peaks = [(name, *(_largest(values[component == code]) for values in parts))
             for code, name in enumerate(curve.texts["component"])]  # fmt: skip
    return Table.of_rows("peaks", "Peaks", (Column("component", "Component"), *_MEGABYTES), peaks)


def _allocations(rank: RecordedRank, allocations: Records, rows: I64) -> Table:
    columns = (
        Column("name", "Name"), Column("size_kb", "Size", "number", "KB", bar=True, head="KB"),
        moment(rank, "allocation_time_us", "Allocated"), moment(rank, "release_time_us", "Released"),
        Column("duration_us", "Duration", "duration"),
    )  # fmt: skip
    values: tuple[Any, ...] = tuple(
        allocations.values(key, rows) for key in ("name", "size", "allocated", "released", "duration")
    )
    return with_other_columns(Table("operators", "Allocations", columns, values), allocations, rows)


def _by_name(allocations: Records, rows: I64, size: npt.NDArray[np.float64], lost: npt.NDArray[np.bool_]) -> Table:
    frame = frame_of(allocations, ("name",), rows)
    groups = Groups(frame, ["name"])
    total = np.bincount(groups.index, weights=size, minlength=groups.count)
    least, most = np.full(groups.count, np.inf), np.full(groups.count, -np.inf)
    np.minimum.at(least, groups.index, size)
    np.maximum.at(most, groups.index, size)
    order = falling(total)
    columns = (
        Column("name", "Name", narrows="name"), Column("count", "Allocations", "count"),
        Column("total_kb", "Total", "number", "KB", bar=True, head="Total (KB)"),
        Column("min_kb", "Min", "number", "KB", spare=2, head="Min (KB)"),
        Column("max_kb", "Max", "number", "KB", spare=1, head="Max (KB)"),
        Column("never_released", "Not released", "count"),
    )  # fmt: skip
    return Table("by_name", "By name", columns, (
        allocations.values("name", rows[groups.first[order]]), groups.sizes[order], total[order], least[order],
        most[order], groups.count_of(lost)[order],
    ))  # fmt: skip


def _modules(modules: Records, rows: I64) -> Table:
    component, reserved = modules["component"][rows], modules["reserved"][rows]
    peaks = [(name, _largest(reserved[component == code])) for code, name in enumerate(modules.texts["component"])]
    peaks.sort(key=lambda peak: -(peak[1] or 0))
    columns = (Column("component", "Component"), Column("peak_mb", "Peak", "number", "MB", bar=True, head="Peak (MB)"))
    return Table.of_rows("modules", "Components of CANN", columns, peaks)
