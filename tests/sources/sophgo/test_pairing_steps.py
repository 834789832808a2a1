"""The steps of pairing, each by itself, with answers counted by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest
from engine_items import items as _items
from engine_items import pair

from tpuprof_tui.sources.sophgo.read import pairing as bindings
from tpuprof_tui.sources.sophgo.read.arrays import id_sections
from tpuprof_tui.sources.sophgo.read.pairing import (
    SYSTEM,
    TO_BUS,
    TO_LOCAL,
    UNKNOWN,
    WORK,
    EngineItems,
    Matcher,
    clean_binding,
    launch_start_keys,
)

# -- runs of growing ids -----------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "starts"),
    [([], []), ([4], [0]), ([0, 1, 2], [0]), ([0, 1, 0], [0, 2]), ([3, 3, 4], [0, 1]), ([0, 0, 0], [0, 1, 2])],
)
def test_a_section_begins_where_ids_do_not_grow(ids: list[int], starts: list[int]) -> None:
    assert id_sections(np.array(ids, np.int64))[0].tolist() == starts


@pytest.mark.parametrize(
    ("records", "commands", "found"),
    [
        ([], [], []),
        ([0, 1], [], None),
        ([], [0, 1], None),
        ([0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 2, 3]),
        ([5], [7], [0]),  # spans alone count: a section may begin anywhere
        ([0, 2, 0], [0, 1, 2, 0], [0, 2, 3]),
        ([0, 2], [0, 2], [0, 1]),
        ([0, 2], [0, 1, 2, 0], None),  # one section, two sections
        ([0, 1, 0], [0, 1, 2, 0], None),  # of the first, two ids and three
        ([0, 1, 3, 0, 1], [0, 3, 0, 1], [0, 1, -1, 2, 3]),  # a command less than the ids ask for
        ([0, 1, 2, 0], [0, 2, 0], [0, 1, -1, 2]),  # nor is it the first of the next section
    ],
)
def test_sections_alike_bind_by_id(records: list[int], commands: list[int], found: list[int] | None) -> None:
    result = clean_binding(np.array(records, np.int64), np.array(commands, np.int64))
    assert (result if result is None else result.tolist()) == found


@pytest.mark.parametrize(
    ("engines", "keys"),
    [
        ([], []),
        ([([], [])], []),
        ([([0, 1, 2], [5, 6, 7])], [5]),
        ([([0, 1, 0, 1], [5, 6, 9, 10])], [5, 9]),
        # the second engine's restart belongs to the launch that the first began
        ([([0, 1, 0, 1], [5, 6, 9, 10]), ([0, 1, 0, 1], [7, 8, 11, 12])], [5, 9]),
        # an engine without items since the last beginning restarts nothing
        ([([0, 0, 0], [1, 4, 8]), ([0, 0], [2, 9])], [1, 4, 8]),
        ([([0, 0], [3, 3])], [3, 3]),
    ],
)
def test_a_launch_begins_with_the_first_engine_that_restarts(
    engines: list[tuple[list[int], list[int]]], keys: list[int]
) -> None:
    assert launch_start_keys([_items(*items) for items in engines]).tolist() == keys


def test_kinds_are_told_apart() -> None:
    names = ("UNKNOWN", "SYSTEM", "TO_LOCAL", "TO_BUS", "WORK")
    assert len({getattr(bindings, name) for name in names}) == len(names)


# -- how well a run fits a launch ----------------------------------------------


def _matcher(
    records: list[EngineItems], commands: list[EngineItems], clean: list | None = None, *, lapped: bool = False
) -> Matcher:
    return Matcher(records, commands, clean or [None] * len(records), lapped=lapped)


def _two_runs(kinds: list[int] | None = None, theirs: list[int] | None = None) -> Matcher:
    """Runs of two records each; launches of three commands and of two."""
    return _matcher([_items([0, 1, 0, 1], [5, 6, 20, 24], kinds)], [_items([0, 1, 2, 0, 1], kind=theirs)])


def test_runs_and_launches_are_counted() -> None:
    matcher = _matcher(
        [_items([0, 1, 0, 1], [5, 6, 20, 24]), _items([0, 0], [7, 21])], [_items([0, 1, 2, 0, 1]), _items([0], [1])]
    )
    assert (matcher.runs, matcher.launches) == (2, 2)
    assert [run.tolist() for run in matcher.run_of] == [[0, 0, 1, 1], [0, 1]]
    assert [launch.tolist() for launch in matcher.launch_of] == [[0, 0, 0, 1, 1], [0]]
    assert (matcher.records_in.tolist(), matcher.commands_in.tolist()) == ([3, 3], [4, 2])
    assert matcher.gap_before.tolist() == [0, 20 - 7]
    assert matcher.launch.tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("begin", "end", "offset", "scores"),
    [
        (0, 2, 0, [2 - 0.25, 2]),  # a command of the first launch has no record
        (0, 2, 1, [2, -6]),  # there is no third launch
        (0, 2, -1, [-6, 2 - 0.25]),
        (1, 2, 0, [2]),
        (0, 1, 0, [2 - 0.25]),
        (0, 2, 2, [-6, -6]),
    ],
)
def test_ids_that_a_launch_has_speak_for_it(begin: int, end: int, offset: int, scores: list[float]) -> None:
    assert _two_runs()._scores(begin, end, offset).tolist() == scores


def test_the_oldest_run_of_a_ring_may_lack_its_head() -> None:
    matcher = _two_runs()
    matcher.lapped = True
    assert matcher._scores(0, 2, 0).tolist() == [2, 2]
    assert matcher._scores(0, 1, 0).tolist() == [2]
    assert matcher._scores(1, 2, -1).tolist() == [2 - 0.25]


def test_only_the_oldest_run_may() -> None:
    matcher = _matcher([_items([0, 1, 0, 1], [5, 6, 20, 24])], [_items([0, 1, 2, 0, 1, 2])])
    matcher.lapped = True
    assert matcher._scores(0, 2, 0).tolist() == [2, 2 - 0.25]


def test_launches_that_there_are_not_lack_nothing_and_too_many_records_make_up_for_nothing() -> None:
    matcher = _matcher([_items([0, 1, 0, 1, 2], [5, 6, 20, 24, 25])], [_items([0, 1, 2, 3, 0, 1, 2, 3])])
    assert matcher._scores(0, 2, -1).tolist() == [-6, 3 - 0.25]
    assert matcher._scores(0, 2, 1).tolist() == [2 - 0.5, -9]
    matcher = _matcher([_items([0, 1, 2], [5, 6, 7])], [_items([0, 1])])
    assert matcher._scores(0, 1, 0).tolist() == [2 - 3]


# -- where one offset takes over from another ----------------------------------


@pytest.mark.parametrize("pauses", [(10, 10, 10), (10, 500, 10), (500, 10, 10)])
def test_what_fits_better_decides_before_pauses_do(pauses: tuple[int, int, int]) -> None:
    """Launches of 3, 3, 4, 5 and 6; the third was lost. The second run fits its own launch a little better."""
    starts = np.cumsum([0, *(pause + 10 for pause in pauses)])
    counts = (3, 3, 5, 6)
    ids = [number for count in counts for number in range(count)]
    keys = [int(start) + number for start, count in zip(starts, counts, strict=True) for number in range(count)]
    commands = _items([number for count in (3, 3, 4, 5, 6) for number in range(count)])
    matcher = _matcher([_items(ids, keys)], [commands])
    assert matcher._switch(0, 1, 0, 1) == 2
    assert matcher.launch.tolist() == [0, 1, -1, -1]


@pytest.mark.parametrize(("pauses", "cut"), [((10, 10, 500), 3), ((10, 500, 10), 2), ((500, 10, 10), 1)])
def test_where_all_fit_alike_the_longest_pause_decides(pauses: tuple[int, int, int], cut: int) -> None:
    starts = np.cumsum([0, *(pause + 10 for pause in pauses)])
    keys = [int(start) + number for start in starts for number in range(3)]
    matcher = _matcher([_items([0, 1, 2] * 4, keys)], [_items([0, 1, 2] * 5)])
    assert matcher._switch(0, 1, 0, 1) == cut
    assert matcher.launch.tolist()[:cut] == list(range(cut))


def test_an_offset_that_explains_nothing_takes_over_nowhere() -> None:
    ids = [number for count in (3, 5, 4, 6) for number in range(count)]
    commands = [number for count in (3, 5, 4, 6, 2, 2, 2, 2) for number in range(count)]
    matcher = _matcher([_items(ids)], [_items(commands)])
    assert matcher._switch(0, 1, 0, 4) == 4
    assert matcher.launch.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", range(4))
def test_a_restart_too_many_costs_nothing_behind_it(seed: int) -> None:
    """A stray record cuts a launch in two: all behind it is one run further on than its launch."""
    chance = random.Random(seed)
    lengths = [chance.randint(4, 30) for _ in range(60)]
    commands = [number for length in lengths for number in range(length)]
    ids, keys, true, now = [], [], [], 0
    for row, number in enumerate(commands):
        now += 400 if not number else 7
        if row == sum(lengths[:20]) + 3:
            ids, keys, true = [*ids, 0], [*keys, now - 3], [*true, -1]
        if chance.random() > 0.02:
            ids, keys, true = [*ids, number], [*keys, now], [*true, row]
    (found,) = pair([_items(ids, keys)], [_items(commands)], lapped=False)
    last = sum(lengths[:21])
    assert [got for got, row in zip(found.tolist(), true, strict=True) if row >= last] == [
        row for row in true if row >= last
    ]


@pytest.mark.parametrize(
    ("mine", "theirs", "score"),
    [
        (UNKNOWN, SYSTEM, 1), (SYSTEM, UNKNOWN, 1), (SYSTEM, SYSTEM, 1), (SYSTEM, WORK, -2), (WORK, SYSTEM, -2),
        (TO_LOCAL, SYSTEM, -2), (TO_LOCAL, TO_BUS, -2), (TO_BUS, TO_LOCAL, -2), (TO_BUS, WORK, 1),
        (WORK, TO_LOCAL, 1), (TO_LOCAL, TO_LOCAL, 1),
    ],
)  # fmt: skip
def test_kinds_contradict_where_both_are_known(mine: int, theirs: int, score: float) -> None:
    matcher = _two_runs([mine, UNKNOWN, UNKNOWN, UNKNOWN], [theirs] + [UNKNOWN] * 4)
    assert matcher._scores(0, 1, 0).tolist() == [score + 1 - 0.25]


def test_what_is_known_to_be_of_another_launch_speaks_against_it() -> None:
    matcher = _matcher([_items([0, 1, 0, 1], [5, 6, 20, 24])], [_items([0, 1, 2, 0, 1])], [np.array([0, 1, 3, -1])])
    assert matcher._scores(0, 2, 0).tolist() == [2 - 0.25, 2]
    assert matcher._scores(0, 2, 1).tolist() == [-20, -10 - 3]
    assert matcher._scores(0, 2, -1).tolist()[1] == -10 + 1 - 0.25


def test_ids_count_from_the_first_of_their_launch() -> None:
    matcher = _matcher([_items([4, 6, 5], [1, 2, 3])], [_items([4, 5, 4, 5, 6])])
    place, fits = matcher._locate(0, slice(0, 3), np.array([0, 1, 1]))
    assert fits.tolist() == [True, True, True]
    assert place.tolist() == [0, 4, 3]
    place, fits = matcher._locate(0, slice(0, 3), np.array([1, 0, 2]))
    assert fits.tolist() == [True, False, False]
    assert place.tolist() == [2, 0, 0]
    place, fits = matcher._locate(0, slice(0, 3), np.array([-1, -1, -1]))
    assert not fits.any()


def test_runs_that_look_like_launches_name_their_offset() -> None:
    """By the numbers of their items on each engine; most votes first."""
    records = [_items([0, 1, 0, 0, 1, 2], [0, 1, 10, 20, 21, 22])]
    commands = [_items([0, 0, 1, 2, 3, 0, 1, 0, 0, 1, 2])]
    matcher = _matcher(records, commands)
    assert matcher._candidates(0, 3)[0] == 2
    assert set(matcher._candidates(0, 3)) == {2, -1}
    assert matcher._candidates(1, 3)[0] == 2


def _runs_of(launches: list[int], lengths: list[int]) -> tuple[list[EngineItems], list[EngineItems]]:
    """Records of some of the launches, whole, and the commands of all."""
    ids = [number for launch in launches for number in range(lengths[launch])]
    keys = [1000 * launch + number for launch in launches for number in range(lengths[launch])]
    return [_items(ids, keys)], [_items([number for length in lengths for number in range(length)])]


@pytest.mark.parametrize(
    ("launches", "lapped", "offset"),
    [
        (list(range(30)), False, 0),
        (list(range(2, 30)), False, 2),
        (list(range(15, 30)), False, 15),
        ([0, *range(7, 30)], False, 0),  # what holds for most begins behind the first
        ([0, 1, *range(9, 30)], False, 0),
        ([0], False, 0),
        ([29], False, 29),
        (list(range(20, 30)), True, 20),
        ([18, *range(20, 30)], True, 19),  # of the first, thin run nothing is known; the others tell
    ],
)
def test_the_launch_of_the_first_run(launches: list[int], lapped: bool, offset: int) -> None:
    records, commands = _runs_of(launches, [3 + 7 * number % 31 for number in range(30)])
    assert _matcher(records, commands, lapped=lapped)._first_offset() == offset


@pytest.mark.parametrize("lost", [4, 16, 100, 250])
def test_far_launches_are_found_also_where_every_run_lost_a_record(lost: int) -> None:
    """No run is as long as its launch, so none looks like it; ids must be tried place by place."""
    chance = random.Random(lost)
    lengths = [chance.randint(5, 400) for _ in range(300)]
    kept = [*range(10), *range(10 + lost, min(300, 34 + lost))]
    ids = [number for launch in kept for number in range(lengths[launch]) if number != 2 or launch < 10]
    keys = [1000 * launch + number for launch in kept for number in range(lengths[launch])
            if number != 2 or launch < 10]  # fmt: skip
    commands = _items([number for length in lengths for number in range(length)])
    matcher = _matcher([_items(ids, keys)], [commands])
    matcher.launch[:10] = np.arange(10)
    assert matcher._wide_offset(10, 0) == lost
    matcher.align()
    # the first run behind the gap may pass for part of the launch that would have come
    assert sum(got != launch for got, launch in zip(matcher.launch.tolist(), kept, strict=True)) <= 1


def test_the_first_launch_may_be_lost_where_every_run_lost_a_record() -> None:
    lengths = [5 + 7 * number % 31 for number in range(40)]
    ids = [number for launch in range(1, 25) for number in range(lengths[launch]) if number != 2]
    matcher = _matcher([_items(ids)], [_items([number for length in lengths for number in range(length)])])
    assert matcher._first_offset() == 1


def test_records_that_fit_nowhere_leave_the_others_their_launches() -> None:
    """Between launches, runs of ids that no launch has; what is behind them is as many runs further on."""
    lengths = [4 + 7 * number % 13 for number in range(60)]
    records = [(number, launch) for launch in range(20) for number in range(lengths[launch])]
    records += [(90 + number, -1) for _ in range(30) for number in range(3)]
    records += [(number, launch) for launch in range(20, 60) for number in range(lengths[launch])]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    (found,) = pair([_items([number for number, _ in records])],
                    [_items([number for length in lengths for number in range(length)])], lapped=False)  # fmt: skip
    assert found.tolist() == [starts[launch] + number if launch >= 0 else -1 for number, launch in records]


@pytest.mark.parametrize(("before", "offset"), [([0, 1, 2], 2), ([], 2)])
def test_the_launch_next_to_those_taken_is_free(before: list[int], offset: int) -> None:
    records, commands = _runs_of([0, 1, 2, 3, 4, 5], [5, 9, 14, 6, 8, 3])
    matcher = _matcher(records, commands)
    matcher.launch[: len(before)] = before
    assert matcher._wide_offset(len(before), offset) == 0


def test_none_goes_back_to_a_launch_that_is_taken() -> None:
    records, commands = _runs_of([0, 1, 2, 0, 1, 2, 3, 4, 5], [5, 9, 14, 6, 8, 3])
    matcher = _matcher(records, commands)
    matcher.launch[:3] = [0, 1, 2]
    assert 3 + matcher._wide_offset(3, 0) > 2


def test_every_run_gets_its_launch_and_pauses_are_from_end_to_beginning() -> None:
    records, commands = _runs_of([0, 1, 2, 5, 6, 7], [3, 5, 4, 6, 3, 7, 9, 2])
    matcher = _matcher(records, commands)
    assert matcher.gap_before.tolist() == [0, 998, 996, 2997, 994, 992]
    matcher.align()
    assert matcher.launch.tolist() == [0, 1, 2, 5, 6, 7]


def test_where_all_launches_are_alike_the_first_or_the_last_ones_are_left() -> None:
    records, commands = _runs_of(list(range(6)), [4] * 30)
    assert _matcher(records, commands)._first_offset() == 0
    assert _matcher(records, commands, lapped=True)._first_offset() == 24
