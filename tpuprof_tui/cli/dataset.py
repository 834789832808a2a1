"""``tpuprof dataset``: builds a data set of many captures, and queries it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import asdict

from tpuprof_tui.errors import UsageError
from tpuprof_tui.exit_status import DATA_LOSS, OK

from .options import output_path
from .printing import print_csv, print_json, rows_page

if TYPE_CHECKING:
    from tpuprof_tui.dataset.build import BuildResult
    from tpuprof_tui.dataset.query import Rows

ACTIONS: Final = ("build", "query", "top", "trend", "outliers", "schema", "compact")
#: Maximum number of paths to print per category.
_MOST_NAMED: Final = 10

HELP: Final = """\
Many captures as one data set of Parquet files that DuckDB, Spark, polars or pandas query: tables captures, events,
figures and problems, in folders by source, day and device. Needs pyarrow; queries need DuckDB: tpuprof-tui[dataset].

  build OUT PATH...   reads captures that are new or changed; PATH: a capture, a folder of them, a pattern, @list.txt
  query OUT SQL       one SELECT over these tables
  top OUT             the kernels that take most time over all captures
  trend OUT FIGURE    a figure over days, with the days on which its level changed (kernel:NAME, VIEW.NAME: see schema)
  outliers OUT        captures whose figures differ strongly from their neighbours'
  schema              tables and columns
  compact OUT         merge many small files into few large ones

A capture is identified by its content: copies count once. A capture that cannot be read, or a folder that may not be
listed, becomes a row of problems; every build that finds it names it, with exit status 1. After a killed build, run the
same command again: nothing is lost or counted twice. Deleted captures stay in the data set and are reported; --prune
removes them.
"""
EXAMPLES: Final = """\
examples:
  tpuprof dataset build fleet /data/captures --jobs 4
  tpuprof dataset query fleet "select chip, count(*) from captures group by all"
  tpuprof dataset query fleet "select * from events where duration > 1e6" --parquet long.parquet
  tpuprof dataset top fleet --limit 5
  tpuprof dataset trend fleet overview.total_us --json
  tpuprof dataset outliers fleet --among device
  tpuprof dataset schema
"""


def _number(text: str) -> int:
    if text.isdecimal() and int(text[:9]) > 0 and len(text) < 10:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 up")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the operands and options of the command to a parser."""
    add = parser.add_argument
    add("action", metavar="ACTION", choices=ACTIONS, help="build, query, top, trend, outliers, schema or compact")
    add("out", metavar="OUTDIR", nargs="?", type=output_path, help="folder of the data set, or its address (s3://...)")
    add(
        "words", metavar="CAPTURE", nargs="*", default=[], help="build: what to read; query: the SQL; trend: the figure"
    )
    add("--jobs", type=_number, metavar="N", default=1, help="build: number of captures read in parallel (default: 1)")
    add("--executor", choices=("local", "ray"), default="local",
        help="build: by processes of this machine (default) or of Ray, which must see the same folders")  # fmt: skip
    add("--address", metavar="ADDRESS", help="build: address of the Ray cluster (default: start one here)")
    add("--prune", action="store_true", help="build: remove captures that no longer exist")
    add("--among", choices=("chip", "device"), default="chip",
        help="outliers: neighbours are of the same source and chip (default), or also of the same device")  # fmt: skip
    add("--limit", type=_number, metavar="N", help="at most N rows (default: 20; all with --csv, --json, --parquet)")
    add("--offset", type=_number, metavar="N", default=0, help="number of rows to skip")
    add("--csv", action="store_true", help="rows as CSV")
    add("--json", action="store_true", help="one JSON object")
    add("--parquet", metavar="FILE", type=output_path, help="query: rows as a Parquet file")


def run(options: argparse.Namespace, show: Callable[..., None]) -> int:
    """Runs an action of the command; returns the exit status.

    Args:
        options: Parsed options.
        show: Prints reports (`Pages.show`).
    """
    action, words = options.action, list(options.words)
    if action == "schema":
        return _print_schema(options)
    if options.out is None:
        raise UsageError(f"Name the data set: tpuprof dataset {action} OUT.", "See tpuprof dataset --help.")
    wanted = {"build": "what to read", "query": "the SQL, in quotes", "trend": "the figure, such as overview.total_us"}
    if action in wanted and not words:
        raise UsageError(f"Give {wanted[action]}: tpuprof dataset {action} {options.out} ...")
    if action != "build" and len(words) > (action in wanted):
        raise UsageError(f"Not understood: {words[-1]}.", "Put SQL and names with spaces in quotes.")
    if options.parquet is not None and action != "query":
        raise UsageError("--parquet goes with tpuprof dataset query.")
    if sum((options.csv, options.json, options.parquet is not None)) > 1:
        raise UsageError("Only one of --csv, --json and --parquet can be written.")
    out = options.out
    if action == "build":
        return _build(out, words, options)
    if action == "compact":
        return _compact(out, options)
    return _ask(out, words, options, show)


# -- build ------------------------------------------------------------------------


def _build(out: str, words: list[str], options: argparse.Namespace) -> int:
    from tpuprof_tui.dataset.build import build, local, ray

    if options.address is not None and options.executor != "ray":
        raise UsageError("--address goes with --executor ray.")

    def print_progress(done: int, count: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done:,} of {count:,} captures", end="\n" if done == count else "", file=sys.stderr, flush=True)

    executor = ray(options.address) if options.executor == "ray" else local(options.jobs)
    built = build(out, words, executor, prune=options.prune, progress=print_progress)
    if options.json:
        from tpuprof_tui.formats.answers import answer_text

        print(answer_text({"action": "build", **asdict(built)}, indent=None))
    else:
        _print_built(out, built, pruned=options.prune)
    return DATA_LOSS if built.unreadable or built.missing or built.internal_errors else OK


def _print_built(out: str, built: BuildResult, *, pruned: bool) -> None:
    from tpuprof_tui.formats.escape import line_text

    def told(path: str) -> str:
        reason = built.reasons.get(path, "")
        return line_text(reason if path in reason else f"{path}: {reason}" if reason else path, 200)

    print(f"{line_text(out)}: {len(built.written):,} captures written, {len(built.replaced):,} replaced, "
          f"{built.unchanged:,} unchanged, {len(built.same):,} the same as others")  # fmt: skip
    known = set(built.known_unreadable)
    for title, paths in (
        ("unreadable (see the table problems)", [path for path in built.unreadable if path not in known]),
        ("known as unreadable, and unchanged since (see the table problems)", built.known_unreadable),
        ("deleted, and removed" if pruned else "deleted, but kept (--prune removes them)", built.deleted),
        ("missing, or not a capture", built.missing),
        ("with an internal error of tpuprof, to be reported", built.internal_errors),
    ):
        if paths:
            lines = [told(path) for path in paths[:_MOST_NAMED]] + (["..."] if len(paths) > _MOST_NAMED else [])
            print(f"{len(paths):,} {title}:", *lines, sep="\n  ")


def _compact(out: str, options: argparse.Namespace) -> int:
    from tpuprof_tui.dataset.build import compact

    before, after = compact(out)
    if options.json:
        from tpuprof_tui.formats.answers import answer_text

        print(answer_text({"action": "compact", "files_before": before, "files": after}, indent=None))
    else:
        alone = ": no folder (source, day, device) has two that can be joined" if before == after else ""
        print(f"{before:,} files became {after:,}{alone}")
    return OK


# -- queries ----------------------------------------------------------------------


def _ask(out: str, words: list[str], options: argparse.Namespace, show: Callable[..., None]) -> int:
    from tpuprof_tui.dataset import query

    with query.opened(out) as data:
        if options.parquet is not None:
            if options.limit is not None or options.offset:
                raise UsageError("--limit and --offset do not go with --parquet.", "Write LIMIT in the SQL.")
            count = query.write_parquet(data, words[0], Path(options.parquet))
            print(f"{options.parquet}: {count:,} rows")
            return OK
        queries: dict[str, Callable[[], Rows]] = {
            "query": lambda: query.run_sql(data, words[0]),
            "top": lambda: query.top(data),
            "trend": lambda: query.trend(data, words[0]),
            "outliers": lambda: query.outliers(data, options.among),
        }
        found = queries[options.action]()
        limit, skipped = options.limit, sum(1 for _ in islice(found.rows, options.offset))
        if options.csv:
            print_csv(found, limit)
        elif options.json:
            print_json({"action": options.action}, found, limit, skipped)
        else:
            title = _trend_title(words[0]) if options.action == "trend" else options.action.capitalize()
            show([rows_page(out, title, found, limit)], "--limit N shows all.")
    return OK


def _trend_title(figure: str) -> str:
    """Title of a trend: the figure, with its unit if its name does not end in it."""
    from tpuprof_tui.formats.escape import line_text

    return f"Trend of {line_text(figure)}{' (ns)' if figure.startswith(('kernel:', 'operation:')) else ''}"


# -- schema -----------------------------------------------------------------------


#: Lines after the columns of a table.
_FURTHER: Final = {
    "events": "  SOURCE_COLUMN       Further columns of the source, see tpuprof help COLUMNS.",
    "figures": """\
  Sources have different figures; those of a data set: select distinct source, figure from figures.
  They are of the views that diff compares. Others, such as critical_path and memory, would cost more time per capture:
  tpuprof report CAPTURE VIEW --json, in Python tpuprof_tui.views.registry.ask(profile, VIEW).""",
}


def _print_schema(options: argparse.Namespace) -> int:
    from tpuprof_tui.dataset.schema import FIELDS, FOLDERS, SCHEMA

    if options.json:
        from tpuprof_tui.formats.answers import answer_text

        tables = {name: [asdict(field) for field in fields] for name, fields in FIELDS.items()}
        print(answer_text({"action": "schema", "version": SCHEMA, "folders": list(FOLDERS), "tables": tables}))
        return OK
    print(f"Version {SCHEMA}. TABLE/source=.../day=.../device=.../*.parquet")
    print("Every table also has source, day (UTC, of the host's clock or else of the newest file) and device.")
    for name, columns in FIELDS.items():
        print(f"\n{name}", *(f"  {field.name:13}{field.kind:7}{field.help}" for field in columns), sep="\n")
        if name in _FURTHER:
            print(_FURTHER[name])
    return OK
