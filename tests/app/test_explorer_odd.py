"""The explorer with odd profiles, sizes and names, and with the mouse."""

from __future__ import annotations

import pytest
from profiles import big_profile, make_lane, make_profile, small_profile
from screen import SMALL, WIDE, explorer, frame, opened, press, settled
from textual import events
from textual.geometry import Size

from tpuprof_tui.model import Problem, Severity, Strings


async def test_detail_tells_values_units_and_what_is_missing(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "j full_stop Z")
        screen.manager.maximise("detail")
        await settled(pilot)
        text = frame(pilot.app)
        lane, row = screen.state.selection.lane, screen.state.selection.row
        start, end = screen.session.span_of(lane, row)
        assert f"{end - start:,} ns" in text
        assert "uArch rate" in text
        assert "- needs mode 2: this capture is mode 1" in text
        assert text.count("needs mode 2") == 1


async def test_guessed_figures_carry_their_sign():
    async with opened(small_profile(0, event_count=300)) as pilot:
        text = frame(pilot.app)
        assert "busiest core 0 ~" in text
        lanes = [line for line in text.splitlines() if "TIU" in line]
        assert lanes
        assert all("~" in line for line in lanes)
        assert "Names of kernel functions and operations need mode 1." in text


async def test_resizing_to_nothing_and_back_loses_nothing(profile):
    async with opened(profile) as pilot:
        before = frame(pilot.app)
        for size in ((1, 1), (2, 40), (200, 1), (79, 23), (1, 200), (119, 29), WIDE):
            await pilot.resize_terminal(*size)
            await settled(pilot)
        assert frame(pilot.app) == before
        for size in ((1, 1), (200, 1), (1, 200), WIDE):
            await pilot.resize_terminal(*size)
            await press(pilot, "2 1 w j 3 question_mark escape colon escape 4 1")
        assert pilot.app.is_running


async def test_a_table_that_is_drawn_before_it_has_a_size_has_lines_without_text(profile, monkeypatch):
    async with opened(profile) as pilot:
        await press(pilot, "2")
        table = explorer(pilot).table
        with monkeypatch.context() as patched:
            patched.setattr(type(table), "size", Size(0, 0))
            assert [table.render_line(y).cell_length for y in range(4)] == [0] * 4


async def test_hostile_names_are_shown_harmless():
    lane = make_lane("TIU", 0, starts=[0, 50], ends=[50, 90], name=[0, 1], kernel=[0, 0], type=[0, 0])
    strings = {
        "name": Strings(["\x1b[31mred[/bold]", "注意力\u202e"]),
        "kernel": Strings(["[link=x]k\x07"]),
        "type": Strings(["mm"]),
    }
    problem = Problem(Severity.ERROR, "bad \x1b[2J[red]", file="\x1b]0;x\x07.profile")
    async with opened(make_profile([lane], strings=strings, problems=[problem])) as pilot:
        for keys in ("full_stop", "2", "3", "4", "question_mark"):
            await press(pilot, keys)
            text = frame(pilot.app)
            assert "\x1b" not in text
            assert "\x07" not in text
            assert "\u202e" not in text
        await press(pilot, "q 4")
        assert "bad \ufffd[2J[red]" in frame(pilot.app)


@pytest.mark.parametrize(
    ("kind", "words", "size"),
    [
        ("empty", ["This capture holds no instructions"], WIDE),
        ("one instruction", ["1 instruction", "5 ns"], WIDE),
        ("no length", ["1 instruction"], WIDE),
        ("only problems", ["no instructions", "problem"], WIDE),
        ("64 cores", ["busiest core"], WIDE),
        ("empty", [], SMALL),
        ("no length", [], SMALL),
    ],
)
async def test_odd_profiles_open(kind, words, size):
    odd = {
        "empty": lambda: make_profile([]),
        "one instruction": lambda: make_profile([make_lane("TIU", 0, starts=[7], ends=[12])]),
        "no length": lambda: make_profile([make_lane("TIU", 0, starts=[7], ends=[7])]),
        "only problems": lambda: make_profile([], cores=[0], problems=[Problem(Severity.ERROR, "Nothing is left.")]),
        "64 cores": lambda: big_profile(2000, cores=64),
    }[kind]()
    async with opened(odd, size) as pilot:
        text = frame(pilot.app)
        for word in words:
            assert word in text
        for keys in ("j full_stop w d", "2 G g s", "3 j", "4 j enter", "t j enter", "escape i f o e 0"):
            await press(pilot, keys)
        assert pilot.app.is_running


async def test_many_lanes_scroll_with_the_selection():
    async with opened(big_profile(2000, cores=64), (120, 30)) as pilot:
        screen = explorer(pilot)
        assert "more" in screen.timeline.legend_text()
        await press(pilot, "j pagedown pagedown pagedown")
        number = screen.timeline.lanes.selected_row(screen.state)
        assert screen.timeline.lanes.top <= number < screen.timeline.lanes.top + screen.timeline.lanes.lines
        assert screen.timeline.lanes.top > 0


async def test_the_mouse_selects_but_is_not_needed(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await pilot.click("#timeline", offset=(60, 3))
        await settled(pilot)
        assert screen.state.selection.lane == screen.timeline.lanes.rows[1].lane
        await press(pilot, "2 g")
        await pilot.click("#table", offset=(10, 5))
        await settled(pilot)
        assert screen.table.rows.position == 3


async def test_a_click_means_what_was_there_when_it_was_made(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        wanted = screen.timeline.lanes.rows[-1].lane
        place = screen.timeline.content_region.offset
        line = screen.timeline.lanes.line_of(len(screen.timeline.lanes.rows) - 1) + 1
        screen.timeline.on_click(
            events.Click(screen.timeline, 60, place.y - screen.timeline.region.y + line, 0, 0, 1, False, False, False)
        )
        # before it is answered the lanes are others, and fewer
        screen.timeline.lanes.rows = screen.timeline.lanes.rows[:1]
        await settled(pilot)
        assert screen.state.selection.lane == wanted


@pytest.mark.parametrize("pane", ["timeline", "detail", "tree"])
async def test_an_explorer_left_while_it_opens_may_miss_panes(pane):
    async with opened(small_profile(1, event_count=300)) as pilot:
        screen = explorer(pilot)
        await screen.query_one(f"#{pane}").remove()
        screen.on_mount()
        screen.on_resize(events.Resize(Size(80, 24), Size(80, 24)))
        assert pilot.app._exception is None
