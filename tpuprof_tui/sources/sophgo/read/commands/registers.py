"""Decodes register fields of commands: all fields of one command, or one field of many commands.

Commands are kept as raw bytes; these functions decode what is requested. Engines may be given as engine (``GDMA``) or
family (``dma``) in either case. Nothing here raises on bad data or reads outside its buffer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...chips.chip import Chip
from ...chips.commands import HEADER_BYTES, CommandTable, Operation, command_table, has_commands
from ..arrays import I16, I64, Bools, Bytes

Values = I64 | NDArray[np.uint64]

LOW_ADDRESS_BITS = 32


class Command(Struct, frozen=True):
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


def decode(chip: Chip, engine: str, data: bytes) -> Command | None:
    """The command at the start of ``data``, ignoring what follows it; None where it cannot be decoded."""
    buffer, first = as_buffer(data), np.zeros(1, np.int64)
    found = select_many(chip, engine, buffer, first)
    if found[0] < 0:
        return None
    operation = command_table(chip, engine).operations[found[0]]
    value = int.from_bytes(data[: operation.size], "little")
    _, functions = codes_of_many(chip, engine, buffer, first, found)
    return Command(operation, int(functions[0]), {field.name: field.of(value) for field in operation.fields})


def as_buffer(data: bytes | bytearray | memoryview | Bytes) -> Bytes:
    """``data`` as a contiguous uint8 array, as the functions below require."""
    return np.ascontiguousarray(np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else data)


def select_many(
    chip: Chip, engine: str, buffer: Bytes, offsets: I64, lengths: NDArray[np.integer[Any]] | None = None
) -> I16:
    """Operation index of many commands; -1 for those that cannot be decoded.

    Args:
        buffer: Contiguous bytes that contain the commands.
        offsets: First byte of each command, any values; those outside the buffer give -1.
        lengths: Bytes of each command; without it a command may extend to the end of the buffer.

    Returns:
        Indices into ``command_table(chip, engine).operations``, shape of ``offsets``.
    """
    ops = np.full(offsets.shape, -1, np.int16)
    if not has_commands(chip, engine):
        return ops
    table = command_table(chip, engine)
    available = len(buffer) - offsets if lengths is None else np.minimum(lengths, len(buffer) - offsets)
    readable = np.flatnonzero((offsets >= 0) & (available >= HEADER_BYTES))
    found = table.selection[table.selection_keys(_words_at(buffer, offsets[readable]))]
    sizes = table.sizes[found]
    ops[readable] = np.where((sizes > 0) & (sizes <= available[readable]), found, -1)
    return ops


def field_of_many(
    chip: Chip, engine: str, buffer: Bytes, offsets: I64, ops: NDArray[np.integer[Any]], name: str
) -> tuple[Values, Bools]:
    """Values of one field of many commands, and a mask of the commands without that field.

    Args:
        buffer: Contiguous bytes that contain the commands.
        offsets: First byte of each command.
        ops: Operation index of each command, from `select_many`; -1 has no fields.
        name: Name of the field, without prefix.

    Returns:
        Values, 0 where missing (int64; uint64 for fields that have 64 bits in some operation), and the missing mask;
        both have the shape of ``offsets``.
    """
    position = command_table(chip, engine).position(name) if has_commands(chip, engine) else None
    if position is None or len(buffer) < HEADER_BYTES:
        return np.zeros(offsets.shape, np.int64), np.ones(offsets.shape, np.bool_)
    sizes = command_table(chip, engine).sizes[ops]
    missing = (position.mask[ops] == 0) | (offsets < 0) | (offsets > len(buffer) - sizes)
    starts = np.where(missing, 0, offsets + position.byte[ops])
    values = _words_at(buffer, starts) >> position.shift[ops]
    spill = position.spill[ops]
    spilled = np.flatnonzero((spill > 0) & ~missing)
    if len(spilled):
        ninth = buffer[starts[spilled] + HEADER_BYTES].astype(np.uint64)
        values[spilled] |= ninth << (np.uint64(64) - position.shift[ops[spilled]])
    values &= np.where(missing, np.uint64(0), position.mask[ops])
    return (values, missing) if position.wide else (values.astype(np.int64), missing)


def commands_of_one_kind(chip: Chip, engine: str, buffer: Bytes, offsets: I64, operation: int) -> Bytes:
    """Bytes of commands of one operation, shape (commands, size); all of them must be inside the buffer."""
    size = int(command_table(chip, engine).sizes[operation])
    command_bytes = np.dtype((np.void, size))
    windows: NDArray[Any] = np.ndarray((len(buffer) - size + 1,), command_bytes, buffer.data, 0, (1,))
    lines: Bytes = windows[offsets].view(np.uint8).reshape(len(offsets), size)
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


def codes_of_many(
    chip: Chip, engine: str, buffer: Bytes, offsets: I64, ops: NDArray[np.integer[Any]]
) -> tuple[I64, I64]:
    """Type and function codes of many commands, from their headers; -1 where ``ops`` is negative.

    They are the condensed codes (``cmd_type``, ``cmd_special_function``; ``tsk_typ``, ``tsk_eu_typ``), also for
    layouts that have no such field or repeat another engine's header.
    """
    types, functions = np.full(offsets.shape, -1, np.int64), np.full(offsets.shape, -1, np.int64)
    rows = np.flatnonzero((ops >= 0) & (offsets >= 0) & (offsets <= len(buffer) - HEADER_BYTES))
    if not len(rows):
        return types, functions
    table = command_table(chip, engine)
    codes = table.selection_keys(_words_at(buffer, offsets[rows])) >> 1
    types[rows] = codes & (1 << table.opcode_width) - 1
    functions[rows] = codes >> table.opcode_width & table.function_masks[ops[rows]]
    return types, functions


def addresses_of_many(
    chip: Chip, engine: str, buffer: Bytes, offsets: I64, ops: NDArray[np.integer[Any]]
) -> tuple[I64, I64]:
    """Source and destination addresses of many commands: high part << 32 | low part, missing parts count as 0.

    As in the reference, only high parts of the chip's usual width count: CDMA layouts that name theirs ``h8`` on
    chips with 13 bits keep the low part alone.
    """

    def address(side: str) -> I64:
        low, high = (
            field_of_many(chip, engine, buffer, offsets, ops, name)[0].astype(np.int64)
            for name in address_fields(chip, side)
        )
        return high << LOW_ADDRESS_BITS | low

    return address("src"), address("dst")


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
