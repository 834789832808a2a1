"""Allocations of device memory that libbmrt notes."""

from __future__ import annotations

from typing import Final

import numpy as np

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.views.answer import Answer, Column, Missing, Table

_COLUMNS: Final = (
    Column("use", "Use"),
    Column("bytes", "Size", "bytes"),
    Column("address", "Address", spare=1),
    Column("allocated_us", "Allocated", "time"),
    Column("freed_us", "Freed", "time"),
)


def device_memory(query: Query) -> Answer:
    """Allocations of the whole recording, the largest first."""
    memory = query.profile.table("device_memory", -1)
    if memory is None:
        return Answer(missing=(Missing("Device memory is not recorded."),))
    rows = np.argsort(-memory["bytes"], kind="stable")
    use, (size, address, start, end) = (
        memory.values("use", rows),
        (memory[key][rows].tolist() for key in ("bytes", "address", "allocated", "freed")),
    )
    lines = list(zip(use, size, map(hex, address), start, end, strict=True))
    note = "Whole recording, by the host's clock; 0: the runtime begins to set the run up. Freed -: never."
    table = Table.of_rows("allocations", "Device memory", _COLUMNS, lines, ordered=True)
    return Answer(tables=(table,), notes=(note,))
