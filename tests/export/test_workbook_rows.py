from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpuprof_tui.formats.xlsx.book import column_letters
from tpuprof_tui.formats.xlsx.digits import digits, hex_digits, rounded_rates
from tpuprof_tui.formats.xlsx.rows import RowWriter, SheetColumn, Values, values_of
from tpuprof_tui.formats.xlsx.styles import CELL, KEY_CELL
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.sources.sophgo.files.workbook.fields import Source

WHOLE = st.integers(0, 2**64 - 1) | st.integers(0, 99_999) | st.sampled_from([0, 9_999, 10_000, 99_999_999, 10**8])
TEXTS = ("arith", "=1+1", "", "a & b", "<c>")


def lines(matrix):
    return [bytes(line).replace(b"\0", b"").decode() for line in matrix]


@given(st.lists(WHOLE, min_size=1, max_size=30))
def test_digits_are_those_of_the_number(numbers):
    assert lines(digits(np.array(numbers, dtype=np.uint64))) == list(map(str, numbers))


@given(st.lists(WHOLE, min_size=1, max_size=30))
def test_hex_digits_are_those_of_the_number(numbers):
    assert lines(hex_digits(np.array(numbers, dtype=np.uint64))) == [f"{number:x}" for number in numbers]


@given(st.lists(st.floats(0, 2000) | st.sampled_from([6.25, 12.5, 0.35, 0.05, 99.95, 100.0]), min_size=1))
def test_rates_are_rounded_as_text_is(rates):
    assert rounded_rates(np.array(rates)).tolist() == [round(float(f"{rate:.1f}") * 10) for rate in rates]


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


def as_values(kind, absent, values):
    missing = np.array([value is None for value in values])
    numbers = [0 if value is None else value for value in values]
    array = np.array(numbers, dtype=np.float64 if kind in ("float", "percent") else np.int64)
    return Values(array, missing if missing.any() else None, absent, TEXTS if kind == "text" else ())


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


def writer_of(columns):
    """A writer whose column n has style n, and n + 100 for what begins like a formula."""
    letters = [column_letters(number).encode() for number in range(1, len(columns) + 1)]
    plain, quoted = ({each: b"%d" % (first + place) for place, each in enumerate(letters)} for first in (0, 100))
    return RowWriter(columns, plain, quoted)


@settings(max_examples=150)
@given(sheets())
def test_rows_hold_what_they_were_given(sheet):
    count, first, columns = sheet
    listed = [
        SheetColumn(f"column {place}", kind, KEY_CELL if filled else CELL, filled)
        for place, (kind, _, filled, _) in enumerate(columns)
    ]
    held = [as_values(kind, absent, values) for kind, absent, _, values in columns]
    xml = b"".join(writer_of(listed).xml(first, held, count))
    rows = ElementTree.fromstring(b"<sheet>" + xml + b"</sheet>")
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


def test_blocks_join_without_a_seam():
    writer = writer_of([SheetColumn("n", "int", CELL, False)])
    xml = b"".join(writer.xml(98, [Values(np.arange(11), None, None)], 11, at_once=4))
    cells = ElementTree.fromstring(b"<sheet>" + xml + b"</sheet>").iter("c")
    assert [(cell.get("r"), cell.findtext("v")) for cell in cells] == [(f"A{98 + n}", str(n)) for n in range(11)]


def source(kind, values, absent=None, texts=()):
    held = None if values is None else np.asarray(values)
    return Source(kind, None if held is None else lambda rows: held[rows], absent, texts)


def resolved(values, count):
    found = []
    for row in range(count):
        value = None if values.array is None else values.array[row].item()
        if value is None or (values.missing is not None and values.missing[row]):
            found.append(values.absent)
        else:
            found.append(values.texts[value] if values.texts and value >= 0 else value)
    return found


def test_sources_of_different_commands_are_merged():
    numbers = np.arange(6)
    first, second = np.array([0, 2, 4]), np.array([1, 3, 5])
    merged = values_of(
        [(source("int", np.arange(6) * 10, 99), first), (source("int", np.arange(6, dtype=np.uint64) + 2**60), second)],
        numbers, numbers,
    )  # fmt: skip
    assert resolved(merged, 6) == [0, 2**60 + 1, 20, 2**60 + 3, 40, 2**60 + 5]
    only = values_of([(None, first), (source("int", [1, INT_MISSING, 3, 4, 5, 6], 8), second)], numbers, numbers)
    assert resolved(only, 6) == [None, 8, None, 4, None, 6]


def test_texts_of_different_tables_are_merged():
    numbers = np.arange(4)
    first, second = np.array([0, 1]), np.array([2, 3])
    one = source("text", np.array([0, -1, 0, 0], np.int32), "nothing", ["A", "B"])
    other = source("text", np.array([0, 0, 1, -1], np.int32), None, ["C", "D"])
    assert resolved(values_of([(one, first), (other, second)], numbers, numbers), 4) == ["A", "nothing", "D", None]
    fixed = source("text", None, "-")
    assert resolved(values_of([(fixed, first), (other, second)], numbers, numbers), 4) == ["-", "-", "D", None]


@given(st.integers(1, 16_384))
def test_letters_count_in_columns(number):
    letters = column_letters(number)
    assert sum((ord(letter) - 64) * 26**place for place, letter in enumerate(reversed(letters))) == number


def test_floats_that_are_no_numbers_leave_no_cell():
    writer = writer_of([SheetColumn("n", "float", CELL, False)])
    values = values_of([(source("float", [math.nan, 1.25, math.inf]), None)], slice(0, 3), np.arange(3))
    cells = list(ElementTree.fromstring(b"<s>" + b"".join(writer.xml(1, [values], 3)) + b"</s>").iter("c"))
    assert [(cell.get("r"), cell.findtext("v")) for cell in cells] == [("A2", "1.25")]
