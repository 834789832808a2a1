"""Options of the command line: flags, argparse settings, and the commands that take them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from tpuprof_tui import __version__
from tpuprof_tui.export.outputs import TABLES, outputs_of_all
from tpuprof_tui.formats.parsing import step_typed
from tpuprof_tui.model.vocabulary import Output, join_words
from tpuprof_tui.sources.catalog import SOURCES, Catalog, SourceOption, vocabularies

from .texts import said


class CommandOption(Struct, frozen=True):
    """An option of some commands."""

    flags: tuple[str, ...]  #: Flags as typed
    settings: dict[str, Any]  #: Keyword arguments of ``add_argument``
    commands: tuple[str, ...] = ()  #: Commands that take it; empty: all commands that open something
    offered: Callable[[], Sequence[str]] = tuple  #: Values that completion offers besides the choices of the settings


def _switch(flags: str, commands: str, text: str, action: str = "store_true", **settings: Any) -> CommandOption:
    """Declares an option without a value; ``flags`` and ``commands`` are separated by blanks."""
    return CommandOption(tuple(flags.split()), {**settings, "help": text, "action": action}, tuple(commands.split()))


def _valued(flags: str, commands: str, metavar: str, text: str, **settings: Any) -> CommandOption:
    """Declares an option with a value."""
    return CommandOption(tuple(flags.split()), {**settings, "help": text, "metavar": metavar}, tuple(commands.split()))


def _number(flags: str, commands: str, text: str, **settings: Any) -> CommandOption:
    """Declares an option with an integer value."""
    return _valued(flags, commands, "N", text, **{"type": _count, **settings})


def output_path(text: str) -> str:
    """Parses a path to write to; refuses an empty one, such as an unset variable of the shell, and a capture's file."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the path is empty")
    if os.path.isfile(text) and Catalog().source_of(text) is not None:
        raise argparse.ArgumentTypeError(f"{text} is a capture, which is not replaced")
    return text


def _share(text: str) -> float:
    """Parses a share: ``2%`` or ``0.02``."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share: write 2% or 0.02")
    return value


def _count(text: str) -> int:
    if text.isdecimal() and len(text) < 19:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")


def _step(text: str) -> int:
    number = step_typed(text)
    if number is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of a step")
    return number


def _unit_number(text: str) -> int:
    if text.isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError(said("{text!r} is not the number of {a_unit}", text=text))


def _unit_count(text: str) -> int:
    if text.isdecimal() and len(text) < 10 and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of {said('{units}')}")


def lane_kinds() -> tuple[str, ...]:
    """Keys of the lane kinds that help and completion offer: device lanes of this package's sources."""
    kinds = [kind for each in vocabularies() for kind in each.lane_kinds if not kind.on_host]
    return tuple(dict.fromkeys(kind.key for kind in kinds))


def known_outputs() -> tuple[Output, ...]:
    """Export formats of all sources, in the order of lists."""
    return outputs_of_all(vocabularies())


def output_keys() -> tuple[str, ...]:
    """Keys of the export formats on the command line."""
    return tuple(output.key for output in known_outputs())


def _titles(name: str) -> str:
    """Joined titles of the export formats of a set (``Output.sets``)."""
    return join_words(output.title for output in known_outputs() if name in output.sets)


def source_option(option: SourceOption) -> CommandOption:
    """Command line option for an option of a source; all commands that open something take it."""
    return CommandOption(option.flags, {**option.settings, "dest": option.name}, offered=option.choices)


#: Forms of a range.
_TIMES: Final = "1.2ms..3.4ms, 30%%..40%%, 1.2ms..+5us"
#: Options of the sources of this package.
OWN_OPTIONS: Final = tuple({option.name: option for source in SOURCES for option in source.options}.values())

OPTIONS: Final = (
    *map(source_option, OWN_OPTIONS),
    _switch("--json", "describe diff gate info query report", "one JSON object"),
    _switch("--list", "report", "list the views, one per line", dest="list_views"),
    _valued(
        "--group",
        "open report",
        "GROUP",
        said("only this group: the number of {a_unit}, or the name of it or of a {lane}"),
    ),
    _number("--rank", "report", "only the worker of this rank"),
    _number(
        "--limit",
        "summary report diff info instructions",
        "maximum rows per table (default: as many as fit into 8 kB of text; all with --json, and for instructions to a "
        "pipe or file)",
    ),
    _number("--limit", "query", "maximum rows (default: 20; 100,000 with --json or --csv)"),
    _switch("--csv", "query", "rows as CSV"),
    _switch("--schema", "query", "instead of rows the tables and their columns"),
    _number("--seconds", "query", "most seconds that the query may take (default: 60)", default=60),
    _number("--memory", "query", "most memory that the query may take, MiB (default: 2048)", default=2048),
    _switch("--markdown", "summary report diff gate", "Markdown, for a merge request"),
    _valued(
        "--run-noise",
        "diff gate",
        "SHARE",
        "assumed spread between runs where it is not measured (default: 2%%)",
        type=_share,
        default=0.02,
    ),
    _valued("--against", "gate", "CAPTURE", "base of the comparison: runs or a baseline file", nargs="+"),
    _valued("--fail-on", "gate", "RULE", "what must not happen, such as 'total>3%%'; can be repeated", action="append"),
    _valued("--level", "gate", "SHARE", "chance of a false alarm (default: 1%%)", type=_share, default=0.01),
    _number("--offset", "report diff info instructions query", "number of rows to skip in each table", default=0),
    _switch("--why", "info", "open nothing, say which source would open it and what each of them looked for"),
    _switch("--memory", "info", "also the memory of its columns, and of the process"),
    CommandOption(
        ("--format",),
        {
            "choices": tuple(table.key for table in TABLES),
            "default": "jsonl",
            "help": said("one JSON object or CSV row per {event}, or a Parquet file (needs pyarrow)"),
        },
        ("instructions",),
    ),
    _valued(
        "--columns", "instructions", "LIST", "the explorer's table: only these columns, empty where nothing is known"
    ),
    _valued("--sort", "instructions", "COLUMN", said("sort rows of all {lanes}; COLUMN:desc: largest first")),
    _valued(
        "--output",
        "instructions",
        "FILE",
        "write to a file instead of stdout; complete or not at all",
        type=output_path,
    ),
    _valued(
        "--output",
        "gate",
        "FILE",
        "also write a file, by suffix: .json, .md (Markdown) or .xml (JUnit)",
        type=output_path,
    ),
    CommandOption(("--lane",), {"type": _unit_number, "help": argparse.SUPPRESS}, ("instructions",)),
    _number(
        "--core --gpu --npu",
        "open instructions report",
        said("only {unit} N, a core, GPU or NPU, with the commands that it submitted to ports"),
        type=_unit_number,
    ),
    # not ``choices``: the valid kinds depend on the profile
    CommandOption(
        ("--engine",),
        {"help": said("only one {lane}"), "metavar": f"{{{','.join(lane_kinds())}}}"},
        ("instructions",),
        lane_kinds,
    ),
    _valued(
        "--filter",
        "open instructions export report",
        "EXPR",
        said("only {events} that pass, such as 'kernel=rmsnorm* dur>1us'"),
    ),
    _valued("--select", "open", "LANE:ROW", said("select {a_event}, as the key @ copies it")),
    _valued("--view", "open", "VIEW", "fill the summary with one view"),
    _valued(
        "--notes",
        "open export report",
        "FILE",
        "marks, kept spans and notes (default: .tpuprof-notes.json in the capture)",
    ),
    _number(
        "--step",
        "summary report diff instructions export",
        "only what belongs to step N, or to the one with this label: a batch, an iteration, a repetition",
        type=_step,
    ),
    _switch(
        "--redact",
        "export report instructions",
        "for sharing: host1, user1, path1, capture1 in place of hosts, users, paths, addresses and names of captures; "
        "names of kernels, operations, modules and networks stay",
    ),
    _valued("--only", "export", "KINDS", f"only these: {','.join(output_keys())}"),
    _valued(
        "--cores --gpus --npus",
        "export",
        "LIST",
        said("only these {units} (cores, GPUs, NPUs), and what they submitted to ports: 0,3 or 0-3"),
    ),
    _valued("--range", "open", "A..B", f"open at this time; figures are those of report --range: {_TIMES}"),
    _valued(
        "--range",
        "report",
        "A..B",
        said(f"count {{events}} that start in this time, and cut busy times at its edges: {_TIMES}"),
    ),
    _valued(
        "--range",
        "export instructions",
        "A..B",
        said(f"only {{events}} that start in this time, whole also where they reach beyond it: {_TIMES}"),
    ),
    _switch("--perfetto", "export", f"also {_titles('perfetto')}"),
    _switch("--disable_web --disable-web", "export", f"no {_titles('web')}"),
    _switch("--disable_doc --disable-doc", "export", f"no {_titles('doc')}"),
    _switch("--disable_summary --disable-summary", "export", f"no {_titles('summary')}"),
    _switch("--enable_doc --enable-doc", "export", f"{_titles('enable_doc')} and nothing else"),
    _number(
        "--num_core --num-core",
        "export",
        said("only {units} 0..N-1 in {outputs}", outputs=_titles("num_core")),
        type=_unit_count,
    ),
    _switch("--machine", "export", argparse.SUPPRESS),
    _valued("--expect", "export instructions", "FINGERPRINT", argparse.SUPPRESS),
    _valued("--reference", "diff", "CAPTURE", "the capture among the given ones that the others are compared with"),
    _valued("--against", "open", "CAPTURE", "base to compare with: the summary shows differences, the cause first"),
    _switch("--ascii", "open", "draw only with ASCII characters", "store_const", const=True, dest="ascii"),
    _switch("--unicode", "open", "draw with Unicode whatever the locale", "store_const", const=False, dest="ascii"),
    _switch("--no-mouse", "open", "leave the mouse to the terminal", "store_false", dest="mouse"),
    _switch("--together", "open", "the given recordings, or all of a folder, on one time line instead of a list"),
    _switch("--follow", "open", "read the capture again when it changes, and new ones in its folder"),
    _switch("--debug", "", "show the traceback of an unexpected error"),
    CommandOption(("--version",), {"action": "version", "version": f"tpuprof {__version__}"}),
)
