"""Steps: what a run does again and again, one batch or iteration after the other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import force_setattr

from .strings import Strings


class Steps(Struct, frozen=True, eq=False):
    """Steps of all groups in columns of one length. Immutable.

    The column ``step`` of an event is the number of its step: device work belongs to the step that launched it,
    whenever it ran.

    Attributes:
        labels: The distinct labels.
        label: int32 codes into them.
        group: int32 ids of the groups that made the steps; -1: everything together.
        start, end: int64 ns on the profile's time line.
        number: int64, as people type it, no two of a group alike (1009 of "ProfilerStep#1009"); none given: they are
            counted from 0 in each group.

    Raises:
        ValueError: The columns are not of one length.
    """

    labels: Strings = field(default_factory=Strings)
    label: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    group: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    start: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    end: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    number: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        if not len(self.number):
            force_setattr(self, "number", _turns(self.group))
        columns = (self.label, self.group, self.start, self.end, self.number)
        if len({len(column) for column in columns}) != 1:
            raise ValueError("columns of steps are not of one length")
        for column in columns:
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.start)

    def counts(self) -> dict[str, int]:
        """How many steps have each label, in order of first use."""
        counted = np.bincount(self.label[self.label >= 0], minlength=len(self.labels))
        return {label: int(count) for label, count in zip(self.labels, counted, strict=True)}


def _turns(group: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Place of each among those of its group."""
    order = np.argsort(group, kind="stable")
    heads = np.append(True, group[order[1:]] != group[order[:-1]])[: len(order)]
    turns = np.arange(len(order), dtype=np.int64)
    turns -= np.maximum.accumulate(np.where(heads, turns, 0))
    found = np.empty(len(order), np.int64)
    found[order] = turns
    return found
