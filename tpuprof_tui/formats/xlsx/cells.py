"""Cells of a workbook one by one: texts made safe, the blocks above the rows, whole small sheets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from ..escape import sheet_xml, starts_formula
from .styles import Style, Styles

Value = str | int | float | None

#: Integers up to here are exact in a spreadsheet; longer ones are written as texts.
EXACT: Final = 2**53


class SharedStrings:
    """The distinct texts of one workbook; cells refer to them by number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, text: str) -> int:
        """Number of a text, new or known."""
        return self._numbers.setdefault(text, len(self._numbers))

    def xml(self) -> Iterable[str]:
        """The string part of the workbook, in pieces."""
        yield '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
        yield '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
        yield f' uniqueCount="{len(self._numbers)}">'
        for text in self._numbers:
            space = ' xml:space="preserve"' if text != text.strip() else ""
            yield f"<si><t{space}>{sheet_xml(text)}</t></si>"
        yield "</sst>"


class Grid:
    """Cells placed one by one; rows and columns count from 1."""

    def __init__(self) -> None:
        self._rows: dict[int, dict[int, tuple[Value, Style]]] = {}

    def put(self, row: int, column: int, value: Value, style: Style) -> None:
        """Places a cell; None is an empty one that has a look."""
        self._rows.setdefault(row, {})[column] = (value, style)

    def line(self, row: int, column: int, values: Iterable[Value], style: Style) -> None:
        """Places neighbouring cells."""
        for place, value in enumerate(values, column):
            self.put(row, place, value, style)

    @property
    def height(self) -> int:
        """Last row; 0 without any."""
        return max(self._rows, default=0)

    def widths(self, without: Iterable[tuple[int, int]] = ()) -> dict[int, int]:
        """Longest text of each column; cells (row, column) of ``without`` do not count."""
        skipped = set(without)
        longest: dict[int, int] = {}
        for row, cells in self._rows.items():
            for column, (value, style) in cells.items():
                if (row, column) not in skipped:
                    longest[column] = max(longest.get(column, 0), shown_length(value, style.form))
        return longest

    def xml(self, styles: Styles, strings: SharedStrings, outlined: Mapping[int, str] | None = None) -> str:
        """The rows; ``outlined`` gives further attributes of some."""
        pieces = []
        further = outlined or {}
        for row in sorted({*self._rows, *further}):
            cells = self._rows.get(row, {})
            pieces.append(f'<row r="{row}"{further.get(row, "")}>')
            pieces += [
                _cell(f"{column_letters(column)}{row}", *cells[column], styles, strings) for column in sorted(cells)
            ]
            pieces.append("</row>")
        return "".join(pieces)


def _cell(place: str, value: Value, style: Style, styles: Styles, strings: SharedStrings) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        value = None
    if isinstance(value, int) and abs(value) > EXACT:
        value = str(value)
    if isinstance(value, str):
        number = styles.number(text_style(style, value))
        return f'<c r="{place}" s="{number}" t="s"><v>{strings.number(value)}</v></c>'
    number = styles.number(style)
    return f'<c r="{place}" s="{number}"/>' if value is None else f'<c r="{place}" s="{number}"><v>{value!r}</v></c>'


def text_style(style: Style, text: str) -> Style:
    """The style of a cell that holds ``text``."""
    return Style(**{**style.__dict__, "quoted": True}) if starts_formula(text) else style


def shown_length(value: Value, form: str) -> int:
    """About how many characters a cell shows."""
    if value is None:
        return 0
    if isinstance(value, str):
        # Chinese and the like take two places
        return sum(2 if ord(character) > 0x2E7F else 1 for character in value)
    if "%" in form:
        return len(f"{value:.2%}")
    if form.startswith("#,##0"):
        return len(f"{value:,.0f}") + len(form) - 5
    return len(str(value))


def column_letters(number: int) -> str:
    """Letters of a column, counted from 1."""
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
