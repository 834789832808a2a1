"""``tpuprof help``: help of commands, keys of the explorer, columns, and the manual page.

Generated from the parsers, the registry of actions and the schemas of columns.
"""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final

from tpuprof_tui import __version__
from tpuprof_tui.errors import UsageError, requires_package
from tpuprof_tui.exit_status import OK, meanings
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model.vocabulary import GENERIC, Vocabulary, import_entry
from tpuprof_tui.sources.catalog import Catalog, vocabularies

from .agent import PAGE
from .json_schema import schema_text
from .main import COMMANDS, build_parser, localised_parser
from .options import OWN_OPTIONS
from .texts import ENVIRONMENT, FILES, TOPICS, examples

_WIDEST: Final = 100


def print_help(options: argparse.Namespace) -> int:
    """Prints help; returns the exit status."""
    print(help_text(options.topic, options.of), end="")
    return OK


def help_text(topic: str | None, of: str | None = None) -> str:
    """The help on a topic, ending with a newline.

    Args:
        topic: A command, one of ``TOPICS`` (case-insensitive), or None for ``tpuprof --help``.
        of: The command, for the topic ``schema``; a capture, for keys and columns in the words of its source.

    Raises:
        UsageError: There is no such topic.
        UnreadableError: No source recognises the capture.
        MissingPackageError: The topic is the keys, and Textual is not installed.
    """
    if topic is not None and topic.lower() == "schema":
        return schema_text(of)
    makers = {"keys": keys_text, "columns": columns_text, "filter": filter_text}
    if topic is not None and topic.lower() in makers:
        return makers[topic.lower()](None if of is None else import_entry(Catalog().recognised(of).vocabulary))
    if of is not None:
        raise UsageError(f"The help on {topic} takes no other word: {of}.")
    if topic is None or topic in COMMANDS:
        return localised_parser(topic or "open").format_help()
    if topic.lower() == "man":
        return man_page()
    if topic.lower() == "agent":
        return PAGE
    known = ", ".join([*(name for name in COMMANDS if name != "open"), *TOPICS])
    raise UsageError(f"There is no help on {topic}.", f"Topics: {known}.")


def keys_text(words: Vocabulary | None = None) -> str:
    """All keys of the explorer by pane, including the user's key settings; ``words``: those of a source."""
    with requires_package("The list of keys"):
        from tpuprof_tui.app.settings.actions import GROUPS, actions_of, key_text, keymap_of, keys_of, remap
        from tpuprof_tui.app.settings.config import read_config

    remap(keymap_of(read_config().keys))
    return "\n".join(
        "".join([f"{title}\n", *_entries(
            (" ".join(key_text(key) for key in keys_of(action)), f"{action.help} [{action.id}]")
            for action in actions_of(group, words or GENERIC)
        )])
        for group, title in GROUPS.items()
    )  # fmt: skip


def columns_text(words: Vocabulary | None = None) -> str:
    """Columns of events by group, of one source or of all."""
    groups: dict[str, list[tuple[str, str]]] = {}
    known = vocabularies() if words is None else (words,)
    for vocabulary, column in ((each, column) for each in known for column in each.columns):
        names = ", ".join(dict.fromkeys((column.key, *column.aliases)))
        unit = f" [{column.unit}]" if column.unit else ""
        file_name = f" In the converter's files: {column.file_name}." if column.file_name else ""
        needs = f" Needs {vocabulary.needs(column.needs)}." if column.needs else ""
        lanes = f" {', '.join(column.lanes)} only." if column.lanes else ""
        groups.setdefault(f"{vocabulary.title}: {vocabulary.heading(column.group)}", []).append(
            (names, f"{column.help}{unit}{file_name}{lanes}{needs}")
        )
    return "\n".join("".join([f"{group}\n", *_entries(rows)]) for group, rows in groups.items())


def filter_text(words: Vocabulary | None = None) -> str:
    """The filter language by examples, those of a source if it has some."""
    rows = (words or GENERIC).filter_examples
    more = "Columns and their short names: tpuprof help COLUMNS [CAPTURE].\n"
    return "".join(["Filters: --filter, and & in the explorer\n", *_entries(rows), "\n", more])


def _entries(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Lines of a list of terms with their explanations to the right, or below if the term is long."""
    width = max(min(shutil.get_terminal_size().columns, _WIDEST), 40)
    column = 24 if width >= 70 else 12
    for term, text in rows:
        lines = textwrap.wrap(text, width - column - 1, break_on_hyphens=False) or [""]
        head = f"  {term}"
        if len(head) >= column:
            yield f"{head}\n"
            head = ""
        yield f"{head:<{column}}{lines[0]}\n"
        yield from (f"{'':{column}}{line}\n" for line in lines[1:])


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
