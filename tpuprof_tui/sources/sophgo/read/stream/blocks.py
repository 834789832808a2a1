"""Block framing of core and CDMA files: a sequence of type, length and payload up to the end of the file."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from msgspec import Struct

from ..arrays import Bytes
from ..problems import Report


class BlockType(IntEnum):
    """Types of blocks; those that the reader does not use are skipped."""

    SUMMARY = 1
    COMPILER_LOG = 2
    MONITOR_BD = 3
    MONITOR_GDMA = 4
    DYN_DATA = 5
    DYN_EXTRA = 6
    FIRMWARE_LOG = 7
    COMMAND = 8
    BMLIB = 9
    BMLIB_EXTRA = 10
    MONITOR_SDMA = 11
    MONITOR_CDMA = 12
    DES_BDC = 13
    DES_GDMA = 14
    DES_SDMA = 15
    DES_CDMA = 16
    DES_KV = 17
    SUBNET_ANCHOR = 100


_KNOWN = frozenset(int(kind) for kind in BlockType)
_HEADER = 8
#: Searches for the next intact block in one file; after that the rest of the file is given up.
_MOST_RESYNCS = 64
#: Limit of block headers read, so that a file of empty blocks cannot stall the reader; no runtime writes as many.
_MOST_BLOCKS = 2_000_000


class Block(Struct, frozen=True):
    """One block: ``length`` bytes of payload at ``offset``, inside the file."""

    kind: int
    offset: int
    length: int


def walk_blocks(data: Bytes, report: Report) -> list[Block]:
    """Blocks of a file in file order; damage is reported and does not lose intact blocks behind it."""
    blocks: list[Block] = []
    size = len(data)
    at = 0
    headers = resyncs = 0
    while at < size:
        left = size - at
        headers += 1
        if headers > _MOST_BLOCKS:
            report.error("More blocks than a capture can have.", "The rest of the file was not read.", offset=at)
            break
        if left < _HEADER:
            report.error(f"{left} bytes of a block header at the end of the file.", "They were ignored.", offset=at)
            break
        kind, length = (int(value) for value in data[at : at + _HEADER].view("<u4"))
        if length <= left - _HEADER:
            if kind in _KNOWN:
                blocks.append(Block(kind, at + _HEADER, length))
                at += _HEADER + length
                continue
            # zeros parse as empty blocks of type 0; a full disk leaves the rest of a file zero
            times = 1 if kind or length else _zeros_from(data, at) // _HEADER
            what = f"Block of unknown type {kind}."
            report.error(what, "It was skipped.", offset=at, count=times)
            at += times * _HEADER + length
            continue
        following = _next_block_chain(data, at + 1) if resyncs < _MOST_RESYNCS else size
        resyncs += 1
        available = following - at - _HEADER
        what = f"Block of type {kind} claims {length} bytes, {left - _HEADER} are left in the file"
        if kind in _KNOWN:
            blocks.append(Block(kind, at + _HEADER, available))
            report.error(f"{what}.", f"Its first {available} bytes were used.", offset=at)
        else:
            report.error(f"{what}.", "It was skipped.", offset=at)
        at = following
    return blocks


def _zeros_from(data: Bytes, start: int) -> int:
    """Number of zero bytes from ``start`` to the next other byte or the end; linear in that number."""
    at, step = start, 256
    while at < len(data):
        used = np.flatnonzero(data[at : at + step])
        if len(used):
            return at + int(used[0]) - start
        at, step = at + step, min(2 * step, 1 << 20)
    return len(data) - start


def _next_block_chain(data: Bytes, start: int) -> int:
    """Offset of the next header from which known blocks follow one another to the exact end of the file.

    Returns the file's size when there is none. Linear: lengths only point forward, so one pass from the end settles
    each offset.
    """
    size = len(data)
    # all offsets whose four bytes are a known type
    low = data[start : size - _HEADER + 1]
    zero = (data[start + 1 : size - 6] == 0) & (data[start + 2 : size - 5] == 0) & (data[start + 3 : size - 4] == 0)
    known = np.zeros(256, np.bool_)
    known[list(_KNOWN)] = True
    candidates = np.flatnonzero(known[low[: len(zero)]] & zero) + start
    chain_starts = {size}
    best = size
    for offset in candidates[::-1].tolist():
        length = int(data[offset + 4 : offset + 8].view("<u4")[0])
        # chance matches of empty blocks are too likely
        if length and offset + _HEADER + length in chain_starts:
            chain_starts.add(offset)
            best = offset
    return best
