"""Common subsequences: against an exact aligner, and long ones in little time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.analysis.compare import match
from tpuprof_tui.analysis.compare.match import longest_common, match_sequences

CODES = st.lists(st.integers(0, 5), max_size=40)


def slow(base: list[int], other: list[int]) -> int:
    """Length of the longest common subsequence, by its definition."""
    row = [0] * (len(other) + 1)
    for one in base:
        above = row
        row = [0]
        for place, two in enumerate(other, 1):
            row.append(above[place - 1] + 1 if one == two else max(above[place], row[-1]))
    return row[-1]


def check(base: np.ndarray, other: np.ndarray) -> int:
    """Whether matches are a common subsequence, the same whichever comes first; how long it is."""
    ours, theirs = match_sequences(base, other)
    assert (base[ours] == other[theirs]).all()
    assert (np.diff(ours) > 0).all()
    assert (np.diff(theirs) > 0).all()
    back = match_sequences(other, base)
    assert (back[1].tolist(), back[0].tolist()) == (ours.tolist(), theirs.tolist())
    return len(ours)


@given(CODES, CODES)
def test_short_ones_are_matched_exactly(base, other):
    ours, other_codes = np.array(base, np.int64), np.array(other, np.int64)
    assert check(ours, other_codes) == len(longest_common(ours, other_codes)[0]) == slow(base, other)


@given(st.lists(st.integers(0, 60), max_size=120), st.lists(st.integers(0, 60), max_size=120), st.data())
def test_anchors_and_pieces_find_common_subsequences(base, other, data):
    """Also where next to nothing may be compared exactly."""
    exact, match._EXACT = match._EXACT, data.draw(st.sampled_from((0, 20, 400)))
    try:
        other = [*base[: data.draw(st.integers(0, len(base)))], *other]
        length = check(np.array(base, np.int64), np.array(other, np.int64))
        assert length <= slow(base, other)
    finally:
        match._EXACT = exact


def test_long_ones_with_few_changes_are_matched_almost_as_well_as_can_be():
    random = np.random.default_rng(1)
    for base in (np.tile(random.integers(0, 100, 500), 100), np.arange(50_000), random.integers(0, 3, 50_000)):
        kept = random.random(len(base)) >= 0.002
        other = np.where(random.random(len(base)) < 0.002, -1, base)[kept]
        # all that was neither dropped nor changed can be matched
        best = int((other >= 0).sum())
        assert check(base, other) >= best - 0.01 * len(base)
