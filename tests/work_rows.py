"""Rows of work in a window, as views tell them."""

from __future__ import annotations

from collections import namedtuple

from tpuprof_tui.analysis.totals.work_sums import work_sums
from tpuprof_tui.views.work import lost_columns, top_columns

TopRow = namedtuple("TopRow", "share total_ns count mean_ns max_ns label code")
LostRow = namedtuple("LostRow", "lost_ns ideal_ns ratio total_ns count unknown label code")


def top(profile, indexes, start, end, *, by="kernel", units=None, lanes=None, limit=20):
    """What took most of the time."""
    sums = work_sums(profile, indexes, start, end, (by,), units=units, lanes=lanes)[by]
    return [TopRow(*row) for row in zip(*top_columns(profile, sums, by), strict=True)][:limit]


def headroom(profile, indexes, start, end, *, by="kernel", units=None, lanes=None, limit=20):
    """Where most time was lost."""
    sums = work_sums(profile, indexes, start, end, (by,), units=units, lanes=lanes)[by]
    return [LostRow(*row) for row in zip(*lost_columns(profile, sums, by), strict=True)][:limit]
