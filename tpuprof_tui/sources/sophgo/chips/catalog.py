"""Cached access to the chip data files of this package, read on first use."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

Thing = TypeVar("Thing")


class Catalog:
    """JSON files of a folder and the tables made from them; both are read-only and cached."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, Mapping[str, Any]] = {}
        self._tables: dict[tuple[Hashable, ...], Any] = {}

    @property
    def read(self) -> frozenset[str]:
        """Names of the files that have been read."""
        return frozenset(self._files)

    def file(self, name: str) -> Mapping[str, Any]:
        """Content of a file."""
        if name not in self._files:
            data: dict[str, Any] = json.loads((self.folder / name).read_text(encoding="utf-8"))
            self._files.setdefault(name, MappingProxyType(data))
        return self._files[name]

    def table(self, make: Callable[[str], Thing], name: str) -> Thing:
        """Result of ``make(name)``, computed once."""
        key = (make, name)
        if key not in self._tables:
            self._tables.setdefault(key, make(name))
        found: Thing = self._tables[key]
        return found


#: Catalog of the process; its data is the same for all captures.
CATALOG: Final = Catalog(Path(__file__).parent)
