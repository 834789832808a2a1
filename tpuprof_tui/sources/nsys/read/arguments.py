"""Details of the events of a database, read again on demand."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.sources.chrome.columns import ArgumentColumns, Codes
from tpuprof_tui.sources.chrome.events import Phases
from tpuprof_tui.sources.sqlite import I64, SqliteFile
from tpuprof_tui.sources.torch.read.arguments import Arguments


class RowArguments(Arguments, frozen=True, eq=False):
    """The rows of tables that events were read from: their columns are the arguments.

    Attributes:
        tables: The tables, in the order of their events; ``offset`` are the numbers of their first events, and the end.
        rowid: The row of each event in its table.
    """

    tables: Sequence[str]
    rowid: I64

    @classmethod
    def of_tables(cls, path: Path, read: Sequence[tuple[str, int]], rowid: I64) -> RowArguments:
        """Arguments of the events of tables, each with the number of its events."""
        counts = [count for _, count in read]
        state = path.stat()
        return cls(path, (state.st_size, state.st_mtime_ns), (), [0, *accumulate(counts)], (), None,
                   [table for table, _ in read], rowid)  # fmt: skip

    def of(self, number: int) -> dict[str, Any]:
        """The row of the event of a number, with the texts of names; empty if the file has changed or is unreadable."""
        with contextlib.suppress(OSError, UnreadableError):
            state = self.path.stat()
            if (state.st_size, state.st_mtime_ns) == self.state:
                database = SqliteFile(self.path, self.path.name)
                table = self.tables[bisect_right(self.offset, number) - 1]
                columns = database.tables.get(table, ())
                for row in database.rows(table, *columns, condition=f"where rowid = {int(self.rowid[number])}"):
                    return dict(self._told(database, zip(columns, row, strict=True)))
        return {}

    @staticmethod
    def _told(database: SqliteFile, columns: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        for key, value in columns:
            if key.endswith(("Name", "nameId", "extId")) and isinstance(value, int):
                value = next((text for (text,) in database.rows("StringIds", "value", condition=f"where id = {value}")),
                             value)  # fmt: skip
            if value is not None:
                yield key, value.hex() if isinstance(value, bytes) else value

    def offset_of_number(self, number: int) -> int:
        """None: a row of a database has no offset that would tell anybody anything."""
        return -1

    def columns(self, texts: Codes, *wanted: tuple[ArgumentColumns, npt.NDArray[np.integer]]) -> list[dict[str, Any]]:
        """Columns of arguments that PyTorch has: those of events without any."""
        return [columns.of([None] * len(numbers), texts) for columns, numbers in wanted]

    def events(self, phases: Phases, words: Sequence[bytes]) -> Iterator[list[Any]]:
        """No events that are joined by flows."""
        return iter(())
