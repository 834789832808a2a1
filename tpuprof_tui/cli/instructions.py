"""``tpuprof instructions``: writes events as JSON lines, CSV or Parquet, to stdout or a file."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from msgspec.structs import replace

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.moves import scope_named
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.errors import UsageError
from tpuprof_tui.export.selection import RowPage
from tpuprof_tui.export.table import TableRows, known_columns, parse_columns, parse_sort, table_rows, write_table
from tpuprof_tui.formats.files import whole_file
from tpuprof_tui.model import Profile
from tpuprof_tui.views.as_text import ROWS

from .export import check_expected, stop_as_interrupted
from .opening import asked_query, open_capture, status_of, tell, tell_if_none_passes


def run(options: argparse.Namespace) -> int:
    """Writes the requested events to stdout or to a file; returns the exit status.

    Raises:
        UsageError: A core, engine, column, step, range or filter is unknown; or Parquet would go to a terminal.
        WriteError: The file could not be written.
        OSError: stdout could not be written.
    """
    check_expected(options.expect, options.capture)
    profile = open_capture(options.capture, options)
    status = status_of(profile)
    if options.engine is not None:
        options.engine = _engine(options, profile)
    query, page = _query(options, profile), RowPage(options.limit, options.offset)
    if options.output is not None:
        stop_as_interrupted()
        with whole_file(Path(options.output)) as stream:
            _write(options, query, page, stream)
        _tell_cut(page, query)
        return status
    if options.format == "parquet" and sys.stdout.isatty():
        raise UsageError("Parquet cannot be printed to a terminal.", "Send it to a file: --output instructions.parquet")
    sys.stdout.flush()
    if options.limit is None and sys.stdout.isatty():
        _write_few(options, query)
        return status
    _write(options, query, page, sys.stdout.buffer)
    sys.stdout.buffer.flush()
    _tell_cut(page, query)
    return status


def _write_few(options: argparse.Namespace, query: Query) -> None:
    """Writes the first rows to a terminal, if no limit is given: at most ``ROWS`` and ``MOST_BYTES``."""
    from .printing import MOST_BYTES

    page, text = RowPage(ROWS, options.offset), io.BytesIO()
    _write(options, query, page, text)
    lines = text.getvalue().splitlines(keepends=True)
    while len(lines) > 2 and sum(map(len, lines)) > MOST_BYTES:
        lines.pop()
        page.taken -= 1
    sys.stdout.buffer.write(b"".join(lines))
    sys.stdout.buffer.flush()
    _tell_cut(page, query, "--limit N shows more, and a pipe or --output gets all")


def _tell_cut(page: RowPage, query: Query, more: str = "--limit, --offset") -> None:
    """Reports on stderr that only some of the rows were written, or why there are none."""
    if not page.total:
        tell_if_none_passes(query)
    if page.taken < page.total:
        message = f"{page.taken:,} of {query.vocabulary.event.of(page.total)} ({more})."
        tell(f"tpuprof: {message}")


def _engine(options: argparse.Namespace, profile: Profile) -> str:
    """The kind of lane of ``--engine``, in the spelling of the profile.

    Raises:
        UsageError: The written lanes cannot be of this kind.
    """
    generic = _own_writer(options, profile) is None
    lanes = profile.lanes if generic else profile.device_part.lanes
    declared = (kind.key for kind in profile.vocabulary.lane_kinds if generic or not kind.on_host)
    kinds = dict.fromkeys((*declared, *(lane.kind for lane in lanes)))
    found = next((kind for kind in kinds if kind.lower() == options.engine.lower()), None)
    if found is None:
        say, known = profile.vocabulary.say, ", ".join(kinds) or "none"
        message = say("The capture has no {lane} {engine}.", engine=options.engine)
        raise UsageError(message, say("Its {lanes}: {known}.", known=known))
    return found


def _own_writer(options: argparse.Namespace, profile: Profile) -> Callable[..., Any] | None:
    """The source's own writer for device events; None if the generic table is written."""
    if options.columns is not None or options.format == "parquet":
        return None
    return profile.vocabulary.entry("instructions_sorted" if _in_order(options) else "instructions")


def _in_order(options: argparse.Namespace) -> bool:
    return options.sort is not None or options.lane is not None


def _write(options: argparse.Namespace, query: Query, page: RowPage, sink: BinaryIO) -> None:
    write = _own_writer(options, query.profile)
    if write is None:
        _write_table(options, _rows(options, query).on(page), sink)
    elif _in_order(options):
        write(_rows(options, query, on_host=False).on(page), sink, options.format)
    else:
        write(query, sink, form=options.format, engine=options.engine, page=page)


def _query(options: argparse.Namespace, profile: Profile) -> Query:
    scope = scope_named(profile, options.core, None) if options.lane is None else Scope(lane=options.lane)
    return replace(asked_query(options, profile), scope=scope)


def _rows(options: argparse.Namespace, query: Query, *, on_host: bool = True) -> TableRows:
    sort = parse_sort(options.sort, query.vocabulary) if options.sort is not None else None
    return table_rows(query, kind=options.engine, on_host=on_host, sort=sort)


def _write_table(options: argparse.Namespace, rows: TableRows, sink: BinaryIO) -> None:
    profile = rows.profile
    names = options.columns
    columns = known_columns(profile) if names is None else parse_columns(names, profile.vocabulary)
    if options.format == "parquet":
        from tpuprof_tui.export.table import write_parquet

        write_parquet(rows, columns, sink)
    else:
        write_table(rows, columns, sink, options.format)
