"""Renderer of answers for the HTML page: texts of cells, and raw numbers for bars and sorting."""

from __future__ import annotations

from typing import Any, Final

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.formats.escape import line_text

from .answer import TEXTS, Answer, Table
from .cells import CellFormats, fact_text, shown_columns, shown_facts
from .registry import answer, views_of

#: Maximum rows of a table on the page.
ROWS: Final = 200


def page_views(query: Query, leaving_out: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
    """Records of the non-empty views, in order; all texts are single-line and free of control characters."""
    records = []
    for view in views_of(query.vocabulary):
        found = answer(view, query) if view.in_summary and view.id not in leaving_out else Answer()
        if found.facts or any(len(table) for table in found.tables):
            title, help_text = (query.vocabulary.say(text) for text in (view.title, view.help))
            facts = [[fact.title, line_text(fact_text(fact))] for fact in shown_facts(found.facts)]
            tables = [_table(table.merged()) for table in found.tables if len(table)]
            records.append({"id": view.id, "title": title, "help": help_text, "facts": facts, "tables": tables,
                            "notes": list(found.notes)})  # fmt: skip
    return records


def _table(table: Table) -> dict[str, Any]:
    cells, indexes = CellFormats.of(table), shown_columns(table)
    shown = table.rows(0, ROWS)
    columns = [
        {
            "key": column.key,
            "title": cells.header(column),
            "text": column.kind in TEXTS,
            "full": table.bar_full(column) if column.bar else None,
            "values": None if column.kind in TEXTS else [row[place] for row in shown],
        }
        for column, place in ((table.columns[place], place) for place in indexes)
    ]
    rows = [[line_text(text) for text in row] for row in cells.rows(table, indexes, 0, ROWS)]
    return {"key": table.key, "title": cells.title(table), "columns": columns, "rows": rows, "total": table.total,
            "more": len(table) - len(shown), "notes": list(table.notes)}  # fmt: skip
