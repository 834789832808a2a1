"""Links of a part of a profile."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace
from profiles import make_lane, make_profile

from tpuprof_tui.model.profile import Links


def test_links_of_a_part_are_those_among_its_events():
    lanes = [make_lane(kind, 0, starts=np.arange(4) * 10, ends=np.arange(4) * 10 + 5) for kind in ("TIU", "GDMA")]
    links = Links(("wait",), np.zeros(3, np.int8), np.array([1, 2, 7]), np.array([4, 6, 3]))
    profile = replace(make_profile(lanes), links=lambda: links)
    part = profile.restricted_to([np.array([1, 3]), slice(0, 4)])
    assert [len(lane) for lane in part.lanes] == [2, 4]
    assert part.links is not None
    found = part.links()
    assert list(zip(found.from_row.tolist(), found.to_row.tolist(), strict=True)) == [(0, 2), (5, 1)]
    assert len(profile.restricted_to([None, slice(0, 4)]).lanes) == 1
