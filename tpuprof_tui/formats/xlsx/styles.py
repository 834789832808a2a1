"""How workbook cells look: the styles that sheets ask for, and the part of the workbook that lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import quoteattr

BLOCK: Final = "548235"
VALUE: Final = "F2F2F2"
HEADER: Final = "305496"
KEY: Final = "FCE4D6"
WHITE: Final = "FFFFFF"

_LATIN: Final = "Calibri"
_CJK: Final = "等线"
_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
#: First id of number formats that are not built in.
_FIRST_FORMAT: Final = 164

COUNT: Final = "#,##0"
PERCENT: Final = "0.00%"


@dataclass(frozen=True)
class Style:
    """The look of a cell.

    Attributes:
        fill: Background, RRGGBB; empty: none.
        font: Font name.
        size: Font size.
        bold: Bold type.
        colour: Colour of the text, RRGGBB.
        border: Thin lines around the cell.
        align: Horizontal alignment; empty: by kind of value.
        wrap: Long texts are broken into lines.
        form: Number format.
        quoted: The text stays a text also when someone edits the cell, whatever it begins with.
    """

    fill: str = ""
    font: str = _CJK
    size: int = 10
    bold: bool = True
    colour: str = "000000"
    border: bool = False
    align: str = ""
    wrap: bool = False
    form: str = "General"
    quoted: bool = False


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


class Styles:
    """The styles of one workbook; cells refer to them by number."""

    def __init__(self) -> None:
        self._numbers: dict[Style, int] = {PLAIN: 0}

    def number(self, style: Style) -> int:
        """Number of a style, new or known."""
        return self._numbers.setdefault(style, len(self._numbers))

    def xml(self) -> str:
        """The style part of the workbook."""
        formats = _Table("numFmt", start=_FIRST_FORMAT)
        fonts, fills, borders = _Table("font"), _Table("fill"), _Table("border")
        for pattern in ("none", "gray125"):  # two that readers expect in this place
            fills.number(f'<fill><patternFill patternType="{pattern}"/></fill>')
        borders.number(_border(False))
        cells = [_cell(style, formats, fonts, fills, borders) for style in self._numbers]
        return (
            f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<styleSheet xmlns="{_MAIN}">'
            f"{formats.xml()}{fonts.xml()}{fills.xml()}{borders.xml()}"
            '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
            f'<cellXfs count="{len(cells)}">{"".join(cells)}</cellXfs>'
            '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
        )


class _Table:
    """Distinct elements, numbered in order of first use."""

    def __init__(self, name: str, start: int = 0) -> None:
        self._name = name
        self._start = start
        self._numbers: dict[str, int] = {}

    def number(self, element: str) -> int:
        return self._start + self._numbers.setdefault(element, len(self._numbers))

    def xml(self) -> str:
        if not self._numbers:
            return ""
        elements = "".join(self._numbers)
        if self._start:
            elements = "".join(
                f'<numFmt numFmtId="{self._start + place}" formatCode={quoteattr(code)}/>'
                for code, place in self._numbers.items()
            )
        return f'<{self._name}s count="{len(self._numbers)}">{elements}</{self._name}s>'


def _cell(style: Style, formats: _Table, fonts: _Table, fills: _Table, borders: _Table) -> str:
    bold = "<b/>" if style.bold else ""
    font = fonts.number(
        f'<font>{bold}<sz val="{style.size}"/><color rgb="FF{style.colour}"/><name val="{style.font}"/></font>'
    )
    fill = 0
    if style.fill:
        fill = fills.number(
            f'<fill><patternFill patternType="solid"><fgColor rgb="FF{style.fill}"/>'
            '<bgColor indexed="64"/></patternFill></fill>'
        )
    form = 0 if style.form == "General" else formats.number(style.form)
    wanted = [f'horizontal="{style.align}"'] if style.align else []
    wanted += ['vertical="top"'] if style.align or style.wrap else []
    wanted += ['wrapText="1"'] if style.wrap else []
    quoted = ' quotePrefix="1"' if style.quoted else ""
    alignment = f' applyAlignment="1"><alignment {" ".join(wanted)}/></xf>' if wanted else "/>"
    return (
        f'<xf numFmtId="{form}" fontId="{font}" fillId="{fill}" borderId="{borders.number(_border(style.border))}"'
        f' xfId="0"{quoted} applyNumberFormat="1" applyFont="1" applyFill="1" applyBorder="1"{alignment}'
    )


def _border(lines: bool) -> str:
    sides = ("left", "right", "top", "bottom")
    line = ' style="thin"><color auto="1"/></' if lines else ""
    drawn = "".join(f"<{side}{line}{side}>" if lines else f"<{side}/>" for side in sides)
    return f"<border>{drawn}<diagonal/></border>"
