"""One answer for several workers: the rows of each one after the other, and figures that name the worker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from .answer import Answer, Column, Table

#: Tells rows of several workers apart.
WORKER: Final = Column("worker", "Worker")


def joined(found: Sequence[tuple[str, Answer]], figures: Iterable[Table] = ()) -> Answer:
    """What a view says of several workers.

    Args:
        found: What each is called, and what the view says of it; the answer of a single one stays as it is.
        figures: Tables of the figures of all, which come first.
    """
    if len(found) == 1:
        return found[0][1]
    tables: dict[str, list[tuple[str, Table]]] = {}
    for name, answer in found:
        for table in answer.tables:
            tables.setdefault(table.key, []).append((name, table))
    return Answer(
        # tables tell people the same of each
        facts=tuple(replace(fact, about=name, shown=False) for name, answer in found for fact in answer.facts),
        tables=(*figures, *map(_stacked, tables.values())),
        notes=tuple(dict.fromkeys(note for _, answer in found for note in answer.notes)),
        missing=tuple(dict.fromkeys(each for _, answer in found for each in answer.missing)),
        source=", ".join(dict.fromkeys(answer.source for _, answer in found if answer.source)),
    )


def _stacked(parts: Sequence[tuple[str, Table]]) -> Table:
    """Tables of several workers as one; columns that not all of them have are empty elsewhere."""
    columns = {column.key: column for _, table in parts for column in table.columns}
    values: list[list[Any]] = [[] for _ in columns]
    workers: list[str] = []
    for name, table in parts:
        workers += [name] * len(table)
        known = {column.key for column in table.columns}
        for place, key in enumerate(columns):
            values[place] += table.column(key) if key in known else [None] * len(table)
    first = parts[0][1]
    return Table(first.key, first.title, (WORKER, *columns.values()), (workers, *values), notes=first.notes,
                 word=first.word, shown=first.shown, ordered=first.ordered)  # fmt: skip
