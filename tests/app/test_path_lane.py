"""The command for the critical path shows it as a lane on top of the timeline, and hides it again."""

from __future__ import annotations

from profiles import make_lane, make_profile
from screen import explorer, opened, press

from tpuprof_tui.analysis.critical_path import path_lane


async def test_the_path_is_a_lane():
    tiu = make_lane("TIU", 0, starts=[500], ends=[1000])
    gdma = make_lane("GDMA", 0, starts=[0, 100], ends=[50, 500])
    async with opened(make_profile([tiu, gdma]), (120, 40), ascii_only=True) as pilot:
        screen = explorer(pilot)
        before = [row.label for row in screen.timeline.lanes.rows]
        await press(pilot, "colon p a t h enter")
        assert [row.label for row in screen.timeline.lanes.rows] == ["Critical path", *before]
        lane = path_lane(screen.session).lane
        # what lies between the two transfers is a gap of the path
        assert list(zip(lane["start"].tolist(), lane["end"].tolist(), strict=True)) == [
            (0, 50),
            (100, 500),
            (500, 1000),
        ]
        await press(pilot, "j k")
        assert screen.timeline.lanes.selected_row(screen.state) > 0
        await press(pilot, "colon p a t h enter")
        assert [row.label for row in screen.timeline.lanes.rows] == before
