from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.analysis.selecting.time_scale import cell_at, edges_of, ruler

STARTS = st.integers(-(10**9), 10**15)
SPANS = st.integers(1, 10**15)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("zoom"), st.integers(1, 10**15)),
        st.tuples(st.just("pan"), st.integers(-(10**15), 10**15)),
        st.tuples(st.just("at"), st.integers(-(10**15), 2 * 10**15)),
        st.tuples(st.just("fit"), st.just(0)),
    ),
    max_size=12,
)


@given(STARTS, SPANS, CHANGES)
def test_window_and_cursor_never_leave_the_profile(start, span, changes):
    state = DisplayState.of(start, start + span)
    for kind, amount in changes:
        state = {
            "zoom": lambda state=state, amount=amount: state.zoomed(amount, 80),
            "pan": lambda state=state, amount=amount: state.panned(amount),
            "at": lambda state=state, amount=amount: state.at(amount),
            "fit": state.fitted,
        }[kind]()
        assert state.full_start <= state.start < state.end <= state.full_end
        assert state.start <= state.cursor < state.end


@given(st.integers(10**3, 10**12), st.integers(80, 200))
def test_zooming_keeps_the_cursor_in_its_place(span, cells):
    state = DisplayState.of(0, span * 1000).windowed(span, span).at(span + span // 3)
    zoomed = state.zoomed(state.span // 2, 1)
    before = (state.cursor - state.start) / state.span
    after = (zoomed.cursor - zoomed.start) / zoomed.span
    assert abs(before - after) <= 2 / zoomed.span
    assert zoomed.cursor == state.cursor


def test_fit_shows_everything_again():
    state = DisplayState.of(5, 1_000_000)
    assert state.zoomed(1000, 80).panned(300).fitted().fits_all


def test_a_shown_selection_moves_the_window_only_when_needed():
    state = DisplayState.of(0, 10_000).windowed(1000, 1000)
    assert state.showing(1200, 1300) == state
    assert state.showing(5000, 5100).start == 4550
    assert state.showing(5000, 5100).span == 1000


@given(STARTS, SPANS, st.integers(1, 300))
def test_edges_ascend_and_cover_the_window(start, span, cells):
    edges = edges_of(start, start + span, cells)
    assert len(edges) == cells + 1
    assert edges[0] == start
    assert edges[-1] == start + span
    assert (edges[1:] >= edges[:-1]).all()


@given(STARTS, SPANS, st.integers(1, 300), st.data())
def test_a_time_lies_in_the_cell_that_holds_it(start, span, cells, data):
    time = data.draw(st.integers(start, start + span - 1))
    edges = edges_of(start, start + span, cells)
    cell = cell_at(time, start, start + span, cells)
    assert edges[cell] <= time < edges[cell + 1]


@given(st.integers(0, 10**13), st.integers(1, 10**13), st.integers(1, 250))
def test_ticks_are_round_and_never_overlap(start, span, cells):
    marks = ruler(start, start + span, cells)
    end = -1
    for cell, label in marks.ticks:
        assert cell > end
        end = cell + len(label)
    assert len({label for _, label in marks.ticks}) == len(marks.ticks)


def test_ticks_have_one_unit_that_fits():
    marks = ruler(0, 695_956, 80)
    assert marks.unit.name == "us"
    assert (marks.ticks[0][1], marks.ticks[1][1]) == ("0", "100")
    close = ruler(347_000, 347_080, 80)
    assert close.ticks[0][1] == "347.00"
