"""The filter language: parses a filter expression and compiles it into row masks.

    dur>10us  bw<20  name=MM2*  core=3 engine=GDMA kernel=rmsnorm*  !sys  (TIU | SDMA)  kernel~^rms.*core$  "two words"

A condition is a column's key (or alias), an operator and a value. A bare word is searched in engines, names, types and
kernel functions (``Vocabulary.searched``); a word between slashes is a regular expression for the same columns.
``role`` is ``work``, ``wait`` or ``sync`` (several with commas); a source may define further conditions
(``Vocabulary.conditions``). Blanks mean *and*, as do ``and`` and ``&`` between them, ``|`` and ``or`` *or*, ``!`` and
``not`` *not*, parentheses group, quotes preserve blanks and such words. ``core in 1,2`` passes any value of a list, for
numbers ``core=1,2`` too. A number may be followed by its unit behind a blank.
Matching ignores case unless the value contains capitals. Missing values pass no condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.errors import UsageError
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.parsing import TypedError, number_typed
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import Column, Lane, Profile, Role, Vocabulary, is_missing
from tpuprof_tui.model.vocabulary import import_entry

from ..index.ordering import has_column, lane_values

Mask = npt.NDArray[np.bool_]
#: Maps a lane to the mask of the rows that pass.
Predicate = Callable[[Lane], Mask]

#: Roles of events in figures; several may be named, separated by commas.
_ROLES: Final = {"work": Role.WORK, "wait": Role.WAIT, "sync": Role.SYNC}
_COMPARE: Final[dict[str, Callable[[npt.NDArray[np.float64], float], Mask]]] = {
    "=": lambda values, goal: values == goal,
    "!=": lambda values, goal: values != goal,
    ">": lambda values, goal: values > goal,
    ">=": lambda values, goal: values >= goal,
    "<": lambda values, goal: values < goal,
    "<=": lambda values, goal: values <= goal,
}
_TOKEN: Final = lazy_pattern(
    r"""\s*(?:&(?=\s)\s*)?(?:(?P<mark>[()|!])
        |(?P<key>[A-Za-z_][\w.]*)(?:\s*(?P<op>!=|>=|<=|==|[=<>~])\s*(?P<value>"[^"]*"|'[^']*'
            |[-+]?[\d.,_]+\s+(?i:[num]?s|[kmgt]i?b(?:/s)?|b|%)(?=[\s()|]|$)|[^\s()|]+)
            |\s+in\s+(?P<list>(?:"[^"]*"|'[^']*'|[^\s()|,]+)(?:\s*,\s*(?:"[^"]*"|'[^']*'|[^\s()|,]+))*))
        |(?P<regex>/(?:[^/\\]|\\.)+/)
        |(?P<word>"[^"]*"|'[^']*'|[^\s()|!]+))""",
    re.VERBOSE,
)
#: Short names of columns, valid for every source.
_EVERYWHERE: Final = {"dur": "duration"}
#: Words for marks; ``and`` is what blanks mean.
_WORDS: Final = {"and": "", "or": "|", "not": "!"}
_LISTED: Final = lazy_pattern(r"""\s*("[^"]*"|'[^']*'|[^\s,]+)\s*,?""")
#: Several numbers; those whose commas part thousands are one.
_NUMBERS: Final = lazy_pattern(r"(?!\d{1,3}(?:,\d{3})+(?:\D|$))[^,]+(?:,[^,]+)+")
_JOINED: Final = lazy_pattern(r"[A-Za-z_]\w*[=<>~]")
_UNFINISHED: Final = lazy_pattern(r"[A-Za-z_][\w.]*(?:!=|>=|<=|==|[=<>~])")
_LONGEST: Final = 10_000
#: The condition that selects a step.
STEP_KEY = "step"


class FilterError(UsageError):
    """A filter with a syntax error at character ``column`` (from 0) of its text."""

    def __init__(self, message: str, column: int, hint: str = "") -> None:
        super().__init__(f"{message} (at column {column + 1} of the filter)", hint)
        self.column = column


class Token(Struct, frozen=True):
    """A token of a filter."""

    kind: str  #: ``condition``, ``word``, ``regex``, or the punctuation mark itself
    #: start, end: Range of characters in the text, half-open.
    start: int
    end: int
    text: str = ""  #: The word, the regular expression, or the condition's value
    #: key, op: Key and operator of a condition; ``in``: ``texts`` are the values of its list.
    key: str = ""
    op: str = ""
    texts: tuple[str, ...] = ()


def compile_filter(text: str, profile: Profile) -> Predicate:
    """Compiles a filter into a predicate of lanes; each distinct string is matched once. Raises FilterError."""
    tokens = tokens_of(text)
    if not tokens:
        return lambda lane: np.ones(len(lane), np.bool_)
    parser = _Parser(tokens, profile, len(text))
    predicate = parser.parse_or()
    if parser.at < len(tokens):
        raise FilterError("Unmatched closing parenthesis", tokens[parser.at].start)
    return predicate


def filter_keys(vocabulary: Vocabulary) -> dict[str, Column]:
    """All names of columns valid in conditions, in lower case, with their columns.

    Keys, aliases, names in published files, and titles as in the table with ``_`` for blanks.
    """
    keys = {column.key.lower(): column for column in vocabulary.columns}
    for column in vocabulary.columns:
        for alias in (*column.aliases, column.file_name):
            if alias:
                keys.setdefault(alias.lower(), column)
    for alias, key in _EVERYWHERE.items():
        if key in keys:
            keys.setdefault(alias, keys[key])
    for column in vocabulary.columns:
        keys.setdefault(re.sub(r"\W+", "_", column.title.lower()).strip("_"), column)
    keys.pop("", None)
    return keys


def tokens_of(text: str) -> list[Token]:
    """Splits a filter into tokens; raises FilterError where no token matches."""
    if len(text) > _LONGEST:
        raise FilterError("The filter is too long", _LONGEST)
    result: list[Token] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise FilterError("This is not a condition", at + len(text[at:]) - len(text[at:].lstrip()))
        start = match.start(match.lastgroup or 0) if match["key"] is None else match.start("key")
        if match["mark"]:
            result.append(Token(match["mark"], start, match.end()))
        elif match["list"]:
            texts = tuple(map(_unquoted, _LISTED.findall(match["list"])))
            result.append(Token("condition", start, match.end(), match["list"], match["key"], "in", texts))
        elif match["key"]:
            operator = "=" if match["op"] == "==" else match["op"]
            result.append(Token("condition", start, match.end(), _unquoted(match["value"]), match["key"], operator))
        elif match["regex"]:
            result.append(Token("regex", start, match.end(), match["regex"][1:-1]))
        elif _UNFINISHED.fullmatch(match["word"]):
            raise FilterError("A value is missing here", match.end())
        elif match["word"].lower() in _WORDS:
            if mark := _WORDS[match["word"].lower()]:
                result.append(Token(mark, start, match.end()))
        else:
            result.append(Token("word", start, match.end(), _unquoted(match["word"])))
        at = match.end()
    return result


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'" else text


class _Parser:
    """Recursive-descent parser: ``or`` of ``and`` of negations of conditions."""

    def __init__(self, tokens: list[Token], profile: Profile, length: int) -> None:
        self.tokens = tokens
        self.profile = profile
        self.length = length
        self.at = 0
        self.depth = 0
        self.vocabulary = profile.vocabulary
        self.keys = filter_keys(self.vocabulary)

    def _peek(self) -> str:
        return self.tokens[self.at].kind if self.at < len(self.tokens) else ""

    def parse_or(self) -> Predicate:
        parts = [self._parse_and()]
        while self._peek() == "|":
            self.at += 1
            parts.append(self._parse_and())
        return parts[0] if len(parts) == 1 else lambda lane: np.logical_or.reduce([part(lane) for part in parts])

    def _parse_and(self) -> Predicate:
        parts: list[Predicate] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._parse_term())
        if not parts:
            start = self.tokens[self.at].start if self.at < len(self.tokens) else self.length
            raise FilterError("A condition is missing here", start)
        return parts[0] if len(parts) == 1 else lambda lane: np.logical_and.reduce([part(lane) for part in parts])

    def _parse_term(self) -> Predicate:
        token = self.tokens[self.at]
        self.at += 1
        if token.kind in "!(":
            self.depth += 1
            if self.depth > 64:
                raise FilterError("The filter is nested too deeply", token.start)
            if token.kind == "(":
                inner = self.parse_or()
                if self._peek() != ")":
                    raise FilterError("This parenthesis is not closed", token.start)
                self.at += 1
            elif self._peek() in ("", "|", ")"):
                raise FilterError("There is nothing to negate", token.start)
            else:
                inner = _negated(self._parse_term())
            self.depth -= 1
            return inner
        if token.kind == "condition":
            return self._condition(token)
        pattern = _regex(token.text if token.kind == "regex" else re.escape(token.text), token)
        return self._text_predicate(pattern, self.vocabulary.searched)

    # -- conditions -------------------------------------------------------

    def _condition(self, token: Token) -> Predicate:
        if token.key.lower() == "role":
            return _role_condition(token)
        own = next((each for each in self.vocabulary.conditions if each.key == token.key.lower()), None)
        if own is not None:
            word, mask = token.text.lower(), import_entry(own.mask)
            if token.op not in ("=", "!=") or word not in own.words:
                raise FilterError(own.fault, token.start)
            return lambda lane: np.asarray(mask(self.profile, lane, word) != (token.op == "!="), np.bool_)
        either = self.vocabulary.either.get(token.key.lower())
        column = self.keys.get(token.key.lower())
        if either is not None:
            return _number_condition(token, either, self.keys[either[0]], self.profile)
        if column is None:
            near = [key for key in self.keys if key.startswith(token.key[:2].lower())][:4]
            hint = f"Did you mean {', '.join(near)}?" if near else "The help lists the columns."
            raise FilterError(f"There is no column {token.key!r}", token.start, hint)
        if token.op == "in":
            parts = [self._condition(replace(token, text=text, op="=")) for text in token.texts]
            return lambda lane: np.logical_or.reduce([part(lane) for part in parts])
        if column.kind != "text":
            return _number_condition(token, (column.key,), column, self.profile)
        if token.op not in ("=", "!=", "~"):
            raise FilterError(f"{token.key} is text: use =, != or ~", token.start)
        pattern = _regex(token.text if token.op == "~" else rf"\A{translate(token.text)}", token)
        found = self._text_predicate(pattern, (column.key,))
        if token.op != "!=":
            return found

        def others(lane: Lane) -> Mask:
            known = has_column(self.profile, lane, column.key)
            return ~is_missing(lane[column.key]) & ~found(lane) if known else np.zeros(len(lane), np.bool_)

        return others

    def _text_predicate(self, pattern: re.Pattern[str], keys: tuple[str, ...]) -> Predicate:
        """Rows where any of the text columns matches; the pattern is applied once to each distinct string."""
        tables = {
            key: np.array([*(bool(pattern.search(text)) for text in self.profile.strings[key]), False], np.bool_)
            for key in keys
            if key in self.profile.strings
        }

        def mask(lane: Lane) -> Mask:
            result = np.zeros(len(lane), np.bool_)
            for key, table in tables.items():
                if table.any() and has_column(self.profile, lane, key):
                    result |= table[lane[key]]
            return result

        return mask


def _negated(predicate: Predicate) -> Predicate:
    return lambda lane: ~predicate(lane)


def _regex(text: str, token: Token) -> re.Pattern[str]:
    try:
        return re.compile(text, 0 if any(letter.isupper() for letter in token.text) else re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as error:
        raise FilterError(f"Not a regular expression: {error}", token.start) from None


def _role_condition(token: Token) -> Predicate:
    if token.op not in ("=", "!="):
        raise FilterError("role is a word: use = or !=", token.start)
    words = token.text.lower().split(",")
    if not set(words) <= _ROLES.keys():
        raise FilterError(f"{token.text!r} is not a role", token.start, "Roles are work, wait and sync.")
    wanted = [int(_ROLES[word]) for word in words]
    return lambda lane: np.isin(lane["role"], wanted, invert=token.op == "!=")


def _number_condition(token: Token, keys: tuple[str, ...], column: Column, profile: Profile) -> Predicate:
    if token.op in ("=", "!=") and _NUMBERS.fullmatch(token.text):
        parts = [_number_condition(replace(token, text=text), keys, column, profile) for text in token.text.split(",")]
        join = np.logical_or if token.op == "=" else np.logical_and
        return lambda lane: join.reduce([part(lane) for part in parts])
    compare = _COMPARE.get(token.op)
    if compare is None:
        raise FilterError(f"{token.key} is a number: use =, !=, <, <=, > or >=", token.start)
    try:
        goal = number_typed(token.text, column.unit)
    except TypedError as error:
        hint = "A blank is missing between two conditions." if _JOINED.search(token.text) else error.hint
        raise FilterError(f"{token.text!r} is not a value for {token.key}", token.start, hint) from None

    def mask(lane: Lane) -> Mask:
        result = np.zeros(len(lane), np.bool_)
        open_rows = np.ones(len(lane), np.bool_)
        for key in keys:
            values = lane_values(profile, lane, key, slice(0, len(lane)))
            if values is None:
                continue
            known = open_rows & ~is_missing(values)
            if len(keys) > 1:
                known &= values != 0  # the first column with a value decides
            result |= known & compare(values, goal)
            open_rows &= ~known
        return result

    return mask


def conditions_of(text: str) -> list[str]:
    """The parts of a filter that must all pass, as they are written; a single one if it has alternatives."""
    tokens = tokens_of(text)
    if has_alternatives(text):
        return [text.strip()]
    found, depth, begin = [], 0, -1
    for token in tokens:
        begin = token.start if begin < 0 else begin
        depth += {"(": 1, ")": -1}.get(token.kind, 0)
        if not depth and token.kind != "!":
            found.append(text[begin : token.end])
            begin = -1
    return found


def with_step(text: str, number: int | None) -> str:
    """The filter with its step condition replaced; None: removed."""
    _, rest = split_step(text)
    if number is None:
        return rest
    if not rest:
        return f"{STEP_KEY}={number}"
    return f"{STEP_KEY}={number} ({rest})" if has_alternatives(rest) else f"{STEP_KEY}={number} {rest}"


def split_step(text: str) -> tuple[int | None, str]:
    """The number in the filter's step condition (None: none), and the filter without that condition."""
    text = text.strip()
    try:
        tokens = tokens_of(text)
    except FilterError:
        return None, text
    if has_alternatives(text):
        return None, text
    depth = 0
    for index, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.kind, 0)
        negated = index > 0 and tokens[index - 1].kind == "!"
        if depth or negated or token.kind != "condition" or token.key.lower() != STEP_KEY:
            continue
        if token.op == "=" and token.text.isdecimal():
            rest = f"{text[: token.start].rstrip()} {text[token.end :].lstrip()}".strip()
            return int(token.text), rest
    return None, text


def has_alternatives(text: str) -> bool:
    """Whether a filter has an ``|`` or ``or`` outside of parentheses."""
    depth = 0
    for token in tokens_of(text):
        depth += {"(": 1, ")": -1}.get(token.kind, 0)
        if token.kind == "|" and not depth:
            return True
    return False


def text_condition(key: str, text: str, *, alone: bool = True) -> str:
    """The filter that only one text of a column passes; characters that cannot be typed or quoted become ``?``.

    ``alone``: no other text of the column differs from it only in case.
    """
    exact_case = any(letter.isupper() for letter in text)
    if not alone and not exact_case:
        pattern = "".join("." if letter == '"' or _untypable(letter) else re.escape(letter) for letter in text)
        return f'{key}~"(?-i:^{pattern}$)"'
    glob = "".join("?" if _untypable(letter) else f"[{letter}]" if letter in "*?[" else letter for letter in text)
    plain = re.fullmatch(r"[A-Za-z0-9_./:*?\[\]<>=+-]+", glob) is not None
    if plain and glob[0] not in "=~":
        return f"{key}={glob}"
    if "'" in glob:
        glob = glob.replace('"', "?")
    return f"{key}='{glob}'" if '"' in glob else f'{key}="{glob}"'


def _untypable(letter: str) -> bool:
    return clean(letter) != letter
