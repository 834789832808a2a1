"""Ways back: Esc leads to where one was, one core shows its engines, and long messages are told to their end."""

from __future__ import annotations

import pytest
from profiles import make_lane, make_profile
from screen import SMALL, WIDE, explorer, frame, opened, press, settled, shown

from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.app.panes.prompt import LongMessage
from tpuprof_tui.model import Problem, Severity


@pytest.mark.parametrize("close", ["escape", "i", "Z"])
async def test_a_row_s_detail_leads_back_to_the_row(profile, close):
    async with opened(profile, SMALL) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 j j j enter")
        assert shown(screen) == {"detail"}
        await press(pilot, close)
        assert shown(screen) == {"table"}
        assert screen.focused.id == "table"
        assert screen.table.rows.position == 3
        await press(pilot, "j enter")
        assert (shown(screen), screen.table.rows.position) == ({"detail"}, 4)


@pytest.mark.parametrize(
    ("keys", "panes"),
    [
        # tree and detail one after the other: where the first was opened
        ("j full_stop 3 t i", {"summary"}),
        # two panes: the one with the keys has them again
        ("tab j j i", {"timeline", "summary"}),
    ],
)
async def test_a_detail_leads_back_to_the_panes_it_was_opened_from(profile, keys, panes):
    async with opened(profile, SMALL) as pilot:
        screen = explorer(pilot)
        await press(pilot, keys)
        assert shown(screen) == {"detail"}
        await press(pilot, "escape")
        assert shown(screen) == panes
        assert screen.focused.id == "summary"


async def test_what_esc_is_said_to_clear_goes_before_the_pane(profile):
    async with opened(profile, SMALL) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 ampersand x y z enter")
        assert "Esc clears it" in frame(pilot.app)
        await press(pilot, "escape")
        assert screen.state.filter == ""
        assert shown(screen) == {"table"}
        await press(pilot, "escape")
        assert shown(screen) == {"timeline", "table"}
        await press(pilot, "1 j full_stop r")
        assert "Esc clears it" in frame(pilot.app)
        await press(pilot, "escape")
        assert screen.state.range is None
        assert shown(screen) == {"timeline"}


async def test_one_core_shows_its_engines_and_all_cores_what_they_did(profile):
    async with opened(profile, WIDE) as pilot:
        screen = explorer(pilot)
        await press(pilot, "e j j o")
        assert screen.state.scope == Scope(1)
        assert {screen.session.profile.lanes[row.lane].kind for row in screen.timeline.lanes.rows if not row.kind} >= {
            "TIU",
            "GDMA",
        }
        await press(pilot, "e")
        assert [row.label for row in screen.timeline.lanes.rows] == ["Core 1"]
        await press(pilot, "o")
        assert screen.state.line_unit == "units"
        await press(pilot, "e o escape")
        assert screen.state.line_unit == "lanes"


async def test_a_long_message_is_told_to_its_end_and_moves_nothing():
    what = "Something that takes many words to tell has happened to the records of this engine and to others. " * 2
    problem = Problem(Severity.ERROR, what.strip(), file="cdmlib0_1.profile", offset=1234, group=0)
    lanes = [make_lane("TIU", 0, starts=[0, 10], ends=[5, 20])]
    async with opened(make_profile(lanes, problems=[problem]), SMALL) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2")
        above, size = screen.query_one(LongMessage), screen.table.size
        assert not above.display
        await press(pilot, "right_curly_bracket")
        told = " ".join(frame(pilot.app).split("\n")[-4:])
        assert " ".join(told.split()).endswith(f"1/1 ERROR: {what.strip()} [cdmlib0_1.profile at byte 1,234, core 0]")
        assert screen.table.size == size
        screen.prompt._silence()
        await settled(pilot)
        assert not above.display
        # what is asked takes the place of what was said
        await press(pilot, "right_curly_bracket slash")
        assert not above.display
        await press(pilot, "escape")
        assert "cdmlib0_1.profile" not in frame(pilot.app)
        # the fault of a filter, and only as long as it is one
        await press(pilot, "ampersand d u r greater_than_sign 1 z s")
        assert not above.display
        assert "Units: ns, us, ms, s." in frame(pilot.app)
        await press(pilot, " ".join("x" * 40))
        assert above.display
        assert "Units: ns, us, ms, s." in " ".join("".join(frame(pilot.app).split("\n")[-3:-1]).split())
        await press(pilot, "escape")
        assert not above.display


async def test_a_problem_told_elsewhere_is_in_view_in_the_list():
    problems = [Problem(Severity.NOTE, f"Problem {number} of a long list.", group=0) for number in range(60)]
    lanes = [make_lane("TIU", 0, starts=[0], ends=[5])]
    async with opened(make_profile(lanes, problems=problems), SMALL) as pilot:
        await press(pilot, "left_curly_bracket left_curly_bracket left_curly_bracket")
        assert "59/60 note: Problem 58" in frame(pilot.app)
        await press(pilot, "4")
        explorer(pilot).prompt._silence()
        await settled(pilot)
        assert "Problem 58 of a long list." in frame(pilot.app)
        # also once the list has been built, and hidden again
        await press(pilot, "1 right_curly_bracket right_curly_bracket 4")
        explorer(pilot).prompt._silence()
        await settled(pilot)
        assert "Problem 0 of a long list." in frame(pilot.app)


async def test_the_tree_says_what_its_figures_are_of(profile):
    for size, keys in ((WIDE, "w w"), (SMALL, "w w t")):
        async with opened(profile, size) as pilot:
            await press(pilot, keys)
            assert "util, busy, count of whole capture" in frame(pilot.app)


async def test_only_the_selected_row_looks_selected(profile):
    async with opened(profile, SMALL) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 j j j k")
        drawn = screen._compositor.render_strips()[4:20]
        bold = [any(part.style is not None and part.style.bold for part in strip) for strip in drawn]
        assert [number for number, is_bold in enumerate(bold) if is_bold] == [screen.table.rows.position] == [2]


async def test_where_no_work_shows_the_summary_says_what_to_do(profile):
    async with opened(profile, SMALL) as pilot:
        await press(pilot, "3 ampersand z z enter")
        assert "No instruction starts here: & changes the filter." in frame(pilot.app)
        assert "names need" not in frame(pilot.app)
        await press(pilot, "b")
        assert "Nothing to group: no work here, w counts waits too; Esc closes" in frame(pilot.app)
        await press(pilot, "w")
        assert "Nothing to group: no instruction here; Esc closes" in frame(pilot.app)
        await press(pilot, "escape escape")
        assert "starts here" not in frame(pilot.app)


async def test_a_window_without_work_says_so():
    lanes = [make_lane("TIU", 0, starts=[0, 900], ends=[100, 1000])]
    async with opened(make_profile(lanes), SMALL) as pilot:
        screen = explorer(pilot)
        screen.store.change(screen.state.windowed(400, 100))
        await settled(pilot)
        assert "No instruction starts here: 0 in the timeline shows the whole capture." in frame(pilot.app)
        await press(pilot, "0")
        assert "starts here" not in frame(pilot.app)
