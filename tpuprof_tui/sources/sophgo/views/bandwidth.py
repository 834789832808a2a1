"""Bandwidth by core, engine, direction and bus port beside the memory's peak; allocations of device memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.analysis.index.lane_index import PiecewiseRate
from tpuprof_tui.analysis.pivot import Frame, GroupBy
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.selecting.time_scale import edges_of
from tpuprof_tui.analysis.totals.chart_data import BINS
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.model import Role
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.views.answer import Answer, Column, Missing, Series, Table, Target
from tpuprof_tui.views.curves import bandwidth as bandwidth_of_kinds

Ints = npt.NDArray[np.int64]

#: Curves of the bus ports to DDR, in records that have them: title, and column of bytes.
_PORTS: Final = tuple((f"Bus {port} {word}", f"axi_d{port}_{part}_bytes")
                      for port in (0, 1) for word, part in (("read", "ar"), ("written", "wr")))  # fmt: skip
_RATES: Final = (
    Column("bytes", "Moved", "bytes"), Column("mean_gbps", "Mean GB/s", "number", "GB/s", bar=True),
    Column("most_gbps", "Most GB/s", "number", "GB/s"),
    Column("peak_gbps", "Peak GB/s", "number", "GB/s", drop_first=2),
    Column("of_peak", "Of peak", "share", drop_first=1),
)  # fmt: skip


def bandwidth(query: Query) -> Answer:
    """Bytes over time: by kind of engine; by memory and direction, of all cores of the scope; by bus port.

    The table has them by core and engine, of each of which a port's transfers are those that the core submitted.
    """
    found = bandwidth_of_kinds(query)
    if found.missing:
        return found
    kinds, edges = {series.key for series in found.series}, edges_of(*query.extent, BINS)
    lanes = [number for number in query.lanes if query.profile.lanes[number].kind in kinds]
    moves = _moves(query, lanes, "lane", "unit", "group", "direction")
    series = (*found.series, *_by_memory(query, moves, edges), *_by_port(query, lanes, edges))
    if not (moves["direction"] >= 0).any():
        return replace(found, series=series)
    notes = (f"Most: of {BINS} equal parts of the window. Peaks are of a memory, in all directions together.",)
    return replace(found, tables=(_by_direction(query, moves, edges),), series=series, notes=notes)


def _moves(query: Query, lanes: Sequence[int], *keys: str, moved: str = "bytes") -> Frame:
    """Moves of some lanes that reach into the window; ``moved``: column of their bytes, as ``bytes``."""
    moves = query.events({"start", "end", moved, *keys}, lanes, role=Role.WORK, reaching=True)
    moves = moves.with_columns(bytes=moves[moved])
    return moves.take((moves["bytes"] > 0) & (moves["end"] > moves["start"]))


def _series(key: str, moves: Frame, edges: Ints, peak: float = 0.0) -> Series:
    """GB/s in each part of the window: bytes of a move are spread evenly over its time."""
    moves = moves.take(np.argsort(moves["start"], kind="stable"))
    rates = moves["bytes"] / (moves["end"] - moves["start"])
    moved = PiecewiseRate.of(moves["start"], moves["end"], rates).between(edges)
    return Series(key, f"Bandwidth of {key}", "GB/s", edges, moved / np.maximum(np.diff(edges), 1), peak)


def _peak(query: Query, direction: str) -> tuple[str, float]:
    """The memory that limits a direction, and its peak for a core, GB/s: DDR before L2; 0 if there is none."""
    peaks = (each for each in query.profile.device.peaks if each[1] and each[0] in direction)
    return next(peaks, ("", 0.0))


def _by_direction(query: Query, moves: Frame, edges: Ints) -> Table:
    profile, span = query.profile, max(int(edges[-1] - edges[0]), 1)
    keys, rows = ("group", "lane", "direction"), []
    groups = GroupBy(moves, keys)
    for place, (owner, number, code) in enumerate(np.stack([groups.values(key) for key in keys], axis=1).tolist()):
        lane, direction = profile.lanes[number], clean(profile.text("direction", code)) if code >= 0 else ""
        flow = _series("", moves.take(groups.index == place), edges).values
        in_unit = profile.unit_of(lane) >= 0
        moved, peak = float((flow * np.diff(edges)).sum()), _peak(query, direction)[1] if in_unit else 0.0
        names = profile.groups.title(owner), lane.label if in_unit else profile.title_of(lane), direction or "-"
        of_peak = moved / span / peak if peak else None
        row = (*names, round(moved), moved / span, float(flow.max()), peak or None, of_peak)
        condition = text_condition("direction", direction, alone=True) if direction else ""
        rows.append((row, Target(condition=condition, scope=Scope(lane=number))))
    rows.sort(key=lambda row: -row[0][3])
    columns = (Column("unit", query.vocabulary.say("{Unit}")), Column("engine", "Engine"),
               Column("direction", "Direction"), *_RATES)  # fmt: skip
    return Table.of_rows("by_direction", query.vocabulary.say("By {unit}, engine and direction"), columns,
                         [row for row, _ in rows], target=lambda row: rows[row][1])  # fmt: skip


def _by_memory(query: Query, moves: Frame, edges: Ints) -> Iterator[Series]:
    """Curves of memories, and of directions, with the peak of all cores that move so."""
    moves = moves.take((moves["unit"] >= 0) & (moves["direction"] >= 0))
    texts = [clean(str(text)) for text in query.profile.strings.get("direction", ())]
    memory_of = [_peak(query, text)[0] for text in texts]
    used = uniques(moves["direction"]).tolist()
    parts = {memory: [code for code in used if memory_of[code] == memory] for memory, _ in query.profile.device.peaks}
    for key, codes in {**parts, **{texts[code]: [code] for code in used}}.items():
        if len(codes) > (key in parts):  # a memory with a single direction is that direction
            part = moves.take(np.isin(moves["direction"], codes))
            yield _series(key, part, edges, _peak(query, key)[1] * len(uniques(part["unit"])))


def _by_port(query: Query, lanes: Sequence[int], edges: Ints) -> Iterator[Series]:
    for title, column in _PORTS:
        moves = _moves(query, [number for number in lanes if column in query.profile.lanes[number]], moved=column)
        if len(moves):
            yield _series(title, moves, edges)


# Allocations of device memory that libbmrt notes.

_COLUMNS: Final = (
    Column("use", "Use"),
    Column("bytes", "Size", "bytes"),
    Column("address", "Address", drop_first=1),
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
