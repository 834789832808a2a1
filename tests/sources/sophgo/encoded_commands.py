"""Commands made of random registers, and packed as in a capture."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tpuprof_tui.sources.sophgo.chips.chip import Chip, chip_by_name
from tpuprof_tui.sources.sophgo.chips.commands import CommandTable, Operation


def the(name: str) -> Chip:
    chip = chip_by_name(name)
    assert chip is not None
    return chip


def index_of(table: CommandTable, name: str) -> int:
    """Index of the operation ``name``, of which a table has one."""
    (found,) = (index for index, operation in enumerate(table.operations) if operation.name == name)
    return found


def with_header(table: CommandTable, operation: Operation, function: int, short: bool, value: int) -> int:
    """``value`` with the header bits that select ``operation``."""

    def put(value: int, first: int, width: int, part: int) -> int:
        return value & ~(((1 << width) - 1) << first) | part << first

    value = put(value, table.opcode_bit, table.opcode_width, operation.opcode)
    value = put(value, table.opcode_bit + table.opcode_width, operation.function_width, function)
    if table.short_bit is not None:
        value = put(value, table.short_bit, 1, int(short if operation.short is None else operation.short))
    return value


def random_command(draw: random.Random, table: CommandTable, operation: Operation, function: int) -> bytes:
    value = with_header(table, operation, function, draw.random() < 0.5, draw.getrandbits(operation.size * 8))
    return value.to_bytes(operation.size, "little")


def packed(
    commands_: list[bytes], gap: int = 0
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    buffer = bytearray()
    offsets = []
    for data in commands_:
        buffer += bytes(gap)
        offsets.append(len(buffer))
        buffer += data
    lengths = np.array([len(data) for data in commands_], np.int64)
    return np.frombuffer(bytes(buffer), np.uint8), np.array(offsets, np.int64), lengths
