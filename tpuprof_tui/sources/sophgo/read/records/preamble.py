"""Recognises the start of a record stream: the profiler's opening pair, and markers after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof_tui.sources.sophgo.chips.chip import Chip, family_of

if TYPE_CHECKING:
    from .monitor import RecordStream

#: Markers without nodes that firmware may leave at one end of a stream.
MOST_MARKERS = 2


def begins_with_preamble(stream: RecordStream, chip: Chip) -> bool:
    """Whether the first two records look like the profiler's opening pair: system, ids 0 and 1, then a reset.

    It may be followed by markers of the profiler, or without a reset by the pair with ids 2 and 3 that begins a model's
    first launch.
    """
    if len(stream) < 2 or stream.id[0] != 0 or stream.id[1] != 1:
        return False
    if len(stream) > 2 and stream.engine != "SDMA" and stream.id[2] > 1 and not markers_at(stream, chip, 2):
        ids = stream.id[2:5].tolist()
        if ids[:2] != [2, 3] or max(ids[2:], default=0) > 1 or not stream.system_mask(chip, slice(2, 4)).all():
            return False
    return bool(stream.system_mask(chip, slice(0, 2)).all()) or family_of(stream.engine) not in chip.system_records


def markers_at(stream: RecordStream, chip: Chip, row: int) -> int:
    """Number of markers of the profiler from ``row`` on: system records whose ids leave a gap and then drop."""
    ids = stream.id[row - 1 : row + MOST_MARKERS + 1].tolist()
    system = stream.system_mask(chip, slice(row, row + MOST_MARKERS)).tolist()
    if len(ids) < 2 or ids[1] <= ids[0] + 1:
        return 0
    for count, here in enumerate(system, 1):
        if not here:
            return 0
        if len(ids) == count + 1 or ids[count + 1] < ids[count]:
            return count
    return 0
