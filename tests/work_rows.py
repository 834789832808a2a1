"""Rows of work in a window, as views tell them."""

from __future__ import annotations

from collections import namedtuple

from tpuprof_tui.analysis.index.unit_index import indexes_in_sums
from tpuprof_tui.analysis.totals.work_sums import work_sums
from tpuprof_tui.views.work import lost_columns, top_columns

TopRow = namedtuple("TopRow", "share total_ns count mean_ns max_ns label code")
LostRow = namedtuple("LostRow", "lost_ns ideal_ns ratio total_ns count unknown label code")


def _sums(profile, indexes, start, end, by, units, lanes):
    if lanes is not None:
        indexes = [indexes[lane] for lane in lanes]
    elif units is not None:
        indexes = indexes_in_sums(profile, indexes, frozenset().union(*map(profile.groups.within, units)))
    else:
        indexes = [index for index in indexes if index.lane.in_sums]
    return work_sums(indexes, profile.strings, start, end, (by,))[by]


def top(profile, indexes, start, end, *, by="kernel", units=None, lanes=None, limit=20):
    """What took most of the time."""
    sums = _sums(profile, indexes, start, end, by, units, lanes)
    return [TopRow(*row) for row in zip(*top_columns(profile, sums, by), strict=True)][:limit]


def headroom(profile, indexes, start, end, *, by="kernel", units=None, lanes=None, limit=20):
    """Where most time was lost."""
    sums = _sums(profile, indexes, start, end, by, units, lanes)
    return [LostRow(*row) for row in zip(*lost_columns(profile, sums, by), strict=True)][:limit]
