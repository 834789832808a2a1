"""``/`` in details and problems looks through their lines; everywhere else through the instructions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from profiles import small_profile
from screen import explorer, frame, opened, press

from tpuprof_tui.model import Problem, Severity


@pytest.fixture(scope="module")
def profile():
    return small_profile(1, event_count=600)


def line_of(pane) -> str:
    """The first line under the cursor."""
    return pane.lines[pane.items.index(pane.cursor)].text


async def test_fields_of_the_detail_are_found_as_they_are_typed(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "j j full_stop")
        detail = screen.query_one("#detail")
        detail.focus()
        before = screen.state
        await press(pilot, "slash d u r a t")
        assert "Duration" in line_of(detail)
        assert "Search here: durat" in frame(pilot.app)
        await press(pilot, "x")
        assert "no line matches" in frame(pilot.app)
        await press(pilot, "escape")
        assert detail.cursor == 0
        await press(pilot, "slash c y c l e s enter")
        first = detail.cursor
        assert "ycles" in line_of(detail)
        await press(pilot, "n n n n n n n n")
        assert "ycles" in line_of(detail) or detail.cursor == first
        await press(pilot, "N")
        # nothing was searched for among the instructions
        assert screen.state == before


async def test_problems_are_searched_and_the_instructions_elsewhere():
    problems = [Problem(Severity.NOTE, f"Thing {number} is {'odd' if number % 7 == 3 else 'even'}.", group=0)
                for number in range(40)]  # fmt: skip
    profile = replace(small_profile(1, event_count=60), problems=tuple(problems))
    async with opened(profile, (80, 24)) as pilot:
        screen = explorer(pilot)
        pane = screen.query_one("#problems")
        await press(pilot, "4 slash o d d enter")
        cursors = [pane.cursor]
        for key in ("n", "n", "n", "n", "n", "n", "N", "slash enter"):
            await press(pilot, key)
            cursors.append(pane.cursor)
        assert cursors == [3, 10, 17, 24, 31, 38, 3, 38, 3]
        assert "/odd  1/6, from the start again" in frame(pilot.app)
        assert screen.state.search == ""
        await press(pilot, "1 n")
        assert "Nothing was searched for yet" in frame(pilot.app)
        await press(pilot, "1 slash t e n s o r enter")
        assert screen.state.search == "tensor"


async def test_the_line_under_the_cursor_is_put_in_the_middle(profile):
    async with opened(profile, (80, 24)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "j j full_stop i ctrl+d ctrl+d")
        detail = screen.query_one("#detail")
        height = detail.scrollable_content_region.height
        await press(pilot, "z")
        assert detail.items.index(detail.cursor) - detail.scroll_offset.y == height // 2
        await press(pilot, "g z")
        assert detail.scroll_offset.y == 0
