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
from tpuprof_tui.sources.sophgo.chips.chip import Chip, family_of
from tpuprof_tui.sources.sophgo.chips.figures import TransferFigures

from ..arrays import I32, I64, U8, Bools
from ..commands.details import NO_FORMAT, NODE_MEMORIES, PLACE_BITS, UNKNOWN_MEMORY, Detail
from ..commands.registers import LOW_ADDRESS_BITS, address_fields
from ..records.monitor import Stream
from .lane_columns import Words, Work, bits, field

_PLACES = 1 << 2 * PLACE_BITS
_SIDE = (1 << PLACE_BITS) - 1


class TransferTables:
    """String codes of memories, directions and data types by their codes; shared by the lanes of a profile."""

    def __init__(self, chip: Chip, strings: dict[str, StringsBuilder]) -> None:
        self.chip = chip
        most = max(NODE_MEMORIES - 1, chip.memory_of_address.largest)
        sides = [chip.memories[min(code, most)] for code in range(_SIDE + 1)]
        sides[UNKNOWN_MEMORY] = ""
        ends = [(sides[place & _SIDE], sides[place >> PLACE_BITS]) for place in range(_PLACES)]
        ways = ["->".join(pair) if all(pair) else "" for pair in ends]

        def codes(key: str, texts: list[str]) -> I32:
            return np.array([strings[key].code(text) if text else -1 for text in texts], np.int32)

        self.direction = codes("direction", ways)
        self.source, self.target = codes("from_memory", sides), codes("to_memory", sides)
        self.dtype = np.array([strings["dtype"].code(chip.data_type_text(code)) for code in range(16)], np.int32)
        self.no_dtype = strings["dtype"].code("")
        self.ddr = np.array(["DDR" in way for way in ways])
        self.l2 = np.array(["L2" in way for way in ways])
        self.peak = np.array([chip.peak_gbps(way) for way in ways])


def node_places(word: Words) -> U8:
    """Packed source and destination memory of condensed commands."""
    return (bits(word, 24, 2) | bits(word, 26, 2) << PLACE_BITS).astype(np.uint8)


class Transfers(Struct, frozen=True, dict=True):
    """Builds the columns of one lane.

    Attributes:
        stream: Records; None where there are none, so that nothing was measured.
        work: Node words; those of decoded commands are made from their registers.
        places: Packed memories of each row; None where they are those of ``word``.
    """

    tables: TransferTables
    engine: str
    stream: Stream | None
    work: Work
    places: U8 | None
    detail: Detail | None

    @property
    def figures(self) -> TransferFigures:
        """Rules that derive figures from counters."""
        return self.tables.chip.figures[family_of(self.engine)]

    def columns(self) -> dict[str, LazyColumn]:
        """Columns from commands, and columns measured by records, which are missing without records."""
        word, tables, column = self.work.word, self.tables, self.work.column
        dtype = tables.dtype
        if self.detail is not None or self.engine == "CDMA":
            dtype = np.append(dtype[:NO_FORMAT], tables.no_dtype).astype(np.int32)
        columns: dict[str, LazyColumn] = {
            "direction": column(self._direction, -1),
            "from_memory": column(lambda rows: tables.source[self._place(rows) & _SIDE], -1),
            "to_memory": column(lambda rows: tables.target[self._place(rows) >> PLACE_BITS], -1),
            "dtype": column(lambda rows: dtype[bits(word[rows], 20, 4)], -1, coded=True),
            "data_format": column(lambda rows: bits(word[rows], 20, 4), INT_MISSING, coded=True),
            "dma_type": field(word, 10, 5),
            "dma_function": field(word, 15, 5),
        }
        if self.detail is not None:
            columns |= _addressed(tables.chip, self.detail)
        keys = dict.fromkeys([*self.figures.condensed, *self.figures.detailed])
        if self.stream is None:
            rates = [*self.figures.rates, "ddr_bandwidth", "l2_bandwidth", "ideal"]
            columns |= dict.fromkeys(keys, constant(len(word), INT_MISSING, np.int64))
            return columns | dict.fromkeys(rates, constant(len(word), np.nan, np.float64))
        columns |= {key: self._figure(key) for key in keys}
        columns |= {key: self._rate(source) for key, source in self.figures.rates.items()}
        columns["ddr_bandwidth"] = self._bandwidth(tables.ddr, "gmem_bytes", others=True)
        if self.detail is not None or self.figures.by_direction:
            touched = tables.l2 if self.figures.by_direction else tables.l2 & ~tables.ddr
            columns["l2_bandwidth"] = self._bandwidth(touched, "bytes", others=False)
        columns["ideal"] = self._ideal
        return columns

    @cached_property
    def _place(self) -> LazyColumn:
        """Packed memories of each row."""
        word, places = self.work.word, self.places  # without self, which would be a reference cycle
        return cache_last_slice(lambda rows: node_places(word[rows])) if places is None else lambda rows: places[rows]

    def _direction(self, rows: Rows) -> Array:
        if self.engine == "CDMA":
            return np.full(len(self.work.word[rows]), self.tables.direction[0], np.int32)
        return self.tables.direction[self._place(rows)]

    @property
    def _records(self) -> Stream:
        assert self.stream is not None
        return self.stream

    def _figure(self, key: str) -> LazyColumn:
        """Column of a sum of counters, by the rule for decoded or for condensed commands."""
        condensed, detailed = self.figures.condensed.get(key), self.figures.detailed.get(key)

        def values(rows: Rows) -> Any:
            def counter(name: str) -> I64:
                return self._records.counter(name, rows)  # type: ignore[arg-type]

            if detailed is None or self.detail is None:
                result = condensed.of(counter) if condensed else np.full(len(self.work.word[rows]), INT_MISSING)
            else:
                other = condensed.of(counter) if condensed else INT_MISSING
                result = np.where(self.detail.leading(rows), detailed.of(counter), other)
            if key in self.figures.ddr_only:
                result = np.where(self.tables.ddr[self._place(rows)], result, 0)
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

    def _bandwidth(self, touched: Bools, source: str, *, others: bool) -> LazyColumn:
        """Column of one memory's bandwidth: of decoded commands (of all, if the chip's rule is so) by their direction.

        Args:
            touched: Mask of the places that involve that memory.
            source: Column of its bytes where the rule is by direction; else all bytes count.
            others: Whether the bytes of condensed commands count for this memory.
        """
        by_direction = self.figures.by_direction
        rate = self._rate(source if by_direction and source in self.figures.condensed else "bytes")

        def values(rows: Rows) -> Array:
            result = rate(rows)
            if by_direction:
                return np.where(touched[self._place(rows)], result, 0.0)
            if self.detail is None:
                return result
            mine = touched[self._place(rows)]
            return np.where(self.detail.leading(rows), np.where(mine, result, 0.0), result if others else np.nan)

        return values

    def _ideal(self, rows: Rows) -> Array:
        """Time at the peak bandwidth of the memory involved, ns; NaN where it has none, or nothing moved."""
        if self.engine == "CDMA":
            return np.full(len(self.work.word[rows]), np.nan)
        size = self._figure("bytes")(rows)
        peak = self.tables.peak[self._place(rows)]
        known = (peak > 0) & (size > 0) & (self.work.word[rows] != 0)
        return np.where(known, size / np.where(known, peak, 1.0), np.nan)


def _addressed(chip: Chip, detail: Detail) -> dict[str, LazyColumn]:
    """Columns of the addresses of decoded commands."""

    def address(side: str) -> LazyColumn:
        def values(rows: Rows) -> Array:
            operation = detail.operation[rows]
            first = int(operation[0]) if len(operation) else -1
            low, high = (detail.field(first, name, rows).astype(np.int64) for name in address_fields(chip, side))
            return np.where(detail.leading(rows), high << LOW_ADDRESS_BITS | low, INT_MISSING)

        return values

    return {"src_addr": address("src"), "dst_addr": address("dst")}
