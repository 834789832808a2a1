"""Data of the overview of the web page: parameters, the summary as in the source's own tool, figures of cores."""

from __future__ import annotations

from typing import Any, Final

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.model import Profile, Vocabulary
from tpuprof_tui.model.vocabulary import DETAIL, NAMES
from tpuprof_tui.views.as_page import page_views
from tpuprof_tui.views.registry import answer, view_of
from tpuprof_tui.views.sentence import sentence

from ..selection import Selection, selected_query

#: Figures of a unit that the page shows.
FIGURES: Final = ("compute", "transfer", "overlap", "exposed", "busy", "idle")
#: Further figure, for sources with communication.
_COMMUNICATION: Final = "exposed_communication"
#: Views that the page draws in its own way.
_DRAWN: Final = frozenset(("overview", "published", "bandwidth", "durations", "counters"))


def overview_record(profile: Profile, selection: Selection) -> dict[str, Any]:
    """Data of the overview as plain values for JSON; without host lanes, except for views."""
    query = selected_query(profile, selection)
    profile = profile.device_part
    device = profile.device
    summary = profile.vocabulary.entry("page_summary")
    return {
        "name": line_text(profile.name),
        "chip": line_text(device.chip),
        **profile.source_data,
        "cores": list(profile.groups.numbers),
        "ports": list(profile.numbers_in("ports")),
        **_words_record(profile),
        "parameters": [[line_text(label), line_text(value)] for label, value in device.parameters],
        "peak": {name.lower(): gbps for name, gbps in device.peaks},
        "clock": {name.lower(): mhz for name, mhz in device.clocks},
        "summary": summary(profile, selection) if summary is not None else {"columns": [], "rows": []},
        "figures": figures_record(query),
        "host": line_text(str(profile.facts.get("host_alignment", ""))),
        # a source's own overview view is included as text
        "sentence": line_text(str(sentence(query))),
        "views": page_views(query, _DRAWN - {view.id for view in profile.vocabulary.views if view.id == "overview"}),
        "problem_count": len(profile.problems),
    }


def _words_record(profile: Profile) -> dict[str, Any]:
    vocabulary, groups = profile.vocabulary, profile.groups
    ports = vocabulary.group_kind("ports")
    tops = (group for place, group in enumerate(groups) if group.parent < 0 and not groups.units_within(place))
    beside = next((group.label for group in tops if group.kind != "ports"), "")
    notes = []
    if "page_no_detail" in vocabulary.phrases and not profile.has(DETAIL):
        notes.append(vocabulary.phrase("page_no_detail", ""))
    if vocabulary.capability(NAMES) is not None and not profile.has(NAMES):
        notes.append(vocabulary.phrase("page_no_names", "Names need {needs}.", needs=vocabulary.needs(NAMES)))
    moved, rate = vocabulary.share("bandwidth"), _rate(vocabulary)
    return {
        "words": {**vocabulary.words, "published": vocabulary.phrase("page_published", "")},
        "titles": {column.key: column.title for column in vocabulary.columns},
        "memories": [
            {"key": key, "name": peak.lower(), "label": vocabulary.schema[key].title.removesuffix(" BW")}
            for key, peak in (moved.columns if moved is not None else ())
        ],
        "rate": None if rate is None else {"key": rate, "title": vocabulary.schema[rate].title,
                                           "missing": vocabulary.phrase("page_no_rate", "It is not known here.")},
        "recording": [profile.recording.name, profile.recording.short, profile.recording.meaning],
        "notes": notes,
        "has_memory": vocabulary.entry("page_memory") is not None,
        "bars": vocabulary.phrase("page_bars", "Transfer: without compute at the same time."),
        "ports_title": ports.title.removesuffix(" ports") if ports is not None else "",
        "others_title": line_text(beside),
    }  # fmt: skip


def _rate(vocabulary: Vocabulary) -> str | None:
    """Key of the drawn column that holds a share of a hardware limit in percent; None if there is none."""
    shares = (key for share in vocabulary.shares for key, peak in share.columns if not peak)
    return next((key for key in shares if key in vocabulary.page_columns), None)


def figures_record(query: Query) -> list[dict[str, Any]]:
    """Figures of each unit, from the view ``units``; empty without times."""
    found = answer(view_of(query.vocabulary, "units"), query)
    if not found.tables:
        return []
    table = found.table("units")
    guessed = table.guessed or frozenset()
    numbers = [query.profile.groups.number(unit) for unit in query.units]
    keys = FIGURES if table.column_index(f"{_COMMUNICATION}_us") < 0 else (*FIGURES, _COMMUNICATION)
    columns = {key: table.column(f"{key}_us") for key in keys} | {"title": list(map(line_text, table.column("unit")))}
    return [
        {"core": number, **{key: values[row] for key, values in columns.items()}, "window": query.span,
         "guessed": row in guessed}
        for row, number in enumerate(numbers)
    ]  # fmt: skip
