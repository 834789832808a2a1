"""``tpuprof describe``: a summary of at most 2 kB of a profile's contents, views, columns, and useful commands."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.analysis.steps.step_detection import ProfileSteps
from tpuprof_tui.export.outputs import outputs_of
from tpuprof_tui.export.table import known_columns
from tpuprof_tui.formats.answers import answer_text
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.formats.units import time_text
from tpuprof_tui.model import Profile, worst
from tpuprof_tui.model.columns import COUNTERS
from tpuprof_tui.model.vocabulary import Word
from tpuprof_tui.views.registry import missing_for, views_of
from tpuprof_tui.views.report import total_ns

from .opening import for_each_capture

#: Maximum size of the text, and of the JSON without the path, bytes.
MOST_BYTES: Final = 2000
#: Maximum size of a name, of a sentence, and of a list of names, encoded as JSON, bytes.
_NAME, _SENTENCE, _LIST = 48, 160, 200
#: Commands after ``tpuprof``, and what they return.
_ASK: Final = (
    ("report PATH VIEW ... --json", "views; --group G --range A..B --filter EXPR --limit N --offset N"),
    ("instructions PATH --columns LIST", "{events}; --sort COLUMN:desc --filter EXPR --limit N"),
    ("info PATH --json", "each {lane}, each problem"),
    ("export PATH DIR --only LIST", "files: {files}"),
    ("help schema report", "the JSON schema; help COLUMNS: columns"),
)
_MORE: Final = "..."


def print_description(options: argparse.Namespace) -> int:
    """Prints descriptions, as text or as one line of JSON each; returns the exit status."""
    if options.json:
        return for_each_capture(
            options,
            lambda profile: print(answer_text(description_record(query_of(profile)), indent=None)),
            headed=False,
        )
    return for_each_capture(options, _print_text)


def _print_text(profile: Profile) -> None:
    query = query_of(profile)
    print(_text(description_record(query), profile, query.steps), end="")


def description_record(query: Query) -> dict[str, Any]:
    """Contents, views, columns and commands of a profile as plain values; truncated lists end in ``...``."""
    profile, steps = query.profile, query.steps
    words, device, problems = profile.vocabulary, profile.device, profile.problems
    kinds = Counter(lane.kind for lane in profile.lanes)
    views = views_of(words)
    severities = Counter(problem.severity for problem in problems)
    gravest = next((each.what for each in problems if each.severity == worst(problems)), None)
    said = {name: _cut(words.say(text, files=", ".join(output.key for output in outputs_of(words))), _SENTENCE)
            for name, text in _ASK}  # fmt: skip
    record: dict[str, Any] = {
        "path": profile.path,
        "name": _cut(profile.name, _NAME),
        "source": _cut(words.source, _NAME),
        "title": _cut(words.title, _NAME),
        "device": _cut(device.chip, _NAME),
        "clocks_mhz": {_cut(name, _NAME // 2): mhz for name, mhz in device.clocks[:4]},
        "recording": _cut(f"{profile.recording.name} ({profile.recording.meaning})".lstrip(), _NAME),
        "units": {"word": words.unit.one, "count": profile.groups.device_count},
        "lanes": {"word": words.lane.one, "count": len(profile.lanes),
                  "kinds": {_cut(kind, _NAME // 2): count for kind, count in list(kinds.items())[:6]}},
        "events": {"word": words.event.one, "count": profile.event_count},
        "launches": len(profile.scopes),
        "total_us": total_ns(query.session) / 1000 if profile.timed else None,
        "steps": {"word": steps.word.one, "count": len(steps), "guessed": steps.guessed},
        "counters": _some(dict.fromkeys(each.name for each in profile.counters), _LIST),
        "known": _some((each.title for each in words.capabilities if profile.has(each.key)), _LIST),
        "missing": [{"what": _cut(each.title, _NAME), "needs": _cut(each.needs, _NAME)}
                    for each in words.capabilities if not profile.has(each.key)][:4],
        "problems": {severity.word: count for severity, count in sorted(severities.items(), reverse=True)},
        "worst_problem": None if gravest is None else _cut(gravest, _SENTENCE),
        "views": _some((view.id for view in views if missing_for(view, profile) is None), 2 * _LIST),
        "views_missing": _some((view.id for view in views if missing_for(view, profile) is not None), _LIST),
        "columns": [],
        "commands": said,
    }  # fmt: skip
    keys = [column.key for column in known_columns(profile) if column.group != COUNTERS]
    # as many columns as fit
    without = {**record, "path": ""}
    room = MOST_BYTES - max(len(answer_text(without, indent=None)), len(_text(without, profile, steps).encode()))
    record["columns"] = _some(keys, room)
    return record


def _text(record: dict[str, Any], profile: Profile, steps: ProfileSteps) -> str:
    return "".join(f"{line}\n" for line in _lines(record, profile, steps))


def _lines(record: dict[str, Any], profile: Profile, steps: ProfileSteps) -> Iterator[str]:

    words = profile.vocabulary
    yield line_text(f"{record['name']}: {record['title']}")
    for title, text in _facts(record, profile, steps):
        if text:
            yield line_text(f"{title:10} {text}")
    yield words.say("Ask (PATH: this profile):")
    width = max(map(len, record["commands"]))
    yield from (line_text(f"  tpuprof {typed:{width}}  {text}") for typed, text in record["commands"].items())


def _facts(record: dict[str, Any], profile: Profile, steps: ProfileSteps) -> Iterator[tuple[str, str]]:

    words = profile.vocabulary
    clocks = (f"{name} {mhz:g} MHz" for name, mhz in record["clocks_mhz"].items())
    yield "Device", "; ".join((", ".join((record["device"], *clocks)), record["recording"]))
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in record["lanes"]["kinds"].items())
    lanes = words.lane.of(record["lanes"]["count"])
    units = record["units"]["count"]
    # without work figures are of no unit
    known = [words.unit.of(units)] if units or words.work_breakdowns else []
    holds = [*known, f"{lanes} ({kinds})" if kinds else lanes, words.event.of(record["events"]["count"])]
    if record["launches"]:
        holds.append(Word("launch", "launches").of(record["launches"]))
    yield "Holds", ", ".join(holds)
    yield "Total time", time_text(round(record["total_us"] * 1000)) if profile.timed else "no times"
    if len(steps):
        yield "Steps", f"{steps.word.of(len(steps))}{' (found by repetition)' if steps.guessed else ''}"
    yield "Counters", ", ".join(record["counters"])
    yield "Known", ", ".join(record["known"])
    yield "Missing", "; ".join(f"{each['what']} (needs {each['needs']})" for each in record["missing"])
    counts = ", ".join(Word(word).of(count) for word, count in record["problems"].items())
    yield "Problems", f"{counts}: {record['worst_problem']}" if counts else "none"
    yield "Views", " ".join(record["views"])
    yield "Not here", " ".join(record["views_missing"])
    yield "Columns", " ".join(record["columns"])


def _size(text: str) -> int:
    """Size of a text as an item of a JSON list, bytes."""
    return len(json.dumps(text)) + 2


def _cut(text: str, most: int) -> str:
    """Truncates a text to at most ``most`` bytes of JSON."""
    if _size(text) <= most:
        return text
    kept = text[:most]
    while _size(kept + _MORE) > most:
        kept = kept[: len(kept) - max((_size(kept + _MORE) - most) // 6, 1)]
    return kept + _MORE


def _some(texts: Iterable[str], most: int) -> list[str]:
    """The first texts that fit into ``most`` bytes of JSON; a truncated list ends in ``...``."""
    kept: list[str] = []
    room = most - _size(_MORE)
    for text in texts:
        text = _cut(text, _NAME)
        room -= _size(text)
        if room < 0:
            return [*kept, _MORE] if most >= _size(_MORE) else kept
        kept.append(text)
    return kept
