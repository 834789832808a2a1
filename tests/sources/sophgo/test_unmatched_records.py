"""What pairing makes of records that found no command at first, each case counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from engine_items import items as _items
from engine_items import pair

from tpuprof_tui.sources.sophgo.read.pairing import SYSTEM, TO_BUS, UNKNOWN, WORK, _likeliest, ordered, repaired

# -- what is left to find ------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "left"),
    [
        ([], []), ([-1], [-1]), ([3], [3]), ([0, 0], [0, -1]), ([1, 0], [1, -1]), ([0, 1, 1, 2], [0, 1, -1, 2]),
        ([0, 4, 1, 5], [0, 4, -1, 5]), ([2, -1, 1, -1, 3], [2, -1, -1, -1, 3]),
    ],
)  # fmt: skip
def test_the_first_of_two_stays(place: list[int], left: list[int]) -> None:
    assert ordered(np.array(place, np.int64)).tolist() == left


@pytest.mark.parametrize(
    ("place", "ids", "kinds", "others", "other_kinds", "found"),
    [
        ([0, -1, 2], [0, 1, 2], None, [0, 1, 2], None, [0, 1, 2]),
        ([-1, 1], [0, 1], None, [0, 1], None, [0, 1]),
        ([0, -1], [0, 1], None, [0, 1], None, [0, 1]),
        ([-1, -1], [0, 1], None, [0, 1], None, [0, 1]),
        ([0, -1, 1], [0, 1, 1], None, [0, 1], None, [0, -1, 1]),  # no room
        ([0, -1, 2], [0, 7, 2], None, [0, 1, 2], None, [0, -1, 2]),  # no such id
        ([0, -1, -1, 3], [0, 1, 1, 3], None, [0, 1, 1, 3], None, [0, 1, 2, 3]),  # none is given twice
        ([0, -1, -1, 2], [0, 1, 1, 3], None, [0, 1, 3], None, [0, 1, -1, 2]),
        ([0, -1, 2], [0, 1, 2], [0, SYSTEM, 0], [0, 1, 2], [0, WORK, 0], [0, -1, 2]),
        ([0, -1, 2], [0, 1, 2], [0, WORK, 0], [0, 1, 2], [0, SYSTEM, 0], [0, -1, 2]),
        ([0, -1, 2], [0, 1, 2], [0, TO_BUS, 0], [0, 1, 2], [0, WORK, 0], [0, 1, 2]),
        ([0, -1, 2], [0, 1, 2], [0, SYSTEM, 0], [0, 1, 2], [0, UNKNOWN, 0], [0, 1, 2]),
        ([0, -1, 2], [0, 1, 2], [0, UNKNOWN, 0], [0, 1, 2], [0, SYSTEM, 0], [0, 1, 2]),
        ([0, -1, 1, -1, 3], [0, 1, 1, 2, 3], None, [0, 1, 2, 3], None, [0, -1, 1, 2, 3]),  # no room here, but there
        ([0, -1, 3], [0, 1, 3], [0, WORK, 0], [0, 1, 1, 3], [0, SYSTEM, WORK, 0], [0, 2, 3]),
    ],
)
def test_between_neighbours_that_are_bound(
    place: list[int], ids: list[int], kinds: list[int], others: list[int], other_kinds: list[int], found: list[int]
) -> None:
    result = repaired(np.array(place, np.int64), _items(ids, kind=kinds), _items(others, kind=other_kinds))
    assert result.tolist() == found


@pytest.mark.parametrize(("apart", "found"), [(4096, 1), (4097, -1)])
def test_neighbours_far_apart_leave_too_much_room(apart: int, found: int) -> None:
    others = _items(list(range(5000)))
    result = repaired(np.array([0, -1, apart]), _items([0, 1, apart]), others)
    assert result.tolist() == [0, found, apart]


@pytest.mark.parametrize(
    ("hits", "place", "ids", "likeliest"),
    [
        # launches of ids 0 to 3 at 0, 4, 8: the record of id 2 is behind that of id 1 in the second, before id 3 there
        ([2, 6, 10], [5, -1, 7], [1, 2, 3], 6),
        ([2, 6, 10], [5, -1, 8], [1, 2, 0], 6),
        ([2, 6, 10], [3, -1, 7], [3, 2, 3], 6),
        ([6, 10], [3, -1, 12], [3, 2, 0], 6),  # neither neighbour is of its launch: the first
        ([10], [5, -1, 12], [1, 2, 0], 10),
        ([24, 30], [20, -1, 31], [1, 5, 6], 30),  # the id of the second is nearer
        ([24, 30], [20, -1, 35], [4, 5, 10], 30),
    ],
)
def test_a_record_goes_with_a_neighbour_of_its_launch(
    hits: list[int], place: list[int], ids: list[int], likeliest: int
) -> None:
    found = _likeliest(np.array(hits), 1, [0, 2], np.array(place), np.array(ids))
    assert found == likeliest


# -- all together --------------------------------------------------------------


def test_records_and_commands_of_nothing_are_bound_to_nothing() -> None:
    assert [found.tolist() for found in pair([_items([])], [_items([0, 1])], lapped=False)] == [[]]
    assert [found.tolist() for found in pair([_items([0, 1])], [_items([])], lapped=False)] == [[-1, -1]]
    assert pair([], [], lapped=True) == []


def test_engines_without_records_or_commands_do_not_disturb_the_others() -> None:
    """The first and the last lost records; what lies between has records alone, commands alone, or neither."""
    hurt, whole = [0, 1, 2, 0, 1, 2, 3], [0, 1, 2, 3, 0, 1, 2, 3]
    keys = [0, 1, 2, 100, 101, 102, 103]
    records = [_items(hurt, keys), _items([0, 1]), _items([]), _items([]), _items(hurt, keys)]
    commands = [_items(whole), _items([]), _items([0, 1]), _items([]), _items(whole)]
    found = [binding.tolist() for binding in pair(records, commands, lapped=False)]
    assert found == [[0, 1, 2, 4, 5, 6, 7], [-1, -1], [], [], [0, 1, 2, 4, 5, 6, 7]]


def test_a_launch_that_lost_its_end_on_one_engine_is_found_by_the_other() -> None:
    """Four launches of unlike lengths; the first engine lost the third but its beginning, the second nothing."""
    lengths = ((3, 2), (2, 4), (5, 3), (4, 1))
    commands: list[list[int]] = [[], []]
    records: list[list[tuple[int, int, int]]] = [[], []]
    true: list[list[int]] = [[], []]
    for launch, counts in enumerate(lengths):
        for engine, count in enumerate(counts):
            for number in range(count):
                if (launch, engine) != (2, 0) or number < 1:
                    records[engine].append((number, 100 * launch + 10 * number + engine, UNKNOWN))
                    true[engine].append(len(commands[engine]))
                commands[engine].append(number)
    places = [[place + 100 * sum(n == 0 for n in ids[: place + 1]) for place in range(len(ids))] for ids in commands]
    found = pair(
        [_items(*(list(column) for column in zip(*rows, strict=True))) for rows in records],
        [_items(ids, key) for ids, key in zip(commands, places, strict=True)],
        lapped=False,
    )
    assert [binding.tolist() for binding in found] == true
