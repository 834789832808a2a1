"""Lanes hand out columns; a profile knows its lanes."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from profiles import make_profile, small_profile

from tpuprof_tui.analysis.selecting.filters import compile_filter
from tpuprof_tui.model import Activity, Lane, Strings
from tpuprof_tui.model.lane import row_numbers, rows_at


def lane(**columns) -> Lane:
    given = {"start": np.array([1, 5, 9]), "end": np.array([4, 8, 12]), **columns}
    return Lane(kind="TIU", group=0, label="TIU", columns=given)


def test_columns_cannot_be_written():
    one = lane()
    with pytest.raises(ValueError, match="read-only"):
        one["start"][0] = 7


def test_a_lazy_column_is_computed_for_the_rows_asked_for():
    asked = []

    def double(rows):
        asked.append(rows)
        return np.arange(3)[rows] * 2

    one = lane(double=double)
    assert one.take("double", np.array([2, 0])).tolist() == [4, 0]
    assert one["double"].tolist() == [0, 2, 4]
    assert asked[0].tolist() == [2, 0]
    assert asked[1] == slice(None)
    assert one.arrays()["double"].tolist() == [0, 2, 4]


def test_a_column_nobody_knows_is_a_key_error():
    one = lane()
    assert "bytes" not in one
    assert one.keys() == ("start", "end")
    with pytest.raises(KeyError):
        one.take("bytes", slice(None))


def test_a_lane_says_what_it_is():
    one = lane()
    assert len(one) == 3
    assert repr(one) == "<Lane TIU (TIU) of group 0: 3 events>"
    assert one.description(0) == ""
    assert not one.on_host


def test_a_profile_spans_its_instructions():
    profile = small_profile(2, event_count=40)
    starts = [int(each["start"].min()) for each in profile.lanes if len(each)]
    ends = [int(each["end"].max()) for each in profile.lanes if len(each)]
    assert (profile.start_ns, profile.end_ns) == (min(starts), max(ends))
    assert profile.event_count == sum(map(len, profile.lanes))
    nothing = replace(profile, lanes=())
    assert (nothing.start_ns, nothing.end_ns, nothing.event_count) == (0, 0, 0)


def test_lanes_are_found_by_engine_and_number():
    profile = small_profile(2, event_count=40)
    found = profile.lane("TIU", 1)
    assert found is not None
    assert (found.kind, profile.unit_number(found)) == ("TIU", 1)
    assert profile.lane("TIU", 99) is None
    assert profile.title_of(found) == "Core 1 TIU"
    assert {profile.unit_number(each) for each in profile.lanes_of(1)} == {1}


def test_every_lane_says_of_what_kind_it_is():
    known = lane(engine=np.zeros(3, np.int32))
    others = [replace(lane(), kind=kind) for kind in ("tray", "cart", "tray")]
    profile = make_profile([known, *others], strings={"engine": Strings(["oven"])})
    names = [[profile.text("engine", code) for code in each["engine"].tolist()] for each in profile.lanes]
    assert names == [3 * ["oven"], 3 * ["tray"], 3 * ["cart"], 3 * ["tray"]]
    assert tuple(profile.strings["engine"]) == ("oven", "tray", "cart")
    assert profile.lanes[1].take("engine", np.array([2, 0])).tolist() == [1, 1]
    assert profile.lanes[1].take("engine", slice(1, 3)).tolist() == [1, 1]
    assert replace(profile, name="other").lanes == profile.lanes
    assert np.flatnonzero(compile_filter("engine=t*", profile)(profile.lanes[3])).tolist() == [0, 1, 2]
    assert not compile_filter("engine=t*", profile)(profile.lanes[2]).any()
    assert compile_filter("engine!=t*", profile)(profile.lanes[2]).all()
    assert compile_filter("cart", profile)(profile.lanes[2]).all()


def test_without_lanes_their_kinds_are_a_table_all_the_same():
    """Memory alone was recorded: the explorer groups by kind of lane, too."""
    assert len(replace(make_profile([]), strings={}).strings["engine"]) == 0


def test_the_device_part_leaves_the_host_out():
    profile = small_profile(1, event_count=20)
    assert profile.device_part is profile
    host = Lane(
        kind="HOST", group=-1, label="cpu op", activity=Activity.HOST,
        columns={"start": np.array([0]), "end": np.array([10])},
    )  # fmt: skip
    both = replace(profile, lanes=(*profile.lanes, host))
    assert both.device_part.lanes == both.lanes[:-1]


def test_a_data_frame_has_a_row_for_each_instruction():
    profile = small_profile(2, event_count=40)
    frame = profile.to_pandas()
    assert len(frame) == profile.event_count
    assert frame.groupby("lane").size().to_dict() == {n: len(each) for n, each in enumerate(profile.lanes) if len(each)}
    assert frame["start"].tolist() == [t for each in profile.lanes for t in each["start"].tolist()]
    names = [text for each in profile.lanes for text in profile.strings["name"].texts(each["name"])]
    assert frame["name"].astype("object").fillna("").tolist() == names
    assert len(replace(profile, lanes=()).to_pandas()) == 0


@pytest.mark.parametrize("rows", [slice(3, 9), slice(4, 4), np.array([7, 2, 5, 9])])
def test_rows_at_places_are_those_of_their_numbers(rows):
    numbers = row_numbers(rows)
    for places in (slice(None), slice(1, 3), slice(0, 0), slice(None, None, -1), np.arange(len(numbers))[::-1]):
        assert rows_at(rows, places).tolist() == numbers[places].tolist()
