"""A view in fifty lines: for each name of work its quickest event, and what all would take if each were as quick.

A view is a function from a query (a profile and what is selected of it) to an answer: facts and tables of raw values,
times in ns, which text, JSON, sheets, page and screen show in their own ways. Here a pivot makes the rows. A row in
``views/registry.py`` shows it for every source; a source lists its own in the ``views`` of its vocabulary, as below.
"""

from __future__ import annotations

from msgspec.structs import replace
from new_source import VOCABULARY as TIMES

from tpuprof_tui.analysis.pivot import Frame, key, least, pivot, rows, total
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.model import Role
from tpuprof_tui.model.view import View
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table
from tpuprof_tui.views.rules import filter_target

#: Columns of the table and figures of the pivot, pair by pair.
PAIRS = (
    (Column("name", "Name"), key("name", "-")),
    (Column("count", "Count", "count"), rows),
    (Column("quickest_us", "Quickest", "duration"), least("duration")),
    (Column("total_us", "Total", "duration", bar=True), total("duration")),
)


def quickest(query: Query) -> Answer:
    """The quickest event of each name, and the time beyond it of all others."""
    events: Frame = query.events(("name", "duration"), role=Role.WORK)
    if not len(events):
        return Answer(missing=(Missing(query.vocabulary.say("No {event} is selected.")),))
    columns, figures = zip(*PAIRS, strict=True)
    found = pivot(events, ("name",), dict(zip((column.key for column in columns), figures, strict=True)), ())
    table = [(*row, row[3] - row[1] * row[2]) for row in sorted(found, key=lambda row: row[1] * row[2] - row[3])]
    beyond = sum(row[-1] for row in table)
    return Answer(
        (Fact("beyond_us", "Beyond the quickest", beyond, "duration"),),
        (Table.of_rows("by_name", "By name", (*columns, Column("beyond_us", "Beyond", "duration")), table,
                       target=lambda row: filter_target("name", table[row][0])),),
    )  # fmt: skip


VIEW = View("quickest", "Quickest", "The quickest {event} of each name.", f"{__name__}:quickest")
VOCABULARY = replace(TIMES, views=(*TIMES.views, VIEW))
