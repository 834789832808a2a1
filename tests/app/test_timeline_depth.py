"""The timeline's tools: times, marks, ranges, same names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from profiles import make_lane, make_profile, session_of, small_profile
from screen import SMALL, WIDE, explorer, frame, opened, press

from tpuprof_tui.analysis.selecting.moves import measured_text, parse_time, same_name, toggle_mark
from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.formats.parsing import TypedError
from tpuprof_tui.model import Strings

VIEW = DisplayState.of(0, 20_000_000)


def ruler_of(pilot) -> str:
    timeline = explorer(pilot).timeline
    return "".join(segment.text for segment in timeline.render_line(0))


def bottom_of(pilot) -> str:
    timeline = explorer(pilot).timeline
    return "".join(segment.text for segment in timeline.render_line(timeline.size.height - 1))


# times


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("12.5ms", 12_500_000), ("1200us", 1_200_000), ("1200 µs", 1_200_000), ("77", 77), ("77ns", 77),
        ("0.01 s", 10_000_000), ("30%", 6_000_000), ("0%", 0), ("100%", 19_999_999), ("12.5%", 2_500_000),
        (".5us", 500), ("1,000", 1_000), ("1.0000000001us", 1_000), ("+5us", 10_005_000), ("-5us", 9_995_000),
    ],
)  # fmt: skip
def test_times_are_read_exactly(text, time):
    assert parse_time(text, VIEW) == time


@pytest.mark.parametrize("text", ["", "x", "12.5 parsec", "1e3", "5 5", "101%", "20ms", "-11ms", "+30%", "9" * 30])
def test_what_is_no_time_says_so(text):
    with pytest.raises(TypedError):
        parse_time(text, VIEW)


@given(st.text(max_size=20))
def test_any_text_is_a_time_of_the_capture_or_refused(text):
    try:
        time = parse_time(text, VIEW)
    except TypedError:
        return
    assert VIEW.full_start <= time < VIEW.full_end


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_g_goes_to_a_time(profile, size):
    async with opened(profile, size) as pilot:
        screen = explorer(pilot)
        await press(pilot, "w w w w g 5 0 0 n s enter")
        assert screen.state.cursor == 500
        assert screen.state.start <= 500 < screen.state.end
        assert screen.focused.id == "timeline"
        await press(pilot, "g 9 9 9 s enter")
        assert screen.prompt.is_open
        assert "outside" in frame(pilot.app)
        await press(pilot, "escape")
        assert screen.state.cursor == 500


# marks


async def test_two_marks_show_their_distance(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "g 1 0 0 0 enter m a")
        assert screen.state.marks == (("a", 1000),)
        await press(pilot, "g 3 5 0 0 enter")
        assert "from a 2.500 us" in bottom_of(pilot)
        await press(pilot, "m q 0")
        assert screen.state.marks == (("a", 1000), ("q", 3500))
        assert "a to q 2.500 us" in bottom_of(pilot)
        assert "a" in ruler_of(pilot)
        await press(pilot, "apostrophe a")
        assert screen.state.cursor == 1000
        assert "q" in ruler_of(pilot)
        await press(pilot, "m a")
        assert screen.state.marks == (("q", 3500),)


async def test_what_follows_m_is_a_letter_whatever_its_key_does(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        before = screen.state.span
        await press(pilot, "m w")
        assert screen.state.span == before
        assert screen.state.marks[0][0] == "w"
        await press(pilot, "m escape w")
        assert len(screen.state.marks) == 1
        assert screen.state.span < before
        await press(pilot, "apostrophe z")
        assert "No mark z" in frame(pilot.app)


async def test_without_marks_there_is_nothing_to_go_to(profile):
    async with opened(profile) as pilot:
        await press(pilot, "apostrophe")
        assert "No marks yet" in frame(pilot.app)
        before = explorer(pilot).state.span
        await press(pilot, "w")
        assert explorer(pilot).state.span < before


def test_a_letter_marks_one_time():
    state = toggle_mark(toggle_mark(VIEW.at(5), "b").at(9), "b")
    assert state.marks == (("b", 9),)
    assert measured_text(replace(state, cursor=4)) == "from b 5 ns"


# ranges


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_the_selection_becomes_the_range_of_the_summary(profile, size):
    async with opened(profile, size) as pilot:
        screen = explorer(pilot)
        await press(pilot, "e j j full_stop r" if size == SMALL else "j j full_stop r")
        selection = screen.state.selection
        start, end = screen.session.span_of(selection.lane, selection.row)
        assert screen.state.range == screen.state.figures_window == (start, end)
        assert screen.summary.answers.answered_query.range == (start, end)
        assert "range " in bottom_of(pilot)
        assert "range of" in screen.summary.title_text()
        await press(pilot, "r")
        assert screen.state.range is None
        assert screen.summary.answers.answered_query.extent == (screen.state.start, screen.state.end)


async def test_two_cursors_make_a_range(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "g 4 0 0 0 enter r")
        assert screen.state.range is None
        assert "range started" in bottom_of(pilot)
        await press(pilot, "r")
        assert screen.state.range is None
        await press(pilot, "g 1 0 0 0 enter r")
        assert screen.state.range == (1000, 4000)
        assert "range 3.000 us" in bottom_of(pilot)
        await press(pilot, "end")
        assert "[" in ruler_of(pilot)
        assert "]" in ruler_of(pilot)
        assert screen.summary.answers.answered_query.range[0] == 1000
        await press(pilot, "f")
        assert (screen.state.start, screen.state.end) == (1000, 4000)
        await press(pilot, "escape")
        assert screen.state.range is None
        assert screen.state.figures_window == (1000, 4000)


# names


async def test_next_and_previous_of_the_same_name(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "j j full_stop greater_than_sign")
        selection = screen.state.selection
        names = screen.session.profile.lanes[selection.lane]["name"]
        await press(pilot, "greater_than_sign")
        later = screen.state.selection
        assert later.row > selection.row
        assert names[later.row] == names[selection.row]
        assert not (names[selection.row + 1 : later.row] == names[selection.row]).any()
        await press(pilot, "less_than_sign")
        assert screen.state.selection == selection


@given(st.lists(st.integers(-1, 3), min_size=1, max_size=30), st.data())
def test_same_names_are_found_in_both_directions(codes, data):
    times = range(0, 10 * len(codes), 10)
    lane = make_lane(starts=times, ends=[time + 5 for time in times], name=codes)
    session = session_of(make_profile([lane], strings={"name": Strings("abcd")}))
    row = data.draw(st.integers(0, len(codes) - 1))
    later = [place for place in range(row + 1, len(codes)) if codes[place] == codes[row] >= 0]
    earlier = [place for place in range(row) if codes[place] == codes[row] >= 0]
    assert same_name(session, 0, row, 1) == (later[0] if later else -1)
    assert same_name(session, 0, row, -1) == (earlier[-1] if earlier else -1)


async def test_the_same_name_is_sought_among_what_passes_the_filter():
    starts, ends = [0, 10, 20, 30, 40, 50], [9, 12, 29, 32, 42, 59]
    lane = make_lane("TIU", 0, starts=starts, ends=ends, name=[0, 0, 1, 0, 0, 0])
    profile = make_profile([lane], strings={"name": Strings(["mm", "add"])})
    async with opened(profile, (80, 24)) as pilot:
        screen = explorer(pilot)
        screen.filtering.apply("dur>5ns")
        await press(pilot, "e j home enter escape greater_than_sign")
        assert screen.state.selection.row == 5
        await press(pilot, "greater_than_sign")
        assert "No later mm of this lane passes the filter; Esc clears it." in frame(pilot.app)
        await press(pilot, "less_than_sign")
        assert screen.state.selection.row == 0


async def test_without_names_it_says_so():
    async with opened(small_profile(0, event_count=60)) as pilot:
        await press(pilot, "j j full_stop greater_than_sign")
        assert "no names" in frame(pilot.app)
        await press(pilot, "escape escape less_than_sign")
        assert "Nothing selected" in frame(pilot.app)
