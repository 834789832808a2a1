"""The reference's summary (metrics 5): what it counts, its definitions, names and text cells, and that of the web page.

They differ from this package's own figures: cycles are summed per engine and compared with the time from the first
start to the last end of all engines, so engines that run in parallel give a parallelism above 100 %; unknown values
count as the reference's placeholder (one operation, ``DDR->DDR``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.export.selection import Selection, selected_profile, selected_query
from tpuprof_tui.model import Device, Lane, Profile, Role, is_missing
from tpuprof_tui.model.lane import Rows

from ..read.arrays import map_texts, stream_order
from ..schema import column

# The instructions that the published converter counts: without synchronisation at the edges of each engine's stream. It
# leaves out pairs of system commands, a send and a wait, before and behind which the ids restart, and the system
# commands of a stream that has nothing else (pipeline 10). The profiler's own pairs are not instructions here in the
# first place, so what this concerns are the pairs before a compiled model's first launch and kernels that only
# synchronise.

_ENGINES: Final = ("TIU", "GDMA", "SDMA", "CDMA")
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
    if lane.kind not in _ENGINES or not count or not profile.timed or "command_id" not in lane:
        return everything
    if count > _EDGE and not _may_have_edges(lane, count):
        return everything
    order = stream_order(lane)
    stream = everything if order is None else order
    head, tail, system = _edges(profile, lane, stream, count)
    if count - head - tail <= 2 and (lane.kind == "CDMA" or not _has_port_records(profile)):
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
    head, tail = (
        lane.take("command_id", slice(0, 3)).tolist(),
        lane.take("command_id", slice(count - 3, count)).tolist(),
    )
    first, last = lane.take("order", slice(0, 3)).tolist(), lane.take("order", slice(count - 3, count)).tolist()
    in_order = first == [0, 1, 2] and last == [count - 3, count - 2, count - 1]
    opens, closes = head[1] == head[0] + 1 and head[2] <= head[1], tail[2] == tail[1] + 1 and tail[1] <= tail[0]
    return opens or closes or not in_order


def _has_port_records(profile: Profile) -> bool:
    return any(lane.kind == "CDMA" and len(lane) for lane in profile.lanes)


def _edges(profile: Profile, lane: Lane, stream: Rows, count: int) -> tuple[int, int, npt.NDArray[np.bool_]]:
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


def _run(values: npt.NDArray[np.bool_]) -> int:
    """Number of leading values that are true."""
    return len(values) if values.all() else int(values.argmin())


def _facts(
    profile: Profile, lane: Lane, stream: Rows, first: int, last: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Ids of some commands in stream order, and which of them the converter takes for system commands."""
    rows = slice(first, last) if isinstance(stream, slice) else stream[first:last]
    role = lane.take("role", rows)
    # in the reference a command issued by RVT is never a system command
    system = (role == Role.WAIT) | (role == Role.SYNC)
    system &= ~map_texts(profile, lane, "mode", rows, "RVT".__eq__)
    if lane.role_guessed and all(key in lane for key in HANDSHAKES):
        system |= np.logical_and.reduce([lane.take(key, rows) == 0 for key in HANDSHAKES])
    return lane.take("command_id", rows), system


Array = npt.NDArray[Any]

#: Sums that lanes of an engine contribute to, by engine: cycles, operations, instructions of known operations, bytes
#: and cycles of transfers that touch DDR, and of those that touch L2 memory and not DDR.
SUMMED: Final[dict[str, tuple[str, ...]]] = {
    "TIU": ("tiu_cycle", "alg_ops", "uarch_ops", "known_ops"),
    "GDMA": ("gdma_cycle", "gdma_ddr_bytes", "gdma_ddr_cycle", "gdma_l2_bytes", "gdma_l2_cycle"),
    "SDMA": ("sdma_cycle", "sdma_ddr_bytes", "sdma_ddr_cycle"),
    "CDMA": ("cdma_cycle", "cdma_ddr_bytes", "cdma_ddr_cycle", "cdma_l2_bytes", "cdma_l2_cycle"),
}
#: Sums over instructions by name; those that nothing contributes to are 0.
Sums = Counter[str]


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


def summary_table(profile: Profile, total_ns: int) -> list[SummaryRow]:
    """The reference's summary: one row per core, then one over all; empty without cores, instructions or times.

    Args:
        profile: The instructions that the reference counts; see `published_part`.
        total_ns: Length of the window of the total time; see `published_window`.
    """
    if not profile.units or not profile.instructions or not profile.timed:
        return []
    sums = [sum_of_lanes(profile, profile.lanes_of(unit)) for unit in profile.units]
    return summary_rows(profile.device, profile.groups.numbers, sums, total_ns)


def summary_rows(device: Device, cores: Sequence[int], sums: Sequence[Sums], total_ns: int) -> list[SummaryRow]:
    """Rows of the summary from the sums of each core.

    ``total_ns``: as for `summary_table`.
    """
    several = len(cores) > 1
    rows = [_row(device, core, [each], total_ns, several) for core, each in zip(cores, sums, strict=True)]
    return [*rows, _row(device, None, sums, total_ns, several)]


def rate_remark(profile: Profile, rows: Sequence[SummaryRow]) -> str:
    """Remark on uArchURate below mode 2, where only commands of DES blocks have operations."""
    mode = profile.source_data["mode"]
    if not any(row.known_ops for row in rows):
        return f"uArchURate is meaningless in mode {mode}: operations are known from mode 2 on."
    cores = "" if all(row.known_ops for row in rows) else "; it is meaningless for cores without any"
    return f"uArchURate in mode {mode} is that of commands of DES blocks: of others no operations are known{cores}."


def sum_of_lanes(profile: Profile, lanes: Iterable[Lane]) -> Sums:
    """Sums over all rows of some lanes (metrics 5.1)."""
    parts = (as_sums(lane, lane_weights(profile, lane, slice(0, len(lane))).sum(axis=1))
             for lane in lanes if lane.kind in SUMMED)  # fmt: skip
    return sum(parts, Sums())


def as_sums(lane: Lane, totals: Array) -> Sums:
    """Totals of ``lane_weights`` by name."""
    return Sums(dict(zip(SUMMED[lane.kind], totals.tolist(), strict=True)))


def to_ns(cycles: int, mhz: float) -> int:
    """A number of cycles in whole ns; 0 without a clock."""
    return int(round(cycles / mhz * 1000, 2)) if mhz > 0 else 0


def _row(device: Device, core: int | None, parts: Sequence[Sums], total: int, several: bool) -> SummaryRow:
    """Row of one core, or over all of them (``core`` None)."""
    tiu_mhz, dma_mhz = device.clock("TIU"), device.clock("DMA")
    sums = sum(parts, Sums())
    tiu_time = sum(to_ns(part["tiu_cycle"], tiu_mhz) for part in parts)
    busy_time = tiu_time + sum(to_ns(part["gdma_cycle"], dma_mhz) for part in parts)
    if several:
        busy_time += sum(to_ns(part["sdma_cycle"], dma_mhz) for part in parts)
    tiu, gdma, sdma = (max(part[f"{engine}_cycle"] for part in parts) for engine in ("tiu", "gdma", "sdma"))
    values = (
        "Overall" if core is None else core, _percent(busy_time, total * len(parts)), total,
        _percent(tiu_time, total * len(parts)), tiu, _percent(sums["alg_ops"], sums["uarch_ops"]), gdma,
        _bandwidth(sums, "gdma_ddr", dma_mhz), _bandwidth(sums, "gdma_l2", dma_mhz), sdma,
        _bandwidth(sums, "sdma_ddr", dma_mhz),
    )  # fmt: skip
    return SummaryRow(core, sums["known_ops"], values, _cells(COLUMNS, values, device, core))


def _cells(
    columns: Sequence[SummaryColumn], values: Sequence[Any], device: Device, core: int | None
) -> tuple[str, ...]:
    return tuple(column.text(value, device, core) for column, value in zip(columns, values, strict=True))


def _percent(part: int, whole: int) -> float:
    return part / whole * 100 if whole > 0 else 0.0


def _bandwidth(sums: Sums, moves: str, mhz: float) -> float:
    time = to_ns(sums[f"{moves}_cycle"], mhz)
    return sums[f"{moves}_bytes"] / time if time else 0.0


def lane_weights(profile: Profile, lane: Lane, rows: Rows) -> npt.NDArray[np.int64]:
    """Contribution of each row to the sums of its core.

    int64 (k, rows), one line for each name in ``SUMMED``.
    """
    role, cycles = lane.take("role", rows), _values_or_zero(lane, "cycles", rows)
    if lane.kind in ("SDMA", "CDMA"):
        counted = role != Role.WAIT
    else:
        # in the reference a command issued by RVT is never a system command
        counted = (role == Role.WORK) | map_texts(profile, lane, "mode", rows, "RVT".__eq__)
        # without commands, moves within local memory count as system commands
        if lane.role_guessed and all(key in lane for key in HANDSHAKES):
            counted &= np.logical_or.reduce([lane.take(key, rows) > 0 for key in HANDSHAKES])
    cycles = cycles * counted
    if lane.kind == "TIU":
        known = ~is_missing(lane.take("uarch_ops", rows)) if "uarch_ops" in lane else np.zeros(len(cycles), np.bool_)
        weights = [cycles, *(filled_values(lane, key, rows) for key in ("alg_ops", "uarch_ops")), known]
    else:
        ddr, sizes = direction_contains(profile, lane, "DDR", rows), _values_or_zero(lane, "bytes", rows) * counted
        if lane.kind == "CDMA" and "direction" in lane:  # unlike with other engines, a missing direction is none
            ddr &= lane.take("direction", rows) >= 0
        if lane.kind == "SDMA":
            weights = [cycles, sizes * ddr, cycles * ddr]
        else:
            to_ddr, to_l2 = (sizes > 0) & ddr, (sizes > 0) & direction_contains(profile, lane, "L2", rows) & ~ddr
            weights = [cycles, sizes * to_ddr, cycles * to_ddr, sizes * to_l2, cycles * to_l2]
    return np.stack(weights).astype(np.int64, copy=False)


def _values_or_zero(lane: Lane, key: str, rows: Rows) -> Array:
    values = lane.take(key, rows)
    return np.where(is_missing(values), 0, values)


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


# The summary of the web page, coloured by the converter's rules.

#: Limits below which a cell is bad, and doubtful (outputs 8.2): percent of time, and shares of the peak bandwidth.
RATIO_LIMITS: Final = (15.0, 30.0)
BANDWIDTH_LIMITS: Final = (0.50, 0.75)
GOOD, DOUBTFUL, BAD = "", "doubtful", "bad"
EVERYTHING: Final = Selection()


def summary_record(profile: Profile, selection: Selection = EVERYTHING) -> dict[str, Any]:
    """The reference's summary of a selection: columns, rows of texts, and the colour level of each cell."""
    chosen = selected_profile(published_part(profile), selection)
    first, last = published_window(selected_query(profile, selection))
    ports = [lane for lane in chosen.lanes if lane.kind == "CDMA" and len(lane)]
    columns = (*COLUMNS, *(CDMA_COLUMNS if ports else ()))
    device, sums = profile.device, sum_of_lanes(chosen, ports)
    speeds = (_bandwidth(sums, moves, device.clock("DMA")) for moves in ("cdma_ddr", "cdma_l2"))
    of_ports = (sums["cdma_cycle"], *speeds)
    rows = []
    for row in summary_table(chosen, last - first):
        cells = row.cells
        if ports:
            has = row.core in (None, chosen.groups.numbers[-1])
            cells += _cells(CDMA_COLUMNS, of_ports, device, row.core) if has else ("-",) * len(CDMA_COLUMNS)
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
