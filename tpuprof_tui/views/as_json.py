"""JSON renderer of answers: the record format of ``tpuprof report``."""

from __future__ import annotations

from typing import Any, Final

from .answer import Answer, Column, Fact, Series, Table, plain_list, plain_value

#: Units in JSON; durations and times are us with all known digits.
_UNITS: Final[dict[str, str]] = {
    "duration": "us", "time": "us", "bytes": "B", "rate": "GB/s", "share": "share", "count": "count"
}  # fmt: skip


def answer_record(answer: Answer, start_ns: int = 0, limit: int | None = None, offset: int = 0) -> dict[str, Any]:
    """An answer as a record; times count from ``start_ns``; tables have ``limit`` rows (None: all) from ``offset``."""
    record: dict[str, Any] = {
        "figures": {fact.key: _values([plain_value(fact.value)], fact, start_ns)[0] for fact in answer.facts}
    }
    tables = [*answer.tables, *map(Series.table, answer.series)]
    record["tables"] = {table.key: table_record(table, start_ns, limit, offset) for table in tables}
    if answer.source:
        record["source"] = answer.source
    if answer.missing or answer.source:
        record["missing"] = [{"what": each.what, "needs": each.needs, "do": each.do} for each in answer.missing]
    return record


def table_record(table: Table, start_ns: int = 0, limit: int | None = None, offset: int = 0) -> dict[str, Any]:
    """A table, or a slice of its rows, as a record."""
    stop = len(table) if limit is None else min(offset + limit, len(table))
    values = [
        _values(plain_list(each[offset:stop]), column, start_ns)
        for each, column in zip(table.values, table.columns, strict=True)
    ]
    rows = list(map(list, zip(*values, strict=True)))
    record: dict[str, Any] = {
        "columns": [{"key": each.key, "title": each.title, "unit": each.unit or _UNITS.get(each.kind, "")}
                    for each in table.columns],
        "rows": rows,
        "total_rows": len(table),
        "truncated": len(rows) < len(table),
    }  # fmt: skip
    if table.guessed:
        record["guessed"] = sorted(row - offset for row in table.guessed if offset <= row < stop)
    return record


def us(ns: int | float | None) -> int | float | None:
    """Converts ns to us; exact for whole ns, since the shortest repr of the quotient has no spurious digits."""
    return ns if ns is None else ns / 1000 if isinstance(ns, float) or ns % 1000 else ns // 1000


def exact_us(ns: int) -> str:
    """Converts ns to us, as an exact decimal string."""
    whole, rest = divmod(abs(ns), 1000)
    return f"{'-' if ns < 0 else ''}{whole}{f'.{rest:03d}'.rstrip('0') if rest else ''}"


def _values(values: list[Any], column: Column | Fact, start_ns: int) -> list[Any]:
    """Converts values of a column or fact to JSON units; a whole column at once, since tables may be large."""
    if column.kind == "list" and start_ns:
        return [[_counted_from(start_ns, each) for each in value] for value in values]
    if column.kind not in ("duration", "time"):
        return values
    if column.kind == "time" and column.epoch_ns is not None:
        return [None if value is None else exact_us(value + column.epoch_ns) for value in values]
    if column.kind == "time" and start_ns:
        values = [None if value is None else value - start_ns for value in values]
    return list(map(us, values))


def _counted_from(start_ns: int, record: Any) -> Any:
    """A record of an interval (`evidence`), its start counted from another time."""
    start = record.get("start_us") if isinstance(record, dict) else None
    return record if start is None else {**record, "start_us": us(round(start * 1000) - start_ns)}
