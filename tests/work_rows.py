"""Rows of work in a window, from its sums: what views are made of."""

from __future__ import annotations

from tpuprof_tui.analysis.totals.headroom import headroom_rows
from tpuprof_tui.analysis.totals.top import top_rows
from tpuprof_tui.analysis.totals.work_sums import work_sums


def top(profile, indexes, start, end, *, by="kernel", units=None, lanes=None, limit=20):
    """What took most of the time."""
    sums = work_sums(profile, indexes, start, end, (by,), units=units, lanes=lanes)[by]
    return top_rows(profile, sums, by, limit)


def headroom(profile, indexes, start, end, *, by="kernel", units=None, lanes=None, limit=20):
    """Where most time was lost."""
    sums = work_sums(profile, indexes, start, end, (by,), units=units, lanes=lanes)[by]
    return headroom_rows(profile, sums, by, limit)
