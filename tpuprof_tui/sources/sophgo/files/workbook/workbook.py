"""A profile as a workbook: the reference's sheets in its layout, then what it leaves out.

Blocks and small sheets are placed cell by cell; rows of instructions are made by array operations and go into the
file a slice at a time, so memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final

from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.export.selection import Selection, selected_profile
from tpuprof_tui.formats.files import whole_file
from tpuprof_tui.formats.xlsx.cells import Value, column_letters, shown_length
from tpuprof_tui.formats.xlsx.package import Package, SheetEntry
from tpuprof_tui.formats.xlsx.rows import RowWriter, SheetColumn, Values
from tpuprof_tui.formats.xlsx.styles import COLUMN_HEADER, COUNT
from tpuprof_tui.model import Profile
from tpuprof_tui.model.lane import Rows
from tpuprof_tui.views.as_sheet import sheets
from tpuprof_tui.views.query import Query

from ..registers_text import slices
from .blocks import TABS, Head, dma_head, summary_sheet, table_sheet, tiu_head
from .fields import EVERYTHING
from .kernels import KERNEL_COLUMNS, KernelTable
from .lanes import SLICE, LaneRows, chosen_lanes
from .layer_sheets import LAYER_COLUMNS, LayerSums, layer_sheet, network_sheet
from .layers import LayerMap, read_network
from .statistics import (
    SUMMARY_COLUMNS,
    CoreTotals,
    Totals,
    lane_totals,
    overall_row,
    port_totals,
    summary_row,
    type_rows,
)

Progress = Callable[[float], None]

#: Rows of a sheet, by the file format.
SHEET_ROWS: Final = 1_048_576
#: Rows whose cells decide how wide a column is, and the most characters that count.
_SAMPLE: Final = 30
_LONGEST: Final = 35
#: Columns up to here hold the blocks; further ones fold away where no row can have a value in them.
_NEVER_FOLDED: Final = {"TIU": 30, "GDMA": 20, "SDMA": 20, "CDMA": 20}
#: Views that other sheets tell, in the converter's own way.
_ELSEWHERE: Final = frozenset(("published", "kernels", "bandwidth"))
#: Share of the time that goes into sums, before rows are written.
_SUMS_SHARE: Final = 0.1


def write_workbook(
    profile: Profile, path: Path, selection: Selection = EVERYTHING, *, progress: Progress | None = None
) -> int:
    """Writes the workbook.

    Sheets: summary of engines; TIU, GDMA and SDMA of each core that has chosen instructions; CDMA ports; kernel
    functions (where they are known); the views, problems last. Rows are in the order of the engine's stream. What does
    not fit one sheet goes on in sheets numbered ``(2)``, ``(3)``, ...

    Args:
        profile: The profile.
        path: The file, replaced when complete.
        selection: Which instructions; figures are over these as well.
        progress: Gets the share that is done, 0 to 1.

    Returns:
        Number of instructions written.

    Raises:
        WriteError: The file could not be written; nothing is left behind.
    """
    with whole_file(path) as stream:
        package = Package(stream)
        try:
            return _Workbook(profile, package, selection, progress).write()
        except BaseException:
            package.abandon()
            raise


class _Workbook:
    """One workbook being written."""

    def __init__(self, profile: Profile, package: Package, selection: Selection, progress: Progress | None) -> None:
        self._profile = profile
        self._package = package
        self._progress = progress or (lambda share: None)
        network = read_network(Path(profile.path))
        self._selection = selection
        self._layers = LayerMap(network, profile.groups) if network is not None else None
        self._sheets = chosen_lanes(profile, selection, self._layers)
        self._totals: dict[str, Totals] = {}
        self._todo = sum(sheet.count for sheet in self._sheets)
        self._done = 0

    def write(self) -> int:
        kernels = self._sums()
        self._summaries()
        for sheet in self._sheets:
            self._rows_sheets(sheet)
        if kernels:
            forms = [_kernel_form(name) for name in KERNEL_COLUMNS]
            self._table("Kernel Functions", "kernels", KERNEL_COLUMNS, kernels, forms)
        self._views()
        self._package.close(self._profile.name)
        self._progress(1.0)
        return self._todo

    # -- figures ----------------------------------------------------------

    def _sums(self) -> list[list[str | int | float | None]]:
        """Adds up all lanes; gives the rows of the kernel functions."""
        table = KernelTable(self._profile)
        self._layer_sums = None if self._layers is None else LayerSums(self._profile, self._layers)
        self._cores: dict[int, CoreTotals] = {}
        self._loose = Totals()
        added = 0
        for sheet in self._sheets:
            lane, parts = sheet.lane, [part for part, _ in slices(sheet.rows, 4 * SLICE)]
            core = self._profile.unit_number(lane)
            if core >= 0:
                total = lane_totals(self._profile, lane, parts)
                self._of(core)[lane.kind] = total
            else:
                total = Totals()
                for owner, totals in port_totals(self._profile, lane, parts).items():
                    total += totals
                    if owner is None:
                        self._loose += totals
                    else:
                        known = self._of(owner)
                        known["CDMA"] = known.get("CDMA", Totals()) + totals
            self._totals[sheet.title] = total
            table.add(lane, parts)
            if self._layer_sums is not None:
                self._layer_sums.add(lane, parts)
            added += sheet.count
            self._progress(_SUMS_SHARE * added / self._todo)
        rows = table.rows()
        return rows if any(row[0] != "-" for row in rows) else []

    def _of(self, core: int) -> dict[str, Totals]:
        return self._cores.setdefault(core, CoreTotals(core, {})).engines

    def _summaries(self) -> None:
        """The sheets of layers, where they are known, then the summary of engines."""
        profile = self._profile
        cores = [self._cores[core] for core in sorted(self._cores)]
        every = list(self._totals.values())
        start = min((some.start for some in every if some.start is not None), default=0)
        end = max((some.end for some in every if some.end is not None), default=0)
        many = len(profile.units) > 1
        rows: list[list[Value]] = [[core.core, *summary_row(profile, core, end - start, many)] for core in cores]
        overall: list[Value] = ["Overall", *overall_row(profile, cores, self._loose, end - start, many)]
        if self._layers is not None and self._layer_sums is not None:
            concurrency = overall[SUMMARY_COLUMNS.index("Concurrency")]
            assert isinstance(concurrency, (int, float))
            head = network_sheet(profile, self._layers, self._layer_sums, end - start, concurrency)
            self._small_sheet("Summary", "layers", head, "A1")
            head = layer_sheet(profile, self._layers, self._layer_sums)
            reach = f"$A${head.header_row}:${column_letters(len(LAYER_COLUMNS))}${head.grid.height}"
            self._small_sheet("Layer by Layer Info", "layers", head, f"C{head.header_row + 1}", reach)
        head = summary_sheet(profile, rows, overall)
        self._small_sheet("Engine Summary", "summary", head, "B6")

    def _views(self) -> None:
        """What views say and the published converter's sheets do not."""
        query = Query(Session.build(selected_profile(self._profile, self._selection)))
        for sheet in sheets(query, _ELSEWHERE):
            tab = "problems" if sheet.title == "Problems" else "kernels"
            self._table(sheet.title, tab, sheet.header, sheet.rows, sheet.forms)

    # -- sheets -----------------------------------------------------------

    def _table(self, title: str, tab: str, titles: Sequence[str], rows: Sequence[Sequence[Value]],
               forms: Sequence[str]) -> None:  # fmt: skip
        head = table_sheet(titles, rows[: SHEET_ROWS - 1], forms)
        reach = f"$A$1:${column_letters(len(titles))}${max(head.grid.height, 1)}"
        self._small_sheet(title, tab, head, "A2", reach)

    def _small_sheet(self, title: str, tab: str, head: Head, frozen: str, reach: str = "") -> None:
        widths = head.grid.widths(head.loose)
        with self._package.sheet(SheetEntry(title, reach)) as part:
            body = head.grid.xml(self._package.styles, self._package.strings, head.rows)
            text = _opening(TABS[tab], widths, frozen) + body + _ending(head, reach)
            part.write(text.encode("utf-8"))

    def _rows_sheets(self, sheet: LaneRows) -> None:
        """The sheet of a lane, and the further ones it needs."""
        columns = sheet.columns(self._sheets)
        head = self._head(sheet)
        head.grid.line(head.header_row, 1, (column.name for column in columns), COLUMN_HEADER)
        room = SHEET_ROWS - head.header_row
        for number, (rows, count) in enumerate(slices(sheet.rows, room), 1):
            title = sheet.title if number == 1 else f"{sheet.title} ({number})"
            self._rows_sheet(title, sheet, columns, head, rows, count)

    def _head(self, sheet: LaneRows) -> Head:
        if sheet.lane.kind != "TIU":
            return dma_head(self._profile, self._totals[sheet.title])
        types = type_rows(self._profile, sheet.lane, (part for part, _ in slices(sheet.rows, 4 * SLICE)))
        return tiu_head(self._profile, self._totals[sheet.title], types)

    def _rows_sheet(self, title: str, sheet: LaneRows, columns: Sequence[SheetColumn], head: Head, rows: Rows,
                    count: int) -> None:  # fmt: skip
        package = self._package
        last = head.header_row + count
        reach = f"$A${head.header_row}:${column_letters(len(columns))}${last}"
        writer = RowWriter(columns, package.styles, package.strings)
        with package.sheet(SheetEntry(title, reach), count * _longest_row(columns)) as part:
            widths = _widths(sheet, columns, head, next(slices(rows, _SAMPLE))[0])
            outlined = any("outlineLevel" in some for some in head.rows.values())
            shown = _NEVER_FOLDED[sheet.lane.kind]
            folded = [place for place, column in enumerate(columns, 1) if column.empty and place > shown]
            text = _opening(TABS[sheet.lane.kind], widths, f"A{head.header_row + 1}", outlined, folded)
            part.write((text + head.grid.xml(package.styles, package.strings, head.rows)).encode("utf-8"))
            first = head.header_row + 1
            for some, length in slices(rows, SLICE):
                part.write(writer.xml(first, sheet.values(columns, some), length))
                first += length
                self._written(length)
            part.write(_ending(head, reach).encode("utf-8"))

    def _written(self, count: int) -> None:
        self._done += count
        self._progress(_SUMS_SHARE + (1 - _SUMS_SHARE) * self._done / self._todo)


def _longest_row(columns: Sequence[SheetColumn]) -> int:
    """About how many bytes of XML a row can take at most."""
    written = [column for column in columns if column.filled or not column.empty]
    return 40 + sum(85 if column.kind == "hex" else 55 for column in written)


# -- around the rows ----------------------------------------------------------


def _opening(tab: str, widths: dict[int, int], frozen: str, outlined: bool = False,
             folded: Collection[int] = ()) -> str:  # fmt: skip
    """A sheet up to its rows; ``frozen`` is the first cell that scrolls, ``folded`` are columns to unfold on demand."""
    columns = "".join(
        f'<col min="{column}" max="{column}" width="{_width(length):.2f}" customWidth="1"{_folding(column, folded)}/>'
        for column, length in sorted(widths.items())
    )
    letters = frozen.rstrip("0123456789")
    row, column = int(frozen[len(letters) :]), ord(letters) - ord("A")
    split = (f' xSplit="{column}"' if column else "") + (f' ySplit="{row - 1}"' if row > 1 else "")
    levels = (' outlineLevelRow="1"' if outlined else "") + (' outlineLevelCol="1"' if folded else "")
    corner = "bottomRight" if column and row > 1 else "bottomLeft"
    pane = (
        f'<pane{split} topLeftCell="{frozen}" activePane="{corner}" state="frozen"/>'
        f'<selection pane="{corner}" activeCell="{frozen}" sqref="{frozen}"/>'
    )
    return (
        '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        f'<sheetPr><tabColor rgb="FF{tab}"/></sheetPr>'
        f'<sheetViews><sheetView workbookViewId="0">{pane if split else ""}</sheetView></sheetViews>'
        f'<sheetFormatPr defaultRowHeight="15"{levels}/>'
        f"<cols>{columns}</cols><sheetData>"
    )


def _ending(head: Head, reach: str) -> str:
    """A sheet from the end of its rows."""
    merged = "".join(f'<mergeCell ref="{cells}"/>' for cells in head.merges)
    return (
        "</sheetData>"
        + (f'<autoFilter ref="{reach.replace("$", "")}"/>' if reach else "")
        + (f'<mergeCells count="{len(head.merges)}">{merged}</mergeCells>' if merged else "")
        + '<pageSetup orientation="landscape"/></worksheet>'
    )


def _folding(column: int, folded: Collection[int]) -> str:
    if column in folded:
        return ' outlineLevel="1" hidden="1"'
    return ' collapsed="1"' if column - 1 in folded else ""


def _width(length: float) -> float:
    """Width of a column for its longest text; the filter's button stands in the header."""
    return min(max(length * 1.05 + 2.5, 7), 90)


def _widths(sheet: LaneRows, columns: Sequence[SheetColumn], head: Head, sample: Rows) -> dict[int, int]:
    """Longest text of each column among the blocks, the headers and the first rows."""
    widths = head.grid.widths(head.loose)
    for place, (column, some) in enumerate(zip(columns, sheet.values(columns, sample), strict=True), 1):
        if some.array is None:
            continue
        shown = [_shown(column, some, value) for value in some.array.tolist()]
        widths[place] = max(widths.get(place, 0), min(max(shown, default=0), _LONGEST))
    return widths


def _shown(column: SheetColumn, some: Values, value: Any) -> int:
    if column.kind == "text":
        return shown_length(some.texts[value], "") if 0 <= value < len(some.texts) else 0
    return len(hex(value)) if column.kind == "hex" else shown_length(value, column.style.form)


def _kernel_form(name: str) -> str:
    if name.endswith("(us)"):
        return "#,##0.000"
    return "0.00%" if name in ("Time Ratio", "uArch URate") else COUNT
