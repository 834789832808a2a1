"""Collects Problems while a capture is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import Problem, Severity

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: More problems than this of one capture are counted, not listed.
_MOST_LISTED = 1000


I64 = npt.NDArray[np.int64]
#: Places of records in a dump -> rows of the lane they became.
RowsOf = Callable[[I64], I64]


class Where(TypedDict, total=False):
    """Where a problem was found, and how often; see ``Problem``.

    ``records`` are the places of the records in the dump of the engine or port (see ``Stream.dumped``): which rows of
    a lane they become, or stand right before, is known when there are lanes.
    """

    file: str
    offset: int
    core: int
    lane: str
    count: int
    rows: I64
    behind: bool
    records: I64


@dataclass
class Report:
    """Problems in the order they were found; the same problem again is counted, not repeated.

    One report belongs to one thread; reports of parts are joined with ``extend``.
    """

    _found: dict[tuple[object, ...], Problem] = field(default_factory=dict)
    _records: dict[tuple[object, ...], list[I64]] = field(default_factory=dict)
    _dropped: int = 0

    def add(self, problem: Problem, *records: I64) -> None:
        """Add one problem, and which records it concerns where that is known."""
        key = _key(problem)
        known = self._found.get(key)
        if known is not None:
            self._found[key] = replace(known, count=known.count + problem.count)
        elif len(self._found) < _MOST_LISTED:
            self._found[key] = problem
        else:
            self._dropped += 1
            return
        if records:
            self._records.setdefault(key, []).extend(records)

    def _told(self, severity: Severity, what: str, done: str, where: Where) -> None:
        records = where.pop("records", None)
        self.add(Problem(severity, what, done, **where), *(() if records is None else (records,)))  # type: ignore[misc]

    def note(self, what: str, done: str = "", **where: Unpack[Where]) -> None:
        """Something repaired or assumed."""
        self._told(Severity.NOTE, what, done, where)

    def warning(self, what: str, done: str = "", **where: Unpack[Where]) -> None:
        """Something ambiguous."""
        self._told(Severity.WARNING, what, done, where)

    def error(self, what: str, done: str = "", **where: Unpack[Where]) -> None:
        """Something recorded that is lost or unreadable."""
        self._told(Severity.ERROR, what, done, where)

    def extend(self, other: Report) -> None:
        """Take over the problems of another report."""
        for problem in other.problems():
            self.add(problem, *other._records.get(_key(problem), ()))

    def problems(self, rows_of: Mapping[tuple[int, str], RowsOf] | None = None) -> tuple[Problem, ...]:
        """All problems, in the order they were found.

        Args:
            rows_of: By core and label, tells which rows of a lane some records are; those of others stay unknown.
        """
        found = tuple(self._placed(key, problem, rows_of or {}) for key, problem in self._found.items())
        if self._dropped:
            found += (Problem(Severity.WARNING, "More problems than can be listed.", count=self._dropped),)
        return found

    def _placed(self, key: tuple[object, ...], problem: Problem, rows_of: Mapping[tuple[int, str], RowsOf]) -> Problem:
        records, rows = self._records.get(key), rows_of.get((problem.core, problem.lane))
        return problem if not records or rows is None else replace(problem, rows=rows(np.concatenate(records)))


def _key(problem: Problem) -> tuple[object, ...]:
    """What makes two problems the same one."""
    return problem.severity, problem.what, problem.done, problem.file, problem.core, problem.lane
