"""Much of everything: many captures, many launches, many lanes. What is slow at size is measured in the benchmarks."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from profiles import big_profile
from screen import explorer, frame, settled
from textual.pilot import Pilot

from tpuprof_tui import open_profile
from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.app.shell.capture_list import CaptureList, ChooseScreen

ROOT = Path(__file__).resolve().parents[2]

from capture_writer.capture import write_capture  # noqa: E402
from capture_writer.options import Options  # noqa: E402

LAUNCHES = 20_000


async def _until_open(pilot: Pilot[int]) -> None:
    while not isinstance(pilot.app.screen, ExplorerScreen):
        await pilot.pause(0.01)
    await settled(pilot)


async def test_64_captures_in_a_folder_are_all_listed_and_known(tmp_path: Path) -> None:
    small = write_capture(Options("small", cores=(0,), seed=1), tmp_path, truth=False).path
    folder = tmp_path / "many"
    for number in range(64):
        shutil.copytree(small, folder / f"cdm_profile_data_dev{number % 8}-{number}")
    app = TpuprofApp(str(folder))
    async with app.run_test(size=(100, 80)) as pilot:
        while not isinstance(app.screen, ChooseScreen):
            await pilot.pause(0.01)
        await settled(pilot)
        found = app.screen.query_one(CaptureList).entries
        assert len(found) == 64
        assert all(each.total and each.busiest and not each.failed for each in found)
        text = frame(app)
        assert all(f"dev{number % 8}-{number} " in text for number in range(64))


async def test_twenty_thousand_launches_are_paired_and_shown(tmp_path: Path) -> None:
    """Every launch has its kernel function, its commands and its place in the lists."""
    path = write_capture(Options("launches", cores=(0,), launches=LAUNCHES, seed=2), tmp_path, truth=False).path
    profile = open_profile(path)
    assert len(profile.scopes) == LAUNCHES
    tiu = profile.lane("TIU", 0)
    assert tiu is not None
    assert (tiu["scope"] >= 0).all()
    assert (np.diff(tiu["scope"]) >= 0).all()
    assert [problem for problem in profile.problems if "without" in problem.what] == []
    app = TpuprofApp(str(path))
    async with app.run_test(size=(100, 30)) as pilot:
        await _until_open(pilot)
        await pilot.press("2", "G")
        await settled(pilot)
        assert f"{profile.event_count:,}" in frame(app)
        await pilot.press("1", "w", "w", "w", "d", "0")
        await settled(pilot)


async def test_every_one_of_66_lanes_can_be_reached() -> None:
    # more cores than any chip that is read has
    app = TpuprofApp(profile=big_profile(6_600, cores=22))
    async with app.run_test(size=(80, 24)) as pilot:
        await _until_open(pilot)
        profile = explorer(pilot).session.profile
        assert len(profile.lanes) >= 64
        seen = set()
        await pilot.press("1")
        for _ in range(3 * len(profile.lanes)):
            await pilot.press("j")
            seen.add(explorer(pilot).state.selection.lane)
            if set(range(len(profile.lanes))) <= seen:
                break
        else:
            raise AssertionError(f"never reached: {set(range(len(profile.lanes))) - seen}")
