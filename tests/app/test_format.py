from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit, wrap


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("\x1b[2Jboo", "\ufffd[2Jboo"),
        ("a\u202eb", "a\\u202eb"),
        ("\u061c\u200f\u2067", "\\u061c\\u200f\\u2067"),
        ("lone\udc80", "lone\ufffd"),
        ("two\nlines\ttab", "two lines tab"),
        ("[bold]name[/]", "[bold]name[/]"),
        ("注意力", "注意力"),
        ("join\u200ded", "join\ufffded"),
        ("z" + "\u0301" * 9, "z\u0301\u0301"),
    ],
)
def test_names_cannot_steer_the_terminal(hostile, harmless):
    assert clean(hostile) == harmless


@given(st.text())
def test_cleaned_names_hold_nothing_a_terminal_acts_on(text):
    cleaned = clean(text)
    assert not {unicodedata.category(char) for char in cleaned} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    cleaned.encode("utf-8")


@given(st.text(), st.integers(0, 40), st.booleans())
def test_fitted_text_has_exactly_the_width_asked_for(text, width, right):
    assert cell_len(fit(clean(text), width, right=right)) == width


@given(st.text(alphabet="ab 注\u0301", max_size=60), st.integers(1, 20))
def test_wrapped_lines_are_no_wider_than_asked_for_and_lose_nothing(text, width):
    lines = wrap(clean(text), width)
    assert all(cell_len(line) <= width for line in lines)
    kept = "".join(lines).replace(" ", "")
    assert kept == "".join(clean(text).split()) or (width == 1 and "\u2026" in kept)


@pytest.mark.parametrize(
    "text", ["漢字N/x", "漢", "a 漢\u0301b", "\u0301漢", "\U0001f468\u200d\U0001f469 x", "\u2026\ufe0f"]
)
def test_what_is_wider_than_a_line_becomes_an_ellipsis(text):
    lines = wrap(text, 1)
    assert all(cell_len(line) <= 1 for line in lines)
    assert "\u2026" in lines or cell_len(text) < 2
    assert "".join(lines).count("x") == text.count("x")
