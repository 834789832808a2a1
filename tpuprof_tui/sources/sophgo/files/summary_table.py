"""The reference's summary: its definitions, names and text cells (metrics 5).

They differ from this package's own figures: cycles are summed per engine and compared with the time from the first
start to the last end of all engines, so engines that run in parallel give a parallelism above 100 %; unknown values
count as the reference's placeholder (one operation, ``DDR->DDR``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import fields

from tpuprof_tui.export.selection import Selection, selected_profile, selected_query
from tpuprof_tui.model import Device, Lane, Profile, Role, is_missing
from tpuprof_tui.model.lane import Rows

from ..read.arrays import map_texts
from ..schema import column
from .published_rows import HANDSHAKES, published_part, published_window

Array = npt.NDArray[Any]

#: (header, width in the text file), in order.
COLUMNS: Final[tuple[tuple[str, int], ...]] = (
    ("CoreId", 7),
    ("Parallelism(%)", 14),
    ("totalTime(us)", 14),
    ("TiuWorkingRatio", 15),
    ("totalTiuCycle", 14),
    ("uArchURate", 10),
    ("totalGdmaCycle", 16),
    ("GdmaDdrAvgBW(GB/s)", 18),
    ("GdmaL2AvgBW(GB/s)", 18),
    ("totalSdmaCycle", 16),
    ("SdmaDdrAvgBW(GB/s)", 18),
)

#: Names of the sums that lanes of an engine contribute to, by engine.
SUMMED: Final[dict[str, tuple[str, ...]]] = {
    "TIU": ("tiu_cycle", "alg_ops", "uarch_ops", "known_ops"),
    "GDMA": ("gdma_cycle", "gdma_ddr_bytes", "gdma_ddr_cycle", "gdma_l2_bytes", "gdma_l2_cycle"),
    "SDMA": ("sdma_cycle", "sdma_ddr_bytes", "sdma_ddr_cycle"),
}


class CoreSums(Struct, frozen=True):
    """Sums over the events of one core: cycles, operations, bytes; ``known_ops``: instructions of known operations."""

    tiu_cycle: int = 0
    alg_ops: int = 0
    uarch_ops: int = 0
    known_ops: int = 0
    gdma_cycle: int = 0
    gdma_ddr_bytes: int = 0
    gdma_ddr_cycle: int = 0
    gdma_l2_bytes: int = 0
    gdma_l2_cycle: int = 0
    sdma_cycle: int = 0
    sdma_ddr_bytes: int = 0
    sdma_ddr_cycle: int = 0

    def __add__(self, other: CoreSums) -> CoreSums:
        return CoreSums(*(getattr(self, item.name) + getattr(other, item.name) for item in fields(self)))


class SummaryRow(Struct, frozen=True):
    """One row of the reference's summary."""

    core: int | None  #: Core number; None for the row over all cores
    sums: CoreSums  #: Sums that the figures are computed from
    total_ns: int  #: Length of the profile, ns
    #: tiu_cycles, gdma_cycles, sdma_cycles: Cycles of the engine; over all cores those of the core with most.
    tiu_cycles: int
    gdma_cycles: int
    sdma_cycles: int
    #: parallelism, tiu_ratio, uarch_rate: Percent.
    parallelism: float
    tiu_ratio: float
    uarch_rate: float
    #: gdma_ddr_bandwidth, gdma_l2_bandwidth, sdma_ddr_bandwidth: GB/s.
    gdma_ddr_bandwidth: float
    gdma_l2_bandwidth: float
    sdma_ddr_bandwidth: float
    cells: tuple[str, ...]  #: Texts of the columns, in the order of ``COLUMNS``


def summary_table(profile: Profile, total_ns: int) -> list[SummaryRow]:
    """The reference's summary: one row per core, then one over all; empty without cores, instructions or times.

    Args:
        profile: The instructions that the reference counts; see `published_part`.
        total_ns: Length of the window of the total time; see `published_window`.
    """
    if not profile.units or not profile.instructions or not profile.timed:
        return []
    sums = [core_sums(profile, unit) for unit in profile.units]
    return summary_rows(profile.device, profile.groups.numbers, sums, total_ns)


def summary_rows(device: Device, cores: Sequence[int], sums: Sequence[CoreSums], total_ns: int) -> list[SummaryRow]:
    """Rows of the summary from the sums of each core.

    ``total_ns``: as for `summary_table`.
    """
    several = len(cores) > 1
    rows = [_row(device, core, [each], total_ns, several) for core, each in zip(cores, sums, strict=True)]
    return [*rows, _row(device, None, sums, total_ns, several)]


def rate_remark(profile: Profile, rows: Sequence[SummaryRow]) -> str:
    """Remark on uArchURate below mode 2, where only commands of DES blocks have operations."""
    mode = profile.source_data["mode"]
    if not any(row.sums.known_ops for row in rows):
        return f"uArchURate is meaningless in mode {mode}: operations are known from mode 2 on."
    cores = "" if all(row.sums.known_ops for row in rows) else "; it is meaningless for cores without any"
    return f"uArchURate in mode {mode} is that of commands of DES blocks: of others no operations are known{cores}."


def core_sums(profile: Profile, unit: int) -> CoreSums:
    """Sums of one core (metrics 5.1)."""
    found = CoreSums()
    for lane in profile.lanes_of(unit):
        if lane.kind in SUMMED:
            found += as_sums(lane, lane_weights(profile, lane, slice(0, len(lane))).sum(axis=1))
    return found


def as_sums(lane: Lane, totals: Array) -> CoreSums:
    """Totals of ``lane_weights`` as `CoreSums`."""
    return CoreSums(**dict(zip(SUMMED[lane.kind], totals.tolist(), strict=True)))


def to_ns(cycles: int, mhz: float) -> int:
    """A number of cycles in whole ns; 0 without a clock."""
    return int(round(cycles / mhz * 1000, 2)) if mhz > 0 else 0


def _row(device: Device, core: int | None, parts: Sequence[CoreSums], total: int, several: bool) -> SummaryRow:
    """Row of one core, or over all of them (``core`` None)."""
    tiu_mhz, dma_mhz = device.clock("TIU"), device.clock("DMA")
    sums = sum(parts, CoreSums())
    tiu_time = sum(to_ns(part.tiu_cycle, tiu_mhz) for part in parts)
    busy_time = tiu_time + sum(to_ns(part.gdma_cycle, dma_mhz) for part in parts)
    if several:
        busy_time += sum(to_ns(part.sdma_cycle, dma_mhz) for part in parts)
    parallelism = _percent(busy_time, total * len(parts))
    tiu_ratio = _percent(tiu_time, total * len(parts))
    uarch_rate = _percent(sums.alg_ops, sums.uarch_ops)
    bandwidths = (
        _bandwidth(sums.gdma_ddr_bytes, sums.gdma_ddr_cycle, dma_mhz),
        _bandwidth(sums.gdma_l2_bytes, sums.gdma_l2_cycle, dma_mhz),
        _bandwidth(sums.sdma_ddr_bytes, sums.sdma_ddr_cycle, dma_mhz),
    )
    tiu, gdma, sdma = (max(getattr(part, f"{engine}_cycle") for part in parts) for engine in ("tiu", "gdma", "sdma"))

    def text(cycles: int, mhz: float) -> str:
        return str(cycles) if core is not None else f"{cycles / mhz if mhz > 0 else 0:.3f}(us)"

    cells = (
        "Overall" if core is None else str(core),
        f"{parallelism:.2f}%",
        f"{total / 1000:.3f}",
        f"{tiu_ratio:.2f}%",
        text(tiu, tiu_mhz),
        f"{uarch_rate:.2f}%",
        text(gdma, dma_mhz),
        f"{bandwidths[0]:.2f}",
        f"{bandwidths[1]:.2f}",
        text(sdma, dma_mhz),
        f"{bandwidths[2]:.2f}",
    )
    return SummaryRow(core, sums, total, tiu, gdma, sdma, parallelism, tiu_ratio, uarch_rate, *bandwidths, cells)


def _percent(part: int, whole: int) -> float:
    return part / whole * 100 if whole > 0 else 0.0


def _bandwidth(size: int, cycles: int, mhz: float) -> float:
    time = to_ns(cycles, mhz)
    return size / time if time else 0.0


def lane_weights(profile: Profile, lane: Lane, rows: Rows) -> npt.NDArray[np.int64]:
    """Contribution of each row to the sums of its core.

    int64 (k, rows), one line for each name in ``SUMMED``.
    """
    role, cycles = lane.take("role", rows), _values_or_zero(lane, "cycles", rows)
    if lane.kind == "SDMA":
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
        if lane.kind == "SDMA":
            weights = [cycles, sizes * ddr, cycles * ddr]
        else:
            to_ddr, to_l2 = (sizes > 0) & ddr, (sizes > 0) & direction_contains(profile, lane, "L2", rows) & ~ddr
            weights = [cycles, sizes * to_ddr, cycles * to_ddr, sizes * to_l2, cycles * to_l2]
    return np.stack(weights).astype(np.int64, copy=False)


def _values_or_zero(lane: Lane, key: str, rows: Rows) -> Array:
    """Values of some rows, 0 where missing."""
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


class SummaryColumn(Struct, frozen=True):
    """A column of the summary."""

    name: str
    help: str
    #: Peak bandwidth that its values are compared with, ``ddr`` or ``l2``; ``ratio`` for a share of time.
    peak: str = ""


SUMMARY_COLUMNS: Final = (
    SummaryColumn("CoreId", "Number of the core."),
    SummaryColumn("Parallelism(%)", "Working time of all engines over total time; adds up engines that ran together."),
    SummaryColumn("totalTime(us)", "From the first start to the last end of all engines."),
    SummaryColumn("TiuWorkingRatio", "Working time of the TIU over total time. Below 30 % yellow, below 15 % red.",
                  "ratio"),
    SummaryColumn("TiuWorkCycle", "Cycles of the TIU's work, without sends: the workbook's totalTiuCycle has them."),
    SummaryColumn("uArchURate", "Operations the algorithm asked for over those performed; needs mode 2 or DES blocks."),
    SummaryColumn("GdmaWorkCycle", "Cycles of the GDMA's work, without sends: the workbook's totalGdmaCycle has them."),
    SummaryColumn("GdmaDdrAvgBandwidth(GB/s)", "Bytes over working time of GDMA transfers that touch DDR. "
                  "Below 75 % of the peak yellow, below 50 % red.", "ddr"),
    SummaryColumn("GdmaL2AvgBandwidth(GB/s)", "The same for transfers that touch L2 memory and not DDR.", "l2"),
    SummaryColumn("totalSdmaCycle", "Cycles of the SDMA without waits."),
    SummaryColumn("SdmaDdrAvgBandwidth(GB/s)", "Bytes over working time of SDMA transfers that touch DDR.", "ddr"),
)  # fmt: skip
CDMA_COLUMNS: Final = (
    SummaryColumn("totalCdmaCycle", "Cycles of all CDMA ports without waits; in the row of the last core."),
    SummaryColumn("CdmaDdrAvgBandwidth(GB/s)", "Bytes over working time of CDMA transfers that touch DDR.", "ddr"),
    SummaryColumn("CdmaL2AvgBandwidth(GB/s)", "The same for transfers that touch L2 memory and not DDR.", "l2"),
)


def summary_record(profile: Profile, selection: Selection = EVERYTHING) -> dict[str, Any]:
    """The reference's summary of a selection: columns, rows of texts, and the colour level of each cell."""
    chosen = selected_profile(published_part(profile), selection)
    first, last = published_window(selected_query(profile, selection))
    table = summary_table(chosen, last - first)
    ports = [lane for lane in chosen.lanes if lane.kind == "CDMA" and len(lane)]
    columns = SUMMARY_COLUMNS + (CDMA_COLUMNS if ports else ())
    extra = _cdma_cells(chosen, ports) if ports else ((), ())
    rows = []
    for row in table:
        cells = list(row.cells)
        if ports:
            last = row.core == chosen.groups.numbers[-1]
            cells += extra[1] if row.core is None else extra[0] if last else ("-",) * len(CDMA_COLUMNS)
        rows.append({
            "core": row.core,
            "cells": cells,
            "levels": [_level(profile, column, cell) for column, cell in zip(columns, cells, strict=True)],
        })  # fmt: skip
    return {"columns": [[column.name, column.help] for column in columns], "rows": rows}


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


def _cdma_cells(profile: Profile, ports: list[Lane]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Cells of all CDMA ports: for the row of the last core, and for the row over all cores."""
    mhz = profile.device.clock("DMA")
    cycles = 0
    moved = {"DDR": [0, 0], "L2": [0, 0]}
    for lane in ports:
        everything, lane_cycles, sizes = slice(0, len(lane)), lane["cycles"], lane["bytes"]
        counted = (lane["role"] != Role.WAIT) & ~is_missing(lane_cycles)
        cycles += int(lane_cycles[counted].sum())
        ddr = map_texts(profile, lane, "direction", everything, lambda text: "DDR" in text, "direction" not in lane)
        l2 = map_texts(profile, lane, "direction", everything, lambda text: "L2" in text) & ~ddr
        for memory, mask in (("DDR", ddr), ("L2", l2)):
            rows = counted & mask & (sizes > 0)
            moved[memory][0] += int(sizes[rows].sum())
            moved[memory][1] += int(lane_cycles[rows].sum())
    speeds = [f"{size / time if time else 0:.2f}" for size, time in
              ((size, to_ns(used, mhz)) for size, used in moved.values())]  # fmt: skip
    return (str(cycles), *speeds), (f"{cycles / mhz if mhz > 0 else 0:.3f}(us)", *speeds)
