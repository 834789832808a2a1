"""Columns of arrays that are appended to chunk by chunk while a trace is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt


class GrowingColumns:
    """Columns by name, each a list of arrays until it is asked for."""

    def __init__(self) -> None:
        self._parts: dict[str, list[npt.NDArray[Any]]] = {}

    def add(self, **columns: npt.NDArray[Any]) -> None:
        """Appends an array to each named column."""
        for key, values in columns.items():
            self._parts.setdefault(key, []).append(values)

    def __contains__(self, key: str) -> bool:
        return key in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def column(self, key: str, dtype: Any = np.int64) -> npt.NDArray[Any]:
        """A column as one array; ``dtype`` is the type of the empty array if the column does not exist."""
        parts = self._parts.get(key, [])
        return np.concatenate(parts) if parts else np.zeros(0, dtype)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """All columns by name; removes them here."""
        return {key: self.take(key) for key in list(self)}

    def take(self, key: str, dtype: Any = np.int64) -> npt.NDArray[Any]:
        """A column as one array, as `column`; removes it here."""
        found = self.column(key, dtype)
        self._parts.pop(key, None)
        return found
