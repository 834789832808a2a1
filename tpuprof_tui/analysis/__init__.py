"""Figures from a profile: pure functions of its columns. Times are int64 ns, windows half-open [start, end)."""

from __future__ import annotations

from .dependencies import Link, LinkKind, Links, find_links
from .figures import (
    CoreFigures,
    Headline,
    Indexes,
    LaneFigures,
    build_indexes,
    bytes_between,
    core_figures,
    headline,
    lane_figures,
)
from .headroom import HeadroomRow, headroom
from .intervals import Intervals
from .lane_index import Cells, LaneIndex, build_index, cells, count_between, event_at, rows_between
from .reference import SummaryRow, summary_table, summary_text
from .top import TopRow, top

__all__ = [
    "Cells",
    "CoreFigures",
    "Headline",
    "HeadroomRow",
    "Indexes",
    "Intervals",
    "LaneFigures",
    "LaneIndex",
    "Link",
    "LinkKind",
    "Links",
    "SummaryRow",
    "TopRow",
    "build_index",
    "build_indexes",
    "bytes_between",
    "cells",
    "core_figures",
    "count_between",
    "event_at",
    "find_links",
    "headline",
    "headroom",
    "lane_figures",
    "rows_between",
    "summary_table",
    "summary_text",
    "top",
]
