"""The axis that two profiles share: what belongs together lies in one place, and each side keeps its own lengths."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.analysis.compare.side_by_side import AlignedAxis


def axis(other: list[int], base: list[int], other_end: int, base_end: int) -> AlignedAxis:
    return AlignedAxis.of((0, other_end), (0, base_end), np.array(other, np.int64), np.array(base, np.int64))


def test_the_shorter_side_has_a_gap_before_the_next_pair():
    """A launch of 100 beside one of 60, behind them one that the base alone has, then another pair."""
    shared = axis([10, 110], [10, 120], 150, 150)
    assert shared.position.tolist() == [0, 10, 120, 160]
    edges, base = shared.edges(0, 150, 16), shared.base_edges(0, 150, 16)
    assert edges.tolist() == [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 110, 120, 130, 140, 150]
    assert base.tolist() == [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150, 150]
    # pairs that changed their order are no anchors
    assert axis([10, 20, 30], [30, 10, 40], 50, 50).other.tolist() in ([0, 10, 30, 50], [0, 20, 30, 50])
    # a window that begins behind a gap does not show it, one that ends there does
    assert shared.edges(110, 150, 4).tolist() == [110, 120, 130, 140, 150]
    assert shared.base_edges(10, 110, 11)[-1] == 120


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=12), st.integers(1, 350),
       st.integers(1, 350), st.integers(1, 40), st.data())  # fmt: skip
def test_cells_hold_their_times(pairs, other_end, base_end, cells, data):
    pairs = [each for each in pairs if each[0] < other_end and each[1] < base_end]
    shared = axis([each[0] for each in pairs], [each[1] for each in pairs], other_end, base_end)
    assert (np.diff(shared.other) > 0).all()
    assert (np.diff(shared.position) == np.maximum(np.diff(shared.other), np.diff(shared.base))).all()
    start = data.draw(st.integers(0, other_end - 1))
    end = data.draw(st.integers(start + 1, other_end))
    edges, base = shared.edges(start, end, cells), shared.base_edges(start, end, cells)
    assert (int(edges[0]), int(edges[-1])) == (start, end)
    assert (np.diff(edges) >= 0).all()
    assert (np.diff(base) >= 0).all()
    if (start, end) == (0, other_end):
        assert (int(base[0]), int(base[-1])) == (0, base_end)
    time = data.draw(st.integers(start, end - 1))
    cell = shared.cell_at(time, start, end, cells)
    assert edges[cell] <= time < edges[cell + 1]
    for one, two in zip(shared.other.tolist(), shared.base.tolist(), strict=True):
        if start <= one < end and one:
            assert int(shared.base_edges(one, end, cells)[0]) == two
