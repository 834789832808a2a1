"""The overview of the web page: parameters, the summary of the source's own tool, figures of cores, problems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tpuprof_tui.analysis import build_index, core_figures
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.model import Problem, Profile

from ..selection import Selection
from .lanes import HOST

#: Figures of a core that the page shows.
FIGURES: Final = ("core", "compute", "transfer", "overlap", "exposed", "busy", "idle", "window", "guessed")
#: Problems that the page lists.
PROBLEMS: Final = 500


def overview_record(profile: Profile, selection: Selection) -> dict[str, Any]:
    """Everything the overview says, in plain values for JSON; of the device, without a host's lanes."""
    profile = replace(profile, lanes=tuple(lane for lane in profile.lanes if lane.engine != HOST))
    device = profile.device
    summary = profile.vocabulary.entry("page_summary")
    return {
        "name": line_text(profile.name),
        "chip": line_text(device.chip),
        **profile.own,
        "cores": list(profile.cores),
        "ports": list(profile.ports),
        "parameters": [[line_text(label), line_text(value)] for label, value in device.parameters],
        "peak": {name.lower(): gbps for name, gbps in device.peaks},
        "clock": {name.lower(): mhz for name, mhz in device.clocks},
        "summary": summary(profile, selection) if summary is not None else {"columns": [], "rows": []},
        "figures": figures_record(profile),
        "host": line_text(str(profile.facts.get("host_alignment", ""))),
        "problems": [_problem_record(problem) for problem in _ranked(profile)[:PROBLEMS]],
        "problem_count": len(profile.problems),
    }


def figures_record(profile: Profile) -> list[dict[str, Any]]:
    """What each core did over the whole profile, ns."""
    ports = [build_index(lane) for lane in profile.lanes if lane.core < 0]
    records = []
    for core in profile.cores:
        # core by core: the indexes of all lanes of a long capture take more room than the page
        indexes = [*map(build_index, profile.core_lanes(core)), *ports]
        found = core_figures(profile, indexes, core, profile.start_ns, profile.end_ns)
        records.append({key: getattr(found, key) for key in FIGURES})
    return records


def _ranked(profile: Profile) -> list[Problem]:
    return sorted(profile.problems, key=lambda problem: -problem.severity)


def _problem_record(problem: Problem) -> dict[str, Any]:
    record = problem.as_record()
    return {key: line_text(value) if isinstance(value, str) else value for key, value in record.items()}
