"""Decodes the events of a Chrome trace in chunks of text cut between events, by msgspec.

A cut at a brace may fall inside a list or a string of an event. The strict decoder decides: text that begins at an
event and decodes as whole events was cut between events. Chunks that cannot be decoded are decoded event by event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from tpuprof_tui.model import Problem, Severity

#: Size of a chunk, in bytes.
CHUNK: Final = 512 << 10
#: Events larger than this, in bytes, are skipped.
LONGEST_EVENT: Final = 1 << 22
#: Largest metadata read before or behind the events, in bytes.
MOST_METADATA: Final = 256 << 20
#: Cuts tried before a chunk is decoded event by event.
_TRIES: Final = 6
#: An error this close to the end of the buffer may be due to the event being incomplete there.
_NEAR_END: Final = 16

_LIST: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_TRAILING: Final = re.compile(r"trailing characters \(byte (\d+)\)")
_SPACE: Final = re.compile(r"[\s,]*")
_NEXT: Final = re.compile(r'\{\s*"(?:ph|name|cat|ts|pid|tid|id|dur|args|s|bp)"\s*:')
#: A bare word in place of a value, or the rest of an invalid number; a quotation mark that ends a key.
_WORD: Final = re.compile(r'[^\s,:{}\[\]"]+')
_ENDS_KEY: Final = re.compile(r'"\s*:(?!:)')
#: Bytes that are not UTF-8, as decoded by ``surrogateescape``.
_NO_UTF8: Final = re.compile("[\udc80-\udcff]+")
_KEY: Final = re.compile(r'[\s,]*(")')
_COLON: Final = re.compile(r"\s*:\s*")
#: Numbers of a larger magnitude are taken as missing.
_MOST_NUMBER: Final = 1e300
#: Most repairs made in one event.
_MOST_REPAIRS: Final = 64

Event = TypeVar("Event")


class Number(str):
    """A JSON number kept as its text, so that microseconds become integers without a binary float."""

    __slots__ = ()


#: Value of a field that an event does not have.
NOTHING: Final = msgspec.Raw()


def decoded_alone(event: dict[str, Any], kind: Any) -> Any:
    """Converts an event that was decoded alone to the type ``kind``, numbers exact; None if it does not fit."""
    try:
        return msgspec.json.decode(msgspec.json.encode(_encodable(event)), type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _encodable(value: Any) -> Any:
    """A value that JSON can hold: numbers as their texts (None if too large), lone surrogates replaced by ?."""
    if isinstance(value, Number):
        return msgspec.Raw(value.encode()) if abs(float(value)) < _MOST_NUMBER else None
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_encodable(each) for each in value]
    return {_encodable(key): _encodable(each) for key, each in value.items()} if isinstance(value, dict) else value


def raw_text(value: Any) -> msgspec.Raw:
    """A ``Number`` (or other text) of an event that was decoded alone, as its raw text; NOTHING for other types."""
    return msgspec.Raw(value.encode("utf-8", "replace")) if isinstance(value, str) else NOTHING


class Tally(Struct):
    """Number of occurrences, and the offset in bytes of the first; -1 if there are none."""

    count: int = 0
    first: int = -1

    def __bool__(self) -> bool:
        return bool(self.count)

    def add(self, offset: int, count: int = 1) -> None:
        """Adds occurrences; calls come in ascending order of offset."""
        self.count += count
        self.first = offset if self.first < 0 else self.first


class EventChunks(Generic[Event]):
    """The objects of the ``traceEvents`` list of a trace, or of a plain list of events, as lists of structs.

    Args:
        read: Returns at most the given number of bytes of the text; none at its end.
        kind: Struct type that events are decoded to.
        from_dict: Makes such a struct of an event that was decoded alone, its numbers as ``Number``; None if it cannot.
        begin: Offset of the text in the file; if above 0, the text begins inside the list, at an event.
        in_object: Whether the list is a member of an object; only used if ``begin`` is above 0.
        read_rest: Whether to read the text behind the list.

    Attributes:
        found: Whether there is a list of events.
        truncated: Whether the text ends within the list.
        malformed, values, quotes, controls, no_utf8: Defects of the text; see ``problems``.
        metadata: Members of the object next to the list, by key, without those that cannot be decoded.
        metadata_lost: Where members next to the list cannot be decoded.
        trailing_text: Where there is a second list of events, or text behind the trace.
        offset: Offset of the text of the last chunk.
        chunk_text: JSON text (a list) of the last chunk; None if it was decoded event by event.
        list_end: Offset of the end of the list.
    """

    def __init__(
        self, read: Callable[[int], bytes], kind: type[Event], from_dict: Callable[[dict[str, Any]], Event | None], *,
        begin: int = 0, in_object: bool = True, read_rest: bool = True,
    ) -> None:  # fmt: skip
        self._in_object = in_object if begin else None
        self._read_rest = read_rest
        self._read = read
        self._decode = msgspec.json.Decoder(list[kind]).decode  # type: ignore[valid-type]
        self._from_dict = from_dict
        self._constants = 0
        self._event_starts: list[int] = []
        self._scan, self._scan_any = (
            json.JSONDecoder(
                parse_float=Number, parse_int=Number, parse_constant=self._constant, strict=strict
            ).raw_decode
            for strict in (True, False)
        )
        self._buffer = b""
        self._offset = begin
        self._ended = False
        self.found = False
        self.truncated = False
        self.malformed, self.values, self.quotes, self.controls, self.no_utf8 = (Tally() for _ in range(5))
        self.metadata: dict[str, Any] = {}
        self.metadata_lost, self.trailing_text = Tally(), Tally()
        self.offset = self.list_end = 0
        self.chunk_text: bytes | None = None

    def __iter__(self) -> Iterator[list[Event]]:
        in_object = self._find_list() if self._in_object is None else self._in_object
        if in_object is None:
            return
        yield from self.event_chunks()
        self.list_end = self._offset
        if self._read_rest and not self.truncated:
            self._read_trailing_text(in_object=in_object)

    def event_chunks(self) -> Iterator[list[Event]]:
        """Chunks of events of a text that begins inside the list, at an event."""
        self.found = True
        closed = False
        while not closed:
            events, closed = self._chunk()
            if events:
                yield events
            if not closed and self._ended and not self._buffer.strip(b", \t\r\n"):
                self.truncated = True
                return

    def with_offsets(self) -> Iterator[tuple[int, Event]]:
        """Events of a text that begins inside the list, each decoded alone, with their offsets in bytes."""
        closed = False
        while not closed and (self._fill(CHUNK) or self._buffer):
            text, begin, done = self._buffer.decode("utf-8", "surrogateescape"), self._offset, 0
            events, closed = self._decode_one_by_one()
            for event, position in zip(events, self._event_starts, strict=True):
                begin, done = begin + _length(text[done:position]), position
                yield begin, event

    @property
    def tallies(self) -> dict[str, Tally]:
        """Defects of the text, by name of the attribute."""
        names = ("malformed", "values", "quotes", "controls", "no_utf8", "metadata_lost", "trailing_text")
        return {name: getattr(self, name) for name in names}

    def add_results(self, tallies: dict[str, Tally], metadata: dict[str, Any], *, truncated: bool) -> None:
        """Adds the results of another reader, which read the text behind this one's."""
        for name, tally in tallies.items():
            if tally:
                getattr(self, name).add(tally.first, tally.count)
        self.metadata |= metadata
        self.truncated = truncated

    def problems(self, file: str) -> Iterator[Problem]:
        """Defects of the text read so far, except that it is truncated; one Problem for each kind.

        Args:
            file: Name of the file.
        """
        if self.metadata_lost and not self.truncated:
            yield Problem(Severity.WARNING, "The metadata next to the events cannot be decoded.", "It is left out.",
                          file=file, offset=self.metadata_lost.first)  # fmt: skip
        for tally, severity, what, done in (
            (self.malformed, Severity.ERROR, "Events that cannot be decoded.", "They were left out."),
            (self.trailing_text, Severity.ERROR, "There is a second list of events, or text after the trace.",
             "It was not read."),
            (self.values, Severity.WARNING, "Values that are not JSON, such as NaN or N/A.",
             "They are treated as not known."),
            (self.quotes, Severity.WARNING, "Unescaped quotation marks in texts.",
             "They are treated as part of the text."),
            (self.controls, Severity.NOTE, "Events with control characters in texts.", "They are kept."),
            (self.no_utf8, Severity.WARNING, "Bytes that are not UTF-8.", "They are shown as ?."),
        ):  # fmt: skip
            if tally:
                lost, repaired = (tally.count if severity is each else 0 for each in (Severity.ERROR, Severity.WARNING))
                yield Problem(severity, what, done, file=file, offset=tally.first, count=tally.count, lost=lost,
                              repaired=repaired)  # fmt: skip

    # -- text

    def _fill(self, count: int) -> bool:
        """Fills the buffer to ``count`` bytes; False at the end of the text."""
        parts, length = [self._buffer] if self._buffer else [], len(self._buffer)
        while not self._ended and length < count:
            data = self._read(count - length)
            self._ended = not data
            parts.append(data)
            length += len(data)
        self._buffer = parts[0] if len(parts) == 1 else b"".join(parts)
        return not self._ended

    def _advance(self, count: int) -> None:
        if not self._buffer.isascii() and not self.truncated:
            data = self._buffer[:count]
            try:
                data.decode()
            except UnicodeDecodeError as error:
                runs = _NO_UTF8.findall(data.decode("utf-8", "surrogateescape"))
                self.no_utf8.add(self._offset + error.start, len(runs))
        self._buffer = self._buffer[count:]
        self._offset += count

    # -- where the list is

    def _find_list(self) -> bool | None:
        """Skips to behind the opening bracket of the list; whether it is in an object, None if there is no list."""
        self._fill(CHUNK)
        if self._buffer.startswith(b"\xef\xbb\xbf"):
            self._advance(3)
        begin = self._buffer[:4096].lstrip()[:1]
        if begin == b"[":
            self._advance(self._buffer.index(b"[") + 1)
            return False
        if begin != b"{":
            return None
        position = 0
        while True:
            match = _LIST.search(self._buffer, position)
            if match is None:
                position = max(len(self._buffer) - 64, 0)
                if self._ended or len(self._buffer) > MOST_METADATA:
                    return None
                self._fill(2 * len(self._buffer) + CHUNK)
                continue
            before = _metadata(self._buffer[: match.start()].rstrip().removesuffix(b",") + b"}")
            if before is not None:
                self.metadata |= before
                self._advance(match.end())
                return True
            # the match is inside a string, or the text before it is damaged
            if _brace_depth(self._buffer[: match.start()]) == 1:
                found, position, _ = _members(self._buffer[: match.start()])
                self.metadata |= found
                self.metadata_lost.add(self._offset + position)
                self._advance(match.end())
                return True
            position = match.end()

    def _read_trailing_text(self, *, in_object: bool) -> None:
        """Decodes the metadata behind the list, and checks for text behind the trace."""
        while self._fill(min(2 * len(self._buffer) + CHUNK, MOST_METADATA)) and len(self._buffer) < MOST_METADATA:
            pass
        rest, position, closed = self._buffer, 0, True
        if in_object:
            # replaces the comma behind the list by an opening brace
            comma = rest.find(b",") if rest.lstrip().startswith(b",") else -1
            found, position, closed = _members(b"{" + rest[comma + 1 :])
            position += comma
            self.metadata |= {key: value for key, value in found.items() if key != "traceEvents"}
            if "traceEvents" in found:
                self.trailing_text.add(self._offset + rest.find(b'"traceEvents"'))
        if not closed:
            self.metadata_lost.add(self._offset + position)
        elif rest[position:].strip(b" \t\r\n\0"):
            self.trailing_text.add(self._offset + position)
        self._advance(len(rest))

    # -- events

    def _chunk(self) -> tuple[list[Event], bool]:
        """The next events, and whether the list ends behind them."""
        self._fill(CHUNK)
        self.offset = self._offset
        cut = len(self._buffer)
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
                    # msgspec reports data behind the end of the list; its offset counts the bracket added in front
                    end = int(match[1]) - 2
                    try:
                        events = self._decoded(end, closed=True)
                    except msgspec.DecodeError:
                        break
                    self._advance(end)
                    return events, True
                if self._ended:
                    break
                continue
            except (RecursionError, UnicodeDecodeError):
                break
            self._advance(end)
            return events, self._ended
        return self._decode_one_by_one()

    def _decoded(self, cut: int, *, closed: bool) -> list[Event]:
        """Decodes the buffer up to a cut; ``closed``: it contains the closing bracket of the list."""
        self.chunk_text = b"".join((b"[", memoryview(self._buffer)[:cut], b"" if closed else b"]"))
        return self._decode(self.chunk_text)

    def _cut_before(self, end: int) -> tuple[int, int] | None:
        """The last likely border between two events before ``end``: end of the one, begin of the next; or None."""
        while True:
            brace = self._buffer.rfind(b"{", 0, end)
            if brace <= 0:
                return None
            position = brace
            while position > 0 and self._buffer[position - 1] in b" \t\r\n":
                position -= 1
            if position > 0 and self._buffer[position - 1] == 0x2C:
                comma = position - 1
                while comma > 0 and self._buffer[comma - 1] in b" \t\r\n":
                    comma -= 1
                if comma > 0 and self._buffer[comma - 1] == 0x7D:
                    return comma, brace
            end = brace

    def _decode_one_by_one(self) -> tuple[list[Event], bool]:
        """Decodes the events of the buffer one at a time; and whether the list ends behind them."""
        self.chunk_text = None
        self._event_starts = []
        text = self._buffer.decode("utf-8", "surrogateescape")
        position, closed = 0, False
        events: list[Event] = []
        while True:
            match = _SPACE.match(text, position)
            position = match.end() if match else position
            if position >= len(text):
                break
            if text[position] == "]":
                position, closed = position + 1, True
                break
            scanned = self._event_at(text, position)
            if isinstance(scanned, Exception):
                follows = _next_event(text, position + 1)
                unfinished = follows < 0 or _cut_off(scanned, len(text))
                if not self._ended and unfinished and len(text) - position < LONGEST_EVENT:
                    break
                if follows < 0 and self._ended:
                    # the rest is an incomplete event, or a damaged last event and the end of the list
                    closing = text.find("}]", position)
                    closed = closing >= 0
                    self.truncated = self.truncated or not closed
                    if closed:
                        self._count(self.malformed, text, position)
                    position = closing + 2 if closed else len(text)
                    break
                self._count(self.malformed, text, position)
                position = len(text) if follows < 0 else follows
                continue
            value, end = scanned
            event = self._from_dict(value) if isinstance(value, dict) else None
            if event is None:
                self._count(self.malformed, text, position)
            else:
                events.append(event)
                self._event_starts.append(position)
            position = end
        used = len(text[:position].encode("utf-8", "surrogateescape"))
        self._advance(used)
        if not closed and not used and not self._ended:
            self._fill(len(self._buffer) + CHUNK)
        if not closed and self._ended and not self._buffer:
            self.truncated = True
            return events, False
        return events, closed

    def _event_at(self, text: str, position: int) -> tuple[Any, int] | Exception:
        """Decodes the value at a position, with simple repairs; the value and its end, or the decoder's error."""
        self._constants = 0
        try:
            try:
                found = self._scan(text, position)
            except json.JSONDecodeError as error:
                if not error.msg.startswith("Invalid control"):
                    raise
                self._constants = 0
                found = self._scan_any(text, position)
                self._count(self.controls, text, position)
        except json.JSONDecodeError as error:
            # an event that is incomplete in the buffer is retried with more text
            cut = not self._ended and _cut_off(error, len(text)) and len(text) - position < LONGEST_EVENT
            return error if cut else self._repaired(text, position) or error
        except RecursionError as error:
            return error
        if self._constants:
            self._count(self.values, text, position, self._constants)
        return found

    def _repaired(self, text: str, position: int) -> tuple[Any, int] | None:
        """Decodes an event after repairing bare words and unescaped quotation marks; None if that fails."""
        end = _next_event(text, position + 1)
        event = text[position : min(end if end >= 0 else len(text), position + LONGEST_EVENT)]
        words = quotes = longer = 0
        for _ in range(_MOST_REPAIRS):
            self._constants = 0
            try:
                found, used = self._scan_any(event, 0)
            except json.JSONDecodeError as error:
                begin, word, before = error.pos, "null", event[: error.pos].rstrip()
                if error.msg.startswith("Expecting ',' delimiter") and before.endswith('"'):
                    begin = finish = len(before) - 1
                    word = "\\"
                    if _ENDS_KEY.match(event, begin):
                        return None
                    quotes += 1
                else:
                    while _WORD.match(event, begin - 1, begin) and error.msg.startswith("Expecting ',' delimiter"):
                        begin -= 1
                    match = _WORD.match(event, begin)
                    if match is None or not event[:begin].rstrip().endswith((":", ",", "[")):
                        return None
                    finish = match.end()
                    words += 1
                event = event[:begin] + word + event[finish:]
                longer += len(word) - (finish - begin)
            except RecursionError:
                return None
            else:
                if words + self._constants:
                    self._count(self.values, text, position, words + self._constants)
                if quotes:
                    self._count(self.quotes, text, position, quotes)
                return found, position + used - longer
        return None

    def _constant(self, _: str) -> None:
        self._constants += 1

    def _count(self, tally: Tally, text: str, position: int, count: int = 1) -> None:
        """Counts a defect at a position of the decoded buffer."""
        tally.add(tally.first if tally else self._offset + _length(text[:position]), count)


def events_with_offsets(text: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """The events of a text that begins inside the list, numbers as ``Number``, with their offsets in bytes."""
    waiting = [text]
    chunks: EventChunks[dict[str, Any]] = EventChunks(
        lambda _: waiting.pop() if waiting else b"", dict, lambda each: each
    )
    yield from chunks.with_offsets()


def _length(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _next_event(text: str, position: int) -> int:
    """Position of the next likely event: an object that is no value of a key and not first in a list; -1 if none."""
    for match in _NEXT.finditer(text, position):
        if not text[max(match.start() - _NEAR_END, 0) : match.start()].rstrip().endswith((":", "[")):
            return match.start()
    return -1


def _cut_off(error: Exception, length: int) -> bool:
    """Whether an error may be due to the buffer ending within the event."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated string") or error.pos >= length - _NEAR_END


def _metadata(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _members(data: bytes) -> tuple[dict[str, Any], int, bool]:
    """Members of an object before the first defect, their end in bytes, and whether the object ends there."""
    text = data.decode("utf-8", "surrogateescape")
    scan = json.JSONDecoder(strict=False).raw_decode
    found: dict[str, Any] = {}
    position = text.find("{") + 1
    while match := _KEY.match(text, position):
        try:
            key, end = scan(text, match.start(1))
            colon = _COLON.match(text, end)
            if colon is None:
                break
            found[key], position = scan(text, colon.end())
        except (ValueError, RecursionError):
            break
    space = _SPACE.match(text, position)
    position = space.end() if space else position
    closed = text.startswith("}", position)
    return found, _length(text[: position + closed]), closed


def _brace_depth(text: bytes) -> int:
    """Number of braces and brackets left open at the end of a text, strings ignored."""
    plain = re.sub(rb'"(?:[^"\\]|\\.)*"', b"", text)
    return plain.count(b"{") + plain.count(b"[") - plain.count(b"}") - plain.count(b"]")
