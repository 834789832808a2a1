"""What is computed of a profile and kept for as long as it is: by key, made once, with its size in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from sys import getsizeof
from threading import Lock, RLock
from types import CellType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from .selecting.session import Session

Thing = TypeVar("Thing")

#: What holds nothing that counts.
_PLAIN: Final = (int, float, complex, type, ModuleType, type(None))


class Derived:
    """Things that were computed, by what they are and which of these they are.

    A profile has one (``Session.derived``). What is computed of a single lane, or of what passes a filter, is kept by
    another one inside it: that of the lane's index, or that of the filter. So all goes when the profile goes.

    Several threads may ask at once: one of them makes a thing, the others wait for it; who asks for something else
    does not wait.

    Args:
        after: Called whenever a thing has been made.
    """

    def __init__(self, after: Callable[[], None] | None = None) -> None:
        self._after = after
        self._kept: dict[tuple[Hashable, ...], Any] = {}
        self._making: dict[tuple[Hashable, ...], RLock] = {}
        self._lock = Lock()

    def get(self, what: str, make: Callable[[], Thing], *which: Hashable, most: int = 0) -> Thing:
        """A thing, by what it is (in words for a list of all that is kept) and which; made now where it is not known.

        ``make`` may ask for other things. ``most``: so many of these are kept, those that were made last; 0: all.
        """
        key = (what, *which)
        try:
            found: Thing = self._kept[key]
        except KeyError:
            with self._turn(key):
                if key in self._kept:
                    found = self._kept[key]
                else:
                    found = make()
                    self._keep(key, found, most)
                    if self._after is not None:
                        self._after()
        return found

    def known(self, what: str, *which: Hashable) -> Any:
        """A thing that has been made; None before."""
        return self._kept.get((what, *which))

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """What each thing is, and the thing, in the order they were made."""
        with self._lock:
            kept = list(self._kept.items())
        return ((str(key[0]), thing) for key, thing in kept)

    def sizes(self, counted: Counted | None = None) -> dict[str, int]:
        """Bytes by what holds them, without what has been counted; ``a/b`` is what was computed of ``a``."""
        sizes: dict[str, int] = {}
        counted = counted or Counted()
        counted.leave_out(self)
        for what, thing in self:
            sizes[what] = sizes.get(what, 0) + counted.of(thing)
            for inner in counted.inside():
                for name, size in inner.sizes(counted).items():
                    sizes[f"{what}/{name}"] = sizes.get(f"{what}/{name}", 0) + size
        return sizes

    def _turn(self, key: tuple[Hashable, ...]) -> RLock:
        """What a thread holds while it makes a thing; asked for by its own making, it fails instead of waiting."""
        with self._lock:
            return self._making.setdefault(key, RLock())

    def _keep(self, key: tuple[Hashable, ...], thing: object, most: int) -> None:
        with self._lock:
            self._kept[key] = thing
            # who waits for its turn finds the thing
            self._making.pop(key, None)
            alike = [each for each in self._kept if each[0] == key[0]] if most else []
            for each in alike[: max(len(alike) - most, 0)]:
                del self._kept[each]


class Counted:
    """Counts the bytes of arrays and texts that things hold, each of them once."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._inside: list[Derived] = []

    def of(self, *things: object) -> int:
        """Bytes that things hold and nothing counted before; without what is derived inside them."""
        size = 0
        waiting = list(things)
        while waiting:
            each = waiting.pop()
            if isinstance(each, _PLAIN) or id(each) in self._seen:
                continue
            self._seen.add(id(each))
            if isinstance(each, Derived):
                self._inside.append(each)
            elif isinstance(each, (bytes, bytearray)):
                size += len(each)
            elif isinstance(each, str):
                size += getsizeof(each)
            elif isinstance(each, np.ndarray) and each.base is None:
                size += each.nbytes
            else:
                waiting.extend(_held_by(each))
        return size

    def leave_out(self, thing: object) -> None:
        """A thing that is counted elsewhere."""
        self._seen.add(id(thing))

    def inside(self) -> list[Derived]:
        """What is derived inside the things that were counted since this was asked last."""
        found, self._inside = self._inside, []
        return found


def _held_by(thing: Any) -> Iterator[object]:
    """What a thing refers to, as far as that can hold arrays."""
    if isinstance(thing, np.ndarray):
        yield thing.base
    elif isinstance(thing, memoryview):
        yield thing.obj
    elif isinstance(thing, partial):
        yield from (thing.func, thing.args, thing.keywords)
    elif isinstance(thing, FunctionType):
        yield from (thing.__closure__, thing.__defaults__)
    elif isinstance(thing, MethodType):
        yield thing.__self__
    elif isinstance(thing, CellType):
        with suppress(ValueError):  # an empty one
            yield thing.cell_contents
    else:
        if isinstance(thing, (dict, MappingProxyType)):
            yield from thing.values()
        elif isinstance(thing, (list, tuple, set, frozenset)):
            yield from thing
        yield from getattr(thing, "__dict__", {}).values()
        for kind in type(thing).__mro__:
            slots = getattr(kind, "__slots__", ())
            yield from (getattr(thing, name, None) for name in ((slots,) if isinstance(slots, str) else slots))


class Memory(Struct, frozen=True):
    """Bytes of arrays and texts; what several things share counts where it comes first.

    Attributes:
        columns: Columns that are kept as arrays, by kind of lane.
        names: Texts of names, which columns refer to by number.
        records: What was recorded, from which other columns and details are made when they are asked for.
        derived: What was computed and is kept; ``a/b`` is what was computed of ``a``.
    """

    columns: Mapping[str, int]
    names: int
    records: int
    derived: Mapping[str, int]

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.columns.values()) + self.names + self.records + sum(self.derived.values())


def memory_of(session: Session) -> Memory:
    """What a profile, and all that is kept of it, takes; O(arrays)."""
    counted, profile = Counted(), session.profile
    columns: dict[str, int] = {}
    for lane in profile.lanes:
        columns[lane.kind] = columns.get(lane.kind, 0) + counted.of(*lane.kept_arrays())
    names = counted.of(profile.strings)
    records = counted.of(profile)
    derived: dict[str, int] = {}
    # columns that are computed of other lanes keep themselves what that takes
    for each in (*counted.inside(), session.derived):
        derived |= each.sizes(counted)
    return Memory(columns, names, records, derived)
