"""Groups against an obvious loop, and ranges that hold what they shall."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tpuprof_tui.analysis.pivot import Frame, GroupBy, most, rows, total
from tpuprof_tui.analysis.totals.grouping import even_edges, in_ranges, next_step, wide_edges
from tpuprof_tui.model import INT_MISSING, is_missing
from tpuprof_tui.model.uniques import distinct, distinct_together


def slow(values, durations):
    """Duration lists by value, None for what is missing."""
    result = defaultdict(list)
    for value, duration in zip(values, durations, strict=True):
        result[value].append(duration)
    return result


def grouped(values, durations):
    """Count, total and longest by value, None for what is missing; values that are not missing ascend."""
    groups = GroupBy(Frame({"value": values, "took": durations}, {}), ["value"])
    found = groups.values("value")
    known = found[~is_missing(found)].tolist()
    assert known == sorted(known)
    figures = [np.asarray(figure(groups)).tolist() for figure in (rows, total("took"), most("took"))]
    return {
        None if gone else value: numbers
        for value, gone, *numbers in zip(found.tolist(), is_missing(found).tolist(), *figures, strict=True)
    }


def expected(values, durations):
    return {value: [len(each), sum(each), max(each)] for value, each in slow(values, durations).items()}


WHOLE = st.one_of(st.none(), st.integers(-3, 12), st.integers(-(2**62), 2**62))


@given(st.lists(st.tuples(WHOLE, st.integers(0, 10**9)), max_size=60))
def test_whole_numbers_group_as_a_loop_groups_them(rows):
    values = [value for value, _ in rows]
    durations = [duration for _, duration in rows]
    column = np.array([INT_MISSING if value is None else value for value in values], dtype=np.int64)
    assert grouped(column, np.array(durations, dtype=np.int64)) == expected(values, durations)


@given(st.lists(st.tuples(st.integers(-1, 5), st.integers(0, 10**9)), min_size=1, max_size=60))
def test_codes_group_as_a_loop_groups_them(rows):
    codes = np.array([code for code, _ in rows], dtype=np.int32)
    durations = [duration for _, duration in rows]
    found = grouped(codes, np.array(durations, dtype=np.int64))
    assert found == expected([None if code < 0 else code for code in codes.tolist()], durations)


@given(st.lists(st.tuples(st.one_of(st.none(), st.floats(-1e6, 1e6)), st.integers(0, 99)), min_size=1, max_size=40))
def test_floats_group_as_a_loop_groups_them(rows):
    values = [None if value is None else value + 0.0 for value, _ in rows]
    durations = [duration for _, duration in rows]
    column = np.array([np.nan if value is None else value for value in values])
    assert grouped(column, np.array(durations, dtype=np.int64)) == expected(values, durations)


@given(st.integers(-(10**12), 10**12), st.integers(0, 10**12))
def test_even_ranges_hold_all_and_are_not_many(low, span):
    edges = even_edges(low, low + span)
    assert edges[0] <= low + 1e-9 * abs(low)
    assert edges[-1] > (low + span) - 1e-9 * abs(low + span)
    assert 2 <= len(edges) <= 23
    assert edges == sorted(set(edges))


@given(st.floats(0, 1e15), st.floats(0, 1e15))
@example(0.0, 5e-324)
def test_wide_ranges_hold_all_and_are_not_many(one, other):
    low, high = sorted((one, other))
    edges = wide_edges(low, high)
    assert edges[0] <= low
    assert edges[-1] > high
    assert len(edges) <= 28
    assert edges == sorted(set(edges))


@pytest.mark.parametrize(("size", "step"), [(1, 1), (1.5, 2), (3, 5), (7, 10), (0.03, 0.05), (20, 20), (0, 1)])
def test_steps_are_round(size, step):
    assert math.isclose(next_step(size), step)


def test_values_fall_into_their_ranges():
    found = in_ranges(np.array([0, 1, 9, 10, 19, INT_MISSING]), [0.0, 1.0, 10.0, 20.0])
    assert found.tolist() == [0, 1, 1, 2, 2, INT_MISSING]
    assert in_ranges(np.array([0.5, np.nan]), [0.0, 1.0]).tolist() == [0, INT_MISSING]


@given(st.lists(st.tuples(st.integers(-1, 5), st.integers(-1, 200), st.integers(0, 3)), max_size=40))
def test_combinations_of_codes_are_numbered_in_their_order(rows):
    codes = [np.array([row[number] for row in rows], kind) for number, kind in enumerate((np.int8, np.int16, np.int32))]
    places, count = distinct_together(*codes)
    known = sorted(set(rows))
    assert count == len(known)
    assert places.tolist() == [known.index(row) for row in rows]


def test_small_integers_far_apart_are_told_apart():
    found, places = distinct(np.array([-100, 100, 27, -100], np.int8))
    assert found.tolist() == [-100, 27, 100]
    assert places.tolist() == [0, 2, 1, 0]
