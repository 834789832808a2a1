"""``tpuprof instructions``: every instruction on stdout, or the explorer's table of them."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, BinaryIO

from tpuprof_tui.errors import UsageError

if TYPE_CHECKING:
    from tpuprof_tui.export.selection import Selection
    from tpuprof_tui.export.table import TableRows
    from tpuprof_tui.model import Profile


def write_asked(options: argparse.Namespace, profile: Profile) -> None:
    """Write what the options ask for, to stdout or to a file.

    Raises:
        UsageError: A core, column, range or filter is unknown; or Parquet would go to a terminal.
        WriteError: The file could not be written.
        OSError: stdout refused.
    """
    if options.core is not None and options.core not in profile.cores:
        known = ", ".join(map(str, profile.cores)) or "none"
        raise UsageError(f"The capture has no core {options.core}.", f"Its cores: {known}.")
    selection = _selection(options, profile)
    if options.output is not None:
        from pathlib import Path

        from tpuprof_tui.formats.files import whole_file

        from .export import stop_as_interrupted

        stop_as_interrupted()
        with whole_file(Path(options.output)) as stream:
            _write(options, profile, selection, stream)
        return
    if options.format == "parquet" and sys.stdout.isatty():
        raise UsageError("Parquet is no text for a terminal.", "Send it to a file: --output instructions.parquet")
    sys.stdout.flush()
    _write(options, profile, selection, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def _write(options: argparse.Namespace, profile: Profile, selection: Selection, sink: BinaryIO) -> None:
    if options.columns is not None or options.format == "parquet":
        _write_table(options, _rows(options, profile, selection), sink)
        return
    in_order = options.sort is not None or options.lane is not None
    write = profile.vocabulary.entry("instructions_sorted" if in_order else "instructions")
    if write is None:
        _write_table(options, _rows(options, profile, selection), sink)
    elif in_order:
        write(_rows(options, profile.device_part, selection), sink, options.format)
    else:
        write(profile, sink, form=options.format, core=options.core, engine=options.engine,
              keep=None if selection.everything else selection.passes)  # fmt: skip


def _selection(options: argparse.Namespace, profile: Profile) -> Selection:
    from tpuprof_tui.analysis.selecting.filters import compile_filter
    from tpuprof_tui.export.job import parse_range
    from tpuprof_tui.export.selection import Selection

    start, end = parse_range(options.range) if options.range is not None else (None, None)
    return Selection(None, start, end, compile_filter(options.filter, profile) if options.filter else None)


def _rows(options: argparse.Namespace, profile: Profile, selection: Selection) -> TableRows:
    from tpuprof_tui.export.table import parse_sort, table_rows

    sort = parse_sort(options.sort, profile.vocabulary) if options.sort is not None else None
    lane = options.lane
    return table_rows(profile, core=options.core, engine=options.engine, lane=lane, selection=selection, sort=sort)


def _write_table(options: argparse.Namespace, rows: TableRows, sink: BinaryIO) -> None:
    from tpuprof_tui.export.table import known_columns, parse_columns, write_table

    profile = rows.profile
    asked = options.columns
    columns = known_columns(profile) if asked is None else parse_columns(asked, profile.vocabulary)
    if options.format == "parquet":
        from tpuprof_tui.export.table_parquet import write_parquet

        write_parquet(rows, columns, sink)
    else:
        write_table(rows, columns, sink, options.format)
