"""Launches of which few records are left: where pauses tell what ids do not, and what stays in doubt."""

from __future__ import annotations

import numpy as np
import pytest
from engine_items import pair
from truth_tables import read_truth
from written_captures import capture

from tpuprof_tui.model import Severity
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.read.pairing import (
    SYSTEM,
    TO_BUS,
    TO_LOCAL,
    UNKNOWN,
    WORK,
    EngineItems,
    contradicts,
    paired,
)


def _items(ids: list[int], keys: list[int], kinds: list[int] | None = None, length: int = 5) -> EngineItems:
    key = np.array(keys, np.int64)
    return EngineItems(np.array(ids, np.int64), key, np.array(kinds or [UNKNOWN] * len(ids), np.int8), key + length)


@pytest.mark.parametrize(
    ("mine", "theirs", "against"),
    [
        (TO_LOCAL, TO_BUS, True), (TO_BUS, TO_LOCAL, True), (SYSTEM, WORK, True), (SYSTEM, TO_BUS, True),
        (WORK, SYSTEM, True), (WORK, TO_BUS, False), (TO_LOCAL, WORK, False), (UNKNOWN, SYSTEM, False),
        (TO_BUS, UNKNOWN, False), (TO_BUS, TO_BUS, False), (SYSTEM, SYSTEM, False),
    ],
)  # fmt: skip
def test_what_contradicts(mine: int, theirs: int, against: bool) -> None:
    assert bool(contradicts(np.array([mine], np.int8), np.array([theirs], np.int8))[0]) is against


def test_a_record_is_not_bound_to_a_move_in_the_other_direction() -> None:
    kinds = [TO_LOCAL, TO_BUS, TO_LOCAL, TO_LOCAL]
    commands = [_items([0, 1, 2, 3], [0, 1, 2, 3], kinds)]
    (bound,) = pair([_items([0, 1, 3], [10, 20, 40], [TO_LOCAL, TO_LOCAL, TO_LOCAL])], commands, lapped=False)
    assert bound.tolist() == [0, -1, 3]


#: Two launches of two engines, ids 0 to 5 each.
_COMMANDS = [_items([*range(6), *range(6)], [*range(0, 12, 2), *range(12, 24, 2)]),
             _items([*range(6), *range(6)], [*range(1, 13, 2), *range(13, 25, 2)])]  # fmt: skip


@pytest.mark.parametrize(("late", "expected"), [(30, [0, 1, 3, 4]), (900, [0, 1, 9, 10])])
def test_the_longest_pause_parts_launches_where_ids_run_on(late: int, expected: list[int]) -> None:
    """The first engine lost the end of one launch and the begin of the next: no restart shows where that is."""
    first = _items([0, 1, 3, 4], [10, 20, late, late + 10])
    second = _items([0, 1, 2, 3, 4, 5, 0, 1, 2, 3], [12, 22, 32, 42, 52, 62, 1000, 1010, 1020, 1030])
    found = paired([first, second], _COMMANDS, lapped=False)
    assert found[0][0].tolist() == expected
    assert found[0][1].tolist() == [False, False, late > 62, late > 62]
    assert found[1][0].tolist() == [*range(6), 6, 7, 8, 9]
    assert not found[1][1].any()


def test_where_one_record_of_a_run_fits_nowhere_the_others_are_in_doubt() -> None:
    """Of the second launch of the first engine a record has an id that none has."""
    first = _items([0, 1, 3, 4, 5, 0, 1, 9], [10, 20, 40, 50, 60, 1000, 1010, 1020])
    second = _items([*range(6), *range(6)], [*range(12, 72, 10), *range(1002, 1062, 10)])
    found = paired([first, second], _COMMANDS, lapped=False)
    assert found[0][0].tolist() == [0, 1, 3, 4, 5, 6, 7, -1]
    assert found[0][1].tolist() == [False] * 5 + [True, True, False]


def test_nothing_is_in_doubt_where_nothing_is_lost() -> None:
    whole = [_items([*range(6), *range(6)], [*range(10, 70, 10), *range(100, 160, 10)]) for _ in range(2)]
    assert not any(doubt.any() for _, doubt in paired(whole, _COMMANDS, lapped=False))


@pytest.mark.parametrize("kind", ["lost", "ring", "tiny_kernels", "decode_mode1", "des_kv"])
def test_captures_with_few_losses_leave_no_doubt(kind: str) -> None:
    assert not [problem for problem in open_profile(capture(kind)).problems if "launch is not certain" in problem.what]


def test_what_is_wrong_in_very_sparse_captures_is_in_doubt() -> None:
    wrong = told = 0
    for seed in (1, 2):
        path = capture("sparse", lost=0.7, seed=seed, batches=3)
        profile, truth = open_profile(path), read_truth(path.parent / f"{path.name}.truth.json")
        for (engine, core), wanted in truth.lanes.items():
            lane = profile.lane(engine, core)
            assert lane is not None
            group = profile.groups.numbered(core)
            problems = [each for each in profile.problems if (each.group, each.lane) == (group, engine)
                        and "launch is not certain" in each.what]  # fmt: skip
            assert all(each.severity is Severity.WARNING and each.rows is not None for each in problems)
            doubtful = {row for each in problems if each.rows is not None for row in each.rows.tolist()}
            rows = np.argsort(lane["order"], kind="stable")
            odd = (lane["mode"][rows] >= 0) & (lane["scope"][rows] != wanted["scope"]) & (wanted["scope"] >= 0)
            wrong += int(odd.sum())
            told += sum(int(rows[place]) in doubtful for place in np.flatnonzero(odd))
    assert told >= 0.8 * wrong
