"""Details of the events of a database, read again on demand."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.sources.sqlite import I64, SqliteFile
from tpuprof_tui.sources.torch.read.arguments import Arguments


class RowArguments(Arguments, frozen=True, eq=False):
    """The rows of tables that events were read from: their columns are the arguments.

    Attributes:
        tables: The tables, in the order of their events, with the number of the first event of each.
        rowid: The row of each event in its table.
    """

    tables: Sequence[tuple[int, str]]
    rowid: I64

    def of(self, number: int) -> dict[str, Any]:
        """The row of the event of a number, with the texts of names; empty if the file has changed or is unreadable."""
        with contextlib.suppress(OSError, UnreadableError):
            state = self.path.stat()
            if (state.st_size, state.st_mtime_ns) == self.state:
                database = SqliteFile(self.path, self.path.name)
                table = self.tables[bisect_right(self.tables, number, key=lambda each: each[0]) - 1][1]
                columns = database.tables.get(table, ())
                for row in database.rows(table, *columns, condition=f"where rowid = {int(self.rowid[number])}"):
                    return dict(_told(database, zip(columns, row, strict=True)))
        return {}

    def offset_of_number(self, number: int) -> int:
        """None: a row has no offset that would tell anybody anything."""
        return -1


def _told(database: SqliteFile, columns: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for key, value in columns:
        if key.endswith(("Name", "nameId", "extId")) and isinstance(value, int):
            texts = database.rows("StringIds", "value", condition=f"where id = {value}")
            value = texts[0][0] if texts else value
        if value is not None:
            yield key, value.hex() if isinstance(value, bytes) else value
