"""The events of a Chrome trace one at a time, whatever the size of the file and whatever is wrong with it.

Text is read in pieces and dropped when it is passed; only one event is ever decoded at a time. What is no event is
passed over character by character, without recursion and without being held.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from .decimals import Number

#: Bytes read at a time.
PIECE: Final = 1 << 20
#: An event that takes more characters than this is passed over.
LONGEST_EVENT: Final = 1 << 22

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_STOPS: Final = re.compile(r'["{}\[\],]')
_OPENINGS: Final = re.compile(r"[{\[]+")
_CLOSINGS: Final = re.compile(r"[}\]]+")
_STRING_STOPS: Final = re.compile(r'["\\]')
#: An error so close to the end of what was read may be one of the reading.
_NEAR_END: Final = 16


class Truncated(Exception):  # noqa: N818 - an ending, not an error
    """The text ends before what it began."""


class EventStream:
    """The objects in the ``traceEvents`` list of a trace, or in a list of events.

    Attributes:
        found: Whether there was such a list.
        truncated: Whether the text ended within it.
        malformed: Number of events that could not be decoded.
        unfinished: Whether the text ended behind the list but before the object that holds it.
        more: Whether there is text behind the trace, or another list of events in it.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._text = ""
        self._place = 0
        self._ended = False
        self._scan = json.JSONDecoder(
            parse_float=Number, parse_int=Number, parse_constant=lambda _: None, strict=False
        ).raw_decode
        self.found = False
        self.truncated = False
        self.malformed = 0
        self.unfinished = False
        self.more = False
        self._in_object = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        try:
            if self._find_list():
                self.found = True
                yield from self._events()
        except Truncated:
            self.truncated = True
        if self.found and not self.truncated:
            self._pass_end()

    # -- text -----------------------------------------------------------------

    def _more(self) -> bool:
        """Reads on, as much again as is held; False at the end."""
        if self._ended:
            return False
        held = len(self._text) - self._place
        data = self._read(max(PIECE, held))
        self._ended = not data
        self._text = self._text[self._place :] + self._decode(data, final=self._ended)
        self._place = 0
        return True

    def _next(self) -> str:
        """The next character that is no space, not yet passed."""
        while True:
            match = _SPACE.match(self._text, self._place)
            self._place = match.end() if match else self._place
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more():
                raise Truncated

    # -- structure ------------------------------------------------------------

    def _find_list(self) -> bool:
        """Goes to the first event; False where there is no list of events."""
        try:
            first = self._next()
        except Truncated:
            return False
        if first == "[":
            self._place += 1
            return True
        if first != "{":
            return False
        self._in_object = True
        self._place += 1
        while self._next() != "}":
            key = self._key()
            if self._next() != ":":
                return False
            self._place += 1
            if key == "traceEvents" and self._next() == "[":
                self._place += 1
                return True
            self._pass()
            if self._next() == ",":
                self._place += 1
        return False

    def _pass_end(self) -> None:
        """Passes over what follows the list of events, to the end of the text."""
        try:
            while self._in_object and self._next() != "}":
                if self._next() == ",":
                    self._place += 1
                    continue
                if self._next() != '"' or self._key() or self._next() != ":":
                    self.more = True
                    return
                self._place += 1
                self._pass()
        except Truncated:
            self.unfinished = True
            return
        self._place += self._in_object
        with suppress(Truncated):
            self.more = bool(self._next())

    def _key(self) -> str:
        """The name of a member; empty where it is none that matters."""
        if self._next() != '"':
            self._pass()
            return ""
        while len(self._text) - self._place < _NEAR_END and self._more():
            pass
        if self._text.startswith('"traceEvents"', self._place):
            self._place += len('"traceEvents"')
            return "traceEvents"
        self._place += 1
        self._skip_string()
        return ""

    def _events(self) -> Iterator[dict[str, Any]]:
        while True:
            character = self._next()
            if character == "]":
                self._place += 1
                return
            if character == "{":
                event = self._event()
                if event is not None:
                    yield event
                continue
            if character == ",":
                self._place += 1
            else:
                self.malformed += 1
                self._pass()

    def _event(self) -> dict[str, Any] | None:
        """The object at this place, decoded; None where it cannot be."""
        while True:
            try:
                event, end = self._scan(self._text, self._place)
            except RecursionError:
                break
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _NEAR_END
                if not cut or len(self._text) - self._place > LONGEST_EVENT or not self._more():
                    break
            else:
                self._place = end
                return event if isinstance(event, dict) else None
        self._skip()
        self.malformed += 1
        return None

    # -- passing over ---------------------------------------------------------

    def _pass(self) -> None:
        """Passes over the value at this place, or over the character that cannot begin one."""
        if not self._skip():
            self._place += 1

    def _skip(self) -> bool:
        """Passes over the value at this place; False where there is none."""
        depth = 0
        passed = False
        while True:
            match = _STOPS.search(self._text, self._place)
            if match is None:
                passed = passed or bool(self._text[self._place :].strip())
                self._place = len(self._text)
                if not self._more():
                    raise Truncated
                continue
            stop = match[0]
            passed = passed or bool(self._text[self._place : match.start()].strip())
            self._place = match.start()
            if stop == ",":
                if not depth:
                    return passed
                self._place += 1
            elif stop == '"':
                self._place += 1
                self._skip_string()
                passed = True
            elif stop in "[{":
                opened = _OPENINGS.match(self._text, self._place)
                self._place = opened.end() if opened else self._place + 1
                depth += self._place - match.start()
                passed = True
            else:
                closed = _CLOSINGS.match(self._text, self._place)
                count = min(closed.end() - self._place if closed else 1, depth)
                self._place += count
                depth -= count
                if not depth:
                    return passed

    def _skip_string(self) -> None:
        """Passes over the rest of a string."""
        while True:
            match = _STRING_STOPS.search(self._text, self._place)
            if match is None:
                self._place = len(self._text)
                if not self._more():
                    raise Truncated
                continue
            if match[0] == '"':
                self._place = match.end()
                return
            self._place = match.end()
            if self._place == len(self._text) and not self._more():
                raise Truncated
            self._place += 1
