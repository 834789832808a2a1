"""What filter, search, groups, columns and copies look like, as text; ``UPDATE_FRAMES=1`` writes them anew."""

from __future__ import annotations

import pytest
from profiles import small_profile
from screen import AS_RECORDED, SIZES, compared, frame, opened, press
from test_frames import COLUMNS

from tpuprof_tui.app.settings.config import write_config

#: Views that fill the screen at any size: nothing of other panes is in their frames.
OVERLAYS = {
    "groups": "b",
    "kernels": "b b",
    "frequencies": "2 greater_than_sign F",
    "columns": "2 c j space",
}
#: States of the table, with the same columns at all times.
STATES = {
    "filtered": "2 ampersand d u r greater_than_sign 3 0 0 enter",
    "fault": "2 ampersand d u r greater_than_sign",
    "searched": "2 j slash s e n",
    "nothing-passes": "2 ampersand x y z x y z enter",
    "picked": "2 space j space percent_sign",
    "copied": "2 c r escape space y",
}


@AS_RECORDED
@pytest.mark.parametrize("view", [*OVERLAYS, *STATES])
async def test_frames_are_as_recorded(view, size, ascii_only):
    if view in STATES:
        write_config({"columns": COLUMNS})
    async with opened(small_profile(1, event_count=600), SIZES[size], ascii_only=ascii_only) as pilot:
        keys = {**OVERLAYS, **STATES}[view]
        # where several panes show, the table alone is looked at
        await press(pilot, keys.replace("2 ", "2 Z ", 1) if view in STATES and size == "200x60" else keys)
        lines = frame(pilot.app).split("\n")
    assert len(lines) == SIZES[size][1]
    compared(view, size, ascii_only, lines, width=SIZES[size][0])
