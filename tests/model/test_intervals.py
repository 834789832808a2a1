from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.model.intervals import Intervals

SPAN = 60
pairs = st.lists(st.tuples(st.integers(0, SPAN), st.integers(0, 15)).map(lambda p: (p[0], p[0] + p[1])), max_size=25)


def built(spans: list[tuple[int, int]]) -> Intervals:
    return Intervals.union([start for start, _ in spans], [end for _, end in spans])


def moments(spans: list[tuple[int, int]]) -> set[int]:
    """Slow and obvious: every ns that is covered."""
    return {moment for start, end in spans for moment in range(start, end)}


def moments_of(intervals: Intervals) -> set[int]:
    return moments(list(zip(intervals.starts.tolist(), intervals.ends.tolist(), strict=True)))


def is_sound(intervals: Intervals) -> bool:
    lengths = intervals.ends - intervals.starts
    return (
        bool((lengths > 0).all())
        and bool((intervals.starts[1:] >= intervals.ends[:-1]).all())
        and intervals.cum.tolist() == [0, *np.cumsum(lengths).tolist()]
    )


@given(pairs)
def test_union_covers_the_same_moments(spans):
    union = built(spans)
    assert is_sound(union)
    assert moments_of(union) == moments(spans)
    assert union.total == len(moments(spans))


@given(pairs, st.lists(st.integers(-5, SPAN + 30), min_size=1, max_size=10))
def test_covered_counts_the_moments_before_each_edge(spans, edges):
    covered = built(spans).covered(np.array(edges, dtype=np.int64))
    assert covered.tolist() == [len([moment for moment in moments(spans) if moment < edge]) for edge in edges]


@given(pairs, st.integers(-5, SPAN + 30), st.integers(-5, SPAN + 30))
def test_a_window_holds_its_moments(spans, start, end):
    inside = {moment for moment in moments(spans) if start <= moment < end}
    union = built(spans)
    assert union.between(start, end) == len(inside)
    assert moments_of(union.clip(start, end)) == inside
    assert is_sound(union.clip(start, end))


@given(pairs, pairs)
def test_set_operations(one, other):
    left, right = built(one), built(other)
    for result, expected in (
        (left.intersect(right), moments(one) & moments(other)),
        (left.difference(right), moments(one) - moments(other)),
        (left.union_with(right), moments(one) | moments(other)),
    ):
        assert is_sound(result)
        assert moments_of(result) == expected


def test_disjoint_intervals_are_not_copied():
    starts, ends = np.array([0, 10, 20]), np.array([10, 15, 30])
    union = Intervals.union(starts, ends)
    assert np.shares_memory(union.starts, starts)
    assert np.shares_memory(union.ends, ends)


def test_nothing_covers_nothing():
    empty = Intervals.empty()
    assert len(empty) == 0
    assert empty.total == 0
    assert empty.covered(np.array([1, 2])).tolist() == [0, 0]
    assert empty.between(0, 10) == 0
    assert len(empty.intersect(empty)) == 0
    assert len(empty.clip(0, 5)) == 0
