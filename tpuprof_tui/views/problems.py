"""View of problems: what could not be read, was repaired or had to be guessed."""

from __future__ import annotations

from tpuprof_tui.analysis.findings.problem_rows import by_severity, lane_of
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope

from .answer import Answer, Column, Table, Target


def problems(query: Query) -> Answer:
    """One row per problem, worst first; always of the whole profile, whatever the query selects."""
    found = by_severity(query.session)

    def target(row: int) -> Target | None:
        lane, rows = lane_of(query.session, found[row]), found[row].rows
        if lane < 0:
            return Target(scope=Scope(found[row].group)) if found[row].group >= 0 else None
        if rows is not None and len(rows):
            return Target(event=(lane, int(rows[0])))
        return Target(scope=Scope(lane=lane))

    groups = query.profile.groups
    rows = [
        (each.severity.word, each.file or None, each.offset if each.offset >= 0 else None,
         " ".join(filter(None, (groups.title(each.group), each.lane))) or None, each.count, each.what, each.done)
        for each in found
    ]  # fmt: skip
    columns = (
        Column("severity", "Severity"), Column("file", "File"), Column("offset", "Byte", "count", spare=2),
        Column("group", "Where"), Column("count", "Times", "count", spare=1), Column("what", "What"),
        Column("done", "Done"),
    )  # fmt: skip
    narrowed = query.range is not None or query.full_filter or not query.scope.everything
    notes = ("Problems are of the whole profile.",) if narrowed and rows else ()
    table = Table.of_rows("problems", "Problems", columns, rows, target=target, word="problem")
    return Answer(tables=(table,), notes=notes)
