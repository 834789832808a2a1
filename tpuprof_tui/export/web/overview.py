"""The overview of the web page: parameters, the summary of the source's own tool, figures of cores, problems."""

from __future__ import annotations

from typing import Any, Final

from tpuprof_tui.analysis.index.lane_index import build_index
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.totals.figures import unit_figures
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.model import Profile
from tpuprof_tui.views.as_page import page_views
from tpuprof_tui.views.query import Query

from ..selection import Selection

#: Figures of a core that the page shows.
FIGURES: Final = ("compute", "transfer", "overlap", "exposed", "busy", "idle", "window", "guessed")
#: Views that the page draws otherwise.
_DRAWN: Final = frozenset(("overview", "published", "bandwidth", "durations", "counters"))


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
        "views": page_views(Query(Session(profile)), _DRAWN),
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
