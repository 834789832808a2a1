"""Other tables: csv files of the exporter that no other view shows completely, as in the file."""

from __future__ import annotations

from typing import Final

from tpuprof_tui.views.answer import Answer, Column, Table

from ..read.rank import STEP_COLUMNS
from .tables import ViewSelection, per_worker, plain_column

#: Files that other views show.
SHOWN: Final = frozenset(
    ("kernel_details.csv", "op_summary.csv", "op_statistic.csv", "operator_details.csv", "api_statistic.csv",
     "memory_record.csv", "operator_memory.csv", "npu_module_mem.csv", "step_trace_time.csv", "runtime_api.csv",
     "acl_statistic.csv"),
)  # fmt: skip
#: Columns shown by views that aggregate a file; a file with further columns is shown here too.
_SUMMED: Final = {
    "step_trace_time.csv": frozenset(("Device_id", "Step", *(name for name, _, _ in STEP_COLUMNS))),
    "npu_module_mem.csv": frozenset(
        ("Device_id", "Device", "Device Type", "Component", "Timestamp(us)", "Total Reserved(MB)", "Total Reserved(KB)")
    ),
    "operator_details.csv": frozenset(
        ("Name", "Input Shapes", "Call Stack", *(f"{where} {what} Duration{more}(us)" for where in ("Host", "Device")
                                                 for what in ("Self", "Total") for more in ("", " With AICore")))
    ),
    "acl_statistic.csv": frozenset(("Name", "Time(%)", "Time(us)", "Count", "Avg(us)", "Min(us)", "Max(us)")),
    "runtime_api.csv": frozenset(("Name", "Time(%)", "Time(ns)", "Calls", "Avg(ns)", "Min(ns)", "Max(ns)")),
}  # fmt: skip


@per_worker()
def other_tables(selection: ViewSelection) -> Answer:
    """The view of other tables of one worker."""
    rank = selection.run.rank
    rows: list[tuple[str, int, int]] = []
    tables: list[Table] = []
    for role in rank.paths.by_role:
        shown_columns = _SUMMED.get(role)
        table = rank.table(role) if role.endswith(".csv") and (shown_columns is not None or role not in SHOWN) else None
        if table is None or (shown_columns is not None and shown_columns.issuperset(table.columns)):
            continue
        read = table.read(dict.fromkeys(table.columns, "text"))
        rows.append((table.name, len(table.columns), table.rows))
        columns = tuple(plain_column(name, read[name]) for name in table.columns)
        key = role.removesuffix(".csv")
        tables.append(Table(key, key, columns, tuple(read[name].plain_values() for name in table.columns)))
    heads = (Column("file", "File"), Column("columns", "Columns", "count"), Column("rows", "Rows", "count"))
    names = Table.of_rows("files", "Files", heads, rows)
    return Answer(tables=(names, *tables), source=rows[0][0] if rows else "")
