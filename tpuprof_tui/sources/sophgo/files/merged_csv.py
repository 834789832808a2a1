"""All instructions of all cores and ports as one CSV, in the order in which they started (outputs 5.4).

Columns are those of the last core's TIU sheet, then those of its GDMA sheet that are not among them; addresses are
decimal. Lanes are merged a window of time at a time, so memory does not grow with their length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.export.rendering import Field, rendered_rows
from tpuprof_tui.export.selection import Selection
from tpuprof_tui.formats.escape import csv_text
from tpuprof_tui.formats.files import whole_file
from tpuprof_tui.formats.xlsx.rows import Source
from tpuprof_tui.model import Profile
from tpuprof_tui.model.lane import Rows, row_numbers, row_part

from .workbook.fields import EVERYTHING
from .workbook.lanes import LaneRows, chosen_lanes
from .workbook.layers import LayerMap, read_network

Progress = Callable[[float], None]
Array = npt.NDArray[Any]

#: Rows of a lane that are looked at together.
WINDOW: Final = 4096
_BANDWIDTHS: Final = ("DDR Bandwidth(GB/s)", "L2M Bandwidth(GB/s)")


def write_merged_csv(
    profile: Profile, path: Path, selection: Selection = EVERYTHING, *, progress: Progress | None = None
) -> int:
    """Writes the merged list of instructions.

    Args:
        profile: The profile.
        path: The file, replaced when complete.
        selection: Which instructions.
        progress: Gets the share that is written, 0 to 1.

    Returns:
        Number of instructions written.

    Raises:
        WriteError: The file could not be written; nothing is left behind.
    """
    network = read_network(Path(profile.path))
    lanes = chosen_lanes(profile, selection, LayerMap(network, profile.groups) if network is not None else None)
    names = merged_names(lanes)
    spellers = [_Speller(lane, names) for lane in lanes]
    todo = sum(lane.count for lane in lanes)
    written = 0
    with whole_file(path) as stream:
        stream.write((",".join(map(csv_text, names)) + "\n").encode())
        for window in _windows(lanes):
            lines = _merged_lines(lanes, spellers, window)
            stream.write("".join(lines).encode())
            written += len(lines)
            if progress is not None:
                progress(written / todo)
    return written


def merged_names(lanes: Sequence[LaneRows]) -> list[str]:
    """Names of the columns."""
    names: dict[str, None] = {}
    for engines in (("TIU",), ("GDMA", "SDMA", "CDMA")):
        some = [lane for lane in lanes if lane.lane.kind in engines]
        cores = [lane for lane in some if lane.lane.kind in ("TIU", "GDMA")]
        if some:
            last = (cores or some)[-1]
            names |= dict.fromkeys(last.reference_names(lanes))
    return list(names)


def _windows(lanes: Sequence[LaneRows]) -> Iterator[list[Rows]]:
    """Rows of each lane, ordered by start: all that start in one window of time, which follow one another."""
    rows = [lane.by_start for lane in lanes]
    at = [0] * len(lanes)
    while True:
        starts = []
        for lane, some, first in zip(lanes, rows, at, strict=True):
            ahead = min(first + WINDOW, lane.count) - 1
            starts.append(lane.lane.take("start", row_part(some, ahead, ahead + 1)) if first < lane.count else None)
        bounds = [int(start[0]) for start in starts if start is not None]
        if not bounds:
            return
        until = min(bounds)
        window = []
        for number, (lane, some) in enumerate(zip(lanes, rows, strict=True)):
            first, last = at[number], at[number]
            while last < lane.count:
                part = lane.lane.take("start", row_part(some, last, min(last + WINDOW, lane.count)))
                inside = int(np.searchsorted(part, until, side="right"))
                last += inside
                if inside < len(part):
                    break
            window.append(row_part(some, first, last))
            at[number] = last
        yield window


def _merged_lines(lanes: Sequence[LaneRows], spellers: Sequence[_Speller], window: Sequence[Rows]) -> list[str]:
    lines: list[str] = []
    keys: list[list[Array]] = [[], [], [], []]
    for lane, speller, rows in zip(lanes, spellers, window, strict=True):
        found = speller.lines(rows)
        if not found:
            continue
        lines += found
        for held, key in zip(keys, ("engine_id", "command_id", "end", "start"), strict=True):
            held.append(lane.lane.take(key, rows))
    order = np.lexsort([np.concatenate(held) for held in keys])
    return [lines[place] for place in order.tolist()]


class _Speller:
    """How the rows of one lane are spelled."""

    def __init__(self, lane: LaneRows, names: Sequence[str]) -> None:
        self._lane = lane
        self._plans = {
            operation: [self._field(name, sources.get(name)) for name in names]
            for operation, sources in lane.sources.items()
        }

    def lines(self, rows: Rows) -> list[str]:
        """One line per row."""
        numbers = row_numbers(rows)
        lines = np.empty(len(numbers), dtype=object)
        for operation, places in self._lane.fields.groups(rows) if len(numbers) else ():
            some = numbers if places is None else numbers[places]
            spelled = _lines(self._plans[operation], some)
            lines[slice(None) if places is None else places] = spelled
        found: list[str] = lines.tolist()
        return found

    def _field(self, name: str, source: Source | None) -> Field | str:
        if source is None or (source.values is None and source.absent is None):
            return ","
        # the reference reads bandwidths of cores as numbers, those of ports as texts
        number = name in _BANDWIDTHS and self._lane.lane.kind != "CDMA"
        absent = "" if source.absent is None else csv_text(str(float(source.absent) if number else source.absent))
        if source.values is None:
            return f",{absent}"
        if source.kind == "text":
            return Field(source.values, ",", f",{absent}", texts=_CsvTexts(source.texts))
        if source.kind == "percent":
            return Field(source.values, ",", f",{absent}", number="%.1f%%")
        decimals = 4 if source.kind == "float" else None
        return Field(source.values, ",", f",{absent}", decimals=decimals, span=0 if decimals else 64)


def _lines(plan: Sequence[Field | str], rows: Array) -> list[str]:
    # the first field has no comma before it
    return [line[1:] for line in rendered_rows("", plan, "\n", rows, len(rows))]


class _CsvTexts(Sequence[str]):
    """Texts as CSV cells, spelled when asked for."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._spelled: dict[int, str] = {}

    def __getitem__(self, code: int) -> str:  # type: ignore[override]
        if code not in self._spelled:
            self._spelled[code] = csv_text(self._texts[code])
        return self._spelled[code]

    def __len__(self) -> int:
        return len(self._texts)
