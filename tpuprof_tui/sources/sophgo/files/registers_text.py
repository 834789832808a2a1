"""Instructions as the reference's register text: one block of ``name: value`` lines each, one file per core or port.

``tiuRegInfo_{core}.txt``, ``tdmaRegInfo_{core}.txt`` (GDMA, then SDMA) and ``cdmaRegInfo_{port}.txt``; each begins with
the parameters of the architecture. Names from a capture are escaped so that they stay on one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from tpuprof_tui.export.selection import Selection, ordered_lanes
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.formats.files import whole_file
from tpuprof_tui.formats.rendering import Field
from tpuprof_tui.formats.xlsx.rows import Source
from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.lane import Rows, row_numbers, row_parts

from .instructions import rows_as_text
from .workbook.fields import EVERYTHING, FieldSet, LaneFields

Progress = Callable[[float], None]

#: Rows rendered and written at a time.
SLICE: Final = 16_384
_FILES: Final = {"TIU": "tiu", "GDMA": "tdma", "SDMA": "tdma", "CDMA": "cdma"}


def write_registers_text(
    profile: Profile, directory: Path, selection: Selection = EVERYTHING, *, progress: Progress | None = None
) -> int:
    """Writes the register text of all cores and ports that have chosen instructions.

    Returns the number of instructions written; ``progress`` is called with the share done, 0 to 1.

    Raises:
        WriteError: A file could not be written; those before it are complete.
    """
    total = sum(count for _, _, count in _chosen(profile, selection))
    written = 0
    for name, lanes in _files(profile, selection).items():
        with whole_file(directory / name) as stream:
            stream.write(_head(profile).encode())
            for lane, rows in lanes:
                fields, opening = LaneFields(profile, lane), f"__{_FILES[lane.kind].upper()}_REG_INFO__"
                plan = cache(lambda operation, fields=fields: _plan(fields.of(operation)))
                for part, count in row_parts(rows, SLICE):
                    stream.write("".join(rows_as_text(lane, plan, opening, "\n", part, count)).encode())
                    written += count
                    if progress is not None:
                        progress(written / total)
    return written


def register_files(profile: Profile, selection: Selection = EVERYTHING) -> list[str]:
    """Names of the files that `write_registers_text` writes."""
    return list(_files(profile, selection))


def chosen_rows(profile: Profile, lane: Lane, selection: Selection) -> tuple[Rows, int]:
    """Chosen rows of a lane in stream order, and their number."""
    rows = selection.rows(profile, lane)
    order = lane.take("order", rows)
    if bool((order[1:] >= order[:-1]).all()):
        return rows, len(order)
    return row_numbers(rows)[np.argsort(order, kind="stable")], len(order)


def _head(profile: Profile) -> str:
    lines = [f"\t{line_text(name)}: {line_text(value)}\n" for name, value in profile.device.parameters]
    return "__CHIP_ARCH_ARGS__\n" + "".join(lines)


def _files(profile: Profile, selection: Selection) -> dict[str, list[tuple[Lane, Rows]]]:
    files: dict[str, list[tuple[Lane, Rows]]] = {}
    for lane, rows, _ in _chosen(profile, selection):
        files.setdefault(f"{_FILES[lane.kind]}RegInfo_{profile.number_of(lane)}.txt", []).append((lane, rows))
    return files


def _chosen(profile: Profile, selection: Selection) -> Iterator[tuple[Lane, Rows, int]]:
    """Lanes with chosen rows, these rows, and their number."""
    for lane in ordered_lanes(profile):
        if lane.kind in _FILES:
            rows, count = chosen_rows(profile, lane, selection)
            if count:
                yield lane, rows, count


def _plan(fields: FieldSet) -> list[Field | str]:
    """Fields as lines, each beginning with a line break."""
    plan = [_line(f"\n\t{name}: ", source) for name, source in fields.main.items()]
    if fields.extra:
        kind = fields.main["Function Type"]
        plan.append(_line("\n", kind, ":"))
        plan += [_line(f"\n\t{name}: ", source) for name, source in fields.extra.items()]
    return plan


def _line(lead: str, source: Source, after: str = "") -> Field | str:
    """One line; empty if there is no value."""
    absent = "" if source.absent is None else f"{lead}{source.absent}{after}"
    if source.values is None:
        return absent
    if source.kind == "text":
        return Field(source.values, lead, absent, source.texts, lambda text: line_text(text) + after)
    form = "%.1f%%" if source.kind == "percent" else "%s"
    return Field(source.values, lead, absent, form=form, decimals=4 if source.kind == "float" else None, span=64)
