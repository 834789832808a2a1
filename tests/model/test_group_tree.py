"""Groups are a tree: which are units, what lies in what, and what people call them."""

from __future__ import annotations

import numpy as np
import pytest
from profiles import make_lane, make_profile

from tpuprof_tui.model import INT_MISSING, Activity, Group, Groups, Lane, Problem, Severity

RANKS = Groups((
    Group("rank 0", "rank", number=0), Group("GPU 7", "gpu", 0, 7, is_unit=True), Group("stream 1", "stream", 1, 1),
    Group("rank 1", "rank", number=1), Group("GPU 7", "gpu", 3, 7, is_unit=True), Group("Host", "host", 3),
))  # fmt: skip


def test_a_group_knows_what_lies_in_it():
    assert RANKS.units == (1, 4)
    assert RANKS.within(0) == {0, 1, 2}
    assert RANKS.within(5) == {5}
    assert RANKS.within(-1) == RANKS.within(99) == frozenset()
    assert RANKS.units_within(3) == (4,)
    assert RANKS.units_within(-1) == (1, 4)
    assert RANKS.units_within(2) == ()


def test_a_group_knows_the_unit_it_lies_in():
    assert [RANKS.unit_of(group) for group in range(-1, 6)] == [-1, -1, 1, 1, -1, 4, -1]
    assert RANKS.units_of(np.array([2, 4, 5, -1, INT_MISSING, 77])).tolist() == [1, 4, -1, -1, -1, -1]
    numbers = RANKS.unit_numbers(np.array([2, 0, INT_MISSING])).tolist()
    assert numbers == [7, INT_MISSING, INT_MISSING]
    assert (RANKS.numbered(7), RANKS.numbered(1)) == (1, -1)


def test_groups_of_one_label_are_told_apart_by_what_is_above():
    assert RANKS.path(4) == ("rank 1", "GPU 7")
    assert [RANKS.at_path(RANKS.path(group)) for group in range(6)] == list(range(6))
    assert RANKS.at_path(("rank 2",)) == -1


def test_some_units_can_be_left_out():
    assert RANKS.with_units([4]).units == (4,)
    assert [group.label for group in RANKS.with_units([])] == [group.label for group in RANKS]


@pytest.mark.parametrize("parent", [0, 1, -2])
def test_a_group_stands_behind_its_parent(parent):
    with pytest.raises(ValueError, match="precedes its parent"):
        Groups((Group("a", "rank", parent),))


def test_a_problem_of_a_group_is_about_lanes_below_it():
    lane = make_lane(starts=[0], ends=[1])
    problem = Problem(Severity.NOTE, "Odd.", group=0, lane="TIU")
    assert problem.is_about(lane, Groups((Group("Core 0", "core", number=0, is_unit=True),)))
    assert not problem.is_about(lane.select_rows(slice(0, 1)), Groups())
    assert problem.as_record(RANKS, "gpu")["gpu"] is None
    assert Problem(Severity.NOTE, "Odd.", group=2).as_record(RANKS, "gpu")["gpu"] == 7


def test_a_lane_of_some_rows_keeps_what_it_is():
    asked = []

    def double(rows):
        asked.append(rows)
        return np.arange(3)[rows] * 2

    lane = make_lane("GDMA", 4, starts=[1, 5, 9], ends=[4, 8, 12], double=double, role_guessed=True)
    some = lane.select_rows(np.array([2, 0]))
    assert (some.kind, some.group, some.activity, some.role_guessed) == ("GDMA", 4, Activity.TRANSFER, True)
    assert some["start"].tolist() == [9, 1]
    assert not asked
    assert some.take("double", slice(1, 2)).tolist() == [0]
    assert some["double"].tolist() == [4, 0]
    assert lane.select_rows(slice(1, 3), only=("start", "end")).keys() == ("start", "end")


def test_rows_of_a_lane_lie_in_those_of_its_rows_that_enclose_them():
    lane = make_lane("thread", 4, starts=[0, 1, 2, 3], ends=[9, 8, 7, 6], parent=np.array([-1, 0, 1, 2]))
    assert lane.select_rows(np.array([0, 3]))["parent"].tolist() == [-1, 0]
    assert lane.select_rows(np.array([2, 3])).take("parent", slice(1, 2)).tolist() == [0]
    assert lane.select_rows(slice(1, 3))["parent"].tolist() == [-1, 0]


def test_a_lane_says_what_its_events_do():
    columns = {"start": np.arange(3), "end": np.arange(3) + 1, "activity": np.array([0, 1, 2], np.int8)}
    mixed = Lane(kind="stream", group=2, label="stream 1", columns=columns)
    assert mixed.activity is None
    assert mixed.can_have_activity((Activity.HOST,))
    moves = mixed.activity_mask((Activity.TRANSFER, Activity.COMMUNICATION), slice(0, 3))
    assert moves is not None
    assert moves.tolist() == [False, True, True]
    plain = make_lane("GDMA", starts=[0, 2], ends=[1, 3])
    assert plain.activity_mask((Activity.TRANSFER,), slice(0, 2)) is None
    assert plain.activity_mask((Activity.COMPUTE,), slice(0, 2)).tolist() == [False, False]  # type: ignore[union-attr]
    assert not plain.can_have_activity((Activity.COMPUTE,))


def test_ids_of_cores_need_not_be_their_numbers():
    lanes = [make_lane("TIU", 3, starts=[0], ends=[1]), make_lane("CDMA", 1, starts=[0], ends=[1], core=np.array([5]))]
    profile = make_profile(lanes, cores=[3, 5])
    assert profile.groups.numbers == (3, 5)
    assert [profile.unit_of(lane) for lane in profile.lanes] == [0, -1]
    assert profile.lanes[1]["owner"].tolist() == [1]
    assert profile.lane("TIU", 3) is profile.lanes[0]
    assert profile.lane("CDMA", 1) is profile.lanes[1]
    assert [profile.title_of(lane) for lane in profile.lanes] == ["Core 3 TIU", "CDMA Port 1"]
    assert profile.numbers_in("ports") == (1,)


def test_groups_with_the_same_label_are_told_apart_by_those_above_them():
    groups = Groups(
        (
            Group("Rank 0", "rank"),
            Group("GPU 0", "gpu", 0),
            Group("Rank 1", "rank"),
            Group("GPU 0", "gpu", 2),
            Group("GPU 1", "gpu", 2),
        )
    )
    assert [groups.title(group) for group in range(-1, 5)] == [
        "", "Rank 0", "Rank 0 GPU 0", "Rank 1", "Rank 1 GPU 0", "GPU 1",
    ]  # fmt: skip
