"""Warm-up, steady state and outliers of lengths that are told by hand."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.analysis.steps.step_figures import FEWEST, steadiness


def judged(lengths, unusual=()):
    usual = np.ones(len(lengths), np.bool_)
    usual[list(unusual)] = False
    return steadiness(np.array(lengths, np.int64), usual)


def test_quartiles():
    found = judged([10, 20, 30, 40, 50])
    assert (found.low, found.median, found.high) == (20, 30, 40)
    assert (found.shortest, found.longest) == (10, 50)


def test_first_ones_that_take_longer_are_a_warm_up():
    found = judged([5000, 1400, 1001, 1000, 999, 1002, 1000, 998])
    assert found.warm_up == 2
    assert found.steady.tolist() == [False] * 2 + [True] * 6
    assert found.median == 1000
    assert not found.outlier.any()


def test_first_ones_with_other_launches_are_a_warm_up():
    found = judged([1000, 1000, 1000, 1000, 1000], unusual=[0, 1])
    assert found.warm_up == 2
    assert judged([1000, 1000, 1000], unusual=[0]).warm_up == 1


def test_one_in_the_middle_is_an_outlier():
    found = judged([1000, 1001, 1500, 999, 1000, 1000, 600])
    assert found.warm_up == 0
    assert np.flatnonzero(found.outlier).tolist() == [2, 6]


def test_jitter_is_no_outlier():
    assert not judged([10_000, 10_000, 10_000, 10_000, 10_020]).outlier.any()
    assert judged([10_000, 10_000, 10_000, 10_000, 10_200]).outlier.tolist() == [False] * 4 + [True]


def test_one_with_other_launches_counts_nowhere():
    found = judged([1000, 1000, 9000, 1000, 1000, 10], unusual=[2, 5])
    assert (found.median, found.longest, found.shortest) == (1000, 1000, 1000)
    assert not found.outlier.any()


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few(count):
    found = judged([700] * count)
    assert found.warm_up == 0
    assert math.isnan(found.median) == (count == 0)


def test_none_is_usual():
    found = judged([1, 2, 3], unusual=[0, 1, 2])
    assert math.isnan(found.median)
    assert found.warm_up == 0


@given(st.lists(st.tuples(st.integers(0, 10**12), st.booleans()), max_size=30))
def test_sound(rows):
    lengths = np.array([length for length, _ in rows], np.int64)
    usual = np.array([each for _, each in rows], np.bool_)
    found = steadiness(lengths, usual)
    steady = [length for place, (length, each) in enumerate(rows) if each and place >= found.warm_up]
    assert found.steady.tolist() == [each and place >= found.warm_up for place, (_, each) in enumerate(rows)]
    assert not (found.outlier & ~found.steady).any()
    if any(usual):
        assert steady, "some are steady"
        assert found.median == pytest.approx(statistics.median(steady))
        assert (found.shortest, found.longest) == (min(steady), max(steady))
        assert found.outlier.sum() * 2 <= len(steady) or len(steady) < FEWEST
