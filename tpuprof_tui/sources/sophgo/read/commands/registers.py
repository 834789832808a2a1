"""Decodes register fields of commands: all fields of one command, or one field of many commands.

Commands are kept as raw bytes, of which what is requested is decoded. Engines may be given as engine (``GDMA``) or
family (``dma``) in either case. Nothing here raises on bad data or reads outside its buffer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from ...chips.chip import Chip
from ...chips.commands import HEADER_BYTES, CommandTable, Operation, command_table, has_commands
from ..arrays import I16, I64, Bools, Bytes

Values = I64 | NDArray[np.uint64]

LOW_ADDRESS_BITS = 32


class DecodedCommand(Struct, frozen=True):
    """One decoded command: its operation, the function code of its header, and values by field name.

    A repeated (reserved) name keeps its first position and its last value.
    """

    operation: Operation
    function: int
    values: dict[str, int]

    @property
    def function_text(self) -> str:
        """Name of the function in the operation's own table."""
        return self.operation.function_text(self.function)


def decode(chip: Chip, engine: str, data: bytes) -> DecodedCommand | None:
    """The command at the start of ``data``, ignoring what follows it; None where it cannot be decoded."""
    found = EncodedCommands.of(chip, engine, as_buffer(data), np.zeros(1, np.int64))
    if found.operations[0] < 0:
        return None
    operation = command_table(chip, engine).operations[found.operations[0]]
    value = int.from_bytes(data[: operation.size], "little")
    return DecodedCommand(operation, int(found.codes()[1][0]), {bits.name: bits.of(value) for bits in operation.fields})


def as_buffer(data: bytes | bytearray | memoryview | Bytes) -> Bytes:
    """``data`` as a contiguous uint8 array, as `EncodedCommands` requires."""
    return np.ascontiguousarray(np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else data)


class EncodedCommands(Struct, frozen=True, eq=False):
    """Commands of one engine as bytes; arrays of one shape."""

    chip: Chip
    engine: str
    data: Bytes  #: Contiguous bytes that contain the commands
    offsets: I64  #: First byte of each, any values
    operations: I16  #: Index of each among the operations of `command_table`; -1 where it cannot be decoded

    @staticmethod
    def of(
        chip: Chip, engine: str, data: Bytes, offsets: I64, lengths: NDArray[np.integer[Any]] | None = None
    ) -> EncodedCommands:
        """Commands with the operations that their headers select.

        ``lengths``: bytes of each command; without them a command may extend to the end of the data.
        """
        operations = np.full(offsets.shape, -1, np.int16)
        if has_commands(chip, engine):
            table = command_table(chip, engine)
            available = len(data) - offsets if lengths is None else np.minimum(lengths, len(data) - offsets)
            readable = np.flatnonzero((offsets >= 0) & (available >= HEADER_BYTES))
            found = table.selection[table.selection_keys(_words_at(data, offsets[readable]))]
            sizes = table.sizes[found]
            operations[readable] = np.where((sizes > 0) & (sizes <= available[readable]), found, -1)
        return EncodedCommands(chip, engine, data, offsets, operations)

    def take(self, rows: Any) -> EncodedCommands:
        """Some of them."""
        return replace(self, offsets=self.offsets[rows], operations=self.operations[rows])

    def field(self, name: str) -> tuple[Values, Bools]:
        """Values of one field, named without prefix, and a mask of the commands without it.

        Values are 0 where missing, int64; uint64 for fields that have 64 bits in some operation.
        """
        data, offsets, ops = self.data, self.offsets, self.operations
        table = command_table(self.chip, self.engine) if has_commands(self.chip, self.engine) else None
        position = None if table is None else table.position(name)
        if table is None or position is None or len(data) < HEADER_BYTES:
            return np.zeros(offsets.shape, np.int64), np.ones(offsets.shape, np.bool_)
        missing = (position.mask[ops] == 0) | (offsets < 0) | (offsets > len(data) - table.sizes[ops])
        starts = np.where(missing, 0, offsets + position.byte[ops])
        values = _words_at(data, starts) >> position.shift[ops]
        spill = position.spill[ops]
        spilled = np.flatnonzero((spill > 0) & ~missing)
        if len(spilled):
            ninth = data[starts[spilled] + HEADER_BYTES].astype(np.uint64)
            values[spilled] |= ninth << (np.uint64(64) - position.shift[ops[spilled]])
        values &= np.where(missing, np.uint64(0), position.mask[ops])
        return (values, missing) if position.wide else (values.astype(np.int64), missing)

    def codes(self) -> tuple[I64, I64]:
        """Type and function codes, from the headers; -1 where the operation is not known.

        They are the condensed codes (``cmd_type``, ``cmd_special_function``; ``tsk_typ``, ``tsk_eu_typ``), also for
        layouts that have no such field or repeat another engine's header.
        """
        data, offsets, ops = self.data, self.offsets, self.operations
        types, functions = np.full(offsets.shape, -1, np.int64), np.full(offsets.shape, -1, np.int64)
        rows = np.flatnonzero((ops >= 0) & (offsets >= 0) & (offsets <= len(data) - HEADER_BYTES))
        if len(rows):
            table = command_table(self.chip, self.engine)
            codes = table.selection_keys(_words_at(data, offsets[rows])) >> 1
            types[rows] = codes & (1 << table.opcode_width) - 1
            functions[rows] = codes >> table.opcode_width & table.function_masks[ops[rows]]
        return types, functions

    def addresses(self) -> tuple[I64, I64]:
        """Source and destination addresses: high part << 32 | low part, missing parts count as 0.

        As in the reference, only high parts of the chip's usual width count: CDMA layouts that name theirs ``h8`` on
        chips with 13 bits keep the low part alone.
        """

        def address(side: str) -> I64:
            low, high = (self.field(name)[0].astype(np.int64) for name in address_fields(self.chip, side))
            return high << LOW_ADDRESS_BITS | low

        return address("src"), address("dst")


def commands_of_one_kind(encoded: EncodedCommands, operation: int) -> Bytes:
    """Bytes of commands that all have one operation, shape (commands, size); all of them must be inside the data."""
    data, size = encoded.data, int(command_table(encoded.chip, encoded.engine).sizes[operation])
    command_bytes = np.dtype((np.void, size))
    windows: NDArray[Any] = np.ndarray((len(data) - size + 1,), command_bytes, data.data, 0, (1,))
    lines: Bytes = windows[encoded.offsets].view(np.uint8).reshape(len(encoded.offsets), size)
    return lines


def field_of_lines(table: CommandTable, lines: Bytes, operation: int, name: str) -> Values:
    """Values of one field of the bytes from `commands_of_one_kind`; zeros where the operation has no such field."""
    position = table.position(name)
    if position is None or not position.mask[operation]:
        return np.zeros(len(lines), np.int64)
    first = int(position.byte[operation])
    words: NDArray[np.uint64] = lines[:, first : first + HEADER_BYTES].view("<u8")[:, 0]
    values: NDArray[np.uint64] = words >> position.shift[operation]
    if position.spill[operation]:
        ninth = lines[:, first + HEADER_BYTES].astype(np.uint64)
        values |= ninth << (np.uint64(64) - position.shift[operation])
    values &= position.mask[operation]
    return values if position.wide else values.astype(np.int64)


def _words_at(buffer: Bytes, starts: I64) -> NDArray[np.uint64]:
    """Eight bytes at each position as one little-endian integer; each position must be followed by eight bytes."""
    if not len(starts):
        return np.zeros(starts.shape, np.uint64)
    windows: NDArray[np.uint64] = np.ndarray((len(buffer) - 7,), "<u8", buffer.data, 0, (1,))
    return windows[starts]


def address_fields(chip: Chip, side: str) -> tuple[str, str]:
    """Names of the low and the high part of the ``src`` or ``dst`` address."""
    return f"{side}_start_addr_l32", f"{side}_start_addr_h{chip.memory_of_address.high_bits}"


def memories_of(chip: Chip, addresses: I64) -> I64:
    """Memory code of each address, by its tag and the chip's address windows."""
    rule = chip.memory_of_address
    tags = addresses >> rule.tag_bit
    memories = np.full(addresses.shape, rule.other, np.int64)
    inside = addresses & (1 << rule.tag_bit) - 1
    for first, size, memory in rule.windows:
        memories[(inside >= first) & (inside < first + size)] = memory
    for tag, memory in rule.tags.items():
        memories[tags == tag] = memory
    return memories


def memory_text(chip: Chip, address: int) -> str:
    """Name of the memory of an address."""
    return chip.memories[int(memories_of(chip, np.array([address], np.int64))[0])]
