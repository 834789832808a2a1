"""View of findings, sorted by possible gain: an upper bound, at most the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.findings.top_events import best_rows, exposed_score, slow_score, wait_score
from tpuprof_tui.analysis.findings.unit_pauses import longest_pauses
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.formats.text import in_sentence
from tpuprof_tui.formats.units import bytes_text, exact_time, percent_text, time_text
from tpuprof_tui.model import is_missing

from .answer import Answer, Column, Table, Target, places_text
from .finding_rules import RULES, Finding, Rule, Wins, evidence, findings_of, most_to_win
from .report import workers_of

#: Maximum findings per event rule.
MOST: Final = 5
#: More pauses than this are merged into one row.
MANY: Final = 8
#: Minimum gain of a warning, as a share of the window; less is a note.
WARNS_FROM: Final = 0.01


class ScoredEvent(Struct, frozen=True):
    """An event (lane, row) worth a look; ``value``: exposed ns, GB/s or ns of waiting."""

    lane: int
    row: int
    value: float


class _EventRule(Struct, frozen=True):
    """A rule about single events.

    Attributes:
        key: Its name.
        formula: What it measures, in one sentence.
        threshold: Minimum gain, as a share of the window, if the gain is known.
        text: Template of the finding with ``{event}``, ``{value}``, ``{share}``, ``{size}`` and ``{scope}``.
        advice: What to try.
        gain: Computes the time that could be saved for an event, ns; None: unknown.
        wins: As of a ``Rule``.
    """

    key: str
    formula: str
    threshold: float
    text: str
    advice: str
    gain: Callable[[Query, ScoredEvent], int | None]
    wins: Wins = ""


def findings_view(query: Query) -> Answer:
    """All findings in one table, by gain descending."""
    if query.profile.instructions == 0:
        return Answer()
    # a copy of the query: its cache of shared intermediate results is freed afterwards
    by_rule = list(_found(replace(query)))
    order = sorted(range(len(by_rule)), key=lambda number: -(by_rule[number].gain or 0))
    found = [by_rule[number] for number in order]
    window = max(query.span, 1)
    workers = workers_of(query.profile)
    alone = workers[0].key if len(workers) == 1 else query.profile.name
    worker = next((each.key for each in workers if each.group == query.top_group), alone)
    columns = (
        Column("severity", "Severity", spare=3, is_key=False), Column("rule", "Rule", spare=4),
        Column("worker", "Worker", shown=False), Column("group", "Where", spare=1),
        Column("gain_us", "To win", "duration"), Column("text", "What", is_key=False),
        Column("evidence", "Evidence", "list", shown=False), Column("advice", "Try", spare=2, is_key=False),
        Column("source", "Source", shown=False),
    )  # fmt: skip
    rows: list[tuple[Any, ...]] = [
        ("warning" if (each.gain or 0) >= WARNS_FROM * window else "note", each.rule, worker, each.group,
         None if each.gain is None else min(each.gain, window), each.text, [each.evidence], each.advice, "tpuprof")
        for each in found
    ]  # fmt: skip
    wins = {rule.key: rule.wins for rule in EVENT_RULES}
    merge_rows = partial(_merge_rows, lambda rule, place: most_to_win(query, wins[rule], place))
    groups = sorted(_merge_groups(rows, order), key=lambda each: -(merge_rows([rows[row] for row in each])[4] or 0))
    several = "" if len(groups) == len(rows) else ", of several events their sum, of several places the largest"
    table = Table.of_rows("findings", "Findings", columns, rows, target=lambda row: found[row].target, word="finding",
                          notes=(f"To win: an upper bound{several}.",), merge_groups=groups, merge_rows=merge_rows,
                          brief=_each_rule_first([(number, found[number].rule) for number, *_ in groups]))  # fmt: skip
    note = query.vocabulary.say(
        "Rules that add up are left out: a filter or a single {lane} hides part of what they see."
    )
    notes = [note] if query.filter or query.scope.lane >= 0 else []
    if query.profile.is_fragmentary:
        notes.append("Rules about idle time and sums are left out: too many records are lost.")
    return Answer(tables=(table,), notes=tuple(notes))


def _merge_groups(rows: Sequence[tuple[Any, ...]], order: Sequence[int]) -> list[list[int]]:
    """Groups of rows that are merged for people: events of one name and severity, and a rule in different places.

    ``order`` is the rank of each row by its own rule, which is the order of merged events.
    """
    events = {rule.key for rule in EVENT_RULES}
    few_pauses = sum(row[1] == PAUSE.key for row in rows) <= MANY
    groups: dict[tuple[Any, ...], list[int]] = {}
    places: set[tuple[str, str]] = set()
    for number, (severity, rule, _, group, _, _, [event], *_) in enumerate(rows):
        alone = (rule, group) in places or (rule == PAUSE.key and few_pauses)
        key = (severity, event["name"]) if rule in events else (number,) if alone else ()
        groups.setdefault((rule, *key), []).append(number)
        places.add((rule, group))
    return [sorted(each, key=order.__getitem__) if key[0] in events else each for key, each in groups.items()]


def _merge_rows(most: Callable[[str, str], int], rows: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Merges findings of one rule: all places; for single events also their number and the sum of their time.

    ``most``: what at most can be won, by rule and place.
    """
    severity, rule, worker, _, gain, text, *rest = rows[0]
    of_events = any(rule == each.key for each in EVENT_RULES)
    if len(rows) > 1 and of_events:
        won: dict[str, int] = {}
        for _, _, _, group, each, *_ in rows:
            if each is not None:
                won[group] = won.get(group, 0) + each
        time = f", {time_text(sum(won.values()))}" if won else ""
        own = f": {time_text(gain)} to win." if gain is not None else "."
        text = f"Top {len(rows)}{time}. {text.removesuffix('.')}{own}"
        gain = max((min(time, most(rule, group)) for group, time in won.items()), default=None)
    # the text of an event includes its place
    where = places_text([row[3] for row in rows], example=not of_events)
    return severity, rule, worker, where, gain, text, *rest


def _each_rule_first(rules: Sequence[tuple[int, str]]) -> list[int]:
    """Row numbers in round-robin order of their rules: the first of each rule, then the second of each, ..."""
    turns: dict[str, int] = {}
    order = []
    for number, rule in rules:
        turns[rule] = turns.get(rule, 0) + 1
        order.append((turns[rule], number))
    return [number for _, number in sorted(order, key=lambda each: each[0])]


def top_events(query: Query, most: int) -> list[list[ScoredEvent]]:
    """The ``most`` transfers with the longest exposed time, slowest large ones, and longest waits that are selected.

    O(events) the first time, then O(lanes + blocks): call it from a worker thread.
    """
    lanes = [(number, index) for number, index in query.lane_indexes.items() if index.lane.in_sums]
    found = best_rows(lanes, *query.extent, (exposed_score, slow_score, wait_score), most)
    return [[ScoredEvent(*query.event(lane, row), abs(value)) for value, lane, row in best] for best in found]


def _found(query: Query) -> Iterator[Finding]:
    for rule, events in zip(EVENT_RULES, top_events(query, MOST), strict=True):
        for each in events:
            finding = _about_event(query, rule, each)
            if finding.gain is None or finding.gain >= rule.threshold * query.span:
                yield finding
    # with a filter, gaps between the remaining events would be reported as pauses
    if not query.full_filter and not query.profile.is_fragmentary:
        yield from PAUSE.find(query, PAUSE, PAUSE.threshold * query.span)
    yield from findings_of(RULES, query)
    own = query.vocabulary.entry("findings")
    if own is not None:
        yield from own(query)


def _about_event(query: Query, rule: _EventRule, found: ScoredEvent) -> Finding:
    profile = query.profile
    lane = profile.lanes[found.lane]
    start, end = query.session.span_of(found.lane, found.row)
    unit = profile.unit_of(lane)
    name = text_of(profile, lane, "name", found.row) or query.vocabulary.event.one
    kernel = text_of(profile, lane, "kernel", found.row)
    size = lane.take("bytes", slice(found.row, found.row + 1)) if "bytes" in lane else None
    text = rule.text.format(
        event=f"{profile.title_of(lane)} {name} at {exact_time(start, 100)}",
        scope=f" in {kernel}" if kernel else "",
        share=percent_text(found.value / max(end - start, 1)),
        size="" if size is None or is_missing(size)[0] else bytes_text(int(size[0])),
        value=f"{found.value:.2f}",
    )
    where = profile.groups.title(unit if unit >= 0 else lane.group)
    return Finding(rule.key, where, rule.gain(query, found), text,
                    evidence(profile.groups.title(lane.group), start, end - start, name, lane.label), rule.advice,
                    Target(event=(found.lane, found.row)))  # fmt: skip


def _value(query: Query, found: ScoredEvent) -> int | None:
    return round(found.value)


def _beyond_peak(query: Query, found: ScoredEvent) -> int | None:
    """Duration beyond the ideal one at the peak, ns; None if that is unknown."""
    lane, rows = query.profile.lanes[found.lane], slice(found.row, found.row + 1)
    ideal = lane.take("ideal", rows) if "ideal" in lane else None
    if ideal is None or is_missing(ideal)[0]:
        return None
    start, end = query.session.span_of(found.lane, found.row)
    return max(end - start - round(float(ideal[0])), 0)


def _pauses(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    for unit in query.units:
        label = query.profile.groups.title(unit)
        for pause in longest_pauses(query.session, unit, *query.window_of(unit))[:1]:
            length = pause.end - pause.start
            if length >= least:
                yield Finding(
                    rule.key, label, length, f"The longest pause of {in_sentence(label)}: {pause.text}.",
                    evidence(label, pause.start, length), rule.advice, Target(time=(pause.start, pause.end)),
                )  # fmt: skip


#: Rules about single events, in the order of `findings`: the top events of the window, however small.
EVENT_RULES: Final = (
    _EventRule("exposed_transfer", "Time of a transfer while its unit does not compute.", 0.0,
               "Exposed {share}: {event}{scope}.",
               "Start it earlier or split it, so that computing covers it.", _value, "exposed"),
    _EventRule("slow_transfer", "Time of a transfer of 100 KiB or more beyond that at the peak.", 0.0,
               "Slow, {value} GB/s: {event}, {size}{scope}.",
               "Look at its shape, its memory and what else uses that memory meanwhile.", _beyond_peak),
    _EventRule("wait", "Length of a wait.", 0.0, "Wait: {event}{scope}.",
               "See what it waits for ([), and why that comes late.", _value),
)  # fmt: skip
PAUSE: Final = Rule("pause", "The longest stretch in which a unit neither computes nor moves data.", 0.0,
                    "See what the others do meanwhile, and what it waits for.", _pauses)  # fmt: skip
