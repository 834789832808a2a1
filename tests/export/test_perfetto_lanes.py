"""Where overlapping slices go, compared with the rule carried out slice by slice."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.formats.perfetto.tracks import by_time, first_free_lanes, nested_tracks
from tpuprof_tui.model import sublanes

spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 25)), max_size=50)
crowds = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 300)), min_size=20, max_size=60)


def times(pairs):
    rows = sorted((start, start + length) for start, length in pairs)
    start = np.array([row[0] for row in rows], dtype=np.int64)
    return start, np.array([row[1] for row in rows], dtype=np.int64)


def by_the_rule(start, end):
    lanes: list[list[int]] = []
    last: list[int] = []
    for place, (begin, finish) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        for number, until in enumerate(last):
            if until <= begin:
                lanes[number].append(place)
                last[number] = finish
                break
        else:
            lanes.append([place])
            last.append(finish)
    return lanes


@given(spans | crowds)
def test_each_slice_goes_to_the_first_free_lane(pairs):
    start, end = times(pairs)
    wanted = by_the_rule(start, end)
    found = first_free_lanes(start, end)
    assert [lane.tolist() for lane in found or [np.arange(len(start))]] == (wanted or [[]])


def test_many_lanes_are_filled_as_few_are():
    start, end = np.arange(40), np.arange(40) + 100
    found = first_free_lanes(start, end)
    assert len(found) == 40 > sublanes._SWEPT
    assert [lane.tolist() for lane in found] == by_the_rule(start, end)


@given(spans)
def test_order_by_start_then_end(pairs):
    start = np.array([pair[0] for pair in pairs], dtype=np.int64)
    end = start + np.array([pair[1] for pair in pairs], dtype=np.int64)
    order = by_time(start, end)
    places = np.arange(len(start)) if order is None else order
    rows = list(zip(start.tolist(), end.tolist(), strict=True))
    assert places.tolist() == sorted(range(len(rows)), key=rows.__getitem__)


threaded = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20), st.integers(0, 2)), max_size=40)


@given(threaded)
def test_nested_slices_close_what_they_opened_last(rows):
    start = np.array([row[0] for row in rows], dtype=np.int64)
    end = start + np.array([row[1] for row in rows], dtype=np.int64)
    thread = np.array([row[2] for row in rows], dtype=np.int64)
    seen: list[int] = []
    for places, begins in nested_tracks(start, end, thread):
        opened: list[int] = []
        now = 0
        for place, begin in zip(places.tolist(), begins.tolist(), strict=True):
            moment = int(start[place] if begin else end[place])
            assert moment >= now
            now = moment
            if begin:
                assert all(end[outer] >= end[place] for outer in opened)
                opened.append(place)
                seen.append(place)
            else:
                assert opened.pop() == place
        assert not opened
        assert len(set(thread[places].tolist())) == 1
    assert sorted(seen) == list(range(len(rows)))


def test_slices_within_one_another_share_a_track():
    start, end = np.array([0, 10, 20, 40, 100]), np.array([90, 80, 30, 50, 110])
    ((places, begins),) = nested_tracks(start, end)
    assert places.tolist() == [0, 1, 2, 2, 3, 3, 1, 0, 4, 4]
    assert begins.tolist() == [True, True, True, False, True, False, False, False, True, False]


def test_slices_that_cross_do_not():
    first, second = nested_tracks(np.array([0, 5]), np.array([10, 15]))
    assert (first[0].tolist(), second[0].tolist()) == ([0, 0], [1, 1])


def test_deep_slices_have_tracks_of_their_own():
    """On one track only so many are within one another; all have a begin and an end."""
    count = 1200
    start = np.arange(count + 1)
    end = np.append(3 * count - start[:-1], 3 * count)
    start[-1] = count + 7  # within the last
    end[-1] = count + 8
    tracks = nested_tracks(start, end)
    assert [len(places) // 2 for places, _ in tracks] == [511, 511, 179]
    for places, begins in tracks:
        depth = np.cumsum(np.where(begins, 1, -1))
        assert (depth.max() <= 511, depth.min(), depth[-1]) == (True, 0, 0)
        moments = np.where(begins, start[places], end[places])
        assert (np.diff(moments) >= 0).all()
