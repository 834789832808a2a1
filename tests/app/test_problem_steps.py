"""``}`` and ``{`` go to the instructions that problems are about; what is told of them, and what of all others."""

from __future__ import annotations

import numpy as np
import pytest
from profiles import make_lane, make_profile, session_of
from screen import explorer, frame, opened, press

from tpuprof_tui.analysis.evidence.problem_rows import problem_rows, problem_text
from tpuprof_tui.model import Problem, Severity


def problem(severity: Severity, what: str, core: int, lane: str, rows: list[int] | None) -> Problem:
    return Problem(severity, what, "Left.", group=core, lane=lane, rows=None if rows is None else np.array(rows))


@pytest.fixture(scope="module")
def profile():
    starts = [np.arange(12) * 100 + core * 10 for core in (0, 1)]
    lanes = [make_lane("TIU", core, starts=start, ends=start + 50) for core, start in enumerate(starts)]
    return make_profile(
        lanes, problems=[
            problem(Severity.WARNING, "Odd ones.", 0, "TIU", [2, 3, 4, 9]),
            problem(Severity.ERROR, "Bad ones.", 1, "TIU", [2, 3]),
            problem(Severity.WARNING, "Bad too.", 1, "TIU", [3]),
            problem(Severity.ERROR, "The whole capture.", -1, "", None),
            problem(Severity.NOTE, "A lane.", 0, "TIU", None),
        ],
    )  # fmt: skip


def chosen(pilot) -> tuple[int, int]:
    selection = explorer(pilot).state.selection
    return selection.lane, selection.row


def test_runs_of_one_problem_are_one_place(profile):
    session = session_of(profile)
    found = problem_rows(session)
    assert found.numbers.tolist() == [2, 3, 4, 9, 14, 15]
    assert found.run.tolist() == [1, 1, 1, 2, 3, 3]
    assert [each.what for each in found.about(1, 3)] == ["Bad ones.", "Bad too."]
    assert found.about(1, 4) == found.about(0, 0) == []
    assert problem_text(session, 3) == "warning: Odd ones.  [3 instructions in a row on Core 0 TIU]"
    assert problem_text(session, 15).startswith("ERROR: Bad ones.  warning: Bad too.  [2 instructions")
    assert problem_rows(session) is found


async def test_in_the_timeline_they_are_gone_through_in_time(profile):
    async with opened(profile) as pilot:
        places = []
        for _ in range(3):
            await press(pilot, "right_curly_bracket")
            places.append(chosen(pilot))
        assert places == [(0, 2), (1, 2), (0, 9)]
        assert "3/3  warning: Odd ones.  [Core 0 TIU]" in frame(pilot.app)
        await press(pilot, "right_curly_bracket")
        assert chosen(pilot) == (0, 2)
        assert "1/3  warning: Odd ones." in frame(pilot.app)
        assert "2 more, about no single instruction" in frame(pilot.app)
        await press(pilot, "left_curly_bracket left_curly_bracket")
        assert chosen(pilot) == (1, 2)
        # the list is where one is
        await press(pilot, "4")
        pane = explorer(pilot).query_one("#problems")
        assert pane.problems[pane.cursor].what == "Bad ones."


async def test_backwards_the_first_step_is_the_last_place(profile):
    async with opened(profile) as pilot:
        await press(pilot, "left_curly_bracket")
        assert chosen(pilot) == (0, 9)


async def test_in_the_table_they_are_gone_through_in_its_order(profile):
    async with opened(profile) as pilot:
        await press(pilot, "2")
        screen = explorer(pilot)
        # the last starts first
        await press(pilot, "g I")
        await press(pilot, "g right_curly_bracket")
        assert chosen(pilot) == (0, 9)
        await press(pilot, "right_curly_bracket")
        assert chosen(pilot) == (0, 4)
        assert int(screen.table.rows.order[screen.table.rows.position]) == 4


async def test_only_what_passes_scope_and_filter_is_gone_to(profile):
    async with opened(profile) as pilot:
        await press(pilot, "j o right_curly_bracket right_curly_bracket")
        assert chosen(pilot) == (0, 9)
        await press(pilot, "escape escape")
        await press(pilot, "ampersand s t a r t > 8 0 0 enter right_curly_bracket")
        assert chosen(pilot) == (0, 9)
        # none passes: the list is gone through
        await press(pilot, "ampersand ctrl+u s t a r t > 1 1 0 0 enter right_curly_bracket")
        assert "/5 " in frame(pilot.app)


async def test_a_problem_of_the_list_leads_to_its_instructions(profile):
    async with opened(profile) as pilot:
        await press(pilot, "4 enter")
        assert chosen(pilot) == (1, 2)
        assert "Selected 1/2 on Core 1 TIU" in frame(pilot.app)
        await press(pilot, "enter")
        assert chosen(pilot) == (1, 3)
        await press(pilot, "enter j right_curly_bracket")
        assert chosen(pilot) == (0, 2)
        assert "3/5 warning: Odd ones." in frame(pilot.app)


async def test_the_detail_tells_the_problems_of_its_instruction(profile):
    async with opened(profile) as pilot:
        await press(pilot, "right_curly_bracket")
        assert "warning: Odd ones. Left." in frame(pilot.app)


async def test_problems_are_copied(profile):
    async with opened(profile) as pilot:
        await press(pilot, "4 j y")
        assert pilot.app.clipboard == "ERROR The whole capture. Left."
        await press(pilot, "Y")
        assert pilot.app.clipboard.count("\n") == 9
