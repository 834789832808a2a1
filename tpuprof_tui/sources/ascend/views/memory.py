"""Memory view: memory over time, its peaks, allocations, and memory not released within the recording."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table

from ..read.csv_table import Texts
from .tables import Sums, ViewSelection, lacks, per_worker, with_other_columns

_PROFILE: Final = "profile_memory=True (torch_npu.profiler)"
_KEPT: Final = "Memory not released within the recording is not necessarily a leak: weights and optimiser state stay."
_PARTS: Final = ("allocated", "reserved", "active")
_MEGABYTES: Final = tuple(
    Column(f"{key}_mb", key.capitalize(), "number", "MB", head=f"{key.capitalize()} (MB)") for key in _PARTS
)


@per_worker(filtered=False)
def memory(selection: ViewSelection) -> Answer:
    """The memory view of one worker."""
    rank = selection.run.rank
    tables: list[Table] = []
    facts: list[Fact] = []
    missing: list[Missing] = []
    source = ""
    found = _curve(selection)
    if found is not None:
        source, data = found
        data = _part(data, selection.host_mask(data["time"])) if selection.timed else data
        tables += [_peaks(data), with_other_columns(_curve_table(selection, data), data)]
    else:
        missing.append(lacks("curve", "There is no memory over time.", "memory records",
                             f"{_PROFILE}, or msprof --sys-hardware-mem=on"))  # fmt: skip
    if rank.allocations is not None:
        file, each = rank.allocations
        source = source or file
        each = _part(each, selection.host_mask(each["allocated"])) if selection.timed else each
        lost = each["released"] == INT_MISSING
        size = np.nan_to_num(each["size"])
        facts += [Fact("allocations", "Allocations", len(size)),
                  Fact("never_released", "Not released within the recording", int(lost.sum())),
                  Fact("never_released_kb", "Their size", float(size[lost].sum()), "number", unit="KB",
                       head="Their size (KB)")]  # fmt: skip
        tables += [_by_name(each, size, lost), _allocations(selection, each)]
    else:
        missing.append(lacks("operators", "There are no allocations.", "allocations of operators", _PROFILE))
    if rank.modules is not None:
        file, each = rank.modules
        source = source or file
        tables.append(_modules(each["component"], each["reserved"]))
    notes = []
    if rank.allocations is not None:
        notes.append(_KEPT)
    if selection.timed and rank.modules is not None:
        notes.append("Components of CANN: of the whole recording.")
    return Answer(tuple(facts), tuple(tables), notes=tuple(notes), missing=tuple(missing), source=source)


def _part(data: dict[str, Any], chosen: Any) -> dict[str, Any]:
    """Some rows of columns; values that are no columns are kept."""
    return {
        key: Texts(values.codes[chosen], values.texts) if isinstance(values, Texts)
        else values[chosen] if isinstance(values, np.ndarray) else values
        for key, values in data.items()
    }  # fmt: skip


def _curve(selection: ViewSelection) -> tuple[str, dict[str, Any]] | None:
    """The memory records with their file name, else the memory counters of the timeline; None if there are neither."""
    rank = selection.run.rank
    if rank.memory is not None:
        return rank.memory
    timeline = rank.timeline
    found = [each for each in (timeline.counters if timeline is not None else ()) if each.process == "NPU MEM"]
    if not found or timeline is None:
        return None
    names = [each.name for each in found]
    codes = np.repeat(np.arange(len(found), dtype=np.int32), [len(each.times) for each in found])
    values = np.concatenate([each.values / (1024 if each.unit == "KB" else 1) for each in found])
    nothing = np.full(len(values), np.nan)
    return timeline.file, {
        "component": Texts(codes, tuple(names)), "time": np.concatenate([each.times for each in found]),
        "reserved": values, "allocated": nothing, "active": nothing,
        "device": Texts(np.full(len(values), -1, np.int32), ()),
    }  # fmt: skip


def _curve_table(selection: ViewSelection, data: dict[str, Any]) -> Table:
    columns = (
        Column("component", "Component"), selection.moment("time_us", "Time"),
        *(replace(column, title=f"Total {column.title}") for column in _MEGABYTES),
        Column("device", "Device Type", spare=1),
    )  # fmt: skip
    return Table("curve", "Over time", columns, (
        data["component"].values(), selection.moments(data["time"]), *(data[key] for key in _PARTS),
        data["device"].values(),
    ))  # fmt: skip


def _peaks(data: dict[str, Any]) -> Table:
    component = data["component"]
    rows = []
    for code, name in enumerate(component.texts):
        of_component = component.codes == code
        peaks = []
        for key in _PARTS:
            values = data[key][of_component]
            sound = values[~np.isnan(values)]
            peaks.append(float(sound.max()) if len(sound) else None)
        rows.append((name, *peaks))
    return Table.of_rows("peaks", "Peaks", (Column("component", "Component"), *_MEGABYTES), rows)


def _allocations(selection: ViewSelection, data: dict[str, Any]) -> Table:
    order = np.argsort(-np.nan_to_num(data["size"]), kind="stable")
    columns = (
        Column("name", "Name"), Column("size_kb", "Size", "number", "KB", bar=True, head="KB"),
        selection.moment("allocation_time_us", "Allocated"), selection.moment("release_time_us", "Released"),
        Column("duration_us", "Duration", "duration"),
    )  # fmt: skip
    return with_other_columns(Table("operators", "Allocations", columns, (
        data["name"].values(order), data["size"][order], selection.moments(data["allocated"][order]),
        selection.moments(data["released"][order]), data["duration"][order],
    )), data, order)  # fmt: skip


def _by_name(data: dict[str, Any], size: Any, lost: Any) -> Table:
    sums = Sums(np.zeros(len(size), np.int64), data["name"].codes)
    groups = len(sums.rows)
    total = np.bincount(sums.index, weights=size, minlength=groups)
    least, most = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(least, sums.index, size)
    np.maximum.at(most, sums.index, size)
    kept = np.bincount(sums.index, weights=lost, minlength=groups).astype(np.int64)
    order = np.argsort(-total, kind="stable")
    columns = (
        Column("name", "Name", narrows="name"), Column("count", "Allocations", "count"),
        Column("total_kb", "Total", "number", "KB", bar=True, head="Total (KB)"),
        Column("min_kb", "Min", "number", "KB", spare=2, head="Min (KB)"),
        Column("max_kb", "Max", "number", "KB", spare=1, head="Max (KB)"),
        Column("never_released", "Not released", "count"),
    )  # fmt: skip
    return Table("by_name", "By name", columns, (
        data["name"].values(sums.rows[order]), sums.count[order], total[order], least[order], most[order], kept[order],
    ))  # fmt: skip


def _modules(component: Texts, reserved: Any) -> Table:
    rows = []
    for code, name in enumerate(component.texts):
        values = reserved[component.codes == code]
        known = values[~np.isnan(values)]
        rows.append((name, float(known.max()) if len(known) else None))
    rows.sort(key=lambda row: -(row[1] or 0))
    columns = (Column("component", "Component"), Column("peak_mb", "Peak", "number", "MB", bar=True, head="Peak (MB)"))
    return Table.of_rows("modules", "Components of CANN", columns, rows)
