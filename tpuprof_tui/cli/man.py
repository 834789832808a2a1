"""The manual page in roff, generated from the parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import Final

from tpuprof_tui import __version__
from tpuprof_tui.exit_status import meanings
from tpuprof_tui.lazy_names import lazy_pattern

from .main import COMMANDS, build_parser
from .options import OWN_OPTIONS
from .texts import ENVIRONMENT, FILES, examples

_EXAMPLE: Final = lazy_pattern(r"  (\S.*?)(?:\s{2,}(\S.*))?$")


def man_page() -> str:
    """The page ``tpuprof(1)``; depends only on the version, not on the terminal or the date."""
    return "".join(f"{line}\n" for line in _lines())


def _lines() -> Iterator[str]:
    yield f'.TH TPUPROF 1 "" "tpuprof {__version__}" "User Commands"'
    yield from (".SH NAME", "tpuprof \\- terminal explorer for accelerator profiles")
    yield ".SH SYNOPSIS"
    yield from _synopsis()
    yield ".SH DESCRIPTION"
    yield from _paragraphs(build_parser("open").description or "")
    yield ".SH OPTIONS"
    yield from _options(_actions("open"))
    flags = ", ".join(option.flags[0] for option in OWN_OPTIONS)
    yield from (".PP", _text(f"All commands that read a capture take {flags} and the last two."))
    yield ".SH COMMANDS"
    for name in COMMANDS:
        if name != "open":
            yield from _command(name)
    yield ".SH EXIT STATUS"
    yield from _terms(meanings())
    yield ".SH ENVIRONMENT"
    yield from _terms(ENVIRONMENT)
    yield ".SH FILES"
    yield from _terms(FILES)
    yield ".SH EXAMPLES"
    yield from _examples(examples("open"))


def _synopsis() -> Iterator[str]:
    yield from (".B tpuprof", ".RI [ CAPTURE \" ...]\" \" \" [ options ]")  # fmt: skip
    for name in COMMANDS:
        if name != "open":
            operands = " ".join(_operand(action) for action in _actions(name) if not action.option_strings)
            yield from (".br", f".B tpuprof {name}", f"{_text(operands)} [\\fIoptions\\fR]".lstrip())


def _command(name: str) -> Iterator[str]:
    yield f".SS {_text(name)}"
    parser = build_parser(name)
    yield from _paragraphs(parser.description or "")
    common = {(flag, action.help) for action in _actions("open") for flag in action.option_strings}
    yield from _options(
        action for action in _actions(name) if common.isdisjoint((flag, action.help) for flag in action.option_strings)
    )
    if parser.epilog:
        yield from (".PP", "Examples:")
        yield from _examples(parser.epilog)


def _actions(name: str) -> list[argparse.Action]:
    """Operands and options of a command that its help shows."""
    return [action for action in build_parser(name)._actions if action.help != argparse.SUPPRESS]


def _operand(action: argparse.Action) -> str:
    word = str(action.metavar or action.dest.upper())
    return {"?": f"[{word}]", "*": f"[{word} ...]"}.get(str(action.nargs), word)


def _options(actions: Iterable[argparse.Action]) -> Iterator[str]:
    for action in actions:
        value = ""
        if action.nargs != 0 and action.option_strings:
            value = f" \\fI{_text(str(action.metavar or '|'.join(map(str, action.choices or ()))))}\\fR"
        flags = ", ".join(f"\\fB{_text(flag)}\\fR" for flag in action.option_strings)
        yield from (".TP", f"{flags}{value}" if flags else f"\\fI{_text(_operand(action))}\\fR")
        yield _text((action.help or "").replace("%%", "%"))


def _terms(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, text in rows:
        yield from (".TP", f"\\fB{_text(term)}\\fR", _text(text))


def _paragraphs(text: str) -> Iterator[str]:
    """Roff paragraphs; indented ones are kept line by line."""
    for number, paragraph in enumerate(text.strip().split("\n\n")):
        if number:
            yield ".PP"
        if paragraph.startswith("  "):
            yield from (".nf", *(_text(line) for line in paragraph.split("\n")), ".fi")
        else:
            yield from (_text(line) for line in paragraph.split("\n"))


def _examples(epilog: str) -> Iterator[str]:
    """The indented lines of an epilog: the command and, below it, its explanation."""
    for line in epilog.split("\n"):
        found = _EXAMPLE.fullmatch(line)
        if found:
            yield from (".TP", f"\\fB{_text(found[1])}\\fR", _text(found[2] or ""))


def _text(text: str) -> str:
    """Escapes a line of text for roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("^", "\\(ha")
    escaped = escaped.replace("~", "\\(ti").replace("'", "\\(aq").replace('"', "\\(dq")
    return f"\\&{escaped}" if escaped.startswith(".") else escaped
