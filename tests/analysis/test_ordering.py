"""Orders of columns: stable, either way round, whatever numbers are in them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.analysis.index.ordering import _stable_order

WHOLE = st.one_of(st.integers(-3, 3), st.integers(-(2**63) + 1, 2**63 - 1), st.integers(2**62, 2**62 + 3))
FLOATS = st.one_of(
    st.sampled_from([-0.0, 0.0, 1.0, 1.0 + 2**-52, -1.0, -1.0 - 2**-52, float("inf"), -float("inf"), 5e-324]),
    st.floats(allow_nan=False),
)


def plain(values, down):
    """The stable order as Python's own sort gives it."""
    return sorted(range(len(values)), key=lambda place: -values[place] if down else values[place])


@given(st.lists(WHOLE, max_size=60), st.booleans())
def test_whole_numbers(values, down):
    assert _stable_order(np.array(values, dtype=np.int64), down).tolist() == plain(values, down)


@given(st.lists(FLOATS, max_size=60), st.booleans())
def test_fractions(values, down):
    assert _stable_order(np.array(values, dtype=np.float64), down).tolist() == plain(values, down)


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.float32, np.float64])
def test_many_numbers_that_differ_by_little(dtype, down):
    chance = np.random.default_rng(1)
    values = (chance.integers(-120, 120, 3_000)).astype(dtype)
    if dtype == np.float64:
        # alike in all bits that have room beside the place
        values = 1.0 + chance.integers(0, 9, 3_000) * 2.0**-52
    assert _stable_order(values, down).tolist() == plain(values.tolist(), down)
