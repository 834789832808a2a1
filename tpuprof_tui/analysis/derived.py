"""Per-profile cache of computed results: keyed, computed once, thread-safe, with memory accounting."""

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

#: Types without arrays or texts, which ``Counted`` skips.
_PLAIN: Final = (int, float, complex, type, ModuleType, type(None))


class Derived:
    """Thread-safe cache of computed values, keyed by a description and further keys.

    A profile has one (``Session.derived``). Results computed from a single lane or from a filtered selection are kept
    in a nested cache owned by the lane's index or by the filter, so all of them are freed with the profile.

    When several threads ask for the same key, one computes the value and the others wait; threads that ask for other
    keys do not wait.

    Args:
        after: Called after each value has been computed.
    """

    def __init__(self, after: Callable[[], None] | None = None) -> None:
        self._after = after
        self._kept: dict[tuple[Hashable, ...], Any] = {}
        self._making: dict[tuple[Hashable, ...], RLock] = {}
        self._lock = Lock()

    def get(self, what: str, make: Callable[[], Thing], *which: Hashable, most: int = 0) -> Thing:
        """Returns the cached value, computing it with ``make`` on a miss.

        Args:
            what: Kind of value, in words; it labels the entry in the list of cached values.
            make: Computes the value; it may ask this cache for other keys.
            which: Rest of the key.
            most: Maximum number of values kept of this kind, the oldest are evicted; 0: no limit.
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
        """The cached value; None if it has not been computed yet."""
        return self._kept.get((what, *which))

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yields (kind, value) in order of computation."""
        with self._lock:
            kept = list(self._kept.items())
        return ((str(key[0]), thing) for key, thing in kept)

    def sizes(self, counted: Counted | None = None) -> dict[str, int]:
        """Bytes by kind, without objects already counted; ``a/b`` is a value ``b`` cached inside a value ``a``."""
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
        """The lock held while computing a key; reentrant, so that a ``make`` that asks for its own key fails."""
        with self._lock:
            return self._making.setdefault(key, RLock())

    def _keep(self, key: tuple[Hashable, ...], thing: object, most: int) -> None:
        with self._lock:
            self._kept[key] = thing
            # threads that wait for the lock find the value in the cache
            self._making.pop(key, None)
            alike = [each for each in self._kept if each[0] == key[0]] if most else []
            for each in alike[: max(len(alike) - most, 0)]:
                del self._kept[each]


class Counted:
    """Counts the bytes of arrays and texts reachable from objects, each of them once."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._inside: list[Derived] = []

    def of(self, *things: object) -> int:
        """Bytes reachable from objects and not counted before; nested ``Derived`` caches are excluded."""
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
        """Excludes an object that is counted elsewhere."""
        self._seen.add(id(thing))

    def inside(self) -> list[Derived]:
        """The ``Derived`` caches found in counted objects since the last call."""
        found, self._inside = self._inside, []
        return found


def _held_by(thing: Any) -> Iterator[object]:
    """Objects that an object refers to, as far as these can hold arrays."""
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
        with suppress(ValueError):  # the cell is empty
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
    """Memory of a profile in bytes of arrays and texts; shared objects count where they occur first.

    Attributes:
        columns: Columns held as arrays, by kind of lane.
        names: String tables, which columns refer to by code.
        records: Raw records, from which further columns and details are decoded lazily.
        derived: Cached results by kind; ``a/b`` is a result ``b`` cached inside a result ``a``.
    """

    columns: Mapping[str, int]
    names: int
    records: int
    derived: Mapping[str, int]

    @property
    def total(self) -> int:
        """Sum of all parts."""
        return sum(self.columns.values()) + self.names + self.records + sum(self.derived.values())


def memory_of(session: Session) -> Memory:
    """Memory of a profile and of all results cached for it; O(arrays)."""
    counted, profile = Counted(), session.profile
    columns: dict[str, int] = {}
    for lane in profile.lanes:
        columns[lane.kind] = columns.get(lane.kind, 0) + counted.of(*lane.stored_arrays())
    names = counted.of(profile.strings)
    records = counted.of(profile)
    derived: dict[str, int] = {}
    # a column computed from other lanes holds its cache itself
    for each in (*counted.inside(), session.derived):
        derived |= each.sizes(counted)
    return Memory(columns, names, records, derived)
