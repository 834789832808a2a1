"""Streams and commands -> lanes of the model: columns computed from node words and record counters on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...model import INT_MISSING, Lane, Role, StringsBuilder
from ...model.lane import LazyColumn, Rows
from ...model.sublanes import split_overlaps
from .chips import Chip, direction_text, family_of, name_table
from .monitor import Stream
from .nodes import Commands

Array = npt.NDArray[Any]
I64 = npt.NDArray[np.int64]

_ENGINE_ID = {"TIU": 0, "GDMA": 1, "SDMA": 3, "CDMA": 4}
_MODES = ("TDI", "RVT", "DES")
_LONG_WAIT_NS = 1000
_CODES = 1 << 10  # type and function code
_PLACES = 1 << 14  # and source and destination memory
_UNKNOWN_TYPE = 31


@dataclass
class LaneSource:
    """What a lane is made of.

    Attributes:
        stream: Records that are instructions, in stream order, times in ns.
        commands: Command of each record in the same order (word 0 where there is none); None without any.
        core: Core number of the lane, -1 for a port.
        cores: Submitting core of each record of a port, -1 unknown; None for a core's lane.
        first_scope: Scope id of the commands' scope 0.
    """

    stream: Stream
    commands: Commands | None
    core: int
    cores: npt.NDArray[np.int32] | None
    first_scope: int


class LaneBuilder:
    """Builds the lanes of one profile; they share the tables of strings."""

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        keys = ("engine", "name", "type", "kernel", "mode", "direction", "dtype", "from_memory", "to_memory")
        self.strings = {key: StringsBuilder() for key in keys}
        for mode in _MODES:
            self.strings["mode"].code(mode)
        self._memory = np.array([self.strings["from_memory"].code(_memory(chip, code)) for code in range(4)], np.int32)
        for code in range(4):
            self.strings["to_memory"].code(_memory(chip, code))
        self._direction = np.array(
            [self.strings["direction"].code(direction_text(chip, place & 3, place >> 2)) for place in range(16)], np.int32
        )
        self._dtype = np.array([self.strings["dtype"].code(chip.data_type_text(code)) for code in range(16)], np.int32)

    def build(self, source: LaneSource, scope_kernel: npt.NDArray[np.int32]) -> Lane:
        """The lane of one stream.

        Args:
            source: Records and commands.
            scope_kernel: Kernel string code by scope id.
        """
        stream, word, order = self._ordered(source)
        commands = source.commands
        engine = stream.engine
        family = family_of(engine)
        labels = self._labelled(stream, word)
        word = labels if labels is not None else word
        sublane, sublanes = split_overlaps(stream.start, stream.end)
        columns: dict[str, Array | LazyColumn] = {
            "start": stream.start,
            "end": stream.end,
            "order": order if order is not None else _counting(len(stream)),
            "sublane": sublane if sublane is not None else _constant(len(stream), 0, np.int16),
            "role": self._roles(word, family),
            "engine": _constant(len(stream), self.strings["engine"].code(engine), np.int32),
            "engine_id": _constant(len(stream), _ENGINE_ID[engine], np.int64),
            "duration": lambda rows: stream.end[rows] - stream.start[rows],
            "cycles": stream.cycles if stream.cycles is not None else lambda rows: stream.end[rows] - stream.start[rows] + 1,
            "command_id": stream.id if family == "cdma" else lambda rows: stream.id[rows].astype(np.int64) + 1,
            "core": _constant(len(stream), source.core, np.int64) if source.cores is None else _submitters(source, order),
        }
        if engine == "CDMA":
            columns["port"] = _constant(len(stream), stream.port, np.int64)
        columns |= self._named(word, family)
        if commands is not None:
            columns |= _scoped(commands, order, source.first_scope, scope_kernel)
        columns |= self._tiu(word, stream) if family == "tiu" else self._transfer(word, stream, family)
        place = f"port {stream.port}" if engine == "CDMA" else engine
        return Lane(engine=engine, core=source.core, port=stream.port, label=place, columns=columns, sublanes=sublanes,
                    group="CDMA" if engine == "CDMA" else f"Core {source.core}", role_guessed=commands is None)  # fmt: skip

    # -- preparation ------------------------------------------------------

    @staticmethod
    def _ordered(source: LaneSource) -> tuple[Stream, npt.NDArray[np.uint32], I64 | None]:
        """Stream and words ordered by start; and the place in the stream of each, None when that is the order."""
        stream = source.stream
        word = source.commands.word if source.commands is not None else np.zeros(len(stream), np.uint32)
        if not len(stream) or not bool((stream.start[1:] < stream.start[:-1]).any()):
            return stream, word, None
        order = np.argsort(stream.start, kind="stable")
        return stream.take(order), word[order], order

    def _labelled(self, stream: Stream, word: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32] | None:
        """Words with made-up ones for system records without a command: send or wait, by duration and alternation.

        The longer of the two alternating halves are the waits, and everything above 1 us (pipeline 9).
        """
        loose = np.flatnonzero(word == 0)
        if not len(loose):
            return None
        loose = loose[stream.system(self.chip, loose)]
        if not len(loose):
            return None
        family = family_of(stream.engine)
        length = stream.end[loose] - stream.start[loose]
        odd = np.arange(len(loose)) & 1
        wait_parity = int(length[odd == 1].sum() > length[odd == 0].sum())
        is_wait = (length > _LONG_WAIT_NS) | (odd == wait_parity)
        typ = self.chip.system_types[family]
        send, wait = min(self.chip.send_functions[family]), min(self.chip.wait_functions[family])
        result = word.copy()
        result[loose] = np.where(is_wait, np.uint32(typ << 10 | wait << 15), np.uint32(typ << 10 | send << 15))
        return result

    def _roles(self, word: npt.NDArray[np.uint32], family: str) -> npt.NDArray[np.int8]:
        table = np.full(_CODES, Role.WORK, np.int8)
        typ = self.chip.system_types[family]
        for function in range(32):
            wait = function in self.chip.wait_functions[family]
            table[typ | function << 5] = Role.WAIT if wait else Role.SYNC
        roles: npt.NDArray[np.int8] = table[(word >> np.uint32(10)) & np.uint32(_CODES - 1)]
        return roles

    # -- columns ----------------------------------------------------------

    def _named(self, word: npt.NDArray[np.uint32], family: str) -> dict[str, LazyColumn]:
        names = name_table(self.chip, family)
        used = np.flatnonzero(np.bincount(((word >> np.uint32(10)) & np.uint32(_CODES - 1)).astype(np.int64), minlength=_CODES))
        directed = _PLACES if names.directed else _CODES
        type_table = np.full(directed, -1, np.int32)
        name_table_ = np.full(directed, -1, np.int32)
        for code in used.tolist():
            for key in range(code, directed, _CODES):
                kind, name = names.texts_of(key)
                type_table[key] = self.strings["type"].code(kind)
                name_table_[key] = self.strings["name"].code(name)

        def coded(table: npt.NDArray[np.int32]) -> LazyColumn:
            def values(rows: Rows) -> Array:
                some = word[rows]
                key = (some >> np.uint32(10)) & np.uint32(_CODES - 1)
                if directed == _PLACES:
                    key |= ((some >> np.uint32(24)) & np.uint32(15)) << np.uint32(10)
                result: Array = table[key]
                result[some == 0] = -1
                return result

            return values

        return {"type": coded(type_table), "name": coded(name_table_)}

    def _tiu(self, word: npt.NDArray[np.uint32], stream: Stream) -> dict[str, LazyColumn]:
        system = self.chip.system_types["tiu"]

        def precision(rows: Rows) -> Array:
            some = word[rows]
            result = _bits(some, 20, 7)
            result[(some == 0) | (_bits(some, 10, 5) == system)] = INT_MISSING
            return result

        return {
            "tiu_type": _field(word, 10, 5),
            "tiu_function": _field(word, 15, 5),
            "node_type": _field(word, 0, 7),
            "node_engine": _field(word, 7, 3),
            "node_extra": _field(word, 20, 12),
            "precision": precision,
        }

    def _transfer(self, word: npt.NDArray[np.uint32], stream: Stream, family: str) -> dict[str, LazyColumn]:
        system = self.chip.system_types[family]

        def of_work(read: Callable[[Array], Array], missing: int) -> LazyColumn:
            def values(rows: Rows) -> Array:
                some = word[rows]
                result = read(some)
                result[(some == 0) | (_bits(some, 10, 5) == system)] = missing
                return result

            return values

        same = np.full(16, self._direction[0], np.int32)
        direction = same if family == "cdma" else self._direction
        counters = _PORT_COUNTERS if family == "cdma" else _DMA_COUNTERS

        def total(names: tuple[str, ...]) -> LazyColumn:
            def values(rows: Rows) -> Array:
                result = stream.counter(names[0], rows)  # type: ignore[arg-type]
                for name in names[1:]:
                    result = result + stream.counter(name, rows)  # type: ignore[arg-type]
                return result

            return values

        size = total(counters["bytes"])

        def bandwidth(rows: Rows) -> Array:
            length = np.maximum(stream.end[rows] - stream.start[rows], 1)
            result: Array = np.round(size(rows) / length, 4)
            return result

        columns: dict[str, LazyColumn] = {
            "direction": of_work(lambda some: direction[_bits(some, 24, 4)], -1),
            "from_memory": of_work(lambda some: self._memory[_bits(some, 24, 2)], -1),
            "to_memory": of_work(lambda some: self._memory[_bits(some, 26, 2)], -1),
            "dtype": of_work(lambda some: self._dtype[_bits(some, 20, 4)], -1),
            "data_format": of_work(lambda some: _bits(some, 20, 4), INT_MISSING),
            "dma_type": _field(word, 10, 5),
            "dma_function": _field(word, 15, 5),
            "bytes": size,
            "ddr_bandwidth": bandwidth,
            "transactions": total(counters["transactions"]),
        }
        if counters["stall"]:
            columns["stall"] = total(counters["stall"])
        return columns


#: Record counters behind the transfer columns (metrics 2.3).
_DMA_COUNTERS: Mapping[str, tuple[str, ...]] = {
    "bytes": ("gif_mem_w_cntr", "axi_d0_w_cntr"),
    "stall": ("gif_wr_rd_stall_cntr",),
    "transactions": ("axi_d0_wr_vaild_cntr", "axi_d0_rd_vaild_cntr"),
}
_PORT_COUNTERS: Mapping[str, tuple[str, ...]] = {
    "bytes": ("m0_data_aw_cntr",),
    "stall": (),
    "transactions": ("ari_data_valid_cntr", "ati_data_valid_cntr", "m0_data_rd_valid_cntr", "m0_data_wr_valid_cntr"),
}


def _memory(chip: Chip, code: int) -> str:
    return chip.memories[code] if code < len(chip.memories) else "INVALID"


def _bits(word: Array, first: int, width: int) -> Array:
    result: Array = ((word >> np.uint32(first)) & np.uint32((1 << width) - 1)).astype(np.int64)
    return result


def _field(word: Array, first: int, width: int) -> LazyColumn:
    """A bit field of the node words; missing where there is no command."""

    def values(rows: Rows) -> Array:
        some = word[rows]
        result = _bits(some, first, width)
        result[some == 0] = INT_MISSING
        return result

    return values


def _counting(count: int) -> LazyColumn:
    def values(rows: Rows) -> Array:
        return np.arange(*rows.indices(count)) if isinstance(rows, slice) else np.asarray(rows, np.int64)

    return values


def _constant(count: int, value: int, dtype: type[np.generic]) -> LazyColumn:
    def values(rows: Rows) -> Array:
        length = len(range(*rows.indices(count))) if isinstance(rows, slice) else len(rows)
        return np.full(length, value, dtype)

    return values


def _scoped(commands: Commands, order: I64 | None, first_scope: int, scope_kernel: Array) -> dict[str, LazyColumn | Array]:
    pick: Callable[[Array], Array] = (lambda values: values) if order is None else (lambda values: values[order])
    scope, batch, mode = pick(commands.scope), pick(commands.batch), pick(commands.mode)
    kernels = np.concatenate([scope_kernel, np.array([-1], np.int32)])

    def scopes(rows: Rows) -> Array:
        some = scope[rows].astype(np.int64)
        return np.where(some < 0, INT_MISSING, some + first_scope)

    def kernel(rows: Rows) -> Array:
        some = scope[rows]
        result: Array = kernels[np.where(some < 0, len(scope_kernel), some + first_scope)]
        return result

    def batches(rows: Rows) -> Array:
        some = batch[rows].astype(np.int64)
        return np.where(some < 0, INT_MISSING, some)

    return {"kernel": kernel, "scope": scopes, "batch": batches,
            "mode": lambda rows: mode[rows].astype(np.int32) - 1}  # fmt: skip


def _submitters(source: LaneSource, order: I64 | None) -> LazyColumn:
    assert source.cores is not None
    cores = source.cores if order is None else source.cores[order]

    def values(rows: Rows) -> Array:
        some = cores[rows].astype(np.int64)
        return np.where(some < 0, INT_MISSING, some)

    return values
