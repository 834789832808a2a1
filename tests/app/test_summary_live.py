"""The summary follows window, scope and filter, holds when paused, and tells the reference's figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from profiles import big_profile, make_lane, make_profile, small_profile
from screen import explorer, frame, opened, press, settled

from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Scope, ViewState
from tpuprof_tui.analysis.totals.window_figures import figures_of
from tpuprof_tui.export.selection import Selection, selected_profile
from tpuprof_tui.sources.sophgo.files.summary_table import COLUMNS, summary_table
from tpuprof_tui.sources.sophgo.views.published_summary import reference_table


@pytest.fixture(scope="module")
def profile():
    return small_profile(2, instructions=600)


def view_of(profile):
    return ViewState.of(profile.start_ns, profile.end_ns)


def text_of(screen) -> str:
    return "\n".join(strip.text for strip in screen.summary.lines)


def test_the_whole_capture_has_the_reference_s_own_rows(profile, session):
    table = reference_table(session, view_of(profile), Scope())
    assert table.titles == tuple(title for title, _ in COLUMNS)
    assert table.rows == tuple(row.cells for row in summary_table(profile))
    assert table.rows[-1][0] == "Overall"


@pytest.mark.parametrize("core", [-1, 0, 1])
def test_a_window_has_the_rows_of_an_export_of_that_range(profile, session, core):
    view = view_of(profile)
    view = view.windowed(view.start + view.span // 3, view.span // 5)
    cores = None if core < 0 else frozenset({core})
    chosen = selected_profile(profile, Selection(cores, view.start, view.end))
    expected = tuple(row.cells for row in summary_table(chosen))
    assert expected
    assert reference_table(session, view, Scope(core)).rows == expected


def test_a_filter_counts_only_what_passes(profile, session):
    view = replace(view_of(profile), filter="engine=GDMA")
    rows = reference_table(session, view, Scope(0)).rows
    titles = [title for title, _ in COLUMNS]
    assert rows[0][titles.index("totalTiuCycle")] == "0"
    assert int(rows[0][titles.index("totalGdmaCycle")]) > 0


def test_rates_that_need_registers_are_missing_without(session):
    profile = small_profile(1, instructions=600)
    rows = reference_table(Session.build(profile), view_of(profile), Scope()).rows
    place = [title for title, _ in COLUMNS].index("uArchURate")
    assert {row[place] for row in rows} == {"-"}


def test_a_lane_and_an_empty_capture_have_no_rows(profile, session):
    assert reference_table(session, view_of(profile), Scope(-1, 2)).rows == ()
    empty = make_profile([make_lane("TIU", 0, starts=np.zeros(0, np.int64), ends=np.zeros(0, np.int64))])
    assert reference_table(Session.build(empty), ViewState.of(0, 1), Scope()).rows == ()


async def test_the_summary_follows_the_window(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        first = text_of(screen)
        for words in ("Figures of the reference", "Parallelism(%)", "Overall", "Load: mean", "Bandwidth of GDMA",
                      "Durations", "Load of the cores"):  # fmt: skip
            assert words in first
        await press(pilot, "w w w")
        assert text_of(screen) != first
        assert screen.summary.figures == figures_of(screen.session, screen.view)


async def test_p_holds_the_figures_and_says_so(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        before = screen.summary.figures
        await press(pilot, "p w w")
        assert screen.summary.figures is before
        text = frame(pilot.app)
        assert "PAUSED (p)" in text
        assert "Paused: all cores, whole capture. p follows the view again." in text
        await press(pilot, "2 3")
        assert screen.summary.figures is before
        await press(pilot, "p")
        assert screen.summary.figures.end - screen.summary.figures.start == screen.view.span
        assert "PAUSED" not in frame(pilot.app)
        assert "window of" in frame(pilot.app)


async def test_a_pause_before_there_are_figures_still_shows_some(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2")
        screen.summary.figures = None
        screen.summary._wanted = None
        await press(pilot, "p 3")
        assert screen.summary.figures is not None


@pytest.mark.parametrize("ascii_only", [False, True])
async def test_everything_can_be_scrolled_to_at_80_columns(profile, ascii_only):
    async with opened(profile, (80, 24), ascii_only=ascii_only) as pilot:
        await press(pilot, "3 G")
        assert "Load of the cores" in frame(pilot.app)
        assert "core 1" in frame(pilot.app)
        screen = explorer(pilot)
        assert all(strip.cell_length <= 80 for strip in screen.summary.lines)
        seen = set()
        await press(pilot, "g")
        assert "Kernel functions" in frame(pilot.app).splitlines()[2]
        for _ in range(12):
            seen.update(frame(pilot.app).splitlines())
            await press(pilot, "pagedown")
        told = "\n".join(seen)
        for title, _ in COLUMNS:
            assert title in told


async def test_many_instructions_are_added_up_in_a_thread():
    profile = big_profile(30_000, cores=2)
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "w w j")
        await settled(pilot)
        assert screen.summary.figures == figures_of(screen.session, screen.view)
        assert screen.summary.charts.data.start == screen.view.start
