"""A lane: anything that runs one thing at a time, with its events in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
#: Rows of a lane: a slice, or an array of indices.
Rows = slice | npt.NDArray[np.integer[Any]]
#: Computes a column for some rows; called anew each time, nothing is kept.
LazyColumn = Callable[[Rows], Array]

ALL = slice(None)
#: Engine of lanes that ran on the host.
HOST = "HOST"


def row_count(rows: Rows) -> int:
    """Number of rows asked for; a slice has both ends."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


class Role(IntEnum):
    """What an event is to the figures: *work*, *wait* (system waits) or *sync* (other system commands)."""

    WORK = 0
    WAIT = 1
    SYNC = 2


class RegisterFields(Protocol):
    """Register fields of a lane's commands, decoded on demand."""

    def operations(self, rows: Rows) -> npt.NDArray[np.int16]:
        """Operation index of each row's command as files go by; -1 where they go by columns alone."""

    def operation_of(self, row: int) -> int:
        """Operation index of one row's command, whatever files go by; -1 where it cannot be decoded."""

    def field_names(self, operation: int) -> tuple[str, ...]:
        """Names of an operation's fields, in the order of the register."""

    def field(self, operation: int, name: str, rows: Rows) -> npt.NDArray[np.int64]:
        """Values of one field for rows that all have ``operation``."""

    def raw(self, row: int) -> bytes:
        """The command as it was captured; empty without registers."""

    def unexplained(self, row: int) -> bytes:
        """The same where not all of its fields are known; empty where they are."""


class Lane:
    """Events of one lane in columns of one length, ordered by start. Immutable.

    Columns every lane has: ``start`` and ``end`` (int64 ns), ``order`` (int64, place in the source's own order),
    ``role`` (int8, see ``Role``) and ``sublane`` (int16; events of one sub-lane do not overlap). All others are in the
    schema of the source (``Vocabulary.columns``); ``lane.keys()`` says which are known here. Text columns hold int32
    codes into ``Profile.strings[key]``.

    Attributes:
        engine: Kind of lane: ``TIU``, ``GDMA``, ``SDMA``, ``CDMA``, ...
        core: Core number, -1 for lanes of no core.
        port: CDMA port, -1 for lanes of no port.
        label: Name within its group, unique there.
        group: What the lane belongs to ("Core 3", "CDMA").
        sublanes: Number of sub-lanes (1 where nothing overlaps).
        role_guessed: True where work and wait are told apart by guesswork (PMU-only captures).
        registers: Register fields of the commands; None where the capture holds none.
    """

    def __init__(
        self,
        *,
        engine: str,
        core: int,
        port: int,
        label: str,
        group: str,
        columns: Mapping[str, Array | LazyColumn],
        sublanes: int = 1,
        role_guessed: bool = False,
        registers: RegisterFields | None = None,
        describe: Callable[[int], str] | None = None,
    ) -> None:
        self.engine = engine
        self.core = core
        self.port = port
        self.label = label
        self.group = group
        self.sublanes = sublanes
        self.role_guessed = role_guessed
        self.registers = registers
        self._describe = describe
        self._columns = dict(columns)
        self._length = len(columns["start"])  # type: ignore[arg-type]
        for values in self._columns.values():
            if isinstance(values, np.ndarray):
                values.flags.writeable = False

    def __len__(self) -> int:
        return self._length

    def __contains__(self, key: str) -> bool:
        return key in self._columns

    def __repr__(self) -> str:
        return f"<Lane {self.title}: {self._length} events>"

    @property
    def on_host(self) -> bool:
        """Whether it ran beside the device, on its host: such lanes count in no figure of the device."""
        return self.engine == HOST

    @property
    def title(self) -> str:
        """Group and label, for messages and headers."""
        return f"{self.group} {self.label}"

    def reading(self, row: int) -> str:
        """One line that says what an instruction did, as far as the capture knows; empty where nothing reads it."""
        return "" if self._describe is None else self._describe(row)

    def keys(self) -> tuple[str, ...]:
        """Keys of the columns this lane knows."""
        return tuple(self._columns)

    def __getitem__(self, key: str) -> Array:
        """A whole column; KeyError where the lane does not know it."""
        return self.take(key, ALL)

    def take(self, key: str, rows: Rows) -> Array:
        """A column's values for some rows, computing only those.

        Args:
            key: Column key.
            rows: A slice, or an integer array of row numbers.

        Returns:
            Array with one value per row, in the order asked for.

        Raises:
            KeyError: The lane does not know the column.
        """
        values = self._columns[key]
        return values[rows] if isinstance(values, np.ndarray) else values(rows)

    def with_column(self, key: str, values: Array | LazyColumn) -> Lane:
        """The same lane with one more column."""
        return Lane(
            engine=self.engine, core=self.core, port=self.port, label=self.label, group=self.group,
            columns={**self._columns, key: values}, sublanes=self.sublanes, role_guessed=self.role_guessed,
            registers=self.registers, describe=self._describe,
        )  # fmt: skip

    def kept_arrays(self) -> Iterator[Array]:
        """The columns that are kept as arrays; the others are computed when they are asked for."""
        return (values for values in self._columns.values() if isinstance(values, np.ndarray))

    def arrays(self) -> dict[str, Array]:
        """All columns of the lane, computed; a dict of arrays of one length."""
        return {key: self[key] for key in self._columns}
