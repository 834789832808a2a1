"""Columns of TIU instructions: codes of condensed commands; operation counts, ratios and peak of decoded ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.lane import Array, LazyColumn, Rows
from tpuprof_tui.sources.sophgo.chips.chip import Chip

from ..arrays import I64
from ..commands.lane_registers import LaneRegisters
from ..records.monitor import RecordStream
from .lane_columns import NodeWords, field, known_or_missing
from .lane_columns import bits as bit_field

if TYPE_CHECKING:
    from ..commands.operation_counts import OperationCounts

#: Added to the cycles in the divisor, as in the reference.
_RATIO_FLOOR = 0.0001
#: Most rows whose operation counts are cached.
_MOST_KEPT = 1 << 17


def condensed_columns(nodes: NodeWords) -> dict[str, LazyColumn]:
    """Codes of the commands' nodes (metrics 2.1)."""
    word = nodes.word
    return {
        "tiu_type": field(word, 10, 5),
        "tiu_function": field(word, 15, 5),
        "node_type": field(word, 0, 7),
        "node_engine": field(word, 7, 3),
        "node_extra": field(word, 20, 12),
        "precision": nodes.column(lambda rows: bit_field(word[rows], 20, 7), INT_MISSING, coded=True),
    }


class _LastCounts(Struct):
    """Cache of the operation counts of the last rows: columns of the same rows are read one after the other.

    It holds at most `_MOST_KEPT` rows; readers of whole lanes work in slices.
    """

    chip: Chip
    registers: LaneRegisters
    last: tuple[tuple[int, int, int], OperationCounts] | None = None

    def of(self, rows: Rows, name: str) -> OperationCounts:
        """Counts of some rows; of too many rows for the cache only those that the figure ``name`` needs."""
        key = rows.indices(len(self.registers.operation)) if isinstance(rows, slice) else None
        if key is None or len(range(*key)) > _MOST_KEPT:
            return self._counted(rows, uarch=name.startswith("uarch"))
        if self.last is None or self.last[0] != key:
            self.last = key, self._counted(rows)
        return self.last[1]

    def _counted(self, rows: Rows, *, uarch: bool = True) -> OperationCounts:
        offsets, operations = self.registers.offset[rows], self.registers.operation[rows]
        from ..commands.operation_counts import count_operations  # imported on first use

        return count_operations(self.chip, self.registers.data, offsets, operations, uarch=uarch)


def _figure(counts: _LastCounts, name: str) -> LazyColumn:
    def values(rows: Rows) -> Array:
        some: Array = getattr(counts.of(rows, name), name)
        return some if some.dtype.kind == "f" else np.where(some < 0, INT_MISSING, some)

    return values


def operation_columns(registers: LaneRegisters, cycles: LazyColumn | None, mhz: float) -> dict[str, LazyColumn]:
    """Operation counts of decoded commands, and their ratios to the peak (metrics 3.1, 4).

    Args:
        cycles: Cycles that commands took; None where nothing was measured.
    """
    counts = _LastCounts(registers.chip, registers)
    columns = {"alg_ops": _figure(counts, "alg_ops"), "uarch_ops": _figure(counts, "uarch_ops"),
               "alg_cycle": _figure(counts, "alg_cycles"), "uarch_rate": _figure(counts, "uarch_rates")}  # fmt: skip
    if cycles is None:
        return columns

    def ratio(name: str) -> LazyColumn:
        def values(rows: Rows) -> Array:
            some = _figure(counts, name)(rows)
            return np.where(some == INT_MISSING, np.nan, 100.0 * some / (cycles(rows) + _RATIO_FLOOR))

        return values

    def ideal(rows: Rows) -> Array:
        alg = _figure(counts, "alg_cycles")(rows)
        return np.where(alg > 0, alg * (1000.0 / mhz), np.nan)

    columns["ideal"] = ideal
    from ..commands.operation_counts import model_of

    model = model_of(registers.chip)
    if model is not None and model.initial_cycles:
        columns["initial_ratio"] = ratio("initial_cycles")
    if model is not None and model.bank_conflicts:
        columns["conflict_ratio"] = ratio("bank_conflicts")
    return columns


def conflict_columns(stream: RecordStream, cycles: LazyColumn) -> dict[str, LazyColumn]:
    """Thread and bank conflicts where records count them (metrics 2.2, 3.1); they replace the modelled ones."""
    if "bank_conflict" not in stream.layout.by_name:
        return {}

    def counter(name: str) -> LazyColumn:
        return lambda rows: stream.counter(name, rows)  # type: ignore[arg-type]

    def ratio(rows: Rows) -> Array:
        return 100.0 * counter("bank_conflict")(rows) / np.maximum(cycles(rows), 1)

    return {"thread": counter("thread_id"), "conflict_cycles": counter("bank_conflict"), "conflict_ratio": ratio}


def unless_beaten(ideal: LazyColumn, duration: LazyColumn) -> LazyColumn:
    """Time at the peak, ns; NaN where the hardware took less, but for rounding: that is no peak."""

    def values(rows: Rows) -> Array:
        some = ideal(rows)
        return np.where(some <= duration(rows) + 2, np.minimum(some, duration(rows)), np.nan)

    return values


def at_peak(ideal: LazyColumn, duration: LazyColumn) -> LazyColumn:
    """Time at the peak divided by the time taken, in percent; NaN where the former is unknown."""
    return lambda rows: 100.0 * ideal(rows) / np.maximum(duration(rows), 1)


def excess(ideal: LazyColumn, duration: LazyColumn) -> LazyColumn:
    """Time taken beyond the time at the peak, ns; NaN where the latter is unknown."""
    return lambda rows: duration(rows) - ideal(rows)


def forecast_columns(forecast: I64, duration: LazyColumn) -> dict[str, LazyColumn]:
    """What the compiler expected (ns; -1 unknown), and the time taken divided by it."""

    def ratio(rows: Rows) -> Array:
        expected, taken = forecast[rows], duration(rows)
        known = (expected > 0) & (taken != INT_MISSING)
        return np.where(known, taken / np.where(known, expected, 1), np.nan)

    return {"forecast": known_or_missing(forecast), "forecast_ratio": ratio}
