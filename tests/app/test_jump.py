"""Jump mode: a letter on each pane."""

from __future__ import annotations

import pytest
from profiles import small_profile
from screen import explorer, frame, opened, press

from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.overlays.overlay import JumpScreen


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize(("size", "letters"), [((80, 24), 2), ((160, 48), 3)])
async def test_every_pane_that_shows_has_a_letter_that_goes_there(size, letters, ascii_only):
    async with opened(small_profile(1, event_count=600), size, ascii_only=ascii_only) as pilot:
        await press(pilot, "ctrl+o")
        screen = pilot.app.screen
        assert isinstance(screen, JumpScreen)
        assert len(screen.targets) == letters
        places = list(screen.targets)
        text = frame(pilot.app)
        assert all(f"[ {letter} ]" in text for letter, _, _ in places)
        assert "Kernel functions" in text, "the panes are still seen"
        for letter, pane, region in places:
            await press(pilot, f"escape ctrl+o {letter}")
            assert explorer(pilot).focused.id == pane
            assert explorer(pilot).focused.region == region


@pytest.mark.parametrize("key", ["escape", "q", "z"])
async def test_other_keys_go_back(key):
    async with opened(small_profile(1, event_count=600)) as pilot:
        before = explorer(pilot).focused
        await press(pilot, f"ctrl+o {key}")
        assert isinstance(pilot.app.screen, ExplorerScreen)
        assert explorer(pilot).focused is before
