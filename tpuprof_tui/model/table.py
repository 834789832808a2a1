"""Tables: rows that a source recorded beside its events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from .columns import Column
from .lane import ALL, Array, LazyColumn, Rows

#: Keys of columns with numbers of events (across all lanes; -1: none): what a row is about, and what called it.
EVENTS: Final = ("event", "caller_event")
#: Columns of a table by key, and the texts that codes of text columns refer to.
TableColumns = tuple[Mapping[str, "Array | LazyColumn"], Mapping[str, Sequence[str]]]


class Table(Struct, frozen=True, eq=False, dict=True):
    """Rows of one kind of record of one group, in columns of one length as those of lanes. Immutable.

    Text columns hold int32 codes into ``texts``, times are int64 ns on the profile's time line, the columns ``EVENTS``
    numbers of events.
    """

    name: str  #: Name of the kind of record
    group: int  #: Id of the group that was recorded; -1: the whole profile
    file: str  #: Name of the file
    read: Callable[[], TableColumns]  #: Returns the columns; called on first use
    schema: tuple[Column, ...] = ()  #: Columns that are not known by key to views of the source: title, kind, group

    @cached_property
    def _read(self) -> TableColumns:
        return self.read()

    @property
    def texts(self) -> Mapping[str, Sequence[str]]:
        """Texts by code, of each text column."""
        return self._read[1]

    def __len__(self) -> int:
        return next((len(values) for values in self._read[0].values() if isinstance(values, np.ndarray)), 0)

    def __contains__(self, key: str) -> bool:
        return key in self._read[0]

    def keys(self) -> tuple[str, ...]:
        """Keys of the columns."""
        return tuple(self._read[0])

    def __getitem__(self, key: str) -> Array:
        """A whole column; KeyError if the table does not have it."""
        return self.take(key, ALL)

    def take(self, key: str, rows: Rows) -> Array:
        """Values of a column for some rows, in their order. KeyError without the column."""
        values = self._read[0][key]
        return values[rows] if isinstance(values, np.ndarray) else values(rows)

    def values(self, key: str, rows: Rows = ALL) -> Array | list[str | None]:
        """Values of a column for some rows: an array, or the texts of a text column; None for missing ones."""
        found = self.take(key, rows)
        if key not in self.texts:
            return found
        texts = self.texts[key]
        if isinstance(texts, tuple):
            known: tuple[str | None, ...] = (*texts, None)
            return [known[code] for code in found.tolist()]
        return [texts[code] if code >= 0 else None for code in found.tolist()]

    def renumbered(self, numbers: Callable[[], npt.NDArray[np.int64]]) -> Table:
        """The table for other numbers of events: the new number of each event, and -1 at the end."""

        def read() -> TableColumns:
            columns, texts = self._read
            events = {key: values for key in EVENTS if isinstance(values := columns.get(key), np.ndarray)}
            return {**columns, **{key: numbers()[values] for key, values in events.items()}}, texts

        return replace(self, read=read)
