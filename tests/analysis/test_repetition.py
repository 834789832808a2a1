"""Repeated sequences of launches: a slow, obvious judge, and runs whose structure is known."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.analysis.steps import repetition
from tpuprof_tui.analysis.steps.repetition import Ints, Level, anchors, find_level, levels_within, signatures

#: Few names in pieces that come again: what repeats by chance, too.
pieces = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=4)
sequences = pieces.flatmap(
    lambda some: st.lists(st.sampled_from(some), min_size=1, max_size=12).map(
        lambda each: [launch for piece in each for launch in piece]
    )
)
#: Launches of a run: an embedding, some layers, a head.
FIRST, LAYER, LAST = [900, 901], [10, 11, 12, 10, 13], [902, 903, 904]


def find_levels(codes: Ints) -> tuple[Level, ...]:
    """The outermost repetitions, and what repeats within them."""
    top = find_level(codes)
    return () if top is None else (top, *levels_within(codes, top))


def differ(launches: list[int], place: int, length: int, number: int) -> bool:
    """Whether launches that stand so far apart differ."""
    return launches[place + number] != launches[place + number + length]


def first_of_two(launches: list[int], place: int, length: int, width: int) -> bool:
    """Whether the launches one place before are not followed by the same ones as far away."""
    if length < repetition.SHORTEST:
        return False
    before = launches[place - 1 : place - 1 + width]
    distances = (n for n in range(1, len(launches)) if launches[place - 1 + n : place - 1 + n + width] == before)
    return place == 0 or next(distances, 0) != length


def judged_anchors(launches: list[int], least: float) -> set[tuple[int, int, int, int, int]]:
    """Slow and obvious: every few launches in a row, every two neighbouring occurrences, compared launch by launch."""
    found = set()
    size = len(launches)
    for width in repetition.WIDTHS:
        for gram in {tuple(launches[place : place + width]) for place in range(size - width + 1)}:
            places = [place for place in range(size - width + 1) if tuple(launches[place : place + width]) == gram]
            lengths: dict[int, int] = {}
            before: dict[int, int] = {}
            for here, there in pairwise(places):
                length = there - here
                if launches[here:there] == launches[there : there + length]:
                    lengths.setdefault(here, length)
                    before[there] = length
                elif first_of_two(launches, here, length, width) and max(3 * length, 2) >= least * size:
                    left = next((n for n in range(here + 1) if n == here or differ(launches, here, length, -n - 1)), 0)
                    right = next(n for n in range(size) if there + n == size or differ(launches, here, length, n))
                    if left < length <= left + right and 2 * length >= least * size:
                        found.add((here, width, length, 2 * length, left))
            lengths |= before
            covered = sum(lengths.values())
            if not lengths or covered < max(least * size, 1):
                continue
            told = Counter(lengths.values())
            usual = max(told, key=lambda length, told=told: (length * told[length], -length))
            if usual < repetition.SHORTEST:
                continue
            as_long = usual / 2 <= places[1] - places[0] <= 2 * usual
            found.add((places[0] if as_long else min(lengths), width, usual, covered, 0))
    return found


@given(sequences, st.sampled_from([0.0, 1 / 3, 1 / 2]))
def test_anchors_are_those_of_the_judge(launches, least):
    found = anchors(np.array(launches, np.int64) * 7 - 9, least)
    assert {tuple(each) for each in found.T.tolist()} == judged_anchors(launches, least)


@given(sequences)
def test_signatures_are_equal_where_launches_are(launches):
    codes = np.array(launches, np.int64)
    parts = [(start, stop) for start in range(len(codes) + 1) for stop in range(start, len(codes) + 1)]
    hashes = signatures(codes, *(np.array(each) for each in zip(*parts, strict=True))).tolist()
    told: dict[tuple[int, ...], int] = {}
    for (start, stop), value in zip(parts, hashes, strict=True):
        assert told.setdefault(tuple(launches[start:stop]), value) == value
    assert len(set(told.values())) == len(told)


def held(launches: list[int], level: Level) -> list[list[int]]:
    return [launches[start:stop] for start, stop in zip(level.start.tolist(), level.stop.tolist(), strict=True)]


@given(sequences)
def test_levels_are_sound_whatever_is_launched(launches):
    levels = find_levels(np.array(launches, np.int64))
    above = [(0, len(launches))]
    for number, level in enumerate(levels):
        assert (level.start < level.stop).all()
        assert (level.start[1:] >= level.stop[:-1]).all(), "none overlaps the next"
        for start, stop, parent in zip(level.start, level.stop, level.parent.tolist(), strict=True):
            begin, end = above[max(parent, 0)]
            assert (parent < 0) == (number == 0)
            assert begin <= start < stop <= end
        told = held(launches, level)
        usual = [each for each, alike in zip(told, level.usual, strict=True) if alike]
        assert usual
        assert all(each == usual[0] for each in usual)
        assert all(each != usual[0] for each, alike in zip(told, level.usual, strict=True) if not alike)
        above = list(zip(level.start.tolist(), level.stop.tolist(), strict=True))


def test_steps_and_layers_of_a_plain_run():
    launches = (FIRST + LAYER * 4 + LAST) * 5
    steps, layers = find_levels(np.array(launches))
    assert steps.start.tolist() == [0, 25, 50, 75, 100]
    assert steps.stop.tolist() == [25, 50, 75, 100, 125]
    assert steps.usual.all()
    assert len(layers) == 20
    assert held(launches, layers) == [LAYER] * 20
    assert layers.parent.tolist() == [step for step in range(5) for _ in range(4)]


@pytest.mark.parametrize("layers", [2, 3, 32])
@pytest.mark.parametrize("steps", [2, 3, 17])
def test_few_and_many(steps, layers):
    found = find_levels(np.array((FIRST + LAYER * layers + LAST) * steps))
    assert [len(level) for level in found] == [steps, steps * layers]
    assert all(level.usual.all() for level in found)


def test_what_came_before_is_no_step():
    launches = [700, 701, 702, 700] + (FIRST + LAYER * 3 + LAST) * 4
    steps, _ = find_levels(np.array(launches))
    assert steps.start.tolist() == [4, 24, 44, 64]


def test_a_warm_up_is_a_step_that_differs():
    step = FIRST + LAYER * 3 + LAST
    launches = [*FIRST, 700, *LAYER * 3, 701, *LAST, *step * 5]
    steps, layers = find_levels(np.array(launches))
    assert steps.start.tolist() == [0, 22, 42, 62, 82, 102]
    assert steps.usual.tolist() == [False, True, True, True, True, True]
    assert len(layers) == 18, "its layers are those of the others"


def test_a_launch_more_breaks_one_step_alone():
    step = FIRST + LAYER * 3 + LAST
    launches = step * 3 + [*step[:10], 700, *step[10:]] + step * 3
    steps, _ = find_levels(np.array(launches))
    assert np.diff(steps.start).tolist() == [20, 20, 20, 21, 20, 20]
    assert steps.usual.tolist() == [True, True, True, False, True, True, True]


def test_a_launch_now_and_then_makes_no_level():
    step = [*range(40)]
    launches = ([*step * 9, *step[:20], 700, *step[20:]]) * 4
    steps = find_levels(np.array(launches))[0]
    assert len(steps) == 40
    assert int(steps.usual.sum()) == 36


def test_rounds_of_several_steps_and_launches_of_their_own_are_a_level():
    step, update = [*range(40)], [*range(50, 60)]
    levels = find_levels(np.array((step * 4 + update) * 3))
    assert [len(level) for level in levels] == [3, 12]


def test_a_last_step_that_is_cut_off():
    step = FIRST + LAYER * 3 + LAST
    steps, layers = find_levels(np.array(step * 4 + step[:9]))
    assert steps.usual.tolist() == [True] * 4 + [False]
    assert (int(steps.start[-1]), int(steps.stop[-1])) == (80, 89)
    assert layers.parent.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4]


def test_a_recording_that_begins_within_a_step():
    step = FIRST + LAYER * 3 + LAST
    steps = find_levels(np.array(step[13:] + step * 6))[0]
    assert set(np.diff(steps.start).tolist()) == {20}
    assert steps.usual[1:-1].all()


def test_names_launched_several_times_in_a_step():
    step = [1, 2, 1, 3, 1, 2, 2, 3]
    steps = find_levels(np.array(step * 6))[0]
    assert steps.start.tolist() == [0, 8, 16, 24, 32, 40]


def test_a_step_that_begins_with_launches_of_many_places():
    # no sixteen launches in a row of its beginning are in one place alone
    step = [1, 2] * 20 + [3, 4, 5]
    steps = find_levels(np.array(step * 5))[0]
    assert steps.start.tolist() == [0, 43, 86, 129, 172]
    assert steps.usual.all()


def test_two_steps_that_begin_with_launches_of_many_places():
    step = [1, 2] * 20 + [3, 4, 5]
    (steps, pairs) = find_levels(np.array(step * 2))
    assert (steps.start.tolist(), steps.stop.tolist()) == ([0, 43], [43, 86])
    assert steps.usual.all()
    assert held(step * 2, pairs) == [[1, 2]] * 40


def test_what_is_like_a_layer_is_none():
    other = [10, 20, 21, 22]
    launches = (FIRST + LAYER * 8 + other * 3 + LAST) * 3
    _, layers = find_levels(np.array(launches))
    assert held(launches, layers) == [LAYER] * 24


def test_layers_of_steps_that_are_known():
    step = FIRST + LAYER * 3 + LAST
    codes = np.array([*step * 2, 700, *step], np.int64)
    start, stop = np.array([0, 20, 41]), np.array([20, 40, 61])
    known = Level(start, stop, np.ones(3, np.bool_), np.full(3, -1))
    (layers,) = levels_within(codes, known)
    assert held(codes.tolist(), layers) == [LAYER] * 9


@pytest.mark.parametrize(
    "launches",
    [[], [1], [1, 2], [1, 2, 3], [5] * 100, [*range(100)], np.random.default_rng(3).integers(0, 6, 3000).tolist()],
)
def test_nothing_repeats(launches):
    assert find_levels(np.array(launches, np.int64)) == ()


def test_long_runs_take_no_longer_than_their_launches():
    launches = (FIRST + LAYER * 32 + LAST) * 300
    steps, layers = find_levels(np.array(launches))
    assert (len(steps), len(layers)) == (300, 9600)
    apart = np.random.default_rng(1).permutation(40_000).tolist()
    (halves,) = find_levels(np.array(apart * 2))
    assert halves.start.tolist() == [0, 40_000]
