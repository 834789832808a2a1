"""Kernel lanes, colours, legend, strips, pinned lanes, dependencies."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from profiles import big_profile, make_lane, make_profile, session_of, small_profile
from screen import SMALL, WIDE, explorer, frame, opened, press

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.links.launches import launches, span_of
from tpuprof_tui.analysis.selecting.state import SelectedItem
from tpuprof_tui.analysis.selecting.time_scale import edges_of
from tpuprof_tui.app.drawing.colouring import (
    FIFTHS,
    PiecewiseRate,
    cell_shares,
    event_categories,
    kernel_category,
    legend,
    next_colouring,
    share_category,
)
from tpuprof_tui.app.drawing.glyphs import ASCII, UNICODE
from tpuprof_tui.app.drawing.painter import LEGEND_LINES, legend_lines, paint_lane, paint_strip
from tpuprof_tui.app.drawing.theme import DARK, PLAIN, THEMES
from tpuprof_tui.app.panes.timeline.layout import TimelineRow, continued_label
from tpuprof_tui.model import INT_MISSING, Activity, Lane, Role, Scopes, Strings
from tpuprof_tui.sources.torch.vocabulary import VOCABULARY as TORCH


def text_of_line(timeline, number: int) -> str:
    return "".join(segment.text for segment in timeline.render_line(timeline.lanes.line_of(number) + 1))


def labels(screen) -> list[str]:
    return [row.label for row in screen.timeline.lanes.rows]


def test_a_label_leaves_out_what_the_lane_above_is_called_too():
    named = ("Host cpu op", "Host tpudnn op", "bandwidth", "Host tpudnn op", "Host 名 a", "Host 名 b", "Core 0 TIU")
    rows = [TimelineRow(number, -1, label, False, False, "bandwidth" if label == "bandwidth" else "")
            for number, label in enumerate(named)]  # fmt: skip
    shown = [continued_label(rows, number) for number in range(len(rows))]
    assert shown[0] == named[0]
    assert shown[1] == "     tpudnn op"
    # strips are no lanes, and two of one name keep their last word
    assert shown[3] == "            op"
    assert shown[5] == "        b"
    assert shown[6] == named[6]


# launches


def test_a_launch_lasts_from_its_first_start_to_its_last_end():
    one = make_lane("TIU", 0, starts=[0, 10, 40], ends=[5, 30, 45], scope=[0, 0, 1])
    two = make_lane("GDMA", 0, starts=[3, 20, 60], ends=[38, 25, 70], scope=[0, 1, INT_MISSING])
    other = make_lane("TIU", 1, starts=[0], ends=[99], scope=[7])
    scopes = Scopes(np.array([1, 0], np.int32), np.zeros(2, np.int32))
    profile = make_profile([one, two, other], scopes=scopes, strings={"kernel": Strings(["rope", "softmax"])})
    session = session_of(profile)
    index = launches(session, 0)
    assert [span_of(index, row) for row in range(len(index.lane))] == [(0, 38), (20, 45)]
    assert index.lane["kernel"].tolist() == [1, 0]
    assert len(launches(session, 1).lane) == 0


@pytest.mark.parametrize("mode", [1, 2])
def test_launches_agree_with_their_instructions(mode):
    profile = big_profile(3000, cores=2, mode=mode)
    session = session_of(profile)
    for core in profile.groups.numbers:
        lanes = profile.lanes_of(core)
        index = launches(session, core)
        assert len(index.lane)
        for row, scope in enumerate(index.lane["scope"].tolist()):
            rows = [lane["scope"] == scope for lane in lanes]
            starts = [lane["start"][chosen] for lane, chosen in zip(lanes, rows, strict=True)]
            ends = [lane["end"][chosen] for lane, chosen in zip(lanes, rows, strict=True)]
            assert span_of(index, row) == (np.concatenate(starts).min(), np.concatenate(ends).max())


async def test_kernel_functions_stand_above_their_cores_engines(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        assert labels(screen)[:5] == ["Core 0 kernels", "Core 0 TIU", "Core 0 GDMA", "Core 0 SDMA", "Core 1 kernels"]
        assert "rmsnorm_multi_core" in text_of_line(screen.timeline, 0)
        await press(pilot, "e")
        assert "Core 0 kernels" not in labels(screen)


async def test_launches_are_stepped_through_as_ranges(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        index = launches(screen.session, 0)
        await press(pilot, "j k home enter")
        assert screen.state.selection == SelectedItem(0)
        assert screen.state.range == span_of(index, 0)
        assert not screen.query_one("#detail").display
        await press(pilot, "full_stop full_stop comma")
        assert screen.state.range == span_of(index, 1)
        assert screen.state.cursor == span_of(index, 1)[0]
        assert screen.summary.answers.answered_query.range == screen.state.range
        assert "llama_attention" in frame(pilot.app).split("launch 1")[0]


async def test_without_launches_there_is_no_lane_of_them():
    async with opened(small_profile(0, event_count=60)) as pilot:
        assert not any("kernels" in label for label in labels(explorer(pilot)))


# colours


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(1, 90), st.floats(0, 1)), min_size=1, max_size=30))
def test_what_flows_is_neither_lost_nor_made_up(events):
    starts, lengths, rates = (np.array(part) for part in zip(*events, strict=True))
    flow = PiecewiseRate.of(starts, starts + lengths, rates.astype(np.float64))
    edges = edges_of(0, 600, 37)
    found = flow.between(edges)
    expected = [
        sum(rate * max(min(start + length, high) - max(start, low), 0) for start, length, rate in events)
        for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]
    assert found == pytest.approx(expected, abs=1e-6)


def test_shares_of_a_cell_are_means_over_the_time_with_work():
    lane = make_lane("GDMA", 0, starts=[0, 10], ends=[10, 40], ddr_bandwidth=[68.25, 34.125], l2_bandwidth=[0.0, 0.0])
    profile = make_profile([lane])
    index = session_of(profile).indexes[0]
    shares = cell_shares(profile, index, "bandwidth", np.array([0, 10, 20, 40, 60]))
    assert shares[:3] == pytest.approx([1.0, 0.5, 0.5])
    assert np.isnan(shares[3])
    whole = cell_shares(profile, index, "bandwidth", np.array([0, 60]))
    assert whole == pytest.approx([(10 + 15) / 40])


def test_waits_have_no_share_and_l2_has_a_peak_of_its_own():
    lane = make_lane("GDMA", 0, starts=[0, 10, 20], ends=[9, 19, 29], ddr_bandwidth=[60.0, 60.0, 0.0],
                     l2_bandwidth=[0.0, 0.0, 64.0], roles=[Role.WORK, Role.WAIT, Role.WORK])  # fmt: skip
    profile = make_profile([lane])
    assert event_categories(profile, session_of(profile).indexes[0], np.arange(3), "bandwidth") == [
        FIFTHS[4],
        None,
        FIFTHS[2],
    ]


def test_steps_cover_every_share():
    assert [share_category(share).letter for share in (-1.0, 0.0, 0.2, 0.5, 0.99, 1.0, 7.0)] == list("aabceee")


def test_kernel_functions_have_letters_of_their_own():
    made = [kernel_category(code, f"k{code}") for code in range(52)]
    assert len({family.letter for family in made}) == 52
    assert kernel_category(52, "k").letter == "?"


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("colouring", ["kernel", "bandwidth", "uarch"])
def test_without_colour_letters_tell_the_same(colouring, plain):
    profile = big_profile(4000, cores=1, mode=2)
    session = session_of(profile)
    glyphs, palette = (UNICODE, PLAIN) if plain else (ASCII, DARK)
    edges = edges_of(profile.start_ns, profile.end_ns, 100)
    engine = "TIU" if colouring == "uarch" else "GDMA"
    index = next(index for index in session.indexes if index.lane.kind == engine)
    chars = paint_lane(profile, index, edges, palette, glyphs, colouring).chars
    letters = "ABCDEF" if colouring == "kernel" else "abcde"
    assert sum(char in letters for char in chars) > 80


@pytest.mark.parametrize("colouring", ["operation", "kernel", "bandwidth"])
def test_the_colour_blind_palette_has_letters_in_unicode_too(colouring):
    profile = big_profile(400, cores=1, mode=2)
    session = session_of(profile)
    edges = edges_of(profile.start_ns, profile.end_ns, 400)
    index = next(index for index in session.indexes if index.lane.kind == "GDMA")
    letters = [
        sum(
            char.isascii() and char.isalpha()
            for char in paint_lane(profile, index, edges, each, UNICODE, colouring).chars
        )
        for each in (DARK, THEMES["safe"][1])
    ]
    # names in wide instructions are the same in both
    assert letters[1] > letters[0] + 40


def test_kernels_that_communicate_have_a_colour_of_their_own():
    codes = np.zeros(2, np.int32)
    lane = Lane(
        kind="stream", group=-1, label="7", activity=None,
        columns={"start": np.array([0, 10]), "end": np.array([9, 19]), "order": np.arange(2),
                 "role": np.zeros(2, np.int8), "sublane": np.zeros(2, np.int16), "type": codes,
                 "activity": np.array([Activity.COMPUTE, Activity.COMMUNICATION], np.int8)},
    )  # fmt: skip
    profile = replace(make_profile([lane], strings={"type": Strings(["kernel"])}), vocabulary=TORCH)
    found = event_categories(profile, session_of(profile).indexes[0], np.arange(2), "operation")
    assert [each.name for each in found] == ["kernels", "communication"]
    assert [each.name for each in legend(profile, "operation")] == ["kernels", "communication"]


async def test_colours_follow_one_key_and_skip_what_is_unknown(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "C")
        assert screen.state.colouring == "kernel"
        assert "colours: kernel function" in frame(pilot.app)
        await press(pilot, "C")
        assert screen.state.colouring == "bandwidth"
        await press(pilot, "C")
        assert screen.state.colouring == "operation"
        assert "Colours mean: operation" in frame(pilot.app)
    assert next_colouring(big_profile(100, mode=2), "bandwidth") == "uarch"
    unnamed = make_lane("GDMA", 0, starts=[0], ends=[9], kernel=[-1], ddr_bandwidth=[1.0])
    assert next_colouring(make_profile([unnamed]), "operation") == "bandwidth"
    assert next_colouring(make_profile([unnamed]), "bandwidth") == "operation"


@pytest.mark.parametrize("size", [WIDE, SMALL])
@pytest.mark.parametrize("ascii_only", [False, True])
async def test_the_legend_explains_letters(profile, size, ascii_only):
    async with opened(profile, size, ascii_only=ascii_only) as pilot:
        screen = explorer(pilot)
        await press(pilot, "e L" if size == SMALL else "L")
        assert "operation:" in frame(pilot.app)
        assert "M matmul" in frame(pilot.app)
        await press(pilot, "C")
        assert "kernel function:" in frame(pilot.app)
        assert "A rmsnorm_multi_core" in frame(pilot.app)
        await press(pilot, "C L")
        assert "80% and more" not in frame(pilot.app)
        await press(pilot, "L")
        assert "80% and more" in frame(pilot.app)
        assert screen.timeline.lanes.lines >= 1


@pytest.mark.parametrize(("ascii_only", "glyphs"), [(False, "░▒▓"), (True, "t T")])
async def test_whole_cores_have_a_legend_of_their_own_and_no_colours_to_choose(ascii_only, glyphs):
    lanes = [make_lane(engine, 0, starts=[0, 10], ends=[5, 20]) for engine in ("TIU", "GDMA")]
    async with opened(make_profile(lanes), SMALL, ascii_only=ascii_only) as pilot:
        screen = explorer(pilot)
        # one core shows its few engines also on a small screen
        await press(pilot, "e L")
        text = frame(pilot.app)
        assert f"{glyphs} only moves data (exposed transfer)" in text
        assert "operation:" not in text
        await press(pilot, "C")
        assert "Colours apply to engines: e shows them." in frame(pilot.app)
        assert screen.state.colouring == "operation"
        await press(pilot, "e")
        assert "operation:" in frame(pilot.app)
        assert "only moves data" not in frame(pilot.app)


@given(st.integers(0, 200))
def test_a_legend_keeps_to_its_lines(width):
    names = [f"kernel_function_number_{number}\x1b[31m" for number in range(70)]
    profile = make_profile([], strings={"kernel": Strings(names)})
    lines = legend_lines(profile, "kernel", width, DARK, UNICODE)
    assert len(lines) <= LEGEND_LINES
    assert all(sum(len(segment.text) for segment in line) <= width for line in lines)
    assert not any("\x1b" in segment.text for line in lines for segment in line)


# strips


def test_a_strip_is_the_share_of_the_peak_with_idle_time_counted():
    lane = make_lane("GDMA", 0, starts=[0], ends=[10], ddr_bandwidth=[34.125])
    profile = make_profile([lane])
    index = session_of(profile).indexes[0]
    edges = np.array([0, 10, 20])
    strip = paint_strip(profile, index, edges, "bandwidth", DARK, ASCII)
    assert strip.chars == ["4", " "]
    assert strip.utilisation == pytest.approx(0.25)
    busy = paint_strip(profile, index, edges, "utilisation", DARK, ASCII)
    assert busy.chars == ["8", " "]
    assert busy.utilisation == pytest.approx(0.5)


async def test_strips_stand_below_their_lanes_and_are_stepped_over(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "B")
        assert labels(screen)[:5] == ["Core 0 kernels", "Core 0 TIU", "Core 0 GDMA", "bandwidth", "Core 0 SDMA"]
        await press(pilot, "j j j")
        assert screen.state.selection == SelectedItem(0, 2)
        await press(pilot, "k")
        assert screen.state.selection == SelectedItem(0, 1)
        await press(pilot, "B")
        assert labels(screen)[1:3] == ["Core 0 TIU", "busy"]
        await press(pilot, " ".join(["j"] * 40))
        assert screen.state.selection.lane == len(profile.lanes) - 1
        await press(pilot, "B")
        assert screen.state.strip == ""


# pins


async def test_a_pinned_lane_stays_on_top(profile):
    async with opened(profile, (80, 20)) as pilot:
        screen = explorer(pilot)
        timeline = screen.timeline
        await press(pilot, "e j j P")
        assert labels(screen)[0] == "Core 0 GDMA"
        assert screen.state.selection == SelectedItem(0, 1)
        await press(pilot, " ".join(["j"] * 20))
        assert timeline.lanes.top > 0
        assert "GDMA" in text_of_line(timeline, 0)
        assert timeline.lanes.line_of(0) == 0
        assert timeline.lanes.line_of(1) == -1
        assert timeline.lanes.number_at(1) == 1 + timeline.lanes.top
        last = timeline.lanes.selected_row(screen.state)
        assert last == len(timeline.lanes.rows) - 1
        assert timeline.lanes.line_of(last) == timeline.lanes.lines - 1
        await press(pilot, " ".join(["k"] * 20))
        assert timeline.lanes.selected_row(screen.state) == 0
        await press(pilot, "P")
        assert labels(screen)[0] == "Core 0 kernels"
        await press(pilot, "escape escape P")
        assert "No lane selected" in frame(pilot.app)


async def test_many_pins_leave_room(profile):
    async with opened(profile, SMALL) as pilot:
        screen = explorer(pilot)
        await press(pilot, "e j " + " ".join(["P j"] * 12))
        assert len(screen.state.pinned) > 2
        await press(pilot, " ".join(["j"] * 20))
        timeline = screen.timeline
        assert timeline.lanes.line_of(timeline.lanes.selected_row(screen.state)) >= 0


# dependencies


@pytest.fixture(scope="module")
def linked():
    """A TIU command that waited for the GDMA command with id 2."""
    tiu = make_lane("TIU", 0, starts=[0, 100], ends=[10, 130], command_id=[1, 2], depends_on=[0, 2],
                    cycles=[11, 31])  # fmt: skip
    gdma = make_lane("GDMA", 0, starts=[5, 40], ends=[30, 95], command_id=[1, 2], depends_on=[0, 0],
                     cycles=[26, 56], bytes=[64, 64])  # fmt: skip
    return make_profile([tiu, gdma], mode=2)


async def test_dependencies_are_followed_both_ways(linked):
    async with opened(linked) as pilot:
        screen = explorer(pilot)
        await press(pilot, "j end enter left_square_bracket")
        assert screen.state.selection == SelectedItem(0, 1, 1)
        assert "waited for" in frame(pilot.app)
        assert "5 ns between" in frame(pilot.app)
        await press(pilot, "right_square_bracket")
        assert screen.state.selection == SelectedItem(0, 0, 1)
        await press(pilot, "comma left_square_bracket")
        assert screen.state.selection == SelectedItem(0, 0, 0)
        assert "No event is known that released" in frame(pilot.app)
        await press(pilot, "right_square_bracket")
        assert "No event is known that waited" in frame(pilot.app)


async def test_traces_without_links_say_so(tmp_path):
    path = tmp_path / "one.pt.trace.json"
    event = {"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 1, "dur": 5, "args": {"stream": 7}}
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    async with opened(open_profile(path), (100, 30)) as pilot:
        await press(pilot, "j full_stop left_square_bracket")
        assert "This profile does not record what waited for what." in frame(pilot.app)


async def test_captures_without_registers_say_so(profile):
    async with opened(profile) as pilot:
        await press(pilot, "left_square_bracket")
        assert "Nothing selected" in frame(pilot.app)
        await press(pilot, "j full_stop right_square_bracket")
        assert "mode 2" in frame(pilot.app)
