from __future__ import annotations

import csv
import io
import json
from math import isfinite
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tpuprof_tui.formats.escape import (
    clean,
    csv_text,
    html_text,
    json_text,
    line_text,
    markdown_code,
    script_json,
    sheet_text,
    sheet_xml,
    starts_formula,
    utf8_text,
)

anything = st.text(st.characters(exclude_categories=()), max_size=30)


@given(anything)
@example("\ud800 lone")
@example("a\u2028b\x85c\x1b[31m")
def test_json_holds_any_text_on_one_line(text):
    written = json_text(text)
    written.encode("utf-8")
    assert json.loads(written) == text
    assert len(written.splitlines()) == 1
    assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in written)


def test_json_keeps_what_people_read():
    assert json_text("矩阵乘") == '"矩阵乘"'


@given(anything)
def test_csv_cells_are_one_cell(text):
    written = csv_text(text)
    written.encode("utf-8")
    cells = list(csv.reader(io.StringIO(f"a,{written},b\n", newline="")))
    assert len(cells) == 1
    assert len(cells[0]) == 3


#: Characters that turn the writing direction.
TURNS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
SIGNS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


@given(st.text(st.characters(exclude_categories=("Cc", "Cs"), exclude_characters=TURNS + ";|"), max_size=30))
def test_csv_gives_plain_texts_back(text):
    ((_, cell),) = csv.reader(io.StringIO(f"a,{csv_text(text)}\n", newline=""))
    assert cell in (text, f"'{text}")
    if cell != text:
        assert text.lstrip().startswith(SIGNS)
    elif text.lstrip().startswith(SIGNS):
        assert text == "-" or isfinite(float(text.rstrip("%")))


mixed = st.text(st.sampled_from([*"=+-@\uff1d;|\t\r\n,\"' a1", "\u202e"]), max_size=12)


@given(mixed)
@example("x;=1+1")
@example(" =1+1")
@example("a\n=1+1")
def test_no_dialect_finds_a_formula_in_a_cell(text):
    """Quotes in the middle of a line hold nothing together for who parts it elsewhere than at commas."""
    line = f"1,{csv_text(text)},2\n"
    for delimiter in ",;|\t":
        for row in csv.reader(io.StringIO(line, newline=""), delimiter=delimiter):
            for cell in row:
                number = cell.strip().removeprefix("-").rstrip("%")
                sound = cell in ("-", "") or number.replace(".", "", 1).isdigit()
                assert sound or not cell.lstrip().startswith(SIGNS), (delimiter, row)


@pytest.mark.parametrize("text", ["a;b", "a\tb", "a|b"])
def test_cells_are_quoted_for_who_parts_them_elsewhere(text):
    assert csv_text(text) == f'"{text}"'


@pytest.mark.parametrize("turn", TURNS)
def test_what_turns_the_writing_direction_is_told(turn):
    told = f"a\\u{ord(turn):04x}b"
    assert csv_text(f"a{turn}b") == line_text(f"a{turn}b") == told
    assert json_text(f"a{turn}b") == f'"{told}"'
    assert json.loads(json_text(f"a{turn}b")) == f"a{turn}b"


@pytest.mark.parametrize("text", ["-", "-5", "-0.25", "-1e9", "-1.5E-3", "-12.5%"])
def test_dashes_and_numbers_are_no_formulas(text):
    assert csv_text(text) == text


@pytest.mark.parametrize(
    "text",
    ["--", "-1+1", "-1\n", "-a", "-(1)", "+5", "+cmd|' /C calc'!A0", "-1e", "-.5.5", "- 5", "-٣", "=-5", "@5", "-5%%"],
)
def test_what_only_begins_like_a_number_is_one(text):
    ((cell,),) = csv.reader(io.StringIO(csv_text(text) + "\n", newline=""))
    assert cell == f"'{text}"


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\x00", "\x1b"])
def test_csv_texts_never_start_a_formula(first):
    ((cell,),) = csv.reader(io.StringIO(csv_text(f"{first}1+1") + "\n", newline=""))
    assert cell.startswith("'")


def test_csv_quotes():
    assert csv_text('a "b", c') == '"a ""b"", c"'
    assert csv_text("two\nlines") == '"two\nlines"'
    assert csv_text("plain") == "plain"
    assert csv_text("\x1b[2J") == "'\\x1b[2J"


@given(anything)
def test_lines_steer_nothing(text):
    written = line_text(text)
    written.encode("utf-8")
    assert len(written.splitlines()) <= 1
    assert "\x1b" not in written
    assert "\u202e" not in written


@given(anything)
@example("\ufffe\uffff")
def test_markup_holds_any_text_as_text(text):
    element = ElementTree.fromstring(f"<t a='{html_text(text)}'>{html_text(text)}</t>")
    # which XML cannot hold
    wanted = line_text(text).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
    assert (element.text or "", element.get("a")) == (wanted, wanted)


@given(anything)
def test_scripts_hold_any_text_and_no_element(text):
    written = script_json({"x": [text, 1, None]})
    assert not set(written) & set("<>&/")
    assert json.loads(written) == {"x": [text, 1, None]}


@given(anything)
def test_cells_of_sheets_are_xml(text):
    element = ElementTree.fromstring(f"<t>{sheet_xml(text)}</t>")
    assert (element.text or "") == sheet_text(text)
    assert len(sheet_text(text * 3000)) <= 32_767


@given(anything)
def test_utf8_holds_any_text_and_changes_none_that_it_can_hold(text):
    written = utf8_text(text)
    written.encode("utf-8")
    assert written == text or any(0xD800 <= ord(character) < 0xE000 for character in text)


@given(anything)
def test_the_screen_shows_any_text_on_one_line(text):
    shown = clean(text)
    assert len(f"{shown} ".splitlines()) == 1
    assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in shown)


def test_a_formula_is_one_wherever_it_is_written():
    for text in ("=1+1", "+x", "-x", "@x", "\uff1dx", " =1"):
        assert starts_formula(text)
        assert csv_text(text).startswith(("'", "\"'"))
    for text in ("-", "-5", "-1.5e3%", "x=1", ""):
        assert not starts_formula(text)
        assert csv_text(text) == text


@given(st.text(alphabet="`ab \n<", max_size=12))
def test_code_in_markdown_ends_at_its_own_fence(text):
    code, line = markdown_code(text), line_text(text)
    fence = code[: len(code) - len(code.lstrip("`"))] if line else code[:1]
    inner = code[len(fence) : len(code) - len(fence)]
    assert code == f"{fence}{inner}{fence}"
    assert inner.strip() == line.strip()
    assert fence not in inner
    assert not inner.startswith("`")
    assert not inner.endswith("`")
