"""Blocks of cells above the rows, at the reference's places (outputs 5.2), and the sheets without rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from tpuprof_tui.formats.xlsx.book import Page, Value
from tpuprof_tui.formats.xlsx.styles import (
    BLOCK_HEADER,
    BLOCK_TEXT,
    BLOCK_VALUE,
    COLUMN_HEADER,
    COUNT,
    KEY_CELL,
    LABEL,
    PERCENT,
    PLAIN,
    TOTAL_HEADER,
    TOTAL_VALUE,
    Style,
)
from tpuprof_tui.model import Profile

from .statistics import SUMMARY_COLUMNS, Totals, TypeRow, bandwidth, ratio

#: Colours of tabs and bands.
TABS: Final = {"TIU": "008000", "GDMA": "FFA500", "SDMA": "D0CECE", "CDMA": "C0504D", "summary": "FFC7CE",
               "kernels": "305496", "problems": "7F7F7F", "layers": "5B9BD5"}  # fmt: skip
#: Row of the column headers of transfer sheets.
DMA_HEADER_ROW: Final = 6
#: Row of the first core in the summary of engines.
SUMMARY_ROW: Final = 6
#: Taller blocks (rows) are folded: frozen unfolded they would fill the screen.
_TALLEST_BLOCK: Final = 26

_TIU_TOTALS: Final = ("totalTiuCycle", "totalAlgCycle", "algTotalOps", "totalUArchOps", "uArchURate",
                      "waitMsgTotalTime")  # fmt: skip
_TYPE_COLUMNS: Final = ("Function Name", "Instr Num", "Alg Ops", "Alg Ops Ratio", "Alg Cycle", "Alg Cycle Ratio",
                        "uArch Ops", "uArch URate", "uArch Ops Ratio", "Asic Cycle", "Asic Cycle Ratio")  # fmt: skip
_DMA_TOTALS: Final = ("totalDmaCycle", "workingCycle", "totalStallCycle", "stallCycleRatio", "totalDdrDataSize(B)",
                      "totalL2DataSize(B)", "ddrAvgBandwidth(GB/s)", "l2AvgBandwidth(GB/s)",
                      "waitMsgTotalTime")  # fmt: skip
#: Header and the parameter shown below it.
_SPECIFICATION: Final = (
    ("Platform", "Platform"), ("CHIP ARCH", "Chip Arch"), ("Core Num", "Core Num"), ("NPU Num", "NPU Num"),
    ("Cube IC Align(8bits)", "Cube IC Align(8bits)"), ("Cube OHOW Align", "Cube OHOW Align(8bits)"),
    ("Vector OHOW Align(8bits)", "Vector OHOW Align(8bits)"), ("TIU Frequency(MHz)", "TIU Frequency(MHz)"),
    ("DMA Frequency(MHz)", "DMA Frequency(MHz)"), ("DDR Frequency(MHz)", "DDR Frequency(MHz)"),
    ("TPU Lmem Size(MiB)", "TPU Lmem Size(MiB)"),
)  # fmt: skip
_TIU_NOTES: Final = (
    ("uArch Rate", "Alg Ops / uArch Ops. The hardware rounds shapes up to its lanes and works on the padding as well; "
                   "near 100% little of its work is padding."),
    ("Data Type", "Element formats, first operand -> result."),
    ("Avg Cycle Last 200", "Mean time per command over the last 200 commands, in ns. Long runs of very short commands "
                           "burden the profiler itself and slow the chip down."),
)  # fmt: skip
_DMA_NOTE: Final = "*Stall Cycle: cycles that a transfer waited because TIU and DMA wanted the same memory bank."
_SUMMARY_NOTES: Final = (
    ("Tiu Working Ratio", "totalTiuCycle / totalTime: the share of the time in which the TIU worked."),
    ("Parallelism(%)", "(totalTiuCycle + totalGdmaCycle + totalSdmaCycle) / totalTime: how far the engines ran side "
                       "by side."),
    ("Concurrency(%)", "(totalTiuCycle + totalGdmaCycle - totalTime) / min(totalTiuCycle, totalGdmaCycle): how far "
                       "TIU and GDMA overlapped; below 0 there was time without either."),
    ("Total Alg Cycle", "Cycles that the TIU instructions would take at peak rate."),
    ("Total Alg Ops", "Operations that the algorithm asks for."),
    ("Total uArch Ops", "Operations that the hardware performs, padding included."),
    ("uArch Urate", "totalAlgOps / totalUArchOps; near 100% little of the work is padding."),
)  # fmt: skip
#: Engine, first column, number of columns.
_BANDS: Final = (("TIU", 6, 5), ("GDMA", 11, 5), ("SDMA", 16, 3), ("CDMA", 19, 5))


def tiu_head(page: Page, profile: Profile, total: Totals, types: Sequence[TypeRow]) -> int:
    """Writes totals, specification, description, statistics of a TIU sheet; returns the row of the column headers."""
    header_row = len(types) + 9
    page.put(1, 1, "Performance", LABEL)
    page.put(2, 1, "Summary", LABEL)
    page.line(1, 2, _TIU_TOTALS, TOTAL_HEADER)
    rate = ratio(total.alg_ops, total.uarch_ops)
    values = (total.working, total.alg_cycle, total.alg_ops, total.uarch_ops, rate, total.wait_cycles)
    _values(page, 2, 2, values, TOTAL_VALUE)
    page.put(1, 15, "Detail Spec", LABEL)
    page.line(1, 16, (title for title, _ in _SPECIFICATION), BLOCK_HEADER)
    known = dict(profile.device.parameters)
    page.line(2, 16, (known.get(name, "-") for _, name in _SPECIFICATION), BLOCK_VALUE)
    page.put(4, 15, "Description", LABEL)
    page.line(4, 16, ("Field", "Description"), BLOCK_HEADER)
    for row, (name, text) in enumerate(_TIU_NOTES, 5):
        page.put(row, 16, name, BLOCK_VALUE)
        page.put(row, 17, text, BLOCK_TEXT, fits=False)
        page.sheet.merge_cells(f"Q{row}:AD{row}")
    page.put(6, 1, "Statistics", LABEL)
    page.line(6, 2, _TYPE_COLUMNS, BLOCK_HEADER)
    for row, some in enumerate(types, 7):
        _values(page, row, 2, _type_cells(some, total), BLOCK_VALUE)
    overall = TypeRow("Overall", total.count, total.alg_ops, total.alg_cycle, total.uarch_ops, total.working)
    cells = list(_type_cells(overall, total))
    cells[3] = cells[5] = cells[8] = cells[10] = 1.0
    _values(page, 7 + len(types), 2, cells, BLOCK_VALUE)
    folded = header_row > _TALLEST_BLOCK
    page.sheet.row_dimensions.group(3, header_row - 1, hidden=folded)
    page.sheet.row_dimensions[header_row].collapsed = folded
    return header_row


def _type_cells(some: TypeRow, total: Totals) -> tuple[Value, ...]:
    return (
        some.name, some.count, some.alg_ops, ratio(some.alg_ops, total.alg_ops), some.alg_cycle,
        ratio(some.alg_cycle, total.alg_cycle), some.uarch_ops, ratio(some.alg_ops, some.uarch_ops),
        ratio(some.uarch_ops, total.uarch_ops), some.cycles, ratio(some.cycles, total.working),
    )  # fmt: skip


def dma_head(page: Page, profile: Profile, total: Totals) -> int:
    """Writes totals and note of a sheet of transfers; returns the row of the column headers."""
    page.put(1, 1, "Performance", LABEL)
    page.put(2, 1, "Summary", LABEL)
    page.line(1, 3, _DMA_TOTALS, TOTAL_HEADER)
    mhz = profile.device.clock("DMA")
    values = (
        total.working, total.working, total.stall, ratio(total.stall, total.cycles), total.ddr_bytes, total.l2_bytes,
        bandwidth(total.ddr_bytes, total.ddr_cycles, mhz), bandwidth(total.l2_bytes, total.l2_cycles, mhz),
        total.wait_cycles,
    )  # fmt: skip
    for column, (name, value) in enumerate(zip(_DMA_TOTALS, values, strict=True), 3):
        form = PERCENT if name.endswith("Ratio") else "0.00" if "Bandwidth" in name else COUNT
        page.put(2, column, value, replace(TOTAL_VALUE, form=form))
    page.put(5, 1, _DMA_NOTE, PLAIN, fits=False)
    return DMA_HEADER_ROW


def summary_sheet(page: Page, profile: Profile, rows: Sequence[Sequence[Value]], overall: Sequence[Value]) -> None:
    """Writes the summary of engines: a row per core, then one over all of them."""
    page.put(1, 1, f"Platform: {profile.device.chip}", LABEL, fits=False)
    page.sheet.merge_cells("A1:B1")
    for engine, first, columns in _BANDS:
        colour = "000000" if engine == "SDMA" else "FFFFFF"
        style = Style(fill=TABS[engine], font="Calibri", colour=colour)
        page.line(4, first, [engine] + [None] * (columns - 1), style)
    page.line(5, 1, SUMMARY_COLUMNS, COLUMN_HEADER)
    for row, cells in enumerate(rows, SUMMARY_ROW):
        for column, (name, value) in enumerate(zip(SUMMARY_COLUMNS, cells, strict=True), 1):
            page.put(row, column, value, replace(KEY_CELL, form=_core_form(name)))
    last = SUMMARY_ROW + len(rows)
    for column, (name, value) in enumerate(zip(SUMMARY_COLUMNS, overall, strict=True), 1):
        page.put(last, column, value, replace(TOTAL_VALUE, form=_overall_form(name), align="right"))
    page.line(last + 4, 1, ("Field", "Description"), BLOCK_HEADER)
    for row, (name, text) in enumerate(_SUMMARY_NOTES, last + 5):
        page.put(row, 1, name, BLOCK_VALUE)
        page.put(row, 2, text, BLOCK_TEXT, fits=False)
    page.sheet.freeze_panes = f"B{SUMMARY_ROW}"


def _values(page: Page, row: int, column: int, values: Sequence[Value], style: Style) -> None:
    """Writes figures in a row; floats are shares, written as percentages."""
    for column_number, value in enumerate(values, column):
        form = PERCENT if isinstance(value, float) else COUNT if isinstance(value, int) else "General"
        page.put(row, column_number, value, replace(style, form=form))


def _core_form(name: str) -> str:
    if name in ("TiuWorkingRatio", "Parallelism", "Concurrency", "uArchURate"):
        return PERCENT
    if name == "totalTime(us)":
        return "#,##0.000"
    return "0.00" if "Bandwidth" in name else "General" if name == "CoreId" else COUNT


def _overall_form(name: str) -> str:
    if name.endswith("Cycle"):
        return '#,##0.000"(us)"'
    return '#,##0.00"MiB"' if name.endswith("DataSize") else _core_form(name)
