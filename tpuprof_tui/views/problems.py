"""View of problems: what could not be read, was repaired or had to be guessed."""

from __future__ import annotations

from collections.abc import Iterator

from tpuprof_tui.analysis.evidence.problem_rows import by_severity, damages, lane_of
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope

from .answer import Answer, Column, Table, Target


def problems(query: Query) -> Answer:
    """What problems mean by unit, then a row per problem, worst first; of the whole profile, whatever is selected."""
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
        Column("severity", "Severity"), Column("file", "File"), Column("offset", "Byte", "count", drop_first=2),
        Column("group", "Where"), Column("count", "Times", "count", drop_first=1), Column("what", "What"),
        Column("done", "Done"),
    )  # fmt: skip
    narrowed = query.range is not None or query.full_filter or not query.scope.everything
    notes = ("Problems are of the whole profile.",) if narrowed and rows else ()
    table = Table.of_rows("problems", "Problems", columns, rows, target=target, word="problem")
    return Answer(tables=(*_damage(query), table), notes=notes)


def _damage(query: Query) -> Iterator[Table]:
    """What is missing of the events of each unit, in words; figures for programs."""
    found, event = damages(query.session), query.vocabulary.event
    columns = (
        Column("group", "Where"), Column("what", "What this means"), Column("events", "Events", "count", shown=False),
        Column("unnamed", "Without a name", "count", shown=False), Column("from_us", "From", "time", shown=False),
        Column("until_us", "Until", "time", shown=False), Column("lost", "Lost", "count", shown=False),
    )  # fmt: skip
    rows = [(query.profile.groups.title(damage.group), damage.text(event), damage.events, damage.unnamed,
             *((damage.first, damage.last) if damage.unnamed else (None, None)), damage.lost)
            for damage in found]  # fmt: skip
    if rows:
        yield Table.of_rows("damage", "What is missing", columns, rows, word="place",
                            target=lambda row: Target(scope=Scope(found[row].group)))  # fmt: skip
