"""Operators view: time by kernel type, and of framework operators on host and device."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.views.answer import Answer, Column, Missing, Table

from ..read.csv_table import Texts
from .tables import TIMES, WHOLE, Sums, ViewSelection, by_texts, lacks, per_worker, with_other_columns

_TYPED: Final = "profiler_level=Level1, or msprof --task-time=l1"
_OPERATORS: Final = (
    Column("calls", "Calls", "count"), Column("host_self_us", "Host Self", "duration"),
    Column("host_total_us", "Host Total", "duration", bar=True), Column("device_self_us", "Device Self", "duration"),
    Column("device_total_us", "Device Total", "duration", bar=True),
    Column("device_self_aicore_us", "Device Self With AICore", "duration", spare=1),
    Column("device_total_aicore_us", "Device Total With AICore", "duration", spare=2),
)  # fmt: skip
_TIMES: Final = ("host_self", "host_total", "device_self", "device_total", "device_self_aicore", "device_total_aicore")


@per_worker()
def operators(selection: ViewSelection) -> Answer:
    """The operators view of one worker."""
    tables: list[Table] = []
    missing: list[Missing] = []
    source = ""
    by_type, file = _by_type(selection)
    if by_type is not None:
        tables.append(by_type)
        source = file
    else:
        missing.append(lacks("by_type", "The types of the kernels are not known.", "operator types (Level1)", _TYPED))
    notes: tuple[str, ...] = ()
    found = _calls(selection)
    if found is not None:
        file, columns, follows = found
        notes = () if selection.is_everything or follows else (WHOLE,)
        source = source or file
        tables.append(_by_name("by_name", "By name", columns, ("name",)))
        if columns["shapes"].texts:
            tables.append(_by_name("by_name_shape", "By name and input shapes", columns, ("name", "shapes")))
    else:
        missing.append(lacks("by_name", "There are no framework operators.", "operators of the framework",
                             "activities with CPU (torch_npu.profiler alone)"))  # fmt: skip
    return Answer(tables=tuple(tables), notes=notes, missing=tuple(missing), source=source)


def _by_type(selection: ViewSelection) -> tuple[Table | None, str]:
    run = selection.run
    statistic = run.rank.statistic
    table = run.rank.table("op_statistic.csv")
    if selection.is_everything and statistic is not None and table is not None and len(statistic["type"]):
        order = np.argsort(-statistic["total"], kind="stable")
        total = statistic["total"][order]
        sum_of_all = int(total[total != INT_MISSING].sum())
        columns = (Column("type", "OP Type", narrows="type"), Column("core", "Core Type"), *TIMES)
        values = (
            statistic["type"].values(order), statistic["core"].values(order),
            [None if each != each else int(each) for each in statistic["count"][order].tolist()], total,
            *(statistic[key][order] for key in ("least", "mean", "most")),
            np.where(total != INT_MISSING, total / sum_of_all, np.nan) if sum_of_all else np.full(len(order), np.nan),
        )  # fmt: skip
        return with_other_columns(Table("by_type", "By type", columns, values), statistic, order), table.name
    kernels = run.kernels
    if kernels is None or not kernels.type.texts:
        return None, ""
    rows = selection.kernel_rows(kernels)
    rows = rows[~kernels.communicates[rows]]
    kind, core = (Texts(texts.codes[rows], texts.texts) for texts in (kernels.type, kernels.core))
    names = (("type", "OP Type", kind), ("core", "Core Type", core))
    return by_texts("by_type", "By type", names, kernels.duration[rows]), kernels.file


def _calls(selection: ViewSelection) -> tuple[str, dict[str, Any], bool] | None:
    """A row for each call of an operator, from operator_details.csv, else from slices; for a selection from slices.

    Returns:
        File name, columns, and whether they follow the selection; None if there are no operators.
    """
    run = selection.run
    exported, table, timeline = run.rank.operators, run.rank.table("operator_details.csv"), run.timeline
    times = run.operator_times if not selection.is_everything or exported is None else None
    if times is None and exported is not None and table is not None:
        return table.name, exported, False
    if times is None or timeline is None:
        return None
    chosen = selection.host_mask(timeline.start[times.rows])
    if selection.slices is not None:
        chosen &= selection.slices[times.rows]
    rows = times.rows[chosen]
    nothing = np.full(len(times.rows), INT_MISSING)
    columns = {
        "host_self": times.host_self, "host_total": times.host_total, "device_self": times.device_self,
        "device_total": times.device_total,
        "device_self_aicore": nothing if times.aicore_self is None else times.aicore_self,
        "device_total_aicore": nothing if times.aicore_total is None else times.aicore_total,
    }  # fmt: skip
    return timeline.file, {
        "name": Texts(timeline.name[rows], timeline.names),
        "shapes": Texts(timeline.shapes[rows], timeline.texts if (timeline.shapes >= 0).any() else ()),
        **{key: values[chosen] for key, values in columns.items()},
    }, True  # fmt: skip


def _by_name(key: str, title: str, columns: dict[str, Any], by: tuple[str, ...]) -> Table:
    sums = Sums(columns["device_self"], *(columns[name].codes for name in by))
    totals = {name: sums.added(columns[name]) for name in _TIMES}
    names = columns["name"].values(sums.rows)
    order = sorted(
        range(len(sums.rows)),
        key=lambda row: (-totals["device_self"][row], -totals["host_self"][row], names[row] or ""),
    )
    for name in _TIMES:
        if not (columns[name] != INT_MISSING).any():
            totals[name] = np.full(len(sums.rows), INT_MISSING)
    heads = {"name": Column("name", "Name", narrows="name"), "shapes": Column("input_shapes", "Input Shapes")}
    texts = [columns[name].values(sums.rows[order]) for name in by]
    if "shapes" in by:
        texts[1] = [None if each is None else " ".join(each.split()) for each in texts[1]]
    return Table(key, title, (*(heads[name] for name in by), *_OPERATORS),
                 (*texts, sums.count[order], *(totals[name][order] for name in _TIMES)), word="operator")  # fmt: skip
