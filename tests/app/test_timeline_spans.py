"""Kept spans of time, copies from the timeline, and where the selected instruction's dependencies are marked."""

from __future__ import annotations

import numpy as np
import pytest
from profiles import make_lane, make_profile, session_of
from screen import AS_RECORDED, SIZES, compared, explorer, frame, opened, press, settled

from tpuprof_tui.analysis.links.dependencies import MARKED, dependencies_of, linked_events
from tpuprof_tui.analysis.selecting.moves import go_to_mark, marks_text, measured_text, toggle_mark, toggle_span
from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.analysis.selecting.time_scale import edges_of
from tpuprof_tui.app.drawing.glyphs import ASCII, UNICODE
from tpuprof_tui.formats.parsing import TimeBase, range_typed
from tpuprof_tui.model import Strings

VIEW = DisplayState.of(0, 1_000_000)


# spans


def test_a_span_is_kept_gone_to_and_taken_away():
    state = toggle_span(VIEW, "a", 100, 900)
    assert state.spans == (("a", 100, 900),)
    zoomed = state.windowed(500_000, 1000)
    found = go_to_mark(zoomed, "a")
    assert found is not None
    assert found.range == (100, 900)
    assert found.start <= 100
    assert found.end >= 900
    assert go_to_mark(state, "b") is None
    assert toggle_span(state, "a", 100, 900).spans == ()
    assert toggle_span(state, "a", 5, 9).spans == (("a", 5, 9),)


def test_a_letter_stands_for_one_thing():
    state = toggle_mark(toggle_span(VIEW, "a", 100, 900), "a")
    assert (state.marks, state.spans) == ((("a", VIEW.cursor),), ())
    state = toggle_span(state, "a", 1, 2)
    assert (state.marks, state.spans) == ((), (("a", 1, 2),))
    assert marks_text(state) == "a 1 ns from 1 ns"
    assert measured_text(state) == ""


async def test_marks_are_set_and_gone_to_in_the_table(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 g j j j")
        number = int(screen.table.rows.order[screen.table.rows.position])
        start, _ = screen.session.span_of(*screen.session.locate(number))
        await press(pilot, "m a")
        assert screen.state.marks == (("a", start),)
        await press(pilot, "G apostrophe a")
        assert screen.table.rows.position == 3
        assert screen.session.number(screen.state.selection.lane, screen.state.selection.row) == number
        # in another order too, and where the row is not selected yet
        await press(pilot, "I escape g apostrophe a")
        assert int(screen.table.rows.order[screen.table.rows.position]) == number
        await press(pilot, "m a")
        assert screen.state.marks == ()


async def test_a_letter_is_waited_for_while_the_keys_stay(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 m")
        screen.query_one("#timeline").focus()
        await press(pilot, "w")
        assert screen.state.marks == ()
        assert not screen.state.fits_all


async def test_m_keeps_range_selection_or_window_under_a_letter(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "w w M w")
        window = (screen.state.start, screen.state.end)
        assert screen.state.spans == (("w", *window),)
        await press(pilot, "j j full_stop M s")
        lane, row = screen.state.selection.lane, screen.state.selection.row
        span = screen.session.span_of(lane, row)
        assert ("s", *span) in screen.state.spans
        await press(pilot, "r M r escape escape escape 0 apostrophe s")
        assert screen.state.range == span
        await press(pilot, "apostrophe w")
        assert screen.state.range == window
        assert "ws" in frame(pilot.app) or "w" in frame(pilot.app).split("\n")[3]
        await press(pilot, "apostrophe x")
        assert "No mark x" in frame(pilot.app)
        await press(pilot, "M w")
        assert "removed" in frame(pilot.app)
        assert [letter for letter, *_ in screen.state.spans] == ["r", "s"]
        await press(pilot, "M question_mark")
        assert "letters or digits" in frame(pilot.app)


async def test_letters_leave_no_label_of_the_ruler_that_reads_as_another_number(profile):
    async with opened(profile, (120, 40)) as pilot:
        timeline = explorer(pilot).timeline
        lanes = timeline.lanes

        def labels() -> set[str]:
            text = "".join(segment.text for segment in timeline.render_line(0))[lanes.label_width :]
            return set(text.replace("▼", " ").replace("[", " ").replace("]", " ").replace("╷", " ").split())

        before = labels()
        ticks = [cell for cell, _ in lanes.measure.ruler(lanes.state.start, lanes.state.end, lanes.cells).ticks]
        for letter, cell in zip("abc", ticks[1:], strict=False):
            time = int(edges_of(lanes.state.start, lanes.state.end, lanes.cells)[cell + 1])
            await press(pilot, f"g {' '.join(str(time))} enter m {letter}")
        await press(pilot, "home")
        shown = labels()
        assert {"a", "b", "c"} <= shown
        assert shown - {"a", "b", "c"} <= before | {"0"}


# copies


async def test_y_copies_window_instruction_or_range(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "w y")
        state = screen.state
        assert range_typed(pilot.app.clipboard, TimeBase(0, 1)) == (state.start, state.end)
        assert "Copied window" in frame(pilot.app)
        await press(pilot, "j full_stop y")
        lane, row = screen.state.selection.lane, screen.state.selection.row
        start, end = screen.session.span_of(lane, row)
        copied = pilot.app.clipboard.split("  ")
        assert copied[0] == "Core 0 TIU"
        assert copied[2:4] == [f"{start}ns..{end}ns", f"{end - start} ns"]
        assert "Copied instruction" in frame(pilot.app)
        await press(pilot, "r y")
        assert range_typed(pilot.app.clipboard, TimeBase(0, 1)) == (start, end)


async def test_names_are_cleaned_before_they_are_copied():
    lane = make_lane("TIU", 0, starts=[0, 50], ends=[10, 90], name=np.array([0, 0], np.int32))
    hostile = make_profile([lane], strings={"name": Strings(["a\x1b]52;c;aGk=\x07\nb"])})
    async with opened(hostile) as pilot:
        await press(pilot, "j full_stop y")
        assert "\x1b" not in pilot.app.clipboard
        assert "\n" not in pilot.app.clipboard


# dependencies


def linked():
    """A TIU command that waited for the GDMA command with id 2; another that waited for the one with id 1."""
    tiu = make_lane("TIU", 0, starts=[0, 100, 200], ends=[10, 130, 230], command_id=[1, 2, 3], depends_on=[0, 2, 2],
                    cycles=[11, 31, 31], name=np.array([0, 0, 0], np.int32))  # fmt: skip
    gdma = make_lane("GDMA", 0, starts=[5, 40], ends=[30, 95], command_id=[1, 2], depends_on=[0, 0],
                     cycles=[26, 56], bytes=[64, 64], name=np.array([1, 1], np.int32))  # fmt: skip
    return make_profile([tiu, gdma], mode=2, strings={"name": Strings(["mm2", "load"])})


def test_ties_are_the_links_of_one_instruction_the_closest_first():
    session = session_of(linked())
    assert linked_events(session, 0, 1) == ()
    dependencies_of(session)
    (tie,) = linked_events(session, 0, 1)
    assert (tie.lane, tie.row, tie.time, tie.released, tie.slack_ns) == (1, 1, 94, True, 5)
    waiters = linked_events(session, 1, 1)
    assert [(tie.lane, tie.row, tie.time, tie.released, tie.slack_ns) for tie in waiters] == [
        (0, 1, 100, False, 5), (0, 2, 200, False, 105),
    ]  # fmt: skip
    assert linked_events(session, 0, 0) == linked_events(session, 0, -1) == ()
    assert MARKED > 2


@pytest.mark.parametrize("ascii_only", [False, True])
async def test_what_released_and_what_was_released_is_marked_and_told(ascii_only):
    glyphs = ASCII if ascii_only else UNICODE
    async with opened(linked(), ascii_only=ascii_only) as pilot:
        screen = explorer(pilot)
        timeline = screen.timeline

        def line(label: str) -> str:
            row = next(number for number, row in enumerate(timeline.lanes.rows) if row.label.endswith(label))
            return "".join(segment.text for segment in timeline.render_line(timeline.lanes.line_of(row) + 1))

        def axis(label: str) -> str:
            return line(label)[timeline.lanes.label_width :]

        await press(pilot, "j g 1 1 0 enter enter")
        assert axis("GDMA")[timeline.lanes.cell_of(94)] == glyphs.released
        assert glyphs.releases not in axis("TIU")
        assert f"{glyphs.released} 5 ns after load (Core 0 GDMA)" in frame(pilot.app)
        await press(pilot, "left_square_bracket")
        assert glyphs.released not in axis("TIU")
        assert [place for place, char in enumerate(axis("TIU")) if char == glyphs.releases] == [
            timeline.lanes.cell_of(100), timeline.lanes.cell_of(200)
        ]  # fmt: skip
        assert f"{glyphs.releases} 5 ns before mm2 (Core 0 TIU) and 1 more" in frame(pilot.app)
        # what is out of sight is marked at the edge of the window it lies beyond
        await press(pilot, "w")
        screen.store.change(screen.state.windowed(40, 55))
        await settled(pilot)
        assert axis("TIU")[-1] == glyphs.releases
        await press(pilot, "escape")
        assert glyphs.releases not in axis("TIU")


@AS_RECORDED
async def test_frames_with_dependencies_are_as_recorded(size, ascii_only):
    async with opened(linked(), SIZES[size], ascii_only=ascii_only) as pilot:
        await press(pilot, "j g 1 1 0 enter enter" if size == "200x60" else "j g 1 1 0 enter enter 1")
        await press(pilot, "left_square_bracket Z" if size == "200x60" else "left_square_bracket")
        lines = frame(pilot.app).split("\n")[:-1]
    compared("timeline-dependencies", size, ascii_only, lines, width=SIZES[size][0])


async def test_f_shows_the_selection_then_fits_it(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "w w w w j j full_stop")
        lane, row = screen.state.selection.lane, screen.state.selection.row
        start, end = screen.session.span_of(lane, row)
        span = screen.state.span
        await press(pilot, "D D D f")
        assert screen.state.start <= start < end <= screen.state.end
        assert screen.state.span == span
        await press(pilot, "f")
        assert screen.state.span == max((end - start) * 2, screen.timeline.lanes.cells)
        assert screen.state.start <= start < end <= screen.state.end


async def test_f_shows_the_timeline_where_another_pane_filled_the_screen(profile):
    async with opened(profile, (80, 24)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 j j j enter escape 2")
        assert not screen.timeline.display
        assert screen.state.selection.row >= 0
        await press(pilot, "f")
        assert screen.timeline.display
        assert screen.table.display
        start, end = screen.session.span_of(screen.state.selection.lane, screen.state.selection.row)
        assert screen.state.start <= start < end <= screen.state.end


async def test_a_capture_without_lanes_says_what_to_do():
    async with opened(make_profile([]), (80, 24)) as pilot:
        assert explorer(pilot).focused is explorer(pilot).summary
        await press(pilot, "1")
        assert explorer(pilot).focused is explorer(pilot).timeline
        for keys in ("w s a d", "h l j k 0", "full_stop comma enter", "e r u B C L P", "y f greater_than_sign M a"):
            await press(pilot, keys)
        assert "no lanes: 4 shows the problems" in frame(pilot.app)
