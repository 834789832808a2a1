"""Charts: bins are exact, drawings are plain text that fits."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import make_lane, make_profile, small_profile
from rich.cells import cell_len

from tpuprof_tui.app.charts import BINS, BOUNDS, bars, bytes_in_bins, chart_data, curve, histogram
from tpuprof_tui.app.session import Session
from tpuprof_tui.app.state import Scope, ViewState
from tpuprof_tui.model import INT_MISSING, Role


def ints(*values):
    return np.array(values, dtype=np.int64)


MOVES = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 200), st.integers(0, 10**6)), min_size=1, max_size=20)


@given(MOVES, st.lists(st.integers(0, 800), min_size=2, max_size=12))
def test_bytes_are_spread_over_the_time_they_took(moves, edges):
    moves.sort()
    starts, lengths, sizes = (np.array(column, dtype=np.int64) for column in zip(*moves, strict=True))
    edges = np.array(sorted(edges), dtype=np.int64)
    found = bytes_in_bins(starts, starts + lengths, sizes, edges)
    expected = np.zeros(len(edges) - 1)
    for start, length, size in moves:
        end = start + max(length, 1)
        for place, (low, high) in enumerate(pairwise(edges)):
            expected[place] += size * max(min(end, high) - max(start, low), 0) / (end - start)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-3)


def test_missing_sizes_move_nothing():
    found = bytes_in_bins(ints(0, 10), ints(10, 20), ints(INT_MISSING, 50), ints(0, 10, 20))
    assert found.tolist() == [0, 50]


def test_data_adds_up_to_what_was_moved():
    profile = small_profile(1, instructions=600)
    session = Session.build(profile)
    data = chart_data(session, ViewState.of(profile.start_ns, profile.end_ns), Scope())
    for engine, values in data.bandwidth.items():
        lanes = [lane for lane in profile.lanes if lane.engine == engine]
        moved = sum(int(lane["bytes"][lane["role"] == Role.WORK].sum()) for lane in lanes)
        assert values.sum() * (profile.end_ns - profile.start_ns) / BINS == pytest.approx(moved, rel=0.02)
    work = sum(int((lane["role"] == Role.WORK).sum()) for lane in profile.lanes)
    assert int(data.durations.sum()) == work
    assert set(data.bandwidth) == {"GDMA", "SDMA", "CDMA"}


def test_a_core_counts_of_a_port_only_what_it_submitted():
    profile = small_profile(1, instructions=600)
    session = Session.build(profile)
    view = ViewState.of(profile.start_ns, profile.end_ns)
    parts = [chart_data(session, view, Scope(core)).durations.sum() for core in profile.cores]
    known = sum(int(((lane["role"] == Role.WORK) & (lane.core >= 0 or lane["core"] != INT_MISSING)).sum())
                for lane in profile.lanes)  # fmt: skip
    assert sum(parts) == known


def test_durations_fall_between_their_bounds():
    lane = make_lane("TIU", 0, starts=ints(0, 10, 100), ends=ints(1, 15, 120), role=np.zeros(3, np.int8))
    data = chart_data(Session.build(make_profile([lane])), ViewState.of(0, 200), Scope())
    labels, counts = histogram(data.durations)
    assert dict(zip(labels, counts, strict=True)) == {
        "< 2 ns": 1,
        "< 5 ns": 0,
        "< 10 ns": 1,
        "< 20 ns": 0,
        "< 50 ns": 1,
    }
    assert len(data.durations) == len(BOUNDS) + 1
    assert histogram(np.zeros(len(BOUNDS) + 1, np.int64)) == ([], [])


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("width", [24, 40, 78, 120])
def test_curves_fit_and_are_plain_text(width, ascii_only):
    values = np.abs(np.sin(np.linspace(0, 9, BINS))) * 100
    lines = curve(values, 10**9, 10**9 + 22_000, width, 8, ascii_only=ascii_only)
    assert len(lines) == 8
    assert all(cell_len(line) <= width for line in lines)
    assert "\x1b" not in "".join(lines)
    assert lines[0].strip().startswith(("100.0", "9"))
    if ascii_only:
        assert "".join(lines).isascii()
        assert "?" not in "".join(lines)


def test_higher_values_are_drawn_higher():
    values = np.zeros(BINS)
    values[BINS // 2 :] = 10.0
    lines = curve(values, 0, 1000, 60, 8, ascii_only=True)
    assert "*" in lines[0][40:]
    assert "*" not in lines[0][:25]


def test_a_curve_of_nothing_and_one_without_room_do_no_harm():
    assert curve(np.zeros(BINS), 0, 10, 60, 8, ascii_only=False)
    assert curve(np.zeros(BINS), 0, 10, 10, 8, ascii_only=False) == []
    assert curve(np.zeros(0), 0, 10, 60, 8, ascii_only=False) == []


def test_bars_tell_names_and_values_beside_their_length():
    lines = bars(["a", "bb"], [10.0, 5.0], ["10 x", "5 x"], 40, ascii_only=True)
    assert lines[0].startswith("  a 10 x ")
    assert lines[1].startswith(" bb  5 x ")
    assert lines[0].count("#") == pytest.approx(2 * lines[1].count("#"), abs=1)
    assert lines[0].count("#") > 20
    assert all(set(line[9:]) <= {"#", " "} for line in lines)


def test_names_of_bars_cannot_steer_the_terminal():
    text = "".join(bars(["\x1b[31mred\n", "x"], [1.0, 0.0], ["1", "0"], 40, ascii_only=False))
    assert "\x1b" not in text
    assert "\n" not in text


def test_bars_of_nothing():
    assert bars([], [], [], 40, ascii_only=False) == []
    assert bars(["a"], [0.0], ["0"], 40, ascii_only=True)
