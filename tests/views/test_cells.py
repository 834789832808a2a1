"""Units and bars of tables for people."""

from __future__ import annotations

import pytest

from tpuprof_tui.views.answer import Column, Table
from tpuprof_tui.views.as_page import _table
from tpuprof_tui.views.cells import CellFormats


def headers(*columns: Column, rows: list[tuple[int, ...]]) -> list[str]:
    table = Table.of_rows("found", "Found", columns, rows)
    cells = CellFormats.of(table)
    return [cells.title(table), *map(cells.header, columns)]


def durations(*keys: str) -> tuple[Column, ...]:
    return tuple(Column(key, key, "duration") for key in keys)


def test_columns_that_are_compared_have_one_unit():
    """5,952 ns of the device beside 14 ms of the host; a base of 6,752 us beside 4.5 ms; a difference has its own."""
    found = headers(*durations("device_self_us", "host_self_us", "wait_us"), rows=[(5_952, 14_000_000, 500)])
    assert found == ["Found (ms)", "device_self_us", "host_self_us", "wait_us (ns)"]
    found = headers(*durations("base_busy_us", "other_busy_us", "delta_busy_us"), rows=[(6_752_901, 45_410_000, 12)])
    assert found == ["Found (ms)", "base_busy_us", "other_busy_us", "delta_busy_us (ns)"]
    # of both sides and of host and device
    keys = [f"{side}_{unit}_self_us" for side in ("base", "other") for unit in ("host", "device")]
    assert headers(*durations(*keys), rows=[(1, 2, 3, 45_000_000)]) == ["Found (ms)", *keys]
    # their differences have one of their own
    deltas = [f"delta_{unit}_self_us" for unit in ("host", "device")]
    found = headers(*durations(*keys, *deltas), rows=[(1, 2, 3, 45_000_000, 0, 7)])
    assert found == ["Found (ms)", *keys, *(f"{key} (ns)" for key in deltas)]


def test_names_that_only_begin_like_a_side_are_no_pair():
    """The rest of a step (other_us) is not compared with anything."""
    found = headers(*durations("other_us", "host_us"), rows=[(5_952, 14_000_000)])
    assert found == ["Found (ms)", "other_us (ns)", "host_us"]


@pytest.mark.parametrize(
    ("kind", "values", "full"), [("share", (0.069, 0.05), 1.0), ("duration", (300, 500), 500), ("count", (3, 2), 3)]
)
def test_a_full_bar_means_the_same_in_all_rows_and_columns_of_a_kind(kind, values, full):
    columns = Column("a", "A", kind, bar=True), Column("b", "B", kind, bar=True), Column("c", "C", kind)
    table = Table.of_rows("found", "Found", columns, [(*values, 10_000), (0, 0, 0)])
    assert [table.bar_full(column) for column in columns[:2]] == [full, full]
    assert [column["full"] for column in _table(table)["columns"]] == [full, full, None]
