"""The overview of the web page: parameters, the summary of the source's own tool, figures of cores, problems."""

from __future__ import annotations

from typing import Any, Final

from tpuprof_tui.analysis.index.lane_index import build_index
from tpuprof_tui.analysis.totals.figures import unit_figures
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.model import Problem, Profile

from ..selection import Selection

#: Figures of a core that the page shows.
FIGURES: Final = ("compute", "transfer", "overlap", "exposed", "busy", "idle", "window", "guessed")
#: Problems that the page lists.
PROBLEMS: Final = 500


def overview_record(profile: Profile, selection: Selection) -> dict[str, Any]:
    """Everything the overview says, in plain values for JSON; of the device, without a host's lanes."""
    profile = profile.device_part
    device = profile.device
    summary = profile.vocabulary.entry("page_summary")
    return {
        "name": line_text(profile.name),
        "chip": line_text(device.chip),
        **profile.own,
        "cores": list(profile.groups.numbers),
        "ports": list(profile.numbers_in("ports")),
        "parameters": [[line_text(label), line_text(value)] for label, value in device.parameters],
        "peak": {name.lower(): gbps for name, gbps in device.peaks},
        "clock": {name.lower(): mhz for name, mhz in device.clocks},
        "summary": summary(profile, selection) if summary is not None else {"columns": [], "rows": []},
        "figures": figures_record(profile),
        "host": line_text(str(profile.facts.get("host_alignment", ""))),
        "problems": [_problem_record(profile, problem) for problem in _ranked(profile)[:PROBLEMS]],
        "problem_count": len(profile.problems),
    }


def figures_record(profile: Profile) -> list[dict[str, Any]]:
    """What each core did over the whole profile, ns."""
    ports = [build_index(lane) for lane in profile.lanes if profile.unit_of(lane) < 0]
    records = []
    for unit in profile.units:
        # unit by unit: the indexes of all lanes of a long capture take more room than the page
        indexes = [*map(build_index, profile.lanes_of(unit)), *ports]
        found = unit_figures(profile, indexes, unit, profile.start_ns, profile.end_ns)
        records.append({"core": found.number} | {key: getattr(found, key) for key in FIGURES})
    return records


def _ranked(profile: Profile) -> list[Problem]:
    return sorted(profile.problems, key=lambda problem: -problem.severity)


def _problem_record(profile: Profile, problem: Problem) -> dict[str, Any]:
    record = problem.as_record(profile.groups, "core")
    return {key: line_text(value) if isinstance(value, str) else value for key, value in record.items()}
