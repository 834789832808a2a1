"""Entry point of the command line: opens the explorer, or runs a command without it.

Commands import what they need: ``--help`` and ``--version`` load neither numpy nor textual.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final, NoReturn, TextIO

from msgspec import Struct

from tpuprof_tui.dataset import is_data_set
from tpuprof_tui.errors import NO_MEMORY, TpuprofError, UsageError, requires_package
from tpuprof_tui.exit_status import INTERRUPTED, LANGUAGES, OK, help_lines
from tpuprof_tui.model.vocabulary import import_entry, join_words
from tpuprof_tui.sources.catalog import RECORDINGS, SOURCES, Catalog

from . import dataset, texts
from .opening import capture_arguments, check_step, for_each_capture, must_exist, report_error, with_pipes_stored
from .options import OPTIONS, OWN_OPTIONS, CommandOption, known_outputs, output_path, source_option
from .printing import pages_of
from .texts import said

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile

#: Error codes of a full disk.
FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: Hint how to see what a shortened page leaves out.
MORE: Final = "tpuprof report CAPTURE VIEW shows one view, --limit N all rows."
IN_ORDER: Final = "one answer each, in this order"
#: Name and settings of an operand.
Operand = tuple[str, dict[str, Any]]


class Parser(argparse.ArgumentParser):
    """An argument parser that raises errors for `main` to report in one sentence."""

    #: Its command, and the language of its help.
    command = ""
    language = LANGUAGES[0]

    def error(self, message: str) -> NoReturn:
        """Raises a UsageError."""
        sentence = message[:1].upper() + message[1:]
        raise UsageError(sentence.rstrip(".") + ".", f"See {self.prog} --help.")

    def format_help(self) -> str:
        """The help, including the table of exit statuses."""
        own = "" if self.command == "open" else self.command
        return f"{super().format_help()}\n{help_lines(own, self.language)}"


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """A formatter that knows the terminal's width, for which argparse imports ``shutil``: slow, and for each argument.

    The width is that of ``COLUMNS`` or of the terminal on standard output; otherwise 80 columns.
    """

    def __init__(self, prog: str, **settings: Any) -> None:
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isdecimal() else 0
        if not width and sys.__stdout__ is not None:
            with suppress(ValueError, OSError):  # closed, or not a terminal
                width = os.get_terminal_size(sys.__stdout__.fileno()).columns
        super().__init__(prog, width=(width or 80) - 2, **settings)


class Subcommand(Struct, frozen=True):
    """A command of the command line."""

    help: str  #: Help in one line
    #: Entry (see `entry`, also for the functions below) of the function that runs it and returns the exit status.
    run: str
    operands: tuple[Operand, ...] = ()  #: Positional arguments
    #: Description in the help, unless a source's vocabulary has one (``NAME_help`` among its texts).
    description: str = ""
    epilog: str = ""  #: Lines below the options
    reads: bool = True  #: Whether it takes the options for reading a capture
    arguments: str = ""  #: Entry of a function that adds all arguments to the parser, instead of the common ones
    #: Entry of a function that translates a parser's help as the arguments request; returns the language.
    localise: str = ""
    completions: str = ""  #: Entry of a function that returns completions by the preceding words


def entry(path: str) -> Any:
    """Imports the function that an entry of a command ("module:function", within this package) refers to."""
    return import_entry(f"{__package__}.{path}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        arguments: Arguments without the program's name; None for those of the process.

    Returns:
        Exit status, see ``exit_status``.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    status: int = OK
    if sys.stderr is None:
        # closed: print would write notes to stdout
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        if sys.stdout is None:
            raise UsageError("Standard output is closed.", "Redirect it to a file or to /dev/null.")
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        name, rest = split_command(words)
        try:
            with requires_package("tpuprof"):
                # parse first: --help and usage errors need none of the command's imports
                options = parsed(name, rest)
                status = entry(COMMANDS[name].run)(options)
        except SystemExit as ended:
            # argparse leaves so after --help and --version
            status = ended.code if isinstance(ended.code, int) else OK
        sys.stdout.flush()
        return status
    except TpuprofError as error:
        return report_error(str(error), error.exit_code)
    except BrokenPipeError:
        # the reader closed the pipe, such as head: no error, but a known status stays
        _drop_output(sys.stdout)
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except MemoryError:
        return report_error(NO_MEMORY)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            _drop_output(sys.stdout)
            return report_error(f"The output could not be written: {os.strerror(error.errno or 0)}.")
        if "--debug" in words:
            raise
        from tpuprof_tui.crash_log import reported

        return report_error(reported(error, words))
    finally:
        # what is left in a buffer is flushed again at exit, where a failure has its own message and status
        for stream in filter(None, (sys.stdout, sys.stderr)):
            try:
                stream.flush()
            except OSError:
                _drop_output(stream)


def split_command(words: Sequence[str]) -> tuple[str, list[str]]:
    """Splits arguments into the command and the remaining words; the default command is ``open``.

    The command is the first word that is neither an option nor an option's value, so options may precede it.
    """
    valued = {flag for option in OPTIONS if "action" not in option.settings for flag in option.flags}
    index = 0
    while index < len(words):
        word = words[index]
        if word == "--":
            break
        if word.startswith("-") and word != "-":
            index += 2 if word in valued else 1
            continue
        if word in COMMANDS and word != "open":
            return word, [*words[:index], *words[index + 1 :]]
        break
    return "open", list(words)


def parsed(name: str, words: Sequence[str]) -> argparse.Namespace:
    """Parses the options of a command; ``source`` of the result holds the given source options by name.

    If that fails, sources of other packages are loaded and their options are accepted too.

    Raises:
        UsageError: The options are invalid.
    """
    own = OWN_OPTIONS
    try:
        options = _parse(localised_parser(name, words), name, words)
    except UsageError:
        others = tuple(option for source in Catalog().others for option in source.options)
        if not others:
            raise
        own += others
        options = _parse(build_parser(name, [source_option(option) for option in others]), name, words)
    options.source = {each.name: value for each in own if (value := getattr(options, each.name, None)) is not None}
    options.own = own
    return options


def _parse(parser: Parser, name: str, words: Sequence[str]) -> argparse.Namespace:
    # these commands take several operands, which may be mixed with options
    mixed = COMMANDS[name].arguments or name in ("report", "diff", "gate", "baseline")
    return (parser.parse_intermixed_args if mixed else parser.parse_args)(words)


def localised_parser(name: str, words: Sequence[str] = ()) -> Parser:
    """The parser of a command, with its help in the user's language if available."""
    parser = build_parser(name)
    if COMMANDS[name].localise:
        parser.language = entry(COMMANDS[name].localise)(parser, words)
    return parser


def build_parser(name: str, more: Sequence[CommandOption] = ()) -> Parser:
    """The parser of a command; ``more``: options of sources of other packages."""
    command = COMMANDS[name]
    opens = name == "open"
    others = "".join(f"  {other:13} {each.help}\n" for other, each in COMMANDS.items() if other != "open")
    epilog = f"commands:\n{others}\n{texts.MORE_OPTIONS}" if opens else command.epilog
    parser = Parser(
        prog="tpuprof" if opens else f"tpuprof {name}",
        usage="tpuprof [CAPTURE ...] [options]\n       tpuprof COMMAND ... [options]" if opens else None,
        description=texts.own_text(f"{name}_help") or command.description or command.help,
        epilog="\n".join(filter(None, (epilog, texts.examples(name)))) or None,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.command = name
    if command.arguments:
        entry(command.arguments)(parser)
        return parser
    for operand, settings in command.operands:
        parser.add_argument(operand, **settings)
    for option in (*OPTIONS, *more) if command.reads else ():
        if not option.commands or name in option.commands:
            parser.add_argument(*option.flags, **option.settings)
    return parser


def open_command(options: argparse.Namespace) -> int:
    """Opens the explorer; without a terminal prints the summary or the comparison."""
    from tpuprof_tui.analysis.selecting.state import Place

    if options.captures == ["-"] and not sys.stdin.isatty():
        return summary_command(options)
    if len(options.captures) != 1 or not is_data_set(options.captures[0]):
        for path in options.captures:
            must_exist(path, "tpuprof FOLDER lists the captures in a folder.")
    for option in options.own:
        if option.missing and option.name in options.source:
            must_exist(options.source[option.name], option.missing)
    if options.together:
        options.captures, options.source[RECORDINGS.name] = _together(options.captures)
    against = options.against
    if against is not None:
        if len(options.captures) != 1:
            raise UsageError("--against compares one capture with another.", "Name one: tpuprof OTHER --against BASE.")
        must_exist(against, "tpuprof OTHER --against BASE compares them.")
    if options.notes and len(options.captures) != 1:
        raise UsageError("--notes is about one capture.", "Name one: tpuprof CAPTURE --notes FILE.")
    place = Place(options.range or "", options.core, options.group or "", options.filter or "", options.select or "",
                  options.view or "")  # fmt: skip
    if not _is_terminal():
        if place != Place():
            raise UsageError(
                "A place can only be opened in a terminal.", "Here: tpuprof report CAPTURE --range A..B --core N."
            )
        if against is not None:
            from .diff import print_diff

            usual = vars(parsed("diff", ["base", "other"]))
            asked = {**usual, "base": against, "other": options.captures[0], **vars(options)}
            return print_diff(argparse.Namespace(**asked))
        if not options.captures:
            raise UsageError("No capture given, and this is not a terminal to choose one in.", "See tpuprof --help.")
        return summary_command(options)
    from tpuprof_tui.app import run

    captures, base = list(map(with_pipes_stored, options.captures)), against and with_pipes_stored(against)
    return run(
        captures, options=options.source, ascii=options.ascii, mouse=options.mouse, debug=options.debug,
        follow=options.follow, against=base, notes=options.notes or "", place=place,
    )  # fmt: skip


def _together(paths: Sequence[str]) -> tuple[list[str], str]:
    """The folder of some recordings, and their names as an option; of a single folder all.

    Raises:
        UsageError: They are not in one folder.
    """
    if len(paths) == 1:
        return list(paths), "*"
    folders = {os.path.dirname(os.path.abspath(path)) for path in paths}
    if len(folders) != 1:
        raise UsageError("--together opens recordings of one folder.", "Name a folder, or several of its files.")
    return [folders.pop()], ",".join(os.path.basename(path).replace(",", "?") for path in paths)


def info_command(options: argparse.Namespace) -> int:
    """Prints properties and problems of captures, or which source opens them (``--why``)."""
    if options.why:
        from .source_choice import tell_source_choice

        return tell_source_choice(capture_arguments(options), as_json=options.json)
    from tpuprof_tui.views.as_text import ROWS
    from tpuprof_tui.views.info import info_json
    from tpuprof_tui.views.text_pages import info_report

    limit, offset = options.limit, options.offset
    if options.json:
        return for_each_capture(
            options,
            lambda profile: print(info_json(profile, memory=options.memory, limit=limit, offset=offset)),
            headed=False,
        )
    rows, show = ROWS if limit is None else limit, pages_of(options).show
    return for_each_capture(
        options, lambda profile: show([info_report(profile, memory=options.memory, limit=rows, offset=offset)], MORE)
    )


def summary_command(options: argparse.Namespace) -> int:
    """Prints a summary of each capture: where the time went."""
    from tpuprof_tui.analysis.query import query_of
    from tpuprof_tui.views.text_pages import ROWS, summary_report

    # the command `open` without a terminal has no such options
    step, limit = getattr(options, "step", None), getattr(options, "limit", None)
    show = pages_of(options).show

    def tell(profile: Profile) -> None:
        check_step(query_of(profile, step=step))
        show([summary_report(profile, step, ROWS if limit is None else limit)], MORE)

    return for_each_capture(options, tell)


def dataset_command(options: argparse.Namespace) -> int:
    """Builds or queries a data set of captures."""
    return dataset.run(options, pages_of(options).show)


def _drop_output(stream: TextIO) -> None:
    """Redirects a stream to /dev/null, so that the flush of its buffer at exit cannot fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _is_terminal() -> bool:
    capable = os.environ.get("TERM", "") not in ("", "dumb", "unknown")
    # Textual draws on stderr: all three streams must be the terminal
    return capable and all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


_WHERE: Final = "directory of a capture, or a file in it, or a trace"
_CAPTURE: Final[Operand] = ("capture", {"metavar": "CAPTURE", "nargs": "?", "help": _WHERE})


def _operand(name: str, metavar: str, text: str, nargs: str | None = None, **settings: Any) -> Operand:
    # with a default, messages about what is missing do not name it
    default: dict[str, Any] = {"default": []} if nargs == "*" else {}
    return name, {"metavar": metavar, "nargs": nargs, "help": text, **default, **settings}


def _captures(several: str, where: str = _WHERE) -> Operand:
    """The operand for captures; ``several``: what the command does with several, as the end of its help."""
    return _operand("captures", "CAPTURE", f"{where}; several: {several}", "*")


#: Characters of a line of help.
_WIDTH: Final = 100
COMMANDS: Final = {
    "open": Subcommand(
        "open a capture in the explorer",
        "main:open_command",
        (_captures("a list to choose from", f"{_WHERE}; or a folder of captures"),),
        fill(f"Explore a profile in the terminal: {join_words((source.title for source in SOURCES), 'or')}.", _WIDTH)
        + "\nWithout a terminal the summary is printed.",
    ),
    "summary": Subcommand("where the time went, as text", "main:summary_command", (_captures(IN_ORDER),)),
    "report": Subcommand(
        "all figures, by view, as text or JSON",
        "report:print_report",
        (_CAPTURE, _operand("views", "VIEW", "only these views (--list names them)", "*")),
        texts.REPORT_HELP,
    ),
    "diff": Subcommand(
        "what changed from one capture to another, and why",
        "diff:print_diff",
        (
            _operand("base", "CAPTURE", "base of the comparison"),
            _operand("other", "CAPTURE", "capture to compare"),
            _operand("more", "CAPTURE|VIEW", "further captures; also these views, with differences", "*"),
        ),
        texts.DIFF_HELP,
    ),
    "gate": Subcommand(
        "whether a change may pass: PASS, FAIL or INCONCLUSIVE",
        "gate:print_gate",
        (_operand("others", "CAPTURE", "runs to judge", "+"),),
        texts.GATE_HELP,
    ),
    "baseline": Subcommand(
        "keep figures of captures in a small file, for gate",
        "gate:save_baseline",
        (
            ("what", {"choices": ("save",), "help": "what to do"}),
            _operand("name", "FILE", "file to write (.json is added if it has no suffix)", type=output_path),
            _operand("captures", "CAPTURE", "runs of the same program", "+"),
        ),
        texts.BASELINE_HELP,
    ),
    "describe": Subcommand(
        "what a profile holds and what can be queried, in 2 kB",
        "describe:print_description",
        (_captures(IN_ORDER),),
        texts.DESCRIBE_HELP,
    ),
    "info": Subcommand(
        said("what a capture is: chip, clocks, {units}, lanes, problems"),
        "main:info_command",
        (_captures(IN_ORDER),),
        texts.INFO_HELP,
    ),
    "instructions": Subcommand(said("every {event} as JSON lines, CSV or Parquet"), "instructions:run", (_CAPTURE,)),
    "query": Subcommand(
        "SQL over the tables of a profile, or of a data set",
        "query:print_query",
        (_CAPTURE, _operand("sql", "SQL", "one SELECT, in quotes", "?")),
        texts.QUERY_HELP,
        texts.QUERY_EXAMPLES,
    ),
    "export": Subcommand(
        join_words(output.title for output in known_outputs()),
        "export:run",
        (_CAPTURE, _operand("folder", "OUTDIR", "output folder (default: profile_out)", "?", type=output_path)),
    ),
    "dataset": Subcommand(
        "many captures as one data set, and queries on it",
        "main:dataset_command",
        description=dataset.HELP,
        epilog=dataset.EXAMPLES,
        arguments="dataset:add_arguments",
    ),
    "options": Subcommand(
        "profiling options: explain, check, make",
        "profiling_options:options_command",
        arguments="profiling_options:add_arguments",
        localise="profiling_options:localise",
        completions="profiling_options:completions",
    ),
    "help": Subcommand(
        "help on a command, all keys, all columns, the manual page",
        "help:print_help",
        (
            _operand("topic", "TOPIC", f"a command, or one of {', '.join(texts.TOPICS)}", "?"),
            _operand("of", "COMMAND", "of schema a command, of KEYS, COLUMNS and FILTER a capture", "?"),
        ),
        texts.HELP_HELP,
        texts.HELP_EXAMPLES,
        reads=False,
    ),
    "skill": Subcommand(
        "a SKILL.md for agents: questions, evidence, worked examples",
        "skill:skill_command",
        description=texts.SKILL_HELP,
        epilog=texts.SKILL_EXAMPLES,
        arguments="skill:add_arguments",
    ),
    "cache": Subcommand(
        "what is kept of large files that were read",
        "cache:cache_command",
        description=texts.CACHE_HELP,
        epilog=texts.CACHE_EXAMPLES,
        arguments="cache:add_arguments",
    ),
    "completion": Subcommand(
        "a script for shell completion",
        "completion:print_script",
        (("shell", {"choices": texts.SHELLS, "help": "the shell"}),),
        texts.COMPLETION_HELP,
        texts.COMPLETION_EXAMPLES,
        reads=False,
    ),
}
