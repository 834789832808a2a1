"""``tpuprof options``: explains, checks and generates profiling options of recording tools."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from tpuprof_tui.errors import UnreadableError, UsageError
from tpuprof_tui.exit_status import DATA_LOSS, NO_RESULT, OK
from tpuprof_tui.formats.answers import answer_text
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.options import explaining
from tpuprof_tui.options.checking import check
from tpuprof_tui.options.conditions import Context
from tpuprof_tui.options.making import EngineRecords, MakeRequest, largest, make, most_records
from tpuprof_tui.options.reading import ParsedOptions, from_environment, read
from tpuprof_tui.options.tables import (
    LANGUAGES,
    SOURCES,
    Option,
    OptionKind,
    Tables,
    help_texts,
    language_of,
    load,
    nearest,
    sources_of_kinds,
)
from tpuprof_tui.sources.catalog import open_profile

from .texts import FILE

ACTIONS: Final = ("explain", "check", "make")
#: Maximum size of an options text or file, bytes.
_MOST_BYTES: Final = 16 << 20
_GIVEN: Final = ("output", "fp_point", "bp_point")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the operands and options of the command to a parser, with English help."""
    ascend = load("ascend", LANGUAGES[0])
    parser.add_argument("action", metavar="ACTION", choices=ACTIONS)
    parser.add_argument("words", metavar="WORD", nargs="*")
    parser.add_argument("--kind", choices=tuple(sources_of_kinds()))
    parser.add_argument("--mode", choices=ascend.circumstances["modes"])
    parser.add_argument("--product", choices=tuple(ascend.products))
    parser.add_argument("--framework", choices=ascend.circumstances["frameworks"])
    parser.add_argument("--dynamic", action="store_true")
    parser.add_argument("--capture", metavar="CAPTURE")
    parser.add_argument("--output", metavar="OUTDIR")
    parser.add_argument("--fp-point", metavar="NAME")
    parser.add_argument("--bp-point", metavar="NAME")
    parser.add_argument("--lang", choices=LANGUAGES)
    parser.add_argument("--json", action="store_true")
    _set_help(parser, help_texts(LANGUAGES[0]))


def localise(parser: argparse.ArgumentParser, words: Sequence[str]) -> str:
    """Translates a parser's help to the language of ``--lang`` in ``words`` or of the locale; returns the language."""
    requested = [after for word, after in pairwise(words) if word == "--lang"]
    requested += [word.removeprefix("--lang=") for word in words if word.startswith("--lang=")]
    language = next((word for word in requested if word in LANGUAGES), language_of(os.environ))
    if language != LANGUAGES[0]:
        _set_help(parser, help_texts(language))
    return language


def _set_help(parser: argparse.ArgumentParser, texts: Mapping[str, Any]) -> None:
    parser.description, parser.epilog = texts["description"], texts["epilog"]
    parser._positionals.title, parser._optionals.title = texts["headings"]["positional"], texts["headings"]["optional"]
    for action in parser._actions:
        action.help = texts["arguments"][(action.option_strings or [action.dest])[0]].replace("%", "%%")


def completions() -> dict[str, tuple[str, ...]]:
    """Completions (names, values, wishes) by the preceding words, which are joined by blanks."""
    found: dict[str, tuple[str, ...]] = {"": ACTIONS}
    for source in SOURCES:
        tables = load(source, LANGUAGES[0])
        names = tuple(option.name for option in tables.options)
        wishes = tuple(wish.wish.replace(" ", "-") for wish in tables.wishes)
        for action, words in zip(ACTIONS, (names, (), wishes), strict=True):
            found[f"{action} {source}"] = words
        for option in tables.options:
            values = ("True", "False") if option.type == "boolean" else tuple(map(str, option.values))
            if values:
                found[f"explain {option.name}"] = found[f"explain {source} {option.name}"] = values
    found |= {f"check {source}": (FILE,) for source in SOURCES}
    found["explain"] = (*SOURCES, *found[f"explain {SOURCES[0]}"], FILE)
    found["check"] = (*SOURCES, FILE)
    found["make"] = (*SOURCES, *found[f"make {SOURCES[0]}"])
    return found


def options_command(options: argparse.Namespace) -> int:
    """Runs ``explain``, ``check`` or ``make``; returns the exit status."""
    sources = sources_of_kinds()
    words = list(options.words)
    named = words.pop(0) if words and (words[0] in SOURCES or words[0] in sources) else None
    kinds = [kind for kind, source in sources.items() if named in (kind, source)] if named else list(sources)
    if options.kind is not None and options.kind not in kinds:
        raise UsageError(f"{named} has no kind {options.kind}.", f"Its kinds: {', '.join(kinds)}.")
    name = options.kind or kinds[0]
    tables = load(sources[name], options.lang or language_of(os.environ))
    inputs = [each for each in _GIVEN if getattr(options, each) is not None]
    if inputs and options.action != "make":
        raise UsageError(f"--{inputs[0].replace('_', '-')} is for tpuprof options make.")
    commands = {"explain": _explain, "check": _check, "make": _make}
    return commands[options.action](options, words, tables, tables.kinds[name])


# -- explain ----------------------------------------------------------------------


def _explain(options: argparse.Namespace, words: Sequence[str], tables: Tables, kind: OptionKind) -> int:
    name, _, value = words[0].partition("=") if words else ("", "", "")
    value = words[1] if len(words) == 2 else value
    found = next((each for each in _all_options(tables, options) if each[1].name == name), None)
    if found is not None and len(words) <= 2:
        return _explain_one(*found, value, options)
    if len(words) > 1:
        raise UsageError("Only one text, file or option can be explained at a time.", f"Not understood: {words[1]}.")
    written = read(_text(words[0]), kind, tables) if words else None
    if written is not None and written.problem:
        raise UnreadableError(*_no_options(words[0], written, kind, tables))
    if options.json:
        _print_json(explaining.overview_json(written, kind, tables))
    else:
        _print(explaining.overview_lines(written, kind, tables))
    return OK


def _all_options(tables: Tables, options: argparse.Namespace) -> Iterator[tuple[Tables, Option]]:
    """Yields (tables, option) of the given source, then of all other sources."""
    yield from ((tables, option) for option in tables.options)
    for source in SOURCES:
        if source != tables.source:
            other = load(source, options.lang or language_of(os.environ))
            yield from ((other, option) for option in other.options)


def _explain_one(tables: Tables, option: Option, value: str, options: argparse.Namespace) -> int:
    if not value:
        if options.json:
            _print_json(explaining.option_record(option, tables))
        else:
            _print(explaining.lines_of(option, tables))
        return OK
    known = {str(each): each for each in ((True, False) if option.type == "boolean" else option.values)}
    if known and value not in known and not (option.custom and value.startswith(option.custom["prefix"])):
        raise UsageError(f"{option.name} has no value {value}.", f"Its values: {', '.join(known)}.")
    meant = known.get(value, value)
    if options.json:
        _print_json(explaining.option_record(explaining.restricted_to_value(option, meant), tables) | {"value": meant})
    else:
        _print(explaining.lines_of(option, tables, meant))
    return OK


# -- check ------------------------------------------------------------------------


def _check(options: argparse.Namespace, words: Sequence[str], tables: Tables, kind: OptionKind) -> int:
    if len(words) > 1:
        raise UsageError("Only one text or file can be checked at a time.", "Put a text into single quotes.")
    written = read(_text(words[0]), kind, tables) if words else from_environment(os.environ, kind, tables)
    if written is None:
        names = kind.variable or ", ".join(tables.of_kind(kind.name)) if kind.form != "call" else ""
        what = f"None of {names} is set." if names and not kind.variable else f"{names} is not set."
        raise UsageError(what if names else f"No text of {kind.name} given.", "Give a text, a file, or - for stdin.")
    context = replace(_context(options), here=not words)
    checked = check(written, kind, tables, context)
    notes = []
    if not words and kind.switch is not None:
        notes.append(str(kind.switch["values"].get(os.environ.get(kind.switch["name"], ""), kind.switch["other"])))
    if options.json:
        _print_json(explaining.checked_json(checked, notes, tables))
    else:
        _print(explaining.checked_lines(checked, notes, tables))
    return NO_RESULT if not checked.readable else DATA_LOSS if checked.verdict == "errors" else OK


# -- make -------------------------------------------------------------------------


def _make(options: argparse.Namespace, words: Sequence[str], tables: Tables, kind: OptionKind) -> int:
    if kind.name != tables.making["kind"]:
        raise UsageError(f"{kind.name} can be explained and checked, not made.", "Superseded: make torch NPU.")
    inputs = {name: getattr(options, name) for name in _GIVEN if getattr(options, name) is not None}
    records = _records(options.capture) if options.capture is not None else None
    made = make(words, tables, MakeRequest(inputs, records, _context(options, records=False)))
    if options.json:
        _print_json(explaining.generated_json(made, kind))
    else:
        _print(explaining.generated_lines(made, tables))
    return OK


# -- input ------------------------------------------------------------------------


def _context(options: argparse.Namespace, *, records: bool = True) -> Context:
    found = _records(options.capture) if records and options.capture is not None else None
    return Context(mode=options.mode, product=options.product, framework=options.framework, dynamic=options.dynamic,
                   records=found.count if found else 0)  # fmt: skip


def _text(word: str) -> str:
    """Options text: the contents of standard input (``-``) or of a file of this name, or the word itself."""
    if word == "-":
        data = sys.stdin.buffer.read(_MOST_BYTES + 1)
    elif os.path.exists(word):
        data = _file(Path(word), _MOST_BYTES + 1)
    else:
        return word
    if len(data) > _MOST_BYTES:
        raise UnreadableError(f"{word} is longer than {_MOST_BYTES >> 20} MiB: too long for options.")
    return data.decode("utf-8-sig", "surrogateescape")


def _file(path: Path, most: int) -> bytes:
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            raise UnreadableError(f"{path} is a folder.", "Name a file of options, or give them as text.")
        with path.open("rb") as stream:
            return stream.read(most)
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror}.") from None


def _no_options(word: str, written: ParsedOptions, kind: OptionKind, tables: Tables) -> tuple[str, str]:
    """Message and hint for a word that is neither an option name nor an options text."""
    rule = tables.rules[kind.unreadable]
    near = nearest(word, [option.name for option in tables.options])
    if near:
        return f"There is no option {word}, and no file of that name.", f"Similar: {near}."
    return rule.says.format(reason=written.problem), f"{rule.fix[:1].upper()}{rule.fix[1:]}."


def _records(capture: str) -> EngineRecords:
    """The engine with the most records in a capture, and their number.

    Raises:
        TpuprofError: The capture cannot be read, or holds no records.
    """
    path = Path(capture)
    settings = (path if path.is_dir() else path.parent) / "global.profile"
    found = None
    if settings.is_file():
        found = most_records(_file(settings, 1 << 20).decode("utf-8", "replace"))
    if found is None:
        found = largest(_counted(capture))
    if found is None:
        raise UnreadableError(f"{capture} holds no records.", "Name a capture that does.")
    return found


def _counted(capture: str) -> dict[str, int]:
    """Largest number of events per lane by engine, for captures without record counts; excludes firmware records."""
    counts: dict[str, int] = {}
    try:
        for lane in open_profile(capture).lanes:
            counts[str(lane.kind)] = max(counts.get(str(lane.kind), 0), len(lane))
    except UnreadableError as error:
        raise UnreadableError(f"The records of {capture} cannot be counted: {error.message}") from None
    return counts


def _print(lines: Iterator[str]) -> None:

    for line in lines:
        print(line_text(line))


def _print_json(record: Mapping[str, Any]) -> None:

    print(answer_text(record))
