"""Keys and what they change, without a terminal."""

from __future__ import annotations

import pytest
from profiles import big_profile
from screen import SMALL, WIDE, explorer, frame, opened, press, settled, shown

from tpuprof_tui.analysis.selecting.state import Scope, SelectedItem
from tpuprof_tui.app.panes.detail import DetailPane
from tpuprof_tui.app.panes.tree import GroupTree


async def test_the_first_screen_answers_where_the_time_went(profile):
    for size in (WIDE, SMALL):
        async with opened(profile, size) as pilot:
            text = frame(pilot.app)
            wide = ("idlest core",) if size == WIDE else ()
            for word in ("total", "busiest core", *wide, "exposed", "Kernel functions", "rmsnorm_multi", "%"):
                assert word in text, f"{word} at {size}"


async def test_wide_screens_show_tree_timeline_and_summary(profile):
    async with opened(profile, (120, 30)) as pilot:
        assert shown(explorer(pilot)) == {"tree", "timeline", "summary"}
        assert explorer(pilot).focused.id == "timeline"


async def test_small_screens_show_cores_and_the_list(profile):
    async with opened(profile, SMALL) as pilot:
        screen = explorer(pilot)
        assert shown(screen) == {"timeline", "summary"}
        assert [row.label for row in screen.timeline.lanes.rows][:3] == ["Core 0", "Core 1", "Core 2"]


async def test_zoom_pan_and_fit(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        everything = screen.state.span
        await press(pilot, "w w w")
        assert screen.state.span == pytest.approx(everything / 8, abs=8)
        cursor = screen.state.cursor
        assert screen.state.start <= cursor < screen.state.end
        start = screen.state.start
        await press(pilot, "d")
        assert screen.state.start > start
        await press(pilot, "A")
        assert screen.state.start < start
        await press(pilot, "s")
        assert screen.state.span == pytest.approx(everything / 4, abs=8)
        await press(pilot, "0")
        assert screen.state.fits_all


async def test_zoom_ends_at_a_nanosecond_a_cell(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, " ".join("w" * 25))
        assert screen.state.span == screen.timeline.lanes.cells


async def test_keys_faster_than_the_screen_do_not_undo_one_another(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        for _ in range(5):
            screen.timeline.action_do("zoom-in")
        await settled(pilot)
        assert screen.state.span == pytest.approx((screen.state.full_end - screen.state.full_start) / 32, abs=8)


async def test_the_cursor_moves_a_cell_and_drags_the_window(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "w w w w home")
        assert screen.state.cursor == screen.state.start
        start = screen.state.start
        await press(pilot, "left")
        assert screen.state.start < start
        assert screen.state.cursor == screen.state.start
        await press(pilot, "end l")
        assert screen.state.cursor >= start


async def test_lanes_are_chosen_and_instructions_stepped_through(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "j j")
        assert screen.state.selection == SelectedItem(0, 1)
        await press(pilot, "full_stop")
        row = screen.state.selection.row
        assert row >= 0
        await press(pilot, "full_stop full_stop comma")
        assert screen.state.selection == SelectedItem(0, 1, row + 1)
        assert screen.state.cursor == screen.session.span_of(1, row + 1)[0]
        assert "Detail" in frame(pilot.app)


async def test_enter_selects_what_is_at_the_cursor(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "j full_stop escape enter")
        lane, row = screen.state.selection.lane, screen.state.selection.row
        start, end = screen.session.span_of(lane, row)
        assert start <= screen.state.cursor < end


async def test_selection_is_shared_by_all_panes(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 j j j")
        number = int(screen.table.rows.order[screen.table.rows.position])
        lane, row = screen.session.locate(number)
        assert screen.state.selection == SelectedItem(profile.unit_number(profile.lanes[lane]), lane, row)
        assert screen.query_one("#detail", DetailPane).selection == screen.state.selection
        assert screen.query_one("#tree", GroupTree).node.scope == Scope(profile.unit_number(profile.lanes[lane]), lane)
        await press(pilot, "1 full_stop")
        assert int(screen.table.rows.order[screen.table.rows.position]) == screen.session.number(lane, row + 1)


async def test_the_table_sorts_and_reverses(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 greater_than_sign s")
        assert screen.state.sort.key == "duration"
        assert screen.state.sort.down
        spans = [screen.session.span_of(*screen.session.locate(int(number))) for number in screen.table.rows.order]
        durations = [end - start for start, end in spans]
        assert durations == sorted(durations, reverse=True)
        await press(pilot, "s")
        assert not screen.state.sort.down
        await press(pilot, "I")
        assert screen.state.sort.down
        header = next(line for line in frame(pilot.app).splitlines() if "Duration ns" in line)
        assert "Duration ns ▼" in header


async def test_the_table_can_follow_the_window(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "w w w 2 v")
        window = (screen.state.start, screen.state.end)
        assert 0 < len(screen.table.rows.order) < profile.event_count
        for number in screen.table.rows.order.tolist():
            start, end = screen.session.span_of(*screen.session.locate(number))
            assert start < window[1]
            assert end > window[0]
        assert "in the window" in frame(pilot.app)


async def test_tables_move_by_pages_and_to_their_ends(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 G")
        assert screen.table.rows.position == profile.event_count - 1
        await press(pilot, "g pagedown")
        assert screen.table.rows.position == screen.table.page
        await press(pilot, "ctrl+d ctrl+u pageup")
        assert screen.table.rows.position == 0
        await press(pilot, "l l")
        assert screen.table.scroll_offset.x > 0
        await press(pilot, "h h h")
        assert screen.table.scroll_offset.x == 0


async def test_large_tables_are_sorted_in_a_thread():
    async with opened(big_profile(60_000, cores=2)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 greater_than_sign s")
        assert not screen.table.rows.is_sorting
        first = screen.session.span_of(*screen.session.locate(int(screen.table.rows.order[0])))
        assert first[1] - first[0] == max(int(lane["duration"].max()) for lane in screen.session.profile.lanes)


async def test_the_summary_follows_window_and_core(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        assert screen.summary.answers.answered_query.scope == Scope()
        await press(pilot, "w w")
        assert screen.summary.answers.answered_query.range == (screen.state.start, screen.state.end)
        await press(pilot, "j")
        assert screen.summary.answers.answered_query.scope == Scope()
        await press(pilot, "o")
        assert screen.summary.answers.answered_query.scope == Scope(0)
        assert "core 0, window of" in frame(pilot.app)
        # the window that a cursor scrolls to is looked at, not selected
        await press(pilot, " ".join("l" * 200))
        assert screen.summary.answers.answered_query.range == screen.state.viewed != (
            screen.state.start, screen.state.end,
        )  # fmt: skip
        await press(pilot, "0 escape")
        assert screen.summary.answers.answered_query.scope == Scope()
        assert screen.summary.answers.answered_query.range is None


async def test_one_core_can_be_isolated(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "j j o")
        assert screen.state.scope == Scope(0)
        assert {row.unit for row in screen.timeline.lanes.rows} <= {0, -1}
        await press(pilot, "2")
        cores = {screen.session.locate(int(number))[0] for number in screen.table.rows.order}
        assert all(profile.unit_number(profile.lanes[lane]) in (0, -1) for lane in cores)
        await press(pilot, "o")
        assert screen.state.scope == Scope()


async def test_the_tree_selects_and_narrows(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "shift+tab")
        assert screen.focused.id == "tree"
        await press(pilot, "j j")
        assert screen.state.selection == SelectedItem(0, 0)
        await press(pilot, "enter")
        assert screen.state.scope == Scope(0, 0)
        assert [row.lane for row in screen.timeline.lanes.rows] == [0]
        await press(pilot, "enter")
        assert screen.state.scope == Scope()


async def test_focus_brings_the_selection_into_view_then_fits_it(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 j j 1 w w w w w w D D D")
        await press(pilot, "f")
        start, end = screen.session.span_of(screen.state.selection.lane, screen.state.selection.row)
        assert screen.state.start <= start
        assert end <= screen.state.end
        await press(pilot, "f")
        assert screen.state.span == max((end - start) * 2, screen.timeline.lanes.cells)
        assert screen.state.start <= start < end <= screen.state.end


async def test_escape_goes_one_step_back_and_never_quits(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "j o full_stop")
        steps = []
        for _ in range(5):
            await press(pilot, "escape")
            steps.append((screen.state.selection.row, screen.state.scope, screen.state.selection))
        assert steps[0][0] == -1
        assert steps[1][1] == Scope()
        assert steps[2][2] == SelectedItem()
        assert pilot.app.is_running
        assert pilot.app.screen is screen


async def test_small_screens_maximise_and_restore(profile):
    async with opened(profile, SMALL) as pilot:
        screen = explorer(pilot)
        for key, pane in (("1", "timeline"), ("2", "table"), ("3", "summary"), ("4", "problems"), ("t", "tree")):
            await press(pilot, key)
            assert shown(screen) == {pane}
            assert screen.focused.id == pane
        await press(pilot, "backspace")
        assert shown(screen) == {"problems"}
        await press(pilot, "backspace")
        assert shown(screen) == {"timeline", "problems"}
        await press(pilot, "j e j full_stop i")
        assert shown(screen) == {"detail"}
        await press(pilot, "i")
        assert "timeline" in shown(screen)


async def test_panes_take_turns(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        seen = []
        for _ in range(3):
            await press(pilot, "tab")
            seen.append(screen.focused.id)
        assert seen == ["summary", "tree", "timeline"]
        await press(pilot, "t")
        assert "tree" not in shown(screen)
        await press(pilot, "Z")
        assert shown(screen) == {"timeline"}
        await press(pilot, "Z")
        assert shown(screen) == {"timeline", "summary"}


async def test_problems_are_listed_and_lead_to_their_core(profile):
    async with opened(profile) as pilot:
        await press(pilot, "4")
        text = frame(pilot.app)
        assert text.index("ERROR") < text.index("warning") < text.index("note ")
        assert "12 bytes of a node are missing. (x3)" in text
        assert "cdmlib_1.profile at byte 77" in text
        await press(pilot, "enter")
        selection = explorer(pilot).state.selection
        assert (selection.group, profile.lanes[selection.lane].label) == (1, "GDMA")


async def test_help_lists_the_focused_pane_first_and_closes(profile):
    async with opened(profile) as pilot:
        await press(pilot, "2 question_mark")
        assert pilot.app.screen.has_class("help")
        text = frame(pilot.app)
        assert "Sort by the chosen column" in text
        await press(pilot, "slash w a i t")
        assert "Sort by the chosen column" not in frame(pilot.app)
        assert "time without work, wait and sync" in frame(pilot.app)
        await press(pilot, "enter j escape")
        assert pilot.app.screen is explorer(pilot)
        await press(pilot, "question_mark slash q q escape")
        assert "Sort by the chosen column" in frame(pilot.app), "Esc shows all again"
        await press(pilot, "q")
        assert pilot.app.screen is explorer(pilot)
        await press(pilot, "f1 escape")
        assert explorer(pilot).focused.id == "table"


async def test_the_palette_finds_actions_by_name(profile):
    async with opened(profile) as pilot:
        await press(pilot, "ctrl+p")
        await pilot.press(*"zoom in")
        await pilot.pause(0.3)
        await press(pilot, "down enter")
        await pilot.pause(0.2)
        assert not explorer(pilot).state.fits_all


async def test_q_and_ctrl_c_quit(profile):
    for key in ("q", "ctrl+c", "ctrl+q"):
        async with opened(profile) as pilot:
            await pilot.press(key)
            await pilot.pause(0.1)
            assert not pilot.app.is_running
            assert pilot.app.return_value == 0
