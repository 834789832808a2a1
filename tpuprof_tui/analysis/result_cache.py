"""Per-profile cache of computed results: keyed, computed once, thread-safe, with memory accounting."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from sys import getsizeof
from threading import Lock, RLock
from types import CellType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, Final, TypeVar

import numpy as np
from msgspec import Struct

from tpuprof_tui.model import Profile

Value = TypeVar("Value")

#: Types without arrays or texts, which ``SizeCounter`` skips.
_PLAIN: Final = (int, float, complex, type, ModuleType, type(None))


class ResultCache:
    """Thread-safe cache of computed values, keyed by a description and further keys.

    A profile has one (``Session.cache``). Results computed from a single lane or from a filtered selection are kept
    in a nested cache owned by the lane's index or by the filter, so all of them are freed with the profile.

    When several threads ask for the same key, one computes the value and the others wait; threads that ask for other
    keys do not wait.

    Args:
        after: Called after each value has been computed.
    """

    def __init__(self, after: Callable[[], None] | None = None) -> None:
        self.after = after
        self._values: dict[tuple[Hashable, ...], Any] = {}
        self._locks: dict[tuple[Hashable, ...], RLock] = {}
        self._lock = Lock()

    def get(self, kind: str, compute: Callable[[], Value], *rest: Hashable, limit: int = 0) -> Value:
        """Returns the cached value, computing it with ``compute`` on a miss.

        Args:
            kind: Kind of value, in words; it labels the entry in the list of cached values.
            compute: Computes the value; it may ask this cache for other keys.
            rest: Rest of the key.
            limit: Maximum number of values kept of this kind, the oldest are evicted; 0: no limit.
        """
        key = (kind, *rest)
        try:
            found: Value = self._values[key]
        except KeyError:
            with self._lock_of(key):
                if key in self._values:
                    found = self._values[key]
                else:
                    found = compute()
                    self._store(key, found, limit)
                    if self.after is not None:
                        self.after()
        return found

    def peek(self, kind: str, *rest: Hashable) -> Any:
        """The cached value; None if it has not been computed yet."""
        return self._values.get((kind, *rest))

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yields (kind, value) in order of computation."""
        with self._lock:
            kept = list(self._values.items())
        return ((str(key[0]), value) for key, value in kept)

    def sizes(self, counter: SizeCounter | None = None) -> dict[str, int]:
        """Bytes by kind, without objects already counted; ``a/b`` is a value ``b`` cached inside a value ``a``."""
        sizes: dict[str, int] = {}
        counter = counter or SizeCounter()
        counter.exclude(self)
        for kind, value in self:
            sizes[kind] = sizes.get(kind, 0) + counter.of(value)
            for nested in counter.take_nested():
                for name, size in nested.sizes(counter).items():
                    sizes[f"{kind}/{name}"] = sizes.get(f"{kind}/{name}", 0) + size
        return sizes

    def _lock_of(self, key: tuple[Hashable, ...]) -> RLock:
        """The lock held while computing a key; reentrant, so that a ``compute`` that asks for its own key fails."""
        with self._lock:
            return self._locks.setdefault(key, RLock())

    def _store(self, key: tuple[Hashable, ...], value: object, limit: int) -> None:
        with self._lock:
            self._values[key] = value
            # threads that wait for the lock find the value in the cache
            self._locks.pop(key, None)
            same_kind = [each for each in self._values if each[0] == key[0]] if limit else []
            for each in same_kind[: max(len(same_kind) - limit, 0)]:
                del self._values[each]


class SizeCounter:
    """Counts the bytes of arrays and texts reachable from objects, each of them once."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._nested: list[ResultCache] = []

    def of(self, *things: object) -> int:
        """Bytes reachable from objects and not counted before; nested ``ResultCache`` caches are excluded."""
        size = 0
        pending = list(things)
        while pending:
            each = pending.pop()
            if isinstance(each, _PLAIN) or id(each) in self._seen:
                continue
            self._seen.add(id(each))
            if isinstance(each, ResultCache):
                self._nested.append(each)
            elif isinstance(each, (bytes, bytearray)):
                size += len(each)
            elif isinstance(each, str):
                size += getsizeof(each)
            elif isinstance(each, np.ndarray) and each.base is None:
                size += each.nbytes
            else:
                pending.extend(_held_by(each))
        return size

    def exclude(self, thing: object) -> None:
        """Excludes an object that is counted elsewhere."""
        self._seen.add(id(thing))

    def take_nested(self) -> list[ResultCache]:
        """The ``ResultCache`` caches found in counted objects since the last call."""
        found, self._nested = self._nested, []
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
    """Memory of a profile in bytes of arrays and texts; shared objects count where they occur first."""

    columns: Mapping[str, int]  #: Columns held as arrays, by kind of lane
    names: int  #: String tables, which columns refer to by code
    records: int  #: Raw records, from which further columns and details are decoded lazily
    derived: Mapping[str, int]  #: Cached results by kind; ``a/b`` is a result ``b`` cached inside a result ``a``

    @property
    def total(self) -> int:
        """Sum of all parts."""
        return sum(self.columns.values()) + self.names + self.records + sum(self.derived.values())


def memory_of(profile: Profile, cache: ResultCache) -> Memory:
    """Memory of a profile and of all results in its cache; O(arrays)."""
    counter = SizeCounter()
    columns: dict[str, int] = {}
    for lane in profile.lanes:
        columns[lane.kind] = columns.get(lane.kind, 0) + counter.of(*lane.stored_arrays())
    names = counter.of(profile.strings)
    records = counter.of(profile)
    derived: dict[str, int] = {}
    # a column computed from other lanes holds its cache itself
    for each in (*counter.take_nested(), cache):
        derived |= each.sizes(counter)
    return Memory(columns, names, records, derived)
