"""Collects the Problems found while a capture is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from msgspec import Struct, field

from tpuprof_tui.model import Groups, Problem, Severity

from ..groups import CORE, group_of
from .arrays import I64

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Problems of one capture beyond this are counted, not listed.
_MOST_LISTED = 1000

#: Maps indices of records in a dump to rows of the lane built from them.
RowsOf = Callable[[I64], I64]
#: Core, and the other fields that identify a problem.
_Key = tuple[int, tuple[object, ...]]


class ProblemLocation(TypedDict, total=False):
    """Where a problem was found, and how often; see ``Problem``. ``core`` is a core number until groups exist.

    ``records`` are indices in the dump of the engine or port (see ``RecordStream.dump_indices``); they are mapped to
    rows of a lane, or to the rows that follow them, once lanes exist.
    """

    file: str
    offset: int
    core: int
    lane: str
    count: int
    lost: int
    rows: I64
    after_gap: bool
    unnamed: bool
    records: I64


class Problems(Struct):
    """Problems in the order they were found; repeated ones are counted.

    A report is used by one thread; reports of parts are merged with ``extend``. ``file`` and ``core`` are the defaults
    for problems that name none.
    """

    file: str = ""
    core: int = -1
    _found: dict[_Key, tuple[Problem, list[I64]]] = field(default_factory=dict)
    _dropped: int = 0

    def add(self, problem: Problem, *records: I64, core: int = -1) -> None:
        """Add one problem, with its core (-1: none) and the records that it concerns, if known."""
        key = core, (problem.severity, problem.what, problem.done, problem.file, problem.lane)
        earlier, known = self._found.get(key, (None, []))
        if earlier is not None:
            problem = replace(earlier, count=earlier.count + problem.count, lost=earlier.lost + problem.lost)
        elif len(self._found) >= _MOST_LISTED:
            self._dropped += 1
            return
        self._found[key] = problem, [*known, *records]

    def add_at(self, severity: Severity, what: str, done: str, location: ProblemLocation) -> None:
        """Add a problem with its location."""
        records, core = location.pop("records", None), location.pop("core", self.core)
        problem = Problem(severity, what, done, **{"file": self.file, **location})  # type: ignore[arg-type]
        self.add(problem, *(() if records is None else (records,)), core=core)

    def note(self, what: str, done: str = "", **location: Unpack[ProblemLocation]) -> None:
        """Add a note: something was repaired or assumed."""
        self.add_at(Severity.NOTE, what, done, location)

    def warning(self, what: str, done: str = "", **location: Unpack[ProblemLocation]) -> None:
        """Add a warning: something is ambiguous."""
        self.add_at(Severity.WARNING, what, done, location)

    def error(self, what: str, done: str = "", **location: Unpack[ProblemLocation]) -> None:
        """Add an error: something recorded is lost or unreadable."""
        self.add_at(Severity.ERROR, what, done, location)

    def extend(self, other: Problems) -> None:
        """Add the problems of another report."""
        for (core, _), (problem, records) in other._found.items():
            self.add(problem, *records, core=core)
        if other._dropped:
            self.add(other._more())

    def problems(
        self, groups: Groups | None = None, rows_of: Mapping[tuple[int, str], RowsOf] | None = None
    ) -> tuple[Problem, ...]:
        """All problems, in the order they were found.

        Args:
            groups: Groups of the profile, for the groups of cores.
            rows_of: By core and lane label: maps records to rows of the lane; without it a problem has no rows.
        """
        found: list[Problem] = []
        for (core, _), (problem, records) in self._found.items():
            grouped = replace(problem, group=group_of(groups or Groups(), CORE, core)) if core >= 0 else problem
            rows = (rows_of or {}).get((core, problem.lane))
            found.append(replace(grouped, rows=rows(np.concatenate(records))) if records and rows else grouped)
        return (*found, self._more()) if self._dropped else tuple(found)

    def _more(self) -> Problem:
        return Problem(Severity.WARNING, "More problems than can be listed.", count=self._dropped)
