"""Monitor records as the hardware writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from .chips import CDMA, GDMA, LMEM, SDMA, TIU, Chip
from .ops import OPS
from .streams import Stream

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
Columns = dict[str, I64]

#: Word 3 of a TIU record that marks a system command.
_TIU_SYSTEM = 2
_LOW = 0xFFFFFFFF
_CHUNK = 200_000


def monitor_chunks(
    stream: Stream,
    chip: Chip,
    catalogue: Columns,
    id_bits: int,
    begin: int = 0,
    end: int | None = None,
    *,
    marked: bool = True,
) -> Iterator[bytes]:
    """Records ``begin`` to ``end`` of a stream in dump order, some thousands at a time.

    ``marked``: TIU's records of system commands have a mark; else only that of an end has it, and most others 0.
    """
    order = stream.dumped()
    total = monitor_records(stream) if end is None else end
    size = chip.record_bytes[stream.engine]
    words = _conflict_words if chip.counts_conflicts and stream.engine == TIU else _WORDS[stream.engine, size]
    for first in range(begin, total, _CHUNK):
        last = min(first + _CHUNK, total)
        pick = slice(first, last) if isinstance(order, slice) else order[first:last]
        facts = {name: column[stream.row[pick]] for name, column in catalogue.items()}
        count = last - first
        table = np.zeros((count, size // 4), dtype="<u4")
        table[:, 0] = (stream.start[pick] + stream.offset) & _LOW
        table[:, 1] = (stream.end[pick] + stream.offset) & _LOW
        table[:, 2] = facts["id"] & ((1 << id_bits) - 1)
        words(table, facts, _noise(stream, first, count))
        if stream.engine == TIU and size == 16 and not marked:
            conflicts = np.where((facts["system"] == 0) & (table[:, 3] % 7 == 0), table[:, 3], 0)
            table[:, 3] = np.where(facts["op"] == OPS["tiu_end"].number, _TIU_SYSTEM, conflicts)
        yield table.tobytes()


def monitor_records(stream: Stream) -> int:
    """How many records the dump holds."""
    order = stream.dumped()
    return len(stream) if isinstance(order, slice) else len(order)


def _noise(stream: Stream, first: int, count: int) -> I64:
    """Small believable counter values, the same for the same place in the same stream."""
    seed = (stream.engine << 8 | stream.index) * 7919 + stream.offset
    mixed = (np.arange(first, first + count, dtype=np.uint64) + np.uint64(seed % (1 << 64))) * np.uint64(
        0x9E3779B97F4A7C15
    )
    noise: I64 = (mixed >> np.uint64(40)).astype(np.int64)
    return noise


def _tiu_words(table: U32, facts: Columns, noise: I64) -> None:
    # multiples of four: bank conflicts never look like the system mark
    table[:, 3] = np.where(facts["system"] != 0, _TIU_SYSTEM, noise % 96 * 4)


def _dma_words(table: U32, facts: Columns, noise: I64) -> None:
    """Counters of GDMA and SDMA: what lands in local memory and what goes over AXI."""
    work = facts["system"] == 0
    size = facts["bytes"]
    to_lmem, from_lmem = facts["dst"] == LMEM, facts["src"] == LMEM
    axi_write = np.where(work & ~to_lmem, size, 0)
    axi_read = np.where(work & ~from_lmem, size, 0)
    table[:, 3] = np.where(work, (noise % 320 << 20) | (noise % 311 << 1), 0)
    table[:, 4] = np.where(work, noise % 290, 0)
    table[:, 5] = axi_write
    table[:, 6] = _units(axi_read, 256)
    table[:, 7] = _units(axi_write, 256)
    table[:, 8] = np.where(work, noise % 97, 0)
    table[:, 9] = np.where(work, noise % 146, 0)
    table[:, 10] = np.where(work & to_lmem, size, 0)
    table[:, 11] = np.where(work & from_lmem, size, 0)
    table[:, 12] = _units(axi_write, 128)
    table[:, 13] = _units(axi_read, 128)
    table[:, 14] = _units(np.where(work & to_lmem, size, 0), 64)
    table[:, 15] = _units(np.where(work & from_lmem, size, 0), 64)


def _cdma_words(table: U32, facts: Columns, noise: I64) -> None:
    """Counters of a port: bytes moved, handshakes, and when each phase began and ended."""
    work = facts["bytes"] > 0
    size, units = facts["bytes"], _units(facts["bytes"], 128)
    receiving = np.isin(facts["type"], (1, 4)) & work
    sending = work & ~receiving
    table[:, 4] = size
    table[:, 5] = units
    table[:, 6] = np.where(sending, size, 0)
    table[:, 8] = np.where(receiving, units, 0)
    table[:, 10] = np.where(sending, units, 0)
    table[:, 12] = np.where(sending, units, 0)
    table[:, 14] = np.where(receiving, units, 0)
    table[:, 16] = np.where(work, noise % 40, 0)
    for word in range(18, 32, 2):
        table[:, word] = np.where(work, (table[:, 0].astype(np.int64) + 5) & _LOW, 0)
        table[:, word + 1] = np.where(work, table[:, 1], 0)


def _conflict_words(table: U32, facts: Columns, noise: I64) -> None:
    """Issuing thread and cycles of bank conflicts."""
    table[:, 3] = np.where(facts["system"] != 0, 0, noise % 12 << 1 | noise >> 7 & 1)


def _wide_tiu_words(table: U32, facts: Columns, noise: I64) -> None:
    """The load of the computation (its low part beside the id), reads, stalls and writes of local memory."""
    work = facts["system"] == 0
    load = np.where(work, noise % 100_000 * 1000, 0)
    table[:, 2] = table[:, 2] & 0xFFFF | (load & 0xFFFF) << 16
    table[:, 3] = load >> 16
    table[:, 4] = np.where(work, noise % 4000, 0)
    table[:, 5] = np.where(work, noise % 70, 0)
    table[:, 6] = np.where(work, noise % 3000, 0)


#: Words of the wide record: addresses written, data written, addresses read; of bus port 0 and of local memory.
_WIDE_BUS, _WIDE_LOCAL = (3, 4, 5), (9, 10, 11)
#: Handshakes and stalls, writes before reads, of the same.
_WIDE_SHAKES = {_WIDE_BUS: 16, _WIDE_LOCAL: 20}
_WIDE_STALLS = {_WIDE_BUS: 24, _WIDE_LOCAL: 28}


def _wide_dma_words(table: U32, facts: Columns, noise: I64) -> None:
    """Bytes by side and way; the two places of a move between equal memories share the bytes."""
    work = facts["system"] == 0
    size = np.where(work, facts["bytes"], 0)
    for side, local in ((_WIDE_BUS, False), (_WIDE_LOCAL, True)):
        wrote, read = ((facts[way] == LMEM) == local for way in ("dst", "src"))
        both = wrote & read
        written = np.where(wrote, np.where(both, size // 2, size), 0)
        table[:, side[0]] = table[:, side[1]] = written
        table[:, side[2]] = np.where(read, size - np.where(both, written, 0), 0)
        table[:, _WIDE_SHAKES[side]] = _units(written, 16)
        table[:, _WIDE_SHAKES[side] + 1] = _units(table[:, side[2]].astype(np.int64), 16)
        table[:, _WIDE_STALLS[side]] = np.where(work, noise % 53, 0)
        table[:, _WIDE_STALLS[side] + 1] = np.where(work, noise % 41, 0)
    for word in (*range(32, 48), *range(50, 56), *range(58, 64)):
        table[:, word] = np.where(work, table[:, 1 - word % 2], 0)


#: What fills the words behind times and id, by engine and bytes of a record.
_WORDS: dict[tuple[int, int], Callable[[U32, Columns, I64], None]] = {
    (TIU, 16): _tiu_words,
    (TIU, 32): _wide_tiu_words,
    (GDMA, 64): _dma_words,
    (SDMA, 64): _dma_words,
    (GDMA, 256): _wide_dma_words,
    (SDMA, 256): _wide_dma_words,
    (CDMA, 128): _cdma_words,
}


def _units(size: I64, unit: int) -> I64:
    units: I64 = (size + (unit - 1)) // unit
    return units
