"""Instructions that problems are about: where they are, and what is told of one."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.model import Problem

from ..selecting.search import Hits, Mask
from ..selecting.session import Ints, Session

#: Severity in letters, so that it is told without colour.
WORDS: Final = ("note", "warning", "ERROR")


def ranked(session: Session) -> list[Problem]:
    """All problems, the worst first; of equal ones that which was found first."""
    return sorted(session.profile.problems, key=lambda problem: -int(problem.severity))


def lane_of(session: Session, problem: Problem) -> int:
    """Index of the lane that a problem is about; -1 where it is about none."""
    lanes, groups = session.profile.lanes, session.profile.groups
    return next((number for number, lane in enumerate(lanes) if problem.is_about(lane, groups)), -1)


def word_of(problem: Problem) -> str:
    """A problem's severity in letters."""
    return WORDS[problem.severity]


class ProblemRows(Struct, frozen=True, eq=False):
    """Instructions that problems are about.

    Attributes:
        numbers: int64, ascending: their numbers.
        problem: int64, by instruction: place of the worst problem about it among ``ranked``.
        run: int64, ascending by instruction: of one lane and problem what follows on one another is one.
        by_lane: By index of the lane, the problems about some of its instructions, the worst first.
    """

    numbers: Ints
    problem: Ints
    run: Ints
    by_lane: dict[int, list[Problem]]

    def __len__(self) -> int:
        return len(self.numbers)

    def place(self, number: int) -> int:
        """Place of an instruction that is there."""
        return int(np.searchsorted(self.numbers, number))

    def about(self, lane: int, row: int) -> list[Problem]:
        """Problems about an instruction, the worst first; O(problems of the lane)."""
        known = ((each, each.rows) for each in self.by_lane.get(lane, ()))
        return [each for each, rows in known if rows is not None and row in rows[np.searchsorted(rows, row) :][:1]]

    def mask(self, count: int) -> Mask:
        """By instruction number, whether a problem is about it."""
        mask = np.zeros(count, np.bool_)
        mask[self.numbers] = True
        return mask

    def places_to_go(self, hits: Hits) -> Hits:
        """Of hits that are all among these, in the order one goes through them, the first of each run."""
        first = np.sort(np.unique(self.run[np.searchsorted(self.numbers, hits.numbers)], return_index=True)[1])
        return Hits(hits.text, hits.keys[first], hits.numbers[first])


def problem_rows(session: Session) -> ProblemRows:
    """The instructions that problems are about, gathered once. O(their number), sorted."""
    return session.derived.get("rows of problems", lambda: _find_problem_rows(session))


def _find_problem_rows(session: Session) -> ProblemRows:
    numbers, problems = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    by_lane: dict[int, list[Problem]] = {}
    for place, problem in enumerate(ranked(session)):
        lane = lane_of(session, problem) if problem.rows is not None else -1
        if problem.rows is not None and lane >= 0:
            by_lane.setdefault(lane, []).append(problem)
            numbers.append(session.offsets[lane] + problem.rows)
            problems.append(np.full(len(problem.rows), place, np.int64))
    # of several problems about one instruction the first is the worst
    found, first = np.unique(np.concatenate(numbers), return_index=True)
    about = np.concatenate(problems)[first]
    begins = np.ones(len(found), np.bool_)
    # another lane's first instruction follows in number alone, but has another problem
    begins[1:] = (found[1:] != found[:-1] + 1) | (about[1:] != about[:-1])
    return ProblemRows(found, about, np.cumsum(begins), by_lane)


def about_text(problem: Problem) -> str:
    """A problem as it is told of one of its instructions."""
    return f"{word_of(problem)}{', right before this one' if problem.behind else ''}: {clean(problem.what)}"


def problem_text(session: Session, number: int) -> str:
    """What is odd about an instruction that is among the odd ones, in one line."""
    found = problem_rows(session)
    lane, row = session.place(number)
    told = "  ".join(map(about_text, found.about(lane, row)))
    alike = int(np.count_nonzero(found.run == found.run[found.place(number)]))
    many = f"{session.profile.vocabulary.event.of(alike)} in a row on " if alike > 1 else ""
    return f"{told}  [{many}{clean(session.title_of(lane))}]"
