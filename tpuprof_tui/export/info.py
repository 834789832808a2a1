"""What a capture is: as one JSON object, and as tables for people."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tpuprof_tui.analysis import LaneFigures, build_index, lane_figures
from tpuprof_tui.formats.tables import MISSING, Report, Table, TimeUnit, clean
from tpuprof_tui.model import Profile

from .summary import commands_table, engines_table, lost_text, problems_table

if TYPE_CHECKING:
    from tpuprof_tui.analysis.memory import Memory


def info_record(profile: Profile) -> dict[str, Any]:
    """What a capture is, in plain values for JSON; None where unknown.

    Times are ns; a lane's ``busy_ns`` and ``wait_ns`` are unions (what overlaps counts once) and ``utilisation`` is
    its busy time over the profile's whole length. ``guessed`` says that work and wait are told apart by guesswork.
    """
    profile = profile.device_part
    device = profile.device
    return {
        "path": profile.path,
        "name": profile.name,
        "source": profile.vocabulary.source,
        "chip": device.chip,
        "arch": device.arch,
        **profile.own,
        **{f"{name.lower()}_mhz": _whole(mhz) for name, mhz in device.clocks},
        "cores": sorted((*profile.cores, *profile.lost_cores)),
        "lost_cores": list(profile.lost_cores),
        **_port_records(profile),
        "total_ns": profile.end_ns - profile.start_ns if profile.timed else None,
        "tail_offset_ns": profile.tail_offset_ns,
        "pmu_tail_ns": profile.tail_ns,
        "instructions": profile.instructions,
        "kernel_launches": len(profile.scopes),
        "lanes": _lane_records(profile),
        "problems": [problem.as_record() for problem in profile.problems],
        "facts": dict(profile.facts),
    }


def info_json(profile: Profile, memory: Memory | None = None) -> str:
    """`info_record` as JSON text, ASCII alone; with what the profile takes of memory, where that is asked for."""
    record = info_record(profile)
    if memory is not None:
        record["memory"] = {**asdict(memory), "total": memory.total}
    return json.dumps(record, indent=2, default=str)


def info_report(profile: Profile, memory: Memory | None = None) -> Report:
    """What a capture is, for people; with what the profile takes of memory, where that is asked for."""
    profile = profile.device_part
    device = profile.device
    span = TimeUnit.for_span(profile.end_ns - profile.start_ns)
    facts = [
        ("Path", clean(profile.path, 4096)),
        ("Chip", clean(device.chip)),
        ("Arch", MISSING if device.arch is None else clean(device.arch)),
        ("Mode", f"{profile.recording.short} ({profile.recording.meaning})"),
        ("Clocks", ", ".join(f"{name} {mhz:g} MHz" for name, mhz in device.clocks) or MISSING),
        ("Cores", ", ".join(map(str, profile.cores)) or MISSING),
        *([(_ports(profile), ", ".join(map(str, profile.ports)) or MISSING)] if _ports(profile) else []),
        *((("Lost", lost_text(profile)),) if profile.lost_cores or profile.lost_ports else ()),
        ("Instructions", f"{profile.instructions:,}"),
        ("Kernel launches", f"{len(profile.scopes):,}"),
        ("Total time", span.named(profile.end_ns - profile.start_ns) if profile.timed else MISSING),
    ]
    width = max(len(label) for label, _ in facts)
    lines = tuple(f"{label:{width}}  {text}" for label, text in facts)
    lanes = engines_table(profile, _figures(profile), span) if profile.timed else commands_table(profile)
    tables = [lanes, problems_table(profile)]
    if memory is not None:
        tables.append(_memory_table(memory))
    return Report(clean(profile.name), lines, tuple(table for table in tables if table.rows))


def _port_records(profile: Profile) -> dict[str, Any]:
    """Numbers of ports, by what the source calls them."""
    key = _ports(profile).lower().replace(" ", "_")
    return {key: list(profile.ports), f"lost_{key}": list(profile.lost_ports)} if key else {}


def _ports(profile: Profile) -> str:
    """What the ports beside the cores are called; empty where the source knows none."""
    ports = profile.vocabulary.group_kind("ports")
    return "" if ports is None else ports.title


def _memory_table(memory: Memory) -> Table:
    parts = {f"columns of {clean(kind)}": size for kind, size in memory.columns.items()}
    parts |= {"names": memory.names, "records": memory.records, **memory.derived, "in all": memory.total}
    return Table(
        "Memory",
        ("Held by", "Bytes"),
        tuple((what, f"{size:,}") for what, size in parts.items()),
        frozenset((0,)),
        ("What the explorer's first screen needs is made; what several things share counts where it comes first.",),
        total=True,
    )


def _lane_records(profile: Profile) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for lane, figures in zip(profile.lanes, _figures(profile), strict=True):
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
                "engine": lane.engine,
                "core": lane.core if lane.core >= 0 else None,
                "port": lane.port if lane.port >= 0 else None,
                "label": lane.label,
                "group": lane.group,
                "instructions": len(lane),
                **(measured if profile.timed else dict.fromkeys(measured)),
                "sublanes": lane.sublanes,
                "guessed": figures.guessed,
            }
        )
    return records


def _figures(profile: Profile) -> list[LaneFigures]:
    return [lane_figures(build_index(lane), profile.start_ns, profile.end_ns) for lane in profile.lanes]


def _whole(value: float) -> int | float | None:
    """An integer where it is one; JSON knows no infinity."""
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else value
