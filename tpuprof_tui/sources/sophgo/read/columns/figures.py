"""Columns of what engines did: each computes the requested rows and caches at most those of the last request."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import INT_MISSING, StringsBuilder
from tpuprof_tui.model.lane import Array, LazyColumn, Rows, cache_last_slice, constant

from ...chips.chip import Chip, TransferFigures, family_of
from ..arrays import I32, I64, U8, U32, Bools
from ..commands.command_table import Commands
from ..commands.lane_registers import MEMORY_BITS, NO_FORMAT, NODE_MEMORIES, UNKNOWN_MEMORY, LaneRegisters
from ..commands.registers import LOW_ADDRESS_BITS, address_fields
from ..records.monitor import RecordStream

if TYPE_CHECKING:
    from ..commands.operation_counts import OperationCounts

#: Record fields that are columns under other names already.
_OWN = ("inst_start_time", "inst_end_time", "inst_id")
Words = U32


def bits(word: Words, first: int, width: int) -> I64:
    """A bit field of node words."""
    result: I64 = ((word >> np.uint32(first)) & np.uint32((1 << width) - 1)).astype(np.int64)
    return result


def field(word: Words, first: int, width: int, rows: Rows) -> I64:
    """A bit field of some node words; missing where there is no command."""
    some = word[rows]
    return np.where(some == 0, INT_MISSING, bits(some, first, width))


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


def row_numbers(count: int, rows: Rows) -> Array:
    """Numbers of some of ``count`` rows."""
    return np.arange(*rows.indices(count)) if isinstance(rows, slice) else np.asarray(rows, np.int64)


def scope_columns(commands: Commands, first_scope: int, scope_kernel: I32) -> dict[str, LazyColumn]:
    """Columns of kernel function, launch, batch and mode of commands."""
    scope, batch, mode = commands.scope, commands.batch, commands.mode
    kernels = np.concatenate([scope_kernel, np.array([-1], np.int32)])

    def kernel(rows: Rows) -> Array:
        some = scope[rows]
        return kernels[np.where(some < 0, len(scope_kernel), some + first_scope)]

    return {
        "kernel": kernel,
        "scope": partial(known_or_missing, scope, more=first_scope),
        "batch": partial(known_or_missing, batch),
        "mode": lambda rows: mode[rows].astype(np.int32) - 1,
    }


def known_or_missing(values: npt.NDArray[Any], rows: Rows, more: int = 0) -> I64:
    """Some non-negative numbers plus ``more`` as int64; missing where negative."""
    numbers = values[rows].astype(np.int64)
    return np.where(numbers < 0, INT_MISSING, numbers + more)


def counter_columns(stream: RecordStream) -> dict[str, LazyColumn]:
    """A column for each counter of the stream's record layout, under its name there."""
    names = (name for name in stream.layout.by_name if name not in _OWN and not name.startswith("reserved"))
    return {name: partial(stream.counter, name) for name in names}


# Columns of TIU instructions: codes of condensed commands; operation counts, ratios and peak of decoded ones.

#: Added to the cycles in the divisor, as in the reference.
_RATIO_FLOOR = 0.0001
#: Most rows whose operation counts are cached.
_MOST_KEPT = 1 << 17


def condensed_columns(nodes: NodeWords) -> dict[str, LazyColumn]:
    """Codes of the commands' nodes (metrics 2.1)."""
    word = nodes.word
    return {
        "tiu_type": partial(field, word, 10, 5),
        "tiu_function": partial(field, word, 15, 5),
        "node_type": partial(field, word, 0, 7),
        "node_engine": partial(field, word, 7, 3),
        "node_extra": partial(field, word, 20, 12),
        "precision": nodes.column(lambda rows: bits(word[rows], 20, 7), INT_MISSING, coded=True),
    }


class _LastCounts(Struct):
    """Cache of the operation counts of the last rows: columns of the same rows are read one after the other.

    It holds at most `_MOST_KEPT` rows; readers of whole lanes work in slices.
    """

    registers: LaneRegisters
    last: tuple[tuple[int, int, int], OperationCounts] | None = None

    def figure(self, name: str, rows: Rows) -> Array:
        """A figure of some rows; of too many rows for the cache only what it needs is counted."""
        from ..commands.operation_counts import count_operations  # imported on first use

        key = rows.indices(len(self.registers.operation)) if isinstance(rows, slice) else None
        if key is None or len(range(*key)) > _MOST_KEPT:
            counts = count_operations(self.registers.encoded(rows), uarch=name.startswith("uarch"))
        elif self.last is not None and self.last[0] == key:
            counts = self.last[1]
        else:
            counts = count_operations(self.registers.encoded(rows))
            self.last = key, counts
        some: Array = getattr(counts, name)
        return some if some.dtype.kind == "f" else np.where(some < 0, INT_MISSING, some)


def operation_columns(registers: LaneRegisters, cycles: LazyColumn | None, mhz: float) -> dict[str, LazyColumn]:
    """Operation counts of decoded commands, and their ratios to the peak (metrics 3.1, 4).

    ``cycles``: cycles that commands took; None where nothing was measured.
    """
    figure = _LastCounts(registers).figure
    names = {"alg_ops": "alg_ops", "uarch_ops": "uarch_ops", "alg_cycle": "alg_cycles", "uarch_rate": "uarch_rates"}
    columns: dict[str, LazyColumn] = {key: partial(figure, name) for key, name in names.items()}
    if cycles is None:
        return columns

    def ratio(name: str, rows: Rows) -> Array:
        some = figure(name, rows)
        return np.where(some == INT_MISSING, np.nan, 100.0 * some / (cycles(rows) + _RATIO_FLOOR))

    def ideal(rows: Rows) -> Array:
        alg = figure("alg_cycles", rows)
        return np.where(alg > 0, alg * (1000.0 / mhz), np.nan)

    columns["ideal"] = ideal
    from ..commands.operation_counts import model_of

    model = model_of(registers.chip)
    if model is not None and model.initial_cycles:
        columns["initial_ratio"] = partial(ratio, "initial_cycles")
    if model is not None and model.bank_conflicts:
        columns["conflict_ratio"] = partial(ratio, "bank_conflicts")
    return columns


def conflict_columns(stream: RecordStream, cycles: LazyColumn) -> dict[str, LazyColumn]:
    """Thread and bank conflicts where records count them (metrics 2.2, 3.1); they replace the modelled ones."""
    if "bank_conflict" not in stream.layout.by_name:
        return {}

    thread, conflicts = (partial(stream.counter, name) for name in ("thread_id", "bank_conflict"))
    return {
        "thread": thread,
        "conflict_cycles": conflicts,
        "conflict_ratio": lambda rows: 100.0 * conflicts(rows) / np.maximum(cycles(rows), 1),
    }


def headroom_columns(ideal: LazyColumn, duration: LazyColumn) -> dict[str, LazyColumn]:
    """Time at the peak (ns), its share of the time taken (percent), and what was taken beyond it (ns).

    They are NaN where the hardware took less, but for rounding: that is no peak.
    """

    def unless_beaten(rows: Rows) -> Array:
        some = ideal(rows)
        return np.where(some <= duration(rows) + 2, np.minimum(some, duration(rows)), np.nan)

    peak = cache_last_slice(unless_beaten)
    return {
        "ideal": lambda rows: peak(rows).copy(),
        "at_peak": lambda rows: 100.0 * peak(rows) / np.maximum(duration(rows), 1),
        "excess": lambda rows: duration(rows) - peak(rows),
    }


def forecast_columns(forecast: I64, duration: LazyColumn) -> dict[str, LazyColumn]:
    """What the compiler expected (ns; -1 unknown), and the time taken divided by it."""

    def ratio(rows: Rows) -> Array:
        expected, taken = forecast[rows], duration(rows)
        known = (expected > 0) & (taken != INT_MISSING)
        return np.where(known, taken / np.where(known, expected, 1), np.nan)

    return {"forecast": partial(known_or_missing, forecast), "forecast_ratio": ratio}


# Columns of GDMA, SDMA and CDMA instructions: memories, data type, bytes and rates.
#
# The formulas are those of metrics 2.3 to 2.5 and 3.2 to 3.4; the counters that they sum are chip data.

_MEMORY_PAIRS = 1 << 2 * MEMORY_BITS
_MEMORY_MASK = (1 << MEMORY_BITS) - 1


class TransferTables:
    """String codes of memories, directions and data types by their codes; shared by the lanes of a profile."""

    def __init__(self, chip: Chip, strings: dict[str, StringsBuilder]) -> None:
        self.chip = chip
        most = max(NODE_MEMORIES - 1, *chip.memory_of_address.codes)
        names = [chip.memories[min(code, most)] for code in range(_MEMORY_MASK + 1)]
        names[UNKNOWN_MEMORY] = ""
        pairs = [(names[pair & _MEMORY_MASK], names[pair >> MEMORY_BITS]) for pair in range(_MEMORY_PAIRS)]
        directions = ["->".join(pair) if all(pair) else "" for pair in pairs]

        def codes(key: str, texts: list[str]) -> I32:
            return np.array([strings[key].code(text) if text else -1 for text in texts], np.int32)

        self.direction = codes("direction", directions)
        self.source, self.target = codes("from_memory", names), codes("to_memory", names)
        self.dtype = np.array([strings["dtype"].code(chip.data_type_text(code)) for code in range(16)], np.int32)
        self.no_dtype = strings["dtype"].code("")
        self.ddr = np.array(["DDR" in direction for direction in directions])
        self.l2 = np.array(["L2" in direction for direction in directions])
        self.peak = np.array([chip.peak_gbps(direction) for direction in directions])


def node_memories(word: Words) -> U8:
    """Packed source and destination memory of condensed commands."""
    return (bits(word, 24, 2) | bits(word, 26, 2) << MEMORY_BITS).astype(np.uint8)


class Transfers(Struct, frozen=True, dict=True):
    """Builds the columns of one lane."""

    tables: TransferTables
    engine: str
    stream: RecordStream | None  #: Records; None where there are none, so that nothing was measured
    nodes: NodeWords  #: Node words; those of decoded commands are made from their registers
    memories: U8 | None  #: Packed memories of each row; None where they are those of ``word``
    registers: LaneRegisters | None

    @property
    def figures(self) -> TransferFigures:
        """Rules that derive figures from counters."""
        return self.tables.chip.figures[family_of(self.engine)]

    def columns(self) -> dict[str, LazyColumn]:
        """Columns from commands, and columns measured by records, which are missing without records."""
        word, tables, column = self.nodes.word, self.tables, self.nodes.column
        dtype = tables.dtype
        if self.registers is not None or self.engine == "CDMA":
            dtype = np.append(dtype[:NO_FORMAT], tables.no_dtype).astype(np.int32)
        columns: dict[str, LazyColumn] = {
            "direction": column(self._direction, -1),
            "from_memory": column(lambda rows: tables.source[self._memory_pair(rows) & _MEMORY_MASK], -1),
            "to_memory": column(lambda rows: tables.target[self._memory_pair(rows) >> MEMORY_BITS], -1),
            "dtype": column(lambda rows: dtype[bits(word[rows], 20, 4)], -1, coded=True),
            "data_format": column(lambda rows: bits(word[rows], 20, 4), INT_MISSING, coded=True),
            "dma_type": partial(field, word, 10, 5),
            "dma_function": partial(field, word, 15, 5),
        }
        if self.registers is not None:
            columns |= {f"{side}_addr": partial(_address, self.registers, side) for side in ("src", "dst")}
        keys = dict.fromkeys([*self.figures.condensed, *self.figures.detailed])
        if self.stream is None:
            rates = [*self.figures.rates, "ddr_bandwidth", "l2_bandwidth", "ideal"]
            columns |= dict.fromkeys(keys, constant(len(word), INT_MISSING, np.int64))
            return columns | dict.fromkeys(rates, constant(len(word), np.nan, np.float64))
        columns |= {key: self._figure(key) for key in keys}
        columns |= {key: self._rate(source) for key, source in self.figures.rates.items()}
        columns["ddr_bandwidth"] = self._bandwidth(tables.ddr, "gmem_bytes", others=True)
        if self.registers is not None or self.figures.by_direction:
            involved = tables.l2 if self.figures.by_direction else tables.l2 & ~tables.ddr
            columns["l2_bandwidth"] = self._bandwidth(involved, "bytes", others=False)
        columns["ideal"] = self._ideal
        return columns

    @cached_property
    def _memory_pair(self) -> LazyColumn:
        word, memories = self.nodes.word, self.memories  # without self, which would be a reference cycle
        if memories is not None:
            return lambda rows: memories[rows]
        return cache_last_slice(lambda rows: node_memories(word[rows]))

    def _direction(self, rows: Rows) -> Array:
        if self.engine == "CDMA":
            return np.full(len(self.nodes.word[rows]), self.tables.direction[0], np.int32)
        return self.tables.direction[self._memory_pair(rows)]

    def _figure(self, key: str) -> LazyColumn:
        """Column of a sum of counters, by the rule for decoded or for condensed commands."""
        condensed, detailed = self.figures.condensed.get(key), self.figures.detailed.get(key)

        def values(rows: Rows) -> Any:
            assert self.stream is not None
            counter = partial(self.stream.counter, rows=rows)
            if detailed is None or self.registers is None:
                result = condensed.of(counter) if condensed else np.full(len(self.nodes.word[rows]), INT_MISSING)
            else:
                other = condensed.of(counter) if condensed else INT_MISSING
                result = np.where(self.registers.decoded_mask(rows), detailed.of(counter), other)
            if key in self.figures.ddr_only:
                result = np.where(self.tables.ddr[self._memory_pair(rows)], result, 0)
            return result

        return values

    def _rate(self, source: str) -> LazyColumn:
        """Column of bytes per ns, rounded to four digits."""
        size = self._figure(source)

        def values(rows: Rows) -> Array:
            assert self.stream is not None
            known, length = size(rows), np.maximum(self.stream.end[rows] - self.stream.start[rows], 1)
            return np.where(known == INT_MISSING, np.nan, np.round(known / length, 4))

        return values

    def _bandwidth(self, involved: Bools, source: str, *, others: bool) -> LazyColumn:
        """Column of one memory's bandwidth: of decoded commands (of all, if the chip's rule is so) by their direction.

        Args:
            involved: Mask of the pairs of memories that involve that memory.
            source: Column of its bytes where the rule is by direction; else all bytes count.
            others: Whether the bytes of condensed commands count for this memory.
        """
        by_direction = self.figures.by_direction
        rate = self._rate(source if by_direction and source in self.figures.condensed else "bytes")

        def values(rows: Rows) -> Array:
            result = rate(rows)
            if not by_direction and self.registers is None:
                return result
            of_memory = np.where(involved[self._memory_pair(rows)], result, 0.0)
            if by_direction or self.registers is None:
                return of_memory
            return np.where(self.registers.decoded_mask(rows), of_memory, result if others else np.nan)

        return values

    def _ideal(self, rows: Rows) -> Array:
        """Time at the peak bandwidth of the memory involved, ns; NaN where it has none, or nothing moved."""
        if self.engine == "CDMA":
            return np.full(len(self.nodes.word[rows]), np.nan)
        size = self._figure("bytes")(rows)
        peak = self.tables.peak[self._memory_pair(rows)]
        known = (peak > 0) & (size > 0) & (self.nodes.word[rows] != 0)
        return np.where(known, size / np.where(known, peak, 1.0), np.nan)


def _address(registers: LaneRegisters, side: str, rows: Rows) -> Array:
    operation = registers.operation[rows]
    first = int(operation[0]) if len(operation) else -1
    names = address_fields(registers.chip, side)
    low, high = (registers.field(first, name, rows).astype(np.int64) for name in names)
    return np.where(registers.decoded_mask(rows), high << LOW_ADDRESS_BITS | low, INT_MISSING)
