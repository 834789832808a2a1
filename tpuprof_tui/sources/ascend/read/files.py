"""`Files`: opens the files of a worker, each once; one that cannot be read is a Problem."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import Problem, Severity
from tpuprof_tui.sources.chrome.inflate import unpacked

from .csv_table import CsvTable
from .database import Database
from .folders import WorkerFiles, relative

#: Times in us that are rounded to six digits are multiples of this, in ns.
ROUNDED_NS: Final = 10_000_000_000
_MOST_BYTES: Final = 1 << 30
Result = TypeVar("Result")


class Files:
    """The files of a worker by role (``op_statistic.csv``), relative to the opened path, if there is one, by name.

    Attributes:
        problems: Defects found so far; those of tables and databases are `reported`.
    """

    def __init__(self, paths: WorkerFiles, opened: Path | None) -> None:
        self.paths, self._opened = paths, opened
        self.problems: list[Problem] = []
        self._opened_files: dict[str, CsvTable | Database | None] = {}

    def name(self, path: Path) -> str:
        """A file as it is shown."""
        return path.name if self._opened is None else next(relative([path], self._opened))

    def warn(self, what: str, done: str, file: str = "", severity: Severity = Severity.WARNING, **more: Any) -> None:
        """Reports a problem."""
        self.problems.append(Problem(severity, what, done, file, **more))

    def tried(self, path: Path, read: Callable[[str], Result]) -> Result | None:
        """What a function makes of a file, given the name of the file; None and a problem if that is unreadable."""
        name = self.name(path)
        try:
            return read(name)
        except UnreadableError as error:
            self.warn(str(error), "It is left out.", name, Severity.ERROR)
            return None

    def device_of(self, role: str) -> int:
        """The only device to read from files of a role, because they are shared; -1: all."""
        return self.paths.device if self.paths.exports[role].shared else -1

    def _once(self, role: str, open_files: Callable[[tuple[Path, ...], str, int], Any]) -> Any:
        paths = self.paths.paths(role)
        if paths and role not in self._opened_files:
            self._opened_files[role] = self.tried(paths[0], lambda name: open_files(paths, name, self.device_of(role)))
        return self._opened_files.get(role)

    def table(self, role: str) -> CsvTable | None:
        """The csv table with a role; None if there is none."""
        table: CsvTable | None = self._once(role, CsvTable.opened)
        return table

    def tables(self) -> Iterator[tuple[str, CsvTable]]:
        """All csv tables, with their roles."""
        for role in self.paths.exports:
            if role.endswith(".csv") and (table := self.table(role)) is not None:
                yield role, table

    def database(self, *roles: str) -> Database:
        """The database with the first of some roles that a file has; one without tables if there is none."""
        role = next((role for role in roles if role in self.paths.exports), "")
        return self._once(role, lambda paths, *more: Database(paths[0], *more)) or Database()

    def json(self, role: str) -> tuple[str, Any] | None:
        """Name and content of the JSON file with a role, an object; None if there is none."""
        for path in self.paths.paths(role)[:1]:
            return self.tried(path, lambda name, path=path: (name, read_json(path, name)))  # type: ignore[misc]
        return None

    def report(self) -> None:
        """Adds the defects of tables and databases to the problems; tables that nothing needed yet are scanned."""
        for _, table in self.tables():
            if not table.rows:
                table.read({})
        for _, opened in sorted(self._opened_files.items(), key=lambda item: item[0].endswith(".db")):
            self.problems += opened.problems if opened is not None else []


def read_json(path: Path, name: str, *, whatever: bool = False) -> Any:
    """The object in a JSON file, numbers as decimals; ``whatever``: any other JSON value is accepted too.

    Raises:
        UnreadableError: The file cannot be read or holds no object.
    """
    try:
        with path.open("rb") as file:
            data = unpacked(path, file).read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise UnreadableError(f"{name} is too large for such a file.")
        found = json.loads(data.decode("utf-8-sig", "replace"), parse_float=Decimal, strict=False)
    except OSError as error:
        raise UnreadableError(f"{name}: {(error.strerror or 'cannot be read').lower()}.") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno:,}"
        raise UnreadableError(f"{name} cannot be decoded after {where} ({error.msg}).") from None
    except (ValueError, RecursionError):
        raise UnreadableError(f"{name} cannot be decoded.") from None
    if not whatever and not isinstance(found, dict):
        raise UnreadableError(f"{name} holds no JSON object.")
    return found


def rounded_times(table: CsvTable, times: npt.NDArray[np.int64], column: str) -> npt.NDArray[np.bool_] | None:
    """Reports times that a spreadsheet rounded (``1.73641E+15``): mask of them; None if there are none."""
    # by value first, since times are not read as text
    found = np.asarray((times > 0) & (times % ROUNDED_NS == 0))
    rows = np.flatnonzero(found)[:1]
    (text,) = table.read_rows(rows, {column: "text"})[column].values() if len(rows) else (None,)
    if text is None or "E" not in text.upper():
        return None
    offset, path = int(table.begin[rows[0]]), table.paths[0]
    for path in table.paths:
        if offset < (size := path.stat().st_size):
            break
        offset -= size
    table.note(path, offset, Severity.WARNING, "Times that a spreadsheet has rounded",
               "The rows stand as they are written, nothing over time uses them.", int(found.sum()))  # fmt: skip
    return found
