"""The explorer on a trace with events that are set aside: in the table and the tree, in no picture, without a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from screen import explorer, frame, opened, press

from tpuprof_tui.model import Profile
from tpuprof_tui.sources.catalog import open_profile

#: What a missing time would look like as a number, and parts of the times that are not believed.
_NEVER = ("9,223,372", "1,700,000,000", "86,400", "-9223372")


@pytest.fixture
def spoilt(tmp_path: Path) -> Profile:
    """A trace of four kernels, and of two whose times are impossible."""
    begin, events = 1_700_000_000_000_000, []
    for number, start in enumerate((begin, begin + 1000, begin + 2000, begin + 3000, 0, begin + 86_400_000_000), 1):
        args = {"correlation": number, "device": 0, "stream": 7}
        events += [
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 1,
             "ts": begin + 100 * number, "dur": 10, "args": args},
            {"ph": "X", "cat": "kernel", "name": f"kernel{number}", "pid": 0, "tid": 7, "ts": start + 700, "dur": 50,
             "args": args},
        ]  # fmt: skip
    path = tmp_path / "one.pt.trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return open_profile(path)


async def test_set_aside_events_are_in_the_table_and_in_no_picture(spoilt: Profile) -> None:
    async with opened(spoilt) as pilot:
        shown = frame(pilot.app)
        assert sum("ide " in line for line in shown.splitlines()[2:10]) == 1, "the tree names the lane"
        await press(pilot, "2 end")
        shown = frame(pilot.app)
        assert "kernel5" in shown
        assert "kernel6" in shown
        for keys in ("enter", "b", "escape", "s", "v", "1", "plus", "g", "e", "C", "L", "4", "3", "2", "home", "p", "n",
                     "f", "escape", "r", "y", "slash k e r n e l 6 enter", "n", "m a", "d"):  # fmt: skip
            await press(pilot, keys)
            for never in _NEVER:
                assert never not in frame(pilot.app), (keys, never)
        assert explorer(pilot).session.profile.event_count == 12


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_the_problem_leads_to_its_event(spoilt: Profile, size: tuple[int, int]) -> None:
    async with opened(spoilt, size) as pilot:
        await press(pilot, "exclamation_mark")
        await press(pilot, "right_square_bracket")
        assert not any(never in frame(pilot.app) for never in _NEVER)
