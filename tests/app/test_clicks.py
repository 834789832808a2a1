"""Tabs, keys of the footer and headers take clicks."""

from __future__ import annotations

from profiles import small_profile
from screen import explorer, frame, opened, settled


async def click_on(pilot, text):
    """Clicks on the first place where the screen says so."""
    lines = frame(pilot.app).splitlines()
    place = next((line.index(text), number) for number, line in enumerate(lines) if text in line)
    await pilot.click(offset=(place[0] + 1, place[1]))
    await settled(pilot)


async def test_tabs_and_footer_keys_are_clicked():
    async with opened(small_profile(2, event_count=300), (120, 40)) as pilot:
        screen = explorer(pilot)
        await click_on(pilot, "2 Table")
        assert (screen.manager.layout.tab, screen.focused.id) == ("table", "table")
        await click_on(pilot, "4 Problems")
        assert screen.manager.layout.tab == "problems"
        await click_on(pilot, "3 Summary")
        assert screen.manager.layout.tab == "summary"
        await click_on(pilot, "? Help")
        assert pilot.app.screen is not screen
