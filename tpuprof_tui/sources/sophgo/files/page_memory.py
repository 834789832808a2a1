"""Local memory data of the web page: accesses of decoded commands, by lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tpuprof_tui.export.web.lanes import ChosenLane, drawing_order
from tpuprof_tui.formats.web_codec import Chunk
from tpuprof_tui.model import Profile

from .local_memory import OPERANDS, WRITES, Accesses, LocalMemory, accesses

#: Most accesses to local memory in a page, over all cores.
MOST_ACCESSES: Final = 1_500_000


def memory_record(
    profile: Profile, lanes: list[ChosenLane], row_counts: list[int], write: Callable[[Chunk], int]
) -> dict[str, Any] | None:
    """Accesses to local memory by lane; None where no command is decoded.

    ``row_counts``: number of rows of each lane in the page; ``write`` writes a chunk and returns its number.
    """
    memory = LocalMemory.of(profile)
    unit_of = profile.unit_of
    decoded = [(number, each) for number, each in enumerate(lanes) if each.lane.registers and unit_of(each.lane) >= 0]
    if memory is None or not decoded:
        return None
    limit = MOST_ACCESSES // len(decoded)
    records = []
    left_out = 0
    for number, each in decoded:
        chunk, cut = _accesses(profile, each, row_counts[number], memory, limit)
        left_out += cut is not None
        if chunk.count:
            records.append({"lane": number, "chunk": write(chunk), "until": cut})
    if not records:
        return None
    return {
        "lane_bytes": memory.lane_bytes,
        "bank_bytes": memory.bank_bytes,
        "operands": OPERANDS,
        "writes": WRITES,
        "lanes": records,
        "cut": left_out,
    }


def _accesses(
    profile: Profile, chosen: ChosenLane, row_count: int, memory: LocalMemory, limit: int
) -> tuple[Chunk, int | None]:
    """Accesses of a lane by row, and the time (ns) from which they are left out; None if none are."""
    parts: list[Accesses] = []
    count, done = 0, 0
    cut: int | None = None
    for rows, length in chosen.parts(row_count):
        found = accesses(profile, chosen.lane, rows, memory)
        parts.append(Accesses(found.rows + done, found.operand, found.address, found.size))
        count += len(found.rows)
        done += length
        if count >= limit and done < row_count:
            cut = int(chosen.lane.take("start", chosen.rows)[done])
            break
    found = Accesses.concatenated(parts)
    chunk = Chunk(len(found.rows))
    order, _ = drawing_order(chosen, row_count)
    position = np.arange(row_count)
    position[order] = np.arange(row_count)
    chunk.add("row", [position[found.rows]], ascending=True)
    chunk.add("operand", [found.operand])
    chunk.add("address", [found.address])
    chunk.add("size", [found.size])
    return chunk, cut
