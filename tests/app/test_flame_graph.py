"""The flame graph: where paths lie, and what its keys do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from screen import explorer, frame, opened, press

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.totals.call_stacks import Icicle

SAMPLE = Path(__file__).parents[2] / "samples" / "aks_decode_mode2"


@st.composite
def trees(draw) -> Icicle:
    """Paths of any depth, with time of their own."""
    depths, own = [], draw(st.lists(st.integers(0, 50), min_size=1, max_size=30))
    for _ in own:
        depths.append(draw(st.integers(0, depths[-1] + 1)) if depths else 0)
    totals = list(own)
    for place in range(len(own) - 1, -1, -1):
        above = next((each for each in range(place - 1, -1, -1) if depths[each] < depths[place]), None)
        if above is not None:
            totals[above] += totals[place]
    return Icicle(np.array(depths), np.array(totals))


@given(trees(), st.integers(1, 200), st.data())
def test_callers_lie_above_what_they_call_and_nothing_overlaps(icicle, width, data):
    root = data.draw(st.integers(-1, len(icicle.depth) - 1))
    rows = icicle.rows(root, width)
    length = icicle.total_of_roots if root < 0 else int(icicle.total[root])
    cells = {place: (first, behind) for row in rows for first, behind, place in row}
    for depth, row in enumerate(rows):
        ends = [0, *(behind for _, behind, _ in row)]
        assert all(first >= end for (first, _, _), end in zip(row, ends, strict=False))
        for first, behind, place in row:
            assert int(icicle.depth[place]) == depth
            assert 0 <= first < behind <= width
            above = int(icicle.parent[place])
            assert above < 0 or cells[above][0] <= first <= behind <= cells[above][1]
            if place >= root:
                assert abs((behind - first) - int(icicle.total[place]) * width / length) < 2


async def test_keys_go_along_paths_zoom_and_narrow_all_panes():
    async with opened(open_profile(SAMPLE), (100, 30)) as pilot:
        await press(pilot, "H")
        assert pilot.app.screen.has_class("flame")
        graph = pilot.app.screen.pane
        await press(pilot, "l j j")
        assert graph.path(graph.chosen) == "Core 1 > lm_head_matmul_multi_core > tensorLd"
        assert graph.path(graph.chosen) in frame(pilot.app)
        await press(pilot, "k w")
        assert graph.root == graph.chosen
        assert "100% of lm_head_matmul_multi_core" in frame(pilot.app)
        await press(pilot, "j y")
        assert pilot.app.clipboard.startswith("Core 1 > lm_head_matmul_multi_core > tensorLd: 253.9 us")
        # what lies outside of what fills the width is not gone to, but what holds both then fills it
        await press(pilot, "k k l")
        assert graph.root == -1
        await press(pilot, "h j j enter")
        state = explorer(pilot).state
        assert explorer(pilot).store.session.profile.groups[state.scope.group].label == "Core 1"
        assert "tensorLd" in state.filter
        assert "lm_head" in state.filter
        assert len(explorer(pilot).table.rows.order) == 4
        await press(pilot, "ampersand n a m e equals_sign n o enter H")
        assert "Nothing takes time here" in frame(pilot.app)
