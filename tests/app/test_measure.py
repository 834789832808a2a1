"""Times in cycles: exact both ways, on the ruler, in what is typed, and on the screen."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from profiles import make_lane, make_profile, tpu_device
from screen import AS_RECORDED, SIZES, compared, explorer, frame, opened, press

from tpuprof_tui.analysis.selecting.moves import parse_time
from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.analysis.selecting.time_scale import TIME, Measure, cell_at, clock_of, measure_of
from tpuprof_tui.formats.parsing import TypedError
from tpuprof_tui.model import Device

DEVICE = tpu_device("AKS", tiu_mhz=800, dma_mhz=1000)
VIEW = DisplayState.of(0, 20_000_000)
IN_CYCLES = replace(VIEW, scale="cycles")


def test_the_clock_is_that_of_the_tiu_else_of_the_dma_engines():
    assert clock_of(DEVICE) == 800
    assert clock_of(tpu_device("x", dma_mhz=1000)) == 1000
    assert clock_of(Device("x")) == 0
    assert measure_of(DEVICE, "time") is TIME


def test_times_and_lengths_are_written_in_whole_cycles():
    measure = Measure(Fraction(800))
    assert measure.exact(1_000_000) == "800,000 cycles"
    assert measure.length(1) == "1 cycle"
    assert TIME.exact(1_500) == "1.500 us"


@given(st.integers(0, 10**15), st.sampled_from([Fraction(800), Fraction(1000), Fraction(1333, 3), Fraction(25)]))
def test_a_cycle_is_found_again(cycle, mhz):
    measure = Measure(mhz)
    # clocks of more than 1 GHz have several cycles in a ns: those are not told apart
    assert measure.cycles(measure.ns(Fraction(cycle))) == cycle


@given(st.integers(0, 10**12), st.integers(1, 10**12), st.integers(1, 300))
def test_ticks_stand_in_their_cells(start, span, cells):
    measure = Measure(Fraction(800))
    found = measure.ruler(start, start + span, cells)
    places = [cell for cell, _ in found.ticks]
    assert places == sorted(places)
    for cell, label in found.ticks:
        cycles = Fraction(label.replace(",", "")) * found.unit.ns
        assert cell == cell_at(measure.ns(cycles), start, start + span, cells)


@pytest.mark.parametrize(
    ("text", "view", "time"),
    [
        ("8000c", VIEW, 10_000), ("8000 cycles", VIEW, 10_000), ("+8000C", VIEW, 10_010_000),
        ("8000", IN_CYCLES, 10_000), ("8000", VIEW, 8_000), ("8000ns", IN_CYCLES, 8_000), ("8,000 cycle", VIEW, 10_000),
        ("30%", IN_CYCLES, 6_000_000),
    ],
)  # fmt: skip
def test_cycles_can_be_typed(text, view, time):
    assert parse_time(text, view, DEVICE) == time


def test_without_a_clock_there_are_no_cycles():
    with pytest.raises(TypedError, match="no clock"):
        parse_time("8000c", VIEW, Device("x"))
    with pytest.raises(TypedError, match="no clock"):
        parse_time("8000c", VIEW)
    with pytest.raises(TypedError, match="16,000,000 cycles"):
        parse_time("99000000c", IN_CYCLES, DEVICE)


async def test_u_tells_all_times_of_the_timeline_in_cycles_and_back(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "j full_stop r u")
        text = frame(pilot.app)
        assert "Times in cycles of 1,000 MHz" in text
        assert f"range {screen.state.range[1] - screen.state.range[0]:,} cycles" in text
        assert f"{screen.state.cursor:,} cycles  Core 0 TIU" in text
        assert "kcycles" in text
        await press(pilot, "escape g 1 2 3 4 enter")
        assert screen.state.cursor == 1234
        await press(pilot, "u")
        assert "cycles" not in screen.timeline.title_text()
        assert "Times in ns" in frame(pilot.app)


async def test_a_capture_without_a_clock_says_so():
    bare = make_profile([make_lane("TIU", 0, starts=[0, 50], ends=[10, 90])], device=Device("host"))
    async with opened(bare) as pilot:
        await press(pilot, "u")
        assert "records no clock rate" in frame(pilot.app)
        assert explorer(pilot).state.scale == "time"


@AS_RECORDED
async def test_frames_in_cycles_are_as_recorded(profile, size, ascii_only):
    async with opened(profile, SIZES[size], ascii_only=ascii_only) as pilot:
        await press(pilot, "w w w u" if size == "200x60" else "e w w w u")
        await press(pilot, "j full_stop r M s escape escape D g 1 1 0 0 0 enter m b")
        await press(pilot, "g 1 2 5 0 0 enter Z")
        lines = frame(pilot.app).split("\n")[:-1]
    compared("timeline-cycles", size, ascii_only, lines, width=SIZES[size][0])
