"""Figures from a profile: pure functions of its columns. Times are int64 ns, windows half-open [start, end).

The names most used by scripts are exported here and imported lazily.
"""

from __future__ import annotations

from tpuprof_tui.lazy_names import lazy_names

_MODULES = {
    "index.lane_index": ("LaneCells", "LaneIndex", "build_index", "cells", "event_at", "rows_between", "rows_starting"),
    "index.unit_index": ("Indexes", "build_indexes"),
    "links.dependencies": ("Dependency", "Dependencies", "find_dependencies"),
    "query": ("Query", "query_of"),
    "totals.figures": (
        "Headline", "LaneFigures", "UnitFigures", "bytes_between", "lane_figures", "unit_figures",
    ),
}  # fmt: skip

__all__ = sorted(name for names in _MODULES.values() for name in names)

__getattr__ = lazy_names(__name__, _MODULES)
