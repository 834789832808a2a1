"""Rules: what is worth a look in a profile, with formula, threshold and advice; one list for each source.

A rule examines what a query selects and yields findings with their evidence; the possible gain is an upper bound. The
rules of a source are the generic ones (`generic_rules`) with its own (`SourceRules`). Rules look up columns by key and
yield nothing if the source lacks one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.analysis.events import column_of
from tpuprof_tui.analysis.evidence.pause_story import PauseStory, pause_story
from tpuprof_tui.analysis.pivot import Frame
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import Activity, Role

from .answer import Target

#: Time that a gain is part of: in which a unit does no work (idle), what it only moves or communicates too (exposed);
#: empty: the window.
Wins = Literal["", "idle", "exposed"]
#: How sure a finding is: recorded times show it; it follows from names or from what others reach; what it is made of
#: was guessed.
Confidence = Literal["measured", "likely", "guess"]
#: What a rule sees: single events; all events of the selection (says nothing with a filter or a single lane, which
#: hide part of them); all, of which none may be lost (it compares sums, or is about time without events).
Sees = Literal["events", "all", "complete"]

#: Need of rules: events with times.
TIMES: Final = "times"
#: What moves data within a unit.
MOVING: Final = (Activity.TRANSFER,)
#: Transfers of fewer bytes are small: moving the data takes about as long as starting the transfer.
SMALL: Final = 4096


class Finding(Struct, frozen=True):
    """A finding: the rule, where, one sentence, and advice."""

    rule: str  #: Id of the rule
    group: str  #: Title of the group concerned; empty: the whole profile
    gain: float | None  #: Upper bound of the time that could be saved, ns; None: unknown
    text: str  #: One sentence
    evidence: dict[str, Any]  #: Event or interval, as a record for programs
    advice: str  #: What to try
    target: Target = field(default_factory=Target)  #: Destination of Enter
    #: Time that the gain is a share of, ns, where the rule compares it with a time of its own; None: the window.
    whole: float | None = None
    confidence: Confidence = "measured"  #: How sure it is
    source: str = "tpuprof"  #: What says so: this program, or a file with the vendor's advice
    brief: str = ""  #: The text without details; empty: the text


class Rule(Struct, frozen=True):
    """A rule."""

    id: str  #: Its name
    title: str  #: The same in words
    measures: str  #: What it measures, in one sentence
    threshold: float  #: Least gain, as a share of the window; or the limit that ``measures`` names
    chosen: str  #: Why this threshold: a measurement, or the document that has it
    advice: str  #: What to try
    find: Callable[[Query, Rule, float], Iterator[Finding]]  #: Yields findings with at least the given gain, ns
    needs: tuple[str, ...] = (TIMES,)  #: Keys of the capabilities that it needs, or ``TIMES``
    sees: Sees = "all"  #: See ``Sees``
    wins: Wins = ""  #: See ``Wins``
    confidence: Confidence = "measured"  #: How sure its findings are, at most


class SourceRules(Struct, frozen=True):
    """What a source makes of the generic rules (entry ``rules`` of its vocabulary)."""

    adds: tuple[Rule, ...] = ()  #: Further rules
    replaces: tuple[Rule, ...] = ()  #: Rules of its own with the ids of generic ones
    leaves_out: Mapping[str, str] = field(default_factory=dict)  #: Why it leaves generic rules out, by id


def evidence(group: str, start: int, length: int, name: str = "", lane: str | None = None) -> dict[str, Any]:
    """Record of an interval (ns) as evidence."""
    return {"group": group, "lane": lane, "start_us": start / 1000, "duration_us": length / 1000, "name": name}


def window_finding(
    query: Query, rule: Rule, group: str, gain: float, text: str, name: str, target: Target, brief: str = ""
) -> Finding:
    """A finding about the whole window."""
    start, end = query.window
    return Finding(rule.id, group, round(gain), text, evidence(group, start, end - start, name), rule.advice, target,
                   brief=brief)  # fmt: skip


def with_story(finding: Finding, query: Query, scope: Scope, start: int, end: int) -> Finding:
    """A finding about a pause (ns) of a unit with what explains it, in its text and evidence."""
    story = pause_story(query.session, scope, start, end)
    told = finding.text.removesuffix(".")
    text, brief = ("; ".join(filter(None, (told, why))) for why in story.texts(query.session))
    return replace(finding, text=f"{text}.", brief=f"{brief}.", evidence=finding.evidence | story_record(query, story))


def story_record(query: Query, story: PauseStory) -> dict[str, Any]:
    """The story of a pause, as fields of its evidence."""

    def event(place: tuple[int, int] | None) -> dict[str, Any] | None:
        if place is None:
            return None
        lane = query.profile.lanes[place[0]]
        return {"name": text_of(query.profile, lane, "name", place[1]), "lane": query.profile.title_of(lane)}

    waited = story.waited_for
    return {
        "before": event(story.before), "after": event(story.after), "cause": story.cause or None,
        "host": [{"name": each.name, "type": each.type, "share": each.share} for each in story.host],
        "waited_for": waited and {**(event(waited.releaser) or {}), "kind": waited.kind, "guessed": waited.guessed},
    }  # fmt: skip


def work_doing(query: Query, activities: tuple[Activity, ...], *keys: str) -> Frame:
    """Work of some activities that starts in the window, of the units' device lanes with these columns.

    Its columns are ``keys``, read once for all rules, ``lane``, ``row``, ``unit`` and ``took``, ns.
    """
    profile, cache = query.profile, query.local_cache

    def make() -> Frame:
        lanes = [
            number
            for number, lane in enumerate(profile.lanes)
            if lane.in_sums and lane.activity in activities and profile.unit_of(lane) in query.units
        ]
        events = with_time(query.events(("lane", "row", "unit", "start", "end"), lanes, role=Role.WORK))
        return Frame({column: events[column] for column in ("lane", "row", "unit", "took")}, {})

    work = cache.get("work", make, activities)
    known = np.array([all(column in lane for column in keys) for lane in profile.lanes], np.bool_)
    chosen = known[work["lane"]]
    if not chosen.any():
        return work.take(chosen).with_columns(None, **{column: np.zeros(0, np.int64) for column in keys})
    columns = {
        column: cache.get("column of work", partial(column_of, query.session, work, column), activities, column)
        for column in keys
    }
    texts = {column: profile.strings[column] for column in keys if column in profile.strings}
    return work.with_columns(texts, **columns).take(chosen)


def with_time(frame: Frame) -> Frame:
    """The frame with the column ``took``, ns."""
    return frame.with_columns(took=frame["end"] - frame["start"])


def filter_target(column: str, text: str) -> Target:
    """Target that filters by a text."""
    return Target(condition=text_condition(column, text, alone=True)) if text else Target()
