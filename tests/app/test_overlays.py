"""Overlays, when keys come faster than they open and close."""

from __future__ import annotations

import asyncio

import pytest
from driving import driven, ready, send_key
from exporting import sample
from profiles import small_profile
from rich.style import Style
from screen import explorer, frame, opened, press, settled
from textual import events
from textual.command import CommandList

from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.overlays.export import ExportMenu
from tpuprof_tui.app.overlays.overlay import HINT, JumpScreen, Overlay
from tpuprof_tui.app.panes.prompt import KeyBar
from tpuprof_tui.app.settings.actions import ACTIONS
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.app.shell.messages import ThreadFailed
from tpuprof_tui.app.terminal import ActionPalette
from tpuprof_tui.formats.escape import clean


async def test_an_overlay_closes_once():
    async with opened(small_profile(1, event_count=600)) as pilot:
        await press(pilot, "ctrl+o")
        overlay = pilot.app.screen
        assert isinstance(overlay, JumpScreen)
        overlay.dismiss("")
        overlay.dismiss("")
        await pilot.pause()
        assert explorer(pilot).is_active


async def test_the_palette_bears_page_keys_before_its_list_is_there():
    async with opened(small_profile(1, event_count=600)) as pilot:
        pilot.app.action_command_palette()
        palette = pilot.app.screen
        assert isinstance(palette, ActionPalette)
        palette._action_command_list("page_down")
        await pilot.pause()
        palette._action_command_list("page_down")
        palette.dismiss()
        palette.dismiss()
        await pilot.pause()
        assert explorer(pilot).is_active


async def test_the_palette_opens_again_while_it_still_closes():
    async with opened(small_profile(1, event_count=600)) as pilot:
        pilot.app.action_command_palette()
        await pilot.pause()
        first = pilot.app.screen
        first.dismiss()
        pilot.app.action_command_palette()
        assert first.is_attached
        assert isinstance(pilot.app.screen, ActionPalette)
        assert pilot.app.screen is not first
        await pilot.pause()
        assert pilot.app._exception is None


async def test_what_fails_in_a_thread_is_told_below_the_palette():
    async with opened(small_profile(1, event_count=600)) as pilot:
        pilot.app.action_command_palette()
        await pilot.pause()
        pilot.app.post_message(ThreadFailed(ValueError("a fault")))
        await pilot.pause()
        assert pilot.app._exception is None
        bars = [each.query_one(KeyBar) for each in pilot.app.screen_stack if isinstance(each, ExplorerScreen)]
        assert ["a fault" in bar.message for bar in bars] == [True]


async def test_the_palettes_countdown_may_end_when_its_list_is_gone(monkeypatch):
    monkeypatch.setattr(ActionPalette, "_NO_MATCHES_COUNTDOWN", 0.01)
    async with opened(small_profile(1, event_count=600)) as pilot:
        pilot.app.action_command_palette()
        await pilot.pause()
        palette = pilot.app.screen
        assert isinstance(palette, ActionPalette)
        palette._stop_no_matches_countdown()
        await palette.query("CommandList").remove()
        palette._start_no_matches_countdown("nothing is called so")
        await pilot.pause(0.05)
        assert pilot.app._exception is None


async def test_a_click_on_a_command_that_is_gone_is_passed_over():
    async with opened(small_profile(1, event_count=600)) as pilot:
        pilot.app.action_command_palette()
        await pilot.pause()
        options = pilot.app.screen.query_one(CommandList)
        style = Style.from_meta({"option": 999})
        options.post_message(
            events.Click(options, 5, 1, 0, 0, 1, False, False, False, screen_x=5, screen_y=1, style=style)
        )
        await pilot.pause()
        assert pilot.app._exception is None


@pytest.mark.parametrize("fault", ["", "At work."])
async def test_a_command_for_an_overlay_that_has_closed_does_nothing(tmp_path, monkeypatch, fault):
    if fault:
        monkeypatch.setattr(ExportMenu, "command", lambda *_: fault)
    async with sample(tmp_path, monkeypatch) as pilot:
        await press(pilot, "x")
        menu = pilot.app.screen
        assert menu.has_class("export")
        commands = {each.title: each.callback for each in pilot.app.get_system_commands(menu)}
        choose = commands[next(each.text for each in ACTIONS if each.id == "export.workbook")]
        pilot.app.pop_screen()
        await pilot.pause()
        await choose()
        await settled(pilot)
        assert pilot.app._exception is None
        assert not list(tmp_path.rglob("*.xlsx"))
        assert explorer(pilot).is_active


async def test_keys_all_at_once_open_and_close_what_they_should():
    app = TpuprofApp(profile=small_profile(1, event_count=600))

    async def script():
        await ready(app)
        for keys in ("colon pagedown escape", "ctrl+o 1 1 1", "x escape escape", "question_mark q j", "b b escape 2 j",
                     "colon m a r k escape colon escape", "R R", "slash m a t enter n n n escape"):  # fmt: skip
            for key in keys.split():
                send_key(app, key)
            await asyncio.sleep(0.2)
        await ready(app)
        assert isinstance(app.screen, ExplorerScreen)
        assert len(app.screen_stack) == 2

    assert await driven(app, (120, 32), script) == ""


async def test_no_scroll_bar_covers_the_end_of_a_line():
    async with opened(small_profile(1, event_count=600), (80, 24)) as pilot:
        await press(pilot, "2 c")
        overlay = pilot.app.screen
        assert isinstance(overlay, Overlay)
        assert overlay.pane.show_vertical_scrollbar
        assert max(line.cell_length for line in overlay.pane.lines) <= overlay.pane.scrollable_content_region.width


async def test_copied_lines_are_shown_whole():
    async with opened(small_profile(1, event_count=600), (60, 24)) as pilot:
        await press(pilot, "2 space j space y")
        overlay = pilot.app.screen
        assert isinstance(overlay, Overlay)
        shown = "".join(line.text for line in overlay.pane.lines)
        assert all(clean(line) in shown for line in pilot.app.clipboard.split("\n"))
        assert HINT in " ".join(line.text.strip() for line in overlay.pane.lines)


async def test_lines_that_are_too_long_end_with_an_ellipsis():
    async with opened(small_profile(1, event_count=600), (30, 12)) as pilot:
        await press(pilot, "t")
        seen = frame(pilot.app).splitlines()
        assert all(line.rstrip("▅▃▁▄▂▆▇ ").endswith("…") for line in seen[3:9])


async def test_the_copied_summary_looks_like_the_summary():
    async with opened(small_profile(1, event_count=600), (80, 24)) as pilot:
        await press(pilot, "3 Y")
        overlay = pilot.app.screen
        assert isinstance(overlay, Overlay)
        lines = pilot.app.clipboard.split("\n")
        assert [line.text for line in overlay.pane.lines[-len(lines) :]] == lines
        assert "│" not in frame(pilot.app)
