"""Charts: bins are exact, drawings are plain text that fits."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import make_lane, make_profile, session_of, small_profile
from rich.cells import cell_len

from tpuprof_tui.analysis.index.lane_index import PiecewiseRate
from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.totals.chart_data import BINS, ChartData, chart_data
from tpuprof_tui.app.drawing.charts import curve, series_curve
from tpuprof_tui.model import INT_MISSING, Role
from tpuprof_tui.views.answer import Series
from tpuprof_tui.views.curves import durations


def ints(*values):
    return np.array(values, dtype=np.int64)


MOVES = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 200), st.integers(0, 10**6)), min_size=1, max_size=20)


@given(MOVES, st.lists(st.integers(0, 800), min_size=2, max_size=12))
def test_bytes_are_spread_over_the_time_they_took(moves, edges):
    moves.sort()
    starts, lengths, sizes = (np.array(column, dtype=np.int64) for column in zip(*moves, strict=True))
    edges = np.array(sorted(edges), dtype=np.int64)
    lengths = np.maximum(lengths, 1)
    found = PiecewiseRate.of(starts, starts + lengths, sizes / lengths).between(edges)
    expected = np.zeros(len(edges) - 1)
    for start, length, size in moves:
        end = start + max(length, 1)
        for place, (low, high) in enumerate(pairwise(edges)):
            expected[place] += size * max(min(end, high) - max(start, low), 0) / (end - start)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-3)


def test_missing_sizes_move_nothing():
    lane = make_lane("GDMA", 0, starts=ints(0, BINS), ends=ints(BINS, 2 * BINS), bytes=ints(INT_MISSING, 50))
    (values,) = data_of(Query(session_of(make_profile([lane])))).bandwidth.values()
    assert values.sum() * 2 == pytest.approx(50)
    assert not values[: BINS // 2].any()


def data_of(query: Query) -> ChartData:
    return chart_data(query.work_indexes, *query.extent)


def test_data_adds_up_to_what_was_moved():
    profile = small_profile(1, event_count=600)
    session = session_of(profile)
    data = data_of(Query(session))
    for engine, values in data.bandwidth.items():
        lanes = [lane for lane in profile.lanes if lane.kind == engine]
        moved = sum(int(lane["bytes"][lane["role"] == Role.WORK].sum()) for lane in lanes)
        assert values.sum() * (profile.end_ns - profile.start_ns) / BINS == pytest.approx(moved, rel=0.02)
    work = sum(int((lane["role"] == Role.WORK).sum()) for lane in profile.lanes)
    assert int(data.durations.sum()) == work
    assert set(data.bandwidth) == {"GDMA", "SDMA", "CDMA"}


def test_a_core_counts_of_a_port_only_what_it_submitted():
    profile = small_profile(1, event_count=600)
    session = session_of(profile)
    parts = [data_of(Query(session, Scope(core))).durations.sum() for core in profile.groups.numbers]
    known = sum(int(((lane["role"] == Role.WORK) & (profile.unit_of(lane) >= 0 or lane["core"] != INT_MISSING)).sum())
                for lane in profile.lanes)  # fmt: skip
    assert sum(parts) == known


@pytest.mark.parametrize("overlapping", [False, True])
def test_sums_of_a_long_lane_are_those_of_its_rows(overlapping):
    """Windows of running sums, and the same instructions in lanes too short for any."""
    chance, count = np.random.default_rng(3), 5_000
    starts = np.cumsum(chance.integers(0, 90, count))
    ends = starts + chance.integers(0, 200, count)
    if not overlapping:
        ends[:-1] = np.minimum(ends[:-1], starts[1:])
    columns = {
        "starts": starts, "ends": ends, "role": (chance.random(count) < 0.2).astype(np.int8),
        "bytes": np.where(chance.random(count) < 0.1, INT_MISSING, chance.integers(0, 10**6, count)),
    }  # fmt: skip
    long = session_of(make_profile([make_lane("GDMA", 0, **columns)]))
    parts = [{key: values[low : low + 1_000] for key, values in columns.items()} for low in range(0, count, 1_000)]
    short = session_of(make_profile([make_lane("GDMA", core, **part) for core, part in enumerate(parts)]))
    last = int(ends.max())
    for start, end in ((0, last), (last // 3, last // 2), (last // 2, last // 2 + 50), (1, last // 5)):
        one, other = (data_of(Query(session, range=(start, end))) for session in (long, short))
        assert one.durations.tolist() == other.durations.tolist()
        assert one.bandwidth["GDMA"] == pytest.approx(other.bandwidth["GDMA"], rel=1e-6, abs=1e-6)


def test_durations_fall_between_their_bounds():
    lane = make_lane("TIU", 0, starts=ints(0, 10, 100), ends=ints(1, 15, 120), role=np.zeros(3, np.int8))
    table = durations(query_of(make_profile([lane]))).table("durations")
    assert [row[1:] for row in table.rows()] == [(1, 2, 1), (2, 5, 0), (5, 10, 1), (10, 20, 0), (20, 50, 1)]
    assert table.column("duration")[:2] == ["1 ns to 2 ns", "2 ns to 5 ns"]
    waits = make_lane("TIU", 0, starts=ints(0), ends=ints(1), role=np.full(1, Role.WAIT, np.int8))
    assert durations(query_of(make_profile([waits]))).missing


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


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("width", [24, 61, 118])
def test_curves_are_filled_as_plotext_fills_them(width, ascii_only):
    import plotext

    chance = np.random.default_rng(width)
    for values in (np.abs(chance.normal(300, 100, 240)), (chance.random(57) > 0.8) * 9e3, np.zeros(30), np.full(9, 2)):
        bins = width * (1 if ascii_only else 2)
        places = (np.arange(bins) * len(values)) // bins
        shown = values[places] if bins >= len(values) else np.array(
            [part.mean() for part in np.split(values, places[1:])]
        )  # fmt: skip
        plotext.clear_figure()
        plotext.theme("clear")
        plotext.limit_size(False, False)
        plotext.plotsize(width, 8)
        plotext.frame(False)
        top = float(shown.max()) or 1.0
        times = (1_000 + (np.arange(bins) + 0.5) * 9_000 / bins).tolist()
        plotext.plot(times, shown.tolist(), marker="*" if ascii_only else "braille", fillx=True)
        plotext.xlim(1_000, 10_000)
        plotext.ylim(0, top)
        plotext.xticks([1_000], [" "])
        plotext.yticks([0, top / 2, top], [f"{value:6.1f}" for value in (0, top / 2, top)])
        wanted = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in plotext.build().split("\n")]
        plotext.clear_figure()
        assert curve(values, 1_000, 10_000, width, 8, ascii_only=ascii_only)[:-1] == wanted[: 8 - 1]


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


def test_a_series_holds_each_value_until_the_next_and_knows_nothing_before_the_first():
    times, values = ints(250, 500), np.array([10.0, np.nan])
    lines = series_curve(Series("t", "T", "K", times, values), 0, 1000, 60, 8, ascii_only=True)
    drawn = [line[6:].ljust(54) for line in lines[:-1]]
    columns = [sum(line[place] == "*" for line in drawn) for place in range(54)]
    # what is not known is drawn as nothing, on the ground
    assert max(columns[:12]) == max(columns[29:]) == 1
    assert min(columns[16:25]) == 7
    assert series_curve(Series("t", "T", "K", ints(), np.zeros(0)), 0, 1000, 60, 8, ascii_only=True)


@pytest.mark.parametrize(("unit", "most", "labels"), [
    ("B", 3 * 2**30, ["3.0 GiB", "1.5 GiB", "0 B"]), ("B", 1000, ["1,000 B", "500 B", "0 B"]),
    ("", 3e10, ["30G", "15G", "0"]), ("%", 80.0, ["80.0", "40.0", "0.0"]),
])  # fmt: skip
def test_axes_of_values_have_labels_in_their_unit(unit, most, labels):
    lines = series_curve(Series("t", "T", unit, ints(0), np.array([float(most)])), 0, 1000, 60, 8, ascii_only=True)
    found = [re.match(r" *([^*]*?) *\*", line)[1] for line in lines[:-1]]
    assert [label for label in found if label] == labels
