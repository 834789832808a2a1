"""Groups: what lanes belong to, in a tree of any depth: ranks, GPUs, cores, ports, hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from .missing import INT_MISSING

#: Id of no group.
NO_GROUP: Final = -1


class Group(Struct, frozen=True):
    """One of the things that lanes belong to. Its id is its place in ``Profile.groups``.

    Attributes:
        kind: Key of its kind ("core", "ports", "host", "rank", "gpu").
        parent: Id of the group it belongs to; -1 at the top.
        number: As people type it (3); -1 without one.
        is_unit: Whether figures are made for it.
        lost: Whether it ran and nothing of it is there.
        remark: A word that its source says of it, shown beside its label ("late"); empty: none.
        host: Of a top group: the machine that it ran on; empty: not known.
    """

    label: str
    kind: str
    parent: int = NO_GROUP
    number: int = -1
    is_unit: bool = False
    lost: bool = False
    remark: str = ""
    host: str = ""


class Groups(tuple[Group, ...]):
    """All groups of a profile; ValueError where one stands before its parent."""

    def __new__(cls, groups: Iterable[Group] = ()) -> Groups:
        """The groups in their order."""
        made = super().__new__(cls, groups)
        if any(not NO_GROUP <= group.parent < place for place, group in enumerate(made)):
            raise ValueError("a group stands before its parent")
        return made

    @cached_property
    def units(self) -> tuple[int, ...]:
        """Ids of the groups that figures are made for, in their order."""
        return tuple(place for place, group in enumerate(self) if group.is_unit)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the units, in their order."""
        return tuple(self[unit].number for unit in self.units)

    def keeping(self, units: Collection[int]) -> Groups:
        """The same groups, of which no others than these are units."""
        return Groups(replace(group, is_unit=place in units) for place, group in enumerate(self))

    @cached_property
    def _within(self) -> tuple[frozenset[int], ...]:
        below: list[set[int]] = [{place} for place in range(len(self))]
        for place in range(len(self) - 1, -1, -1):
            if self[place].parent >= 0:
                below[self[place].parent] |= below[place]
        return tuple(map(frozenset, below))

    def within(self, group: int) -> frozenset[int]:
        """Ids of a group and of all below it; empty without such a group."""
        return self._within[group] if 0 <= group < len(self) else frozenset()

    def units_within(self, group: int) -> tuple[int, ...]:
        """Ids of the units that are a group or lie below it; of all where it is -1."""
        return self.units if group < 0 else tuple(unit for unit in self.units if unit in self.within(group))

    @cached_property
    def _unit_of(self) -> tuple[int, ...]:
        found: list[int] = []
        for place, group in enumerate(self):
            found.append(place if group.is_unit else found[group.parent] if group.parent >= 0 else NO_GROUP)
        return tuple(found)

    def unit_of(self, group: int) -> int:
        """Id of the unit that a group is or lies in, the nearest one; -1 where there is none."""
        return self._unit_of[group] if 0 <= group < len(self) else NO_GROUP

    def number(self, group: int) -> int:
        """A group's number; -1 without a group or a number."""
        return self[group].number if 0 <= group < len(self) else -1

    def unit_number(self, group: int) -> int:
        """Number of the unit that a group is or lies in, or of one that is lost; -1 without."""
        lost = 0 <= group < len(self) and self[group].lost
        return self.number(group if lost else self.unit_of(group))

    def lost_numbers(self, kind: str) -> tuple[int, ...]:
        """Numbers of the groups of a kind that are lost, ascending."""
        return tuple(sorted(group.number for group in self if group.lost and group.kind == kind))

    def label(self, group: int) -> str:
        """A group's label; empty without a group."""
        return self[group].label if 0 <= group < len(self) else ""

    @cached_property
    def _shared_labels(self) -> frozenset[str]:
        counted = Counter(group.label for group in self)
        return frozenset(label for label, count in counted.items() if count > 1)

    def title(self, group: int) -> str:
        """What tells a group from all others: its label, after those above it where another has the same one."""
        label = self.label(group)
        return " ".join(self.path(group)) if label in self._shared_labels else label

    def shown(self, group: int) -> str:
        """The title, with what its source remarks."""
        remark = self[group].remark if 0 <= group < len(self) else ""
        return f"{self.title(group)} {remark}".rstrip()

    def path(self, group: int) -> tuple[str, ...]:
        """Labels of a group and of all above it, from the top."""
        labels: list[str] = []
        while 0 <= group < len(self):
            labels.append(self[group].label)
            group = self[group].parent
        return tuple(reversed(labels))

    def top(self, group: int) -> int:
        """Id of the top group that a group lies in; -1 of none."""
        while group >= 0 and self[group].parent >= 0:
            group = self[group].parent
        return group

    def at_path(self, path: tuple[str, ...]) -> int:
        """Id of the first group with a path; -1 without one."""
        return next((place for place in range(len(self)) if self.path(place) == path), NO_GROUP)

    def numbered(self, number: int) -> int:
        """Id of the first unit with a number; -1 without one."""
        return next((unit for unit in self.units if self[unit].number == number), NO_GROUP)

    def units_of(self, owners: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Ids of the units that many groups (int64, missing or negative for none) lie in; -1 of those in none."""
        return self._looked_up([*self._unit_of, NO_GROUP], owners)

    def unit_numbers(self, owners: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Numbers of these units; ``INT_MISSING`` where there is none."""
        known = [self[unit].number if unit >= 0 else -1 for unit in self._unit_of]
        return self._looked_up([*(number if number >= 0 else INT_MISSING for number in known), INT_MISSING], owners)

    def _looked_up(self, table: list[int], owners: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.asarray(np.array(table, np.int64)[np.where((owners >= 0) & (owners < len(self)), owners, len(self))])


def free_number(groups: Iterable[Group], wanted: int) -> int:
    """A number that no unit among some groups has: the wanted one where it is free and not below 0."""
    taken = {group.number for group in groups if group.is_unit}
    while wanted < 0 or wanted in taken:
        wanted = max(taken, default=-1) + 1
    return wanted
