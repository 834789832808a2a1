"""The steps of pairing, each by itself, with answers counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tpuprof_tui.readers.cdm.pairing import (
    UNKNOWN,
    Side,
    clean_binding,
    joint_groups,
)


def _side(ids: list[int], key: list[int] | None = None, kind: list[int] | None = None) -> Side:
    return Side(
        np.array(ids, np.int64),
        np.array(key if key is not None else range(len(ids)), np.int64),
        np.array(kind if kind is not None else [UNKNOWN] * len(ids), np.int8),
    )


# -- runs of growing ids -----------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "sections"),
    [([], []), ([4], [0]), ([0, 1, 2], [0]), ([0, 1, 0], [0, 2]), ([3, 3, 4], [0, 1]), ([0, 0, 0], [0, 1, 2])],
)
def test_a_section_begins_where_ids_do_not_grow(ids: list[int], sections: list[int]) -> None:
    assert _side(ids).sections().tolist() == sections


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
    ],
)
def test_sections_alike_bind_by_id(records: list[int], commands: list[int], found: list[int] | None) -> None:
    result = clean_binding(np.array(records, np.int64), np.array(commands, np.int64))
    assert (result if result is None else result.tolist()) == found


@pytest.mark.parametrize(
    ("sides", "keys"),
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
    sides: list[tuple[list[int], list[int]]], keys: list[int]
) -> None:
    assert joint_groups([_side(*side) for side in sides]).tolist() == keys
