"""What a capture is, as one JSON object."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tpuprof_tui.analysis.index.lane_index import build_index
from tpuprof_tui.analysis.index.ordering import fixed_number
from tpuprof_tui.analysis.totals.figures import LaneFigures, lane_figures
from tpuprof_tui.formats.answers import answer_text
from tpuprof_tui.model import Lane, Profile

if TYPE_CHECKING:
    from tpuprof_tui.analysis.memory import Memory


def info_record(profile: Profile, *, limit: int | None = None, offset: int = 0) -> dict[str, Any]:
    """What a capture is, in plain values for JSON; None where unknown.

    Times are ns; a lane's ``busy_ns`` and ``wait_ns`` are unions (what overlaps counts once) and ``utilisation`` is
    its busy time over the profile's whole length. ``guessed`` says that work and wait are told apart by guesswork.

    Args:
        profile: The profile.
        limit: How many lanes and problems at most; None: all. ``total_rows`` says how many there are.
        offset: How many of these are passed over.
    """
    profile = profile.device_part
    rows = slice(offset, None if limit is None else offset + limit)
    lanes, problems = profile.lanes[rows], profile.problems[rows]
    device, groups = profile.device, profile.groups
    return {
        "path": profile.path,
        "name": profile.name,
        "source": profile.vocabulary.source,
        "chip": device.chip,
        "arch": device.arch,
        **profile.own,
        **{f"{name.lower()}_mhz": _whole(mhz) for name, mhz in device.clocks},
        "cores": sorted((*groups.numbers, *groups.lost_numbers("core"))),
        "lost_cores": list(groups.lost_numbers("core")),
        **_port_records(profile),
        "total_ns": profile.end_ns - profile.start_ns if profile.timed else None,
        "tail_offset_ns": profile.tail_offset_ns,
        "pmu_tail_ns": profile.tail_ns,
        "instructions": profile.instructions,
        "kernel_launches": len(profile.scopes),
        "lanes": _lane_records(profile, lanes),
        **_measured(profile),
        "problems": [problem.as_record(profile.groups, "core") for problem in problems],
        "total_rows": {"lanes": len(profile.lanes), "problems": len(profile.problems)},
        "truncated": len(lanes) < len(profile.lanes) or len(problems) < len(profile.problems),
        "facts": dict(profile.facts),
    }


def info_json(profile: Profile, memory: Memory | None = None, *, limit: int | None = None, offset: int = 0) -> str:
    """`info_record` as JSON text, ASCII alone; with what the profile takes of memory, where that is asked for."""
    record = info_record(profile, limit=limit, offset=offset)
    if memory is not None:
        record["memory"] = {**asdict(memory), "total": memory.total}
    return answer_text(record)


def _port_records(profile: Profile) -> dict[str, Any]:
    """Numbers of ports, by what the source calls them."""
    key = _ports(profile).lower().replace(" ", "_")
    return (
        {key: list(profile.numbers_in("ports")), f"lost_{key}": list(profile.groups.lost_numbers("port"))}
        if key
        else {}
    )


def _ports(profile: Profile) -> str:
    """What the ports beside the cores are called; empty where the source knows none."""
    ports = profile.vocabulary.group_kind("ports")
    return "" if ports is None else ports.title


def _measured(profile: Profile) -> dict[str, Any]:
    """Counters and steps by name, with how many values and steps there are; nothing where there are none."""
    counters = [
        {"group": profile.groups.title(each.group), "name": each.name, "unit": each.unit, "count": len(each)}
        for each in profile.counters
    ]
    steps = [{"name": label, "count": count} for label, count in profile.steps.counts().items()]
    return {**({"counters": counters} if counters else {}), **({"steps": steps} if steps else {})}


def _lane_records(profile: Profile, lanes: Sequence[Lane]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for lane, figures in zip(lanes, _figures(profile, lanes), strict=True):
        measured = {
            "busy_ns": figures.busy,
            "wait_ns": figures.wait,
            "sync_ns": figures.sync,
            "idle_ns": figures.idle,
            "utilisation": round(figures.utilisation, 6),
            "bytes": figures.bytes,
        }
        records.append(
            {
                "engine": lane.kind,
                "core": _number(profile, lane, "core"),
                "port": _number(profile, lane, "port"),
                "label": lane.label,
                "group": profile.groups.title(lane.group),
                "instructions": len(lane),
                **(measured if profile.timed else dict.fromkeys(measured)),
                "sublanes": lane.sublanes,
                "guessed": figures.guessed,
            }
        )
    return records


def _number(profile: Profile, lane: Lane, key: str) -> int | None:
    number = fixed_number(profile, lane, key)
    return number if number >= 0 else None


def _figures(profile: Profile, lanes: Sequence[Lane]) -> list[LaneFigures]:
    return [lane_figures(build_index(lane), profile.start_ns, profile.end_ns) for lane in lanes]


def _whole(value: float) -> int | float | None:
    """An integer where it is one; JSON knows no infinity."""
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else value
