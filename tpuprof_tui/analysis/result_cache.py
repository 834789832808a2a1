"""Per-profile cache of computed results: keyed, computed once, thread-safe."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock, RLock
from typing import Any, TypeVar

Value = TypeVar("Value")


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
