"""Groups of lanes, a tree of any depth: ranks, GPUs, cores, ports, hosts; and the workers that recorded them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from .missing import INT_MISSING


class Worker(Struct, frozen=True, eq=False):
    """A recording of one process or machine."""

    key: str  #: Unique name among the workers
    group: int = -1  #: Id of its group; -1: the whole profile, if there is a single worker
    rank: int | None = None  #: Its rank; None: none
    name: str = ""  #: Its name for people
    span: int = 1  #: Number of the recording of this worker, from 1
    files: tuple[str, ...] = ()  #: Names of its files
    devices: tuple[dict[str, Any], ...] = ()  #: Its devices: ``name`` and further properties
    hosts: bool = True  #: Whether host events count among its own; a source may keep them separate
    #: Start and end of the recording, ns, of a source that defines a clock of each worker, which begins there; None:
    #: extent of its events, on the profile's clock.
    window: tuple[int, int] | None = None
    #: Reading of its own clock at the zero of the profile's time line, ns; None: the profile's.
    epoch_ns: int | None = None
    #: Wall-clock time at which it began, ns since 1970; None: its own clock is that, if plausible.
    begun_ns: int | None = None
    rank_guessed: bool = False  #: Whether its rank is only what the name of a file or folder says
    stage: str = ""  #: Word for what a server computed meanwhile (EXTEND); empty: not told
    recorded: Any = None  #: What the views of its source know of the recording beside events and tables
    #: Returns memory of what columns of its events computed, where memory is short.
    release: Callable[[], None] = lambda: None

    @property
    def offset_ns(self) -> int:
        """Zero of the times of its views in JSON, ns on the profile's time line: 0 unless it has a clock of its own."""
        return 0 if self.window is None else self.window[0]


#: Group id that means "no group".
NO_GROUP: Final = -1


class Group(Struct, frozen=True):
    """A node of the tree that lanes belong to. Its id is its index in ``Profile.groups``."""

    label: str
    kind: str  #: Key of its kind ("core", "ports", "host", "rank", "gpu")
    parent: int = NO_GROUP  #: Id of the parent group; -1 at the top level
    #: Number that users type (3); -1 without one. Units share one only if they are one device, recorded twice.
    number: int = -1
    is_unit: bool = False  #: Whether figures are computed for it
    lost: bool = False  #: Whether it ran but the capture holds no data of it
    remark: str = ""  #: A word from the source, shown after the label ("late"); may be empty
    host: str = ""  #: Top-level groups only: the machine it ran on; empty if unknown
    run: int = 0  #: Top-level groups only: number of the run that it was recorded in; runs have nothing in common
    #: Top-level groups only: groups of one session share a clock and a window. Sessions lie one after the other on the
    #: time line; the time between them was not recorded and is in no figure.
    session: int = 0


class Groups(tuple[Group, ...]):
    """All groups of a profile, parents before children; raises ValueError otherwise."""

    def __new__(cls, groups: Iterable[Group] = ()) -> Groups:
        """Builds the tuple and checks the order of parents and children."""
        made = super().__new__(cls, groups)
        if any(not NO_GROUP <= group.parent < index for index, group in enumerate(made)):
            raise ValueError("a group precedes its parent")
        return made

    @cached_property
    def units(self) -> tuple[int, ...]:
        """Ids of the groups that figures are computed for, ascending."""
        return tuple(index for index, group in enumerate(self) if group.is_unit)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the units, in the order of `units`; recordings of one device have one number."""
        return tuple(dict.fromkeys(self[unit].number for unit in self.units))

    def with_units(self, units: Collection[int]) -> Groups:
        """The same groups with only ``units`` (ids) marked as units."""
        return Groups(replace(group, is_unit=index in units) for index, group in enumerate(self))

    @cached_property
    def _within(self) -> tuple[frozenset[int], ...]:
        below: list[set[int]] = [{index} for index in range(len(self))]
        for index in range(len(self) - 1, -1, -1):
            if self[index].parent >= 0:
                below[self[index].parent] |= below[index]
        return tuple(map(frozenset, below))

    def within(self, group: int) -> frozenset[int]:
        """Ids of a group and its descendants; empty if there is no such group."""
        return self._within[group] if 0 <= group < len(self) else frozenset()

    def units_within(self, group: int) -> tuple[int, ...]:
        """Ids of the units among a group and its descendants; all units for -1."""
        return self.units if group < 0 else tuple(unit for unit in self.units if unit in self.within(group))

    @cached_property
    def _unit_of(self) -> tuple[int, ...]:
        found: list[int] = []
        for index, group in enumerate(self):
            found.append(index if group.is_unit else found[group.parent] if group.parent >= 0 else NO_GROUP)
        return tuple(found)

    def unit_of(self, group: int) -> int:
        """Id of the nearest unit among a group and its ancestors; -1 if there is none."""
        return self._unit_of[group] if 0 <= group < len(self) else NO_GROUP

    def number(self, group: int) -> int:
        """Number of a group; -1 without a group or a number."""
        return self[group].number if 0 <= group < len(self) else -1

    def unit_number(self, group: int) -> int:
        """Number of the nearest unit of a group, or of the group itself if it is lost; -1 without one."""
        lost = 0 <= group < len(self) and self[group].lost
        return self.number(group if lost else self.unit_of(group))

    def lost_numbers(self, kind: str) -> tuple[int, ...]:
        """Numbers of the lost groups of a kind, ascending."""
        return tuple(sorted(group.number for group in self if group.lost and group.kind == kind))

    def label(self, group: int) -> str:
        """Label of a group; empty without a group."""
        return self[group].label if 0 <= group < len(self) else ""

    @cached_property
    def _shared_labels(self) -> frozenset[str]:
        counted = Counter(group.label for group in self)
        return frozenset(label for label, count in counted.items() if count > 1)

    def title(self, group: int) -> str:
        """Unique title of a group: its label; if another group has the same label, its whole path."""
        label = self.label(group)
        return " ".join(self.path(group)) if label in self._shared_labels else label

    def shown(self, group: int) -> str:
        """The title, followed by the source's remark."""
        remark = self[group].remark if 0 <= group < len(self) else ""
        return f"{self.title(group)} {remark}".rstrip()

    def path(self, group: int) -> tuple[str, ...]:
        """Labels of a group and its ancestors, from the top level down."""
        labels: list[str] = []
        while 0 <= group < len(self):
            labels.append(self[group].label)
            group = self[group].parent
        return tuple(reversed(labels))

    def top(self, group: int) -> int:
        """Id of the top-level ancestor of a group; -1 for -1."""
        while group >= 0 and self[group].parent >= 0:
            group = self[group].parent
        return group

    @cached_property
    def sessions(self) -> tuple[int, ...]:
        """Numbers of the sessions, ascending."""
        return tuple(sorted({group.session for group in self if group.parent < 0})) or (0,)

    def session(self, group: int) -> int:
        """Number of the session that a group was recorded in; 0 for -1."""
        return self[self.top(group)].session if 0 <= group < len(self) else 0

    def peers(self, unit: int) -> tuple[int, ...]:
        """Ids of the units of the session of a unit, itself included: those that it can be compared with."""
        return tuple(each for each in self.units if self.session(each) == self.session(unit))

    @cached_property
    def device_count(self) -> int:
        """Number of units, those counted once that several sessions of a run recorded."""
        counts = Counter((self[self.top(unit)].run, self.session(unit)) for unit in self.units)
        return sum(max(count for (its, _), count in counts.items() if its == run) for run in {run for run, _ in counts})

    def at_path(self, path: tuple[str, ...]) -> int:
        """Id of the first group with this path (see `path`); -1 if there is none."""
        return next((index for index in range(len(self)) if self.path(index) == path), NO_GROUP)

    def numbered(self, number: int) -> int:
        """Id of the first unit with this number; -1 if there is none."""
        return next((unit for unit in self.units if self[unit].number == number), NO_GROUP)

    def units_of(self, owners: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Unit ids of an array of group ids (int64; missing or negative: no group); -1 without a unit."""
        return self._lookup([*self._unit_of, NO_GROUP], owners)

    def unit_numbers(self, owners: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Unit numbers of an array of group ids, as in `units_of`; ``INT_MISSING`` without a unit."""
        known = [self[unit].number if unit >= 0 else -1 for unit in self._unit_of]
        return self._lookup([*(number if number >= 0 else INT_MISSING for number in known), INT_MISSING], owners)

    def _lookup(self, table: list[int], owners: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.asarray(np.array(table, np.int64)[np.where((owners >= 0) & (owners < len(self)), owners, len(self))])


def free_number(groups: Iterable[Group], wanted: int) -> int:
    """A number that no unit of ``groups`` has: ``wanted`` if it is free and not negative."""
    taken = {group.number for group in groups if group.is_unit}
    while wanted < 0 or wanted in taken:
        wanted = max(taken, default=-1) + 1
    return wanted
