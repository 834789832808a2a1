"""Collects Problems while a capture is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from msgspec import Struct, field

from tpuprof_tui.model import Groups, Problem, Severity
from tpuprof_tui.sources.sophgo.groups import core_group

from .arrays import I64

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: More problems than this of one capture are counted, not listed.
_MOST_LISTED = 1000


#: Places of records in a dump -> rows of the lane they became.
RowsOf = Callable[[I64], I64]
#: Core, and what else makes two problems the same one.
_Key = tuple[int, tuple[object, ...]]


class Where(TypedDict, total=False):
    """Where a problem was found, and how often; see ``Problem``. A core stands by its number until there are groups.

    ``records`` are the places of the records in the dump of the engine or port (see ``Stream.dumped``): which rows of
    a lane they become, or stand right before, is known when there are lanes.
    """

    file: str
    offset: int
    core: int
    lane: str
    count: int
    lost: int
    rows: I64
    behind: bool
    records: I64


class Report(Struct):
    """Problems in the order they were found; the same problem again is counted, not repeated.

    One report belongs to one thread; reports of parts are joined with ``extend``. What is told of no other file or
    core is told of its own.
    """

    file: str = ""
    core: int = -1
    _found: dict[_Key, Problem] = field(default_factory=dict)
    _records: dict[_Key, list[I64]] = field(default_factory=dict)
    _dropped: int = 0

    def add(self, problem: Problem, *records: I64, core: int = -1) -> None:
        """Add one problem, of a core where it is one's, and which records it concerns where that is known."""
        key = core, (problem.severity, problem.what, problem.done, problem.file, problem.lane)
        known = self._found.get(key)
        if known is not None:
            self._found[key] = replace(known, count=known.count + problem.count, lost=known.lost + problem.lost)
        elif len(self._found) < _MOST_LISTED:
            self._found[key] = problem
        else:
            self._dropped += 1
            return
        if records:
            self._records.setdefault(key, []).extend(records)

    def tell(self, severity: Severity, what: str, done: str, where: Where) -> None:
        """Something about which is known where it was found."""
        records, core = where.pop("records", None), where.pop("core", self.core)
        problem = Problem(severity, what, done, **{"file": self.file, **where})  # type: ignore[arg-type]
        self.add(problem, *(() if records is None else (records,)), core=core)

    def note(self, what: str, done: str = "", **where: Unpack[Where]) -> None:
        """Something repaired or assumed."""
        self.tell(Severity.NOTE, what, done, where)

    def warning(self, what: str, done: str = "", **where: Unpack[Where]) -> None:
        """Something ambiguous."""
        self.tell(Severity.WARNING, what, done, where)

    def error(self, what: str, done: str = "", **where: Unpack[Where]) -> None:
        """Something recorded that is lost or unreadable."""
        self.tell(Severity.ERROR, what, done, where)

    def extend(self, other: Report) -> None:
        """Take over the problems of another report."""
        for key, problem in other._found.items():
            self.add(problem, *other._records.get(key, ()), core=key[0])
        if other._dropped:
            self.add(other._more())

    def problems(
        self, groups: Groups | None = None, rows_of: Mapping[tuple[int, str], RowsOf] | None = None
    ) -> tuple[Problem, ...]:
        """All problems, in the order they were found.

        Args:
            groups: Those of the profile: cores that are units of it.
            rows_of: By core and label, tells which rows of a lane some records are; those of others stay unknown.
        """
        found: list[Problem] = []
        for (core, same), problem in self._found.items():
            placed = replace(problem, group=core_group(groups or Groups(), core)) if core >= 0 else problem
            records, rows = self._records.get((core, same)), (rows_of or {}).get((core, problem.lane))
            found.append(replace(placed, rows=rows(np.concatenate(records))) if records and rows else placed)
        return (*found, self._more()) if self._dropped else tuple(found)

    def _more(self) -> Problem:
        return Problem(Severity.WARNING, "More problems than can be listed.", count=self._dropped)
