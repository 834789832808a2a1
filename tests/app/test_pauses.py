"""Pauses can be selected, zoomed to and explained; that changes no figure."""

from __future__ import annotations

from random import Random

import pytest
from command_line import SAMPLES
from msgspec.structs import replace
from profiles import make_lane, make_profile
from screen import explorer, opened, press, settled

from tpuprof_tui.analysis.selecting.moves import next_pause, pause_at, select_pause
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, SelectedItem
from tpuprof_tui.sources.catalog import open_profile


@pytest.mark.parametrize("seed", range(20))
def test_pauses_are_what_lies_between_the_work(seed):
    random = Random(seed)
    times = sorted(random.sample(range(1, 200), 2 * random.randrange(1, 12)))
    session = Session(make_profile([make_lane("TIU", 0, starts=times[::2], ends=times[1::2]),
                                    make_lane("GDMA", 0, starts=[0, 199], ends=[1, 200])]))  # fmt: skip
    at_work = {time for start, end in zip(times[::2], times[1::2], strict=True) for time in range(start, end)}
    least = random.choice((1, 5, 20))
    expected, state, selection = [], DisplayState.of(0, 200), SelectedItem(0, 0)
    for time in range(200):
        pause = pause_at(session, selection, state, time)
        assert (pause is None) == (time in at_work)
        if pause is not None and pause not in expected and pause[1] - pause[0] >= least:
            expected.append(pause)
    state = replace(DisplayState.of(0, 200).at(0), selection=selection)
    for steps, ahead in ((1, expected), (-1, expected[-2::-1])):
        found = []
        while (pause := next_pause(session, state, steps, least)) is not None:
            found.append(pause)
            state = select_pause(state, selection, pause)
        assert found == ahead


@pytest.mark.parametrize(("sample", "told"), [
    ("torch_cuda_synthetic/node0_4000.1700000000000.pt.trace.json.gz", "the host called late"),
    ("aks_decode_mode2", "Meanwhile TIU worked"),
])  # fmt: skip
async def test_a_pause_is_explained(sample, told):
    async with opened(open_profile(SAMPLES / sample), (160, 48)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "1 j j")
        query = screen.summary.answers.latest_query
        await press(pilot, "J J J")
        pause = screen.state.selection.pause
        assert pause is not None
        assert screen.summary.answers.latest_query is query
        await press(pilot, "K")
        assert screen.state.selection.pause[1] < pause[0]
        await press(pilot, "J i")
        await settled(pilot)  # a thread looks for it
        assert told in screen.panes.detail.text_of_all()
        await press(pilot, "enter")
        assert screen.state.start <= pause[0] < pause[1] <= screen.state.end
        assert screen.state.span < 2 * (pause[1] - pause[0])
        await press(pilot, "r")
        assert screen.state.range == pause
