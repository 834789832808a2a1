"""Styles of workbook cells."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

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
    """Style of a cell.

    Attributes:
        fill: Background, RRGGBB; empty: none.
        colour: Text colour, RRGGBB.
        border: Whether it has a thin border.
        align: Horizontal alignment; empty: by type of value.
        form: Number format.
    """

    fill: str = ""
    font: str = _CJK
    size: int = 10
    bold: bool = True
    colour: str = "000000"
    border: bool = False
    align: str = ""
    form: str = "General"

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
