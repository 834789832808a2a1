"""One answer for several workers: the rows of each one after the other, and figures that name the worker."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Final

import numpy.typing as npt
from msgspec.structs import replace

from .answer import Answer, Column, Later, Table, Target, plain_list

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
    bounds = [0, *accumulate(len(table) for _, table in parts)]

    def column(key: str) -> Later:
        own = [table.values[place] if (place := table.place(key)) >= 0 else None for _, table in parts]
        return Later(bounds[-1], lambda rows: _rows(own, bounds, rows))

    def workers(rows: slice) -> list[str]:
        found: list[str] = []
        for (name, _), first, last in zip(parts, bounds, bounds[1:], strict=False):
            found += [name] * (min(rows.stop, last) - max(rows.start, first))
        return found

    def target(row: int) -> Target | None:
        place = bisect_right(bounds, row) - 1
        return parts[place][1].leads_to(row - bounds[place])

    first = parts[0][1]
    values = (Later(bounds[-1], workers), *map(column, columns))
    return Table(first.key, first.title, (WORKER, *columns.values()), values, target, notes=first.notes,
                 word=first.word, shown=first.shown, ordered=first.ordered)  # fmt: skip


def _rows(parts: Sequence[Sequence[Any] | npt.NDArray[Any] | None], bounds: Sequence[int], rows: slice) -> list[Any]:
    """Some rows of parts of a column that follow each other; None of a part that is none."""
    found: list[Any] = []
    for part, first, last in zip(parts, bounds, bounds[1:], strict=False):
        low, high = max(rows.start, first) - first, min(rows.stop, last) - first
        if low < high:
            found += [None] * (high - low) if part is None else plain_list(part[low:high])
    return found
