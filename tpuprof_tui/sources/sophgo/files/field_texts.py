"""Instructions as two files of the reference: the register text, and all of them as one CSV.

The register text has one block of ``name: value`` lines for each, and one file per core or port:
``tiuRegInfo_{core}.txt``, ``tdmaRegInfo_{core}.txt`` (GDMA, then SDMA) and ``cdmaRegInfo_{port}.txt``; each begins with
the parameters of the architecture. Names from a capture are escaped so that they stay on one line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final

import numpy as np

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.export.job import Job
from tpuprof_tui.export.selection import ordered_lanes, rows_of
from tpuprof_tui.export.table import TableRows, write_lines
from tpuprof_tui.formats.escape import csv_text, line_text
from tpuprof_tui.formats.files import whole_file
from tpuprof_tui.formats.rendering import Field
from tpuprof_tui.formats.xlsx.rows import Source
from tpuprof_tui.model import Lane
from tpuprof_tui.model.lane import Rows, row_count, row_numbers, row_parts

from ..read.layers import layers_of
from .fields import FieldSet, LaneFields, in_stream_order, text_field
from .instructions import rows_as_text
from .lane_rows import LaneRows, chosen_lanes

Progress = Callable[[float], None]

#: Rows rendered and written at a time.
SLICE: Final = 16_384
_FILES: Final = {"TIU": "tiu", "GDMA": "tdma", "SDMA": "tdma", "CDMA": "cdma"}


def write_registers(job: Job, paths: Sequence[Path], progress: Progress) -> list[Path]:
    """Writes the register text, one file for each core and kind of engine."""
    write_registers_text(job.document_query, job.folder, progress=progress)
    return [job.folder / name for name in register_names(job)]


def register_names(job: Job) -> list[str]:
    """File names of the register text."""
    return list(register_files(job.document_query))


def write_registers_text(query: Query, directory: Path, *, progress: Progress | None = None) -> int:
    """Writes the register text of all cores and ports that have chosen instructions.

    Returns the number of instructions written; ``progress`` is called with the share done, 0 to 1.

    Raises:
        WriteError: A file could not be written; those before it are complete.
    """
    profile, files = query.profile, register_files(query)
    total = sum(count for lanes in files.values() for _, _, count in lanes)
    head = [f"\t{line_text(name)}: {line_text(value)}\n" for name, value in profile.device.parameters]
    written = 0
    for file, lanes in files.items():
        with whole_file(directory / file) as stream:
            stream.write(("__CHIP_ARCH_ARGS__\n" + "".join(head)).encode())
            for lane, rows, _ in lanes:
                fields, opening = LaneFields(profile, lane), f"__{_FILES[lane.kind].upper()}_REG_INFO__"
                plan = cache(lambda operation, fields=fields: _plan(fields.of(operation)))
                for part, count in row_parts(rows, SLICE):
                    stream.write("".join(rows_as_text(lane, plan, opening, "\n", part, count)).encode())
                    written += count
                    if progress is not None:
                        progress(written / total)
    return written


def register_files(query: Query) -> dict[str, list[tuple[Lane, Rows, int]]]:
    """Files that `write_registers_text` writes, by name: lanes with chosen rows, these rows, and their number."""
    files: dict[str, list[tuple[Lane, Rows, int]]] = {}
    for number, lane in ordered_lanes(query.profile):
        rows = rows_of(query, number) if lane.kind in _FILES else slice(0, 0)
        if count := row_count(rows):
            name = f"{_FILES[lane.kind]}RegInfo_{query.profile.number_of(lane)}.txt"
            files.setdefault(name, []).append((lane, in_stream_order(lane, rows), count))
    return files


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
    return text_field(source, lead, absent, lambda text: line_text(text) + after)


# All instructions of all cores and ports as one CSV, in the order in which they started (outputs 5.4).
#
# Columns are those of the last core's TIU sheet, then those of its GDMA sheet that are not among them; addresses are
# decimal. Lines are made a window of time at a time, so their memory does not grow with the lanes' length.

#: Rows that are read at once, for each lane.
WINDOW: Final = 4096
_BANDWIDTHS: Final = ("DDR Bandwidth(GB/s)", "L2M Bandwidth(GB/s)")


def write_merged_csv(query: Query, path: Path, *, progress: Progress | None = None) -> int:
    """Writes the merged list of instructions.

    Returns the number of instructions written; ``progress`` is called with the share done, 0 to 1.

    Raises:
        WriteError: The file could not be written; no partial file is left.
    """
    profile, offsets = query.profile, query.session.offsets
    lanes = chosen_lanes(query, layers_of(profile))
    names = merged_names(lanes)
    formatters = {lane.number: _row_formatter(lane, names) for lane in lanes}
    events = [offsets[lane.number] + row_numbers(lane.by_start) for lane in lanes]
    order = np.lexsort([
        np.concatenate([np.zeros(0, np.int64), *(lane.lane.take(key, lane.by_start) for lane in lanes)])
        for key in ("engine_id", "command_id", "end", "start")
    ])  # fmt: skip
    rows = TableRows(profile, offsets, np.concatenate([np.zeros(0, np.int64), *events])[order])
    with whole_file(path) as stream:
        stream.write((",".join(map(csv_text, names)) + "\n").encode())
        return write_lines(rows, formatters, stream, WINDOW * max(len(lanes), 1), progress or (lambda done: None))


def merged_names(lanes: Sequence[LaneRows]) -> list[str]:
    """Names of the columns, in order."""
    names: dict[str, None] = {}
    for engines in (("TIU",), ("GDMA", "SDMA", "CDMA")):
        some = [lane for lane in lanes if lane.lane.kind in engines]
        cores = [lane for lane in some if lane.lane.kind in ("TIU", "GDMA")]
        if some:
            last = (cores or some)[-1]
            names |= dict.fromkeys(last.reference_names(lanes))
    return list(names)


def _row_formatter(lane: LaneRows, names: Sequence[str]) -> Callable[[Rows, int], list[str]]:
    plans = {
        # the first field has no comma before it
        operation: [_field(lane, name, sources.get(name), "," if index else "") for index, name in enumerate(names)]
        for operation, sources in lane.sources.items()
    }
    return partial(rows_as_text, lane.lane, plans.__getitem__, "", "\n")


def _field(lane: LaneRows, name: str, source: Source | None, lead: str) -> Field | str:
    if source is None or (source.values is None and source.absent is None):
        return lead
    # the reference reads bandwidths of cores as numbers, those of ports as texts
    number = name in _BANDWIDTHS and lane.lane.kind != "CDMA"
    absent = "" if source.absent is None else csv_text(str(float(source.absent) if number else source.absent))
    return text_field(source, lead, lead + absent, csv_text)
