"""``tpuprof query``: one SELECT over the tables of a profile, or of a data set."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from tpuprof_tui.dataset import is_data_set
from tpuprof_tui.errors import UsageError
from tpuprof_tui.exit_status import OK
from tpuprof_tui.formats.answers import answer_text

from .opening import open_capture, status_of, tell
from .printing import ROWS, pages_of, print_csv, print_json, rows_page

if TYPE_CHECKING:
    from tpuprof_tui.dataset.query import Queried

#: Most rows of JSON and CSV without --limit.
MOST_ROWS: Final = 100_000


def print_query(options: argparse.Namespace) -> int:
    """Prints the rows of a query, or the tables and columns; returns the exit status.

    Raises:
        UsageError: The SQL is invalid, no SELECT, takes too long or too much memory; or there is none.
        MissingPackageError: DuckDB or pyarrow is not installed.
    """
    if options.sql is None and not options.schema:
        raise UsageError("Give the SQL, in quotes: tpuprof query PATH 'SELECT ...'.", "--schema names the tables.")
    if options.csv and options.json:
        raise UsageError("--csv and --json do not go together.")
    from tpuprof_tui.dataset import profile_query, query

    memory, status = options.memory << 20, OK
    with ExitStack() as stack:
        data: Queried
        if is_data_set(options.capture or ""):
            data = stack.enter_context(query.opened(options.capture, memory))
        else:
            profile = open_capture(options.capture, options)
            data, status = stack.enter_context(profile_query.opened(profile, memory)), status_of(profile)
        if options.schema:
            _print_schema(data, options)
            return status
        stack.enter_context(data.ending_after(options.seconds))
        limit = options.limit if options.limit is not None else MOST_ROWS if options.csv or options.json else ROWS
        # one more tells whether there are more
        found = query.first_rows(data, options.sql, limit + 1, options.offset)
        if options.json:
            print_json({}, found, limit, options.offset, counted=False)
        elif options.csv:
            print_csv(found, limit)
            if next(found.rows, None) is not None:
                tell(f"tpuprof: only the first {limit:,} rows (--limit, --offset).")
        else:
            pages_of(options).show([rows_page(options.capture, "Query", found, options.limit)], "--limit N shows all.")
    return status


def _print_schema(data: Queried, options: argparse.Namespace) -> None:
    tables = data.schema()
    if options.json:
        record = {
            name: [{"name": column, "type": kind} for column, kind in columns] for name, columns in tables.items()
        }
        print(answer_text({"tables": record}, indent=None))
        return
    for number, (name, columns) in enumerate(tables.items()):
        print("\n" * bool(number) + name)
        width = max((len(column) for column, _ in columns), default=0)
        print(*(f"  {column:{width}}  {kind}" for column, kind in columns), sep="\n")
