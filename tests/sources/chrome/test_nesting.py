"""Nesting of millions of events at once, against what looks at one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpuprof_tui.sources.chrome import nesting

#: Thread, start and length; few times, so that many begin, end and cross at the same.
EVENTS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 12), st.sampled_from([0, 0, 1, 2, 5, 9])), max_size=30
).map(lambda rows: sorted(rows, key=lambda row: (row[0], row[1], -row[2])))


def columns(rows):
    thread, start, length = np.array(rows, np.int64).reshape(-1, 3).T
    return start, start + length, thread


@settings(deadline=None)
@given(rows=EVENTS, asked=EVENTS, few=st.sampled_from([0, 32]), most=st.sampled_from([1, 1 << 62]))
def test_nesting_is_that_of_a_slow_search(rows, asked, few, most):
    start, end, thread = columns(rows)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(nesting, "_FEW", few)
        patched.setattr(nesting, "_MOST", most)
        parent = nesting.parents(start, end, thread)
        depth = nesting.depths(parent)
        subtree_end = nesting.subtree_end(depth)
        points = columns(asked)
        found = nesting.innermost((start, end, thread), points, parent)
    every = range(len(rows))

    def around(own, begin, until, before):
        mine = (n for n in before if thread[n] == own and start[n] <= begin < end[n])
        return max((n for n in mine if end[n] >= until), default=-1)

    assert parent.tolist() == [around(thread[n], start[n], end[n], range(n)) for n in every]
    assert depth.tolist() == [0 if parent[n] < 0 else depth[parent[n]] + 1 for n in every]
    below: list[set[int]] = [{n} for n in every]
    for n in reversed(every):
        if parent[n] >= 0:
            below[parent[n]] |= below[n]
    assert [set(range(n, subtree_end[n])) for n in every] == below
    assert found.tolist() == [around(own, begin, until, every) for begin, until, own in zip(*points, strict=True)]


@settings(deadline=None)
@given(rows=EVENTS, most=st.sampled_from([0, 4096]))
def test_events_of_one_line_do_not_overlap(rows, most):
    start, end, thread = columns(rows)
    depth = nesting.depths(nesting.parents(start, end, thread))
    for number in set(thread.tolist()):
        mine = thread == number
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(nesting, "_MOST_MOVED", most)
            line = nesting.nested_sublanes(start[mine], end[mine], depth[mine])
            count = int(line.max(initial=0)) + 1
        assert count == line.max() + 1
        assert (line >= depth[mine]).all()
        for each in set(line.tolist()):
            assert (start[mine][line == each][1:] >= end[mine][line == each][:-1]).all()


def test_a_deep_stack_and_a_long_row_are_found_quickly():
    count = 200_000
    start = np.arange(count)
    deep = nesting.parents(start, 2 * count - start, np.zeros(count, np.int64))
    assert deep.tolist() == list(range(-1, count - 1))
    assert int(nesting.depths(deep)[-1]) == count - 1
    row = nesting.parents(np.append(0, start), np.append(count, start + 1), np.zeros(count + 1, np.int64))
    assert set(row[1:].tolist()) == {0}
