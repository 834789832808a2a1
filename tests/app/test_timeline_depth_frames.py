"""The timeline's tools as whole frames of text; ``UPDATE_FRAMES=1`` writes them anew for review."""

from __future__ import annotations

import pytest
from profiles import small_profile
from rich.style import Style
from screen import AS_RECORDED, SIZES, SMALL, compared, explorer, frame, opened, press
from test_frames import filtered_segments

#: On a small screen cores show first.
VIEWS = {
    "timeline-measured": "g 4 0 0 0 enter r m a g 9 0 0 0 enter r m b g 6 us enter",
    "timeline-kernel-colours": "w w C L",
    "timeline-strips-pinned": "j j P w w B",
    "timeline-uarch": "w w w C C C L",
    "timeline-busy-strips": "w w B B j",
    "timeline-each-ns": "g 8 0 0 0 enter w w w w w w w w w w w w j",
}


@AS_RECORDED
@pytest.mark.parametrize("view", VIEWS)
async def test_the_timeline_is_as_recorded(view, size, ascii_only):
    keys = VIEWS[view] if size == "200x60" else f"e {VIEWS[view]}"
    async with opened(small_profile(2, event_count=600), SIZES[size], ascii_only=ascii_only) as pilot:
        await press(pilot, keys.replace(" us ", " u s "))
        await press(pilot, "Z")
        timeline = explorer(pilot).timeline
        # what the bottom line says passes; the timeline stays
        lines = frame(pilot.app).split("\n")[:-1]
        assert timeline.display
    compared(view, size, ascii_only, lines, width=SIZES[size][0])


async def test_ascii_and_no_color_hold_for_all_tools(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(small_profile(2, event_count=600), SMALL, ascii_only=True) as pilot:
        for keys in (
            "e L", "C", "C", "C", "B", "B", "j P", "m a", "r", "l l r", "full_stop left_square_bracket", "g 5",
        ):  # fmt: skip
            await press(pilot, keys)
            for segment in filtered_segments(pilot.app):
                style = segment.style or Style()
                assert segment.text.isascii()
                assert style.color is None or style.color.is_default
                assert style.bgcolor is None or style.bgcolor.is_default
