"""SQLite databases that profilers write, read as columns.

Files are opened read-only and immutable, and nothing that they hold is run: only real tables are read, no views,
virtual tables, triggers or functions of theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import INT_MISSING, Problem, Severity

from .source import file_size

I64 = npt.NDArray[np.int64]
#: Rows that are read at a time.
_BLOCK: Final = 16_384
#: Least bytes of a row, most steps of SQLite for each byte of a file, and steps after which they are counted.
_LEAST_ROW: Final = 5
_STEPS: Final = 20
_TICK: Final = 10_000_000
_TABLES: Final = "select name from sqlite_master where type = 'table' and sql not like 'create virtual%'"


class SqliteFile:
    """An open SQLite database; without a path one that has no tables.

    Attributes:
        path, name: Its file; None and empty without one.
        tables: Column names of each table, by table name.
        problems: Tables that could not be read completely.

    Raises:
        UnreadableError: The file is no database, or its list of tables is damaged.
    """

    def __init__(self, path: Path | None = None, name: str = "") -> None:
        self.path, self.name = path, name
        self.problems: list[Problem] = []
        self.tables: dict[str, tuple[str, ...]] = {}
        if path is None:
            return
        # slow to import, and most profiles hold no database
        import sqlite3

        # Python decodes messages that quote the file as UTF-8
        self._error = (sqlite3.Error, UnicodeError)
        # pages of a damaged file may lead to one another: no more rows, and steps of SQLite, than a sound one takes
        self._most_rows = file_size(path) // _LEAST_ROW
        self._ticks = 0
        where = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
        try:
            self._connection = sqlite3.connect(where, uri=True, check_same_thread=False)
            self._connection.set_progress_handler(self._goes_on_too_long, _TICK)
            self._connection.text_factory = lambda data: data.decode("utf-8", "replace")
            self._connection.execute("pragma trusted_schema = off")
            for (table,) in self._connection.execute(_TABLES):
                columns = self._connection.execute(f"pragma table_info({_quoted(table)})")
                self.tables[table] = tuple(row[1] for row in columns)
        except self._error as error:
            raise UnreadableError(f"{name} is not a readable database ({error}).") from None

    def has(self, table: str, *columns: str) -> bool:
        """Whether there is a table with some columns."""
        return table in self.tables and set(columns) <= set(self.tables[table])

    def rows(self, table: str, *columns: str, condition: str = "") -> list[tuple[Any, ...]]:
        """Rows of a table; columns that it lacks are None. If it is damaged, the rows before that, and a Problem."""
        if table not in self.tables:
            return []
        selected = ", ".join(self._selected(table, each, "null") for each in columns)
        found: list[tuple[Any, ...]] = []
        self._ticks = 0
        try:
            for row in self._connection.execute(f"select {selected} from {_quoted(table)} {condition}"):
                found.append(row)
                if len(found) > self._most_rows:
                    raise UnicodeError("its pages go round")
        except self._error as error:
            self._damaged(table, error)
        return found

    def integers(
        self, table: str, *columns: str, progress: Callable[[int], None] = lambda rows: None
    ) -> dict[str, I64]:
        """Columns of integers, and the ``rowid``, in its order; missing are nulls, words and columns that it lacks.

        SQLite joins the numbers of a block of rows to one text for each column, which takes half the time of fetching
        rows. ``progress`` is called with the number of rows so far.
        """
        parts: list[list[I64]] = [[] for _ in range(len(columns) + 1)]
        found = (self._selected(table, each, "null") for each in columns)
        # numbers sort before all texts
        named = ", ".join(f"ifnull(cast(case when {each} < '' or {each} glob '[-0-9]*' then {each} end as integer),"
                          f" {INT_MISSING}) as c{place}" for place, each in enumerate(found))  # fmt: skip
        joined = ", ".join(f"group_concat(c{place})" for place in range(len(columns)))
        last, rows, self._ticks = INT_MISSING, 0, 0
        try:
            while table in self.tables:
                block = f"select rowid as r, {named} from {_quoted(table)} where rowid > ? limit {_BLOCK}"
                query = f"select count(*), max(r), group_concat(r), {joined} from ({block})"
                count, highest, *texts = self._connection.execute(query, (last,)).fetchone()
                if not count:
                    break
                for part, text in zip(parts, texts, strict=True):
                    part.append(np.fromstring(text, np.int64, sep=","))
                if highest <= last or rows > self._most_rows:
                    raise UnicodeError("its pages go round")
                last, rows = highest, rows + count
                progress(rows)
        except self._error as error:
            self._damaged(table, error)
        return {key: np.concatenate(part or [np.zeros(0, np.int64)])
                for key, part in zip(("rowid", *columns), parts, strict=True)}  # fmt: skip

    def _goes_on_too_long(self) -> bool:
        self._ticks += 1
        return self._ticks * _TICK > (self._most_rows * _LEAST_ROW + _TICK) * _STEPS

    def count(self, table: str) -> int:
        """Number of rows of a table at most, as none was deleted; 0 if it is damaged."""
        try:
            ((last,),) = self._connection.execute(f"select max(rowid) from {_quoted(table)}").fetchall()
        except self._error:
            return 0
        return min(max(last or 0, 0), self._most_rows)

    def _selected(self, table: str, column: str, otherwise: str) -> str:
        return _quoted(column) if column in (*self.tables.get(table, ()), "rowid") else otherwise

    def _damaged(self, table: str, error: Exception) -> None:
        if not any(f" {table} " in each.what for each in self.problems):
            self.problems.append(Problem(Severity.ERROR, f"The table {table} cannot be read to its end ({error}).",
                                         "The rows before are shown.", self.name))  # fmt: skip


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
