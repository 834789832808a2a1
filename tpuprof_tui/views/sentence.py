"""The answer in one sentence: the first finding, its number and what to do, or that nothing stands out."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.formats.text import in_sentence
from tpuprof_tui.formats.units import GUESS, percent_text, plural, time_text
from tpuprof_tui.model.vocabulary import join_words
from tpuprof_tui.model.worker import Worker

from .comparing import Compared
from .findings import WARNS_FROM, by_gain, can_be_asked, findings_of, hides_sums, is_warning, rules_of, whole_of
from .registry import view_of
from .report import of_worker, workers_of
from .rules import TIMES, Finding


def sentence(query: Query, workers: Sequence[Worker] = ()) -> str:
    """The sentence about what a query selects, for a first line; O(events) unless its findings are cached.

    Of ``workers`` whose findings are listed one by one, the one with the most to win is told. With a baseline it is why
    the two differ.
    """
    if query.baseline is not None:
        return Compared.of(query).verdict.why
    each_alone = not view_of(query.vocabulary, "findings").all_workers
    queries = [of_worker(query, worker) for worker in workers] if each_alone and workers else [query]
    firsts = [(found, asked) for asked in queries if (found := first_finding(asked)) is not None]
    if not firsts:
        return _nothing(query)
    return _told(*max(firsts, key=lambda each: each[0].gain or 0))


def first_finding(query: Query) -> Finding | None:
    """The finding with the most to win: the first warning that is not about a single event, else the first one."""
    events = {rule.id for rule in rules_of(query.vocabulary) if rule.sees == "events"}
    every = findings_of(query)
    warnings = [found for found in (every[number] for number in by_gain(every)) if found.gain and
                (is_warning(query, found) or whole_of(query, found) == inf)]  # fmt: skip
    return next((found for found in warnings if found.rule not in events), next(iter(warnings), None))


def _told(found: Finding, query: Query) -> str:
    text = (found.brief or found.text).removesuffix(".")
    gain, whole = time_text(round(found.gain or 0)), whole_of(query, found)
    of = f"{percent_text((found.gain or 0) / whole)} of {time_text(round(whole))}" if whole < inf else ""
    number = of if of and gain in text else ", ".join(filter(None, (gain, of)))
    sure = GUESS if found.confidence == "guess" else "likely " if found.confidence == "likely" else ""
    place = found.group if _is_one_of_several(query) and found.group.lower() not in text.lower() else ""
    advice = found.advice.removesuffix(".")
    return f"{f'{place}: ' if place else ''}{text} ({sure}up to {number}): {in_sentence(advice)}."


def _is_one_of_several(query: Query) -> bool:
    return len(query.profile.units) > 1 or len(workers_of(query.profile)) > 1


def _nothing(query: Query) -> str:
    """That nothing stands out, and how sure that is."""
    profile = query.profile
    if not profile.timed:
        return "No times are recorded: where time goes is not known."
    rules = rules_of(query.vocabulary)
    asked = sum(can_be_asked(rule, query) for rule in rules)
    if not asked:
        return query.vocabulary.say("There are no {events} to look at.")
    lacking = dict.fromkeys(need for rule in rules for need in rule.needs if need != TIMES and not profile.has(need))
    unsure = []
    if profile.is_fragmentary:
        unsure.append("too many records are lost to judge idle time and sums")
    if hides_sums(query):
        unsure.append("sums are not judged, as a filter or a single lane hides part of them")
    if lacking:
        titles = [getattr(query.vocabulary.capability(need), "title", need) for need in lacking]
        unsure.append(f"not recorded: {join_words(titles)}")
    note = f"; {'; '.join(unsure)}" if unsure else ""
    limit = f"{WARNS_FROM:.0%} of {time_text(query.span)} to win" if query.span > 1 else "anything"
    return f"Nothing stands out: none of {plural(asked, 'rule')} finds {limit}{note}."
