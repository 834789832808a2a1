"""The steps of a profile, and which of them each event belongs to."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import INT_MISSING, Groups, Lane, Steps
from tpuprof_tui.model.columns import STEP
from tpuprof_tui.model.lane import ALL, Rows
from tpuprof_tui.model.vocabulary import Word

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Key of the column that tells the number of the step of an event.
KEY: Final = STEP.key
#: Place of no step.
NO_STEP: Final = -1
#: Numbers are looked up in a table of at most so many times their count.
_DENSE: Final = 4


class RepeatedSequence(Struct, frozen=True, eq=False):
    """A sequence of launches that repeats: the steps of a group, or what repeats within them. Arrays of one length.

    Attributes:
        group: Id of the group whose steps they are or lie in; -1: everything together.
        depth: 0 for steps, 1 for what repeats within them, and so on.
        launches: Launches of the usual repetition.
        first, last: Names of its first and last launch.
        start, end: int64 ns, of each repetition on one unit.
        usual: Whether its launches are the usual ones.
    """

    group: int
    depth: int
    launches: int
    first: str
    last: str
    start: Ints
    end: Ints
    usual: Mask

    def __len__(self) -> int:
        return len(self.start)


class StepSet(Struct, frozen=True, eq=False, dict=True):
    """Steps of one group: their places by number, and by time."""

    place: Ints
    number: Ints
    place_by_start: Ints
    start: Ints
    end: Ints

    @classmethod
    def of(cls, steps: Steps, places: Ints) -> StepSet:
        """Some of the steps, by their places."""
        by_number = places[np.argsort(steps.number[places], kind="stable")]
        by_start = places[np.lexsort((steps.end[places], steps.start[places]))]
        return cls(by_number, steps.number[by_number], by_start, steps.start[by_start], steps.end[by_start])

    def numbered(self, numbers: Ints) -> Ints:
        """Places of the steps with these numbers; -1 without one."""
        first, last = int(self.number[0]), int(self.number[-1])
        if last - first < _DENSE * len(self.number):
            known = (numbers >= first) & (numbers <= last)
            return self._by_number[np.where(known, numbers - first, -1)]
        where = np.minimum(np.searchsorted(self.number, numbers), len(self.number) - 1)
        return np.where(self.number[where] == numbers, self.place[where], NO_STEP)

    def at(self, times: Ints) -> Ints:
        """Places of the steps that run at these times: the last to start, else the one that runs longest; else -1."""
        last = np.searchsorted(self.start, times, side="right") - 1
        longest = self._longest[last]
        found = np.where(times < self.end[last], last, np.where(times < self.end[longest], longest, NO_STEP))
        return np.where((last >= 0) & (found >= 0), self.place_by_start[found], NO_STEP)

    @cached_property
    def _by_number(self) -> Ints:
        """Place of each number from the first on; at the end that of no step."""
        table = np.full(int(self.number[-1] - self.number[0]) + 2, NO_STEP, np.int64)
        table[self.number - self.number[0]] = self.place
        return table

    @cached_property
    def _longest(self) -> Ints:
        """Of the steps up to each the one that ends last."""
        ends = np.maximum.accumulate(self.end)
        return np.maximum.accumulate(np.where(self.end == ends, np.arange(len(ends)), 0))


class ProfileSteps(Struct, frozen=True, eq=False, dict=True):
    """Steps, and which of them events belong to.

    Attributes:
        steps: The steps.
        word: What one is called.
        guessed: Whether they were found by repetition.
        usual: By step, whether its launches are those that most steps of its group have.
        sequences: What repeats: the steps of each group, behind them what repeats within them.
        groups: Groups of the profile.
        column: Key of a column that numbers steps; empty: none but ``step`` does.
        by_scope: int64, place of the step of each scope, by its id; -1 without one.
    """

    steps: Steps
    word: Word
    guessed: bool
    usual: Mask
    sequences: tuple[RepeatedSequence, ...]
    groups: Groups
    column: str
    by_scope: Ints

    def __len__(self) -> int:
        return len(self.steps)

    def places(self, lane: Lane, rows: Rows = ALL) -> Ints:
        """int64, place in ``steps`` of the step that each row belongs to; -1 where it belongs to none."""
        column = lane.columns.get(KEY)
        if isinstance(column, StepColumn):
            return self.places(column.lane, rows)
        if column is not None:
            return self.numbered_rows(lane, rows, lane.take(KEY, rows))
        starts = lane.take("start", rows)
        found = np.full(len(starts), NO_STEP, np.int64)
        if self.column and self.column in lane:
            found = self.numbered_rows(lane, rows, lane.take(self.column, rows))
        if "scope" in lane and len(self.by_scope):
            scope = lane.take("scope", rows)
            known = (found < 0) & (scope >= 0) & (scope < len(self.by_scope))
            found[known] = self.by_scope[scope[known]]
        unknown = found < 0
        for chosen, known_steps in self._sets(lane, rows):
            found[unknown & chosen] = known_steps.at(starts[unknown & chosen])
        return found

    def numbers(self, lane: Lane, rows: Rows = ALL) -> Ints:
        """int64, number of the step that each row belongs to; ``INT_MISSING`` where it belongs to none."""
        found = self.places(lane, rows)
        return np.where(found >= 0, self.steps.number[found] if len(self) else INT_MISSING, INT_MISSING)

    def numbered(self, number: int) -> Ints:
        """Places of the steps with a number: one of each group that has it."""
        return np.flatnonzero(self.steps.number == number)

    def numbers_text(self, most: int) -> str:
        """The numbers there are: ``0 to 39``, or up to so many of them where some between are not there."""
        numbers = np.unique(self.steps.number).tolist()
        if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
            return f"{numbers[0]} to {numbers[-1]}"
        return ", ".join(map(str, numbers[:most])) + (", ..." if len(numbers) > most else "")

    def label(self, place: int) -> str:
        """What a step is called."""
        return self.steps.labels[int(self.steps.label[place])]

    # groups

    @cached_property
    def _by_group(self) -> dict[int, StepSet]:
        groups = np.unique(self.steps.group).tolist()
        return {group: StepSet.of(self.steps, np.flatnonzero(self.steps.group == group)) for group in groups}

    def set_of(self, group: int) -> StepSet | None:
        """The steps of a group, of the nearest one above it, of one with the same top; else those of everything."""
        known, groups = self._by_group, self.groups
        if len(known) == 1 and (group < 0 or -1 in known):
            return next(iter(known.values()))
        above = group
        while above >= 0:
            if above in known:
                return known[above]
            above = groups[above].parent
        top = groups.top(group)
        return next((steps for each, steps in known.items() if each >= 0 and groups.top(each) == top), known.get(-1))

    def _sets(self, lane: Lane, rows: Rows) -> list[tuple[Mask, StepSet]]:
        """Which of some rows can belong to which steps."""
        count = len(lane.take("start", rows))
        if "owner" not in lane or self.groups.unit_of(lane.group) >= 0:
            found = self.set_of(lane.group)
            return [] if found is None else [(np.ones(count, np.bool_), found)]
        owners = lane.take("owner", rows)
        owners = np.where((owners >= 0) & (owners < len(self.groups)), owners, -1)
        of_owners = [(owners == owner, self.set_of(owner)) for owner in np.unique(owners).tolist()]
        return [(chosen, found) for chosen, found in of_owners if found is not None]

    def numbered_rows(self, lane: Lane, rows: Rows, numbers: Ints) -> Ints:
        """Places of the steps with these numbers, one for each of some rows of a lane; -1 without one."""
        found = np.full(len(numbers), NO_STEP, np.int64)
        for chosen, steps in self._sets(lane, rows):
            found[chosen] = steps.numbered(numbers[chosen])
        return found


class StepColumn:
    """The column of steps' numbers of a lane whose source gives none; nothing is computed before it is asked for."""

    def __init__(self, lane: Lane, find: Callable[[], ProfileSteps]) -> None:
        self.lane = lane
        self.find = find

    def __call__(self, rows: Rows) -> Ints:
        """Numbers of some rows."""
        return self.find().numbers(self.lane, rows)
