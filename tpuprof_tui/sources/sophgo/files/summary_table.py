"""The reference's summary (metrics 5): what it counts, its definitions, names and text cells, and that of the web page.

They differ from this package's own figures: cycles are summed per engine and compared with the time from the first
start to the last end of all engines, so engines that run in parallel give a parallelism above 100 %; unknown values
count as the reference's placeholder (one operation, ``DDR->DDR``). The workbook's definitions (metrics 6 and 7) differ
in what works, and in which transfers move.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.analysis.index.lane_index import LaneIndex, RunningSums, rows_starting
from tpuprof_tui.analysis.index.unit_index import submitted_rows
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.model import Device, Lane, Profile, Role, is_missing
from tpuprof_tui.model.lane import ALL, Rows, row_count, row_numbers, row_part

from ..read.arrays import map_texts, stream_order
from ..schema import column

Array = npt.NDArray[Any]

# The instructions that the published converter counts: without synchronisation at the edges of each engine's stream. It
# leaves out pairs of system commands, a send and a wait, before and behind which the ids restart, and the system
# commands of a stream that has nothing else (pipeline 10). The profiler's own pairs are not instructions here in the
# first place, so what this concerns are the pairs before a compiled model's first launch and kernels that only
# synchronise.

ENGINES: Final = ("TIU", "GDMA", "SDMA", "CDMA")
#: Rows at each end that are examined first; all rows where the pairs continue.
_EDGE: Final = 64
#: Counters by which the reference tells system commands of DMA engines where there are no commands: both are 0.
HANDSHAKES: Final = ("axi_d0_wr_vaild_cntr", "axi_d0_rd_vaild_cntr")


def published_part(profile: Profile) -> Profile:
    """The profile with the instructions that the converter counts."""
    kept = [published_rows(profile, lane) for lane in profile.lanes]
    whole = all(isinstance(rows, slice) and rows == slice(0, len(lane))
                for rows, lane in zip(kept, profile.lanes, strict=True))  # fmt: skip
    return profile if whole else profile.restricted_to(kept)


def published_window(query: Query) -> tuple[int, int]:
    """Window of the converter's total time, ns: from the first start to the last end of what it counts, on all cores.

    With a range or a step the selected part of that.
    """

    def extent() -> tuple[int, int]:
        part = published_part(query.profile.device_part)
        return part.start_ns, part.end_ns

    (first, last), (start, end) = query.cache.get("published extent", extent), query.window
    start = max(first, start)
    return start, max(min(last, end), start)


def published_rows(profile: Profile, lane: Lane) -> Rows:
    """Rows of a lane that the converter counts, ascending."""
    count = len(lane)
    everything = slice(0, count)
    if lane.kind not in ENGINES or not count or not profile.timed or "command_id" not in lane:
        return everything
    if count > _EDGE and not _may_have_edges(lane, count):
        return everything
    order = stream_order(lane)
    stream = everything if order is None else order
    head, tail, system = _edges(profile, lane, stream, count)
    has_ports = any(each.kind == "CDMA" and len(each) for each in profile.lanes)
    if count - head - tail <= 2 and (lane.kind == "CDMA" or not has_ports):
        left = np.flatnonzero(~system) + head
    elif not head and not tail:
        return everything
    elif isinstance(stream, slice):
        return slice(head, count - tail)
    else:
        left = np.arange(head, count - tail)
    return np.sort(left if isinstance(stream, slice) else stream[left])


def _may_have_edges(lane: Lane, count: int) -> bool:
    """Whether the ids of the first or the last three commands restart behind or before a pair, if in stream order."""
    edges = slice(0, 3), slice(count - 3, count)
    (head, tail), (first, last) = ([lane.take(key, rows).tolist() for rows in edges] for key in ("command_id", "order"))
    in_order = first == [0, 1, 2] and last == [count - 3, count - 2, count - 1]
    opens, closes = head[1] == head[0] + 1 and head[2] <= head[1], tail[2] == tail[1] + 1 and tail[1] <= tail[0]
    return opens or closes or not in_order


def _edges(profile: Profile, lane: Lane, stream: Rows, count: int) -> tuple[int, int, Array]:
    """Number of rows left out at either end of the stream; and which of the others are system commands, if few."""
    for edge in (_EDGE, count):
        size = min(edge, count)
        ids, system = _facts(profile, lane, stream, 0, size)
        # a pair at the head: ids n and n + 1, then a restart; at the tail: a restart, then n and n + 1
        opens = system[:-2] & (ids[1:-1] == ids[:-2] + 1) & (ids[2:] <= ids[1:-1])
        head = _run(opens[::2])
        ids, system = _facts(profile, lane, stream, count - size, count)
        closes = system[1:-1] & (ids[2:] == ids[1:-1] + 1) & (ids[1:-1] <= ids[:-2])
        tail = _run(closes[::-1][::2])
        if size == count or 2 * max(head, tail) + 2 < size:
            break
    # one of at least three commands stays
    tail = min(tail, max(count - 1, 0) // 2)
    head = min(head, max(count - 2 * tail - 1, 0) // 2)
    left = count - 2 * (head + tail)
    return 2 * head, 2 * tail, _facts(profile, lane, stream, 2 * head, count - 2 * tail)[1] if left <= 2 else system


def _run(values: Array) -> int:
    """Number of leading values that are true."""
    return len(values) if values.all() else int(values.argmin())


def _facts(profile: Profile, lane: Lane, stream: Rows, first: int, last: int) -> tuple[Array, Array]:
    """Ids of some commands in stream order, and which of them the converter takes for system commands."""
    rows = row_part(stream, first, last)
    return lane.take("command_id", rows), _system_mask(profile, lane, rows)


def _system_mask(profile: Profile, lane: Lane, rows: Rows) -> Array:
    """Mask of what the converter takes for system commands."""
    # in the reference a command issued by RVT is never one
    system = (lane.take("role", rows) != Role.WORK) & ~map_texts(profile, lane, "mode", rows, "RVT".__eq__)
    # without commands, moves within local memory are
    if lane.role_guessed and all(key in lane for key in HANDSHAKES):
        system |= np.logical_and.reduce([lane.take(key, rows) == 0 for key in HANDSHAKES])
    return np.asarray(system)


#: Sums over instructions of one engine, by name; those that nothing contributes to are 0.
Sums = Counter[str]
#: Sums of one core by engine; in the workbook CDMA counts the commands that it submitted.
CoreSums = defaultdict[str, Sums]
#: Names of the sums of the summary, by engine: cycles, operations, instructions of known operations; bytes and cycles
#: of transfers that touch DDR, and of those that touch L2 memory and not DDR.
SUMMED: Final = {
    "TIU": ("cycles", "alg_ops", "uarch_ops", "known_ops"),
    **dict.fromkeys(ENGINES[1:], ("cycles", "ddr_bytes", "ddr_cycles", "l2_bytes", "l2_cycles")),
}


def lane_weights(profile: Profile, lane: Lane, rows: Rows = ALL, *, workbook: bool = False) -> dict[str, Array]:
    """Contribution of each row to the sums of its engine, by name.

    By the definitions of the workbook also ``count``, ``wait_cycles`` of system waits, ``alg_cycle`` and ``stall``.
    """
    role, cycles = lane.take("role", rows), filled_values(lane, "cycles", rows)
    works, waits = role == Role.WORK, role == Role.WAIT
    weights = {"count": np.ones(len(cycles), np.int64), "wait_cycles": cycles * waits} if workbook else {}
    counted = ~waits if workbook or lane.kind in ("SDMA", "CDMA") else ~_system_mask(profile, lane, rows)
    weights["cycles"] = cycles = cycles * counted
    if lane.kind == "TIU":
        keys = ("alg_ops", "uarch_ops", "alg_cycle")[: 3 if workbook else 2]
        weights |= {key: filled_values(lane, key, rows) for key in keys}
        if not workbook:
            unknown = is_missing(lane.take("uarch_ops", rows)) if "uarch_ops" in lane else np.ones(len(role), np.bool_)
            weights["known_ops"] = (~unknown).astype(np.int64)
        return weights
    sizes = filled_values(lane, "bytes", rows) * counted
    ddr = direction_contains(profile, lane, "DDR", rows)
    l2 = ~ddr & direction_contains(profile, lane, "L2", rows)
    if workbook:  # system commands have no direction
        moves = works & ((sizes > 0) | (lane.kind != "CDMA"))
        weights["stall"] = filled_values(lane, "stall", rows)
    else:
        moves = (sizes > 0) | (lane.kind == "SDMA")
        if lane.kind == "CDMA" and "direction" in lane:  # unlike with other engines, a missing direction is none
            ddr &= lane.take("direction", rows) >= 0
    for memory, moved in (("ddr", moves & ddr), ("l2", moves & l2)):
        weights |= {f"{memory}_bytes": sizes * moved, f"{memory}_cycles": cycles * moved}
    return weights


def lane_sums(profile: Profile, lane: Lane, parts: Iterable[Rows]) -> Sums:
    """Sums of the workbook over some rows of a lane."""
    return sum((sums_of(lane_weights(profile, lane, rows, workbook=True)) for rows in parts), Sums())


def sums_of(weights: Mapping[str, Array], rows: Array | slice = ALL) -> Sums:
    """Sums of ``lane_weights``, over some of its rows."""
    return Sums({name: int(values[rows].sum()) for name, values in weights.items()})


def sums_by(profile: Profile, lane: Lane, parts: Iterable[Rows], key: str) -> dict[int, Sums]:
    """Sums of the workbook by the value of a column, -1 where it has none, in order of first appearance."""
    sums: dict[int, Sums] = {}
    for rows in parts:
        weights = lane_weights(profile, lane, rows, workbook=True)
        values = np.maximum(lane.take(key, rows), -1) if key in lane else np.full(len(weights["count"]), -1)
        _, first = np.unique(values, return_index=True)
        for value in values[np.sort(first)].tolist():
            sums.setdefault(value, Sums()).update(sums_of(weights, values == value))
    return sums


def query_sums(query: Query) -> dict[int, CoreSums]:
    """Sums of the summary by unit (metrics 5.1), -1: of ports with instructions; empty without any instruction.

    Of the instructions that start in the window, from running sums: the explorer asks again and again.
    """
    profile, window = query.filtered_session.profile, query.window
    sums, count = {unit: CoreSums(Sums) for unit in query.units}, 0
    for whole, index in zip(query.profile.lanes, query.filtered_session.indexes, strict=True):
        lane, unit = index.lane, profile.unit_of(index.lane)
        if lane.on_host or unit not in (-1, *query.units):
            continue
        counted = published_rows(query.profile, whole)
        if len(lane) < len(whole):
            in_both = np.isin(lane["order"], whole.take("order", counted))
            counted = slice(0, len(lane)) if in_both.all() else np.flatnonzero(in_both)
        begun = rows_starting(index, *window)
        if isinstance(counted, slice):
            first = max(begun.start, counted.start)
            rows: Rows = slice(first, max(first, min(begun.stop, counted.stop)))
        else:
            rows = counted[(counted >= begun.start) & (counted < begun.stop)]
        if unit < 0 and query.owners:
            rows = np.intersect1d(row_numbers(rows), row_numbers(submitted_rows(lane, query.owners)))
        count += row_count(rows)
        if row_count(rows) and lane.kind in SUMMED:
            sums.setdefault(unit, CoreSums(Sums))[lane.kind].update(_running_sums(profile, index, rows))
    return sums if count else {}


def _running_sums(profile: Profile, index: LaneIndex, rows: Rows) -> Sums:
    names = SUMMED[index.lane.kind]

    def weights(rows: Rows) -> npt.NDArray[np.int64]:
        found = lane_weights(profile, index.lane, rows)
        return np.stack([found[name] for name in names])

    known = index.cache.get("published summary", lambda: RunningSums(len(index.lane), weights))
    return Sums(dict(zip(names, known.over(rows).tolist(), strict=True)))


def filled_values(lane: Lane, key: str, rows: Rows) -> Array:
    """Values of an integer column; where missing, the reference's placeholder, or 0 if it has none."""
    placeholder: Any = column(key).placeholder or 0
    if key not in lane:
        return np.full(len(lane.take("start", rows)), placeholder, dtype=np.int64)
    values = lane.take(key, rows)
    return np.where(is_missing(values), placeholder, values)


def direction_contains(profile: Profile, lane: Lane, memory: str, rows: Rows) -> Array:
    """Mask of the rows whose direction contains a memory."""
    return map_texts(
        profile, lane, "direction", rows, lambda text: memory in text, memory in str(column("direction").placeholder)
    )


def to_ns(cycles: int, mhz: float) -> int:
    """A number of cycles in whole ns; 0 without a clock."""
    return int(round(cycles / mhz * 1000, 2)) if mhz > 0 else 0


def bandwidth(sums: Sums, moves: str, mhz: float) -> float:
    """GB/s of the transfers whose bytes and cycles have these names; 0 without time."""
    time = to_ns(sums[f"{moves}_cycles"], mhz)
    return sums[f"{moves}_bytes"] / time if time else 0.0


def cycles_us(cycles: float, mhz: float) -> float:
    """A number of cycles in us; 0 without a clock."""
    return round(cycles / mhz, 3) if mhz > 0 else 0.0


def ratio(part: float, whole: float, digits: int = 2) -> float:
    """``part / whole``, rounded to ``digits`` decimals as a percentage, as in the reference; 0 if ``whole`` is 0."""
    # formatting rounds as the reference does
    return round(float(f"{part / whole * 100:.{digits}f}") / 100, digits + 4) if whole else 0.0


class SummaryColumn(Struct, frozen=True):
    """A column of the summary."""

    key: str
    header: str  #: Its name in summary.txt
    width: int  #: Characters there
    kind: Literal["core", "percent", "time", "cycles", "rate"]  #: Unit of its values: none, %, ns, cycles, GB/s
    help: str  #: What the web page says of it
    #: Peak bandwidth that its values are compared with in the page, ``ddr`` or ``l2``; ``ratio`` for a share of time.
    peak: str = ""
    page_header: str = ""  #: Its name in the page; empty: that of summary.txt, with ``Bandwidth`` written out

    def text(self, value: Any, device: Device, core: int | None) -> str:
        """A value of a core, or (``core`` None) of all of them: then cycles are written as us."""
        if self.kind == "cycles" and core is None:
            mhz = device.clock("TIU" if self.key == "tiu_cycles" else "DMA")
            return f"{value / mhz if mhz > 0 else 0:.3f}(us)"
        if self.kind in ("core", "cycles"):
            return str(value)
        return f"{value / 1000:.3f}" if self.kind == "time" else f"{value:.2f}{'%' if self.kind == 'percent' else ''}"


COLUMNS: Final = (
    SummaryColumn("core", "CoreId", 7, "core", "Number of the core."),
    SummaryColumn("parallelism", "Parallelism(%)", 14, "percent",
                  "Working time of all engines over total time; adds up engines that ran together."),
    SummaryColumn("total_us", "totalTime(us)", 14, "time", "From the first start to the last end of all engines."),
    SummaryColumn("tiu_ratio", "TiuWorkingRatio", 15, "percent",
                  "Working time of the TIU over total time. Below 30 % yellow, below 15 % red.", "ratio"),
    SummaryColumn("tiu_cycles", "totalTiuCycle", 14, "cycles", "Cycles of the TIU's work, without sends: the "
                  "workbook's totalTiuCycle has them.", page_header="TiuWorkCycle"),
    SummaryColumn("uarch_rate", "uArchURate", 10, "percent",
                  "Operations the algorithm asked for over those performed; needs mode 2 or DES blocks."),
    SummaryColumn("gdma_cycles", "totalGdmaCycle", 16, "cycles", "Cycles of the GDMA's work, without sends: the "
                  "workbook's totalGdmaCycle has them.", page_header="GdmaWorkCycle"),
    SummaryColumn("gdma_ddr", "GdmaDdrAvgBW(GB/s)", 18, "rate", "Bytes over working time of GDMA transfers that touch "
                  "DDR. Below 75 % of the peak yellow, below 50 % red.", "ddr"),
    SummaryColumn("gdma_l2", "GdmaL2AvgBW(GB/s)", 18, "rate",
                  "The same for transfers that touch L2 memory and not DDR.", "l2"),
    SummaryColumn("sdma_cycles", "totalSdmaCycle", 16, "cycles", "Cycles of the SDMA without waits."),
    SummaryColumn("sdma_ddr", "SdmaDdrAvgBW(GB/s)", 18, "rate",
                  "Bytes over working time of SDMA transfers that touch DDR.", "ddr"),
)  # fmt: skip
#: Columns of the page in captures with CDMA.
CDMA_COLUMNS: Final = (
    SummaryColumn("cdma_cycles", "totalCdmaCycle", 16, "cycles",
                  "Cycles of all CDMA ports without waits; in the row of the last core."),
    SummaryColumn("cdma_ddr", "CdmaDdrAvgBW(GB/s)", 18, "rate",
                  "Bytes over working time of CDMA transfers that touch DDR.", "ddr"),
    SummaryColumn("cdma_l2", "CdmaL2AvgBW(GB/s)", 18, "rate",
                  "The same for transfers that touch L2 memory and not DDR.", "l2"),
)  # fmt: skip


class SummaryRow(Struct, frozen=True):
    """One row of the reference's summary."""

    core: int | None  #: Core number; None for the row over all cores
    known_ops: int  #: Number of instructions of known operations
    values: tuple[Any, ...]  #: Values of the columns in their units; cycles over all cores: of the core with most
    cells: tuple[str, ...]  #: Their texts


def summary_rows(query: Query, sums: Mapping[int, CoreSums] | None = None) -> list[SummaryRow]:
    """The reference's summary: one row per core, then one over all; empty without cores, instructions or times.

    ``sums``: those of the query, if they are known.
    """
    if not query.units or not query.profile.timed or not (sums or (sums := query_sums(query))):
        return []
    first, last = published_window(query)
    device, parts = query.profile.device, [sums[unit] for unit in query.units]
    cores = zip(map(query.profile.groups.number, query.units), parts, strict=True)
    rows = [_row(device, core, [each], last - first, len(parts) > 1) for core, each in cores]
    return [*rows, _row(device, None, parts, last - first, len(parts) > 1)]


def rate_remark(profile: Profile, rows: Sequence[SummaryRow]) -> str:
    """Remark on uArchURate below mode 2, where only commands of DES blocks have operations."""
    mode = profile.source_data["mode"]
    if not any(row.known_ops for row in rows):
        return f"uArchURate is meaningless in mode {mode}: operations are known from mode 2 on."
    cores = "" if all(row.known_ops for row in rows) else "; it is meaningless for cores without any"
    return f"uArchURate in mode {mode} is that of commands of DES blocks: of others no operations are known{cores}."


def _row(device: Device, core: int | None, parts: Sequence[CoreSums], total: int, several: bool) -> SummaryRow:
    """Row of one core, or over all of them (``core`` None)."""
    dma_mhz = device.clock("DMA")
    cycles = {engine: [part[engine]["cycles"] for part in parts] for engine in ENGINES[:3]}
    times = {
        engine: sum(to_ns(each, device.clock("TIU") if engine == "TIU" else dma_mhz) for each in cycles[engine])
        for engine in ("TIU", "GDMA", *(("SDMA",) if several else ()))
    }
    tiu, gdma, sdma = (sum((part[engine] for part in parts), Sums()) for engine in cycles)
    values = (
        "Overall" if core is None else core, percent(sum(times.values()), total * len(parts)), total,
        percent(times["TIU"], total * len(parts)), max(cycles["TIU"]), percent(tiu["alg_ops"], tiu["uarch_ops"]),
        max(cycles["GDMA"]), bandwidth(gdma, "ddr", dma_mhz), bandwidth(gdma, "l2", dma_mhz), max(cycles["SDMA"]),
        bandwidth(sdma, "ddr", dma_mhz),
    )  # fmt: skip
    return SummaryRow(core, tiu["known_ops"], values, _cells(COLUMNS, values, device, core))


def _cells(
    columns: Sequence[SummaryColumn], values: Sequence[Any], device: Device, core: int | None
) -> tuple[str, ...]:
    return tuple(column.text(value, device, core) for column, value in zip(columns, values, strict=True))


def percent(part: int, whole: int) -> float:
    """A share in percent; 0 of nothing."""
    return part / whole * 100 if whole > 0 else 0.0


# The summary of the web page, coloured by the converter's rules.

#: Limits below which a cell is bad, and doubtful (outputs 8.2): percent of time, and shares of the peak bandwidth.
RATIO_LIMITS: Final = (15.0, 30.0)
BANDWIDTH_LIMITS: Final = (0.50, 0.75)
GOOD, DOUBTFUL, BAD = "", "doubtful", "bad"


def summary_record(query: Query) -> dict[str, Any]:
    """The reference's summary of a selection: columns, rows of texts, and the colour level of each cell."""
    profile = query.profile
    sums, device = query_sums(query), profile.device
    ports = sums.get(-1, CoreSums(Sums)).get("CDMA")
    columns = (*COLUMNS, *(CDMA_COLUMNS if ports is not None else ()))
    rows = []
    for row in summary_rows(query, sums):
        cells = row.cells
        if ports is not None:
            speeds = (bandwidth(ports, moves, device.clock("DMA")) for moves in ("ddr", "l2"))
            has = row.core in (None, profile.groups.number(query.units[-1]))
            cells += _cells(CDMA_COLUMNS, (ports["cycles"], *speeds), device, row.core) if has else ("-",) * 3
        levels = [_level(profile, column, cell) for column, cell in zip(columns, cells, strict=True)]
        rows.append({"core": row.core, "cells": list(cells), "levels": levels})
    headers = [column.page_header or column.header.replace("BW", "Bandwidth") for column in columns]
    return {"columns": [[header, column.help] for header, column in zip(headers, columns, strict=True)], "rows": rows}


def _level(profile: Profile, column: SummaryColumn, cell: str) -> str:
    """Colour level of a cell by the reference's rules; `GOOD` for cells without a figure."""
    peaks = {"ddr": profile.device.peak("DDR"), "l2": profile.device.peak("L2"), "ratio": 1.0}
    peak = peaks.get(column.peak, 0.0)
    if peak <= 0 or cell == "-":
        return GOOD
    value = float(cell.rstrip("%")) / peak
    if value == 0 and column.peak != "ratio":
        return GOOD  # nothing moved: no bandwidth was missed
    bad, doubtful = RATIO_LIMITS if column.peak == "ratio" else BANDWIDTH_LIMITS
    return BAD if value < bad else DOUBTFUL if value < doubtful else GOOD
