"""What a filter hides in the timeline: dimmed or dotted, stepped over, and what passes drawn as it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import big_profile, make_lane, make_profile, session_of, small_profile
from rich.cells import cell_len
from screen import AS_RECORDED, SIZES, compared, explorer, frame, opened, press, settled

from tpuprof_tui.analysis.index.lane_index import build_index
from tpuprof_tui.analysis.links.launches import launches, launches_with, span_of
from tpuprof_tui.analysis.selecting.filter_masks import apply_filter
from tpuprof_tui.analysis.selecting.moves import step_event
from tpuprof_tui.analysis.selecting.state import DisplayState, SelectedItem
from tpuprof_tui.analysis.selecting.time_scale import edges_of
from tpuprof_tui.app.drawing.colouring import has_colour_sums
from tpuprof_tui.app.drawing.glyphs import ASCII, UNICODE
from tpuprof_tui.app.drawing.painter import paint_lane, paint_passing
from tpuprof_tui.app.drawing.theme import DARK, PLAIN
from tpuprof_tui.model import Role, Scopes, Strings

NAMES = {"name": Strings(["mm2", "load"])}


@pytest.fixture(scope="module")
def profile():
    return small_profile(2, event_count=600)


def filtered(lane, text, end, cells, glyphs=UNICODE, palette=None, strings=None):
    """A lane with a filter, drawn."""
    palette = palette or DARK
    session = session_of(make_profile([lane], strings=strings or NAMES))
    edges = edges_of(0, end, cells)
    part = apply_filter(session, text).session
    whole, some = (
        paint_lane(session.profile, each.indexes[0], edges, palette, glyphs) for each in (session, part)
    )  # fmt: skip
    return paint_passing(whole, some, palette, glyphs)


def two() -> object:
    return make_lane("TIU", 0, starts=[0, 10, 25], ends=[10, 20, 30], name=np.array([0, 1, 1], np.int32))


def test_what_passes_keeps_its_height_and_colour_and_the_rest_is_dim_dots():
    palette = DARK
    painted = filtered(two(), "name=mm2", 40, 4)
    assert "".join(painted.chars) == "█·· "
    assert [style is palette.hidden for style in painted.styles] == [False, True, True, False]
    assert painted.utilisation == pytest.approx(0.25)


@pytest.mark.parametrize("palette", [DARK, PLAIN])
def test_in_ascii_and_without_colour_it_is_the_same(palette):
    assert "".join(filtered(two(), "name=mm2", 40, 4, ASCII, palette).chars) == "8.. "
    assert "".join(filtered(two(), "name=mm2", 40, 4, UNICODE, palette).chars) == "█·· "


def test_a_cell_with_both_shows_how_much_passes():
    lane = make_lane("TIU", 0, starts=[0, 2], ends=[2, 16], name=np.array([0, 1], np.int32))
    assert filtered(lane, "name=mm2", 16, 1).chars == ["▁"]
    assert filtered(lane, "name=load", 16, 1).chars == ["▇"]


def test_a_hidden_bar_keeps_its_name_and_shows_its_extent():
    lane = make_lane("TIU", 0, starts=[0, 100], ends=[100, 200], name=np.array([0, 1], np.int32))
    painted = filtered(lane, "name=load", 200, 20)
    assert "".join(painted.chars) == "▏mm2······▏load     "
    assert painted.styles[0] is DARK.hidden
    assert painted.styles[10].bgcolor is not None


def test_waits_are_hidden_like_work():
    lane = make_lane("TIU", 0, starts=[0, 10], ends=[10, 20], name=np.array([0, 1], np.int32),
                     roles=[Role.WORK, Role.WAIT])  # fmt: skip
    assert "".join(filtered(lane, "name=mm2", 20, 2, ASCII).chars) == "8."
    assert "".join(filtered(lane, "name=load", 20, 2, ASCII).chars) == ".~"


@given(st.integers(8, 60), st.integers(0, 40), st.integers(1, 40))
@settings(deadline=None, max_examples=40)
def test_halves_of_wide_characters_never_stay(cells, start, length):
    lane = make_lane("TIU", 0, starts=[0, start], ends=[100, start + length], name=np.array([0, 1], np.int32))
    strings = {"name": Strings(["注意力注意力注意力", "x"])}
    painted = filtered(lane, "name=x", 100, cells, strings=strings)
    assert cell_len("".join(painted.chars)) == cells


@pytest.mark.parametrize("text", ["dur>200", "engine=TIU", "!name=mm2*", "dur<0", "dur>=0"])
def test_shares_are_those_of_what_passes(profile, text):
    session = session_of(profile)
    some = apply_filter(session, text)
    edges = edges_of(profile.start_ns, profile.end_ns, 60)
    for number, lane in enumerate(profile.lanes):
        mask = some.lane(number)
        kept = make_lane("TIU", 0, starts=lane["start"][mask], ends=lane["end"][mask], roles=lane["role"][mask])
        whole = paint_lane(profile, session.indexes[number], edges, DARK, UNICODE)
        part = paint_lane(profile, some.session.indexes[number], edges, DARK, UNICODE)
        expected = build_index(kept).work.total / (profile.end_ns - profile.start_ns)
        assert paint_passing(whole, part, DARK, UNICODE).utilisation == pytest.approx(expected)


def test_a_launch_passes_at_its_full_length_if_any_of_its_instructions_does():
    lane = make_lane(
        "TIU", 0, starts=[0, 10, 40], ends=[5, 30, 45], scope=[0, 0, 1], name=np.array([0, 1, 1], np.int32)
    )
    scopes = Scopes(np.array([0, 0], np.int32), np.zeros(2, np.int32))
    session = session_of(make_profile([lane], scopes=scopes, strings={**NAMES, "kernel": Strings(["rope"])}))
    found = launches_with(session, apply_filter(session, "name=mm2").session, 0)
    assert [span_of(found, row) for row in range(len(found.lane))] == [(0, 30)]
    assert len(launches(session, 0).lane) == 2
    assert len(launches_with(session, apply_filter(session, "name=nothing").session, 0).lane) == 0


async def test_the_timeline_follows_the_filter_and_says_so(profile):
    async with opened(profile, (160, 48)) as pilot:
        screen = explorer(pilot)
        before = frame(pilot.app).split("\n")[:-1]
        assert "filtered out" not in "".join(before)
        screen.filtering.apply("engine=GDMA")
        await settled(pilot)
        text = frame(pilot.app)
        assert "pass engine=GDMA" in text
        assert "· filtered out" in text
        tiu = next(line for line in text.split("\n") if " TIU " in line and "0.0%" in line)
        # nothing of it passes: it is empty
        assert "··" not in tiu
        assert "▇" not in tiu
        await press(pilot, "escape")
        # what the bottom line says passes
        assert frame(pilot.app).split("\n")[:-1] == before


async def test_steps_keep_to_what_passes_and_what_is_hidden_says_so(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "j j j home")
        screen.filtering.apply("dur>300")
        await settled(pilot)
        lane = screen.state.selection.lane
        mask = apply_filter(screen.session, "dur>300").lane(lane)
        rows = np.flatnonzero(mask)
        seen = []
        for _ in range(3):
            await press(pilot, "full_stop")
            seen.append(screen.state.selection.row)
        places = np.searchsorted(rows, seen)
        assert rows[places].tolist() == seen
        assert np.diff(places).tolist() == [1, 1]
        await press(pilot, "comma")
        assert screen.state.selection.row == seen[-2]
        hidden = int(np.flatnonzero(~mask)[0])
        await press(pilot, f"escape g {' '.join(str(profile.lanes[lane]['start'][hidden]))} enter")
        screen.filtering.apply("dur>300")
        await settled(pilot)
        assert "(filtered out)" in frame(pilot.app)


async def test_where_nothing_passes_a_step_says_so(profile):
    async with opened(profile) as pilot:
        await press(pilot, "j full_stop")
        selection = explorer(pilot).state.selection
        explorer(pilot).filtering.apply("dur<0")
        await settled(pilot)
        await press(pilot, "full_stop")
        assert explorer(pilot).state.selection == selection
        assert "No later instruction of this lane passes the filter" in frame(pilot.app)


def test_where_nothing_passes_no_step_is_made(profile):
    session = session_of(profile)
    apply_filter(session, "dur<0")
    view = DisplayState.of(profile.start_ns, profile.end_ns)
    from msgspec.structs import replace

    view = replace(view, filter="dur<0", selection=SelectedItem(0, 0, 3))
    assert step_event(session, view, 1, 0) is view


async def test_large_captures_are_filtered_and_summed_in_threads_while_keys_work():
    profile = big_profile(40_000, cores=2, mode=1)
    async with opened(profile, (120, 40)) as pilot:
        screen = explorer(pilot)
        timeline = screen.timeline
        assert timeline.lane_data.passing is None
        screen.filtering.apply("dur>200")
        await settled(pilot)
        assert timeline.lane_data.passing is not None
        assert timeline.lane_data.passing.text == "dur>200"
        index = next(index for index in screen.session.indexes if index.lane.kind == "GDMA")
        assert not has_colour_sums(index, "bandwidth")
        # the key is answered at once, with a placeholder
        timeline.action_do("colours")
        timeline.action_do("colours")
        await pilot.pause()
        assert screen.state.colouring == "bandwidth"
        await settled(pilot)
        assert has_colour_sums(index, "bandwidth")
        assert "computing" not in timeline.title_text()
        assert not timeline.lane_data.computing_colours(screen.state)


def test_until_the_sums_are_there_cells_are_quiet():
    lane = make_lane("GDMA", 0, starts=[0, 10], ends=[10, 15], ddr_bandwidth=[60.0, 5.0])
    profile = make_profile([lane])
    index = session_of(profile).indexes[0]
    painted = paint_lane(profile, index, edges_of(0, 20, 2), DARK, ASCII, "bandwidth", pending=True)
    assert painted.chars == ["8", "4"]
    assert painted.styles == [DARK.quiet] * 2
    assert not has_colour_sums(index, "bandwidth")


@AS_RECORDED
async def test_frames_with_a_filter_are_as_recorded(profile, size, ascii_only):
    async with opened(profile, SIZES[size], ascii_only=ascii_only) as pilot:
        await press(pilot, "w w w" if size == "200x60" else "e w w w")
        explorer(pilot).filtering.apply("name=m*")
        await settled(pilot)
        await press(pilot, "Z")
        lines = frame(pilot.app).split("\n")[:-1]
    compared("timeline-filtered", size, ascii_only, lines, width=SIZES[size][0])


@pytest.mark.parametrize("keys", ["", "e"])
async def test_ascii_and_no_color_hold_with_a_filter(profile, keys, monkeypatch):
    from rich.style import Style
    from test_frames import filtered_segments

    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(profile, (80, 24), ascii_only=True) as pilot:
        explorer(pilot).filtering.apply("name=m*")
        await settled(pilot)
        await press(pilot, f"{keys} w w".strip())
        for segment in filtered_segments(pilot.app):
            style = segment.style or Style()
            assert segment.text.isascii()
            assert style.color is None or style.color.is_default
            assert style.bgcolor is None or style.bgcolor.is_default
