"""Columns that say which instruction a row is stay where the table scrolls sideways; what there is to gain sorts."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from screen import explorer, frame, opened, press

from tpuprof_tui.analysis.selecting.filters import compile_filter
from tpuprof_tui.sources.catalog import open_profile

SAMPLES = Path(__file__).parents[2] / "samples"


async def test_engine_core_and_function_stay_and_excess_sorts():
    profile = open_profile(SAMPLES / "aks_decode_mode2")
    async with opened(profile, (80, 24)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 l l l l l l")
        table = screen.table
        layout, frozen = table.columns, table.columns.frozen_count(table.size.width)
        kept = layout.edges[frozen]
        assert [column.key for column in layout.columns[:frozen]] == [
            "engine",
            "core",
            "order",
            "name",
        ]
        header = next(line for line in frame(pilot.app).splitlines() if "Engine" in line)
        assert all(name in header for name in ("Engine", "Core", "Idx", "Function"))
        assert "Start" not in header
        assert table.scroll_offset.x + kept in layout.edges
        # the header under the mouse is the column that shows there
        place = next(place for place, edge in enumerate(layout.edges) if edge == table.scroll_offset.x + kept)
        inset = table.content_region.offset - table.region.offset
        await pilot.click("#table", offset=(inset.x + kept + 1, inset.y))
        assert (layout.chosen_index, screen.state.sort.key) == (place, layout.columns[place].key)
        await pilot.click("#table", offset=(inset.x + 1, inset.y))
        assert screen.state.sort.key == "engine"
        await press(pilot, "S e x c e s s enter")
        assert (screen.state.sort.key, screen.state.sort.down) == ("excess", True)
        lanes = [lane for lane in profile.lanes if "excess" in lane]
        assert lanes
        most = max(float(np.nanmax(lane["excess"])) for lane in lanes)
        lane, row = screen.session.locate(int(table.rows.order[0]))
        assert profile.lanes[lane]["excess"][row] == most
        assert f"{most:,.1f}" in frame(pilot.app).splitlines()[table.content_region.y + 1]
        # a whole column stands right behind those that stay, and none shows the end of its numbers alone
        assert table.scroll_offset.x + kept in layout.edges
        table.scroll_to(table.scroll_offset.x + 2, animate=False)
        await pilot.pause()
        for line in frame(pilot.app).splitlines()[table.content_region.y :][:5]:
            cells = line[table.content_region.x :]
            first = next(edge for edge in layout.edges if edge >= table.scroll_offset.x + kept)
            assert not cells[kept : first - table.scroll_offset.x].strip()


async def test_names_of_kernels_stay_beside_the_metric_that_they_are_sorted_by():
    async with opened(open_profile(SAMPLES / "ascend_synthetic"), (80, 24)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 S a i c _ m a c _ r a t i o enter")
        assert screen.state.sort.key == "aic_mac_ratio"
        assert re.search(r"Stream \d +\d +\d+ aclnnAddmm_MatMulV2 .* 0\.\d{3}", frame(pilot.app))


def test_titles_are_names_and_old_names_go_on():
    profile = open_profile(SAMPLES / "aks_decode_mode2")
    for text, same in (
        ("of_peak<50", "at_peak<50"),
        ("kernel_function=rms*", "kernel=rms*"),
        ("lost>1us", "excess>1000"),
    ):
        one, other = (compile_filter(each, profile) for each in (text, same))
        masks = [(one(lane), other(lane)) for lane in profile.lanes]
        assert any(mask.any() for mask, _ in masks), text
        assert all((mask == own).all() for mask, own in masks), text
    lane = profile.lanes[0]
    known = ~np.isnan(lane["ideal"])
    assert np.allclose(lane["excess"][known], (lane["duration"] - lane["ideal"])[known])


async def test_the_chosen_column_stays_in_view_when_the_share_is_shown():
    async with opened(open_profile(SAMPLES / "aks_decode_mode2"), (80, 24)) as pilot:
        await press(pilot, "2 S s t e p enter")
        assert "Step ▼" in frame(pilot.app)
        await press(pilot, "%")
        assert explorer(pilot).state.percent
        assert "Step ▼" in frame(pilot.app)
