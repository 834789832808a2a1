"""The answer in one sentence: the first finding, its number and what to do, or that nothing stands out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

from msgspec import Struct

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.formats.text import cell_len, fit, in_sentence
from tpuprof_tui.formats.units import GUESS, percent_text, plural, time_text
from tpuprof_tui.model.group import Worker
from tpuprof_tui.model.vocabulary import join_words

from .comparing import Compared
from .findings import WARNS_FROM, can_be_asked, findings_of, hides_sums, is_warning, rules_of, whole_of
from .registry import view_of
from .report import of_worker, workers_of
from .rules import TIMES, Confidence, Finding

#: What the gain of a finding counts for, by how sure it is, where one is chosen: an upper bound that only follows from
#: names counts half of one that recorded times show.
WEIGHTS: Final[Mapping[Confidence, float]] = {"measured": 1, "likely": 0.5, "guess": 0.25}


class Sentence(Struct, frozen=True):
    """The answer: its text is all of it."""

    cause: str  #: What takes time
    number: str = ""  #: How much could be won, and of what; empty: nothing is to win, and ``cause`` is all there is
    share: str = ""  #: The same as a share alone
    advice: str = ""  #: What to do

    def __str__(self) -> str:
        return f"{self.cause} ({self.number}): {self.advice}." if self.number else self.cause

    def within(self, width: int) -> str:
        """The sentence for a line of ``width`` cells: shorter numbers first, then cut advice, then a cut cause."""
        whole, share = str(self), f" ({self.share})"
        if cell_len(whole) > width and self.number:
            whole = f"{self.cause}{share}: {self.advice}."
        room = width - cell_len(share)
        if not self.number or cell_len(self.cause) <= room or room < width // 2:
            return fit(whole, width)
        return fit(self.cause, room) + share


def sentence(query: Query, workers: Sequence[Worker] = ()) -> Sentence:
    """The sentence about what a query selects, for a first line; O(events) unless its findings are cached.

    Of ``workers`` whose findings are listed one by one, the one with the most to win is told. With a baseline it is why
    the two differ.
    """
    own = query.vocabulary.entry("sentence")
    if own is not None:
        return Sentence(own(query))
    if query.baseline is not None:
        return Sentence(Compared.of(query).verdict.why)
    each_alone = not view_of(query.vocabulary, "findings").all_workers
    queries = [of_worker(query, worker) for worker in workers] if each_alone and workers else [query]
    firsts = [(found, asked) for asked in queries if (found := first_finding(asked)) is not None]
    if not firsts:
        return Sentence(_nothing(query))
    return _told(*max(firsts, key=lambda each: _weight(each[1], each[0])))


def first_finding(query: Query) -> Finding | None:
    """The finding with the most to win, weighted: a warning that is not about a single event, if there is one."""
    events = {rule.id for rule in rules_of(query.vocabulary) if rule.sees == "events"}
    warnings = [found for found in findings_of(query) if found.gain and
                (is_warning(query, found) or whole_of(query, found) == inf)]  # fmt: skip
    warnings.sort(key=lambda found: (found.rule in events, -_weight(query, found)))
    return next(iter(warnings), None)


def _weight(query: Query, found: Finding) -> float:
    """The share that could be won, for as much as it is sure."""
    whole = whole_of(query, found)
    return WEIGHTS[found.confidence] * (found.gain or 0) / (whole if whole < inf else max(query.span, 1))


def _told(found: Finding, query: Query) -> Sentence:
    text = (found.brief or found.text).removesuffix(".")
    gain, whole = time_text(round(found.gain or 0)), whole_of(query, found)
    share = percent_text((found.gain or 0) / whole) if whole < inf else ""
    of = f"{share} of {time_text(round(whole))}" if share else ""
    number = of if of and gain in text else ", ".join(filter(None, (gain, of)))
    sure = GUESS if found.confidence == "guess" else "likely " if found.confidence == "likely" else ""
    place = found.group if _is_one_of_several(query) and found.group.lower() not in text.lower() else ""
    return Sentence(f"{f'{place}: ' if place else ''}{text}", f"{sure}up to {number}", f"{sure}{share or gain}",
                    in_sentence(found.advice.removesuffix(".")))  # fmt: skip


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
