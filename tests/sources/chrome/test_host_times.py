"""Times of host traces: exact decimals, and what is none."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.sources.chrome.columns import MOST_NS
from tpuprof_tui.sources.chrome.trace import femtoseconds, nanoseconds


@given(st.integers(0, 10**16), st.integers(0, 10**9 - 1), st.integers(0, 9))
def test_times_are_exact_to_the_last_digit(whole, part, digits):
    text = f"{whole}.{str(part).zfill(9)[:digits]}" if digits else str(whole)
    if whole >= MOST_NS // 1000:
        return
    assert femtoseconds(text) == int(Decimal(text) * 10**9)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1700000000000000.123", 1_700_000_000_000_000_123),
        ("52342391.0125", 52_342_391_012),
        ("0.0009", 0),
        ("-1.5", -1500),
        ("-0.0009", 0),
        ("1.5e3", 1_500_000),
        ("25E-1", 2500),
        ("7", 7000),
    ],
)
def test_times_in_ns(text, ns):
    assert nanoseconds(femtoseconds(text)) == ns


@pytest.mark.parametrize(
    "value",
    ["", "abc", "1,5", "1e999", "1e99999999", "9" * 50, "--1", "١٢", "1.2.3", "0x10",
     "1e30", "-1e30", " 1", "1_000", "inf", "nan", "1" * 10_000],
)  # fmt: skip
def test_what_is_no_time_is_none(value):
    assert femtoseconds(value) is None
