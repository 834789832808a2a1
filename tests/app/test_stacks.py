"""A host thread is a stack: a row for each depth, and closed the innermost label that has room."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import SAMPLES
from screen import explorer, frame, opened, press

from tpuprof_tui.analysis.index.lane_index import sublanes_of
from tpuprof_tui.sources.catalog import open_profile

RECORDED = SAMPLES / "torch_cpu_recorded"


def rows_of(screen, lane):
    return [row for row in screen.timeline.lanes.rows if row.lane == lane and not row.kind]


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_a_lane_opens_into_a_row_for_each_depth(size):
    profile = open_profile(RECORDED)
    lane = next(number for number, each in enumerate(profile.lanes) if "parent" in each and len(each) > 1)
    # those that overlap in part are on another stack
    depth = profile.lanes[lane]["sublane"]
    async with opened(profile, size) as pilot:
        screen = explorer(pilot)
        await press(pilot, "1 j")
        assert screen.state.selection.lane == lane
        await press(pilot, "z")
        assert [row.level for row in rows_of(screen, lane)] == list(range(int(depth.max()) + 1))
        # each row holds the events of its depth, and no other
        for level, part in enumerate(sublanes_of(screen.session.indexes[lane])):
            assert part.rows.tolist() == np.flatnonzero(depth == level).tolist()
        # walked like lanes: Enter takes the event of that depth, the next one too
        await press(pilot, "j j j enter")
        chosen = screen.state.selection
        assert chosen.level == 3
        assert depth[chosen.row] == 3
        await press(pilot, "1 full_stop")
        assert depth[screen.state.selection.row] == 3
        assert screen.state.selection.row > chosen.row
        query = screen.summary.answers.latest_query
        assert query is None or query.scope.everything
        await press(pilot, "z")
        assert [row.level for row in rows_of(screen, lane)] == [-1]


async def test_all_lanes_open_with_one_key_and_with_a_click_on_the_label(tmp_path):
    events = [{"ph": "X", "cat": "cpu_op", "name": f"level{level}", "pid": 7, "tid": tid, "ts": 10 + level,
               "dur": 100 - 2 * level} for tid in (1, 2) for level in range(3)]  # fmt: skip
    (tmp_path / "a.pt.trace.json").write_text(json.dumps({"traceEvents": events}))
    async with opened(open_profile(tmp_path / "a.pt.trace.json"), (120, 40)) as pilot:
        screen = explorer(pilot)
        # closed: the innermost name
        assert frame(pilot.app).count("▏level2") == 2
        await press(pilot, "1 E")
        assert screen.state.opened == (0, 1)
        text = frame(pilot.app)
        assert [text.count(f"▏level{level}") for level in range(3)] == [2, 2, 2]
        await press(pilot, "E")
        assert not screen.state.opened
        await pilot.click("#timeline", offset=(5, 2))
        await pilot.pause(0.1)
        assert len(screen.state.opened) == 1


async def test_a_lane_without_nesting_says_so():
    async with opened(open_profile(SAMPLES / "aks_decode_mode2"), (120, 40)) as pilot:
        await press(pilot, "1 e j j z")
        assert not explorer(pilot).state.opened
        await press(pilot, "E")
        assert "events within one another" in frame(pilot.app)
