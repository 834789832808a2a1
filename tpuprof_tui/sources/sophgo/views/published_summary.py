"""The reference's summary for a window, a scope and a filter: the same rows as ``summary.txt`` of such an export."""

from __future__ import annotations

from typing import Final

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model.vocabulary import DETAIL
from tpuprof_tui.views.answer import Answer, Column, Missing, Table, Target, ValueKind

from ..files.summary_table import COLUMNS, rate_remark, summary_rows

#: Kind and unit of the columns of the answer, by kind of column of the summary.
_KINDS: Final[dict[str, tuple[ValueKind, str]]] = {
    "core": ("text", ""), "percent": ("number", "%"), "time": ("duration", ""), "cycles": ("count", ""),
    "rate": ("rate", ""),
}  # fmt: skip


def published(query: Query) -> Answer:
    """The summary of `bigTpuProfile` for the instructions that start in the window.

    There is none for a single lane, or where nothing ran.
    """
    lanes = [lane for lane in query.filtered_session.profile.lanes if not lane.on_host]
    # a source without cycles has no such figures
    known = all("cycles" in lane and (lane.kind == "TIU" or "bytes" in lane) for lane in lanes)
    rows = summary_rows(query) if known else []
    if not rows:
        return Answer(missing=(Missing("bigTpuProfile counts whole cores: there is nothing here to count."),))
    notes = ["Parallelism adds up engines that ran side by side; SDMA averages count sends.",
             "Cycles of Overall are those of the core with most."]  # fmt: skip
    detail = query.profile.has(DETAIL)
    if not detail:
        notes.append(rate_remark(query.profile, rows))
    columns = tuple(Column(column.key, column.header.partition("(")[0], *_KINDS[column.kind]) for column in COLUMNS)
    groups = query.profile.groups
    unit_of = {groups.number(unit): unit for unit in groups.units_within(query.scope.group)}

    def target(row: int) -> Target | None:
        core = rows[row].core
        return None if core is None else Target(scope=Scope(unit_of[core]))

    # where no operations are known the rate is missing, not the converter's placeholder
    rate = [column.key for column in COLUMNS].index("uarch_rate")
    values = [
        (str(row.values[0]), *row.values[1:rate], row.values[rate] if detail or row.known_ops else None,
         *row.values[rate + 1 :])
        for row in rows
    ]  # fmt: skip
    table = Table.of_rows("published", "As bigTpuProfile counts", columns, values, total=True, notes=tuple(notes),
                          word="core", target=target)  # fmt: skip
    return Answer(tables=(table,))
