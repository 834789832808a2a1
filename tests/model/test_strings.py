"""Tables of the distinct strings of a column."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.model import Strings, StringsBuilder


def test_codes_are_given_in_order_of_first_use():
    builder = StringsBuilder()
    assert [builder.code(text) for text in ("b", "a", "b", "", "a")] == [0, 1, 0, 2, 1]
    assert builder.text(1) == "a"
    assert builder.text(-1) == builder.text(3) == ""
    built = builder.build()
    assert list(built) == ["b", "a", ""]
    assert len(built) == 3


def test_codes_that_name_nothing_are_empty():
    strings = Strings(["x"])
    assert strings[-1] == strings[1] == ""
    assert strings.texts(np.array([0, -1, 0], np.int32)) == ["x", "", "x"]


@given(st.lists(st.text(max_size=4), unique=True, max_size=30))
def test_ranks_sort_as_people_read(texts):
    strings = Strings(texts)
    ranks = strings.ranks
    assert ranks[-1] == -1, "missing sorts first"
    by_rank = sorted(range(len(texts)), key=lambda code: int(ranks[code]))
    assert [texts[code] for code in by_rank] == sorted(texts, key=lambda text: (text.casefold(), text))
