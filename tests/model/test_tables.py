"""Tables: rows that a source recorded beside its events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from profiles import make_lane, make_profile

from tpuprof_tui.model.strings import StringsOnDemand
from tpuprof_tui.model.table import Table


def made(columns: Mapping[str, Any], texts: Mapping[str, Sequence[str]] | None = None, name: str = "sizes") -> Table:
    return Table(name, 2, "sizes.csv", lambda: (columns, texts or {}))


def test_columns_are_read_on_first_use_and_some_rows_alone():
    asked = []

    def later(rows: Any) -> Any:
        return np.arange(3)[rows] * 10

    def read() -> Any:
        asked.append("read")
        return {"size": np.array([4, 5, 6]), "later": later, "kind": np.array([1, -1, 0], np.int32)}, {
            "kind": ("a", "b")
        }

    table = Table("sizes", 2, "sizes.csv", read)
    assert asked == []
    assert len(table) == 3
    assert ("size" in table, "none" in table) == (True, False)
    assert table.take("later", np.array([2, 0])).tolist() == [20, 0]
    assert table.values("kind") == ["b", None, "a"]
    assert table.values("kind", slice(1, 3)) == [None, "a"]
    assert table["later"].tolist() == [0, 10, 20]
    assert asked == ["read"]
    with pytest.raises(KeyError):
        table.take("none", slice(0, 1))


def test_texts_that_are_read_on_demand_stay_unread():
    strings = StringsOnDemand()
    strings.read_all.append(lambda: pytest.fail("all texts were read"))
    code = strings.code("x")
    table = made({"kind": lambda rows: np.array([code, -1])[rows], "size": np.array([1, 2])}, {"kind": strings})
    assert table.values("kind") == ["x", None]


def test_a_profile_has_a_table_for_each_name_and_group():
    profile = replace(
        make_profile([make_lane("TIU", 0, starts=[0], ends=[1])]), tables=(made({}), made({}, name="more"))
    )
    found = profile.table("more", 2)
    assert found is not None
    assert found.name == "more"
    assert profile.table("sizes") is None
    assert profile.table("none", 2) is None


def test_of_a_part_of_a_profile_tables_have_the_numbers_of_its_events():
    lanes = [make_lane(kind, 0, starts=np.arange(4) * 10, ends=np.arange(4) * 10 + 5) for kind in ("TIU", "GDMA")]
    table = made(
        {"event": np.array([1, 5, -1, 2]), "caller_event": np.array([3, 3, 3, -1]), "size": np.array([9, 8, 7, 6])}
    )
    part = replace(make_profile(lanes), tables=(table,)).restricted_to([np.array([1, 3]), slice(0, 4)])
    found = part.table("sizes", 2)
    assert found is not None
    assert found["event"].tolist() == [0, 3, -1, -1]
    assert found["caller_event"].tolist() == [1, 1, 1, -1]
    assert found["size"].tolist() == [9, 8, 7, 6]
