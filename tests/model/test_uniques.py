"""Distinct values of arrays, and patterns that are compiled when they are used."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model.uniques import uniques


@given(st.lists(st.integers(-(1 << 31), (1 << 31) - 1)), st.sampled_from([np.int64, np.int32]))
def test_distinct_values_are_those_of_numpy(values, kind):
    array = np.array(values, kind)
    found = uniques(array)
    assert found.dtype == array.dtype
    assert found.tolist() == np.unique(array).tolist()


def test_distinct_values_of_a_table_are_in_one_row():
    assert uniques(np.array([[3, 1], [1, 2]])).tolist() == [1, 2, 3]


def test_a_pattern_is_compiled_at_its_first_use(monkeypatch):
    compiled = []
    real = re.compile
    monkeypatch.setattr(re, "compile", lambda *given: compiled.append(given) or real(*given))
    pattern = lazy_pattern("a(b+)", re.IGNORECASE)
    assert pattern.pattern == "a(b+)"
    assert not compiled
    assert pattern.fullmatch("ABB")[1] == "BB"
    assert not pattern.fullmatch("ba")
    assert compiled == [("a(b+)", re.IGNORECASE)]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda pattern: pickle.loads(pickle.dumps(pattern))])
def test_a_pattern_can_be_copied_before_and_after_its_use(copied):
    pattern = lazy_pattern(rb"[0-9]+")
    assert copied(pattern).findall(b"12 3") == [b"12", b"3"]
    pattern.findall(b"")
    assert copied(pattern).findall(b"12 3") == [b"12", b"3"]
