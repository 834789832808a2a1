from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpuprof_tui.formats.rendering import rendered_rows, tenths
from tpuprof_tui.formats.xlsx.book import column_letters
from tpuprof_tui.formats.xlsx.rows import CELL, KEY_CELL, NUMBER, Cell, SheetColumn, Source, cell_field
from tpuprof_tui.model import INT_MISSING

TEXTS = ("arith", "=1+1", "", "a & b", "<c>")


@given(st.lists(st.floats(0, 2000) | st.sampled_from([6.25, 12.5, 0.35, 0.05, 99.95, 100.0]), min_size=1))
def test_rates_are_rounded_as_text_is(rates):
    assert tenths(np.array(rates)).tolist() == [round(float(f"{rate:.1f}") * 10) for rate in rates]


INTS = st.none() | st.integers(-(2**62), 2**62) | st.integers(0, 300)
UNSIGNED = st.none() | st.integers(0, 2**63 - 1) | st.integers(0, 70_000)
FLOATS = st.none() | st.floats(0, 1e6) | st.floats(-1e20, 1e20) | st.sampled_from([0.0, 1.5, 0.0001, 0.00004])
RATES = st.none() | st.floats(0, 100)
CODES = st.none() | st.integers(0, len(TEXTS) - 1)
KINDS = {"int": INTS, "hex": UNSIGNED, "float": FLOATS, "percent": RATES, "text": CODES}
ABSENT = {"int": (None, 7), "hex": (None, 255), "float": (None, 0), "percent": (None, "0.0%"), "text": (None, "-")}


@st.composite
def sheets(draw):
    count = draw(st.integers(1, 9))
    columns = []
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(sorted(KINDS)))
        values = draw(st.lists(KINDS[kind], min_size=count, max_size=count))
        columns.append((kind, draw(st.sampled_from(ABSENT[kind])), draw(st.booleans()), values))
    return count, draw(st.integers(1, 1_048_000)), columns


def source(kind, absent, values):
    kind = "int" if kind == "hex" else kind
    lost = {"int": INT_MISSING, "float": math.nan, "percent": math.nan, "text": -1}[kind]
    types = {"int": np.int64, "text": np.int32}
    array = np.array([lost if value is None else value for value in values], types.get(kind, np.float64))
    return Source(kind, lambda rows: array[rows], absent, TEXTS if kind == "text" else ())


def plain(kind, absent, value):
    """What a cell should hold; None: nothing."""
    value = absent if value is None else value
    if value is None:
        return None
    if kind == "text":
        text = TEXTS[value] if isinstance(value, int) else value
        return text or None
    if kind == "hex":
        return hex(value)
    if kind == "percent":
        return round(float(f"{float(str(value).rstrip('%')):.1f}") / 100, 4)
    if kind == "int" and abs(value) > 2**53:
        return str(value)
    return round(value, 4)


def cell_value(cell):
    if cell.get("t") == "inlineStr":
        return cell.findtext("is/t")
    value = cell.findtext("v")
    return None if value is None else float(value)


def rows_xml(columns, sources, count, first=1):
    """The rows where column n has style n, and n + 100 for what begins like a formula."""
    cells = [Cell(column_letters(n + 1), str(n), str(n + 100)) for n in range(len(columns))]
    fields = [cell_field(*each) for each in zip(columns, cells, sources, strict=True)]
    rows = rendered_rows("", fields, "", slice(0, count), count)
    return "".join(f'<row r="{n}">{row.replace(NUMBER, str(n))}</row>' for n, row in enumerate(rows, first))


@settings(max_examples=150)
@given(sheets())
def test_rows_hold_what_they_were_given(sheet):
    count, first, columns = sheet
    listed = [
        SheetColumn(f"column {place}", kind, KEY_CELL if filled else CELL, filled)
        for place, (kind, _, filled, _) in enumerate(columns)
    ]
    sources = [source(kind, absent, values) for kind, absent, _, values in columns]
    rows = ElementTree.fromstring(f"<sheet>{rows_xml(listed, sources, count, first)}</sheet>")
    assert [row.get("r") for row in rows] == [str(number) for number in range(first, first + count)]
    for place, row in enumerate(rows):
        cells = {cell.get("r"): cell for cell in row}
        assert list(cells) == [
            f"{column_letters(number)}{first + place}"
            for number in range(1, len(columns) + 1)
            if f"{column_letters(number)}{first + place}" in cells
        ]
        for number, (kind, absent, filled, values) in enumerate(columns, 1):
            cell = cells.get(f"{column_letters(number)}{first + place}")
            wanted = plain(kind, absent, values[place])
            if cell is None:
                assert wanted is None
                assert not filled
                continue
            held = cell_value(cell)
            assert held == pytest.approx(wanted) if isinstance(wanted, float) else held == wanted
            quoted = isinstance(wanted, str) and wanted.startswith("=")
            assert cell.get("s") == str(number - 1 + 100 * quoted)


@given(st.integers(1, 16_384))
def test_letters_count_in_columns(number):
    letters = column_letters(number)
    assert sum((ord(letter) - 64) * 26**place for place, letter in enumerate(reversed(letters))) == number


def test_floats_that_are_no_numbers_leave_no_cell():
    values = source("float", None, [math.nan, 1.25, math.inf])
    xml = rows_xml([SheetColumn("n", "float", CELL, False)], [values], 3)
    cells = list(ElementTree.fromstring(f"<s>{xml}</s>").iter("c"))
    assert [(cell.get("r"), cell.findtext("v")) for cell in cells] == [("A2", "1.25")]
