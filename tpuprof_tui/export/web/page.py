"""Writes a self-contained HTML page, which works from disk without network access.

The page consists of ``page_parts/page.html`` with its style and scripts, the overview as JSON, and the columns of
events as compressed chunks. Texts from the capture are JSON strings in which ``<``, ``>``, ``&`` and ``/`` are escaped,
so that they cannot end a script, open an element or form a URL; the scripts insert them as text only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO, Final

from tpuprof_tui import __version__
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.totals.figures import lane_figures
from tpuprof_tui.formats.escape import html_text, line_text, script_json
from tpuprof_tui.formats.files import whole_file
from tpuprof_tui.formats.web_codec import Chunk
from tpuprof_tui.model import Profile, Vocabulary
from tpuprof_tui.model.vocabulary import DETAIL, NAMES
from tpuprof_tui.views.as_page import page_views
from tpuprof_tui.views.registry import answer, view_of
from tpuprof_tui.views.sentence import sentence

from ..job import Job
from ..selection import selection_facts, timed_part
from .lanes import ChosenLane, Kinds, chosen_lanes, cut_time, lane_record, launch_records

Progress = Callable[[float], None]

#: Maximum number of events in a page; browsers draw this many without delay.
MOST_INSTRUCTIONS: Final = 2_000_000
#: Minimum interval between progress reports, seconds.
REPORT_EVERY: Final = 0.1
#: The scripts, in the order of inclusion.
SCRIPTS: Final = ("codec.js", "text.js", "model.js", "colours.js", "state.js", "raster.js", "timeline.js", "minimap.js",
                  "hover.js", "panels.js", "memory.js", "shares.js", "table.js", "overview.js", "copying.js",
                  "controls.js", "keys.js", "address.js", "main.js")  # fmt: skip


def write_web(
    query: Query, path: str | Path, *, progress: Progress | None = None, most: int = MOST_INSTRUCTIONS
) -> int:
    """Writes the page; returns the number of bytes written.

    Args:
        query: What to write; lanes without times are left out.
        path: Path of the file.
        progress: Gets the completed share, 0 to 1.
        most: Maximum number of events to write. If there are more, only those that start before a common time are
            written, so that every core is complete up to it; sums, shares and the overview still cover all events, and
            the page states this.

    Raises:
        WriteError: The file could not be written; no partial file is left.
    """
    with whole_file(Path(path)) as stream:
        return _Page(timed_part(query), stream, progress or (lambda _: None), most).write()


def write_page(job: Job, paths: Sequence[Path], progress: Callable[[float], None]) -> list[Path]:
    """Writes the page as an output of an export job."""
    write_web(job.document_query, paths[0], progress=progress)
    return list(paths)


class _Page:
    """Writer of one page."""

    def __init__(self, query: Query, stream: BinaryIO, progress: Progress, most: int) -> None:
        self._query = query
        self._stream = stream
        self._progress = progress
        self._reported = -REPORT_EVERY
        self._most = most
        self._written = 0
        self._chunks = 0

    def write(self) -> int:
        """Writes the page; returns the number of bytes."""
        page = files(__package__).joinpath("page_parts")
        head, body, end = page.joinpath("page.html").read_text("utf-8").split("<!-- cut -->\n")
        style = page.joinpath("style.css").read_text("utf-8")
        title = html_text(self._query.profile.name)
        self._put(head.replace("{{title}}", title).replace("{{style}}", style))
        self._put(body)
        record = self._record()
        self._put(f'<script type="application/json" id="profile">{script_json(record)}</script>\n')
        self._put("<script>\n'use strict';\n(() => {\n")
        for name in SCRIPTS:
            self._put(page.joinpath(name).read_text("utf-8"))
        self._put("})();\n</script>\n" + end)
        self._progress(1.0)
        return self._written

    def _record(self) -> dict[str, Any]:
        query, profile = self._query, self._query.profile
        lanes = chosen_lanes(query)
        window = self._drawn(lanes)
        until = cut_time(lanes, self._most)
        kinds = Kinds(profile)
        records = []
        total = sum(each.count for each in lanes)
        done = 0
        for each in lanes:
            shown = each.count if until is None else each.before(until)
            index = query.lane_indexes.get(each.number) or each.index()
            figures = lane_figures(index, *query.window_of(-1, each.number))
            records.append(
                lane_record(profile, each, kinds, shown, window, figures, self._put_chunk, until is not None)
            )
            done += each.count
            self._report(0.9 * done / total)
        device = [each for each in lanes if not each.lane.on_host]
        memory = profile.vocabulary.entry("page_memory")
        record = overview_record(query)
        record |= {
            "version": __version__,
            "window": list(window),
            "device": list(self._drawn(device or lanes)),
            "length": query.span,
            "total": total,
            "instructions": sum(each.count for each in device),
            "whole": profile.event_count,
            "selection": "; ".join(f"{fact.title} {fact.value}" for fact in selection_facts(query)),
            "shown": sum(each["shown"] for each in records),
            "until": until,
            "most": self._most,
            "lanes": records,
            "launches": launch_records(profile, lanes, kinds, self._put_chunk, until),
            "memory": memory(profile, lanes, [each["shown"] for each in records], self._put_chunk) if memory else None,
        }
        return record | kinds.tables()

    def _window(self, lanes: list[ChosenLane]) -> tuple[int, int]:
        """Half-open time range of the selected events, ns."""
        start = min((int(each.lane.take("start", each.rows)[0]) for each in lanes), default=0)
        return start, max((int(each.lane.take("end", each.rows).max()) for each in lanes), default=start)

    def _drawn(self, lanes: list[ChosenLane]) -> tuple[int, int]:
        """The same of at least 1 ns, to be drawn and divided by."""
        start, end = self._window(lanes)
        return start, max(end, start + 1)

    def _report(self, share: float) -> None:
        now = time.monotonic()
        if now - self._reported >= REPORT_EVERY:
            self._reported = now
            self._progress(share)

    def _put_chunk(self, chunk: Chunk) -> int:
        number = self._chunks
        self._chunks += 1
        columns = script_json([chunk.count, chunk.columns]).replace('"', "&quot;")
        self._put(f'<script type="text/plain" id="chunk{number}" data-columns="{columns}">')
        self._put(chunk.base64())
        self._put("</script>\n")
        return number

    def _put(self, data: str | bytes) -> None:
        octets = data.encode("utf-8") if isinstance(data, str) else data
        self._stream.write(octets)
        self._written += len(octets)


#: Figures of a unit that the page shows.
FIGURES: Final = ("compute", "transfer", "overlap", "exposed", "busy", "idle")
#: Further figure, for sources with communication.
_COMMUNICATION: Final = "exposed_communication"
#: Views that the page draws in its own way.
_DRAWN: Final = frozenset(("overview", "published", "bandwidth", "durations", "counters"))


def overview_record(query: Query) -> dict[str, Any]:
    """Data of the overview as plain values for JSON; without host lanes, except for views."""
    profile = query.profile.device_part
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
        "summary": summary(query) if summary is not None else {"columns": [], "rows": []},
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
