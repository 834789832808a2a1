"""What is drawn anew: exactly what the panes show, and what is veiled as Textual veils it."""

from __future__ import annotations

import pytest
from profiles import small_profile
from textual._context import visible_screen_stack
from textual.geometry import Region
from textual.screen import Screen

from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.overlays.help import HelpScreen
from tpuprof_tui.app.shell.application import TpuprofApp


def cells(strips):
    """Each cell of lines: character and style; runs may be divided otherwise."""
    return [
        [(char, style) for text, style, _ in strip for char in text] for strip in (each.simplify() for each in strips)
    ]


async def opened(pilot):
    while not isinstance(pilot.app.screen, ExplorerScreen):
        await pilot.pause(0.02)
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


@pytest.mark.parametrize("theme", ["dark", "light"])
async def test_what_is_below_an_overlay_is_veiled_as_textual_does(theme):
    app = TpuprofApp(profile=small_profile(1, instructions=300))
    async with app.run_test(size=(120, 32)) as pilot:
        await opened(pilot)
        if theme == "light":
            await pilot.press("T")
        await pilot.press("question_mark")
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, HelpScreen)
        region = Region(0, 0, 120, 32)
        drawn = screen.render_lines(region)
        screen.refresh()
        visible_screen_stack.set(app._background_screens)
        assert cells(drawn) == cells(Screen.render_lines(screen, region))


async def test_pieces_of_a_line_are_all_that_shows_of_each_pane():
    app = TpuprofApp(profile=small_profile(1, instructions=300))
    async with app.run_test(size=(120, 32)) as pilot:
        await opened(pilot)
        screen = app.screen
        for keys in ("", "t", "t full_stop", "Z", "Z question_mark", "escape ampersand"):
            for key in keys.split():
                await pilot.press(key)
            await pilot.pause()
            screen = app.screen
            whole = screen._compositor.render_strips()
            pieces = screen.lines_drawn.drawn([(y, 0, 120) for y in range(32)])
            lines = [sorted((x, strip) for at, x, strip in pieces if at == y) for y in range(32)]
            assert [[char for _, strip in line for char in cells([strip])[0]] for line in lines] == cells(whole), keys
            assert all(sum(strip.cell_length for _, strip in line) == 120 for line in lines)


async def test_a_moved_cursor_draws_the_panes_it_shows_in_alone():
    app = TpuprofApp(profile=small_profile(1, instructions=300))
    async with app.run_test(size=(120, 32)) as pilot:
        await opened(pilot)
        screen = app.screen
        place = screen.timeline.region
        pieces = screen.lines_drawn.drawn([(y, place.x + 20, place.x + 21) for y in place.line_range])
        assert {(y, x) for y, x, _ in pieces} == {(y, place.x) for y in place.line_range}
