"""Recognises the start of a record stream: the profiler's opening pair, and markers after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tpuprof_tui.sources.sophgo.chips.chip import Chip, family_of

if TYPE_CHECKING:
    from .monitor import RecordStream

#: Opening pairs of a core's engines start within this of one another.
OPENING_SPREAD_NS = 5_000
#: Markers without nodes that firmware may leave at one end of a stream.
MOST_MARKERS = 2


def begins_with_preamble(stream: RecordStream, chip: Chip, *, marked: bool = True) -> bool:
    """Whether the first two records look like the profiler's opening pair: system, ids 0 and 1, then a reset.

    It may be followed by markers of the profiler, or without a reset by the pair with ids 2 and 3 that begins a model's
    first launch. ``marked``: whether the records of system commands are marked as such; else ids decide alone.
    """
    if len(stream) < 2 or stream.id[0] != 0 or stream.id[1] != 1:
        return False
    if (
        len(stream) > 2
        and stream.engine != "SDMA"
        and stream.id[2] > 1
        and not markers_at(stream, chip, 2, marked=marked)
    ):
        ids = stream.id[2:5].tolist()
        system = not marked or bool(stream.system_mask(chip, slice(2, 4)).all())
        if ids[:2] != [2, 3] or max(ids[2:], default=0) > 1 or not system:
            return False
    known = marked and family_of(stream.engine) in chip.system_records
    return not known or bool(stream.system_mask(chip, slice(0, 2)).all())


def opens(stream: RecordStream, chip: Chip) -> bool:
    """Whether a stream begins with the opening pair, by its own records or by those of the core's other engines."""
    return stream.opened or begins_with_preamble(stream, chip)


def find_unmarked_opening(streams: Mapping[str, RecordStream], chip: Chip, *, same_clock: bool) -> None:
    """Note on the TIU stream of a core, as dumped, that it begins with an opening pair, also where that has no mark.

    Emulators mark the records of TIU's system commands; on hardware the word counts bank conflicts, and the pair's is
    0. It is recognised by its ids next to a pair of a DMA engine, whose counters tell.

    Args:
        same_clock: Whether the counters of all engines tick alike, so that raw times compare.
    """
    tiu = streams.get("TIU")
    if tiu is None or not chip.preamble or not begins_with_preamble(tiu, chip, marked=False):
        return
    if begins_with_preamble(tiu, chip):
        tiu.opened = True
        return
    for name, other in streams.items():
        if name != "TIU" and begins_with_preamble(other, chip):
            distance = int(tiu.start[0] - other.start[0] + OPENING_SPREAD_NS) % (1 << 32)
            if not same_clock or distance < 2 * OPENING_SPREAD_NS * chip.dma_mhz // 1000:
                tiu.opened, tiu.marked = True, False


def markers_at(stream: RecordStream, chip: Chip, row: int, *, marked: bool = True) -> int:
    """Number of markers of the profiler from ``row`` on: system records whose ids leave a gap and then drop.

    ``marked``: whether the records of system commands are marked as such; else ids decide alone.
    """
    ids = stream.id[row - 1 : row + MOST_MARKERS + 1].tolist()
    system = stream.system_mask(chip, slice(row, row + MOST_MARKERS)).tolist()
    if not (marked and stream.marked):
        system = [True] * len(system)
    if len(ids) < 2 or ids[1] <= ids[0] + 1:
        return 0
    for count, here in enumerate(system, 1):
        if not here:
            return 0
        if len(ids) == count + 1 or ids[count + 1] < ids[count]:
            return count
    return 0
