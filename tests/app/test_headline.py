"""The top line: where the time went, and which of several captures it is about."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace
from profiles import small_profile
from screen import explored, frame, press

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.shell.application import TpuprofApp

SAMPLES = Path(__file__).parents[2] / "samples"
FIGURES = ("busiest", "idlest", "exposed")


def first_line(app: TpuprofApp) -> str:
    return frame(app).split("\n")[0]


async def test_the_name_of_a_capture_stays_in_80_columns(tmp_path):
    for number in (0, 1):
        shutil.copytree(SAMPLES / "aks_decode_mode0", tmp_path / f"cdm_profile_data_dev0-{number}")
    app = TpuprofApp(str(tmp_path / "cdm_profile_data_dev0-0"))
    async with app.run_test(size=(80, 24)) as pilot:
        await explored(pilot)
        for number in (0, 1):
            assert first_line(app).split()[0] == f"dev0-{number}"
            assert "busiest" in first_line(app)
            # and where one pane fills the screen
            await press(pilot, "2")
            assert first_line(app).split()[0] == f"dev0-{number}"
            await press(pilot, "right_parenthesis")
            await explored(pilot)


@pytest.mark.parametrize(
    "name", ["dev0-1", "a_very_long_name_of_a_capture_of_a_user_of_the_lab_7", "名字名字名字名字名字名字名字名字7"]
)
async def test_a_long_name_is_cut_in_the_middle(name):
    profile = replace(small_profile(1, event_count=600), name=name)
    app = TpuprofApp(profile=profile)
    async with app.run_test(size=(80, 24)) as pilot:
        await explored(pilot)
        told, _, rest = first_line(app).strip().partition("  ")
        assert (told[0], told[-1]) == (name[0], name[-1])
        assert ("…" in told) == (told != name)
        # losses and selection stay too
        assert f"{len(profile.problems)} problem" in rest
        await press(pilot, "j j o")
        line = first_line(app)
        assert line.strip().startswith(name[0])
        assert "problem" in line
        assert line.rstrip().endswith("core 1")


async def test_without_room_for_a_name_the_figures_stay():
    app = TpuprofApp(profile=replace(small_profile(1, event_count=600), name="another_capture"))
    async with app.run_test(size=(80, 24)) as pilot:
        await explored(pilot)
        await pilot.resize_terminal(16, 24)
        await pilot.pause()
        assert "total 22.03 us" in first_line(app)


@pytest.mark.parametrize(
    ("chip", "width", "shown"),
    [
        ("NVIDIA A100-SXM4-80GB", 130, "  A100-SXM4-80GB  "), ("NVIDIA A100-SXM4-80GB", 60, ""),
        ("NVIDIA A100-SXM4-80GB", 200, "NVIDIA A100-SXM4-80GB"), ("AKS", 80, ""),
    ],
)  # fmt: skip
async def test_the_name_of_a_card_is_told_for_decimals_of_the_figures(chip, width, shown):
    profile = small_profile(1, event_count=600)
    profile = replace(profile, device=replace(profile.device, chip=chip))
    app = TpuprofApp(profile=profile)
    async with app.run_test(size=(width, 24)) as pilot:
        await explored(pilot)
        line = first_line(app)
        assert shown in line
        assert (chip in line) == (chip == shown)
        assert "busiest" in line
        assert len(line) <= width


async def test_the_figures_are_of_the_selected_range_and_filter():
    profile = small_profile(1, event_count=600)
    app = TpuprofApp(profile=profile)
    async with app.run_test(size=(200, 24)) as pilot:
        await explored(pilot)
        whole = first_line(app)
        screen = app.screen
        assert isinstance(screen, ExplorerScreen)
        start = screen.state.full_start
        screen.store.change(replace(screen.state, range=(start, start + 10_000)))
        await pilot.pause()
        query = Query(screen.session, range=(start, start + 10_000))
        busiest = max(query.unit_figures, key=lambda unit: unit.busy)
        assert "total 10.00 us" in first_line(app)
        assert f"busiest {busiest.label.lower()} {100 * busiest.utilisation:.1f}%" in first_line(app)
        assert first_line(app).rstrip().endswith(" 0.0..10.0 us")
        screen.filtering.apply("dur>1us")
        await pilot.pause()
        assert first_line(app).rstrip().endswith(" 0.0..10.0 us · dur>1us")
        assert f"{_events(replace(query, filter='dur>1us'))} instructions" in first_line(app)
        screen.store.change(replace(screen.state, range=None, filter=""))
        await pilot.pause()
        assert first_line(app) == whole


def _events(query: Query) -> int:
    (start, end), session = query.window, query.filtered_session
    return sum(int(((lane["start"] >= start) & (lane["start"] < end)).sum()) for lane in session.profile.lanes)
