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
from .commands import Commands
from .counters import counter_columns
from .detail import Detail, decode_lane
from .messages import message_columns
from .monitor import Stream
from .operations import count_operations
from .reading import LaneReading
from .registers import addresses_of_many
from .source import Bytes

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
        data: The bytes the commands' registers lie in.
    """

    stream: Stream
    commands: Commands | None
    core: int
    cores: npt.NDArray[np.int32] | None
    first_scope: int
    data: Bytes


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
            [self.strings["direction"].code(direction_text(chip, place & 3, place >> 2)) for place in range(16)],
            np.int32,
        )
        ways = [direction_text(chip, place & 3, place >> 2) for place in range(16)]
        ddr = np.array(["DDR" in way for way in ways])
        self._touches = {"DDR": ddr, "L2M": ~ddr & np.array(["L2M" in way for way in ways])}
        self._dtype = np.array([self.strings["dtype"].code(chip.data_type_text(code)) for code in range(16)], np.int32)

    def build(self, source: LaneSource, scope_kernel: npt.NDArray[np.int32]) -> Lane:
        """The lane of one stream.

        Args:
            source: Records and commands.
            scope_kernel: Kernel string code by scope id.
        """
        stream, commands = _ordered(source)
        order = None if stream is source.stream else np.argsort(source.stream.start, kind="stable")
        engine = stream.engine
        family = family_of(engine)
        detail = decode_lane(self.chip, engine, source.data, commands) if commands is not None else None
        word = commands.word if commands is not None else np.zeros(len(stream), np.uint32)
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
            "cycles": stream.cycles
            if stream.cycles is not None
            else lambda rows: stream.end[rows] - stream.start[rows] + 1,
            "command_id": stream.id if family == "cdma" else lambda rows: stream.id[rows].astype(np.int64) + 1,
            "core": _constant(len(stream), source.core, np.int64)
            if source.cores is None
            else _submitters(source, order),
        }
        if engine == "CDMA":
            columns["port"] = _constant(len(stream), stream.port, np.int64)
        columns |= self._named(word, family, detail if family == "tiu" else None)
        if commands is not None:
            columns |= _scoped(commands, source.first_scope, scope_kernel)
        columns |= self._tiu(word) if family == "tiu" else self._transfer(word, stream, family, detail)
        if detail is not None:
            columns |= _counted(self.chip, detail) if family == "tiu" else _addressed(self.chip, detail)
        if detail is not None:
            columns |= message_columns(self.chip, detail)
        columns |= counter_columns(stream)
        describe = LaneReading(self.chip, engine, columns, self._text, detail, commands is None)
        place = f"port {stream.port}" if engine == "CDMA" else engine
        return Lane(engine=engine, core=source.core, port=stream.port, label=place, columns=columns,
                    sublanes=sublanes, registers=detail, describe=describe,
                    group="CDMA" if engine == "CDMA" else f"Core {source.core}",
                    role_guessed=commands is None)  # fmt: skip

    def _text(self, key: str, code: int) -> str:
        """Text of a code of a text column."""
        return self.strings[key].text(code)

    # -- preparation ------------------------------------------------------

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

    def _named(self, word: npt.NDArray[np.uint32], family: str, detail: Detail | None) -> dict[str, LazyColumn]:
        """Type and name: of condensed commands by their codes, of decoded TIU commands by their operation."""
        names = name_table(self.chip, family)
        used = np.flatnonzero(
            np.bincount(((word >> np.uint32(10)) & np.uint32(_CODES - 1)).astype(np.int64), minlength=_CODES)
        )
        directed = _PLACES if names.directed else _CODES
        type_table = np.full(directed, -1, np.int32)
        name_table_ = np.full(directed, -1, np.int32)
        for code in used.tolist():
            for key in range(code, directed, _CODES):
                kind, name = names.texts_of(key)
                type_table[key] = self.strings["type"].code(kind)
                name_table_[key] = self.strings["name"].code(name)

        decoded, own_types, own_names = self._operation_codes(detail)

        def coded(table: npt.NDArray[np.int32], own: npt.NDArray[np.int32]) -> LazyColumn:
            def values(rows: Rows) -> Array:
                some = word[rows]
                key = (some >> np.uint32(10)) & np.uint32(_CODES - 1)
                if directed == _PLACES:
                    key |= ((some >> np.uint32(24)) & np.uint32(15)) << np.uint32(10)
                result: Array = table[key]
                result[some == 0] = -1
                if decoded is not None:
                    key = decoded[rows]
                    result = np.where(key >= 0, own[key], result)
                return result

            return values

        return {"type": coded(type_table, own_types), "name": coded(name_table_, own_names)}

    def _operation_codes(self, detail: Detail | None) -> tuple[Array | None, Array, Array]:
        """For each row its place in the following string codes of types and names; None without registers."""
        if detail is None:
            none = np.zeros(0, np.int32)
            return None, none, none
        _, places, types, names = detail.texts()
        own = [np.array([*(self.strings[key].code(text) for text in texts), -1], np.int32)
               for key, texts in (("type", types), ("name", names))]  # fmt: skip
        return places, own[0], own[1]

    def _tiu(self, word: npt.NDArray[np.uint32]) -> dict[str, LazyColumn]:
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

    def _transfer(self, word: npt.NDArray[np.uint32], stream: Stream, family: str,
                  detail: Detail | None) -> dict[str, LazyColumn]:  # fmt: skip
        system = self.chip.system_types[family]

        def of_work(read: Callable[[Array], Array], missing: int) -> LazyColumn:
            def values(rows: Rows) -> Array:
                some = word[rows]
                result = read(some)
                result[(some == 0) | (_bits(some, 10, 5) == system)] = missing
                return result

            return values

        direction = np.full(16, self._direction[0], np.int32) if family == "cdma" else self._direction
        dtype = (
            self._dtype
            if detail is None
            else np.append(self._dtype[:15], self.strings["dtype"].code("")).astype(np.int32)
        )
        counters = _PORT_COUNTERS if family == "cdma" else _DMA_COUNTERS

        def total(names: tuple[str, ...]) -> LazyColumn:
            def values(rows: Rows) -> Array:
                result = stream.counter(names[0], rows)  # type: ignore[arg-type]
                for name in names[1:]:
                    result = result + stream.counter(name, rows)  # type: ignore[arg-type]
                return result

            return values

        size = total(counters["bytes"])

        touches = self._touches

        def bandwidth(memory: str) -> LazyColumn:
            def values(rows: Rows) -> Array:
                length = np.maximum(stream.end[rows] - stream.start[rows], 1)
                result: Array = np.round(size(rows) / length, 4)
                if detail is None:
                    return result
                # of a decoded command the direction says which memory's bandwidth it is
                mine = touches[memory][_bits(word[rows], 24, 4)]
                decoded = detail.operation[rows] >= 0
                return np.where(decoded, np.where(mine, result, 0.0), result if memory == "DDR" else np.nan)

            return values

        columns: dict[str, LazyColumn] = {
            "direction": of_work(lambda some: direction[_bits(some, 24, 4)], -1),
            "from_memory": of_work(lambda some: self._memory[_bits(some, 24, 2)], -1),
            "to_memory": of_work(lambda some: self._memory[_bits(some, 26, 2)], -1),
            "dtype": of_work(lambda some: dtype[_bits(some, 20, 4)], -1),
            "data_format": of_work(lambda some: _bits(some, 20, 4), INT_MISSING),
            "dma_type": _field(word, 10, 5),
            "dma_function": _field(word, 15, 5),
            "bytes": size,
            "ddr_bandwidth": bandwidth("DDR"),
            "transactions": total(counters["transactions"]),
        }
        if detail is not None:
            columns["l2_bandwidth"] = bandwidth("L2M")
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


def _ordered(source: LaneSource) -> tuple[Stream, Commands | None]:
    """Records and commands ordered by start; the same objects where that is their order already."""
    stream, commands = source.stream, source.commands
    if not len(stream) or not bool((stream.start[1:] < stream.start[:-1]).any()):
        return stream, commands
    order = np.argsort(stream.start, kind="stable")
    return stream.take(order), None if commands is None else commands.take(order)


def _counted(chip: Chip, detail: Detail) -> dict[str, LazyColumn | Array]:
    """Operation counts of TIU commands, computed for the rows asked for."""

    def figure(name: str) -> LazyColumn:
        def values(rows: Rows) -> Array:
            counts = count_operations(chip, detail.data, detail.offset[rows], detail.operation[rows])
            if name == "uarch_rate":
                return counts.uarch_rates
            some: Array = getattr(counts, name)
            return np.where(some < 0, INT_MISSING, some)

        return values

    return {"alg_ops": figure("alg_ops"), "uarch_ops": figure("uarch_ops"), "alg_cycle": figure("alg_cycles"),
            "uarch_rate": figure("uarch_rate")}  # fmt: skip


def _addressed(chip: Chip, detail: Detail) -> dict[str, LazyColumn | Array]:
    """Addresses of transfers."""

    def address(side: int) -> LazyColumn:
        def values(rows: Rows) -> Array:
            operation = detail.operation[rows]
            some = addresses_of_many(chip, detail.engine, detail.data, detail.offset[rows], operation)[side]
            return np.where(operation < 0, INT_MISSING, some)

        return values

    return {"src_addr": address(0), "dst_addr": address(1)}


def _scoped(commands: Commands, first_scope: int, scope_kernel: Array) -> dict[str, LazyColumn | Array]:
    scope, batch, mode = commands.scope, commands.batch, commands.mode
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
