"""Columns by what people type: key, alias or title, whole or begun."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof_tui.model import Column


def columns_named(columns: Sequence[Column], text: str) -> list[Column]:
    """Columns that a text can mean, the likeliest first: named so, beginning so, holding it; in their order.

    Args:
        columns: Those there are.
        text: What was typed; blanks at its ends and capitals do not count.
    """
    wanted = text.strip().lower()
    if not wanted:
        return []
    ranked = [(rank, column) for column in columns if (rank := _rank(column, wanted)) is not None]
    return [column for _, column in sorted(ranked, key=lambda each: each[0])]


def _rank(column: Column, wanted: str) -> int | None:
    names = [name.lower() for name in (column.key, *column.aliases, column.title)]
    if wanted in names:
        return 0
    if any(name.startswith(wanted) for name in names):
        return 1
    return 2 if any(wanted in name for name in names) else None
