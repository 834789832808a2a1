"""Steps on the screen: a lane of them above all others, and one of them chosen by command, click or group."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from profiles import make_lane, make_profile, session_of, small_profile
from rich.cells import cell_len
from screen import AS_RECORDED, SIZES, SMALL, compared, explorer, frame, opened, press

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope
from tpuprof_tui.analysis.selecting.time_scale import edges_of
from tpuprof_tui.analysis.steps.step_detection import steps_of
from tpuprof_tui.analysis.steps.step_figures import step_lane, step_span
from tpuprof_tui.app.drawing.glyphs import ASCII, UNICODE
from tpuprof_tui.app.drawing.painter import paint_steps
from tpuprof_tui.app.drawing.theme import DARK
from tpuprof_tui.app.panes.timeline.layout import rows_of
from tpuprof_tui.app.settings.config import write_config
from tpuprof_tui.formats.units import time_text
from tpuprof_tui.model import Profile
from tpuprof_tui.views.overview import overview

PALETTE = DARK


def stepped(batches: int = 3) -> Profile:
    """A profile of some batches: launches of each core one after the other."""
    profile = small_profile(1, event_count=600)
    launches = len(profile.scopes) // 2
    lanes = [lane.with_column("batch", lane["scope"] % launches * batches // launches) if "scope" in lane else lane
             for lane in profile.lanes]  # fmt: skip
    return make_profile(lanes, strings=profile.strings, cores=range(3), scopes=profile.scopes)


def painted(rows: list[tuple[int, int]], cells: int, span: int, *, chosen: int | None = None, glyphs=UNICODE):
    starts, ends = zip(*rows, strict=True)
    lane = make_lane("TIU", 0, starts=starts, ends=ends, batch=list(range(len(rows))))
    session = session_of(make_profile([lane]))
    return paint_steps(step_lane(session), "batch", chosen, edges_of(0, span, cells), PALETTE, glyphs)


# drawing


def test_each_wide_enough_says_its_name_or_number():
    bars = painted([(0, 100), (100, 140), (140, 150), (160, 200)], 20, 200)
    assert "".join(bars.chars) == "▏batch 0  ▏1  ▏ ▏3  "
    assert bars.utilisation == 0.95
    plain = painted([(0, 100), (110, 200)], 20, 200, glyphs=ASCII)
    assert "".join(plain.chars) == "[batch 0   [batch 1 "


def test_the_chosen_one_stands_out():
    bars = painted([(0, 100), (100, 200)], 20, 200, chosen=1)
    assert set(bars.styles[:10]) == {PALETTE.bar}
    assert set(bars.styles[10:]) == {PALETTE.chosen}


def test_many_in_a_cell_are_as_high_as_they_fill_it():
    bars = painted([(10 * place, 10 * place + 5) for place in range(200)], 20, 2000)
    assert set(bars.chars) == {"▄"}


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), min_size=1, max_size=30), st.integers(1, 60),
       st.booleans())  # fmt: skip
def test_a_line_is_as_wide_as_its_cells(rows, cells, ascii_only):
    bars = painted(sorted((start, start + length) for start, length in rows), cells, 400,
                   glyphs=ASCII if ascii_only else UNICODE)  # fmt: skip
    assert len(bars.chars) == len(bars.styles) == cells
    assert cell_len("".join(bars.chars)) == cells
    assert not ascii_only or "".join(bars.chars).isascii()


# lines


def test_the_line_of_steps_is_above_all_others():
    session = session_of(stepped())
    view = DisplayState.of(session.profile.start_ns, session.profile.end_ns)
    for state in (
        view,
        replace(view, line_unit="units"),
        replace(view, pinned=((2, 0),)),
    ):
        first, *rest = rows_of(session, state)
        assert (first.kind, first.label, first.can_be_selected) == ("steps", "Batches", False)
        assert all(row.kind != "steps" for row in rest)
    core = replace(view, scope=Scope(session.profile.units[1]))
    assert rows_of(session, core)[0].kind == "steps"
    lane = replace(view, scope=Scope(lane=0))
    assert rows_of(session, lane)[0].kind == ""


def test_one_step_makes_no_line():
    session = session_of(small_profile(1))
    assert len(steps_of(session)) == 1
    assert rows_of(session, DisplayState.of(0, 1000))[0].kind != "steps"


def test_the_span_of_a_step():
    session = session_of(stepped())
    steps = steps_of(session).steps
    assert step_span(session, 1) == (int(steps.start[1]), int(steps.end[1]))
    assert step_span(session, 3) is None


# keys, commands and clicks


async def command(pilot, text: str) -> None:
    await press(pilot, "colon " + " ".join({" ": "space"}.get(letter, letter) for letter in text) + " enter")


async def test_a_step_is_chosen_and_left(tmp_path):
    async with opened(stepped()) as pilot:
        screen = explorer(pilot)
        whole = screen.state
        await command(pilot, "step 1")
        session = screen.session
        start, end = step_span(session, 1)
        assert screen.state.filter == "step=1"
        assert (screen.state.start, screen.state.end) == (start, end)
        first = frame(pilot.app).splitlines()[0]
        assert "batch 1 " in first
        # the figures of the first line are the step's too
        told = {fact.key: fact for fact in overview(Query(session, step=1)).facts}
        assert f"total {time_text(told['total_us'].value)}" in first
        assert f"{100 * told['busiest_us'].share:.1f}%" in first
        # the table holds what belongs to it
        await press(pilot, "2")
        lanes = np.searchsorted(session.offsets, screen.table.rows.order, side="right") - 1
        assert len(screen.table.rows.order) == sum(int((lane["step"] == 1).sum()) for lane in session.profile.lanes)
        assert set(lanes.tolist()) <= set(range(len(session.profile.lanes)))
        # another one takes its place, other conditions stay
        await press(pilot, "1")
        await command(pilot, "filter dur>5 step=1")
        await command(pilot, "step 2")
        assert screen.state.filter == "step=2 dur>5"
        await command(pilot, "step")
        assert screen.state.filter == "dur>5"
        assert "alone" not in frame(pilot.app).splitlines()[0]
        await press(pilot, "escape 0")
        assert (screen.state.filter, screen.state.span) == ("", whole.span)


async def test_a_step_that_is_not_there_is_told():
    async with opened(stepped()) as pilot:
        await command(pilot, "step 7")
        assert "batches are 0 to 2" in frame(pilot.app)
        assert explorer(pilot).state.filter == ""
    async with opened(small_profile(0)) as pilot:
        await command(pilot, "step 0")
        assert "there are no batches here" in frame(pilot.app)


async def test_lanes_are_walked_and_the_line_of_steps_is_not():
    async with opened(stepped()) as pilot:
        screen = explorer(pilot)
        timeline = screen.timeline
        assert timeline.lanes.rows[0].kind == "steps"
        assert timeline.lanes.selected_row(screen.state) == -1
        await press(pilot, "j")
        first = timeline.lanes.selected_row(screen.state)
        assert first > 0
        await press(pilot, "k k k")
        assert timeline.lanes.selected_row(screen.state) == 1
        await press(pilot, "G k")
        assert timeline.lanes.selected_row(screen.state) > 0


async def test_a_click_on_the_line_chooses_a_step():
    async with opened(stepped()) as pilot:
        timeline = explorer(pilot).timeline
        # a cell in the middle of the second one; the border and the ruler are above
        start, end = step_span(explorer(pilot).session, 1)
        cell = timeline.lanes.label_width + timeline.lanes.cell_of((start + end) // 2)
        await pilot.click("#timeline", offset=(cell + 1, 2))
        await press(pilot, "")
        assert explorer(pilot).state.filter == "step=1"


async def test_groups_by_step_lead_to_one():
    async with opened(stepped()) as pilot:
        screen = explorer(pilot)
        await command(pilot, "group step")
        groups = pilot.app.screen.pane
        assert groups.keys == ("step",)
        assert list(groups.table.labels) == ["0", "1", "2"]
        wanted = groups.table.labels[int(groups.order[groups.cursor])]
        await press(pilot, "enter")
        assert explorer(pilot) is screen
        assert "batch " + wanted + " " in frame(pilot.app).splitlines()[0]


# frames


@AS_RECORDED
@pytest.mark.parametrize("name", ["steps", "step-chosen"])
async def test_steps_as_recorded(name, size, ascii_only):
    write_config({"columns": ["engine", "core", "order", "name", "start", "duration", "step"]})
    async with opened(stepped(), SIZES[size], ascii_only=ascii_only) as pilot:
        if name == "step-chosen":
            await command(pilot, "step 1")
        lines = frame(pilot.app).split("\n")
    compared(name, size, ascii_only, lines, width=SIZES[size][0])


async def test_a_small_screen_has_the_line_too():
    async with opened(stepped(), SMALL) as pilot:
        assert explorer(pilot).timeline.lanes.rows[0].kind == "steps"
        assert "Batches" in frame(pilot.app)
