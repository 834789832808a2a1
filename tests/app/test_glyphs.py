from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from tpuprof_tui.app.drawing.glyphs import ASCII, UNICODE, AsciiFilter, ascii_text, bar, wants_ascii
from tpuprof_tui.formats.escape import clean


@given(st.text(alphabet=st.characters(max_codepoint=sys.maxunicode)))
def test_ascii_text_is_ascii_and_as_wide_as_before(text):
    cleaned = clean(text)
    assert ascii_text(cleaned).isascii()
    assert cell_len(ascii_text(cleaned)) == cell_len(cleaned)


def test_every_glyph_is_one_cell_and_the_ascii_set_is_ascii():
    for glyphs in (UNICODE, ASCII):
        texts = [value for value in astuple(glyphs) if isinstance(value, str)]
        assert all(cell_len(char) == 1 for text in texts for char in text)
        assert len(glyphs.levels) == len(glyphs.steps) == 9
    assert all(value.isascii() for value in astuple(ASCII) if isinstance(value, str))


def test_work_wait_sync_and_nothing_differ_without_colour():
    for glyphs in (UNICODE, ASCII):
        assert len({*glyphs.levels, glyphs.wait, glyphs.sync}) == 11


def test_the_filter_keeps_styles_and_widths():
    style = Style(bold=True)
    segments = AsciiFilter().apply([Segment("│注▁ok", style)], Color(0, 0, 0))
    assert segments == [Segment("|??-ok", style)]


@given(st.floats(0, 1), st.integers(0, 60))
def test_bars_are_as_wide_as_asked_and_grow_with_the_share(share, width):
    for glyphs in (UNICODE, ASCII):
        text = bar(share, width, glyphs)
        assert len(text) == width
        assert text.count(glyphs.steps[8]) in (int(share * width), int(share * width) + 1, int(share * width) - 1)


def test_the_smallest_share_shows():
    assert bar(1e-9, 10, UNICODE).strip()
    assert bar(1e-9, 10, ASCII).strip()
    assert not bar(0.0, 10, UNICODE).strip()


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({"LANG": "en_US.UTF-8", "TERM": "xterm"}, False),
        ({"LANG": "zh_CN.utf8", "TERM": "xterm"}, False),
        ({"LANG": "C", "TERM": "xterm"}, True),
        ({"TERM": "xterm"}, True),
        ({"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}, True),
        ({"LC_ALL": "", "LC_CTYPE": "C.UTF-8", "LANG": "C"}, False),
        ({"LANG": "en_US.UTF-8", "TERM": "linux"}, True),
    ],
)
def test_the_locale_and_the_terminal_choose_the_glyphs(environment, wanted):
    assert wants_ascii(environment) is wanted


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_bars_never_show_more_of_less_and_always_something_of_anything(glyphs):
    bars = [bar(share / 1000, 10, glyphs) for share in range(1001)]
    filled = [sum(glyphs.steps.index(cell) for cell in text) for text in bars]
    assert {cell_len(text) for text in bars} == {10}
    assert filled == sorted(filled)
    assert filled[0] == 0 < filled[1]
    assert bars[0] == " " * 10
    assert bars[1000] == glyphs.steps[8] * 10
