"""What a reader could not use, had to guess or repaired."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from .group import Groups
from .lane import Lane


class Severity(IntEnum):
    """How much a problem matters to who reads the figures."""

    NOTE = 0
    WARNING = 1
    ERROR = 2

    @property
    def word(self) -> str:
        """Lower-case name, as written to files."""
        return self.name.lower()


@dataclass(frozen=True)
class Problem:
    """One thing that is not as it should be in a capture.

    Attributes:
        severity: NOTE: repaired or assumed; WARNING: ambiguous; ERROR: something recorded is lost or unreadable.
        what: What happened, one sentence.
        done: What was done about it, or what to do next.
        file: Name of the file inside the capture; empty when it concerns no single file.
        offset: Byte offset in that file; -1 when unknown.
        group: Id of the group concerned; -1 when it concerns no single one.
        lane: Lane concerned, as it is labelled in its group; empty when none.
        count: How many times it happened.
        rows: int64, ascending: the instructions of that lane that it concerns. None where it concerns none, or nobody
            knows which.
        lost: How many records are known to be lost by it.
        behind: Whether what it is about is not there: the rows are those right behind it.
    """

    severity: Severity
    what: str
    done: str = ""
    file: str = ""
    offset: int = -1
    group: int = -1
    lane: str = ""
    count: int = 1
    rows: npt.NDArray[np.int64] | None = field(default=None, compare=False, repr=False)
    lost: int = field(default=0, compare=False)
    behind: bool = field(default=False, compare=False, repr=False)

    def as_record(self, groups: Groups, unit: str) -> dict[str, Any]:
        """Plain values for JSON; rows are a matter of the screen.

        Args:
            groups: Those of the profile.
            unit: Name of the unit's number ("core"), which stands in place of the group.
        """
        record = {each.name: getattr(self, each.name) for each in fields(self) if each.compare}
        number = groups.unit_number(record["group"])
        told = {"severity": self.severity.word, "offset": None if self.offset < 0 else self.offset,
                "group": None if number < 0 else number}  # fmt: skip
        return {unit if key == "group" else key: told.get(key, value) for key, value in record.items()}

    def is_about(self, lane: Lane, groups: Groups) -> bool:
        """Whether it concerns a lane."""
        place = self.group < 0 or lane.group in groups.within(self.group)
        return bool(self.lane) and self.lane == lane.label and place


def worst(problems: Iterable[Problem]) -> Severity | None:
    """The highest severity among ``problems``; None without any."""
    return max((problem.severity for problem in problems), default=None)
