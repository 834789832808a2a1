"""The events of a Chrome trace many at a time: text in chunks cut between events, decoded by msgspec.

A cut at a brace may lie inside a list or a text of an event. The strict decoder judges: what begins at an event and
decodes as whole events has been cut between events. What cannot be decoded is gone through event by event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

import msgspec

from .decimals import Number

#: Bytes that are decoded at a time.
CHUNK: Final = 512 << 10
#: An event that takes more bytes than this is passed over.
LONGEST_EVENT: Final = 1 << 22
#: Metadata before or behind the events that take more bytes than this are not read.
MOST_METADATA: Final = 256 << 20
#: How many cuts are tried before a chunk is gone through event by event.
_TRIES: Final = 6
#: An error so close to the end of what was read may be one of the reading.
_NEAR_END: Final = 16

_LIST: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_TRAILING: Final = re.compile(r"trailing characters \(byte (\d+)\)")
_SPACE: Final = re.compile(r"[\s,]*")
_NEXT: Final = re.compile(r'\{\s*"(?:ph|name|cat|ts|pid|tid|id|dur|args|s|bp)"\s*:')

Event = TypeVar("Event")

#: What an event lacks.
NOTHING: Final = msgspec.Raw()


def raw_text(value: Any) -> msgspec.Raw:
    """A number of an event that was decoded alone (``Number``), as it stands in the text; else nothing."""
    return msgspec.Raw(value.encode("utf-8", "replace")) if isinstance(value, str) else NOTHING


class EventChunks(Generic[Event]):
    """The objects of the ``traceEvents`` list of a trace, or of a list of events, as lists of structs.

    Args:
        read: Gives at most so many bytes of the text; none at its end.
        kind: The struct that an event becomes.
        loose: Makes such a struct of an event that was decoded alone, its numbers as ``Number``; None where it cannot.

    Attributes:
        found: Whether there was a list of events.
        truncated: Whether the text ended within it.
        malformed: Number of events that could not be decoded.
        first_malformed: Offset of the first of them; -1 without any.
        metadata: What stands beside the list, by key; what could not be decoded is not there.
        metadata_lost: Whether some of it could not be decoded.
        more: Whether there is another list of events in it.
        offset: Where the text of the events that came last begins.
        piece: That text, a list; None where they were decoded one by one.
        list_end: Where the text of all events ends.
    """

    def __init__(
        self, read: Callable[[int], bytes], kind: type[Event], loose: Callable[[dict[str, Any]], Event | None]
    ) -> None:  # fmt: skip
        self._read = read
        self._decode = msgspec.json.Decoder(list[kind]).decode  # type: ignore[valid-type]
        self._loose = loose
        self._scan = json.JSONDecoder(
            parse_float=Number, parse_int=Number, parse_constant=lambda _: None, strict=False
        ).raw_decode
        self._held = b""
        self._offset = 0
        self._ended = False
        self.found = False
        self.truncated = False
        self.malformed = 0
        self.first_malformed = -1
        self.metadata: dict[str, Any] = {}
        self.metadata_lost = False
        self.more = False
        self.offset = self.list_end = 0
        self.piece: bytes | None = None

    def __iter__(self) -> Iterator[list[Event]]:
        in_object = self._find_list()
        if in_object is None:
            return
        yield from self.inside()
        self.list_end = self._offset
        if in_object and not self.truncated:
            self._behind()

    def inside(self) -> Iterator[list[Event]]:
        """The same of a text that begins inside the list, at an event."""
        self.found = True
        closed = False
        while not closed:
            events, closed = self._chunk()
            if events:
                yield events
            if not closed and self._ended and not self._held.strip(b", \t\r\n"):
                self.truncated = True
                return

    # -- text

    def _more(self, count: int) -> bool:
        """Reads on until so many bytes are held; False at the end of the text."""
        parts, length = [self._held] if self._held else [], len(self._held)
        while not self._ended and length < count:
            data = self._read(count - length)
            self._ended = not data
            parts.append(data)
            length += len(data)
        self._held = parts[0] if len(parts) == 1 else b"".join(parts)
        return not self._ended

    def _pass(self, count: int) -> None:
        self._held = self._held[count:]
        self._offset += count

    # -- where the list is

    def _find_list(self) -> bool | None:
        """Goes behind the bracket of the list; whether an object holds it, None where there is none."""
        self._more(CHUNK)
        if self._held.startswith(b"\xef\xbb\xbf"):
            self._pass(3)
        begin = self._held[:4096].lstrip()[:1]
        if begin == b"[":
            self._pass(self._held.index(b"[") + 1)
            return False
        if begin != b"{":
            return None
        place = 0
        while True:
            match = _LIST.search(self._held, place)
            if match is None:
                place = max(len(self._held) - 64, 0)
                if self._ended or len(self._held) > MOST_METADATA:
                    return None
                self._more(2 * len(self._held) + CHUNK)
                continue
            before = _metadata(self._held[: match.start()].rstrip().removesuffix(b",") + b"}")
            if before is not None:
                self.metadata |= before
                self._pass(match.end())
                return True
            # the words stood in a text, or what is before them is damaged
            if _brace_depth(self._held[: match.start()]) == 1:
                self.metadata_lost = True
                self._pass(match.end())
                return True
            place = match.end()

    def _behind(self) -> None:
        """Metadata behind the list."""
        while self._more(min(2 * len(self._held) + CHUNK, MOST_METADATA)) and len(self._held) < MOST_METADATA:
            pass
        rest = self._held.strip()
        found = _metadata(b"{" + rest.removeprefix(b",")) if rest else None
        if found is None:
            self.metadata_lost = True
            return
        self.more = "traceEvents" in found
        self.metadata |= {key: value for key, value in found.items() if key != "traceEvents"}

    # -- events

    def _chunk(self) -> tuple[list[Event], bool]:
        """The next events, and whether the list ends behind them."""
        self._more(CHUNK)
        self.offset = self._offset
        cut = len(self._held)
        for _ in range(_TRIES):
            if self._ended:
                end = cut
            else:
                found = self._cut_before(cut)
                if found is None:
                    break
                cut, end = found
            try:
                events = self._decoded(cut, closed=self._ended)
            except msgspec.DecodeError as error:
                match = _TRAILING.search(str(error))
                if match:
                    # the list ends before what msgspec calls trailing; its first byte is the bracket put here
                    end = int(match[1]) - 2
                    try:
                        events = self._decoded(end, closed=True)
                    except msgspec.DecodeError:
                        break
                    self._pass(end)
                    return events, True
                if self._ended:
                    break
                continue
            except (RecursionError, UnicodeDecodeError):
                break
            self._pass(end)
            return events, self._ended
        return self._one_by_one()

    def _decoded(self, cut: int, *, closed: bool) -> list[Event]:
        """The events of what is held up to a cut; ``closed``: the bracket behind them is part of it."""
        self.piece = b"".join((b"[", memoryview(self._held)[:cut], b"" if closed else b"]"))
        return self._decode(self.piece)

    def _cut_before(self, end: int) -> tuple[int, int] | None:
        """Where an event seems to end and where the next begins, the last such place before ``end``."""
        while True:
            brace = self._held.rfind(b"{", 0, end)
            if brace <= 0:
                return None
            place = brace
            while place > 0 and self._held[place - 1] in b" \t\r\n":
                place -= 1
            if place > 0 and self._held[place - 1] == 0x2C:
                comma = place - 1
                while comma > 0 and self._held[comma - 1] in b" \t\r\n":
                    comma -= 1
                if comma > 0 and self._held[comma - 1] == 0x7D:
                    return comma, brace
            end = brace

    def _one_by_one(self) -> tuple[list[Event], bool]:
        """The events of what is held, each decoded alone."""
        self.piece = None
        text = self._held.decode("utf-8", "surrogateescape")
        place, events, closed = 0, [], False
        while True:
            match = _SPACE.match(text, place)
            place = match.end() if match else place
            if place >= len(text):
                break
            if text[place] == "]":
                place, closed = place + 1, True
                break
            try:
                value, end = self._scan(text, place)
            except (json.JSONDecodeError, RecursionError) as error:
                follows = _NEXT.search(text, place + 1)
                if not self._ended and _cut_off(error, len(text)) and len(text) - place < LONGEST_EVENT:
                    break
                if follows is None and self._ended:
                    # what is left is the beginning of an event, or the damaged last one and the list's end
                    closing = text.find("}]", place)
                    closed = closing >= 0
                    self.truncated = self.truncated or not closed
                    place = closing + 2 if closed else len(text)
                    if closed:
                        self._lost(text, place)
                    break
                self._lost(text, place)
                place = len(text) if follows is None else follows.start()
                continue
            event = self._loose(value) if isinstance(value, dict) else None
            if event is None:
                self._lost(text, place)
            else:
                events.append(event)
            place = end
        used = len(text[:place].encode("utf-8", "surrogateescape"))
        self._pass(used)
        if not closed and not used and not self._ended:
            self._more(len(self._held) + CHUNK)
        if not closed and self._ended and not self._held:
            self.truncated = True
            return events, False
        return events, closed

    def _lost(self, text: str, place: int) -> None:
        self.malformed += 1
        if self.first_malformed < 0:
            self.first_malformed = self._offset + len(text[:place].encode("utf-8", "surrogateescape"))


def _cut_off(error: Exception, length: int) -> bool:
    """Whether an error may be one of the reading, because the text that is held ends within the event."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated string") or error.pos >= length - _NEAR_END


def _metadata(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _brace_depth(text: bytes) -> int:
    """How many braces and brackets are open behind a text, strings left out."""
    plain = re.sub(rb'"(?:[^"\\]|\\.)*"', b"", text)
    return plain.count(b"{") + plain.count(b"[") - plain.count(b"}") - plain.count(b"]")
