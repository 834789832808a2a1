"""Repairs texts as recorders write them that escape nothing: backslashes and quotation marks within names and paths.

A repair is a guess that a strict decoder has to accept. Where a text ends is known by what a recorder writes behind it:
another key, or the end of the object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tpuprof_tui.lazy_names import lazy_pattern

#: A backslash that begins no escape sequence; or one that begins a sequence by chance: before the name of a Python file
#: with a line number (group 1), or behind the drive at the beginning of a path.
_UNESCAPED: Final = lazy_pattern(
    rb"\\(?:[^\"\\/bfnrtu](?<!\\\\.)|u(?<!\\\\.)(?![0-9a-fA-F]{4})"
    rb"|([bfnrt])(?<!\\\\.)(?<!\\r\\.)(?<![;\s\"]\\.)[\w.\- \x80-\xff]*\.py\(\d"
    rb"|[bfnrt](?<=[\";][A-Za-z]:\\.)[\w.\- \x80-\xff]*[\\.])",
    re.DOTALL,
)
#: What stands before the last backslash of a path.
_PATH: Final = lazy_pattern(rb"[\w.\-+~: \\\x80-\xff]*")
_BACKSLASH: Final = lazy_pattern(rb'\\(?!")')
#: A quotation mark behind a backslash that ends the text: behind it comes what can only stand between texts.
_ENDS: Final = lazy_pattern(rb'"\s*(?:[}\]]\s*(?:[,}\]]|\Z)|,\s*["\d\[{])')
_BORDER: Final = lazy_pattern(rb"\}\s*,\s*\{")

_KEYS: Final = "ph|cat|name|pid|tid|ts|dur|args|id|bp|s|cname|tts|tdur"
_STRING: Final = lazy_pattern(r'"(?:[^"\\]|\\.)*"(\s*:)?', re.DOTALL)
#: A quotation mark that ends a text: of an event before another key or as the last, of an object in it, of a list.
_ENDS_OWN: Final = lazy_pattern(rf'"\s*,\s*"({_KEYS})"\s*:')
_ENDS_EVENT: Final = lazy_pattern(r'"\s*\}\s*(?:[,\]]|\Z)')
_ENDS_VALUE: Final = lazy_pattern(r'"\s*(?:,\s*"(?:[^"\\]|\\.){0,200}"\s*:|\}\s*(?:[,}\]]|\Z))', re.DOTALL)
_ENDS_ITEM: Final = lazy_pattern(r'"\s*(?:,\s*["\d\[{tfn-]|\]\s*[,}\]])')
_KEY_BEFORE: Final = lazy_pattern(r'"[^"\\]*"\s*:\s*"\Z')
_STRING_AND_KEY: Final = lazy_pattern(r'"(?:[^"\\]|\\.)*"\s*,\s*"[^"\\]*"\s*:', re.DOTALL)
_QUOTE: Final = lazy_pattern(r'(\\.)|"', re.DOTALL)
_CONTROL: Final = lazy_pattern(r"[\x00-\x1f]")
#: A text, or a constant that Python's decoder takes.
_CONSTANT: Final = lazy_pattern(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN', re.DOTALL)
#: A bare word in place of a value, or the rest of an invalid number.
_WORD: Final = lazy_pattern(r'[^\s,:{}\[\]"]+')
#: The begin of an event, where control characters may have been escaped before; group 1: on another line.
_EVENT: Final = lazy_pattern(rf',[ \t\r]*((?:\n|\\u000[9ad])\s*)*\{{\s*"(?:{_KEYS})"\s*:')
_OWN_KEY: Final = lazy_pattern(rf'"({_KEYS})"\s*:')
_OBJECT: Final = lazy_pattern(r"\{[^{}]*\}")
#: What begins on the line where an event ends.
_ON_LINE: Final = lazy_pattern(r"[ \t]*,[ \t]*\{")
#: What stands behind an event.
_FOLLOWS: Final = lazy_pattern(r"\s*(?:,?\s*\Z|,\s*(?:[{\[\]]|-?\d|null|true|false)|\])")
#: As many zeros are a part of the file that was never written, and what stands around them is not of one event.
_HOLE: Final = "\0" * 64
#: Most repairs made in one event.
_MOST: Final = 64
#: Most repairs that are remembered, and most characters of one.
_MOST_KNOWN: Final = 32
_LONGEST_KNOWN: Final = 4096
#: Characters that may be looked at for repairs, beside those for the text that was read.
_CREDIT: Final = 4 << 20
_NO_COMMA, _NO_COLON = "Expecting ',' delimiter", "Expecting ':' delimiter"
_scan: Final = json.JSONDecoder(parse_int=float).raw_decode


def has_unescaped(text: bytes) -> bool:
    """Whether some text of a JSON text has backslashes that nothing escaped."""
    return b"\\" in text and next(_unescaped(text), None) is not None


class Escaped(NamedTuple):
    """A JSON text with backslashes doubled."""

    text: bytes  #: The text
    events: Sequence[int] = ()  #: Positions in the original text of the first such text of each event
    #: For each text in turn its end in the original text, and how many backslashes were added up to there.
    ends: Sequence[tuple[int, int]] = ()

    def original(self, position: int) -> int:
        """Position in the original text of a position in this one, outside of such texts."""
        return position - max((added for end, added in self.ends if end + added <= position), default=0)


def with_escapes(text: bytes) -> Escaped:
    """Doubles the backslashes of the texts that a recorder wrote as they are, but those before quotation marks."""
    if b"\\" not in text:
        return Escaped(text)
    parts: list[bytes] = []
    events: list[int] = []
    ends: list[tuple[int, int]] = []
    done = added = 0
    for begin, end in _unescaped(text):
        if not events or _BORDER.search(text, done, begin):
            events.append(begin)
        fixed, count = _BACKSLASH.subn(rb"\\\\", text[begin:end])
        parts += text[done:begin], fixed
        done, added = end, added + count
        ends.append((end, added))
    return Escaped(b"".join((*parts, text[done:])), events, ends)


def _unescaped(text: bytes) -> Iterator[tuple[int, int]]:
    """Begin and end of each text with backslashes that nothing escaped."""
    done = 0
    for match in _UNESCAPED.finditer(text):
        position = match.start()
        if position < done:
            continue
        begin = position
        while (begin := text.rfind(b'"', done, begin)) > done and text[begin - 1] == 0x5C:
            pass
        begin = max(begin + 1, done)
        if match[1] and not _PATH.fullmatch(text, max(text.rfind(b";", begin, position) + 1, begin), position):
            continue
        end = text.find(b'"', position)
        while end >= 0 and text[end - 1] == 0x5C and not _ENDS.match(text, end):
            end = text.find(b'"', end + 1)
        done = len(text) if end < 0 else end
        yield begin, done


class Repair(NamedTuple):
    """An event that was repaired."""

    text: bytes  #: Its text
    length: int  #: Bytes of the original text that it takes
    words: int  #: Number of values that are not JSON, which were replaced by null
    #: quotes, backslashes, controls: Whether such characters were escaped.
    quotes: bool
    backslashes: bool
    controls: bool


class Repairer:
    """Repairs events, with limited work in all: more for every byte that is read.

    Attributes:
        credit: Number of characters that may still be looked at.
    """

    def __init__(self) -> None:
        self.credit = _CREDIT
        #: Repaired quotation marks, by the text from the key before to the key behind them: most occur again and again.
        self._known: dict[bytes, bytes] = {}

    def with_known(self, text: bytes) -> tuple[bytes, int]:
        """A text of events with the repairs of quotation marks that were made before, and their number."""
        count = 0
        for broken, fixed in self._known.items():
            found = text.count(broken)
            if found:
                count += found
                text = text.replace(broken, fixed)
        return text, count

    def _learn(self, given: str, text: str, begin: int) -> None:
        """Remembers the one repair that was made: of the text that begins at ``begin``."""
        key, behind = _KEY_BEFORE.search(given, 0, begin), _STRING_AND_KEY.match(text, begin - 1)
        if key and behind and len(self._known) < _MOST_KNOWN and behind.end() - key.start() < _LONGEST_KNOWN:
            end = behind.end() - (len(text) - len(given))
            self._known[_encoded(given[key.start() : end])] = _encoded(text[key.start() : behind.end()])

    def repaired(self, given: str, *, on_lines: bool = False) -> Repair | None:
        """Repairs the event at the beginning of a text (not UTF-8: ``surrogateescape``); None if that fails.

        Args:
            given: The text.
            on_lines: Whether each event begins on a line of its own: what begins within one is part of a text.

        Raises:
            RecursionError: It is nested too deeply.
        """
        text, words, backslashes, controls = given, 0, False, False
        begin = -1  # of the text that has quotation marks within it
        for _ in range(_MOST):
            self.credit -= len(text)
            position, error = first_error(text)
            goes_on = begin >= 0 and on_lines and not error and _ON_LINE.match(text, position)
            if not error and not goes_on:
                if begin >= 0 and not (words or backslashes or controls):
                    self._learn(given, text, begin)
                used = given[: position - len(text) + len(given)]
                if _HOLE in used:
                    return None
                text, count = _without_constants(text[:position])
                return Repair(_encoded(text), len(_encoded(used)), words + count, begin >= 0, backslashes, controls)
            if error.startswith("Invalid control"):
                end = text.find('"', position)
                end = len(text) if end < 0 else end
                fixed = _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text[position:end])
                text, controls = text[:position] + fixed + text[end:], True
            elif error.startswith("Invalid \\"):
                position = text.rfind("\\", 0, position + 1)
                text, backslashes = f"{text[:position]}\\{text[position:]}", True
            elif begin < 0 and _before(text, position) != '"' and (spot := _word(text, position, error)):
                text, words = f"{text[: spot[0]]}null{text[spot[1] :]}", words + 1
            else:
                self.credit -= 2 * len(text)
                if error.startswith(_NO_COLON):
                    # the text before may be the rest of one
                    position = text.rindex('"', 0, position)
                begin = _value_before(text, position, error) if begin < 0 else begin
                closing = _closing(text, begin, position) if begin >= 0 else -1
                region = text[begin:closing]
                begun = (match for match in _EVENT.finditer(region) if match[1] or not on_lines)
                if closing < 0 or "\n" in region or next(begun, None):
                    return None
                text = text[:begin] + _QUOTE.sub(_escaped, region) + text[closing:]
            if self.credit < 0:
                return None
        return None


def first_error(text: str) -> tuple[int, str]:
    """Position of the first error in an event, and what it is; its end and an empty text if there is none.

    Raises:
        RecursionError: It is nested too deeply.
    """
    try:
        end = _scan(text, 0)[1]
    except json.JSONDecodeError as error:
        return error.pos, error.msg
    return (end, "") if _FOLLOWS.match(text, end) else (end, _NO_COMMA)


def _without_constants(text: str) -> tuple[str, int]:
    """An event with null in place of NaN and infinities, and their number."""
    if "NaN" not in text and "Infinity" not in text:
        return text, 0
    found = 0

    def null(match: re.Match[str]) -> str:
        nonlocal found
        found += not match[0].startswith('"')
        return match[0] if match[0].startswith('"') else "null"

    return _CONSTANT.sub(null, text), found


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _word(text: str, position: int, error: str) -> tuple[int, int] | None:
    """Begin and end of a word in place of a value at an error; None if there is none."""
    begin = position
    # what ends a text there stands within one
    if error.startswith(_NO_COMMA) and _ENDS_VALUE.match(text, position):
        return None
    while error.startswith(_NO_COMMA) and _WORD.match(text, begin - 1, begin):
        begin -= 1
    match = _WORD.match(text, begin)
    return (begin, match.end()) if match and _before(text, begin) in (":", ",", "[") else None


def _value_before(text: str, position: int, error: str) -> int:
    """Begin of the last text before an error that is a value of an object or list; -1 if there is none."""
    if error.startswith("Unterminated"):
        return -1
    found = [match.span() for match in _STRING.finditer(text, 0, position) if not match[1]]
    for begin, end in reversed(found):
        if _before(text, begin) in (":", "[", ","):
            # a text of the event that one of its keys follows is sound
            return -1 if _ENDS_OWN.match(text, end - 1) and _is_own(text, begin) else begin + 1
    return -1


def _is_own(text: str, begin: int) -> bool:
    """Whether the text at a position is a value of the event itself."""
    if text.find("{", 1, begin) < 0:
        return True
    outside = _STRING.sub("", text[:begin])
    return outside.count("{") - outside.count("}") == 1


def _closing(text: str, begin: int, position: int) -> int:
    """Position of the quotation mark from ``position`` on that ends the text which begins at ``begin``; -1 if none."""
    if _before(text, begin - 1) != ":":
        match = _ENDS_ITEM.search(text, position)
    elif _is_own(text, begin - 1):
        # a recorder writes no key twice
        written = _OWN_KEY.findall(_OBJECT.sub("", text[1:begin]))
        match = next((match for match in _ENDS_OWN.finditer(text, position) if match[1] not in written), None)
        if match is None and (match := _ENDS_EVENT.search(text, position)) and '":' in text[begin : match.start()]:
            return -1
    else:
        match = _ENDS_VALUE.search(text, position)
    return match.start() if match else -1


def _before(text: str, position: int) -> str:
    """The last character before a position that is no space; empty if there is none near it."""
    return text[max(position - 64, 0) : position].rstrip()[-1:]


def _escaped(match: re.Match[str]) -> str:
    return match[1] or '\\"'
