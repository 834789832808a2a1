"""Allocations of device memory that libbmrt notes."""

from __future__ import annotations

from typing import Final

import numpy as np

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.views.answer import Answer, Column, Missing, Table
from tpuprof_tui.views.query import Query

_COLUMNS: Final = (
    Column("use", "Use"),
    Column("bytes", "Size", "bytes"),
    Column("address", "Address", spare=1),
    Column("allocated_us", "Allocated", "time"),
    Column("freed_us", "Freed", "time"),
)


def device_memory(query: Query) -> Answer:
    """Allocations, the largest first: those that exist in the range."""
    memory = query.profile.table("device_memory", -1)
    if memory is None:
        return Answer(missing=(Missing("Device memory is not recorded."),))
    first, last = query.range if query.range is not None else (None, None)
    freed, allocated = memory["freed"], memory["allocated"]
    there = np.ones(len(memory), np.bool_)
    if first is not None and last is not None:
        there = (allocated < last) & ((freed == INT_MISSING) | (freed > first))
    rows = np.flatnonzero(there)
    rows = rows[np.argsort(-memory["bytes"][rows], kind="stable")]
    use, (size, address, start, end) = (
        memory.values("use", rows),
        (memory[key][rows].tolist() for key in ("bytes", "address", "allocated", "freed")),
    )
    lines = list(zip(use, size, map(hex, address), start, end, strict=True))
    note = "By the host's clock; 0: the runtime begins to set the run up, instructions follow later. Freed -: never."
    table = Table.of_rows("allocations", "Device memory", _COLUMNS, lines, ordered=True)
    return Answer(tables=(table,), notes=(note,))
