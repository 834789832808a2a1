"""Writes a profile as a workbook: the reference's sheets in its layout, then sheets that it lacks.

openpyxl builds blocks and small sheets; rows of instructions are formatted by array operations and written to the file
a slice at a time, so memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.export.job import Job
from tpuprof_tui.export.selection import selection_facts
from tpuprof_tui.export.workbook_charts import add_charts
from tpuprof_tui.formats.files import whole_file
from tpuprof_tui.formats.xlsx.book import SHEET_ROWS, Book, Page, Value, column_letters, shown_length
from tpuprof_tui.formats.xlsx.rows import (
    BATCH,
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
    Cell,
    SheetColumn,
    Style,
    cell_field,
)
from tpuprof_tui.model import Profile, is_missing
from tpuprof_tui.model.lane import Rows, row_numbers, row_part, row_parts
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.views.as_sheet import sheets

from ..read.layers import layers_of
from ..schema import column as column_of
from .field_texts import write_merged_csv
from .instructions import rows_as_text
from .lane_rows import SLICE, LaneRows, chosen_lanes
from .layer_sheets import LayerSums, layer_sheet, network_sheet
from .summary_table import CoreSums, Sums, bandwidth, cycles_us, lane_sums, published_window, ratio, sums_by, to_ns

Progress = Callable[[float], None]

#: Rows sampled for the width of a column, and the largest width in characters.
_SAMPLE: Final = 30
_LONGEST: Final = 35
#: If a text has more characters than this, fewer rows are formatted at once.
_LONG_TEXT: Final = 1000
#: Columns up to this one contain the blocks; further ones are folded if no row can have a value in them.
_LAST_UNFOLDED: Final = {"TIU": 30, "GDMA": 20, "SDMA": 20, "CDMA": 20}
#: Views left out because other sheets show them in the converter's own way.
_SKIPPED_VIEWS: Final = frozenset(("published", "kernels", "bandwidth"))
#: Title of the summary of engines, to which sheets of rows link back.
_SUMMARY: Final = "Engine Summary"
#: Colours of the scale for shares and bandwidths from low to high, and of the data bars for durations.
_LOW, _MIDDLE, _HIGH, _BAR = "F8696B", "FFEB84", "63BE7B", "8FAADC"
_SCALED: Final = frozenset(("uArch Rate", "DDR Bandwidth(GB/s)", "L2M Bandwidth(GB/s)"))
_BARRED: Final = frozenset(("Asic Cycle",))
#: Share of the progress for computing sums, before rows are written.
_SUMS_SHARE: Final = 0.1


def write_documents(job: Job, paths: Sequence[Path], progress: Progress) -> list[Path]:
    """Writes the workbook, and its rows as CSV."""
    query = job.document_query
    write_workbook(query, paths[0], progress=lambda done: progress(0.85 * done))
    write_merged_csv(query, paths[1], progress=lambda done: progress(0.85 + 0.15 * done))
    return list(paths)


def write_workbook(query: Query, path: Path, *, progress: Progress | None = None) -> int:
    """Writes the workbook.

    Sheets: summary of engines; TIU, GDMA and SDMA of each core that has chosen instructions; CDMA ports; charts; the
    views, problems last. Rows are in stream order. Rows that do not fit one sheet continue in sheets numbered ``(2)``,
    ``(3)``, ...

    Returns the number of instructions written; ``progress`` is called with the share done, 0 to 1.

    Raises:
        WriteError: The file could not be written; no partial file is left.
    """
    with whole_file(path) as stream:
        return _Workbook(query, progress).write(stream)


class _Workbook:
    def __init__(self, query: Query, progress: Progress | None) -> None:
        self._query, self._profile = query, (profile := query.profile)
        self._book = Book(profile.name)
        self._progress = progress or (lambda share: None)
        layers = layers_of(profile)
        self._layers = None if layers is None else LayerSums(profile, layers)
        self._sheets = chosen_lanes(query, layers)
        self._totals: dict[str, Sums] = {}
        self._longest_text = max((len(text) for texts in profile.strings.values() for text in texts), default=0)
        self._todo = sum(sheet.count for sheet in self._sheets)
        self._done = 0

    def write(self, stream: BinaryIO) -> int:
        self._sums()
        self._summaries()
        for sheet in self._sheets:
            self._rows_sheets(sheet)
        self._views()
        self._book.save(stream)
        self._progress(1.0)
        return self._todo

    def _page(self, title: str, tab: str) -> Page:
        return self._book.page(title, TABS[tab])

    # -- figures ----------------------------------------------------------

    def _sums(self) -> None:
        #: Sums by core; -1: CDMA commands of unknown cores.
        self._cores: dict[int, CoreSums] = {}
        added = 0
        for sheet in self._sheets:
            lane, parts = sheet.lane, [part for part, _ in row_parts(sheet.counted_rows, 4 * SLICE)]
            core = self._profile.unit_number(lane)
            if core >= 0:
                found = {core: lane_sums(self._profile, lane, parts)}
            else:
                found = sums_by(self._profile, lane, parts, "core")
            for owner, sums in found.items():
                self._cores.setdefault(owner, CoreSums(Sums))[lane.kind].update(sums)
            self._totals[sheet.title] = sum(found.values(), Sums())
            if self._layers is not None:
                self._layers.add(lane, parts)
            added += sheet.count
            self._progress(_SUMS_SHARE * added / self._todo)

    def _summaries(self) -> None:
        profile = self._profile
        loose = self._cores.pop(-1, CoreSums(Sums))["CDMA"]
        cores = dict(sorted(self._cores.items()))
        start, end = published_window(self._query) if profile.timed else (0, 0)
        rows = [summary_row(profile, core, [each], end - start) for core, each in cores.items()]
        overall = summary_row(profile, None, list(cores.values()), end - start, loose)
        if self._layers is not None:
            concurrency = overall[SUMMARY_COLUMNS.index("Concurrency")]
            assert isinstance(concurrency, (int, float))
            network_sheet(self._page("Summary", "layers"), self._layers, end - start, concurrency)
            layer_sheet(self._page("Layer by Layer Info", "layers"), self._layers)
        page = self._page(_SUMMARY, "summary")
        summary_sheet(page, profile, rows, overall)
        for row, core in enumerate(cores, SUMMARY_ROW):
            title = next((each.title for each in self._sheets if profile.unit_number(each.lane) == core), "")
            if title:
                page.link(row, 1, title)

    def _views(self) -> None:
        """Write charts, and the views that the published converter's sheets lack."""
        add_charts(self._book, self._query)
        for sheet in sheets(self._query, _SKIPPED_VIEWS, selection_facts(self._query)):
            page = self._page(sheet.title, "problems" if sheet.title == "Problems" else "kernels")
            page.table(sheet.header, sheet.rows, sheet.forms)

    # -- sheets of rows ---------------------------------------------------

    def _rows_sheets(self, sheet: LaneRows) -> None:
        """Write the sheet of a lane, and further ones for rows that do not fit."""
        columns = sheet.columns(self._sheets)
        first, number = 0, 1
        while first < sheet.count:
            page = self._page(sheet.title if number == 1 else f"{sheet.title} ({number})", sheet.lane.kind)
            header_row = self._head(page, sheet)
            count = min(SHEET_ROWS - header_row, sheet.count - first)
            self._rows_sheet(page, sheet, columns, header_row, row_part(sheet.rows, first, first + count), count)
            first += count
            number += 1

    def _head(self, page: Page, sheet: LaneRows) -> int:
        """Write the blocks above the rows; returns the row of the column headers."""
        page.put(1, 1, "Performance", LABEL)
        page.put(2, 1, "Summary", LABEL)
        if sheet.lane.kind != "TIU":
            header_row = dma_head(page, self._profile, self._totals[sheet.title])
        else:
            parts = (part for part, _ in row_parts(sheet.rows, 4 * SLICE))
            types = sums_by(self._profile, sheet.lane, parts, "type")
            header_row = tiu_head(page, self._profile, self._totals[sheet.title], types)
        page.link(1, 1, _SUMMARY)
        return header_row

    def _rows_sheet(self, page: Page, sheet: LaneRows, columns: Sequence[SheetColumn], header_row: int, rows: Rows,
                    count: int) -> None:  # fmt: skip
        page.line(header_row, 1, (column.name for column in columns), COLUMN_HEADER)
        for number, length in _longest(sheet, columns, next(row_parts(rows, _SAMPLE))[0]).items():
            page.widen(number, length)
        last_unfolded = _LAST_UNFOLDED[sheet.lane.kind]
        for number, column in enumerate(columns, 1):
            if column.empty and number > last_unfolded:  # folded: it can be unfolded in the sheet
                dimension = page.sheet.column_dimensions[column_letters(number)]
                dimension.outlineLevel, dimension.hidden = 1, True
                page.sheet.column_dimensions[column_letters(number + 1)].collapsed = True
        _mark(page, columns, header_row + 1, header_row + count)

        rows_at_once = max(BATCH * _LONG_TEXT // max(self._longest_text, _LONG_TEXT), 1)

        def cells(row_cells: Sequence[Cell]) -> Iterator[list[str]]:
            plans = {operation: [cell_field(column, cell, sources.get(column.name))
                                 for column, cell in zip(columns, row_cells, strict=True)]
                     for operation, sources in sheet.sources.items()}  # fmt: skip
            for some, length in row_parts(rows, rows_at_once):
                yield rows_as_text(sheet.lane, plans.__getitem__, "", "", some, length)
                self._written(length)

        styles = [column.style for column in columns]
        size = count * _longest_row(columns, self._longest_text)
        self._book.stream(page, styles, header_row + 1, count, cells, size)
        page.headed(header_row, len(columns), header_row + count)
        # a hundred columns do not fit on one page: repeat the first ones on each page
        page.sheet.sheet_properties.pageSetUpPr.fitToPage = False
        page.sheet.print_title_cols = "A:D"

    def _written(self, count: int) -> None:
        self._done += count
        self._progress(_SUMS_SHARE + (1 - _SUMS_SHARE) * self._done / self._todo)


def _longest_row(columns: Sequence[SheetColumn], longest_text: int) -> int:
    """Approximate upper bound of a row's XML in bytes."""
    written = [column for column in columns if column.filled or not column.empty]
    texts = sum(column.kind == "text" for column in written)
    return 40 + sum(85 if column.kind in ("hex", "text") else 55 for column in written) + 6 * longest_text * texts


# -- around the rows ----------------------------------------------------------


def _mark(page: Page, columns: Sequence[SheetColumn], first: int, last: int) -> None:
    """Add colour scales to shares and bandwidths, and data bars to durations."""
    from openpyxl.formatting.rule import ColorScaleRule, DataBarRule

    for number, column in enumerate(columns, 1):
        cells = f"{column_letters(number)}{first}:{column_letters(number)}{last}"
        if column.name in _SCALED and not column.empty:
            rule = ColorScaleRule("min", None, _LOW, "percentile", 50, _MIDDLE, "max", None, _HIGH)
            page.sheet.conditional_formatting.add(cells, rule)
        elif column.name in _BARRED:
            page.sheet.conditional_formatting.add(cells, DataBarRule("num", 0, "max", None, _BAR))


def _longest(sheet: LaneRows, columns: Sequence[SheetColumn], sample: Rows) -> dict[int, int]:
    """Length of the longest text of each column among some rows, by column number."""
    longest: dict[int, int] = {}
    registers, numbers = sheet.lane.registers, row_numbers(sample)
    operations = np.full(len(numbers), -1) if registers is None else registers.operations(sample)
    distinct = uniques(operations).tolist()
    for number, column in enumerate(columns, 1):
        sources = [sheet.sources[operation].get(column.name) for operation in distinct]
        shared = all(source is sources[0] for source in sources)
        for operation, source in zip(distinct, sources, strict=True):
            if source is not None and source.values is not None:
                values = source.values(numbers[operations == operation])
                # a placeholder number of one kind of command does not widen a column that others fill
                replaced = not shared and isinstance(source.absent, (int, float))
                measured = values[~is_missing(values)] if replaced else values
                length = max((_text_length(column, source.texts, value) for value in measured.tolist()), default=0)
                longest[number] = min(max(length, longest.get(number, 0)), _LONGEST)
    return longest


def _text_length(column: SheetColumn, texts: Sequence[str], value: Any) -> int:
    if column.kind == "text":
        return shown_length(texts[value], "") if 0 <= value < len(texts) else 0
    return len(hex(value)) if column.kind == "hex" else shown_length(value, column.style.form)


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
#: Parameters of the chip that are shown, and what is written above them where that is not their name.
_SPECIFICATION: Final = (
    "Platform", "Chip Arch", "Core Num", "NPU Num", "Cube IC Align(8bits)", "Cube OHOW Align(8bits)",
    "Vector OHOW Align(8bits)", "TIU Frequency(MHz)", "DMA Frequency(MHz)", "DDR Frequency(MHz)", "TPU Lmem Size(MiB)",
)  # fmt: skip
_TITLES: Final = {"Chip Arch": "CHIP ARCH", "Cube OHOW Align(8bits)": "Cube OHOW Align"}
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


def tiu_head(page: Page, profile: Profile, total: Sums, types: Mapping[int, Sums]) -> int:
    """Writes totals, specification, description, statistics of a TIU sheet; returns the row of the column headers."""
    header_row = len(types) + 9
    page.line(1, 2, _TIU_TOTALS, TOTAL_HEADER)
    rate = ratio(total["alg_ops"], total["uarch_ops"])
    _values(page, 2, 2, (*(total[name] for name in _OPERATION), rate, total["wait_cycles"]), TOTAL_VALUE)
    page.put(1, 15, "Detail Spec", LABEL)
    page.line(1, 16, (_TITLES.get(name, name) for name in _SPECIFICATION), BLOCK_HEADER)
    known = dict(profile.device.parameters)
    page.line(2, 16, (known.get(name, "-") for name in _SPECIFICATION), BLOCK_VALUE)
    page.put(4, 15, "Description", LABEL)
    page.line(4, 16, ("Field", "Description"), BLOCK_HEADER)
    for row, (name, text) in enumerate(_TIU_NOTES, 5):
        page.put(row, 16, name, BLOCK_VALUE)
        page.put(row, 17, text, BLOCK_TEXT, fits=False)
        page.sheet.merge_cells(f"Q{row}:AD{row}")
    page.put(6, 1, "Statistics", LABEL)
    page.line(6, 2, _TYPE_COLUMNS, BLOCK_HEADER)
    for row, (code, some) in enumerate(types.items(), 7):
        name = profile.strings["type"][code] or str(column_of("type").placeholder)
        _values(page, row, 2, _type_cells(name, some, some["cycles"] + some["wait_cycles"], total), BLOCK_VALUE)
    cells = list(_type_cells("Overall", total, total["cycles"], total))
    cells[3] = cells[5] = cells[8] = cells[10] = 1.0
    _values(page, 7 + len(types), 2, cells, BLOCK_VALUE)
    folded = header_row > _TALLEST_BLOCK
    page.sheet.row_dimensions.group(3, header_row - 1, hidden=folded)
    page.sheet.row_dimensions[header_row].collapsed = folded
    return header_row


def _type_cells(name: str, some: Sums, cycles: int, total: Sums) -> tuple[Value, ...]:
    alg_ops, alg_cycle, uarch_ops = some["alg_ops"], some["alg_cycle"], some["uarch_ops"]
    return (
        name, some["count"], alg_ops, ratio(alg_ops, total["alg_ops"]), alg_cycle,
        ratio(alg_cycle, total["alg_cycle"]), uarch_ops, ratio(alg_ops, uarch_ops),
        ratio(uarch_ops, total["uarch_ops"]), cycles, ratio(cycles, total["cycles"]),
    )  # fmt: skip


def dma_head(page: Page, profile: Profile, total: Sums) -> int:
    """Writes totals and note of a sheet of transfers; returns the row of the column headers."""
    page.line(1, 3, _DMA_TOTALS, TOTAL_HEADER)
    working, _, *moved = _moved(total, profile.device.clock("DMA"))
    values = (working, working, total["stall"], ratio(total["stall"], working + total["wait_cycles"]),
              total["ddr_bytes"], *moved, total["wait_cycles"])  # fmt: skip
    forms = ("0.00" if "Bandwidth" in name else PERCENT if name.endswith("Ratio") else COUNT for name in _DMA_TOTALS)
    page.line(2, 3, values, TOTAL_VALUE, forms)
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
        page.line(row, 1, cells, KEY_CELL, map(_form, SUMMARY_COLUMNS))
    last = SUMMARY_ROW + len(rows)
    forms = (_form(name, overall=True) for name in SUMMARY_COLUMNS)
    page.line(last, 1, overall, replace(TOTAL_VALUE, align="right"), forms)
    page.line(last + 4, 1, ("Field", "Description"), BLOCK_HEADER)
    for row, (name, text) in enumerate(_SUMMARY_NOTES, last + 5):
        page.put(row, 1, name, BLOCK_VALUE)
        page.put(row, 2, text, BLOCK_TEXT, fits=False)
    page.sheet.freeze_panes = f"B{SUMMARY_ROW}"


def _values(page: Page, row: int, column: int, values: Sequence[Value], style: Style) -> None:
    """Writes figures in a row; floats are shares, written as percentages."""
    kinds = ((float, PERCENT), (int, COUNT), (object, "General"))
    forms = (next(form for kind, form in kinds if isinstance(value, kind)) for value in values)
    page.line(row, column, values, style, forms)


#: Columns of the summary of engines, in order.
SUMMARY_COLUMNS: Final = (
    "CoreId", "TiuWorkingRatio", "Parallelism", "Concurrency", "totalTime(us)",
    "totalTiuCycle", "totalAlgCycle", "totalAlgOps", "totalUArchOps", "uArchURate",
    "totalGdmaCycle", "totalDdrDataSize", "totalL2DataSize", "ddrAvgBandwidth", "l2AvgBandwidth",
    "totalSdmaCycle", "totalDdrDataSize", "ddrAvgBandwidth",
    "totalcdmaCycle", "totalDdrDataSize", "totalL2DataSize", "ddrAvgBandwidth", "l2AvgBandwidth",
)  # fmt: skip
_OPERATION: Final = ("cycles", "alg_cycle", "alg_ops", "uarch_ops")


def summary_row(
    profile: Profile, core: int | None, cores: Sequence[CoreSums], total_ns: int, loose: Sums | None = None
) -> list[Value]:
    """Figures of one core, or over all (``core`` None): cycles as us of the busiest core, sizes in MiB.

    All engines' times are ns here; the reference adds DMA cycles to ns, which is the same at 1000 MHz.
    ``loose``: sums of the CDMA commands of unknown cores.
    """
    tiu_mhz, dma_mhz = profile.device.clock("TIU"), profile.device.clock("DMA")
    engines = ("TIU", "GDMA", "SDMA", "CDMA")
    # by engine, the sums of each core
    parts = {engine: [each[engine] for each in cores] for engine in engines}
    longest = {engine: max((each["cycles"] for each in parts[engine]), default=0) for engine in engines}
    tiu_ns, gdma_ns = to_ns(longest["TIU"], tiu_mhz), to_ns(longest["GDMA"], dma_mhz)
    sdma = longest["SDMA"] if len(profile.units) > 1 else 0
    moving = to_ns(longest["GDMA"] + sdma, dma_mhz) if core is None else gdma_ns + to_ns(sdma, dma_mhz)
    parts["CDMA"].append(loose or Sums())
    longest["CDMA"] = max(each["cycles"] for each in parts["CDMA"])
    alg_cycle = max((each["alg_cycle"] for each in parts["TIU"]), default=0)
    sums = {engine: sum(parts[engine], Sums()) for engine in engines}
    alg_ops, uarch_ops = sums["TIU"]["alg_ops"], sums["TIU"]["uarch_ops"]
    cycles: list[Value] = [longest["TIU"], alg_cycle]
    moved = [[longest[engine], *_moved(sums[engine], dma_mhz)[1:]] for engine in engines[1:]]
    if core is None:
        cycles = [cycles_us(longest["TIU"], tiu_mhz), cycles_us(alg_cycle, tiu_mhz)]
        moved = [[cycles_us(time, dma_mhz), round(ddr / (1 << 20), 2), round(l2 / (1 << 20), 2), *rates]
                 for time, ddr, l2, *rates in moved]  # fmt: skip
    gdma, (sdma_cycles, sdma_ddr, _, sdma_rate, _), cdma = moved
    return [
        "Overall" if core is None else core,
        ratio(tiu_ns, total_ns), ratio(tiu_ns + moving, total_ns),
        ratio(tiu_ns + gdma_ns - total_ns, min(tiu_ns, gdma_ns)), round(total_ns / 1000, 3),
        *cycles, alg_ops, uarch_ops, ratio(alg_ops, uarch_ops),
        *gdma, sdma_cycles, sdma_ddr, sdma_rate, *cdma,
    ]  # fmt: skip


def _moved(some: Sums, mhz: float) -> list[int | float]:
    """Cycles, bytes of DDR and of L2 memory, and their bandwidths with two decimals."""
    rates = (round(bandwidth(some, moves, mhz), 2) for moves in ("ddr", "l2"))
    return [some["cycles"], some["ddr_bytes"], some["l2_bytes"], *rates]


def _form(name: str, *, overall: bool = False) -> str:
    """Number format of a column of the summary of engines."""
    if overall and name.endswith(("Cycle", "DataSize")):
        return '#,##0.000"(us)"' if name.endswith("Cycle") else '#,##0.00"MiB"'
    if name in ("TiuWorkingRatio", "Parallelism", "Concurrency", "uArchURate"):
        return PERCENT
    if name == "totalTime(us)":
        return "#,##0.000"
    return "0.00" if "Bandwidth" in name else "General" if name == "CoreId" else COUNT
