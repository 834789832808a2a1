from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import big_profile, make_lane

from tpuprof_tui.analysis.index.lane_index import build_index, cells, count_starting, event_at, rows_between
from tpuprof_tui.model import Role

SPAN = 80
events = st.lists(st.tuples(st.integers(0, SPAN), st.integers(0, 20), st.sampled_from(list(Role))), max_size=20)
edge_lists = st.lists(st.integers(-10, SPAN + 30), min_size=2, max_size=12).map(sorted)


def indexed(spans):
    starts = [start for start, _, _ in spans]
    lane = make_lane(starts=starts, ends=[s + d for s, d, _ in spans], roles=[role for _, _, role in spans])
    return build_index(lane)


def rows_of(index):
    """(start, end) of each row as it is found: no length counts as 1 ns."""
    starts, ends = index.lane["start"].tolist(), index.lane["end"].tolist()
    return [(start, max(end, start + 1)) for start, end in zip(starts, ends, strict=True)]


def rows_running(index, start, end):
    return [row for row, (begin, until) in enumerate(rows_of(index)) if begin < end and until > start and end > start]


def moments(index, role):
    lane = index.lane
    spans = zip(lane["start"].tolist(), lane["end"].tolist(), lane["role"].tolist(), strict=True)
    return {moment for start, end, found in spans if found == role for moment in range(start, end)}


@given(events, edge_lists)
def test_cells_hold_exactly_what_runs_in_them(spans, edges):
    index = indexed(spans)
    found = cells(index, np.array(edges, dtype=np.int64))
    counted: set[int] = set()
    for role, sums in ((Role.WORK, found.busy), (Role.WAIT, found.wait), (Role.SYNC, found.sync)):
        ran = moments(index, role) - counted
        counted |= ran
        slow = [len([m for m in ran if a <= m < b]) for a, b in pairwise(edges)]
        assert sums.tolist() == slow
    running = [rows_running(index, a, b) for a, b in pairwise(edges)]
    assert found.count.tolist() == [len(rows) for rows in running]
    assert found.first.tolist() == [rows[0] if rows else -1 for rows in running]
    assert int(found.busy.sum()) == index.work.between(edges[0], edges[-1])


@given(events, st.integers(-10, SPAN + 30), st.integers(0, 40))
def test_rows_of_a_window(spans, start, length):
    index = indexed(spans)
    rows = rows_between(index, start, start + length)
    numbers = list(range(len(index.lane)))[rows] if isinstance(rows, slice) else rows.tolist()
    assert numbers == rows_running(index, start, start + length)
    found = [row for row in range(len(index.lane)) if start <= index.starts[row] < start + length]
    assert count_starting(index, start, start + length) == len(found)


@given(events, st.integers(-10, SPAN + 30), st.integers(0, 30))
def test_event_at_a_time(spans, time, near):
    index = indexed(spans)
    row = event_at(index, time, near)
    running = rows_running(index, time, time + 1)
    if running:
        assert row == running[-1]
        return
    distances = [begin - time if begin > time else time - (until - 1) for begin, until in rows_of(index)]
    if row < 0:
        assert all(distance > near for distance in distances)
    else:
        assert distances[row] == min(distances) <= near


@given(st.integers(1, 200), st.integers(0, 9_000), st.integers(1, 60_000))
def test_cells_sum_to_busy_time_at_any_zoom(count, start, width):
    profile = big_profile(2000, cores=1, ports=1, seed=1)
    for lane in profile.lanes:
        index = build_index(lane)
        edges = np.linspace(start, start + width, count + 1).astype(np.int64)
        found = cells(index, edges)
        for filled, spans in ((found.busy, index.work), (found.wait, index.wait), (found.sync, index.sync)):
            assert int(filled.sum()) == spans.between(int(edges[0]), int(edges[-1]))
        assert bool((found.busy <= np.diff(edges)).all())


def test_a_lane_without_events():
    index = build_index(make_lane(starts=[], ends=[]))
    found = cells(index, np.array([0, 10, 20]))
    assert found.busy.tolist() == found.count.tolist() == [0, 0]
    assert found.first.tolist() == [-1, -1]
    assert event_at(index, 5, 100) == -1
    assert rows_between(index, 0, 10) == slice(0, 0)


@pytest.mark.parametrize(
    ("time", "near", "row"), [(5, 0, 0), (10, 0, -1), (10, 1, 0), (19, 5, 1), (14, 5, 0), (30, 0, 2)]
)
def test_nearest_event(time, near, row):
    index = build_index(make_lane(starts=[0, 20, 30], ends=[10, 25, 30]))
    assert event_at(index, time, near) == row


def test_simple_lanes_share_the_models_arrays():
    lane = make_lane(starts=[0, 10, 20], ends=[5, 15, 25])
    index = build_index(lane)
    assert np.shares_memory(index.work.starts, lane["start"])
    assert np.shares_memory(index.max_end, lane["end"])


def numbered(rows):
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
