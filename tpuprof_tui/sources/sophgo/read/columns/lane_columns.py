"""Building blocks of lane columns: each computes the requested rows and caches at most those of the last request."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.lane import Array, LazyColumn, Rows, cache_last_slice

from ..arrays import I32, I64, U32, Bools
from ..commands.command_table import Commands
from ..records.monitor import RecordStream

#: Record fields that are columns under other names already.
_OWN = ("inst_start_time", "inst_end_time", "inst_id")
Words = U32


def bits(word: Words, first: int, width: int) -> I64:
    """A bit field of node words."""
    result: I64 = ((word >> np.uint32(first)) & np.uint32((1 << width) - 1)).astype(np.int64)
    return result


def field(word: Words, first: int, width: int) -> LazyColumn:
    """Column of a bit field of the node words; missing where there is no command."""

    def values(rows: Rows) -> Array:
        some = word[rows]
        result = bits(some, first, width)
        result[some == 0] = INT_MISSING
        return result

    return values


class NodeWords(Struct, frozen=True, dict=True):
    """Node words of a lane, and which of them are system commands.

    Attributes:
        system: Type code of system commands.
        generated: Mask of the commands with generator indices instead of codes; None where there are none.
    """

    word: Words
    system: int
    generated: Bools | None = None

    @cached_property
    def not_work(self) -> LazyColumn:
        """Mask column: rows without a command or with a system command."""
        word, code, generated = self.word, self.system, self.generated  # without self, which would be a reference cycle

        def values(rows: Rows) -> Bools:
            some = word[rows]
            system = bits(some, 10, 5) == code
            if generated is not None:
                system &= ~generated[rows]
            result: Bools = (some == 0) | system
            return result

        return cache_last_slice(values)

    def column(self, read: Callable[[Rows], Array], missing: int, *, coded: bool = False) -> LazyColumn:
        """Column from ``read``, missing where there is no command and for system commands.

        Args:
            read: Returns the values of some rows as a new array.
            missing: Value where nothing is known.
            coded: Whether the values come from node codes, so that they are missing for generator indices.
        """

        def values(rows: Rows) -> Array:
            result = read(rows)
            result[self.not_work(rows)] = missing
            if coded and self.generated is not None:
                result[self.generated[rows]] = missing
            return result

        return values


def row_number_column(count: int) -> LazyColumn:
    """Column of row numbers: 0, 1, 2, ..."""

    def values(rows: Rows) -> Array:
        return np.arange(*rows.indices(count)) if isinstance(rows, slice) else np.asarray(rows, np.int64)

    return values


def scope_columns(commands: Commands, first_scope: int, scope_kernel: I32) -> dict[str, LazyColumn]:
    """Columns of kernel function, launch, batch and mode of commands."""
    scope, batch, mode = commands.scope, commands.batch, commands.mode
    kernels = np.concatenate([scope_kernel, np.array([-1], np.int32)])

    def scopes(rows: Rows) -> Array:
        some = scope[rows].astype(np.int64)
        return np.where(some < 0, INT_MISSING, some + first_scope)

    def kernel(rows: Rows) -> Array:
        some = scope[rows]
        return kernels[np.where(some < 0, len(scope_kernel), some + first_scope)]

    return {"kernel": kernel, "scope": scopes, "batch": known_or_missing(batch),
            "mode": lambda rows: mode[rows].astype(np.int32) - 1}  # fmt: skip


def known_or_missing(values: npt.NDArray[Any]) -> LazyColumn:
    """Column of non-negative numbers as int64; missing where negative."""

    def some(rows: Rows) -> Array:
        numbers = values[rows].astype(np.int64)
        return np.where(numbers < 0, INT_MISSING, numbers)

    return some


def counter_columns(stream: RecordStream) -> dict[str, LazyColumn]:
    """A column for each counter of the stream's record layout, under its name there."""

    def column(name: str) -> LazyColumn:
        return lambda rows: stream.counter(name, rows)  # type: ignore[arg-type]

    names = (name for name in stream.layout.by_name if name not in _OWN and not name.startswith("reserved"))
    return {name: column(name) for name in names}
