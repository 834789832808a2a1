"""Collects Problems while a capture is read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypedDict

from ...model import Problem, Severity

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: More problems than this of one capture are counted, not listed.
_MOST_LISTED = 1000


class Where(TypedDict, total=False):
    """Where a problem was found, and how often; see ``Problem``."""

    file: str
    offset: int
    core: int
    lane: str
    count: int


@dataclass
class Report:
    """Problems in the order they were found; the same problem again is counted, not repeated.

    One report belongs to one thread; reports of parts are joined with ``extend``.
    """

    _found: dict[tuple[object, ...], Problem] = field(default_factory=dict)
    _dropped: int = 0

    def add(self, problem: Problem) -> None:
        """Add one problem."""
        key = (problem.severity, problem.what, problem.done, problem.file, problem.core, problem.lane)
        known = self._found.get(key)
        if known is not None:
            self._found[key] = replace(known, count=known.count + problem.count)
        elif len(self._found) < _MOST_LISTED:
            self._found[key] = problem
        else:
            self._dropped += 1

    def note(self, what: str, done: str = "", **where: Unpack[Where]) -> None:
        """Something repaired or assumed."""
        self.add(Problem(Severity.NOTE, what, done, **where))

    def warning(self, what: str, done: str = "", **where: Unpack[Where]) -> None:
        """Something ambiguous."""
        self.add(Problem(Severity.WARNING, what, done, **where))

    def error(self, what: str, done: str = "", **where: Unpack[Where]) -> None:
        """Something recorded that is lost or unreadable."""
        self.add(Problem(Severity.ERROR, what, done, **where))

    def extend(self, other: Report) -> None:
        """Take over the problems of another report."""
        for problem in other.problems():
            self.add(problem)

    def problems(self) -> tuple[Problem, ...]:
        """All problems, in the order they were found."""
        found = tuple(self._found.values())
        if self._dropped:
            found += (Problem(Severity.WARNING, "More problems than can be listed.", count=self._dropped),)
        return found
