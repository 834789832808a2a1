"""Command streams: the blocks DES nodes point to, and the streams of a compiled model."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from .chips import CDMA, GDMA, SDMA, TIU, Chip
from .program import STATIC, Program
from .registers import command_bytes

BLOCK_DES = {TIU: 13, GDMA: 14, SDMA: 15, CDMA: 16}
BLOCK_KV = 17
#: Zeros after the end command of a compiled stream.
_PADDING = bytes(48)


def block_key(program: int, engine: int, slot: int = 0) -> int:
    """Key of a program's block for one engine (or one of its CDMA ports), unique in a capture."""
    return 0x40 * (4 * program + engine + 1) + slot


def engine_stream(program: Program, engine: int, slot: int = 0) -> tuple[int, bytes]:
    """How many commands of an engine (or for one of its CDMA ports) a program has, and their registers in order."""
    rows = [number for number, row in enumerate(program.rows) if row.engine == engine and row.slot == slot]
    return len(rows), b"".join(command_bytes(program, number) for number in rows)


def keyed_blocks(number: int, program: Program) -> Iterator[bytes]:
    """BLOCK_DES_KV payloads of a program, one per engine and CDMA port."""
    for engine, slot in (*((engine, 0) for engine in program.engines), *((CDMA, n) for n in range(program.slots))):
        count, stream = engine_stream(program, engine, slot)
        key = block_key(number, engine, slot)
        yield struct.pack("<III", key, count, number) + stream


def idle_stream(chip: Chip) -> Iterator[tuple[int, bytes]]:
    """Block type and payload of an SDMA stream that only ends, and that no core runs."""
    program = Program("", chip, STATIC)
    program.nop(SDMA, "dma_end")
    yield from model_blocks(program)


def model_blocks(program: Program) -> Iterator[tuple[int, bytes]]:
    """Block type and payload of a subnet, one per engine and one per CDMA port."""
    for engine in program.engines:
        yield BLOCK_DES[engine], engine_stream(program, engine)[1] + _PADDING
    for slot in range(program.slots):
        yield BLOCK_DES[CDMA], engine_stream(program, CDMA, slot)[1] + _PADDING
