"""Outer join of one view's answers for two profiles, on the texts that identify rows, with differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.analysis.compare.noise import Amount, Status

from .answer import Answer, Column, Fact, Kind, Table, Target

#: Kinds that are compared; times are not, since the two time lines are unrelated.
NUMBERS: Final[tuple[Kind, ...]] = ("count", "duration", "bytes", "rate", "share", "number")
#: Kinds for which a missing row counts as 0.
_SUMS: Final[tuple[Kind, ...]] = ("count", "duration", "bytes")
#: Candidates for the main number of a table, by which rows are sorted and judged.
_MAIN: Final = ("total_us", "step_us", "length_us", "busy_us")
_COUNTS: Final = ("count", "calls", "events")
_SIDES: Final = ("base", "other", "delta")
_TITLES: Final = {"base": "Base", "other": "Other", "delta": "Delta"}

#: Judges the main number of a row: (key of the table, texts of the row, amount, kind) -> status.
Judge = Callable[[str, tuple[Any, ...], Amount, Kind], Status]


def join_sides(base: Answer, other: Answer, judge: Judge, renamed: tuple[str, Mapping[str, str]] = ("", {})) -> Answer:
    """Joins the answers of both sides: each figure becomes three, each numeric column three columns.

    ``judge`` gives the status of a row's main number. ``renamed``: the word of rows that are operations, and the joint
    names of operations by their own; applied to tables with that word.
    """
    ours, theirs = ({table.key: table for table in side.tables} for side in (base, other))
    tables = []
    for key in dict.fromkeys((*ours, *theirs)):
        table = _join_tables(ours.get(key), theirs.get(key), judge, renamed)
        if table is not None:
            tables.append(table)
    missing = tuple(dict.fromkeys((*base.missing, *other.missing)))
    notes = tuple(dict.fromkeys((*base.notes, *other.notes)))
    return Answer(tuple(_facts(base, other)), tuple(tables), notes=notes, missing=missing)


def _facts(base: Answer, other: Answer) -> Iterator[Fact]:
    ours, theirs = ({fact.key: fact for fact in side.facts if fact.kind in NUMBERS} for side in (base, other))
    for key in dict.fromkeys((*ours, *theirs)):
        fact = ours.get(key) or theirs[key]
        one, two = (side[key].value if key in side else None for side in (ours, theirs))
        for name, value in zip(_SIDES, (one, two, _difference(one, two)), strict=True):
            yield replace(
                fact, key=f"{name}_{key}", title=f"{fact.title}, {name}", value=value, share=None, about="", target=None
            )


def _difference(base: Any, other: Any) -> Any:
    return None if base is None or other is None else other - base


class _Side(Struct, frozen=True):
    """Rows of one side by key: identifying texts, and occurrence number among equal texts."""

    rows: dict[tuple[Any, ...], tuple[Any, ...]]
    order: dict[str, int]
    numbers: dict[tuple[Any, ...], int] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table | None, names: Sequence[Column], renamed: Mapping[str, str]) -> _Side:
        if table is None:
            return cls({}, {})
        order = {column.key: number for number, column in enumerate(table.columns)}
        found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        counted = order.get("counted")
        counts: dict[tuple[Any, ...], int] = {}
        numbers: dict[tuple[Any, ...], int] = {}
        for number, row in enumerate(table.rows()):
            if counted is not None and not row[counted]:
                continue
            texts = tuple(row[order[column.key]] if column.key in order else None for column in names)
            joint_texts = tuple(renamed.get(text, text) if isinstance(text, str) else text for text in texts)
            first_key = (*joint_texts, 1)
            if joint_texts != texts and first_key in found:
                found[first_key] = _merge_rows(table.columns, found[first_key], row)
                continue
            counts[joint_texts] = occurrence = counts.get(joint_texts, 0) + 1
            key: tuple[Any, ...] = (*joint_texts, occurrence)
            found[key] = row
            numbers[key] = number
        return cls(found, order, numbers)

    def value(self, key: tuple[Any, ...], column: Column) -> Any:
        row = self.rows.get(key)
        if row is None:
            return 0 if column.kind in _SUMS else None
        return row[self.order[column.key]] if column.key in self.order else None


def _merge_rows(columns: Sequence[Column], one: Sequence[Any], two: Sequence[Any]) -> tuple[Any, ...]:
    """Merges two rows of one operation: sums are added, maxima and minima taken, means weighted by count."""
    count = next((index for index, column in enumerate(columns) if column.key in _COUNTS), None)
    first, second = (1, 1) if count is None else (one[count] or 0, two[count] or 0)
    return tuple(
        None if None in (ours, theirs)
        else (ours * first + theirs * second) / max(first + second, 1) if column.key.startswith(("mean_", "avg_"))
        else max(ours, theirs) if column.key.startswith("max_")
        else min(ours, theirs) if column.key.startswith("min_")
        else ours + theirs if column.kind in (*_SUMS, "share") else ours
        for column, ours, theirs in zip(columns, one, two, strict=True)
    )  # fmt: skip


def _join_tables(
    base: Table | None, other: Table | None, judge: Judge, renamed: tuple[str, Mapping[str, str]]
) -> Table | None:
    # an empty base table is used only if the other side has no such table
    table = base or (base if other is None else other)
    assert table is not None
    columns_by_key = {column.key: column for side in (base, other) if side is not None for column in side.columns}
    texts = [column for column in columns_by_key.values() if column.kind == "text"]
    names = [column for column in texts if (column.key == "worker" if table.ordered else column.is_key)]
    numbers = [column for column in columns_by_key.values() if column.kind in NUMBERS and column.key != "number"]
    if not numbers or not (names or table.ordered):
        return None
    of_word = renamed[1] if table.word == renamed[0] else {}
    ours, theirs = (_Side.of(side, names, of_word) for side in (base, other))
    main = _main(numbers, ours, theirs)
    counts = next((column for column in numbers if column.key in _COUNTS), None)
    labels = [column for column in texts if column not in names and column.is_key] if table.ordered else []
    rows = []
    for key in dict.fromkeys((*ours.rows, *theirs.rows)):
        cells: list[Any] = list(key[:-1])
        if table.ordered:
            side = ours if key in ours.rows else theirs
            cells += [side.rows[key][side.order[column.key]] for column in labels if column.key in side.order]
            cells.insert(len(names), key[-1])
        for column in numbers:
            one, two = ours.value(key, column), theirs.value(key, column)
            cells += [one, two, _difference(one, two)]
        values = [side.value(key, main) for side in (ours, theirs)]
        number = [side.value(key, counts) if counts is not None and key in side.rows else int(key in side.rows)
                  for side in (ours, theirs)]  # fmt: skip
        amount = None if None in values else Amount("", values[0], values[1], number[0] or 0, number[1] or 0)
        status = None if amount is None else judge(table.key, key[:-1], amount, main.kind)
        rows.append((-abs(amount.delta if amount is not None else 0), (*cells, status), theirs.numbers.get(key, -1)))
    rows.sort(key=lambda row: row[0])
    other_rows = [place for _, _, place in rows]

    def target(row: int) -> Target | None:
        """Destination of the row in the other profile."""
        return other.target_of(other_rows[row]) if other is not None and other_rows[row] >= 0 else None

    place = [Column("place", "No.", "count")] if table.ordered else []
    three = (replace(column, key=f"{side}_{column.key}", bar=False, spare=0 if column is main else rank,
                     title=_TITLES[side] if column is main else f"{column.title} {_TITLES[side].lower()}")
             for rank, column in enumerate(numbers, 1) for side in _SIDES)  # fmt: skip
    columns = [*names, *place, *labels, *three, Column("status", "Status")]
    return Table.of_rows(
        table.key, table.title, columns, [row for _, row, _ in rows], word=table.word, shown=table.shown,
        notes=table.notes, target=target,
    )  # fmt: skip


def _main(numbers: Sequence[Column], ours: _Side, theirs: _Side) -> Column:
    def known(column: Column) -> bool:
        return any(side.value(key, column) for side in (ours, theirs) for key in side.rows)

    by_key = {column.key: column for column in numbers}
    candidates = [by_key[key] for key in _MAIN if key in by_key]
    candidates += [column for column in numbers if column.bar and column.kind == "duration"]
    candidates += [column for column in numbers if column.kind == "duration"]
    return next(filter(known, candidates), (candidates or list(numbers))[0])
