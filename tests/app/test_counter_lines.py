"""Lines of counters in the timeline: folded and unfolded, what they draw and tell, at both sizes and in ASCII."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from profiles import small_profile
from screen import SIZES, compared, explorer, frame, opened, press

from tpuprof_tui.analysis.counter_lines import CounterCurve, CounterLine, counter_lines, visible_lines
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.model import Counter


@pytest.fixture(scope="module")
def profile():
    small = small_profile(1, event_count=60)
    end = small.end_ns
    times = np.arange(8, dtype=np.int64) * (end // 8)
    group = small.lanes[0].group

    def counter(name, values, unit="MB/s", family="", of=group):
        return Counter(of, name, unit, times[: len(values)], np.array(values, np.float64), family)

    measured = [counter(f"HBM {number}/Read", [0, 1000 * number, 24000, 12000], family="HBM") for number in range(3)]
    measured += [counter("[b]Freq", [1800.0] * 8, "MHz"), counter("NPU MEM", [2.0**30, np.nan, 2.0**31], "B")]
    return replace(small, counters=(*measured, counter("Host memory", [5, -5], "", of=-1)))


def test_lines_and_folds(profile):
    lines = counter_lines(Session(profile))
    group = profile.lanes[0].group
    assert lines == (
        CounterLine("Counters", group, (0, 1, 2, 3, 4), 0, -1, True), CounterLine("HBM", group, (0, 1, 2), 1, 0, True),
        *(CounterLine(f"HBM {number}/Read", group, (number,), 2, 1) for number in range(3)),
        CounterLine("[b]Freq", group, (3,), 1, 0), CounterLine("NPU MEM", group, (4,), 1, 0),
        CounterLine("Host memory", -1, (5,)),
    )  # fmt: skip
    assert [list(visible_lines(lines, unfolded)) for unfolded in ((), (0,), (1,), (1, 0))] == [
        [0, 7], [0, 1, 5, 6, 7], [0, 7], [*range(8)],
    ]  # fmt: skip


def test_a_curve():
    times, values = np.array([10, 20, 40, 50]), np.array([4.0, np.nan, -2.0, 0.0])
    curve = CounterCurve.of(times, values, 60)
    means = curve.means(np.array([0, 10, 15, 30, 40, 60]))
    assert means.tolist() == pytest.approx([np.nan, 4, 4, np.nan, -1], nan_ok=True)
    assert curve.heights(np.array([0, 10, 15, 40, 50, 60])).tolist() == pytest.approx(
        [np.nan, 1, 1, 0, 1 / 3], nan_ok=True
    )
    assert [curve.at(time) for time in (9, 10, 45, 99)] == pytest.approx([np.nan, 4, -2, 0], nan_ok=True)
    assert [curve.maximum(*window) for window in ((0, 60), (45, 49), (20, 40), (0, 9))] == pytest.approx(
        [4, -2, np.nan, np.nan], nan_ok=True
    )
    assert [curve.step(*step) for step in ((0, 1), (10, 1), (50, 1), (50, -1), (10, -1))] == [10, 20, None, 40, None]
    flat = CounterCurve.of(np.array([0, 5, 9]), np.array([3.0, 3.0, 4.0]), 20)
    assert [flat.step(0, 1), flat.step(19, -1)] == [9, 9]
    none = CounterCurve.of(times[:0], values[:0], 60)
    assert np.isnan([none.at(3), none.maximum(0, 9), *none.means(np.array([0, 5, 10]))]).all()
    assert none.step(0, 1) is None


@pytest.mark.parametrize(("size", "ascii_only"), [("80x24", True), ("200x60", False)])
async def test_counters_are_walked_folded_and_told(profile, size, ascii_only):
    async with opened(profile, SIZES[size], ascii_only=ascii_only) as pilot:
        screen = explorer(pilot)
        await press(pilot, "1")
        rows = screen.timeline.lanes.rows
        assert [row.label for row in rows if row.kind == "counters"][-1] == "Host memory"
        first = next(place for place, row in enumerate(rows) if row.kind == "counters")
        while screen.timeline.lanes.selected_row(screen.store.state) < first:
            await press(pilot, "j")
        assert "Counters: 5 counters, Enter shows them" in frame(pilot.app)
        await press(pilot, "enter j enter j j")
        assert screen.timeline.lanes.rows[first + 1].label == "  - HBM"
        assert "max 24,000 MB/s" in frame(pilot.app)
        await press(pilot, "0 home full_stop full_stop")
        assert "HBM 1/Read  24,000 MB/s" in frame(pilot.app)
        await press(pilot, "full_stop full_stop")
        assert "has no more changes" in frame(pilot.app)
        await press(pilot, "P")
        assert screen.timeline.lanes.rows[0].label == "Core 0 HBM 1/Read"
        compared("counters", size, ascii_only, frame(pilot.app).split("\n"), width=SIZES[size][0])
        await press(pilot, "P")
        await press(pilot, "k k enter")
        assert sum(row.kind == "counters" for row in screen.timeline.lanes.rows) == 5


@pytest.mark.parametrize("size", SIZES)
async def test_a_search_leads_to_counters_where_no_name_matches(profile, size):
    async with opened(profile, SIZES[size]) as pilot:
        screen = explorer(pilot)
        await press(pilot, "slash H B M")
        assert "no name, 3 counters match" in frame(pilot.app)
        await press(pilot, "enter")
        assert "HBM 0/Read" in screen.timeline.lanes.rows[screen.timeline.lanes.selected_row(screen.state)].label
        assert "/HBM  counter 1/3" in frame(pilot.app)
        await press(pilot, "n n n N")
        assert counter_lines(screen.session)[screen.state.selection.counters].label == "HBM 2/Read"
        await press(pilot, "slash q x q enter")
        assert "No name matches qxq." in frame(pilot.app)
