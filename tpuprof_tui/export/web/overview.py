"""The overview of the web page: parameters, the summary of the source's own tool, figures of cores, problems."""

from __future__ import annotations

from typing import Any, Final

from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.model import Profile
from tpuprof_tui.views.as_page import page_views
from tpuprof_tui.views.query import Query
from tpuprof_tui.views.registry import answer, view_of

from ..selection import Selection

#: Figures of a core that the page shows.
FIGURES: Final = ("compute", "transfer", "overlap", "exposed", "busy", "idle")
#: Views that the page draws otherwise.
_DRAWN: Final = frozenset(("overview", "published", "bandwidth", "durations", "counters"))


def overview_record(profile: Profile, selection: Selection) -> dict[str, Any]:
    """Everything the overview says, in plain values for JSON; of the device, without a host's lanes."""
    profile = profile.device_part
    query = Query(Session(profile))
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
        "figures": figures_record(query),
        "host": line_text(str(profile.facts.get("host_alignment", ""))),
        "views": page_views(query, _DRAWN),
        "problem_count": len(profile.problems),
    }


def figures_record(query: Query) -> list[dict[str, Any]]:
    """What each unit did, ns, as its view tells it; nothing without times."""
    found = answer(view_of(query.vocabulary, "units"), query)
    if not found.tables:
        return []
    table = found.table("units")
    guessed = table.guessed or frozenset()
    numbers = [query.profile.groups.number(unit) for unit in query.units]
    columns = {key: table.column(f"{key}_us") for key in FIGURES}
    return [
        {"core": number, **{key: values[row] for key, values in columns.items()}, "window": query.span,
         "guessed": row in guessed}
        for row, number in enumerate(numbers)
    ]  # fmt: skip
