"""What filter, search, groups, columns and copies look like, as text; ``UPDATE_FRAMES=1`` writes them anew."""

from __future__ import annotations

import pytest
from profiles import small_profile
from screen import compared, frame, opened, press

SIZES = {"80x24": (80, 24), "160x48": (160, 48)}
#: Views that fill the screen at any size: nothing of other panes is in their frames.
OVERLAYS = {
    "groups": "b",
    "kernels": "b b",
    "frequencies": "2 greater_than_sign F",
    "columns": "2 c j space",
}
#: On a small screen the table fills it.
SMALL = {
    "filtered": "2 ampersand d u r greater_than_sign 3 0 0 enter",
    "fault": "2 ampersand d u r greater_than_sign",
    "searched": "2 j slash s e n",
    "nothing-passes": "2 ampersand x y z x y z enter",
    "picked": "2 space j space percent_sign",
    "copied": "2 c r escape space y",
}
CASES = [*((view, size) for view in OVERLAYS for size in SIZES), *((view, "80x24") for view in SMALL)]


@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
@pytest.mark.parametrize(("view", "size"), CASES)
async def test_frames_are_as_recorded(view, size, ascii_only):
    async with opened(small_profile(1, instructions=600), SIZES[size], ascii_only=ascii_only) as pilot:
        await press(pilot, {**OVERLAYS, **SMALL}[view])
        lines = frame(pilot.app).split("\n")
    assert len(lines) == SIZES[size][1]
    compared(view, size, ascii_only, lines, width=SIZES[size][0])
