"""Captures whose registers name nothing: ids of 0, messages whose counts do not agree. Only barriers are guessed."""

from __future__ import annotations

import pytest
from kept_captures import SOUND, unpacked

from tpuprof_tui.analysis.links.dependencies import find_dependencies
from tpuprof_tui.model import INT_MISSING, Role
from tpuprof_tui.sources.catalog import open_profile


@pytest.mark.parametrize("name", SOUND)
def test_registers_that_name_nothing_give_no_links_but_guesses(name, tmp_path):
    profile = open_profile(unpacked(name, tmp_path))
    found = find_dependencies(profile)
    assert set(found.links.kind.tolist()) <= found.links.guessed
    for lanes, rows, role in ((found.waiter_lane, found.waiter_row, Role.WAIT),
                              (found.releaser_lane, found.releaser_row, Role.SYNC)):  # fmt: skip
        for number, lane in enumerate(profile.lanes):
            assert (lane.take("role", rows[lanes == number]) == role).all()
    assert found.slack_ns.min(initial=0) >= 0
    for lane in profile.lanes:
        if "depends_on" in lane:
            known = lane["depends_on"] != INT_MISSING
            assert not lane["depends_on"][known].any()


def test_some_of_them_hold_messages(tmp_path):
    profile = open_profile(unpacked("aks_mode2", tmp_path))
    waits = [lane["message"] != INT_MISSING for lane in profile.lanes if "message" in lane]
    assert sum(int(known.sum()) for known in waits) > 100
