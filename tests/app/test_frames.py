"""Whole frames as text, compared with those beside this file; ``UPDATE_FRAMES=1`` writes them anew for review."""

from __future__ import annotations

import pytest
from profiles import small_profile
from rich.style import Style
from screen import AS_RECORDED, SIZES, SMALL, compared, frame, opened, press

from tpuprof_tui.app.settings.config import write_config
from tpuprof_tui.app.shell.application import TpuprofApp

#: Columns of the table: all there are would be other ones with each that is added.
COLUMNS = ["engine", "core", "order", "name", "start", "duration", "exposed", "kernel", "bytes", "ddr_bandwidth"]
#: Panes and what lies over them, with the keys that lead there; {tree} focuses the tree.
VIEWS = {
    "first": "", "zoomed": "w w w w j", "table": "2 j", "problems": "4", "summary": "3 Z", "core": "e j 3",
    "tree": "{tree} j j j enter", "tree-filter": "{tree} ampersand d m a", "jump": "ctrl+o",
    "help": "2 question_mark", "command": "colon c o",
}  # fmt: skip


@AS_RECORDED
@pytest.mark.parametrize("view", VIEWS)
async def test_frames_are_as_recorded(view, size, ascii_only):
    write_config({"columns": COLUMNS})
    keys = VIEWS[view].format(tree="t" if size != "200x60" else "shift+tab")
    async with opened(small_profile(1, event_count=600), SIZES[size], ascii_only=ascii_only) as pilot:
        await press(pilot, keys)
        text = frame(pilot.app)
    lines = text.split("\n")
    assert len(lines) == SIZES[size][1]
    compared(view, size, ascii_only, lines, width=SIZES[size][0])


def filtered_segments(app: TpuprofApp):
    """All segments of the screen as they go to the terminal."""
    from textual.color import Color

    for strip in app.screen._compositor.render_strips():
        segments = list(strip)
        for line_filter in app.get_line_filters():
            segments = line_filter.apply(segments, Color(0, 0, 0))
        yield from segments


async def test_no_color_sends_no_colour(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(small_profile(1, event_count=600), SMALL) as pilot:
        for keys in ("j full_stop", "2 j", "4", "question_mark", "q", "w w w w", "3", "t"):
            await press(pilot, keys)
            for segment in filtered_segments(pilot.app):
                style = segment.style or Style()
                assert style.color is None or style.color.is_default
                assert style.bgcolor is None or style.bgcolor.is_default


async def test_without_colour_the_focused_pane_and_the_selected_row_still_stand_out(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(small_profile(1, event_count=600)) as pilot:
        await press(pilot, "2 j")
        reversed_texts = [segment.text for segment in filtered_segments(pilot.app)
                          if segment.style is not None and segment.style.reverse]  # fmt: skip
        assert any("2 Table" in text for text in reversed_texts)
        assert any(("Core" not in text and "TIU" in text) or "GDMA" in text for text in reversed_texts)
