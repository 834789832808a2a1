"""Events that overlap are dealt to sub-lanes whose sums stay exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.model import sublanes
from tpuprof_tui.model.sublanes import packed, split_overlaps


def times(pairs):
    ordered = sorted((begin, begin + length) for begin, length in pairs)
    return np.array([p[0] for p in ordered], np.int64), np.array([p[1] for p in ordered], np.int64)


def depth(start, end):
    """How many events run at once at most."""
    steps = sorted([(t, 1) for t in start.tolist()] + [(t, -1) for t in end.tolist()])
    return max(np.cumsum([step for _, step in steps]).tolist(), default=0)


def overlaps(start, end):
    return bool((start[1:] < np.maximum.accumulate(end)[:-1]).any())


SOME = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), max_size=40)


@given(SOME)
def test_events_of_one_sublane_never_overlap(pairs):
    start, end = times(pairs)
    dealt, count = split_overlaps(start, end)
    if dealt is None:
        assert count == 1
        assert not overlaps(start, end)
        return
    assert count == dealt.max() + 1
    for lane in range(count):
        mine = dealt == lane
        assert mine.any()
        assert not overlaps(start[mine], end[mine])


@given(SOME)
def test_no_more_sublanes_than_needed(pairs):
    start, end = times(pairs)
    dealt, count = split_overlaps(start, end)
    assert count == max(depth(start, end), 1)
    assert dealt is None or dealt.min(initial=0) == 0


CROWDS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 300)), min_size=20, max_size=200)


@given(SOME | CROWDS)
def test_each_event_takes_the_first_line_that_is_free(pairs):
    start, end = times(pairs)
    lines = packed(start, end)
    last: list[int] = []
    for row, (begin, finish) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        line = next((number for number, until in enumerate(last) if until <= begin), len(last))
        last[line:] = [finish, *last[line + 1 :]]
        assert (0 if lines is None else lines[row]) == line


@given(st.lists(st.integers(1, 9), max_size=300))
def test_a_path_visits_what_each_place_leads_to(steps):
    leads = np.minimum(np.arange(len(steps)) + np.array(steps, np.int64), len(steps))
    wanted, at = [], 0
    while at < len(steps):
        wanted.append(at)
        at = int(leads[at])
    assert sublanes._path(leads).tolist() == wanted


@pytest.mark.parametrize("count", [0, 1])
def test_one_event_needs_one_lane(count):
    assert split_overlaps(np.zeros(count, np.int64), np.ones(count, np.int64)) == (None, 1)


def test_events_that_touch_do_not_overlap():
    start = np.arange(5, dtype=np.int64)
    assert split_overlaps(start, start + 1) == (None, 1)


def test_events_in_pairs_are_dealt_in_turn():
    start = np.arange(0, 60, 10, dtype=np.int64)
    dealt, count = split_overlaps(start, start + 15)
    assert count == 2
    assert dealt.tolist() == [0, 1, 0, 1, 0, 1]


def test_depth_beyond_the_last_sublane_shares_it(monkeypatch):
    monkeypatch.setattr(sublanes, "_MOST_SUBLANES", 3)
    start = np.arange(20, dtype=np.int64)
    dealt, count = split_overlaps(start, start + 100)
    assert count == 3
    assert dealt.tolist() == [0, 1, *[2] * 18]
