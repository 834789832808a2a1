"""What people type: numbers with units, times and ranges; all that is told can be typed."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.analysis.selecting.time_scale import Measure
from tpuprof_tui.formats.parsing import TimeBase, TypedError, number_typed, range_text, range_typed, time_typed
from tpuprof_tui.formats.units import bytes_text, exact_time, percent_text, rate_text, time_text, time_unit

BASE = TimeBase(0, 20_000_000, cursor=10_000_000, mhz=Fraction(800))
#: The command line: no cursor.
PLAIN = TimeBase(0, 20_000_000)
CLOCKS = st.sampled_from([Fraction(25), Fraction(800), Fraction(1000), Fraction(1333, 3)])


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("12.5ms", 12_500_000), ("1200us", 1_200_000), ("1200 \u00b5s", 1_200_000), ("1200 \u03bcs", 1_200_000),
        ("77", 77),
        ("77ns", 77), ("0.01 s", 10_000_000), ("30%", 6_000_000), ("0%", 0), ("100%", 20_000_000), (".5us", 500),
        ("1,000", 1_000), ("1_000", 1_000), ("1.0000000001us", 1_000), ("0.4", 0), ("0.5", 1), (".0015us", 2),
        ("00012.50us", 12_500), ("1.000000001s", 1_000_000_001), ("9007199254740993", 9_007_199_254_740_993),
        ("123456789012345678ns", 123_456_789_012_345_678), ("+5us", 10_005_000), ("-5us", 9_995_000),
        ("8000c", 10_000), ("8000 cycles", 10_000), ("1 CYCLE", 1), ("+8000c", 10_010_000),
    ],
)  # fmt: skip
def test_times_are_exact(text, time):
    assert time_typed(text, BASE) == time


@pytest.mark.parametrize(
    "text", ["", " ", "x", "12.5 parsec", "1e3", "5 5", "+30%", "-1%", "9" * 30, "0x10", "1ms..2ms", "--5", "1.2.3"]
)
def test_what_is_no_time_is_one_sentence(text):
    with pytest.raises(TypedError) as told:
        time_typed(text, BASE)
    assert told.value.message.endswith(".")
    assert "Write " in told.value.hint


def test_a_sign_counts_from_the_cursor_and_without_one_from_zero():
    assert time_typed("-5us", PLAIN) == -5_000
    assert range_typed("-5..7", PLAIN) == (-5, 7)
    assert range_typed("+1us..+1us", BASE) == (10_001_000, 10_002_000)


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("1.2ms..3.4ms", (1_200_000, 3_400_000)), ("..5us", (None, 5_000)), ("10..", (10, None)), ("..", (None, None)),
        ("0.5us..1s", (500, 1_000_000_000)), ("30%..40%", (6_000_000, 8_000_000)),
        (" 1ms .. +5us ", (10**6, 1_005_000)),
        ("100ms..+50us", (100_000_000, 100_050_000)), ("8000c..+800c", (10_000, 11_000)),
    ],
)  # fmt: skip
def test_ranges(text, window):
    assert range_typed(text, BASE) == window


@pytest.mark.parametrize(
    "text", ["1ms", "5ms..1ms", "5ms..5ms", "a..b", "1..2..3", "1e99..", "9" * 50 + "..", "5us..-1"]
)
def test_what_is_no_range_is_one_sentence(text):
    with pytest.raises(TypedError):
        range_typed(text, BASE)


def test_a_part_of_no_time_is_none():
    with pytest.raises(TypedError, match="no event has one"):
        range_typed("25%..60%", TimeBase(0, 0))


def test_without_a_clock_there_are_no_cycles():
    with pytest.raises(TypedError, match="no clock"):
        time_typed("8000c", PLAIN)
    assert time_typed("8000", TimeBase(0, 1, mhz=Fraction(800), cycles=True)) == 10_000


@given(st.integers(-(10**15), 10**15))
def test_exact_times_are_typed_as_they_are_told(ns):
    assert time_typed(exact_time(ns), PLAIN) == ns


@given(st.integers(-(10**15), 10**15))
def test_times_are_typed_as_they_are_told_but_for_their_rounding(ns):
    assert abs(time_typed(time_text(ns), PLAIN) - ns) <= time_unit(ns).ns // 2


@given(st.integers(0, 10**12), CLOCKS)
def test_cycles_are_typed_as_they_are_told(cycle, mhz):
    measure = Measure(mhz)
    ns = measure.ns(Fraction(cycle))
    assert time_typed(measure.exact(ns), TimeBase(0, 1, mhz=mhz)) == measure.ns(Fraction(measure.cycles(ns)))


@given(st.integers(-(10**15), 10**15), st.integers(1, 10**15))
def test_ranges_are_typed_as_they_are_told(start, length):
    # a sign behind the dots would count from the first time
    if start + length >= 0:
        assert range_typed(range_text(start, start + length), PLAIN) == (start, start + length)


@given(st.text(max_size=20))
def test_any_text_is_a_time_a_range_a_number_or_one_sentence(text):
    for read, about in ((time_typed, BASE), (range_typed, BASE), (number_typed, "B")):
        with suppress(TypedError):
            read(text, about)


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [("10us", "ns", 10_000), ("100KiB", "B", 102_400), ("1.5 MB", "B", 1.5e6), ("20", "GB/s", 20), ("50 %", "%", 50),
     ("1_000", "", 1000), ("2k", "", 2000), ("0x10", "", 16), ("1e3", "ns", 1000), ("-5", "", -5)],
)  # fmt: skip
def test_numbers_with_units(text, unit, number):
    assert number_typed(text, unit) == number


@given(st.integers(0, 1 << 50), st.floats(0, 1e6), st.floats(0, 1))
def test_figures_are_typed_as_they_are_told_but_for_their_rounding(size, rate, share):
    assert abs(number_typed(bytes_text(size), "B") - size) <= max(size, 1) / 19
    assert abs(number_typed(rate_text(rate), "GB/s") - rate) <= 0.00501
    assert abs(number_typed(percent_text(share), "%") - 100 * share) <= 0.0501
