"""The command line: opens the explorer, or prints and writes without it.

Everything heavy is imported by the command that needs it: ``--help`` and ``--version`` load neither numpy nor textual.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from msgspec import Struct

from tpuprof_tui.dataset import is_data_set
from tpuprof_tui.errors import NO_MEMORY, TpuprofError, UnreadableError, UsageError, needed_for
from tpuprof_tui.exit_status import FINE, LANGUAGES, LOST, NOTHING, STOPPED, help_lines
from tpuprof_tui.model.vocabulary import joined
from tpuprof_tui.sources.catalog import Catalog

from . import dataset
from .export import check_expected, run_asked
from .options import OPTIONS, OWN_OPTIONS, Option, known_outputs, source_option
from .pages import Pages
from .profiling_options import add_arguments, completions, localise, options_command
from .steps import check_step
from .texts import (
    BASELINE_HELP,
    COMPLETION_EXAMPLES,
    COMPLETION_HELP,
    DESCRIBE_HELP,
    DIFF_HELP,
    GATE_HELP,
    HELP_EXAMPLES,
    HELP_HELP,
    INFO_HELP,
    MORE_OPTIONS,
    REPORT_HELP,
    SHELLS,
    TOPICS,
    examples,
    own_text,
    said,
)

if TYPE_CHECKING:
    from tpuprof_tui.analysis.derived import Memory
    from tpuprof_tui.model import Profile
    from tpuprof_tui.sources.catalog import Part

#: Errors of a disk that takes no more.
FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


NO_CAPTURE: Final = "No capture given.", "See tpuprof --help; a capture named like a command is ./NAME."
#: What tells what a page of a capture leaves out.
MORE: Final = "tpuprof report CAPTURE VIEW tells one view, --limit N all."
IN_ORDER: Final = "one answer each, in this order"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, told by `main`."""

    def error(self, message: str) -> NoReturn:
        """Raises a UsageError."""
        sentence = message[:1].upper() + message[1:]
        raise UsageError(sentence.rstrip(".") + ".", f"See {self.prog} --help.")

    #: The command it is of, and the language of its help.
    command = ""
    language = LANGUAGES[0]
    _complete = False

    def format_help(self) -> str:
        """With what the sources say: their vocabularies are imported by who asks for help alone."""
        self.complete()
        own = "" if self.command == "open" else self.command
        return f"{super().format_help()}\n{help_lines(own, self.language)}"

    def complete(self) -> None:
        """Puts the sources' own words into description and epilog."""
        if self._complete:
            return
        self._complete = True
        self.description = own_text(f"{self.command}_help") or self.description
        found = examples(self.command)
        if found:
            self.epilog = "\n".join(filter(None, (self.epilog, found)))


class Command(Struct, frozen=True):
    """Something the tool does.

    Attributes:
        help: One line.
        run: Does it; gives the exit status.
        description: More lines.
        epilog: Lines below the options.
        after: Name and settings of what may follow the capture or the operand; None: nothing.
        several: What it does with several captures, the rest of a sentence; empty: it takes one.
        operand: Name and settings of what it is about; None: a capture, read with the options for reading one.
        operands: Names and settings of what stands in place of one capture, read with the same options.
        arguments: Gives a parser all words and options of a command that is not about a capture.
        localise: Puts a parser's help into the language that words ask for; gives the language.
        completions: What may follow words of the command, by the words before.
    """

    help: str
    run: Callable[[argparse.Namespace], int]
    description: str = ""
    epilog: str = ""
    after: tuple[str, dict[str, Any]] | None = None
    several: str = ""
    operand: tuple[str, dict[str, Any]] | None = None
    operands: tuple[tuple[str, dict[str, Any]], ...] = ()
    arguments: Callable[[Parser], None] | None = None
    localise: Callable[[Parser, Sequence[str]], str] | None = None
    completions: Callable[[], dict[str, tuple[str, ...]]] | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        arguments: Words after the program's name; None for those of the process.

    Returns:
        Exit status, see ``exit_status``.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        name, rest = split_command(words)
        with needed_for("tpuprof"):
            status = COMMANDS[name].run(parsed(name, rest))
        sys.stdout.flush()
        return status
    except TpuprofError as error:
        return _told(str(error), error.exit_code)
    except BrokenPipeError:
        # whoever read has seen enough
        _drop_output()
        return FINE
    except KeyboardInterrupt:
        return STOPPED
    except MemoryError:
        return _told(NO_MEMORY)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            _drop_output()
            return _told(f"The output could not be written: {os.strerror(error.errno or 0)}.")
        if "--debug" in words:
            raise
        from tpuprof_tui.crash_log import reported

        return _told(reported(error, words))


def split_command(words: Sequence[str]) -> tuple[str, list[str]]:
    """The command among the words and all other words; without one the command is ``open``.

    Only the first word that is neither an option nor its value can be a command, so options may stand before it.
    """
    valued = {flag for option in OPTIONS if option.takes_value for flag in option.flags}
    place = 0
    while place < len(words):
        word = words[place]
        if word == "--":
            break
        if word.startswith("-") and word != "-":
            place += 2 if word in valued else 1
            continue
        if word in COMMANDS and word != "open":
            return word, [*words[:place], *words[place + 1 :]]
        break
    return "open", list(words)


def parsed(name: str, words: Sequence[str]) -> argparse.Namespace:
    """The options of a command; ``source`` holds the values of those of sources that were given, by name.

    Where they are wrong, those of sources of other packages are known too.

    Raises:
        UsageError: They are wrong with these as well.
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
    # words of a command that takes many may stand before and behind options
    mixed = COMMANDS[name].arguments is not None or name in ("report", "diff", "gate", "baseline")
    return (parser.parse_intermixed_args if mixed else parser.parse_args)(words)


def localised_parser(name: str, words: Sequence[str] = ()) -> Parser:
    """The parser of one command, with its help in the reader's language where it is there."""
    parser = build_parser(name)
    localise = COMMANDS[name].localise
    if localise is not None:
        parser.language = localise(parser, words)
    return parser


def build_parser(name: str, more: Sequence[Option] = ()) -> Parser:
    """The parser of one command, with more options than those there are without other packages."""
    command = COMMANDS[name]
    opens = name == "open"
    others = "".join(f"  {other:13} {each.help}\n" for other, each in COMMANDS.items() if other != "open")
    parser = Parser(
        prog="tpuprof" if opens else f"tpuprof {name}",
        usage="tpuprof [CAPTURE ...] [options]\n       tpuprof COMMAND ... [options]" if opens else None,
        description=command.description or command.help,
        epilog=f"commands:\n{others}\n{MORE_OPTIONS}" if opens else command.epilog or None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.command = name
    if command.arguments is not None:
        command.arguments(parser)
        return parser
    if command.operand is not None:
        for operand, settings in filter(None, (command.operand, command.after)):
            parser.add_argument(operand, **settings)
        return parser
    where = "directory of a capture, or a file in it" + ("; or a folder of captures" if opens else "")
    if command.operands:
        for name_of, settings in command.operands:
            parser.add_argument(name_of, **settings)
    elif command.several:
        parser.add_argument("captures", metavar="CAPTURE", nargs="*", help=f"{where}; several: {command.several}")
    else:
        parser.add_argument("capture", metavar="CAPTURE", nargs="?", help=where)
    if command.after is not None:
        operand, settings = command.after
        parser.add_argument(operand, **settings)
    for option in (*OPTIONS, *more):
        if not option.commands or name in option.commands:
            parser.add_argument(*option.flags, **{**option.settings, **option.own()})
    return parser


def open_command(options: argparse.Namespace) -> int:
    """Opens the explorer; prints the summary where there is no terminal to show it."""
    from tpuprof_tui.analysis.selecting.state import Place

    if len(options.captures) != 1 or not is_data_set(options.captures[0]):
        for path in options.captures:
            _must_exist(path, "tpuprof FOLDER lists the captures in a folder.")
    for option in options.own:
        if option.missing and option.name in options.source:
            _must_exist(options.source[option.name], option.missing)
    against = options.against
    if against is not None:
        if len(options.captures) != 1:
            raise UsageError("--against compares one capture with another.", "Name one: tpuprof OTHER --against BASE.")
        _must_exist(against, "tpuprof OTHER --against BASE compares them.")
    if options.notes and len(options.captures) != 1:
        raise UsageError("--notes is about one capture.", "Name one: tpuprof CAPTURE --notes FILE.")
    place = Place(options.range or "", options.core, options.group or "", options.filter or "", options.select or "")
    if not _is_terminal():
        if place != Place():
            raise UsageError(
                "A place opens in a terminal alone.", "Here: tpuprof report CAPTURE --range A..B --core N."
            )
        if against is not None:
            options.base, options.other, options.views = against, options.captures[0], []
            options.step = options.limit = None
            options.offset = 0
            options.json = options.markdown = False
            options.run_noise = 0.02
            return diff_command(options)
        if not options.captures:
            raise UsageError("No capture given, and this is not a terminal to choose one in.", "See tpuprof --help.")
        return summary_command(options)
    from tpuprof_tui.app import run

    return run(
        options.captures,
        options=options.source,
        ascii=options.ascii,
        mouse=options.mouse,
        debug=options.debug,
        follow=options.follow,
        against=against,
        notes=options.notes or "",
        place=place,
    )


def _pages(options: argparse.Namespace) -> Pages:
    """How pages are printed: short, unless rows were asked for."""
    whole = options.limit is not None or bool(getattr(options, "offset", 0))
    return Pages(markdown=bool(getattr(options, "markdown", False)), whole=whole)


def info_command(options: argparse.Namespace) -> int:
    """Prints what captures are and what was odd in them, or which source opens them."""
    if options.why:
        from .source_choice import tell_source_choice

        return tell_source_choice(_given(options), as_json=options.json)
    from tpuprof_tui.views.as_text import ROWS
    from tpuprof_tui.views.info import info_json
    from tpuprof_tui.views.pages import info_report

    def memory(profile: Profile) -> Memory | None:
        if not options.memory:
            return None
        from tpuprof_tui.analysis.derived import memory_of
        from tpuprof_tui.views.screen import first_screen

        return memory_of(first_screen(profile))

    offset = options.offset
    if options.json:
        return _each(options, lambda profile: print(info_json(profile, memory(profile), limit=options.limit,
                                                              offset=offset)), headed=False)  # fmt: skip
    limit = ROWS if options.limit is None else options.limit
    show = _pages(options).show
    return _each(
        options, lambda profile: show([info_report(profile, memory(profile), limit=limit, offset=offset)], MORE)
    )


def describe_command(options: argparse.Namespace) -> int:
    """Prints what a profile holds and what can be asked of it."""
    from .describe import description_json, description_text

    if options.json:
        return _each(options, lambda profile: print(description_json(profile)), headed=False)
    return _each(options, lambda profile: print(description_text(profile), end=""))


def instructions_command(options: argparse.Namespace) -> int:
    """Writes instructions to stdout."""
    if options.capture is not None:
        check_expected(options.expect, options.capture)
    profile = _opened(options.capture, options)
    from .instructions import write_asked

    write_asked(options, profile)
    return _status(profile)


def summary_command(options: argparse.Namespace) -> int:
    """Prints where the time went."""
    from tpuprof_tui.views.pages import ROWS, summary_report

    # where no terminal is to open the explorer in, nobody asked for these
    step, limit = getattr(options, "step", None), getattr(options, "limit", None)
    show = Pages(markdown=bool(getattr(options, "markdown", False)), whole=limit is not None).show

    def told(profile: Profile) -> None:
        check_step(step, profile)
        show([summary_report(profile, step, ROWS if limit is None else limit)], MORE)

    return _each(options, told)


def report_command(options: argparse.Namespace) -> int:
    """Prints views."""
    from .report import print_report

    profile = _opened(options.capture, options)
    print_report(options, profile, _pages(options).show)
    return _status(profile)


def diff_command(options: argparse.Namespace) -> int:
    """Prints what differs between two captures."""
    from .diff import print_diff

    return print_diff(options, lambda *both: _all_opened(both, options), _pages(options).show)


def gate_command(options: argparse.Namespace) -> int:
    """Says whether a change may pass."""
    from .gate import print_gate

    return print_gate(options, lambda path: _opened(path, options), Pages().show)


def baseline_command(options: argparse.Namespace) -> int:
    """Keeps figures of captures."""
    from .gate import save_baseline

    return save_baseline(options, lambda path: _opened(path, options))


def dataset_command(options: argparse.Namespace) -> int:
    """Builds a data set of many captures, or asks one."""
    return dataset.run(options, _pages(options).show)


def export_command(options: argparse.Namespace) -> int:
    """Writes files."""
    if options.capture is not None:
        check_expected(options.expect, options.capture)
    profile = _opened(options.capture, options)
    return _status(run_asked(options, profile))


def help_command(options: argparse.Namespace) -> int:
    """Prints help."""
    from .help import help_text

    print(help_text(options.topic, options.of), end="")
    return FINE


def completion_command(options: argparse.Namespace) -> int:
    """Prints a script for a shell."""
    from .completion import completion_script

    print(completion_script(options.shell), end="")
    return FINE


def _told(message: str, status: int = NOTHING) -> int:
    """Says one sentence on stderr; gives the exit status."""
    from tpuprof_tui.formats.escape import line_text

    print(f"tpuprof: {line_text(message)}", file=sys.stderr)
    return status


def _drop_output() -> None:
    """Lets what is still buffered for stdout go nowhere: flushed at exit, it would fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _given(options: argparse.Namespace) -> list[str]:
    """The captures named.

    Raises:
        UsageError: None is.
    """
    if not options.captures:
        raise UsageError(*NO_CAPTURE)
    return list(options.captures)


def _each(options: argparse.Namespace, answer: Callable[[Profile], None], *, headed: bool = True) -> int:
    """One answer for each capture, in the order they are named; gives the worst exit status.

    What cannot be opened is told, and the others follow.
    """
    captures = _given(options)
    if len(captures) == 1:
        profile = _opened(captures[0], options)
        answer(profile)
        return _status(profile)
    status = FINE
    for place, capture in enumerate(captures):
        try:
            profile = _opened(capture, options)
        except UnreadableError as error:
            sys.stdout.flush()
            status = max(status, _told(str(error), error.exit_code))
            continue
        if headed:
            from tpuprof_tui.formats.escape import line_text

            between = "\n" if place else ""
            print(f"{between}==> {line_text(capture)} <==")
        answer(profile)
        status = max(status, _status(profile))
    return status


def _opened(capture: str | None, options: argparse.Namespace) -> Profile:
    if capture is None:
        raise UsageError(*NO_CAPTURE)
    from msgspec.structs import replace

    from tpuprof_tui import open_profile

    if capture == "-":
        return _piped(options)
    try:
        profile = open_profile(capture, part=_part(options), **options.source)
    except UnreadableError as error:
        raise _folder_error(capture) or error from None
    notes = getattr(options, "notes", None)
    return replace(profile, notes=notes) if notes else profile


def _all_opened(captures: Sequence[str], options: argparse.Namespace) -> list[Profile]:
    """Those captures, read side by side where their source can."""
    from tpuprof_tui import open_profiles

    try:
        return open_profiles(captures, part=_part(options), **options.source)
    except UnreadableError:
        return [_opened(each, options) for each in captures]  # says which of them, and why


def _part(options: argparse.Namespace) -> Part | None:
    """The part of a profile that is asked for; None: all."""
    from tpuprof_tui.sources.catalog import Part

    asked = Part(getattr(options, "range", None) or "", getattr(options, "step", None))
    return asked if asked != Part("", None) else None


def _piped(options: argparse.Namespace) -> Profile:
    """A profile of one file that comes by standard input."""
    import atexit
    import shutil
    import tempfile

    from msgspec.structs import replace

    from tpuprof_tui import open_profile

    if sys.stdin.isatty():
        raise UsageError("Nothing comes by standard input.", "Pipe a trace into it: zcat trace.json.gz | tpuprof ... -")
    folder = tempfile.mkdtemp(prefix="tpuprof")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = Path(folder, "stdin.json")
    with file.open("wb") as target:
        shutil.copyfileobj(sys.stdin.buffer, target, 1 << 20)
    try:
        return replace(open_profile(file, part=_part(options), **options.source), path="-")
    except UnreadableError as error:
        raise UnreadableError(str(error).replace(str(file), "Standard input")) from None


def _must_exist(path: str, hint: str) -> None:
    if "://" in path:
        raise _elsewhere(path)
    if not os.path.exists(path):
        raise UnreadableError(f"{path}: no such file or directory.", hint)


def _elsewhere(path: str) -> UnreadableError:
    return UnreadableError(f"{path} lies on another file system: there one data set at a time is opened.",
                           f"Make one: tpuprof dataset build OUT {path}.")  # fmt: skip


def _folder_error(path: str) -> UnreadableError | None:
    """What to say of a folder that is no capture but holds some, or is a data set of some; None of anything else."""
    if is_data_set(path):
        return UnreadableError(f"{path} is a data set.", f"Ask it: tpuprof dataset query {path} 'SELECT ...'.")
    if "://" in path:
        return _elsewhere(path)
    found = list(islice(Catalog().find(path, seconds=1.0), 9))
    if not found or found[0] == Path(path):
        return None
    named = ", ".join(str(capture) for capture in found[:3])
    return UnreadableError(
        f"{path} is no capture, but a folder of {'more than 8' if len(found) > 8 else len(found)}.",
        f"Name one of them: {named}{', ...' if len(found) > 3 else '.'}",
    )


def _status(profile: Profile) -> int:
    from tpuprof_tui.model import Severity, worst

    return LOST if worst(profile.problems) == Severity.ERROR else FINE


def _is_terminal() -> bool:
    capable = os.environ.get("TERM", "") not in ("", "dumb", "unknown")
    # Textual draws on stderr: all three must lead to it
    return capable and all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


COMMANDS: Final = {
    "open": Command(
        "open a capture in the explorer",
        open_command,
        "Explore the profile of a TPU capture in the terminal. Without a terminal the summary is printed.",
        several="a list to choose from",
    ),
    "summary": Command("where the time went, as text", summary_command, several=IN_ORDER),
    "report": Command(
        "all that is known, by view, as text or JSON",
        report_command,
        REPORT_HELP,
        after=("views", {"metavar": "VIEW", "nargs": "*", "help": "just these views (--list names them)"}),
    ),
    "diff": Command(
        "what changed from one capture to another, and why",
        diff_command,
        DIFF_HELP,
        operands=(
            ("base", {"metavar": "CAPTURE", "help": "what is compared with"}),
            ("other", {"metavar": "CAPTURE", "help": "what is compared"}),
            ("views", {"metavar": "VIEW", "nargs": "*", "help": "also these views, with differences"}),
        ),
    ),
    "gate": Command(
        "whether a change may pass: PASS, FAIL or INCONCLUSIVE",
        gate_command,
        GATE_HELP,
        operands=(("others", {"metavar": "CAPTURE", "nargs": "+", "help": "runs that are judged"}),),
    ),
    "baseline": Command(
        "keep figures of captures in a small file, for gate",
        baseline_command,
        BASELINE_HELP,
        operands=(
            ("what", {"choices": ("save",), "help": "what to do"}),
            ("name", {"metavar": "FILE", "help": "file to write (.json is added where it has no ending)"}),
            ("captures", {"metavar": "CAPTURE", "nargs": "+", "help": "runs of the same"}),
        ),
    ),
    "describe": Command(
        "in 2 kB what a profile holds, and what can be asked of it",
        describe_command,
        DESCRIBE_HELP,
        several=IN_ORDER,
    ),
    "info": Command(
        said("what a capture is: chip, clocks, {units}, lanes, problems"),
        info_command,
        INFO_HELP,
        several=IN_ORDER,
    ),
    "instructions": Command(
        said("every {event} as JSON lines, CSV or Parquet"),
        instructions_command,
    ),
    "export": Command(
        joined(output.title for output in known_outputs()),
        export_command,
        after=("folder", {"metavar": "OUTDIR", "nargs": "?", "help": "output folder (default: profile_out)"}),
    ),
    "dataset": Command(
        "many captures as one data set, and questions to it",
        dataset_command,
        dataset.HELP,
        dataset.EXAMPLES,
        arguments=dataset.add_arguments,
    ),
    "options": Command(
        "the options that make a profile: explained, checked, made",
        options_command,
        arguments=add_arguments,
        localise=localise,
        completions=completions,
    ),
    "help": Command(
        "help on a command, all keys, all columns, the manual page",
        help_command,
        HELP_HELP,
        HELP_EXAMPLES,
        operand=("topic", {"metavar": "TOPIC", "nargs": "?", "help": f"a command, or one of {', '.join(TOPICS)}"}),
        after=("of", {"metavar": "COMMAND", "nargs": "?", "help": "schema: the command whose JSON it is of"}),
    ),
    "completion": Command(
        "a script that makes a shell complete these words",
        completion_command,
        COMPLETION_HELP,
        COMPLETION_EXAMPLES,
        operand=("shell", {"choices": SHELLS, "help": "the shell"}),
    ),
}
