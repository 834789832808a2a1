"""Numbers as people read them: one convention, which the page keeps as well."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.formats.units import (
    TYPED,
    UNITS,
    bytes_text,
    column_unit,
    exact_time,
    percent_text,
    plural,
    rate_text,
    time_number,
    time_text,
    time_unit,
)

TEXT_JS = Path(__file__).parents[2] / "tpuprof_tui" / "export" / "web" / "page_parts" / "text.js"


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0 ns"), (999, "999 ns"), (1_000, "1.000 us"), (12_345, "12.35 us"), (999_999, "1000.0 us"),
     (695_956, "696.0 us"), (4_295_000_000, "4.295 s"), (-1_500, "-1.500 us")],
)  # fmt: skip
def test_times_have_units_that_fit(ns, text):
    assert time_text(ns).replace(",", "") == text


@given(st.integers(-(10**15), 10**15))
def test_exact_times_lose_no_digit(ns):
    number, unit = exact_time(ns).split(" ")
    scale = {each.name: each.ns for each in UNITS}[unit]
    whole, _, decimals = number.replace(",", "").lstrip("-").partition(".")
    assert int(whole) * scale + int((decimals or "0").ljust(len(str(scale)) - 1, "0")[:9] or 0) == abs(ns)


def test_thousands_are_separated():
    assert time_number(12_345_678, UNITS[0], 0) == "12,345,678"
    assert time_number(12_345_678_900, UNITS[1], 1) == "12,345,678.9"


@given(st.integers(1, 10**18))
def test_a_unit_is_the_largest_that_fits(ns):
    assert time_unit(ns).ns <= ns


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0 ns"), (9_999, "9,999 ns"), (10_000, "10.000 us"), (12_345_678, "12.346 ms"), (3e10, "30.000 s")],
)
def test_times_of_a_column_have_three_digits(ns, text):
    assert column_unit(ns).text(ns) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0.0%"), (0.784, "78.4%"), (0.9994, "99.9%"), (0.9995, "100%"), (1, "100%"), (1.5, "150%")]
)
def test_shares(share, text):
    assert percent_text(share) == text
    assert percent_text(share, guessed=True) == f"~{text}"


@pytest.mark.parametrize(
    ("size", "text"),
    [(None, "-"), (0, "0 B"), (1023, "1,023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (262_144, "256.0 KiB"),
     (1_048_575, "1.0 MiB"), (17_670_000, "16.9 MiB"), (3 << 40, "3.0 TiB"), (5 << 50, "5,120.0 TiB")],
)  # fmt: skip
def test_bytes_are_told_in_binary_units(size, text):
    assert bytes_text(size) == text


@given(st.integers(0, 1 << 60))
def test_bytes_are_typed_as_they_are_told(size):
    number, unit = bytes_text(size).split(" ")
    meant = float(number.replace(",", "")) * TYPED["B"][unit.lower()]
    assert abs(meant - size) <= 0.051 * TYPED["B"][unit.lower()] * (unit != "B")


def test_bandwidths_and_counts():
    assert rate_text(46.054) == "46.05 GB/s"
    assert rate_text(1234.5, 1) == "1,234.5 GB/s"
    assert [plural(count, "port") for count in (0, 1, 1200)] == ["0 ports", "1 port", "1,200 ports"]


def test_the_page_tells_numbers_alike():
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    times = [0, 1, 999, 1000, 12_345, 123_456, 999_999, 1_234_567, 98_765_432, 5_000_000_000, 2_000_000_000_000]
    shares = [0, 0.0004, 0.123, 0.5, 0.9994, 0.9996, 1, 2.5]
    sizes = [0, 1023, 1024, 1_048_000, 1_048_575, 262_144, 17_670_000, 1 << 40, 5 << 50]
    script = f"{TEXT_JS.read_text(encoding='utf-8')}\nconsole.log(JSON.stringify([{times}.map(durationText), " \
        f"{shares}.map((each) => percentText(each)), {sizes}.map(sizeText)]));"  # fmt: skip
    done = subprocess.run([node, "-e", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [
        list(map(time_text, times)), list(map(percent_text, shares)), list(map(bytes_text, sizes))
    ]  # fmt: skip
