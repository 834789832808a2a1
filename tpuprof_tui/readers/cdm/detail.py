"""Commands whose registers are known: attached to the node stream, and decoded for the lanes on demand.

A command's registers stay the bytes they came as. What is settled when a capture is opened is only what every view
needs of every command: which operation it is, and for transfers which memories and data type.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...model.lane import Rows
from .blocks import BlockType
from .chips import Chip, family_of
from .chips.commands import command_table
from .commands import Commands, Mode
from .core_data import CoreData
from .registers import (
    addresses_of_many,
    codes_of_many,
    commands_of_one_kind,
    field_of_lines,
    field_of_many,
    memories_of,
    operation_keys,
    operation_texts,
    select_many,
)
from .source import Bytes

I64 = npt.NDArray[np.int64]
I16 = npt.NDArray[np.int16]

_KV_HEADER = 12
#: Bits of a memory code where source and destination are packed into one place.
PLACE_BITS = 3
#: Memory codes that a node's two bits can hold.
NODE_MEMORIES = 4
_L2M = 1
#: Commands whose bytes are kept for the next field.
_MOST_LINES = 1 << 16
#: Blocks of ready-made command streams, by engine.
_STREAM_BLOCKS = {"TIU": BlockType.DES_BDC, "GDMA": BlockType.DES_GDMA, "SDMA": BlockType.DES_SDMA}


# -- attaching ----------------------------------------------------------------


def attach_registers(core: CoreData, chip: Chip) -> None:
    """Give the commands of a core's nodes the places of their registers: DYN_EXTRA records and DES blocks."""
    nodes = core.nodes
    if nodes is None:
        return
    lists = [*nodes.engines.values()]  # CDMA nodes stay condensed, as published
    if nodes.nodes_set and core.mode == 2:
        places = _extra_places(core)
        if len(places) < nodes.nodes_set:
            core.report.error(f"{nodes.nodes_set - len(places)} commands have no detail record (DYN_EXTRA).",
                              "They are shown by their condensed node.", file=core.file, core=core.core)  # fmt: skip
        padded = np.concatenate([places, np.full(max(0, nodes.nodes_set - len(places)) + 1, -1, np.int64)])
        for commands in lists:
            if len(commands):
                commands.register = padded[commands.extra]
    if nodes.des_nodes:
        _attach_blocks(core, chip)


def _extra_places(core: CoreData) -> I64:
    """Offset in the file of the content of each DYN_EXTRA record, over all blocks."""
    from .streams import split_extras  # only captures with registers need it

    parts: list[I64] = []
    payloads, offsets = core.payloads(BlockType.DYN_EXTRA)
    for payload, offset in zip(payloads, offsets, strict=True):
        records = split_extras(payload)
        parts.append(records.offsets + offset)
        for place, reason, count in records.problems:
            core.report.error(f"Detail records (DYN_EXTRA): {reason}.", "What is sound of them is used.",
                              file=core.file, offset=offset + place, core=core.core, count=count)  # fmt: skip
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _attach_blocks(core: CoreData, chip: Chip) -> None:
    from .streams import walk  # only captures with registers need it

    assert core.nodes is not None
    blocks = _keyed_blocks(core)
    walked: dict[tuple[str, int, int], I64] = {}
    lost = 0
    for node in core.nodes.des_nodes:
        commands = core.nodes.ports[node.port] if node.engine == "CDMA" else core.nodes.engines[node.engine]
        if commands.register is None:
            commands.register = np.full(len(commands), -1, np.int64)
        block = blocks.get((node.key, node.count))
        if block is None:
            lost += 1
            continue
        key = (family_of(node.engine), node.key, node.count)
        if key not in walked:
            first, last = block
            walked[key] = walk(chip, node.engine, core.data[first:last]).offsets + first
        places = walked[key][: node.count]
        commands.register[node.first : node.first + len(places)] = places
    if lost:
        core.report.warning("Pre-built command blocks (DES) whose commands were not captured.",
                            "Their instructions are shown as unknown under the kernel function they have.",
                            file=core.file, core=core.core, count=lost)  # fmt: skip


def _keyed_blocks(core: CoreData) -> dict[tuple[int, int], tuple[int, int]]:
    """First and last byte of each keyed command stream by (key, number of commands); a later block replaces."""
    result: dict[tuple[int, int], tuple[int, int]] = {}
    for block in core.blocks:
        if block.kind != BlockType.DES_KV:
            continue
        if block.length < _KV_HEADER:
            core.report.error("A keyed command block is too short for its header.", "It was ignored.",
                              file=core.file, offset=block.offset, core=core.core)  # fmt: skip
            continue
        key, count, _ = core.data[block.offset : block.offset + _KV_HEADER].view("<u4").tolist()
        result[(key, count)] = (block.offset + _KV_HEADER, block.offset + block.length)
    return result


def block_commands(core: CoreData, chip: Chip, engine: str) -> Commands | None:
    """Commands of the streams a bmodel carries for an engine, numbered from 0 in each; None without any."""
    from .streams import walk  # only captures with registers need it

    payloads, offsets = core.payloads(_STREAM_BLOCKS[engine])
    places = [walk(chip, engine, payload).offsets + offset for payload, offset in zip(payloads, offsets, strict=True)]
    count = sum(map(len, places))
    if not count:
        return None
    none = np.full(count, -1, np.int32)
    ids = np.concatenate([np.arange(len(part), dtype=np.int64) for part in places])
    # streams of all engines alternate subnet by subnet; their places in the file keep that order
    return Commands(np.zeros(count, np.uint32), ids, none, none, np.full(count, Mode.NONE, np.int8),
                    np.concatenate([np.full(len(part), number, np.int64) for number, part in enumerate(places)]),
                    none, none, np.concatenate(places))  # fmt: skip


# -- decoding -----------------------------------------------------------------


@dataclass
class Detail:
    """Registers of a lane's commands.

    Attributes:
        chip: Chip.
        engine: Engine of the lane.
        data: The bytes the commands lie in.
        offset: First byte of each row's command, -1 without one.
        operation: Operation index of each row, -1 without one or where it cannot be decoded.
        function: Function code of each row.
        places: Source and destination memory of each row, packed, where nodes could not hold them; else None.
    """

    chip: Chip
    engine: str
    data: Bytes
    offset: I64
    operation: I16
    function: npt.NDArray[np.int8]
    places: npt.NDArray[np.uint8] | None = None
    _last: tuple[int, Rows, Bytes] | None = field(default=None, repr=False)

    def operations(self, rows: Rows) -> I16:
        """Operation index of each row's command; -1 without registers."""
        return self.operation[rows]

    def operation_name(self, operation: int) -> str:
        """What an operation is called in the instruction set."""
        return command_table(self.chip, self.engine).operations[operation].name

    def field_names(self, operation: int) -> tuple[str, ...]:
        """Names of an operation's fields, in the order of the register; repeated reserved ones once."""
        names = dict.fromkeys(
            field.name for field in command_table(self.chip, self.engine).operations[operation].fields
        )
        return tuple(names)

    def field(self, operation: int, name: str, rows: Rows) -> I64:
        """Values of one field for rows that all have ``operation``."""
        lines = self._lines(operation, rows)
        if lines is not None:
            values = field_of_lines(self.chip, self.engine, lines, operation, name)
        else:
            own, offset = self.operation[rows], self.offset[rows]
            values, _ = field_of_many(self.chip, self.engine, self.data, offset, own, name)
        return values  # type: ignore[return-value]  # uint64 where a field has 64 bits

    def _lines(self, operation: int, rows: Rows) -> Bytes | None:
        """The commands of rows that all have ``operation``, a line each; None where they are not of one kind, or many.

        Fields of the same rows are asked for one after the other: the lines of the last rows are kept. Who asks for an
        array of rows does not change it afterwards.
        """
        last = self._last
        if last is not None and last[0] == operation and (last[1] is rows or _same_slice(last[1], rows)):
            return last[2]
        own = self.operation[rows]
        if operation < 0 or not 0 < len(own) <= _MOST_LINES or not bool((own == operation).all()):
            return None
        lines = commands_of_one_kind(self.chip, self.engine, self.data, self.offset[rows], operation)
        self._last = operation, rows, lines
        return lines

    def raw(self, row: int) -> bytes:
        """The command as it was captured; empty without registers."""
        operation, offset = int(self.operation[row]), int(self.offset[row])
        if offset < 0:
            return b""
        size = command_table(self.chip, self.engine).sizes[operation] if operation >= 0 else 64
        return self.data[offset : offset + int(size)].tobytes()

    def texts(self) -> tuple[I16, npt.NDArray[np.int32], list[str], list[str]]:
        """For TIU names: distinct keys, each row's place among them (-1 without), types and names of the keys."""
        keys = operation_keys(self.operation, self.function)
        keys[self.operation < 0] = -1
        present = np.bincount(keys[keys >= 0], minlength=1)
        distinct = np.flatnonzero(present)
        place = np.full(max(len(present), 1), -1, np.int32)
        place[distinct] = np.arange(len(distinct), dtype=np.int32)
        codes = np.where(keys >= 0, place[np.maximum(keys, 0)], -1).astype(np.int32)
        types, names = operation_texts(self.chip, self.engine, distinct)
        return distinct.astype(np.int16), codes, types, names


def _same_slice(first: Rows, second: Rows) -> bool:
    return isinstance(first, slice) and isinstance(second, slice) and first == second


def decode_lane(chip: Chip, engine: str, data: Bytes, commands: Commands) -> Detail | None:
    """What views need of every command of a lane; sets node words made from the registers in ``commands``.

    Returns:
        None where no command has registers.
    """
    offset = commands.register
    if offset is None or not bool((offset >= 0).any()):
        return None
    operation = select_many(chip, engine, data, offset)
    types, functions = codes_of_many(chip, engine, data, offset, operation)
    decoded = operation >= 0
    word = (types & 31) << 10 | (functions & 31) << 15
    places: npt.NDArray[np.uint8] | None = None
    if family_of(engine) != "tiu":
        source, target = (memories_of(chip, side) for side in addresses_of_many(chip, engine, data, offset, operation))
        if largest_memory(chip) >= NODE_MEMORIES:
            old = commands.word >> np.uint32(24)
            node = old & np.uint32(3) | (old >> np.uint32(2) & np.uint32(3)) << np.uint32(PLACE_BITS)
            places = np.where(decoded, source | target << PLACE_BITS, node).astype(np.uint8)
        kind, missing = field_of_many(chip, engine, data, offset, operation, "src_data_format")
        word |= np.where(missing, 15, kind.astype(np.int64) & 15) << 20 | _node_memories(source, target)
    commands.word = np.where(decoded, (word | 1).astype(np.uint32), commands.word)
    return Detail(chip, engine, data, offset, operation, functions.astype(np.int8), places)


def _node_memories(source: I64, target: I64) -> I64:
    """Memories as a node's extra bits hold them; those it has no code for count as L2M."""
    sides = [np.where(side < NODE_MEMORIES, side, _L2M) for side in (source, target)]
    return sides[0] << 24 | sides[1] << 26


def largest_memory(chip: Chip) -> int:
    """Largest memory code that an address of the chip can mean."""
    rule = chip.memory_of_address
    return max(rule.other, *rule.tags.values(), *(memory for _, _, memory in rule.windows))
