"""Builds lanes of the model from streams and commands; columns are computed on demand from node words and counters."""

from __future__ import annotations

from functools import partial

import numpy as np
from msgspec import Struct

from tpuprof_tui.formats.units import bytes_text
from tpuprof_tui.model import INT_MISSING, Activity, Groups, Lane, Role, StringsBuilder
from tpuprof_tui.model.lane import Array, LazyColumn, Rows, constant
from tpuprof_tui.model.sublanes import split_overlaps

from ...chips.chip import Chip, family_of, variant_direction
from ...groups import PORTS, group_of, owner_groups
from ..arrays import I8, I32, I64, U8, Bools, Bytes
from ..commands.command_table import Commands, Mode
from ..commands.lane_registers import MEMORY_BITS, LaneRegisters, decode_lane, message_columns
from ..records.monitor import RecordStream
from . import figures

_ENGINE_ID = {"TIU": 0, "GDMA": 1, "SDMA": 3, "CDMA": 4}
_MODES = ("TDI", "RVT", "DES")
_TEXTS = ("name", "type", "kernel", "mode", "direction", "dtype", "from_memory", "to_memory")
_LONG_WAIT_NS = 1000
#: Kind of the lanes of copies by the runtime, names of the copies (out, in), and their type.
COPY_KIND = "COPY"
COPY_NAMES = ("output copy", "input copy")
_COPY_TYPE = "host copy"
_COPY_COLUMNS = ("start", "end", "order", "sublane", "duration", "cycles", "command_id", "core", "bytes",
                 "ddr_bandwidth")  # fmt: skip
_CODES = 1 << 10  # number of codes of type and function
_DIRECTED_CODES = 1 << 14  # with source and destination memory
_VARIANTS = 0x1FFFFF  # mask of type code and generator index
#: Categories of generator indices that are system commands.
_GENERATOR_SYSTEM = frozenset(("sys", "sdma_sys"))


class LaneSource(Struct):
    """Input of one lane."""

    engine: str
    #: Records that are instructions, in stream order, times in ns; None where commands have no records.
    stream: RecordStream | None
    #: Command of each record in the same order (word 0 where there is none); None without any.
    commands: Commands | None
    core: int  #: Core number of the lane; -1 for a port
    cores: I32 | None  #: Submitting core of each record of a port, -1 unknown; None for a core's lane
    first_scope: int  #: Scope id of the commands' scope 0
    data: Bytes  #: Bytes that contain the commands' registers


#: Names that do not come from node codes: index of each row's name (-1: none), and string codes of the names by column.
_NameOverrides = tuple[I32, dict[str, I32]]


class LaneBuilder:
    """Builds the lanes of one profile, which share the string tables."""

    def __init__(self, chip: Chip, tiu_mhz: float, groups: Groups) -> None:
        self.chip = chip
        self.groups = groups
        self.tiu_mhz = tiu_mhz
        self.strings = {key: StringsBuilder() for key in _TEXTS}
        for mode in _MODES:
            self.strings["mode"].code(mode)
        self._tables = figures.TransferTables(chip, self.strings)

    def build(self, source: LaneSource, scope_kernel: I32) -> Lane:
        """Lane of one stream; ``scope_kernel``: kernel string code by scope id."""
        engine, family = source.engine, family_of(source.engine)
        stream, commands, order = source.stream, source.commands, None
        if stream is not None and bool((stream.start[1:] < stream.start[:-1]).any()):
            order = np.argsort(stream.start, kind="stable")
            stream, commands = stream.take(order), None if commands is None else commands.take(order)
        registers = decode_lane(self.chip, engine, source.data, commands) if commands is not None else None
        generated = None
        if commands is not None and "rvt" in self.chip.name_tables and (commands.mode == Mode.RVT).any():
            generated = commands.mode == Mode.RVT
        nodes = figures.NodeWords(self._words(stream, commands), self.chip.system_types[family], generated)
        count = len(nodes.word)
        overrides = self._name_overrides(nodes, registers)
        times = _times(stream, commands, family)
        if stream is not None:
            start, end = stream.start, stream.end
            sublane, _ = split_overlaps(start, end)
        else:
            start = end = np.full(count, INT_MISSING, np.int64)
            sublane = None
        columns: dict[str, Array | LazyColumn] = {
            "start": start,
            "end": end,
            "order": order if order is not None else partial(figures.row_numbers, count),
            "sublane": sublane if sublane is not None else constant(count, 0, np.int16),
            "engine_id": constant(count, _ENGINE_ID[engine], np.int64),
            **self._cores(source, order, count),
            **times,
            "role": self._roles(nodes, family, overrides),
            **self._named(nodes.word, family, overrides),
        }
        if commands is not None:
            columns |= figures.scope_columns(commands, source.first_scope, scope_kernel)
        if family != "tiu":
            memories = self._memory_pairs(nodes, overrides, None if registers is None else registers.memories)
            own = figures.Transfers(self._tables, engine, stream, nodes, memories, registers).columns()
        else:
            own = figures.condensed_columns(nodes)
            if registers is not None:
                own |= figures.operation_columns(registers, None if stream is None else times["cycles"], self.tiu_mhz)
            if stream is not None:
                own |= figures.conflict_columns(stream, times["cycles"])
        if stream is not None and "ideal" in own:
            own |= figures.headroom_columns(own["ideal"], times["duration"])
        columns |= own
        if commands is not None and commands.forecast is not None:
            columns |= figures.forecast_columns(commands.forecast, times["duration"])
        if registers is not None:
            columns |= message_columns(self.chip, registers)
        if stream is not None:
            columns |= figures.counter_columns(stream)

        def describe(row: int) -> str:
            from .instruction_text import InstructionDescriber  # imported on first use

            return InstructionDescriber(self.chip, engine, columns, self.strings, registers, commands is None)(row)

        label, number, group = engine, -1, self.groups.numbered(source.core)
        if stream is not None and stream.port >= 0:
            columns["port"] = constant(count, stream.port, np.int64)
            label, number, group = stream.label, stream.port, group_of(self.groups, PORTS)
        return Lane(kind=engine, label=label, number=number, group=group,
                    activity=Activity.COMPUTE if family == "tiu" else Activity.TRANSFER, columns=columns,
                    registers=registers, describe=describe, role_guessed=commands is None)  # fmt: skip

    def build_copies(self, engine: str, stream: RecordStream, inward: Bools, core: int) -> Lane:
        """Lane of the copies of a model's inputs and outputs by its runtime, on one engine of a core.

        Args:
            stream: Their records, times in ns.
            inward: For each whether it copies an input in.
        """
        lane = self.build(LaneSource(engine, stream, None, core, None, 0, np.zeros(0, np.uint8)), np.zeros(0, np.int32))
        names = np.array([self.strings["name"].code(text) for text in COPY_NAMES], np.int32)
        name, kind = names[inward[lane["order"]].astype(np.int64)], self.strings["type"].code(_COPY_TYPE)
        columns: dict[str, Array | LazyColumn] = {key: lane.columns[key] for key in _COPY_COLUMNS}
        columns |= {"name": name, "type": constant(len(lane), kind, np.int32)}
        columns["role"] = constant(len(lane), Role.WORK, np.int8)

        def describe(row: int) -> str:
            return f"{COPY_NAMES[int(inward[lane['order'][row]])]} by {engine}, {bytes_text(int(lane['bytes'][row]))}"

        label = "copies" if engine == "GDMA" else f"copies of {engine}"
        return Lane(kind=COPY_KIND, label=label, group=lane.group, activity=Activity.HOST, columns=columns,
                    describe=describe)  # fmt: skip

    def _cores(self, source: LaneSource, order: I64 | None, count: int) -> dict[str, LazyColumn]:
        """Column of the lane's core; for a port, columns of each row's submitter and of its group."""
        if source.cores is None:
            return {"core": constant(count, source.core, np.int64)}
        owners = owner_groups(self.groups, source.cores if order is None else source.cores[order])
        owner = partial(figures.known_or_missing, owners)
        return {"core": lambda rows: self.groups.unit_numbers(owner(rows)), "owner": owner}

    def _words(self, stream: RecordStream | None, commands: Commands | None) -> figures.Words:
        """Node words, with synthetic ones for system records without a command.

        Sends and waits alternate: the half with the larger sum of durations are the waits, and so is everything above 1
        us (pipeline 9).
        """
        word = commands.word if commands is not None else np.zeros(0 if stream is None else len(stream), np.uint32)
        unbound = np.flatnonzero(word == 0)
        if stream is not None and len(unbound):
            unbound = unbound[stream.system_mask(self.chip, unbound)]
        if stream is None or not len(unbound):
            return word
        family = family_of(stream.engine)
        length = stream.end[unbound] - stream.start[unbound]
        wait_parity = int(length[1::2].sum() > length[::2].sum())
        is_wait = (length > _LONG_WAIT_NS) | (np.arange(len(unbound)) & 1 == wait_parity)
        send, wait = min(self.chip.send_functions[family]), min(self.chip.wait_functions[family])
        result: figures.Words = word.copy()
        result[unbound] = self.chip.system_types[family] << 10 | np.where(is_wait, wait, send) << 15
        return result

    def _roles(self, nodes: figures.NodeWords, family: str, overrides: _NameOverrides | None) -> I8:
        table = np.full(_CODES, Role.WORK, np.int8)
        table[nodes.system | np.arange(32) << 5] = Role.SYNC
        table[[nodes.system | function << 5 for function in self.chip.wait_functions[family]]] = Role.WAIT
        roles: I8 = table[(nodes.word >> np.uint32(10)) & np.uint32(_CODES - 1)]
        if nodes.generated is not None and overrides is not None:
            name_index, codes = overrides
            texts = zip(*([self.strings[key].text(code) for code in codes[key].tolist()] for key in codes), strict=True)
            role_of_name = np.array([generator_role(*text) for text in texts], np.int8)
            roles[nodes.generated] = role_of_name[name_index[nodes.generated]]
        return roles

    def _name_overrides(self, nodes: figures.NodeWords, registers: LaneRegisters | None) -> _NameOverrides | None:
        """Names of commands by operation (TIU, and operations without a published name) and by generator index."""
        name_index, types, names = np.zeros(0, np.int32), list[str](), list[str]()
        if registers is not None and family_of(registers.engine) == "tiu":
            _, name_index, types, names = registers.texts()
        elif registers is not None and (partial := registers.partial_texts()) is not None:
            name_index, types, names = partial
        if nodes.generated is not None:
            rows = np.flatnonzero(nodes.generated)
            keys, where = np.unique((nodes.word[rows] >> np.uint32(10)) & np.uint32(_VARIANTS), return_inverse=True)
            more = [self.chip.names("TIU", rvt=True).texts_of(key) for key in keys.tolist()]
            name_index = name_index if len(name_index) else np.full(len(nodes.word), -1, np.int32)
            name_index[rows] = (where + len(types)).astype(np.int32)
            types, names = [*types, *(kind for kind, _ in more)], [*names, *(name for _, name in more)]
        if not types:
            return None
        return name_index, {
            key: np.array([*map(self.strings[key].code, texts), -1], np.int32)
            for key, texts in (("type", types), ("name", names))
        }

    def _named(self, word: figures.Words, family: str, overrides: _NameOverrides | None) -> dict[str, LazyColumn]:
        """Columns of type and name: by node codes unless the row has a name in ``overrides``."""
        names = self.chip.names(family)
        codes = ((word >> np.uint32(10)) & np.uint32(_CODES - 1)).astype(np.int64)
        size = _DIRECTED_CODES if names.directed else _CODES
        tables = {key: np.full(size, -1, np.int32) for key in ("type", "name")}
        for code in np.flatnonzero(np.bincount(codes, minlength=_CODES)).tolist():
            for key in range(code, size, _CODES):
                for table, text in zip(tables, names.texts_of(key), strict=True):
                    tables[table][key] = self.strings[table].code(text)

        def column(name: str) -> LazyColumn:
            def values(rows: Rows) -> Array:
                some = word[rows]
                key = (some >> np.uint32(10)) & np.uint32(_CODES - 1)
                if size == _DIRECTED_CODES:
                    key |= ((some >> np.uint32(24)) & np.uint32(15)) << np.uint32(10)
                result: Array = tables[name][key]
                result[some == 0] = -1
                if overrides is None:
                    return result
                name_index = overrides[0][rows]
                return np.where(name_index >= 0, overrides[1][name][name_index], result)

            return values

        return {name: column(name) for name in tables}

    def _memory_pairs(
        self, nodes: figures.NodeWords, overrides: _NameOverrides | None, memories: U8 | None
    ) -> U8 | None:
        """Packed memories of each row where its word does not determine them: wide codes, and names that imply them."""
        if overrides is None or nodes.generated is None:
            return memories
        memories = figures.node_memories(nodes.word) if memories is None else memories
        implied = [variant_direction(self.strings["name"].text(code)) for code in overrides[1]["name"].tolist()]
        known = np.array([entry is not None for entry in implied])
        packed = np.array([entry[0] | entry[1] << MEMORY_BITS if entry else 0 for entry in implied], np.uint8)
        return np.where(nodes.generated & known[overrides[0]], packed[overrides[0]], memories)


def generator_role(category: str, variant: str) -> Role:
    """Role of a generator index, by its category and variant."""
    if category not in _GENERATOR_SYSTEM:
        return Role.WORK
    return Role.WAIT if variant.endswith("_msgwait") else Role.SYNC


def _times(stream: RecordStream | None, commands: Commands | None, family: str) -> dict[str, LazyColumn]:
    """Columns of duration, cycles and id; without a stream only the id is known."""
    if stream is None:
        assert commands is not None
        missing, numbers = constant(len(commands), INT_MISSING, np.int64), commands.id
        return {"duration": missing, "cycles": missing, "command_id": lambda rows: numbers[rows].astype(np.int64) + 1}
    start, end, cycles, ids = stream.start, stream.end, stream.cycles, stream.id
    first = 0 if family == "cdma" else 1
    return {
        "duration": lambda rows: end[rows] - start[rows],
        "cycles": (lambda rows: end[rows] - start[rows] + 1) if cycles is None else (lambda rows: cycles[rows]),
        "command_id": lambda rows: ids[rows].astype(np.int64) + first,
    }
