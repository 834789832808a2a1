"""The summary follows window, scope and filter, holds when paused, and tells the reference's figures."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from profiles import big_profile, make_lane, make_profile, selected_query, session_of, small_profile
from screen import explorer, frame, opened, press, settled

from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope
from tpuprof_tui.app.panes.summary.page import SummaryAnswers
from tpuprof_tui.export.selection import selected_profile
from tpuprof_tui.model.vocabulary import DETAIL
from tpuprof_tui.sources.sophgo.files.summary_table import COLUMNS, summary_rows
from tpuprof_tui.sources.sophgo.views.published_summary import published
from tpuprof_tui.views.answer import Answer
from tpuprof_tui.views.summary_views import quick_views, slow_views


@pytest.fixture(scope="module")
def profile():
    return small_profile(2, event_count=600)


def view_of(profile):
    return DisplayState.of(profile.start_ns, profile.end_ns)


def text_of(screen) -> str:
    return "\n".join(strip.text for strip in screen.summary.lines)


def rows_of(asked: Query) -> list[tuple[object, ...]]:
    """The converter's figures that a view tells; none where it tells none."""
    answer = published(asked)
    return answer.table("published").rows() if answer.tables else []


def expected(profile) -> list[tuple[object, ...]]:
    """The same from the rows of ``summary.txt`` of a profile that holds nothing else."""
    rate = None if not profile.has(DETAIL) else slice(5, 6)
    return [
        (str(row.values[0]), *row.values[1:5], *((None,) if rate is None else row.values[rate]), *row.values[6:])
        for row in summary_rows(query_of(profile))
    ]


def test_the_whole_capture_has_the_reference_s_own_rows(profile, session):
    table = published(Query(session)).table("published")
    assert len(table.columns) == len(COLUMNS)
    assert table.rows() == expected(profile)
    assert table.rows()[-1][0] == "Overall"


@pytest.mark.parametrize("core", [-1, 0, 1])
def test_a_window_has_the_rows_of_an_export_of_that_range(profile, session, core):
    state = view_of(profile)
    state = state.windowed(state.start + state.span // 3, state.span // 5)
    cores = None if core < 0 else frozenset({core})
    window = state.start, state.end
    wanted = expected(selected_profile(selected_query(profile, cores, *window)))
    assert wanted
    found = rows_of(Query(session, Scope(core), window))
    # the total time is that of the window, not of what is left of the capture
    assert {row[2] for row in found} == {window[1] - window[0]}
    assert [(row[0], *row[4:]) for row in found] == [(row[0], *row[4:]) for row in wanted]


def test_a_filter_counts_only_what_passes(session):
    table = published(Query(session, Scope(0), filter="engine=GDMA")).table("published")
    assert table.column("tiu_cycles")[0] == 0
    assert table.column("gdma_cycles")[0] > 0


def test_rates_that_need_registers_are_missing_without():
    table = published(Query(session_of(small_profile(1, event_count=600)))).table("published")
    assert set(table.column("uarch_rate")) == {None}


def test_a_lane_and_an_empty_capture_have_no_rows(session):
    assert rows_of(Query(session, Scope(-1, 2))) == []
    empty = make_profile([make_lane("TIU", 0, starts=np.zeros(0, np.int64), ends=np.zeros(0, np.int64))])
    assert rows_of(Query(session_of(empty))) == []


def told(answers: Mapping[str, Answer]) -> dict[str, list[object]]:
    """All tables and series of some views."""
    return {
        f"{name} {key}": values
        for name, each in answers.items()
        for key, values in (
            *((table.key, table.rows()) for table in each.tables),
            *((series.key, series.values.tolist()) for series in each.series),
        )
    }


def asked(screen) -> dict[str, list[object]]:
    """What views say of the state of the screen."""
    query = Query.of_state(screen.session, screen.state.figures_state, screen.state.scope)
    return told({**quick_views(query), **dict(slow_views(query))})


async def test_the_summary_follows_the_window(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        first = text_of(screen)
        for words in ("As bigTpuProfile counts", "Parallelism", "Overall", "Mean load", "Bandwidth of GDMA",
                      "Durations of work"):  # fmt: skip
            assert words in first
        await press(pilot, "w w w")
        assert text_of(screen) != first
        assert told(screen.summary.answers.by_view) == asked(screen)


async def test_p_holds_the_figures_and_says_so(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        before = screen.summary.answers.answered_query
        await press(pilot, "p w w")
        assert screen.summary.answers.answered_query is before
        text = frame(pilot.app)
        assert "PAUSED (p)" in text
        assert "Paused: all cores, whole capture. p follows the screen again." in text
        await press(pilot, "2 3")
        assert screen.summary.answers.answered_query is before
        await press(pilot, "p")
        assert screen.summary.answers.answered_query.range == (screen.state.start, screen.state.end)
        assert "PAUSED" not in frame(pilot.app)
        assert "window of" in frame(pilot.app)


async def test_a_pause_before_there_are_figures_still_shows_some(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2")
        screen.summary.answers = SummaryAnswers(screen.session, screen.state)
        await press(pilot, "p 3")
        assert screen.summary.answers.by_view


@pytest.mark.parametrize("ascii_only", [False, True])
async def test_everything_can_be_scrolled_to_at_80_columns(profile, ascii_only):
    async with opened(profile, (80, 24), ascii_only=ascii_only) as pilot:
        await press(pilot, "3 G")
        assert "Bandwidth of " in "\n".join(frame(pilot.app).splitlines())
        screen = explorer(pilot)
        assert all(strip.cell_length <= 80 for strip in screen.summary.lines)
        seen = set()
        await press(pilot, "g")
        assert "Kernel functions" in frame(pilot.app).splitlines()[3]
        for _ in range(12):
            seen.update(frame(pilot.app).splitlines())
            await press(pilot, "pagedown")
        lines = "\n".join(seen)
        for title in ("Overall", "SdmaDdrAvgBW", "Durations of work", "Bandwidth of SDMA", "Mean load"):
            assert title in lines


async def test_many_instructions_are_added_up_in_a_thread():
    profile = big_profile(30_000, cores=2)
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "w w j")
        await settled(pilot)
        assert told(screen.summary.answers.by_view) == asked(screen)
