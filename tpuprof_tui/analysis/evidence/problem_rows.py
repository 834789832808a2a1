"""Instructions affected by problems of the capture: their numbers, and texts about them."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.units import exact_time
from tpuprof_tui.model import Problem
from tpuprof_tui.model.vocabulary import Word

from ..selecting.search import Hits, Mask
from ..selecting.session import Ints, Session

#: Severities in words, so that they are readable without colour.
SEVERITY_WORDS: Final = ("note", "warning", "ERROR")
#: Share of the events from one on that are nearly all.
_NEARLY: Final = 0.9


def by_severity(session: Session) -> list[Problem]:
    """All problems by severity, worst first; equal ones in the order of detection."""
    return sorted(session.profile.problems, key=lambda problem: -int(problem.severity))


def lane_of(session: Session, problem: Problem) -> int:
    """Index of the lane that a problem concerns; -1: none."""
    lanes, groups = session.profile.lanes, session.profile.groups
    return next((number for number, lane in enumerate(lanes) if problem.is_about(lane, groups)), -1)


def severity_word(problem: Problem) -> str:
    """A problem's severity in words."""
    return SEVERITY_WORDS[problem.severity]


class Damage(Struct, frozen=True):
    """What problems mean for the events of a unit or another group."""

    group: int  #: Id of the group
    events: int  #: Number of its events
    unnamed: int  #: How many of them have times alone
    #: first, last: Start of the first and of the last of these, ns; -1: there are none.
    first: int
    last: int
    onwards: bool  #: Whether nearly all events from the first one on are such
    lost: int  #: How many more are known to be lost

    def text(self, event: Word) -> str:
        """What this means, in plain words."""
        when = f"from {exact_time(self.first)} on" if self.onwards else \
            f"between {exact_time(self.first)} and {exact_time(self.last)}"  # fmt: skip
        named = f"{self.unnamed:,} of {event.of(self.events)} have no name {when}: their times are right."
        verb, them = ("is", "it") if self.lost == 1 else ("are", "them")
        lost = f"{event.of(self.lost)} {verb} lost: no figure counts {them}."
        return " ".join([*([named] if self.unnamed else []), *([lost] if self.lost else [])])


def damages(session: Session) -> list[Damage]:
    """What problems mean for each group with events that are lost or have no name."""
    profile, found = session.profile, []
    problems = [problem for problem in profile.problems if problem.group >= 0 and not problem.launches
                and (problem.lost or (problem.unnamed and problem.rows is not None))]  # fmt: skip
    for group in sorted({problem.group for problem in problems}) if profile.timed else ():
        own = [problem for problem in problems if problem.group == group]
        lanes, starts = profile.lanes_of(group), [np.zeros(0, np.int64)]
        starts += [lane["start"][problem.rows] for problem in own if problem.unnamed
                   for lane in lanes if problem.is_about(lane, profile.groups)]  # fmt: skip
        unnamed = np.sort(np.concatenate(starts))
        first, last = (int(unnamed[0]), int(unnamed[-1])) if len(unnamed) else (-1, -1)
        later = sum(int(np.count_nonzero(lane["start"] >= first)) for lane in lanes)
        onwards, lost = len(unnamed) >= _NEARLY * later, sum(problem.lost for problem in own)
        found.append(Damage(group, sum(map(len, lanes)), len(unnamed), first, last, onwards, lost))
    return found


class ProblemRows(Struct, frozen=True, eq=False):
    """Instructions affected by problems; arrays of one length."""

    numbers: Ints  #: int64, ascending: event numbers
    problem: Ints  #: int64, index in ``by_severity`` of the worst problem of each
    run: Ints  #: int64, ascending: id of the run; consecutive events of one lane and problem are a run
    by_lane: dict[int, list[Problem]]  #: By lane index, the problems that affect some of its events, worst first

    def __len__(self) -> int:
        return len(self.numbers)

    def index(self, number: int) -> int:
        """Index of an event that is among ``numbers``."""
        return int(np.searchsorted(self.numbers, number))

    def about(self, lane: int, row: int) -> list[Problem]:
        """Problems of an event, worst first; O(problems of the lane)."""
        known = ((each, each.rows) for each in self.by_lane.get(lane, ()))
        return [each for each, rows in known if rows is not None and row in rows[np.searchsorted(rows, row) :][:1]]

    def mask(self, count: int) -> Mask:
        """Mask by event number: whether a problem affects it."""
        mask = np.zeros(count, np.bool_)
        mask[self.numbers] = True
        return mask

    def first_of_each_run(self, hits: Hits) -> Hits:
        """The first hit of each run, in navigation order; all hits must be among ``numbers``."""
        first = np.sort(np.unique(self.run[np.searchsorted(self.numbers, hits.numbers)], return_index=True)[1])
        return Hits(hits.text, hits.keys[first], hits.numbers[first])


def problem_rows(session: Session) -> ProblemRows:
    """The events affected by problems, cached; O(n log n) the first time."""
    return session.cache.get("rows of problems", lambda: _find_problem_rows(session))


def _find_problem_rows(session: Session) -> ProblemRows:
    numbers, problems = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    by_lane: dict[int, list[Problem]] = {}
    for rank, problem in enumerate(by_severity(session)):
        lane = lane_of(session, problem) if problem.rows is not None else -1
        if problem.rows is not None and lane >= 0:
            by_lane.setdefault(lane, []).append(problem)
            numbers.append(session.offsets[lane] + problem.rows)
            problems.append(np.full(len(problem.rows), rank, np.int64))
    # problems are ranked: the first of an event is the worst
    found, first = np.unique(np.concatenate(numbers), return_index=True)
    about = np.concatenate(problems)[first]
    begins = np.ones(len(found), np.bool_)
    # numbers continue across lanes, but another lane has another problem
    begins[1:] = (found[1:] != found[:-1] + 1) | (about[1:] != about[:-1])
    return ProblemRows(found, about, np.cumsum(begins), by_lane)


def about_text(problem: Problem) -> str:
    """Text of a problem for one of its events."""
    return f"{severity_word(problem)}{', right before this one' if problem.after_gap else ''}: {clean(problem.what)}"


def problem_text(session: Session, number: int) -> str:
    """Describes, in one line, the problems of an event that is among ``ProblemRows.numbers``."""
    found = problem_rows(session)
    lane, row = session.locate(number)
    texts = "  ".join(map(about_text, found.about(lane, row)))
    length = int(np.count_nonzero(found.run == found.run[found.index(number)]))
    many = f"{session.profile.vocabulary.event.of(length)} in a row on " if length > 1 else ""
    return f"{texts}  [{many}{clean(session.title_of(lane))}]"
