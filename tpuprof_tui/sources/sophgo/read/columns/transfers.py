"""Columns of GDMA, SDMA and CDMA instructions: memories, data type, bytes and rates.

The formulas are those of metrics 2.3 to 2.5 and 3.2 to 3.4; the counters that they sum are chip data.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct

from tpuprof_tui.model import INT_MISSING, StringsBuilder
from tpuprof_tui.model.lane import Array, LazyColumn, Rows, cache_last_slice, constant
from tpuprof_tui.sources.sophgo.chips.chip import Chip, TransferFigures, family_of

from ..arrays import I32, I64, U8, Bools
from ..commands.lane_registers import MEMORY_BITS, NO_FORMAT, NODE_MEMORIES, UNKNOWN_MEMORY, LaneRegisters
from ..commands.registers import LOW_ADDRESS_BITS, address_fields
from ..records.monitor import RecordStream
from .lane_columns import NodeWords, Words, bits, field

_MEMORY_PAIRS = 1 << 2 * MEMORY_BITS
_MEMORY_MASK = (1 << MEMORY_BITS) - 1


class TransferTables:
    """String codes of memories, directions and data types by their codes; shared by the lanes of a profile."""

    def __init__(self, chip: Chip, strings: dict[str, StringsBuilder]) -> None:
        self.chip = chip
        most = max(NODE_MEMORIES - 1, chip.memory_of_address.largest)
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
            "dma_type": field(word, 10, 5),
            "dma_function": field(word, 15, 5),
        }
        if self.registers is not None:
            columns |= _address_columns(tables.chip, self.registers)
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
        """Packed memories of each row."""
        word, memories = self.nodes.word, self.memories  # without self, which would be a reference cycle
        return (
            cache_last_slice(lambda rows: node_memories(word[rows]))
            if memories is None
            else lambda rows: memories[rows]
        )

    def _direction(self, rows: Rows) -> Array:
        if self.engine == "CDMA":
            return np.full(len(self.nodes.word[rows]), self.tables.direction[0], np.int32)
        return self.tables.direction[self._memory_pair(rows)]

    @property
    def _records(self) -> RecordStream:
        assert self.stream is not None
        return self.stream

    def _figure(self, key: str) -> LazyColumn:
        """Column of a sum of counters, by the rule for decoded or for condensed commands."""
        condensed, detailed = self.figures.condensed.get(key), self.figures.detailed.get(key)

        def values(rows: Rows) -> Any:
            def counter(name: str) -> I64:
                return self._records.counter(name, rows)  # type: ignore[arg-type]

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
            known = size(rows)
            length = np.maximum(self._records.end[rows] - self._records.start[rows], 1)
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
            if by_direction:
                return np.where(involved[self._memory_pair(rows)], result, 0.0)
            if self.registers is None:
                return result
            applies = involved[self._memory_pair(rows)]
            decoded, otherwise = self.registers.decoded_mask(rows), result if others else np.nan
            return np.where(decoded, np.where(applies, result, 0.0), otherwise)

        return values

    def _ideal(self, rows: Rows) -> Array:
        """Time at the peak bandwidth of the memory involved, ns; NaN where it has none, or nothing moved."""
        if self.engine == "CDMA":
            return np.full(len(self.nodes.word[rows]), np.nan)
        size = self._figure("bytes")(rows)
        peak = self.tables.peak[self._memory_pair(rows)]
        known = (peak > 0) & (size > 0) & (self.nodes.word[rows] != 0)
        return np.where(known, size / np.where(known, peak, 1.0), np.nan)


def _address_columns(chip: Chip, registers: LaneRegisters) -> dict[str, LazyColumn]:
    """Columns of the addresses of decoded commands."""

    def address(side: str) -> LazyColumn:
        def values(rows: Rows) -> Array:
            operation = registers.operation[rows]
            first = int(operation[0]) if len(operation) else -1
            low, high = (registers.field(first, name, rows).astype(np.int64) for name in address_fields(chip, side))
            return np.where(registers.decoded_mask(rows), high << LOW_ADDRESS_BITS | low, INT_MISSING)

        return values

    return {"src_addr": address("src"), "dst_addr": address("dst")}
