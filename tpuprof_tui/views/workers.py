"""Combines a view's answers for several workers: rows stacked, figures as a table with a row per worker."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Final

import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.state import Scope

from .answer import TEXTS, Answer, Column, LazyValues, Table, Target, plain_list

#: Title of the table of figures; the registry puts the view's name before it.
FIGURES: Final = "Workers"
#: Column that identifies the worker of a row.
WORKER: Final = Column("worker", "Worker")

#: Name and group of a worker, and one of its tables.
_Part = tuple[str, int, Table]


def stack_workers(answers: Sequence[tuple[str, Answer]], groups: Sequence[int]) -> Answer:
    """Combines answers by worker name; a single one is returned unchanged.

    ``groups``: group id of each worker, the target of its row in the table of figures, which comes first.
    """
    if len(answers) == 1:
        return answers[0][1]
    tables: dict[str, list[_Part]] = {}
    for (name, answer), group in zip(answers, groups, strict=True):
        for table in answer.tables:
            tables.setdefault(table.key, []).append((name, group, table))
    return Answer(
        # people see the facts in the table of workers instead
        facts=tuple(replace(fact, about=name, shown=False) for name, answer in answers for fact in answer.facts),
        tables=(*_figures(answers, groups), *map(_stack_tables, tables.values())),
        notes=tuple(dict.fromkeys(note for _, answer in answers for note in answer.notes)),
        missing=tuple(dict.fromkeys(each for _, answer in answers for each in answer.missing)),
        source=", ".join(dict.fromkeys(answer.source for _, answer in answers if answer.source)),
    )


def _figures(found: Sequence[tuple[str, Answer]], groups: Sequence[int]) -> Iterator[Table]:
    facts = [{fact.key: fact for fact in answer.facts if fact.shown} for _, answer in found]
    columns = [WORKER]
    known = {key: fact for each in reversed(facts) for key, fact in each.items() if fact.kind not in TEXTS}
    sums = {key: sum(each[key].value or 0 for each in facts if key in each) for key in known}
    least = sorted(sums, key=lambda key: -sums[key])
    for key, fact in known.items():
        if sums[key]:
            columns.append(
                Column(key, fact.title, fact.kind, fact.unit, drop_first=least.index(key), short_title=fact.short_title)
            )
    rows = [
        (key, *(each[column.key].value if column.key in each else None for column in columns[1:]))
        for (key, _), each in zip(found, facts, strict=True)
    ]
    if len(columns) > 1:
        scopes = [Target(scope=Scope(group)) for group in groups]
        yield Table.of_rows("workers", FIGURES, columns, rows, target=scopes.__getitem__, word="worker",
                            one_unit=any(table.one_unit for _, answer in found for table in answer.tables))  # fmt: skip


def _stack_tables(parts: Sequence[_Part]) -> Table:
    columns = {column.key: column for *_, table in parts for column in table.columns}
    bounds = [0, *accumulate(len(table) for *_, table in parts)]

    def column(key: str) -> LazyValues:
        own = [table.values[index] if (index := table.column_index(key)) >= 0 else None for *_, table in parts]
        return LazyValues(bounds[-1], lambda rows: _rows(own, bounds, rows))

    def workers(rows: slice) -> list[str]:
        found: list[str] = []
        for (name, *_), first, last in zip(parts, bounds, bounds[1:], strict=False):
            found += [name] * (min(rows.stop, last) - max(rows.start, first))
        return found

    def target(row: int) -> Target | None:
        index = bisect_right(bounds, row) - 1
        _, group, table = parts[index]
        return of_group(table.target_of(row - bounds[index]), group)

    first = parts[0][2]
    values = (LazyValues(bounds[-1], workers), *map(column, columns))
    return Table(first.key, first.title, (WORKER, *columns.values()), values, target, notes=first.notes,
                 word=first.word, shown=first.shown, ordered=first.ordered, one_unit=first.one_unit,
                 longest=first.longest)  # fmt: skip


def of_group(target: Target | None, group: int) -> Target | None:
    """The destination of a row of one worker's table: a condition is of events of its group (-1: of all)."""
    if target is None or not target.condition or target.scope is not None or group < 0:
        return target
    return replace(target, scope=Scope(group))


def _rows(parts: Sequence[Sequence[Any] | npt.NDArray[Any] | None], bounds: Sequence[int], rows: slice) -> list[Any]:
    """Rows of a column that is a concatenation of parts; None for a missing part."""
    found: list[Any] = []
    for part, first, last in zip(parts, bounds, bounds[1:], strict=False):
        low, high = max(rows.start, first) - first, min(rows.stop, last) - first
        if low < high:
            found += [None] * (high - low) if part is None else plain_list(part[low:high])
    return found
