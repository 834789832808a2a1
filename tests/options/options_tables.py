"""What the tests of options share: tables loaded once, and a check in one call."""

from __future__ import annotations

from tpuprof_tui.options.checking import CheckResult, check
from tpuprof_tui.options.conditions import Context
from tpuprof_tui.options.reading import read
from tpuprof_tui.options.tables import SOURCES, Tables, load, sources_of_kinds

KINDS = sources_of_kinds()
TABLES: dict[str, Tables] = {source: load(source, "en") for source in SOURCES}


def tables_of(kind: str) -> Tables:
    return TABLES[KINDS[kind]]


def checked(text: str, kind: str = "PROFILING_OPTIONS", **context) -> CheckResult:
    tables = tables_of(kind)
    return check(read(text, tables.kinds[kind], tables), tables.kinds[kind], tables, Context(**context))


def codes(text: str, kind: str = "PROFILING_OPTIONS", **context) -> set[tuple[str, str | None]]:
    return {(each.code, each.option) for each in checked(text, kind, **context).violations}
