"""Memory over time, its peaks, what lived from when to when, and which operators asked for it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.views.answer import Answer, Column, Fact, Table
from tpuprof_tui.views.query import Query

from ..read.profile import device_name, properties_of
from ..vocabulary import MEMORY
from .run import Asked, Run
from .tables import Grouped, of_workers

I64 = npt.NDArray[np.int64]
UNKNOWN: Final = "<unknown>"
_BYTES: Final = (
    Column("increase_bytes", "Increase", "bytes"), Column("self_increase_bytes", "Own increase", "bytes"),
    Column("allocations", "Allocations", "count"), Column("self_allocations", "Own allocations", "count"),
    Column("allocated_bytes", "Allocated", "bytes", bar=True),
    Column("self_allocated_bytes", "Own allocated", "bytes", bar=True),
)  # fmt: skip


def memory(query: Query) -> Answer:
    """The view."""
    return of_workers(query, _memory, MEMORY)


def _memory(asked: Asked) -> Answer:
    run = asked.run
    memory, shift = run.trace.memory, run.worker.shift_ns
    inside = np.ones(len(memory), np.bool_)
    if asked.window is not None:
        inside = (memory.time >= asked.window[0]) & (memory.time < asked.window[1])
    devices = sorted({*zip(memory.device_type.tolist(), memory.device_id.tolist(), strict=True)})
    points = inside & (memory.address != INT_MISSING) & (memory.allocated != INT_MISSING)
    points &= memory.reserved != INT_MISSING
    node = run.tree.node_at(memory.lane, memory.time)
    if len(run.tree.rows):
        node = np.where((node >= 0) & run.tree.operator[node], node, -1)
    rows, curve = [], []
    capacities = {str(each.get("id")): each.get("totalGlobalMem") for each in properties_of(run.trace)}
    for kind, number in devices:
        mine = points & (memory.device_type == kind) & (memory.device_id == number)
        if not mine.any():
            continue
        name = device_name(kind, number)
        capacity = capacities.get(str(number)) if name.startswith("GPU") else None
        rows.append((name, int(mine.sum()), int(memory.allocated[mine].max()), int(memory.reserved[mine].max()),
                     capacity))  # fmt: skip
        columns = (memory.time[mine] + shift, memory.allocated[mine], memory.reserved[mine])
        curve += [(name, *each) for each in zip(*(values.tolist() for values in columns), strict=True)]
    return Answer(
        (Fact("records", "Records", int(inside.sum())),),
        (
            Table.of_rows("devices", "Devices", (
                Column("device", "Device"), Column("points", "Points", "count"),
                Column("peak_allocated_bytes", "Peak allocated", "bytes"),
                Column("peak_reserved_bytes", "Peak reserved", "bytes"), Column("capacity_bytes", "Capacity", "bytes"),
            ), rows),
            _statistics(run, devices, node, inside),
            _events(run, devices, node, inside, shift),
            Table.of_rows("curve", "Over time", (
                Column("device", "Device"), Column("time_us", "Time", "time"),
                Column("allocated_bytes", "Allocated", "bytes"), Column("reserved_bytes", "Reserved", "bytes"),
            ), curve),
        ),
    )  # fmt: skip


def _statistics(run: Run, devices: list[tuple[int, int]], node: I64, inside: npt.NDArray[np.bool_]) -> Table:
    trace, tree, memory = run.trace, run.tree, run.trace.memory
    names = trace.name[tree.rows]
    shown = np.flatnonzero(tree.stays & tree.operator)
    group = Grouped(names[shown])
    calls = group.calls()
    rows: list[tuple[Any, ...]] = []
    for kind, number in devices:
        mine = np.flatnonzero(inside & (memory.device_type == kind) & (memory.device_id == number) & (node >= 0))
        change = np.where(memory.change[mine] == INT_MISSING, 0, memory.change[mine])
        columns = []
        for values in (change, (change > 0).astype(np.int64), np.maximum(change, 0)):
            own = np.zeros(len(tree.rows), np.int64)
            np.add.at(own, node[mine], values)
            columns += [group.total(tree.summed_up(own)[shown]), group.total(own[shown])]
        found = np.flatnonzero(np.stack(columns).any(axis=0)) if group.count else np.zeros(0, np.int64)
        device = [device_name(kind, number)] * len(found)
        labels = [trace.names[code] for code in group.keys[found, 0].tolist()]
        rows += zip(device, labels, calls[found].tolist(), *(each[found].tolist() for each in columns), strict=True)
    rows.sort(key=lambda row: (row[0], -row[8], -row[7], row[1]))
    keys = (Column("device", "Device"), Column("operator", "Operator"), Column("calls", "Calls", "count"))
    return Table.of_rows("statistics", "By operator", (*keys, *_BYTES), rows)


def _events(run: Run, devices: list[tuple[int, int]], node: I64, inside: npt.NDArray[np.bool_], shift: int) -> Table:
    """What lived from when to when: an address is opened by bytes above 0 and closed by a release."""
    memory = run.trace.memory
    names = {each: device_name(*each) for each in devices}
    opened: dict[int, tuple[int, int, int]] = {}
    rows: list[tuple[Any, ...]] = []

    def row(number: int, size: int, opener: int | None, begin: int | None, end: int | None) -> None:
        device = (int(memory.device_type[number]), int(memory.device_id[number]))
        rows.append((names[device], UNKNOWN if opener is None else _operator_name(run, int(node[opener])), size,
                     None if begin is None else begin + shift, None if end is None else end + shift,
                     None if begin is None or end is None else end - begin))  # fmt: skip

    chosen = np.flatnonzero(inside & (memory.address != INT_MISSING))
    changes = np.where(memory.change[chosen] == INT_MISSING, 0, memory.change[chosen])
    for number, address, change, time in zip(
        chosen.tolist(), memory.address[chosen].tolist(), changes.tolist(), memory.time[chosen].tolist(), strict=True
    ):
        before = opened.pop(address, None)
        if change > 0:
            if before is not None:
                row(before[0], before[1], before[0], before[2], None)
            opened[address] = (number, change, time)
        elif before is not None:
            row(before[0], -change, before[0], before[2], time)
        else:
            row(number, -change, None, None, time)
    for number, size, time in opened.values():
        row(number, size, number, time, None)
    rows.sort(key=lambda each: (-each[2], each[0], each[3] if each[3] is not None else -1, each[4] or 0, each[1]))
    return Table.of_rows("events", "Events", (
        Column("device", "Device"), Column("operator", "Operator"), Column("bytes", "Bytes", "bytes", bar=True),
        Column("allocated_at_us", "Allocated", "time"), Column("released_at_us", "Released", "time"),
        Column("duration_us", "Duration", "duration"),
    ), rows)  # fmt: skip


def _operator_name(run: Run, node: int) -> str:
    """What is said of the operator of an instant; ``aten::empty`` with what called it."""
    trace, tree = run.trace, run.tree
    if node < 0:
        return UNKNOWN
    name = trace.names[trace.name[tree.rows[node]]]
    above = int(tree.parent[node])
    return (
        f"{trace.names[trace.name[tree.rows[above]]]} ({name})"
        if name.startswith("aten::empty") and above >= 0
        else name
    )
