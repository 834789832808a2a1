"""``tpuprof completion``: completion scripts for bash, zsh and fish, generated from the parsers.

The scripts are self-contained: completion does not start Python.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from tpuprof_tui.exit_status import OK

from .json_schema import commands as commands_with_schema
from .main import COMMANDS, build_parser, entry
from .options import OPTIONS, output_keys
from .texts import FILE, TOPICS

#: Commands whose completions depend on the preceding words.
_TRAILED: Final = [name for name in COMMANDS if COMMANDS[name].completions]
#: Metavars whose values are paths: of anything, or of directories only.
_PATHS: Final = {"CAPTURE": "any", "CAPTURE|VIEW": "any", "FILE": "any", "DIR": "folder", "OUTDIR": "folder"}


class CompletableArgument(Struct, frozen=True):
    """An option or operand to complete."""

    flags: tuple[str, ...]  #: Spellings of the option; empty for an operand
    text: str  #: Help
    choices: tuple[str, ...] = ()  #: Values to offer
    path: str = ""  #: "any" or "folder" if the value is a path
    takes_value: bool = True  #: Whether a value follows
    repeats: bool = False  #: Whether an operand may be repeated
    listed: bool = False  #: Whether the value is a comma-separated list of choices


def print_script(options: argparse.Namespace) -> int:
    """Prints the script for a shell; returns the exit status."""
    print(completion_script(options.shell), end="")
    return OK


def completion_script(shell: str) -> str:
    """The script for a shell of ``SHELLS``; KeyError for any other."""
    return "".join(f"{line}\n" for line in _MAKERS[shell]())


def words_of(command: str) -> list[CompletableArgument]:
    """Operands and options of a command, in the order of its help; without operands if `_trails` completes them."""
    actions = [action for action in build_parser(command)._actions if action.help != argparse.SUPPRESS]
    trails = _trails(command)
    return [_word(action) for action in actions if action.option_strings or not trails]


def _trails(command: str) -> dict[str, tuple[list[str], bool]]:
    """Completions of a command by the relevant preceding words: (words, whether files are offered too)."""
    completions = COMMANDS[command].completions
    found = entry(completions)() if completions else {}
    return {trail: ([word for word in words if word != FILE], FILE in words) for trail, words in found.items()}


def commands() -> dict[str, str]:
    """Help of each command that can be typed, by name."""
    return {name: command.help for name, command in COMMANDS.items() if name != "open"}


def _word(action: argparse.Action) -> CompletableArgument:
    metavar = str(action.metavar or "")
    choices = tuple(map(str, action.choices or ())) or tuple(
        word for option in OPTIONS if option.flags == tuple(action.option_strings) for word in option.offered()
    )
    if metavar == "KINDS":
        choices = output_keys()
    elif metavar == "TOPIC":
        choices = (*commands(), *TOPICS)
    elif metavar == "COMMAND":
        choices = commands_with_schema()
    return CompletableArgument(
        tuple(action.option_strings), action.help or "", choices, _PATHS.get(metavar, ""),
        takes_value=not action.option_strings or action.nargs != 0, repeats=action.nargs == "*",
        listed=metavar == "KINDS",
    )  # fmt: skip


#: Appends file names to the words that bash offers.
_BASH_FILES: Final = (
    '; compopt -o filenames 2>/dev/null; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$cur")'
)

# -- bash ---------------------------------------------------------------------


def _bash() -> Iterator[str]:
    yield from (
        "# tpuprof: completion for bash, made from its options",
        "_tpuprof() {",
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=open operands=0 place word",
        "    local trail=",
        '    [[ $cur == = ]] && cur=""',
        "    [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}",
        "    for ((place = 1; place < COMP_CWORD; place++)); do",
        "        word=${COMP_WORDS[place]}",
        "        case $word in",
        f"            {'|'.join(_valued())})",
        "                [[ ${COMP_WORDS[place+1]} == = ]] && ((place++))",
        "                ((place++)) ;;",
        "            -*|=) ;;",
        f"            {'|'.join(commands())})",
        "                if ((operands)) || [[ $command != open ]]; then ((operands++)); else command=$word; fi ;;",
        "            *) ((operands++)) ;;",
        "        esac",
        '        case "$command,${trail:+$trail }$word" in',
    )
    for command in _TRAILED:
        keys = "|".join(f'"{command},{trail}"' for trail in _trails(command) if trail)
        yield f"            {keys}) trail=${{trail:+$trail }}$word ;;"
    yield from ("        esac", "    done", "    COMPREPLY=()", "    case $command,$prev in")
    for command in COMMANDS:
        for word in words_of(command):
            if word.flags and word.takes_value:
                patterns = "|".join(f"{command},{flag}" for flag in word.flags)
                yield f"        {patterns}) {_bash_values(word)}; return ;;"
    yield from ("    esac", "    if [[ $cur == -* ]]; then", "        case $command in")
    for command in COMMANDS:
        flags = " ".join(flag for word in words_of(command) for flag in word.flags)
        yield f'            {command}) COMPREPLY=($(compgen -W "{flags}" -- "$cur")) ;;'
    yield from ("        esac", "        return", "    fi", "    case $command,$operands in")
    for command in COMMANDS:
        operands = [word for word in words_of(command) if not word.flags]
        for number, word in enumerate(operands):
            names = f'COMPREPLY+=($(compgen -W "{" ".join(commands())}" -- "$cur"))'
            also = f"; {names}" if command == "open" and number == 0 else ""
            yield f"        {command},{number}) {_bash_values(word)}{also} ;;"
            if word.repeats:
                yield f"        {command},*) {_bash_values(word)} ;;"
    yield from ("    esac", '    case "$command,$trail" in')
    for command in _TRAILED:
        for trail, (words, files) in _trails(command).items():
            offer = f"{_bash_values(CompletableArgument((), '', tuple(words)))}{_BASH_FILES if files else ''}"
            yield f'        "{command},{trail}") {offer} ;;'
    yield from ("    esac", "}", "complete -F _tpuprof tpuprof")


def _bash_values(word: CompletableArgument) -> str:
    if word.listed:
        before = '[[ $cur == *,* ]] && place=${cur%,*}, || place=""'
        return f'{before}; COMPREPLY=($(compgen -P "$place" -W "{" ".join(word.choices)}" -- "${{cur##*,}}"))'
    if word.choices:
        return f'COMPREPLY=($(compgen -W "{" ".join(word.choices)}" -- "$cur"))'
    if word.path:
        what = "d" if word.path == "folder" else "f"
        return f'compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -{what} -- "$cur")'
    return ":"


def _valued() -> list[str]:
    """All option flags that take a value."""
    return sorted({flag for name in COMMANDS for word in words_of(name) if word.takes_value for flag in word.flags})


# -- zsh ----------------------------------------------------------------------


def _zsh() -> Iterator[str]:
    yield from (
        "#compdef tpuprof",
        "# tpuprof: completion for zsh, made from its options",
        "_tpuprof_commands() {",
        "    local -a commands=(",
    )
    for name, text in commands().items():
        yield f"        {_quoted(f'{name}:{text}')}"
    yield from ("    )", "    _describe -t commands command commands", "    _files", "}")
    for command in _TRAILED:
        yield from _zsh_trails(command)
    yield from (
        "_tpuprof() {",
        "    local place word command=open",
        "    for ((place = 2; place < CURRENT; place++)); do",
        "        word=${words[place]}",
        "        case $word in",
        f"            {'|'.join(_valued())}) ((place++)) ;;",
        "            -*) ;;",
        f"            {'|'.join(commands())})",
        "                command=$word",
        "                words[place]=()",
        "                ((CURRENT--))",
        "                break ;;",
        "            *) break ;;",
        "        esac",
        "    done",
        "    case $command in",
    )
    for command in COMMANDS:
        yield f"        {command}) _arguments -S \\"
        specs = [spec for word in words_of(command) for spec in _zsh_specs(word, first=command == "open")]
        specs += [f"'*:word:_tpuprof_after_{command}'"] if command in _TRAILED else []
        yield from (f"            {spec} \\" for spec in specs[:-1])
        yield f"            {specs[-1]} ;;"
    yield from ("    esac", "}", "if [[ $funcstack[1] == _tpuprof ]]; then")
    yield from ('    _tpuprof "$@"', "else", "    compdef _tpuprof tpuprof", "fi")


def _zsh_trails(command: str) -> Iterator[str]:
    trails = _trails(command)
    yield from (
        f"_tpuprof_after_{command}() {{",
        "    local trail word",
        "    for word in ${words[2,CURRENT-1]}; do",
        '        case "${trail:+$trail }$word" in',
        f"            {'|'.join(_quoted(trail) for trail in trails if trail)}) trail=${{trail:+$trail }}$word ;;",
        "        esac",
        "    done",
        '    case "$trail" in',
    )
    for trail, (words, files) in trails.items():
        offer = f"compadd -- {' '.join(map(_quoted, words))}" if words else ":"
        yield f"        {_quoted(trail)}) {offer}{'; _files' if files else ''} ;;"
    yield from ("    esac", "}")


def _zsh_specs(word: CompletableArgument, *, first: bool) -> Iterator[str]:
    text = word.text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
    action = (
        f"_values -s , kinds {' '.join(word.choices)}"
        if word.listed
        else f"({' '.join(word.choices)})"
        if word.choices
        else {"any": "_files", "folder": "_files -/"}.get(word.path, "")
    )
    if not word.flags:
        yield _quoted(f"::{text}:{'_tpuprof_commands' if first else action}")
        if word.repeats:
            yield _quoted(f"*:{text}:{action}")
    for flag in word.flags:
        others = f"({' '.join(word.flags)})" if len(word.flags) > 1 else ""
        value = f":{flag.lstrip('-')}:{action or ' '}" if word.takes_value else ""
        equals = "=" if word.takes_value and flag.startswith("--") else ""
        yield _quoted(f"{others}{flag}{equals}[{text}]{value}")


# -- fish ---------------------------------------------------------------------


def _fish() -> Iterator[str]:
    names = " ".join(commands())
    yield from (
        "# tpuprof: completion for fish, made from its options",
        "function __tpuprof_command",
        "    set -l skip 0",
        "    for word in (commandline -opc)[2..-1]",
        "        if test $skip = 1",
        "            set skip 0",
        f"        else if contains -- $word {' '.join(_valued())}",
        "            set skip 1",
        "        else if string match -q -- '-*' $word",
        "            continue",
        f"        else if contains -- $word {names}",
        "            echo $word",
        "            return",
        "        else",
        "            echo opened",
        "            return",
        "        end",
        "    end",
        "    echo open",
        "end",
        "function __tpuprof_in",
        "    contains -- (__tpuprof_command) $argv",
        "end",
        "function __tpuprof_listed",
        "    set -l before (string replace -r '[^,=]*$' '' -- (commandline -ct))",
        "    for word in $argv",
        "        echo (string replace -r '^--[^=]*=' '' -- $before)$word",
        "    end",
        "end",
        "complete -c tpuprof -f",
    )
    for name, text in commands().items():
        yield f"complete -c tpuprof -n '__tpuprof_in open' -a {name} -d {_quoted(text)}"
    for command in COMMANDS:
        for word in words_of(command):
            yield _fish_line(command, word)
    for command in _TRAILED:
        yield from _fish_trails(command)


def _fish_trails(command: str) -> Iterator[str]:
    trails = _trails(command)
    yield from (
        f"function __tpuprof_after_{command}",
        "    set -l trail ''",
        "    for word in (commandline -opc)[2..-1]",
        '        set -l longer (string trim -- "$trail $word")',
        f'        if contains -- "$longer" {" ".join(_quoted(trail) for trail in trails if trail)}',
        "            set trail $longer",
        "        end",
        "    end",
        '    test "$trail" = "$argv"',
        "end",
    )
    for trail, (words, files) in trails.items():
        after = f"complete -c tpuprof -n '__tpuprof_in {command}; and __tpuprof_after_{command} {trail}'"
        if words:
            yield f"{after} -a {_quoted(' '.join(words))}"
        if files:
            yield f"{after} -F"


def _fish_line(command: str, word: CompletableArgument) -> str:
    place = "open opened" if command == "open" else command
    parts = [f"complete -c tpuprof -n '__tpuprof_in {place}'"]
    parts += [f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in word.flags]
    if word.listed:
        parts.append(f"-xa '(__tpuprof_listed {' '.join(word.choices)})'")
    elif word.choices:
        parts.append(f"-{'x' if word.flags else ''}a '{' '.join(word.choices)}'")
    elif word.path:
        folders = "(__fish_complete_directories)"
        parts.append(f"-xa '{folders}'" if word.path == "folder" else "-rF" if word.flags else "-F")
    elif word.takes_value:
        parts.append("-x")
    return f"{' '.join(parts)} -d {_quoted(word.text)}"


def _quoted(text: str) -> str:
    """Quotes a word with single quotes, for all three shells."""
    return "'" + text.replace("'", "'\\''") + "'"


_MAKERS: Final[dict[str, Callable[[], Iterator[str]]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
