"""Figures from a profile: pure functions of its columns. Times are int64 ns, windows half-open [start, end)."""

from __future__ import annotations

from .index.intervals import Intervals
from .index.lane_index import Cells, LaneIndex, build_index, cells, count_between, event_at, rows_between
from .links.dependencies import Link, LinkKind, Links, find_links
from .totals.figures import (
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
from .totals.headroom import HeadroomRow, headroom
from .totals.top import TopRow, top

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
    "top",
]
