"""Styles of cells, and worksheet rows rendered as XML, with one Python object per distinct value, not per cell.

Uses `formats.rendering`; the row number is a NUL character that is replaced later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model.lane import Rows

from ..escape import sheet_xml, starts_formula
from ..rendering import EXACT, Field, tenths

BLOCK: Final = "548235"
VALUE: Final = "F2F2F2"
HEADER: Final = "305496"
KEY: Final = "FCE4D6"
WHITE: Final = "FFFFFF"
LINK: Final = "0563C1"

_LATIN: Final = "Calibri"
_CJK: Final = "等线"

COUNT: Final = "#,##0"
PERCENT: Final = "0.00%"


class Style(Struct, frozen=True):
    """Style of a cell."""

    fill: str = ""  #: Background, RRGGBB; empty: none
    font: str = _CJK
    size: int = 10
    bold: bool = True
    colour: str = "000000"  #: Text colour, RRGGBB
    border: bool = False  #: Whether it has a thin border
    align: str = ""  #: Horizontal alignment; empty: by type of value
    form: str = "General"  #: Number format

    def named(self, name: str) -> Any:
        """Converts it to a named style of openpyxl."""
        from openpyxl.styles import Alignment, Border, Font, NamedStyle, PatternFill, Side

        line = Side("thin" if self.border else None)
        return NamedStyle(
            name=name,
            font=Font(name=self.font, size=self.size, bold=self.bold, color=f"FF{self.colour}"),
            fill=PatternFill("solid", fgColor=f"FF{self.fill}") if self.fill else PatternFill(),
            border=Border(line, line, line, line),
            alignment=Alignment(horizontal=self.align or None, vertical="top" if self.align else None),
            number_format=self.form,
        )


PLAIN: Final = Style(font=_LATIN, size=11, bold=False)
LABEL: Final = Style(fill=WHITE)
BLOCK_HEADER: Final = Style(fill=BLOCK, font=_LATIN, colour=WHITE)
TOTAL_HEADER: Final = Style(fill=BLOCK, font=_LATIN, colour=WHITE, border=True, align="center")
BLOCK_VALUE: Final = Style(fill=VALUE)
BLOCK_TEXT: Final = Style(fill=VALUE, align="left")
TOTAL_VALUE: Final = Style(fill=VALUE, border=True, align="center")
COLUMN_HEADER: Final = Style(fill=HEADER, font=_LATIN, colour=WHITE)
KEY_CELL: Final = Style(fill=KEY, border=True, align="right")
CELL: Final = Style()


#: Placeholder of the row number.
NUMBER: Final = "\0"
#: Number of rows per batch.
BATCH: Final = 4096
_TEXT, _TEXT_END = ' t="inlineStr"><is><t>', "</t></is></c>"
_VALUE, _VALUE_END = "><v>", "</v></c>"
#: Format of floats: 15 digits, the precision that a double always has.
_FLOAT: Final = "%.15g"
_DECIMALS: Final = 4


class Source(Struct, frozen=True, eq=False):
    """Values of a field of the events of a lane."""

    #: ``int`` (int64, or uint64 for 64-bit registers), ``float``, ``percent`` (0 to 100) or ``text`` (codes).
    kind: Literal["int", "float", "percent", "text"]
    #: Returns the values of some rows; None: all rows have ``absent``.
    values: Callable[[Rows], npt.NDArray[Any]] | None = None
    absent: str | int | float | None = None  #: Value to write for missing ones; None: an empty cell
    texts: Sequence[str] = ()  #: Texts by code
    filler: bool = False  #: Whether it carries no information (reserved): included in the register text, not in sheets


class SheetColumn(Struct, frozen=True):
    """A column of a sheet."""

    name: str  #: Header
    kind: Literal["int", "hex", "float", "percent", "text"]  #: How values are written; ``hex`` as text
    style: Style  #: Style of the cells
    filled: bool  #: Whether empty cells have that style as well
    empty: bool = False  #: Whether no row can have a value


class Cell(Struct, frozen=True):
    """Writes the cells of one column: letters of the column, and numbers of its style, plain and quoted.

    Texts that look like a formula get the quoted style, so that they stay texts when edited.
    """

    letters: str
    plain: str
    quoted: str

    @property
    def opening(self) -> str:
        """Opening tag of a cell in the plain style, up to the attributes."""
        return f'<c r="{self.letters}{NUMBER}" s="{self.plain}"'

    def text(self, text: str) -> str:
        """XML of a cell with a text."""
        style = self.quoted if starts_formula(text) else self.plain
        space = ' xml:space="preserve"' if text != text.strip() else ""
        return (
            f'<c r="{self.letters}{NUMBER}" s="{style}" t="inlineStr"><is><t{space}>{sheet_xml(text)}{_TEXT_END}'
            if text
            else f"{self.opening}/>"
        )


def cell_field(column: SheetColumn, cell: Cell, source: Source | None) -> Field | str:
    """Rendering field of a column with the values of ``source``; a constant string if all rows are equal."""
    opening = cell.opening
    empty = f"{opening}/>" if column.filled else ""
    absent = None if source is None else source.absent
    if column.kind == "text":
        nothing = empty if absent is None else cell.text(str(absent))
        if source is None or source.values is None:
            return nothing
        return Field(source.values, "", nothing, source.texts, cell.text)
    lead, form, after, inexact = opening + _VALUE, "%s", _VALUE_END, ""
    if column.kind == "hex":
        lead, form, after = opening + _TEXT, "%#x", _TEXT_END
    elif column.kind == "int":
        inexact = f"{opening}{_TEXT}%d{_TEXT_END}"
    elif column.kind == "percent" and isinstance(absent, str):
        absent = float(absent.rstrip("%")) / 100
    values = None if source is None else source.values
    if values is not None and column.kind in ("float", "percent"):
        form = _FLOAT
    nothing = empty if absent is None or isinstance(absent, str) else lead + form % absent + after
    if values is None:
        return nothing
    if column.kind == "percent":
        return Field(lambda rows: _shares(values(rows)), lead, nothing, form=form, after=after)
    if column.kind == "float":
        return Field(values, lead, nothing, form=form, after=after, decimals=_DECIMALS)
    return Field(values, lead, nothing, form=form, after=after, inexact=inexact, span=64)


def _shares(percents: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Percentages as fractions of 1, rounded to 0.1 % exactly as their text."""
    return np.where(np.isfinite(percents), tenths(percents) / 1000, np.nan)


def table_rows(rows: Sequence[Sequence[str | int | float | None]], cells: Sequence[Cell]) -> Iterator[list[str]]:
    """Yields the rows of a table as XML, in batches of ``BATCH``."""
    renderers = list(map(_cell_renderer, cells))
    for first in range(0, len(rows), BATCH):
        columns = zip(*rows[first : first + BATCH], strict=True)
        rendered = [list(map(render, values)) for render, values in zip(renderers, columns, strict=True)]
        yield list(map("".join, zip(*rendered, strict=True)))


def _cell_renderer(cell: Cell) -> Callable[[str | int | float | None], str]:
    """Returns a function that renders a value of any type as a cell; integers beyond ``EXACT`` become texts."""
    empty, before, text = f"{cell.opening}/>", cell.opening + _VALUE, cache(cell.text)

    def render(value: str | int | float | None) -> str:
        if isinstance(value, str):
            return text(value)
        if isinstance(value, bool):
            return f'{cell.opening} t="b"{_VALUE}{value:d}{_VALUE_END}'
        if isinstance(value, int):
            return f"{before}{value:d}{_VALUE_END}" if abs(value) <= EXACT else text(str(value))
        if value is None or not math.isfinite(value):
            return empty
        return f"{before}{_FLOAT % round(value, _DECIMALS)}{_VALUE_END}"

    return render
