"""What could not be used, was repaired or had to be guessed."""

from __future__ import annotations

from tpuprof_tui.analysis.findings.problem_rows import lane_of, ranked
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import Problem

from .answer import Answer, Column, Table, Target
from .query import Query


def problems(query: Query) -> Answer:
    """One row per problem, the worst first; all of the profile, whatever part of it is asked about."""
    found = ranked(query.session)

    def target(row: int) -> Target | None:
        lane, rows = lane_of(query.session, found[row]), found[row].rows
        if lane < 0:
            return Target(scope=Scope(found[row].group)) if found[row].group >= 0 else None
        if rows is not None and len(rows):
            return Target(event=(lane, int(rows[0])))
        return Target(scope=Scope(lane=lane))

    columns = (
        Column("severity", "Severity"), Column("file", "File"), Column("offset", "Byte", "count", spare=2),
        Column("group", "Where"), Column("count", "Times", "count", spare=1), Column("what", "What"),
        Column("done", "Done"),
    )  # fmt: skip
    table = Table.of_rows("problems", "Problems", columns, [_row(query, each) for each in found], target=target,
                          word="problem")  # fmt: skip
    return Answer(tables=(table,))


def _row(query: Query, problem: Problem) -> tuple[object, ...]:
    where = " ".join(filter(None, (query.profile.groups.title(problem.group), problem.lane)))
    offset = problem.offset if problem.offset >= 0 else None
    return problem.severity.word, problem.file or None, offset, where or None, problem.count, problem.what, problem.done
