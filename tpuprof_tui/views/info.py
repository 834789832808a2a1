"""Metadata of a capture as one JSON object (``tpuprof info --json``)."""

from __future__ import annotations

import math
import sys
from resource import RUSAGE_SELF, getrusage
from typing import Any, Final

from tpuprof_tui.analysis.index.ordering import unit_or_port
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.formats.answers import answer_text
from tpuprof_tui.formats.units import clock_text
from tpuprof_tui.model import Profile

from .registry import answer, view_of
from .report import total_ns


def info_record(profile: Profile, *, limit: int | None = None, offset: int = 0) -> dict[str, Any]:
    """Metadata of a capture as plain values for JSON; None where unknown.

    Times are ns; a lane's ``busy_ns`` and ``wait_ns`` are unions (overlaps count once) and ``utilisation`` is its busy
    time over ``device_ns``. ``guessed``: the distinction of work and wait is inferred. Lanes and problems
    have ``limit`` rows (None: all) from ``offset``; ``total_rows`` has their total numbers.
    """
    begun = None if profile.wall_ns is None else clock_text(profile.wall_ns + profile.start_ns)
    total = total_ns(query_of(profile).session) if profile.timed else None
    device_ns = profile.device_ns if profile.timed else None
    profile = profile.device_part
    rows = slice(offset, None if limit is None else offset + limit)
    lanes, problems = profile.lanes[rows], profile.problems[rows]
    device, groups = profile.device, profile.groups
    counters = [
        {"group": groups.title(each.group), "name": each.name, "unit": each.unit, "count": len(each)}
        for each in profile.counters
    ]
    steps = [{"name": label, "count": count} for label, count in profile.steps.counts().items()]
    ports = profile.vocabulary.group_kind("ports")
    key = "" if ports is None else ports.title.lower().replace(" ", "_")
    port_numbers = {key: list(profile.numbers_in("ports")), f"lost_{key}": list(groups.lost_numbers("port"))}
    return {
        "path": profile.path,
        "name": profile.name,
        "source": profile.vocabulary.source,
        "chip": device.chip,
        "arch": device.arch,
        **profile.source_data,
        **{f"{name.lower()}_mhz": _as_int(mhz) for name, mhz in device.clocks},
        "cores": sorted((*groups.numbers, *groups.lost_numbers("core"))),
        "lost_cores": list(groups.lost_numbers("core")),
        **(port_numbers if key else {}),
        "total_ns": total,
        "device_ns": device_ns,
        "wall_clock": begun,
        "tail_offset_ns": profile.tail_offset_ns,
        "pmu_tail_ns": profile.tail_ns,
        "instructions": profile.event_count,
        "kernel_launches": len(profile.scopes),
        "lanes": _lane_records(profile, rows),
        **({"counters": counters} if counters else {}),
        **({"steps": steps} if steps else {}),
        "problems": [problem.as_record(profile.groups, "core") for problem in problems],
        "total_rows": {"lanes": len(profile.lanes), "problems": len(profile.problems)},
        "truncated": len(lanes) < len(profile.lanes) or len(problems) < len(profile.problems),
        "facts": dict(profile.facts),
    }


def info_json(profile: Profile, *, memory: bool = False, limit: int | None = None, offset: int = 0) -> str:
    """`info_record` as ASCII JSON text, with the profile's memory if given."""
    record = info_record(profile, limit=limit, offset=offset)
    if memory:
        record["memory"] = memory_record(profile)
    return answer_text(record)


#: Keys of a lane's figures here, with their keys in the view of lanes.
_FIGURES: Final = {
    "busy_ns": "busy_us", "wait_ns": "wait_us", "sync_ns": "sync_us", "idle_ns": "idle_us",
    "utilisation": "utilisation", "bytes": "bytes",
}  # fmt: skip


def _lane_records(profile: Profile, rows: slice) -> list[dict[str, Any]]:
    measured = _lane_figures(profile)
    unknown = dict.fromkeys(_FIGURES)
    # a lane without events is idle throughout
    idle = unknown if not profile.timed else {**dict.fromkeys(_FIGURES, 0), "bytes": None,
                                              "idle_ns": profile.end_ns - profile.start_ns}  # fmt: skip
    return [
        {
            "engine": lane.kind,
            "core": core if core >= 0 else None,
            "port": port if port >= 0 else None,
            "label": lane.label,
            "group": profile.groups.title(lane.group),
            "instructions": len(lane),
            **measured.get(number, idle),
            "sublanes": lane.sublanes,
            "guessed": lane.role_guessed,
        }
        for number, lane in list(enumerate(profile.lanes))[rows]
        for core, port in [[unit_or_port(profile, lane, key) for key in ("core", "port")]]
    ]


def _lane_figures(profile: Profile) -> dict[int, dict[str, Any]]:
    found = answer(view_of(profile.vocabulary, "lanes"), query_of(profile))
    figures: dict[int, dict[str, Any]] = {}
    for table in found.tables[:1]:
        columns = {key: table.column(name) for key, name in _FIGURES.items()}
        for row in range(len(table)):
            target = table.target_of(row)
            if target is not None and target.scope is not None:
                values = {key: column[row] for key, column in columns.items()}
                figures[target.scope.lane] = {**values, "utilisation": round(values["utilisation"], 6)}
    return figures


def _as_int(value: float) -> int | float | None:
    """Converts to int if integral; infinity and NaN, which JSON lacks, to None."""
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else value


def memory_record(profile: Profile) -> dict[str, Any]:
    """Bytes of columns held as arrays, by kind of lane, and most that the process held with the first screen."""
    from .summary_views import first_screen  # loads what only this asks for

    first_screen(profile)
    columns: dict[str, int] = {}
    for lane in profile.lanes:
        columns[lane.kind] = columns.get(lane.kind, 0) + sum(each.nbytes for each in lane.stored_arrays())
    return {"columns": columns, "process": getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)}
