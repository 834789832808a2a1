"""Parses options from text, and writes them as a line to paste.

Input is untrusted: nothing in it is expanded or executed.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NoReturn

from msgspec import Struct, field

from tpuprof_tui.lazy_names import lazy_pattern

from .tables import Option, OptionKind, Tables, nearest

#: Token of a POSIX shell: blanks, end of a command, or a piece of a word (in single quotes, in double quotes, escaped,
#: plain).
_SHELL: Final = lazy_pattern(
    r"(?P<blank>[ \t\r]+|\\\n)|(?P<end>[\n;&|()<>]+)|'(?P<single>[^']*)'|\"(?P<double>[^\"\\]*(?:\\.[^\"\\]*)*)\""
    r"|\\(?P<escaped>.)|(?P<plain>[^\s;&|()<>'\"\\]+|.)",
    re.DOTALL,
)
_COMMENT: Final = lazy_pattern(r"#[^\n]*")
_IN_DOUBLE: Final = lazy_pattern(r"\\([$`\"\\\n])")
#: Token of the arguments of a call: blanks and comments, string literals, brackets, comma, equals sign, other.
_CALL: Final = lazy_pattern(
    r"(?P<blank>\s+|#[^\n]*)|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')|(?P<open>[(\[{])|(?P<close>[)\]}])"
    r"|(?P<comma>,)|(?P<equals>=(?!=))|(?P<word>[\w.]+|[^\"'])",
    re.DOTALL,
)
_NAME: Final = lazy_pattern(r"[A-Za-z_]\w*", re.ASCII)
_INTEGER: Final = lazy_pattern(r"-?\d{1,18}|0[xX][0-9a-fA-F]{1,15}", re.ASCII)
_ASSIGNED: Final = lazy_pattern(r"([A-Za-z_]\w*)=(.*)", re.ASCII | re.DOTALL)
_WORDS: Final = {"True": True, "False": False, "None": None}
#: Number of characters around an error that are searched for its reason.
_NEAR: Final = 80
#: Minimum similarity for which a variable is taken for a mistyped option.
_NEAR_NAME: Final = 0.88
_NEAR_LENGTH: Final = 4
_MOST_SHOWN: Final = 60
#: Characters that JSON does not escape: terminal controls, line ends, writing direction, lone surrogates.
_UNSAFE: Final = lazy_pattern("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Digits(str):
    """Digits of an unquoted number where a text is expected."""


class Unparsed(str):
    """Abbreviated source text of a value that is not a text, number or constant."""


class ParsedOptions(Struct, frozen=True):
    """Parsed options."""

    #: Values by name, in the order of the text: text, `Digits`, `Unparsed`, bool or None; in calls also int.
    values: dict[str, Any] = field(default_factory=dict)
    repeated: tuple[str, ...] = ()  #: Names that occur more than once
    problem: str = ""  #: Why the text cannot be parsed, as part of a sentence; empty if it can


class _UnreadableError(Exception):
    """The text cannot be parsed: reason, text, and offset of the error in it."""

    def __init__(self, reason: str, text: str = "", offset: int = 0) -> None:
        super().__init__(reason)
        self.text, self.offset = text, offset


def read(text: str, kind: OptionKind, tables: Tables) -> ParsedOptions:
    """Parses options of a kind from text."""
    try:
        return _READERS[kind.form](text, kind, tables)
    except _UnreadableError as error:
        return ParsedOptions(problem=_reason_text(error, kind, tables))


def from_environment(environment: Mapping[str, str], kind: OptionKind, tables: Tables) -> ParsedOptions | None:
    """Parses options of a kind from environment variables; None if there are none."""
    if kind.form == "json":
        return read(environment[kind.variable], kind, tables) if kind.variable in environment else None
    if kind.form != "variables":
        return None
    written = _variables(environment.items(), tables.of_kind(kind.name))
    return written if written.values else None


def _reason_text(error: _UnreadableError, kind: OptionKind, tables: Tables) -> str:
    near = error.text[max(error.offset - _NEAR, 0) : error.offset + _NEAR]
    found = (each["reason"] for each in tables.rules[kind.unreadable].reasons if re.search(each["near"], near))
    reason = next(found, str(error))
    if not error.text:
        return reason
    before = error.text[: error.offset]
    line, column = before.count("\n") + 1, error.offset - before.rfind("\n")
    return tables.say("at_place", reason=reason, line=line, column=column)


# -- JSON -----------------------------------------------------------------------


def _json(text: str, kind: OptionKind, tables: Tables) -> ParsedOptions:
    """Parses a JSON object, plain or assigned to its variable in a shell line."""
    if not text.lstrip().startswith(("{", "[")) and kind.variable:
        text = _assigned(text, kind.variable, tables)
    return _object(text, tables)


def _object(text: str, tables: Tables, parse_int: Callable[[str], Any] = Digits) -> ParsedOptions:
    surrogate = re.search("[\ud800-\udfff]", text)
    if surrogate:
        raise _UnreadableError(tables.say("no_utf8"), text, surrogate.start())
    try:
        pairs = json.loads(
            text, object_pairs_hook=_Pairs, parse_int=parse_int, parse_float=Digits, parse_constant=_constant
        )
    except json.JSONDecodeError as error:
        key = "empty" if not text.strip() else "json_ends" if error.pos >= len(text.rstrip()) else "json_syntax"
        raise _UnreadableError(tables.say(key), text, error.pos) from None
    except _ConstantError as error:
        raise _UnreadableError(tables.say("json_constant", value=str(error)), text, text.find(str(error))) from None
    except RecursionError:
        raise _UnreadableError(tables.say("json_deep")) from None
    if not isinstance(pairs, _Pairs):
        raise _UnreadableError(tables.say("json_no_object"), text)
    return _collected((name, _flat(value)) for name, value in pairs)


class _Pairs(list[tuple[str, Any]]):
    """The members of an object."""


class _ConstantError(Exception):
    """NaN or Infinity, which are not JSON."""


def _constant(word: str) -> NoReturn:
    raise _ConstantError(word)


def _flat(value: Any) -> Any:
    """Value of a member; lists and objects, which no option accepts, become `Unparsed`."""
    if isinstance(value, list):
        return Unparsed("{…}" if isinstance(value, _Pairs) else "[…]")
    return value


def _collected(pairs: Iterable[tuple[str, Any]]) -> ParsedOptions:
    """Collects (name, value) pairs; the last value of a name wins, at the position of its first."""
    values: dict[str, Any] = {}
    repeated: dict[str, None] = {}
    for name, value in pairs:
        if name in values:
            repeated[name] = None
        values[name] = value
    return ParsedOptions(values, tuple(sorted(repeated)))


# -- shell lines ------------------------------------------------------------------


def _assigned(text: str, name: str, tables: Tables) -> str:
    """Value of the last assignment to a variable in a shell text; the text itself if there is none."""
    if f"{name}=" not in text:
        return text
    found = text
    for word, closed in shell_words(text):
        if word.startswith(f"{name}="):
            if not closed:
                raise _UnreadableError(tables.say("quote_open"))
            found = word[len(name) + 1 :]
    return found


def shell_words(text: str) -> Iterator[tuple[str, bool]]:
    """Splits a text into words like a POSIX shell, without comments; yields (word, whether its quotes are closed)."""
    parts: list[str] = []
    offset = 0
    while offset < len(text):
        comment = None if parts else _COMMENT.match(text, offset)
        if comment:
            offset = comment.end()
            continue
        found = _SHELL.match(text, offset)
        if found is None or found["plain"] in ("'", '"'):
            yield "".join(parts), False
            return
        offset = found.end()
        if found["blank"] == "\\\n":
            continue
        if found["blank"] or found["end"]:
            if parts:
                yield "".join(parts), True
            parts = []
        elif found["double"] is not None:
            parts.append(_IN_DOUBLE.sub(lambda each: each[1].replace("\n", ""), found["double"]))
        else:
            parts.append(next(part for part in found.group("single", "escaped", "plain") if part is not None))
    if parts:
        yield "".join(parts), True


def _environment(text: str, kind: OptionKind, tables: Tables) -> ParsedOptions:
    """Parses variable assignments in shell lines, or an equivalent call."""
    if _arguments_offset(text, kind) is not None:
        return _call(text, kind, tables)
    words = [_ASSIGNED.fullmatch(word) for word, closed in shell_words(text) if closed]
    written = _variables(((found[1], found[2]) for found in words if found), tables.of_kind(kind.name))
    if not written.values:
        raise _UnreadableError(tables.say("no_variables"))
    return written


def _variables(pairs: Iterable[tuple[str, str]], options: Mapping[str, Option]) -> ParsedOptions:
    """Variables that are options or whose names are similar to one."""
    near: dict[str, bool] = dict.fromkeys(options, True)
    lengths = {len(name) + more for name in options for more in range(-_NEAR_LENGTH, _NEAR_LENGTH + 1)}
    kept = []
    for name, value in pairs:
        if name not in near:
            near[name] = len(name) in lengths and bool(nearest(name, list(options), cutoff=_NEAR_NAME))
        if near[name]:
            kept.append((name, value))
    return _collected(kept)


# -- calls ------------------------------------------------------------------------


def _call(text: str, kind: OptionKind, tables: Tables) -> ParsedOptions:
    """Parses the arguments of a call as literals, or from a JSON object."""
    if text.lstrip().startswith("{"):
        return _object(text, tables, parse_int=_integer)
    offset = _arguments_offset(text, kind)
    if offset is None:
        raise _UnreadableError(tables.say("no_call", call=kind.calls[0]), text)
    return _collected(_arguments(text, offset, kind, tables))


def _arguments_offset(text: str, kind: OptionKind) -> int | None:
    """Offset of the arguments of the last call; None if there is no call."""
    names = "|".join(map(re.escape, kind.calls))
    return max((found.end() for found in re.finditer(rf"(?<!\w)(?:{names})[ \t]*\(", text)), default=None)


def _arguments(text: str, offset: int, kind: OptionKind, tables: Tables) -> Iterator[tuple[str, Any]]:
    depth, start, count = 0, offset, 0
    name: str | None = None
    tokens: list[str] = []
    while offset < len(text):
        found = _CALL.match(text, offset)
        if found is None:
            raise _UnreadableError(tables.say("quote_open"), text, offset)
        offset = found.end()
        depth += bool(found["open"]) - bool(found["close"])
        if depth < 0 or (depth == 0 and found["comma"]):
            if name is not None or tokens:
                yield _argument(name, tokens, count, kind, tables, text, start)
                count += 1
            elif depth == 0:
                raise _UnreadableError(tables.say("call_comma"), text, found.start())
            if depth < 0:
                return
            name, tokens, start = None, [], offset
        elif depth == 0 and found["equals"] and name is None and len(tokens) == 1 and _NAME.fullmatch(tokens[0]):
            name, tokens = tokens[0], []
        elif not found["blank"]:
            tokens.append(found[0])
    raise _UnreadableError(tables.say("call_open"), text, max(len(text) - 1, 0))


def _argument(
    name: str | None, tokens: list[str], count: int, kind: OptionKind, tables: Tables, text: str, offset: int
) -> tuple[str, Any]:
    if name is None:
        if count >= len(kind.positional) or tokens[0] == "*":
            raise _UnreadableError(tables.say("call_unnamed", argument="".join(tokens)[:_MOST_SHOWN]), text, offset)
        name = kind.positional[count]
    if not tokens:
        raise _UnreadableError(tables.say("call_empty", option=name[:_MOST_SHOWN]), text, offset)
    return name, _literal("".join(tokens))


def _literal(word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    if _INTEGER.fullmatch(word):
        return int(word, 0) if "x" in word.lower() else int(word)
    if len(word) > 1 and word[0] in "'\"" and word[-1] == word[0] and word.count(word[0]) == 2:
        return word[1:-1]
    return Unparsed(word[:_MOST_SHOWN])


def _integer(digits: str) -> Any:
    return int(digits) if len(digits) < 19 else Digits(digits)


_READERS: Final[dict[str, Callable[[str, OptionKind, Tables], ParsedOptions]]] = {
    "json": _json,
    "variables": _environment,
    "call": _call,
}


# -- output -----------------------------------------------------------------------


def line_of(kind: OptionKind, values: Mapping[str, Any], most: int | None = None) -> str:
    """Writes options in the form of their kind, quoted for the shell and escaped for the terminal.

    Calls of more than ``most`` columns get one line per argument.
    """
    if kind.form == "json":
        return f"export {kind.variable}={shlex.quote(json_text(values, separators=(',', ':')))}"
    if kind.form == "variables" and not set(values) & set(kind.positional):
        return "\n".join(f"export {name}={shlex.quote(str(value))}" for name, value in values.items())
    order = {name: index for index, name in enumerate(kind.positional)}
    ordered = sorted(values.items(), key=lambda each: order.get(each[0], len(order)))
    texts = [(name, json_text(value) if type(value) is str else str(value)) for name, value in ordered]
    arguments = [text if name in kind.positional else f"{name}={text}" for name, text in texts]
    line = f"{kind.call}({', '.join(arguments)})"
    if most is None or len(line) <= most:
        return line
    return "\n".join([f"{kind.call}(", *(f"    {argument}," for argument in arguments), ")"])


def json_text(value: Any, **form: Any) -> str:
    """JSON that is safe to print, also with lone surrogates."""
    text = json.dumps(value, ensure_ascii=False, **form)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
