"""Findings of the rules of a source, sorted by possible gain: an upper bound, at most the window; and their view."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.formats.units import time_text
from tpuprof_tui.model.vocabulary import Vocabulary

from .answer import Answer, Column, Table, places_text
from .generic_rules import RULES
from .report import workers_of
from .rules import TIMES, Finding, Rule, SourceRules, Wins

#: More pauses than this are merged into one row.
MANY: Final = 8
#: Minimum gain of a warning, as a share of the window; less is a note.
WARNS_FROM: Final = 0.01


def rules_of(vocabulary: Vocabulary) -> tuple[Rule, ...]:
    """The rules of a source: the generic ones, then its own."""
    own: SourceRules = vocabulary.entry("rules") or SourceRules()  # type: ignore[assignment]
    replaced = {rule.id: rule for rule in own.replaces}
    kept = (rule for rule in RULES if rule.id not in own.leaves_out)
    return (*(replaced.get(rule.id, rule) for rule in kept), *own.adds)


def can_be_asked(rule: Rule, query: Query) -> bool:
    """Whether the profile holds what a rule needs, whatever is selected of it."""
    profile = query.profile
    complete = rule.sees != "complete" or not profile.is_fragmentary
    return complete and all(
        profile.timed and profile.event_count and query.span > 0 if need == TIMES else profile.has(need)
        for need in rule.needs
    )


def hides_sums(query: Query) -> bool:
    """Whether a filter or a single lane hides part of what rules that add up see."""
    return bool(query.condition) or query.scope.lane >= 0


def asked_rules(query: Query) -> tuple[Rule, ...]:
    """The rules that can say something about what is selected."""
    rules = (rule for rule in rules_of(query.vocabulary) if can_be_asked(rule, query))
    return tuple(rule for rule in rules if rule.sees == "events" or not hides_sums(query))


def findings_of(query: Query) -> tuple[Finding, ...]:
    """All findings, in the order of the rules. O(events), cached."""

    def compute() -> tuple[Finding, ...]:
        # a copy of the query: its cache of shared intermediate results is freed afterwards
        asked = replace(query)
        return tuple(each for rule in asked_rules(asked) for each in _bounded(asked, rule))

    return query.cache.get("findings", compute, query.scope, query.range, query.full_filter, limit=16)


def _bounded(query: Query, rule: Rule) -> Iterator[Finding]:
    """The findings of a rule, with no more to win than there is; those with less than its threshold are left out."""
    least = rule.threshold * _span(query)
    for found in rule.find(query, rule, least):
        if rule.confidence != "measured" and found.confidence == "measured":
            found = replace(found, confidence=rule.confidence)
        if found.gain is not None:
            bounds = [most_to_win(query, rule.wins, found.group)] if query.profile.event_count else []
            gain = min(found.gain, *bounds, *([found.whole] if found.whole else []))
            if found.whole is None and gain < least:
                continue
            found = replace(found, gain=round(gain))  # ns, as all times
        yield found


def most_to_win(query: Query, wins: Wins, place: str) -> int:
    """The most that can be won of a group (its title) by using time better, ns: of several units the largest."""
    groups, units = query.profile.groups, query.unit_figures
    within = {unit for group in range(len(groups)) if groups.title(group) == place
              for unit in groups.units_within(group)}  # fmt: skip
    units = tuple(unit for unit in units if unit.unit in within) or units
    if not wins or not units:
        return max(query.span, 0)
    exposed = (unit.exposed + unit.exposed_communication if wins == "exposed" else 0 for unit in units)
    return max(unit.window - unit.busy + moved for unit, moved in zip(units, exposed, strict=True))


def _span(query: Query) -> int:
    """Length of the queried time, ns: of one of several recordings its own extent, as their clocks may be far apart."""
    lanes = [query.profile.lanes[number] for number in query.lanes] if query.scope.group >= 0 else []
    known = [lane for lane in lanes if len(lane)]
    if query.range is not None or query.step is not None or not known:
        return query.span
    return max(int(lane["end"].max()) for lane in known) - min(int(lane["start"][0]) for lane in known)


def by_gain(findings: Sequence[Finding]) -> list[int]:
    """Indices of findings by gain descending; those of one gain in their order."""
    return sorted(range(len(findings)), key=lambda number: -(findings[number].gain or 0))


def whole_of(query: Query, finding: Finding) -> float:
    """The time that the gain of a finding is a share of, ns."""
    return finding.whole or max(query.span, 1)


def is_warning(query: Query, finding: Finding) -> bool:
    """Whether a finding is more than a note."""
    return bool(finding.gain) and (finding.gain or 0) >= WARNS_FROM * whole_of(query, finding)


def findings_view(query: Query) -> Answer:
    """All findings in one table, by gain descending."""
    rules = {rule.id: rule for rule in rules_of(query.vocabulary)}
    if not any(can_be_asked(rule, query) for rule in rules.values()):
        return Answer()
    by_rule = findings_of(query)
    order = by_gain(by_rule)
    found = [by_rule[number] for number in order]
    columns = (
        Column("severity", "Severity", drop_first=3, is_key=False), Column("rule", "Rule", drop_first=4),
        Column("worker", "Worker", shown=False), Column("group", "Where", drop_first=1),
        Column("gain_us", "To win", "duration"), Column("text", "What", is_key=False),
        Column("evidence", "Evidence", "list", shown=False), Column("advice", "Try", drop_first=2, is_key=False),
        Column("source", "Source", shown=False), Column("confidence", "Confidence", shown=False, is_key=False),
    )  # fmt: skip
    worker_of = _worker_titles(query)
    rows: list[tuple[Any, ...]] = [
        ("warning" if is_warning(query, each) else "note", each.rule, worker_of(each.group), each.group, each.gain,
         each.text, [each.evidence], each.advice, each.source, each.confidence)
        for each in found
    ]  # fmt: skip
    events = frozenset(rule.id for rule in rules.values() if rule.sees == "events")
    most = {rule.id: rule.wins for rule in rules.values()}
    merge_rows = partial(_merge_rows, events, lambda rule, place: most_to_win(query, most[rule], place))
    groups = sorted(
        _merge_groups(events, rows, order), key=lambda each: -(merge_rows([rows[row] for row in each])[4] or 0)
    )
    several = "" if len(groups) == len(rows) else ", of several events their sum, of several places the largest"
    table = Table.of_rows("findings", "Findings", columns, rows, target=lambda row: found[row].target, word="finding",
                          notes=(f"To win: an upper bound{several}.",), merge_groups=groups, merge_rows=merge_rows,
                          guessed=frozenset(row for row, each in enumerate(found) if each.confidence == "guess"),
                          brief=_each_rule_first([(number, found[number].rule) for number, *_ in groups]))  # fmt: skip
    notes = [query.vocabulary.say(
        "Rules that add up are left out: a filter or a single {lane} hides part of what they see."
    )] if hides_sums(query) else []  # fmt: skip
    if query.profile.is_fragmentary:
        notes.append("Rules about idle time and sums are left out: too many records are lost.")
    advised = any(each.source != "tpuprof" for each in found)
    if advised and (query.range is not None or query.full_filter or query.scope.lane >= 0):
        notes.append("The vendor's advice is of the whole recording.")
    return Answer(tables=(table,), notes=tuple(notes), source=", ".join(dict.fromkeys(each.source for each in found)))


def _worker_titles(query: Query) -> Callable[[str], str]:
    """The key of the worker that a group (by title) is of; without one, of the only worker of the selection."""
    groups, workers = query.profile.groups, workers_of(query.profile)
    own = {groups.title(group): worker.key for worker in workers for group in groups.within(worker.group)}
    alone = workers[0].key if len(workers) == 1 else ""
    default = next((each.key for each in workers if each.group >= 0 and each.group == query.top_group), alone)
    return lambda title: own.get(title, default)


def _merge_groups(
    events: frozenset[str], rows: Sequence[tuple[Any, ...]], order: Sequence[int]
) -> list[list[int]]:  # fmt: skip
    """Groups of rows that are merged for people: events of one name and severity, and a rule in different places.

    ``events``: ids of the rules about single events. ``order`` is the rank of each row by its own rule, which is the
    order of merged events.
    """
    few_pauses = sum(row[1] == "pause" for row in rows) <= MANY
    groups: dict[tuple[Any, ...], list[int]] = {}
    places: set[tuple[str, str]] = set()
    for number, (severity, rule, _, group, _, _, [event], *_) in enumerate(rows):
        alone = (rule, group) in places or (rule == "pause" and few_pauses)
        key = (severity, event["name"]) if rule in events else (number,) if alone else ()
        groups.setdefault((rule, *key), []).append(number)
        places.add((rule, group))
    return [sorted(each, key=order.__getitem__) if key[0] in events else each for key, each in groups.items()]


def _merge_rows(
    events: frozenset[str], most: Callable[[str, str], int], rows: Sequence[tuple[Any, ...]]
) -> tuple[Any, ...]:
    """Merges findings of one rule: all places; for single events also their number and the sum of their time.

    ``most``: what at most can be won, by rule and place.
    """
    severity, rule, worker, _, gain, text, *rest = rows[0]
    of_events = rule in events
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
