"""Rows of many cells as XML text, without a Python object per cell where one per distinct value will do.

Rows are made as those of any text file (`formats.rendering`), with a NUL wherever their number will stand.
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
from .styles import Style

#: Stands for the number of the row.
NUMBER: Final = "\0"
#: Rows that are made at a time.
BLOCK: Final = 4096
_TEXT, _TEXT_END = ' t="inlineStr"><is><t>', "</t></is></c>"
_VALUE, _VALUE_END = "><v>", "</v></c>"
#: A float with the digits that it surely has.
_FLOAT: Final = "%.15g"
_DECIMALS: Final = 4


class Source(Struct, frozen=True, eq=False):
    """One field of the instructions of a lane.

    Attributes:
        kind: ``int`` (int64, or uint64 for 64-bit registers), ``float``, ``percent`` (0 to 100) or ``text`` (codes).
        values: Its values for some rows; None where every row has ``absent``.
        absent: What is written where there is no value; None: nothing is.
        texts: Texts by code.
        filler: Whether it says nothing: the register text has it, sheets do not.
    """

    kind: Literal["int", "float", "percent", "text"]
    values: Callable[[Rows], npt.NDArray[Any]] | None = None
    absent: str | int | float | None = None
    texts: Sequence[str] = ()
    filler: bool = False


class SheetColumn(Struct, frozen=True):
    """One column of a sheet of rows.

    Attributes:
        name: Its header.
        kind: How its values are written; ``hex`` is a text.
        style: Look of its cells.
        filled: Whether empty cells have that look as well.
        empty: Whether no row can have a value.
    """

    name: str
    kind: Literal["int", "hex", "float", "percent", "text"]
    style: Style
    filled: bool
    empty: bool = False


class Cell(Struct, frozen=True):
    """How the cells of one column begin: letters of the column, numbers of its style, plain and quoted.

    What begins like a formula is quoted: it is none, and is none when it is edited.
    """

    letters: str
    plain: str
    quoted: str

    @property
    def opening(self) -> str:
        """What stands before a value that is not quoted."""
        return f'<c r="{self.letters}{NUMBER}" s="{self.plain}"'

    def text(self, text: str) -> str:
        """A cell with a text."""
        style = self.quoted if starts_formula(text) else self.plain
        space = ' xml:space="preserve"' if text != text.strip() else ""
        return (
            f'<c r="{self.letters}{NUMBER}" s="{style}" t="inlineStr"><is><t{space}>{sheet_xml(text)}{_TEXT_END}'
            if text
            else f"{self.opening}/>"
        )


def cell_field(column: SheetColumn, cell: Cell, source: Source | None) -> Field | str:
    """The cells of a column where its values are those of ``source``: a string where all rows have the same."""
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
    """Percentages as parts of the whole, rounded as their text with one decimal is."""
    return np.where(np.isfinite(percents), tenths(percents) / 1000, np.nan)


def table_rows(rows: Sequence[Sequence[str | int | float | None]], cells: Sequence[Cell]) -> Iterator[list[str]]:
    """The rows of a table, some at a time."""
    spellers = list(map(_speller, cells))
    for first in range(0, len(rows), BLOCK):
        columns = zip(*rows[first : first + BLOCK], strict=True)
        spelled = [list(map(spell, values)) for spell, values in zip(spellers, columns, strict=True)]
        yield list(map("".join, zip(*spelled, strict=True)))


def _speller(cell: Cell) -> Callable[[str | int | float | None], str]:
    """What gives a cell with a value of any kind; integers that a spreadsheet may not hold exactly are texts."""
    empty, before, text = f"{cell.opening}/>", cell.opening + _VALUE, cache(cell.text)

    def spell(value: str | int | float | None) -> str:
        if isinstance(value, str):
            return text(value)
        if isinstance(value, int):
            return f"{before}{value:d}{_VALUE_END}" if abs(value) <= EXACT else text(str(value))
        if value is None or not math.isfinite(value):
            return empty
        return f"{before}{_FLOAT % round(value, _DECIMALS)}{_VALUE_END}"

    return spell
