"""The options of the command line: flags, settings, and which commands take them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct

from tpuprof_tui import __version__
from tpuprof_tui.export.outputs import TABLES
from tpuprof_tui.model.vocabulary import Output, joined
from tpuprof_tui.sources.catalog import SOURCES, SourceOption

from .diff import share
from .export import EXPORT_OPTIONS, SHARED_OPTIONS
from .texts import own_text, said


class Option(Struct, frozen=True):
    """An option of some commands.

    Attributes:
        flags: As they are typed.
        settings: As argparse takes them.
        commands: Which take it; none: all that open something.
        offered: Values that completion offers besides the choices of the settings.
        own: Further settings that the vocabularies of sources give, asked for by the command that takes it.
    """

    flags: tuple[str, ...]
    settings: dict[str, Any]
    commands: tuple[str, ...] = ()
    offered: Callable[[], Sequence[str]] = tuple
    own: Callable[[], dict[str, Any]] = dict

    @property
    def takes_value(self) -> bool:
        """Whether a word follows the flag."""
        return "action" not in self.settings


def _count(text: str) -> int:
    if text.isdecimal() and len(text) < 19:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no whole number")


def _core(text: str) -> int:
    if text.isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError(said("{text!r} is not the number of {a_unit}", text=text))


def lane_kinds() -> tuple[str, ...]:
    """Keys of the kinds of lanes that help and completion offer: those of the device, of this package's sources."""
    from tpuprof_tui.sources.catalog import vocabularies

    kinds = [kind for each in vocabularies() for kind in each.lane_kinds if not kind.on_host]
    return tuple(dict.fromkeys(kind.key for kind in kinds))


def known_outputs() -> tuple[Output, ...]:
    """The files that profiles of all sources can be written as, in the order of lists."""
    from tpuprof_tui.export.outputs import outputs_of_all
    from tpuprof_tui.sources.catalog import vocabularies

    return outputs_of_all(vocabularies())


def output_keys() -> tuple[str, ...]:
    """What the command line calls them."""
    return tuple(output.key for output in known_outputs())


def _told(flag: str, text: str) -> dict[str, Any]:
    """The help of an option of `export`: ``{outputs}`` are those of the set it names, ``{keys}`` all there are."""
    chosen = flag.removeprefix("--").removeprefix("disable_")
    titles = joined(output.title for output in known_outputs() if chosen in output.sets) if "{outputs}" in text else ""
    return {"help": text.replace("{outputs}", titles).replace("{keys}", ",".join(output_keys()))}


def _commands_of(flag: str) -> tuple[str, ...]:
    """Which commands take an option of `export`."""
    more = ("instructions",) if flag in SHARED_OPTIONS else ()
    return ("export", *more, *(("open", "report") if flag == "--range" else ()))


def source_option(option: SourceOption) -> Option:
    """An option of a source, for all commands that open something."""
    return Option(option.flags, {**option.settings, "dest": option.name}, offered=option.choices)


#: Options of the sources of this package.
OWN_OPTIONS: Final = tuple(option for source in SOURCES for option in source.options)

OPTIONS: Final = (
    *map(source_option, OWN_OPTIONS),
    Option(
        ("--json",),
        {"action": "store_true", "help": "one JSON object"},
        ("describe", "diff", "gate", "info", "report"),
    ),
    Option(
        ("--list",),
        {"action": "store_true", "dest": "list_views", "help": "name the views there are, a line each"},
        ("report",),
    ),
    Option(
        ("--group",),
        {"metavar": "GROUP", "help": said("only this group: its number ({a_unit}'s) or its name")},
        ("open", "report"),
    ),
    Option(
        ("--rank",),
        {"type": _count, "metavar": "N", "help": "only the worker of this rank"},
        ("report",),
    ),
    Option(
        ("--limit",),
        {
            "type": _count,
            "metavar": "N",
            "help": "rows of each table at most (default: as many as 8 kB of text hold; all with --json, and of "
            "instructions to a pipe or file)",
        },
        ("summary", "report", "diff", "info", "instructions"),
    ),
    Option(
        ("--markdown",),
        {"action": "store_true", "help": "Markdown, for a merge request"},
        ("summary", "report", "diff", "gate"),
    ),
    Option(
        ("--run-noise",),
        {
            "type": share,
            "metavar": "SHARE",
            "default": 0.02,
            "help": "how far runs of the same lie apart where nothing measures it (default: 2%%)",
        },
        ("diff", "gate"),
    ),
    Option(
        ("--against",),
        {"nargs": "+", "metavar": "CAPTURE", "help": "what they are compared with: runs, or a baseline file"},
        ("gate",),
    ),
    Option(
        ("--fail-on",),
        {"action": "append", "metavar": "RULE", "help": "what must not be, such as 'total>3%%'; any number of these"},
        ("gate",),
    ),
    Option(
        ("--level",),
        {"type": share, "metavar": "SHARE", "default": 0.01, "help": "chance of a false alarm (default: 1%%)"},
        ("gate",),
    ),
    Option(
        ("--offset",),
        {"type": _count, "metavar": "N", "default": 0, "help": "rows of each table that are passed over"},
        ("report", "diff", "info", "instructions"),
    ),
    Option(
        ("--why",),
        {
            "action": "store_true",
            "help": "open nothing, say which source would open it and what each of them looked for",
        },
        ("info",),
    ),
    Option(
        ("--memory",),
        {"action": "store_true", "help": "also what the opened capture takes of memory, by what holds it"},
        ("info",),
    ),
    Option(
        ("--format",),
        {
            "choices": tuple(table.key for table in TABLES),
            "default": "jsonl",
            "help": said("one JSON object or CSV row per {event}, or a Parquet file (needs pyarrow)"),
        },
        ("instructions",),
    ),
    Option(
        ("--columns",),
        {"metavar": "LIST", "help": "the explorer's table: just these columns, empty where nothing is known"},
        ("instructions",),
    ),
    Option(
        ("--sort",),
        {"metavar": "COLUMN", "help": said("rows of all {lanes} by a column, COLUMN:desc: largest first")},
        ("instructions",),
    ),
    Option(
        ("--output",),
        {"metavar": "FILE", "help": "a file instead of stdout; it appears whole or not at all"},
        ("instructions",),
    ),
    Option(
        ("--output",),
        {"metavar": "FILE", "help": "also a file: .json, .md (Markdown) or .xml (JUnit) by how its name ends"},
        ("gate",),
    ),
    Option(
        ("--lane",),
        {"type": _core, "help": argparse.SUPPRESS},
        ("instructions",),
    ),
    Option(
        ("--core",),
        {"type": _core, "metavar": "N"},
        ("open", "instructions", "report"),
        own=lambda: {"help": own_text("instructions_core") or said("only {unit} N")},
    ),
    Option(
        ("--engine",),
        {"help": said("only one {lane}")},
        ("instructions",),
        offered=lane_kinds,
        # the profile says which there are
        own=lambda: {"metavar": f"{{{','.join(lane_kinds())}}}"},
    ),
    Option(
        ("--filter",),
        {"metavar": "EXPR", "help": said("only {events} that pass, such as 'kernel=rmsnorm* dur>1us'")},
        ("open", "instructions", "export", "report"),
    ),
    Option(
        ("--select",),
        {"metavar": "LANE:ROW", "help": said("select {a_event}, as the command place tells it")},
        ("open",),
    ),
    Option(
        ("--notes",),
        {"metavar": "FILE", "help": "marks, kept spans and notes (default: .tpuprof-notes.json in the capture)"},
        ("open", "export", "report"),
    ),
    Option(
        ("--step",),
        {
            "type": _count,
            "metavar": "N",
            "help": "only what belongs to step N: a batch, an iteration, a repetition",
        },
        ("summary", "report", "diff", "instructions", "export"),
    ),
    Option(
        ("--redact",),
        {
            "action": "store_true",
            "help": "for sharing: host1, user1, path1, capture1 in place of hosts, users, paths, addresses and names "
            "of captures; names of kernels, operations, modules and networks stay",
        },
        ("export", "report", "instructions"),
    ),
    *(
        Option(
            flags,
            settings,
            _commands_of(flags[0]),
            own=partial(_told, flags[0], settings["help"]) if "{" in settings["help"] else dict,
        )
        for flags, settings in EXPORT_OPTIONS
    ),
    Option(
        ("--against",),
        {"metavar": "CAPTURE", "help": "what it is compared with: the summary tells differences, the cause first"},
        ("open",),
    ),
    Option(
        ("--ascii",),
        {"action": "store_const", "const": True, "dest": "ascii", "help": "draw with ASCII characters alone"},
        ("open",),
    ),
    Option(
        ("--unicode",),
        {"action": "store_const", "const": False, "dest": "ascii", "help": "draw with Unicode whatever the locale"},
        ("open",),
    ),
    Option(
        ("--no-mouse",),
        {"action": "store_false", "dest": "mouse", "help": "leave the mouse to the terminal"},
        ("open",),
    ),
    Option(
        ("--follow",),
        {"action": "store_true", "help": "read the capture again when it changes, and new ones beside it"},
        ("open",),
    ),
    Option(("--debug",), {"action": "store_true", "help": "show the traceback of an unexpected error"}),
    Option(("--version",), {"action": "version", "version": f"tpuprof {__version__}"}),
)
