"""Registers of commands, with their messages: located for the node stream, and decoded for the lanes on demand.

Registers are kept as raw bytes. Only what every view needs of every command is decoded when a capture is opened: its
operation, and for transfers the memories and data type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.intervals import positions_in_runs
from tpuprof_tui.model.lane import LazyColumn, Rows, cache_last_slice
from tpuprof_tui.model.uniques import distinct

from ...chips.chip import Chip, family_of
from ...chips.commands import command_table
from ..arrays import I8, I16, I32, I64, U8, Bools, Bytes
from ..core_data import CoreData
from ..files import BlockType
from .command_table import Commands, CommandStream, Mode
from .registers import EncodedCommands, commands_of_one_kind, field_of_lines, memories_of

_KV_HEADER = 12
#: Most bytes shown of a command that cannot be decoded.
_MOST_RAW = 512
#: Bits per memory code where source and destination are packed into one byte .
MEMORY_BITS = 3
#: Data type code in node words made from registers without a data type.
NO_FORMAT = 15
#: Memory code of an unknown memory, where two are packed into one byte.
UNKNOWN_MEMORY = 7
#: Number of memory codes that fit into the two bits of a node.
NODE_MEMORIES = 4
_L2M = 1
#: Most commands whose bytes are cached for the next field.
_MOST_LINES = 1 << 16
#: Block type of a compiled model's command streams, by engine.
_STREAM_BLOCKS = {"TIU": BlockType.DES_BDC, "GDMA": BlockType.DES_GDMA, "SDMA": BlockType.DES_SDMA}


# -- attaching ----------------------------------------------------------------


def attach_registers(core: CoreData, chip: Chip) -> None:
    """Set the register offsets of commands from nodes: of DYN_EXTRA records and DES blocks."""
    nodes = core.nodes
    if nodes is None:
        return
    lists = [*nodes.engines.values(), *nodes.ports.values()]
    if nodes.nodes_set and core.mode == 2:
        offsets, sizes = _extra_ranges(core)
        surplus = len(offsets) - nodes.nodes_set
        if surplus:
            what, done = f"{surplus} detail records (DYN_EXTRA) belong to no command.", "The last ones were ignored."
            if surplus < 0:
                what = f"{-surplus} commands have no detail record (DYN_EXTRA)."
                done = "They are shown by their condensed node."
            last = max(block.offset + block.length for block in core.blocks if block.kind == BlockType.DYN_EXTRA)
            core.report.error(what, done, offset=last)
        absent = np.full(max(0, nodes.nodes_set - len(offsets)) + 1, -1, np.int64)
        offsets, sizes = np.concatenate([offsets, absent]), np.concatenate([sizes, absent.astype(np.int32)])
        for commands in lists:
            if len(commands):
                commands.register_offset, commands.register_size = offsets[commands.extra], sizes[commands.extra]
    if nodes.des_nodes:
        _attach_blocks(core, chip)


def _extra_ranges(core: CoreData) -> tuple[I64, I32]:
    """Offset in the file and length (bytes) of the content of each DYN_EXTRA record, over all blocks."""
    from .streams import split_extras  # only captures with registers need it

    parts, lengths = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
    for payload, offset in zip(*core.payloads(BlockType.DYN_EXTRA), strict=True):
        records = split_extras(payload)
        parts.append(records.offsets + offset)
        lengths.append(records.lengths)
        for position, reason, count in records.problems:
            core.report.error(f"Detail records (DYN_EXTRA): {reason}.", "Their intact part is used.",
                              offset=offset + position, count=count)  # fmt: skip
    return np.concatenate(parts), np.concatenate(lengths)


def _attach_blocks(core: CoreData, chip: Chip) -> None:
    from .streams import walk  # only captures with registers need it

    assert core.nodes is not None
    for block in core.blocks:
        if block.kind == BlockType.DES_KV and block.length < _KV_HEADER:
            what = "A keyed command block is too short for its header."
            core.report.error(what, "It was ignored.", offset=block.offset)
    blocks = keyed_blocks(core)
    of_ports = any(block.kind == BlockType.DES_CDMA for block in core.blocks)
    walked: dict[tuple[str, int, int], CommandStream] = {}
    lost = 0
    for node in core.nodes.des_nodes:
        commands = core.nodes.ports[node.port] if node.engine == "CDMA" else core.nodes.engines[node.engine]
        if commands.register_offset is None or commands.register_size is None:
            commands.register_offset = np.full(len(commands), -1, np.int64)
            commands.register_size = np.zeros(len(commands), np.int32)
        key = (family_of(node.engine), node.key, node.count)
        bounds = blocks.get(key[1:])
        if node.stream < 0 and bounds is None:
            lost += not (node.engine == "CDMA" and of_ports)
            continue
        if node.stream < 0 and bounds is not None and key not in walked:
            first, last = bounds
            stream = walk(chip, node.engine, core.data[first:last])
            walked[key] = replace(stream, offsets=stream.offsets + first)
            if len(stream) < node.count:
                core.report.error(f"A block of {node.count} pre-built commands (DES) holds {len(stream)}.",
                                  "The others are shown as unknown.", offset=first - _KV_HEADER)  # fmt: skip
        part = walked[key] if node.stream < 0 else core.streams[node.engine][node.stream]
        count = min(node.count, len(part))
        rows = slice(node.first, node.first + count)
        commands.register_offset[rows], commands.register_size[rows] = part.offsets[:count], part.lengths[:count]
    if lost:
        core.report.warning("Pre-built command blocks (DES) whose commands were not captured.",
                            "Their instructions are shown as unknown under the kernel function they have.",
                            count=lost)  # fmt: skip


def keyed_blocks(core: CoreData) -> dict[tuple[int, int], tuple[int, int]]:
    """Begin and end offset of each keyed command stream by (key, number of commands); a later block replaces."""
    result: dict[tuple[int, int], tuple[int, int]] = {}
    for block in core.blocks:
        if block.kind == BlockType.DES_KV and block.length >= _KV_HEADER:
            key, count, _ = core.data[block.offset : block.offset + _KV_HEADER].view("<u4").tolist()
            result[(key, count)] = (block.offset + _KV_HEADER, block.offset + block.length)
    return result


def model_streams(core: CoreData, chip: Chip, engine: str) -> list[CommandStream]:
    """Streams of a bmodel for an engine, in file order; offsets are those in the file."""
    from .streams import walk  # only captures with registers need it

    result = []
    by_content: dict[bytes, CommandStream] = {}  # launches often repeat byte by byte
    for payload, offset in zip(*core.payloads(_STREAM_BLOCKS[engine]), strict=True):
        content = payload.tobytes()
        if content not in by_content:
            by_content[content] = walk(chip, engine, payload)
        result.append(replace(by_content[content], offsets=by_content[content].offsets + offset))
    return result


def block_commands(streams: Sequence[CommandStream]) -> Commands | None:
    """Commands of a bmodel's streams for an engine, numbered from 0 in each; None without any."""
    counts = np.array([len(stream) for stream in streams], np.int64)
    if not counts.any():
        return None
    offsets, lengths = (np.concatenate([getattr(each, name) for each in streams]) for name in ("offsets", "lengths"))
    none, mode = np.full(len(offsets), -1, np.int32), np.full(len(offsets), Mode.NONE, np.int8)
    # all engines have one stream per subnet, so stream numbers order commands across engines
    numbers = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    word = np.zeros(len(offsets), np.uint32)
    return Commands(word, positions_in_runs(counts), none, none, mode, numbers, none, none, offsets, lengths)


# -- decoding -----------------------------------------------------------------


class LaneRegisters(Struct):
    """Registers of a lane's commands, decoded on demand."""

    chip: Chip
    engine: str
    data: Bytes  #: Bytes that contain the commands
    offset: I64  #: First byte of each row's command; -1 without one
    size: I32  #: Number of bytes from there on that belong to the command
    operation: I16  #: Operation index of each row; -1 without one or where it cannot be decoded
    function: I8  #: Function code of each row
    #: Packed source and destination memory of each row, if they do not fit into nodes; else None.
    memories: U8 | None = None
    #: Mask of the rows whose figures and exported files use their node despite registers (see `decode_lane`); None for
    #: no row.
    by_node: Bools | None = None
    #: Rows whose node has another type code than their registers.
    type_mismatches: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    #: Rows whose registers have a data type that the chip does not know.
    unknown_formats: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    _last: tuple[int, Rows, Bytes] | None = None

    def encoded(self, rows: Rows) -> EncodedCommands:
        """Commands of some rows as bytes."""
        return EncodedCommands(self.chip, self.engine, self.data, self.offset[rows], self.operation[rows])

    def operations(self, rows: Rows) -> I16:
        """Operation index of each row's command; -1 without registers, and where exported files use the node."""
        result: I16 = self.operation[rows]
        return result if self.by_node is None else np.where(self.by_node[rows], np.int16(-1), result)

    def decoded_mask(self, rows: Rows) -> Bools:
        """Mask of the rows whose figures follow the rule for decoded commands."""
        return self.operations(rows) >= 0

    def operation_of(self, row: int) -> int:
        """Operation index of one row's command, regardless of ``by_node``; -1 without registers."""
        return int(self.operation[row])

    def field_names(self, operation: int) -> tuple[str, ...]:
        """Names of an operation's fields, in register order; repeated reserved ones once."""
        operations = command_table(self.chip, self.engine).operations
        return tuple(dict.fromkeys(field.name for field in operations[operation].fields))

    def field(self, operation: int, name: str, rows: Rows) -> I64:
        """Values of one field for rows that all have ``operation``."""
        lines = self._lines(operation, rows)
        if lines is not None:
            # uint64 where a field has 64 bits
            return field_of_lines(command_table(self.chip, self.engine), lines, operation, name)  # type: ignore[return-value]
        return self.encoded(rows).field(name)[0]  # type: ignore[return-value]

    def _lines(self, operation: int, rows: Rows) -> Bytes | None:
        """Bytes of commands that all have ``operation``, (rows, bytes); None if operations differ or rows are too many.

        Fields of the same rows are usually read one after the other, so the last result is cached. Callers must not
        change an array of rows afterwards.
        """
        if self._last is not None:
            known, same, lines = self._last
            same_slice = isinstance(same, slice) and isinstance(rows, slice) and same == rows
            if known == operation and (same is rows or same_slice):
                return lines
        operations = self.operation[rows]
        if operation < 0 or not 0 < len(operations) <= _MOST_LINES or not bool((operations == operation).all()):
            return None
        lines = commands_of_one_kind(self.encoded(rows), operation)
        self._last = operation, rows, lines
        return lines

    def raw(self, row: int) -> bytes:
        """Raw bytes of the command; empty without registers."""
        operation, offset = int(self.operation[row]), int(self.offset[row])
        if offset < 0:
            return b""
        size = command_table(self.chip, self.engine).steps[operation] if operation >= 0 else 0
        return self.data[offset : offset + (int(size) or min(int(self.size[row]), _MOST_RAW))].tobytes()

    def unexplained(self, row: int) -> bytes:
        """Raw bytes of the command if not all of its fields are known; empty if they are."""
        operation = int(self.operation[row])
        known = operation >= 0 and not command_table(self.chip, self.engine).operations[operation].partial
        return b"" if known else self.raw(row)

    def texts(self) -> tuple[I16, I32, list[str], list[str]]:
        """Distinct keys of operation and function, each row's index among them (-1: none), their types and names."""
        return self._texts_of(self.operation >= 0)

    def partial_texts(self) -> tuple[I32, list[str], list[str]] | None:
        """Like `texts` without the keys, for partly known commands only; None where the lane has none."""
        partial = _partial_mask(self.chip, self.engine, self.operation)
        if partial is None:
            return None
        keys, codes, types, functions = self._texts_of(partial)
        operations = command_table(self.chip, self.engine).operations
        stems = [operations[key >> 5].name.lower().replace("_", ".") for key in keys.tolist()]
        rests = [text.removeprefix(stem).strip(".") for text, stem in zip(functions, stems, strict=True)]
        return codes, types, [f"{name} {rest}".rstrip() for name, rest in zip(types, rests, strict=True)]

    def _texts_of(self, which: Bools) -> tuple[I16, I32, list[str], list[str]]:
        rows = np.flatnonzero(which)
        operation, function = self.operation[rows].astype(np.int64), self.function[rows].astype(np.int64)
        keys, places = distinct(operation << 5 | function & 0x1F)
        codes = np.full(len(which), -1, np.int32)
        codes[rows] = places
        operations = command_table(self.chip, self.engine).operations
        pairs = [(operations[key >> 5], key & 0x1F) for key in keys.tolist()]
        types, names = [each.name for each, _ in pairs], [each.function_text(code) for each, code in pairs]
        return keys.astype(np.int16), codes, types, names


def decode_lane(chip: Chip, engine: str, data: Bytes, commands: Commands) -> LaneRegisters | None:
    """Decode what views need of every command of a lane; sets node words made from the registers in ``commands``.

    Two kinds of commands keep the word of their node: CDMA's, which files export in condensed form as published, and
    those whose registers are only partly known.

    Returns:
        None where no command has registers.
    """
    offset = commands.register_offset
    if offset is None or not bool((offset >= 0).any()):
        return None
    size = np.zeros(len(commands), np.int32) if commands.register_size is None else commands.register_size
    encoded = EncodedCommands.of(chip, engine, data, offset, size)
    operation = encoded.operations
    types, functions = encoded.codes()
    decoded = operation >= 0
    partial = _partial_mask(chip, engine, operation)
    by_node = commands.word != 0 if family_of(engine) == "cdma" else partial
    if by_node is not None:
        decoded &= ~by_node | (commands.word == 0)
    word = (types & 31) << 10 | (functions & 31) << 15
    memories: U8 | None = None
    unknown_formats = np.zeros(0, np.int64)
    if family_of(engine) != "tiu":
        source, target = (memories_of(chip, each) for each in encoded.addresses())
        if max(chip.memory_of_address.codes) >= NODE_MEMORIES or partial is not None:
            if partial is not None:
                source, target = (np.where(partial, UNKNOWN_MEMORY, each) for each in (source, target))
            old = commands.word >> np.uint32(24)
            memories = old & np.uint32(3) | (old >> np.uint32(2) & np.uint32(3)) << np.uint32(MEMORY_BITS)
            memories = np.where(decoded, source | target << MEMORY_BITS, memories).astype(np.uint8)
        kind, missing = encoded.field("src_data_format")
        unknown_formats = np.flatnonzero(decoded & ~missing & (kind.astype(np.int64) & 15 >= len(chip.data_types)))
        word |= np.where(missing, NO_FORMAT, kind.astype(np.int64) & 15) << 20
        # memories without a code in nodes count as L2M
        source, target = (np.where(each < NODE_MEMORIES, each, _L2M) for each in (source, target))
        word |= source << 24 | target << 26
    node = (commands.word >> np.uint32(10)).astype(np.int64) & 31
    type_mismatches = np.flatnonzero(decoded & (commands.mode == Mode.TDI) & (node != types & 31))
    commands.word = np.where(decoded, (word | 1).astype(np.uint32), commands.word)
    return LaneRegisters(chip, engine, data, offset, size, operation, functions.astype(np.int8), memories, by_node,
                         type_mismatches, unknown_formats)  # fmt: skip


def _partial_mask(chip: Chip, engine: str, operation: I16) -> Bools | None:
    """Mask of the commands of which only some fields are known; None where the lane has none."""
    partial = [index for index, each in enumerate(command_table(chip, engine).operations) if each.partial]
    mask = np.isin(operation, partial) if partial else None
    return mask if mask is not None and mask.any() else None


# Dependencies in registers: the command id that a command waits for, and the message of a send or wait.
#
# The bit fields are chip data (``messages`` and ``dependencies`` of the chip files): a wait contains a message id and
# the number of sends that release it; a send contains the id and the number of waits that the message serves.
# ``cmd_id_dep`` is the Cmd Id of a command of the other engine (GDMA's for TIU, TIU's for GDMA), counted from 1 since
# the last id reset; 0 means none. On AKS and AKSV a bit above the id enables it: compiled streams set it in every
# computing and every moving command, but not in sends, waits and ends, which may contain an id nevertheless. On BM1688
# and CV84X6 bits above TIU's id select the engine of that command; the values are not documented in public.
#
# SDMA's field has the same bits as GDMA's, but none for the engine that its id refers to, so it is shown as it is.
# CDMA's sends and waits contain a 64-bit constant whose encoding of a message is not public; it is shown as it is, too.

#: Mask of the register bits that an int64 column can hold.
_WIDEST = (1 << 63) - 1
#: Engines with a documented dependency field; the engine that SDMA's refers to is not public.
_DEPENDENT = ("TIU", "GDMA")


class Message(Struct, frozen=True):
    """Message of a send or wait command."""

    id: int
    count: int


def message_in(chip: Chip, engine: str, values: Mapping[str, int]) -> Message | None:
    """Message of a send or wait, from the registers of one command; None where they contain none."""
    rule = chip.messages.get(family_of(engine))
    if rule is None or rule.field not in values:
        return None
    value = values[rule.field]
    return Message(value & (1 << rule.id_bits) - 1, value >> rule.count_bit & (1 << rule.count_bits) - 1)


def dependency_in(chip: Chip, engine: str, values: Mapping[str, int]) -> int:
    """Cmd Id of the other engine's command that a command waits for; 0 without one."""
    return int(depended_on(chip, engine, np.array([values.get("cmd_id_dep", 0)], np.int64))[0])


def depended_on(chip: Chip, engine: str, values: I64) -> I64:
    """Cmd Id of the other engine's command in each dependency register; 0 without one."""
    rule = chip.dependencies.get(family_of(engine))
    if rule is None or engine not in _DEPENDENT:
        return np.zeros(values.shape, np.int64)
    ids = values & (1 << rule.id_bits) - 1
    used = np.ones(values.shape, np.bool_) if rule.enable_bit is None else values >> rule.enable_bit & 1 == 1
    return np.where(used, ids, 0)


def message_columns(chip: Chip, registers: LaneRegisters) -> dict[str, LazyColumn]:
    """Columns of the dependencies and messages of a lane's commands."""
    family = family_of(registers.engine)
    system = command_table(chip, registers.engine).end.operation
    carries_message = np.zeros(32, np.bool_)
    carries_message[[*chip.send_functions[family], *chip.wait_functions[family]]] = True

    def dependency(rows: Rows) -> I64:
        values, missing = registers.encoded(rows).field("cmd_id_dep")
        return np.where(missing, INT_MISSING, values.astype(np.int64))

    def message_word(rows: Rows) -> I64:
        encoded, function = registers.encoded(rows), registers.function[rows].astype(np.int64) & 31
        selected = np.flatnonzero((encoded.operations == system) & carries_message[function])
        result = np.full(len(function), INT_MISSING)
        result[selected] = encoded.take(selected).field(chip.messages[family].field)[0].astype(np.int64) & _WIDEST
        return result

    def derived(source: LazyColumn, extract: Callable[[I64], I64]) -> LazyColumn:
        def values(rows: Rows) -> I64:
            words = source(rows)
            return np.where(words == INT_MISSING, INT_MISSING, extract(words))

        return values

    depends, message = cache_last_slice(dependency), cache_last_slice(message_word)
    columns: dict[str, LazyColumn] = {
        "dependency": derived(depends, lambda words: words),
        "depends_on": derived(depends, lambda words: depended_on(chip, registers.engine, words)),
    }
    if registers.engine in _DEPENDENT and chip.dependencies[family].enable_bit is None:
        columns["depends_engine"] = derived(depends, lambda words: words >> chip.dependencies[family].id_bits)
    rule = chip.messages.get(family)
    if rule is not None:
        ids, first, counts = (1 << rule.id_bits) - 1, rule.count_bit, (1 << rule.count_bits) - 1
        columns["message"] = derived(message, lambda values: values & ids)
        columns["message_count"] = derived(message, lambda values: values >> first & counts)
        columns["message_destination"] = derived(message, lambda values: values & ~(ids | counts << first))
    return columns
