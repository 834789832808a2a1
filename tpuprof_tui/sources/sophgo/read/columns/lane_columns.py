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
from tpuprof_tui.sources.sophgo.chips.chip import Chip, family_of

from ..arrays import I32, I64, U32, Bools
from ..commands.command_table import CORE_ENGINES, Commands, Mode
from ..commands.lane_registers import block_commands
from ..commands.model_interleaving import concatenated
from ..core_data import CoreData
from ..problems import Report
from ..records.monitor import RecordStream
from ..records.profiler_records import without_profiler_commands

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
    """Node words of a lane, and which of them are system commands."""

    word: Words
    system: int  #: Type code of system commands
    #: Mask of the commands with generator indices instead of codes; None where there are none.
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


# Captures without hardware records, from emulators or with the PMU off: only commands, without times.
#
# Commands are in the order of issue. The sends and waits that the profiler and, around each launch of a compiled
# model, the runtime issue outside every kernel function are left out.


def untimed_commands(core: CoreData, chip: Chip) -> dict[str, Commands]:
    """Commands of each engine of a core, without engines that have none."""
    found: dict[str, Commands] = {}
    for name in CORE_ENGINES:
        parts = [] if core.has_des_streams else [block_commands(core.streams.get(name, ()))]
        if core.nodes is not None and len(core.nodes.engines[name]):
            issued = without_profiler_commands(name, core, chip)
            if core.bmodel:
                synchronising = (issued.scope < 0) & (issued.type_code == chip.system_types[family_of(name)])
                issued = issued.take(np.flatnonzero(~(synchronising & (issued.mode == Mode.TDI))))
            parts.append(issued)
        present = [part for part in parts if part is not None and len(part)]
        if present:
            found[name] = concatenated(present)
    return found


def report_untimed(cores: list[CoreData], found: list[dict[str, Commands]], report: Report) -> None:
    """Report the one problem that describes such a capture."""
    counts = {name: sum(len(each[name]) for each in found if name in each) for name in CORE_ENGINES}
    launches = max((len(streams) for core in cores for streams in core.streams.values()), default=0)
    launches += sum(len(core.nodes.scope_names) for core in cores if core.nodes is not None)
    issued = sum(len(commands) for core in cores if core.nodes is not None for commands in core.nodes.engines.values())
    issued += sum(map(len, (stream for core in cores if not core.has_des_streams for streams in core.streams.values()
                            for stream in streams)))  # fmt: skip
    left_out = issued - sum(counts.values())
    launches_text = f"{launches:,} launch{'es' if launches != 1 else ''}; " if launches else ""
    counts_text = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
    report.warning(
        f"No hardware records: {launches_text}{counts_text} commands without times.",
        "They are shown in the order they were issued"
        + (f", without {left_out:,} sends and waits around them." if left_out else "."),
    )
