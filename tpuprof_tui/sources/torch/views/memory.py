"""Memory view: memory over time, its peaks, lifetimes of allocations, and memory by operator."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.analysis.pivot import Frame, Groups, key, pivot, total
from tpuprof_tui.analysis.pivot import rows as count
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.views.answer import Answer, Column, Fact, Table, Target
from tpuprof_tui.views.query import Query

from ..read.profile import GPU_TYPES, device_name, properties_of
from ..vocabulary import MEMORY
from .run import Run, ViewSelection
from .tables import not_narrowed, of_workers, ratio

I64 = npt.NDArray[np.int64]
UNKNOWN: Final = "<unknown>"
BEFORE: Final = "<before recording>"
_BYTES: Final = (
    Column("increase_bytes", "Increase", "bytes"), Column("self_increase_bytes", "Own increase", "bytes"),
    Column("allocations", "Allocations", "count"), Column("self_allocations", "Own allocations", "count"),
    Column("allocated_bytes", "Allocated", "bytes", bar=True),
    Column("self_allocated_bytes", "Own allocated", "bytes", bar=True),
)  # fmt: skip


def memory(query: Query) -> Answer:
    """The memory view."""
    return not_narrowed(query, of_workers(query, _memory, MEMORY), "Figures of memory", ("filter",))


def _memory(selection: ViewSelection) -> Answer:
    run = selection.run
    memory, shift = run.trace.memory, run.worker.shift_ns
    inside = np.ones(len(memory), np.bool_)
    if selection.window is not None:
        inside = (memory.time >= selection.window[0]) & (memory.time < selection.window[1])
    if selection.step is not None:
        steps = selection.step_list
        inside &= np.logical_or.reduce([(memory.time >= steps.host_start[step]) & (memory.time < steps.host_end[step])
                                        for step in np.flatnonzero(selection.steps)], initial=False)  # fmt: skip
    devices = sorted({*zip(memory.device_type.tolist(), memory.device_id.tolist(), strict=True)})
    points = inside & (memory.address != INT_MISSING) & (memory.allocated != INT_MISSING)
    points &= memory.reserved != INT_MISSING
    node = run.trace.tree.node_at(memory.lane, memory.time)
    if len(run.trace.tree.rows):
        node = np.where((node >= 0) & run.trace.tree.operator[node], node, -1)
    rows: list[tuple[Any, ...]] = []
    peaks: list[tuple[str, int, int]] = []
    curve: list[tuple[list[str] | I64, ...]] = [([], *[np.zeros(0, np.int64)] * 3)]
    capacities = {str(each.get("id")): each.get("totalGlobalMem") for each in properties_of(run.trace)}
    for kind, number in devices:
        here = points & (memory.device_type == kind) & (memory.device_id == number)
        if not here.any():
            continue
        name = device_name(kind, number)
        capacity = capacities.get(str(number)) if kind in GPU_TYPES else None
        rows.append((name, int(here.sum()), int(memory.allocated[here].max()), int(memory.reserved[here].max()),
                     capacity))  # fmt: skip
        peaks.append((name, int(memory.time[here][memory.allocated[here].argmax()]) + shift, rows[-1][2]))
        curve.append(([name] * rows[-1][1], memory.time[here] + shift, memory.allocated[here], memory.reserved[here]))
    names, *numbers = zip(*curve, strict=True)
    # allocations held at a peak may precede the selected range
    lives = _lifetimes(run, node, np.ones(len(memory), np.bool_))
    return Answer(
        (Fact("records", "Records", int(inside.sum())),),
        (
            Table.of_rows("devices", "Devices", (
                Column("device", "Device"), Column("points", "Points", "count"),
                Column("peak_allocated_bytes", "Peak allocated", "bytes"),
                Column("peak_reserved_bytes", "Peak reserved", "bytes"), Column("capacity_bytes", "Capacity", "bytes"),
            ), rows, target=lambda row: Target(time=(peaks[row][1], peaks[row][1] + 1))),
            _held_at_peak(lives, peaks),
            _statistics(run, devices, node, inside),
            _events(lives if inside.all() else _lifetimes(run, node, inside)),
            Table("curve", "Over time", (
                Column("device", "Device"), Column("time_us", "Time", "time"),
                Column("allocated_bytes", "Allocated", "bytes"), Column("reserved_bytes", "Reserved", "bytes"),
            ), (list(chain.from_iterable(names)), *map(np.concatenate, numbers))),
        ),
    )  # fmt: skip


def _statistics(run: Run, devices: list[tuple[int, int]], node: I64, inside: npt.NDArray[np.bool_]) -> Table:
    trace, tree, memory = run.trace, run.trace.tree, run.trace.memory
    names = trace.name[tree.rows]
    nodes = np.flatnonzero(tree.unmerged & tree.operator)
    group = Groups(Frame({"name": names[nodes]}, {"name": trace.names}), ["name"])
    operators = key("name")(group)
    rows: list[tuple[Any, ...]] = []
    for kind, number in devices:
        instants = np.flatnonzero(inside & (memory.device_type == kind) & (memory.device_id == number) & (node >= 0))
        change = np.where(memory.change[instants] == INT_MISSING, 0, memory.change[instants])
        columns = []
        for values in (change, (change > 0).astype(np.int64), np.maximum(change, 0)):
            own_sums = np.zeros(len(tree.rows), np.int64)
            np.add.at(own_sums, node[instants], values)
            columns += [group.reduce(tree.subtree_sums(own_sums)[nodes]), group.reduce(own_sums[nodes])]
        found = np.flatnonzero(np.stack(columns).any(axis=0)) if group.count else np.zeros(0, np.int64)
        device = [device_name(kind, number)] * len(found)
        labels = [operators[number] for number in found.tolist()]
        rows += zip(
            device, labels, group.sizes[found].tolist(), *(each[found].tolist() for each in columns), strict=True
        )
    rows.sort(key=lambda row: (row[0], -row[8], -row[7], row[1]))
    keys = (
        Column("device", "Device"),
        Column("operator", "Operator", narrows="name"),
        Column("calls", "Calls", "count"),
    )
    return Table.of_rows("statistics", "By operator", (*keys, *_BYTES), rows)


class Lifetimes(Struct, frozen=True, eq=False):
    """Lifetimes of allocations, in columns of one length: a positive change allocates an address, others release it.

    Attributes:
        device, operator: Indices into ``devices`` and ``operators`` (the allocating operator).
        size: Bytes.
        begin, end: ns of the profile; missing if allocated before the recording, or never released.
    """

    device: I64
    operator: I64
    size: I64
    begin: I64
    end: I64
    devices: list[str]
    operators: list[str]


def _lifetimes(run: Run, node: I64, inside: npt.NDArray[np.bool_]) -> Lifetimes:
    memory = run.trace.memory
    chosen = np.flatnonzero(inside & (memory.address != INT_MISSING))
    # group by address; the stable sort keeps the order by time
    chosen = chosen[np.argsort(memory.address[chosen], kind="stable")]
    change = np.where(memory.change[chosen] == INT_MISSING, 0, memory.change[chosen])
    opens = change > 0
    again = memory.address[chosen][1:] == memory.address[chosen][:-1]
    was_open = np.r_[np.zeros(min(1, len(chosen)), np.bool_), again & opens[:-1]]
    ends = np.flatnonzero(was_open)
    released = ends[~opens[ends]]
    # lost: allocated again, or never released: no end; strays: released without allocation: no begin
    lost = np.r_[ends[opens[ends]] - 1, np.flatnonzero(opens & np.r_[~again, np.ones(min(1, len(chosen)), np.bool_)])]
    strays = np.flatnonzero(~opens & ~was_open)
    opener = np.r_[released - 1, lost, strays]
    time = memory.time[chosen] + run.worker.shift_ns
    begin = np.where(np.arange(len(opener)) < len(opener) - len(strays), time[opener], INT_MISSING)
    end = np.r_[time[released], np.full(len(lost), INT_MISSING), time[strays]]

    opener = chosen[opener]
    device, devices = _texts((memory.device_type[opener], memory.device_id[opener]), device_name)
    operator, operators = _operators(run, np.where(begin == INT_MISSING, -1, node[opener]))
    return Lifetimes(device, operator, np.r_[-change[released], change[lost], -change[strays]], begin, end, devices,
                     operators)  # fmt: skip


def _held_at_peak(lives: Lifetimes, peaks: list[tuple[str, int, int]]) -> Table:
    """Memory held at the peak of each device (name, ns, bytes), by allocating operator."""
    at = {name: time for name, time, _ in peaks}
    rows: list[tuple[Any, ...]] = []
    for name, time, peak in peaks:
        alive = (lives.begin != INT_MISSING) & (lives.begin <= time) & ((lives.end == INT_MISSING) | (lives.end > time))
        held = np.flatnonzero(alive & (lives.device == (lives.devices.index(name) if name in lives.devices else -1)))
        frame = Frame({"operator": lives.operator[held], "size": lives.size[held]}, {"operator": lives.operators})
        found = pivot(frame, ["operator"], {"operator": key("operator"), "size": total("size"), "calls": count},
                      ("-size", "operator"))  # fmt: skip
        rows += [(name, operator, size, calls, ratio(size, peak)) for operator, size, calls in found]
        if (rest := peak - int(frame["size"].sum())) > 0:
            rows.append((name, BEFORE, rest, None, ratio(rest, peak)))
    return Table.of_rows("held", "Held at the peak", (
        Column("device", "Device"), Column("operator", "Operator"), Column("bytes", "Bytes", "bytes", bar=True),
        Column("allocations", "Allocations", "count"), Column("share", "Share", "share"),
    ), rows, target=lambda row: Target(time=(at[rows[row][0]], at[rows[row][0]] + 1)), ordered=True)  # fmt: skip


def _events(lives: Lifetimes) -> Table:
    begin, end = lives.begin, lives.end
    order = np.lexsort((lives.operator, np.where(end == INT_MISSING, 0, end), np.where(begin == INT_MISSING, -1, begin),
                        lives.device, -lives.size))  # fmt: skip
    duration = np.where((begin == INT_MISSING) | (end == INT_MISSING), INT_MISSING, end - begin)
    return Table("events", "Events", (
        Column("device", "Device"), Column("operator", "Operator"), Column("bytes", "Bytes", "bytes", bar=True),
        Column("allocated_at_us", "Allocated", "time"), Column("released_at_us", "Released", "time"),
        Column("duration_us", "Duration", "duration"),
    ), ([lives.devices[code] for code in lives.device[order].tolist()],
        [lives.operators[code] for code in lives.operator[order].tolist()],
        lives.size[order], begin[order], end[order], duration[order]))  # fmt: skip


def _operators(run: Run, node: I64) -> tuple[I64, list[str]]:
    """Operator labels of instants, as indices into the distinct ones; ``aten::empty`` with its caller."""
    trace, tree = run.trace, run.trace.tree
    # index -1 selects the appended -1
    name_of = np.append(trace.name[tree.rows], -1)
    above = np.where(node >= 0, np.append(tree.parent, -1)[node], -1)

    def label(name: int, caller: int) -> str:
        text = trace.names[name] if name >= 0 else UNKNOWN
        return f"{trace.names[caller]} ({text})" if caller >= 0 and text.startswith("aten::empty") else text

    return _texts((name_of[node], name_of[above]), label)


def _texts(codes: tuple[npt.NDArray[np.integer[Any]], ...], text_of: Callable[..., str]) -> tuple[I64, list[str]]:
    """Texts of rows of codes, as indices into the sorted distinct texts."""
    group = Groups(
        Frame({str(place): values for place, values in enumerate(codes)}, {}), [*map(str, range(len(codes)))]
    )
    row_texts = [text_of(*each) for each in zip(*(values[group.first].tolist() for values in codes), strict=True)]
    texts = sorted(set(row_texts))
    index_of = {text: index for index, text in enumerate(texts)}
    return np.array([index_of[text] for text in row_texts], np.int64)[group.index], texts
