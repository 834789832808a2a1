"""The published converter's summary for the web page, coloured by the converter's rules."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from tpuprof_tui.export.selection import Selection, selected_profile, selected_query
from tpuprof_tui.model import Lane, Profile, Role, is_missing
from tpuprof_tui.sources.sophgo.read.arrays import map_texts

from .published_rows import published_part, published_window
from .summary_table import summary_table, to_ns

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
