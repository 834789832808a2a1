"""Workbooks: built with openpyxl, except for rows of large sheets, which are streamed into its output as XML."""

from __future__ import annotations

import io
import math
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final

from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.errors import requires_package
from tpuprof_tui.lazy_names import lazy_pattern

from ..escape import sheet_text, starts_formula
from ..rendering import EXACT
from .rows import COLUMN_HEADER, KEY_CELL, LINK, NUMBER, Cell, Style, table_rows

if TYPE_CHECKING:
    from openpyxl import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

Value = str | int | float | None

#: Maximum number of rows of a sheet in this file format.
SHEET_ROWS: Final = 1_048_576
#: Deflate level. Level 1 takes half the time, but the output is a third larger.
LEVEL: Final = 6
#: Size above which a part is written as ZIP64, bytes; older spreadsheets may not support it.
_LARGE: Final = 2_000_000_000
#: Width of the narrowest and the widest column, in characters.
_NARROWEST: Final = 7
_WIDEST: Final = 90
_PROPERTIES: Final = "docProps/core.xml"
_TIMES: Final = lazy_pattern(rb"<dcterms:(created|modified)[^>]*>[^<]*</dcterms:\1>")
#: Tables with more rows than this are streamed: openpyxl takes about 50 us and 500 bytes per cell.
_STREAMED_FROM: Final = 2_000
#: Number of rows of a streamed table that are measured for column widths.
_SAMPLE: Final = 100
_CELL: Final = lazy_pattern(r'<c r="([A-Z]+)\d+"[^>]*? s="(\d+)"')


class Page:
    """A worksheet under construction; rows and columns count from 1."""

    def __init__(self, book: Book, sheet: Worksheet) -> None:
        self.sheet = sheet
        self._book = book
        self._longest: dict[int, int] = {}

    def put(self, row: int, column: int, value: Value, style: Style, *, fits: bool = True) -> None:
        """Writes a cell; None: a styled empty cell. With ``fits`` the column is widened to the cell."""
        if isinstance(value, float) and not math.isfinite(value):
            value = None
        if isinstance(value, int) and abs(value) > EXACT:
            value = str(value)
        cell: Any = self.sheet.cell(row, column, sheet_text(value) if isinstance(value, str) else value)
        cell.style = self._book.style(style)
        if isinstance(value, str) and value:
            cell.data_type = "s"  # a text that looks like a formula stays a text, also after editing (quotePrefix)
            if starts_formula(value):
                cell.quotePrefix = True
        if fits:
            self._longest[column] = max(self._longest.get(column, 0), shown_length(value, style.form))

    def line(self, row: int, column: int, values: Iterable[Value], style: Style, forms: Iterable[str] = ()) -> None:
        """Writes adjacent cells of a row; ``forms``: their number formats, instead of the style's."""
        styles = (replace(style, form=form) for form in forms) if forms else repeat(style)
        for number, (value, each) in enumerate(zip(values, styles, strict=False), column):
            self.put(row, number, value, each)

    def table(self, titles: Sequence[str], rows: Sequence[Sequence[Value]], forms: Sequence[str]) -> None:
        """Writes a table with its header in row 1, frozen, with a filter; streams the rows of large tables."""
        self.line(1, 1, titles, COLUMN_HEADER)
        if len(rows) > _STREAMED_FROM:
            texts = [any(isinstance(cell, str) for cell in cells) for cells in zip(*rows, strict=True)]
            styles = [replace(KEY_CELL, form=form, align="left" if text else KEY_CELL.align)
                      for form, text in zip(forms, texts, strict=True)]  # fmt: skip
            self._book.stream(self, styles, 2, len(rows), partial(table_rows, rows), 0)
            for number, values in enumerate(zip(*rows[:_SAMPLE], strict=True), 1):
                self.widen(number, max(shown_length(value, forms[number - 1]) for value in values))
            self.headed(1, len(titles), len(rows) + 1)
            return
        for row, cells in enumerate(rows, 2):
            for column, (value, form) in enumerate(zip(cells, forms, strict=True), 1):
                align = "left" if isinstance(value, str) else KEY_CELL.align
                self.put(row, column, value, replace(KEY_CELL, form=form, align=align))
        self.headed(1, len(titles), self.height)

    def headed(self, header_row: int, columns: int, last_row: int, frozen_columns: int = 0) -> None:
        """Freezes the header of a table, adds a filter, and repeats the header on each printed page."""
        sheet, last = self.sheet, max(last_row, header_row)
        sheet.freeze_panes = sheet.cell(header_row + 1, frozen_columns + 1)
        sheet.auto_filter.ref = f"A{header_row}:{sheet.cell(last, columns).coordinate}"
        sheet.print_title_rows = f"{header_row}:{header_row}"

    def link(self, row: int, column: int, title: str) -> None:
        """Adds a link from a cell to another sheet."""
        from openpyxl.styles import Font
        from openpyxl.worksheet.hyperlink import Hyperlink

        cell: Any = self.sheet.cell(row, column)
        cell.hyperlink = Hyperlink(ref=cell.coordinate, location=f"'{title}'!A1", display=str(cell.value))
        cell.font = Font(name=cell.font.name, size=cell.font.sz, bold=True, underline="single", color=f"FF{LINK}")

    @property
    def height(self) -> int:
        """Number of the last row."""
        return int(self.sheet.max_row)

    def widen(self, column: int, length: int) -> None:
        """Widens a column to ``length`` characters."""
        self._longest[column] = max(self._longest.get(column, 0), length)

    def set_widths(self) -> None:
        """Sets column widths from the longest texts, with room for the filter button in the header."""
        for column, length in self._longest.items():
            width = min(max(length * 1.05 + 2.5, _NARROWEST), _WIDEST)
            self.sheet.column_dimensions[column_letters(column)].width = round(width, 2)


class _Stream(Struct, frozen=True):
    """Arguments of `Book.stream`: rows to stream into a sheet.

    Until then the sheet holds two placeholder rows at ``first``, from which the style numbers are read.
    """

    page: Page
    columns: int
    first: int
    count: int
    rows: Callable[[Sequence[Cell]], Iterator[list[str]]]
    size: int


class Book:
    """A workbook under construction; `save` writes it."""

    def __init__(self, title: str) -> None:
        """Creates an empty workbook.

        Raises:
            MissingPackageError: openpyxl is not installed.
        """
        with requires_package("The workbook"):
            from openpyxl import Workbook

        self.workbook: Workbook = Workbook()
        self.workbook.remove(self.workbook.worksheets[0])
        self.workbook.properties.title = sheet_text(title)
        self.workbook.properties.creator = "tpuprof"
        self._styles: dict[Style, str] = {}
        self._pages: list[Page] = []
        self._streams: list[_Stream] = []

    def page(self, title: str, tab: str = "") -> Page:
        """Adds a sheet, printed in landscape and fitted to the page width; ``tab``: colour of its tab, RRGGBB."""
        sheet = self.workbook.create_sheet(title)
        if tab:
            sheet.sheet_properties.tabColor = f"FF{tab}"
        sheet.page_setup.orientation = "landscape"
        sheet.page_setup.fitToHeight = 0
        sheet.sheet_properties.pageSetUpPr.fitToPage = True
        sheet.oddFooter.center.text = "&A, &P / &N"
        self._pages.append(Page(self, sheet))
        return self._pages[-1]

    def style(self, style: Style) -> str:
        """Name of a style in this workbook; registers it on first use."""
        if style not in self._styles:
            name = f"tpuprof {len(self._styles) + 1}"
            self.workbook.add_named_style(style.named(name))
            self._styles[style] = name
        return self._styles[style]

    def stream(self, page: Page, styles: Sequence[Style], first: int, count: int,
               rows: Callable[[Sequence[Cell]], Iterator[list[str]]], size: int) -> None:  # fmt: skip
        """Registers the last ``count`` rows of a sheet, from row ``first`` on, to be streamed on saving.

        Args:
            page: The sheet.
            styles: Style of each column.
            first: Number of the first row.
            count: Number of rows.
            rows: Yields batches of rows, each row as the XML of its cells; gets the `Cell` of each column.
            size: Upper estimate of the size of all rows, bytes.
        """
        # openpyxl assigns style numbers when it saves: two placeholder rows reveal them, plain and quoted
        for column, style in enumerate(styles, 1):
            for row in (first, first + 1):
                cell: Any = page.sheet.cell(row, column, 0)
                cell.style = self.style(style)
                cell.quotePrefix = row > first
        self._streams.append(_Stream(page, len(styles), first, count, rows, size))

    def save(self, stream: BinaryIO) -> None:
        """Writes the workbook to a binary stream."""
        buffer = io.BytesIO()
        for page in self._pages:
            page.set_widths()
        try:
            self.workbook.save(buffer)
        except OSError:
            sys.unraisablehook = _without_writers(sys.unraisablehook)
            raise
        streams = {each.page.sheet.path.lstrip("/"): each for each in self._streams}
        archive = zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL)
        try:
            with zipfile.ZipFile(buffer) as source:
                for name in source.namelist():
                    if name in streams:
                        with archive.open(name, "w", force_zip64=streams[name].size > _LARGE) as part:
                            _stream_into(part, source.read(name), streams[name])
                    else:
                        data = source.read(name)
                        # remove the times so that the same profile always gives the same file
                        data = _TIMES.sub(b"", data) if name == _PROPERTIES else data
                        archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, LEVEL)
        finally:
            archive.close()


def _without_writers(hook: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Wraps an unraisable hook to ignore openpyxl's temporary files, which fail once more after a failed save."""

    def filtered(unraisable: Any) -> None:
        if "WorksheetWriter" not in repr(unraisable.object):
            hook(unraisable)

    return filtered


def _stream_into(part: IO[bytes], xml: bytes, stream: _Stream) -> None:
    """Writes a sheet that openpyxl built, with the placeholder rows replaced by the streamed rows."""
    start = xml.index(b'<row r="%d"' % stream.first)
    end = xml.index(b"</sheetData>")
    plain, _, quoted = xml[start:end].decode().partition("</row>")
    found = zip(_CELL.findall(plain), _CELL.findall(quoted), strict=True)
    cells = [Cell(letters, style, other) for (letters, style), (_, other) in found]
    last = f"{column_letters(stream.columns)}{stream.first + stream.count - 1}"
    reach = re.compile(rb'<dimension ref="[^"]*"')
    part.write(reach.sub(f'<dimension ref="A1:{last}"'.encode(), xml[:start], count=1))
    number = stream.first
    for rows in stream.rows(cells):
        numbered = [
            f'<row r="{index}">{row.replace(NUMBER, str(index))}</row>' for index, row in enumerate(rows, number)
        ]
        part.write("".join(numbered).encode())
        number += len(rows)
    part.write(xml[end:])


def shown_length(value: Value, form: str) -> int:
    """Approximate width of a cell's text, characters."""
    if value is None:
        return 0
    if isinstance(value, str):
        # East Asian wide characters take two columns
        return sum(2 if ord(character) > 0x2E7F else 1 for character in value)
    if "%" in form:
        return len(f"{value:.2%}")
    if form.startswith("#,##0"):
        return len(f"{value:,.0f}") + len(form) - 5
    return len(str(value))


def column_letters(number: int) -> str:
    """Letters of a column, by number from 1."""
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(number))
