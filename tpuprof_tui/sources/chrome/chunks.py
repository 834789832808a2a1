"""Decodes the events of a Chrome trace in chunks of text cut between events, by msgspec.

A cut at a brace may fall inside a list or a string of an event. The strict decoder decides: text that begins at an
event and decodes as whole events was cut between events. Chunks that cannot be decoded are decoded in small parts, and
of these the ones that cannot be decoded event by event, with repairs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import Problem, Severity

from .repair import Escaped, Repair, Repairer, first_error, has_unescaped, with_escapes

#: Size of a chunk, in bytes.
CHUNK: Final = 512 << 10
#: Events larger than this, in bytes, are skipped.
LONGEST_EVENT: Final = 1 << 22
#: Largest metadata read before or behind the events, in bytes.
MOST_METADATA: Final = 256 << 20
#: Cuts tried before a chunk is decoded event by event.
_TRIES: Final = 6
#: Size of a part of a chunk that cannot be decoded as a whole, in bytes.
_PART: Final = 8 << 10
#: Text looked at for an event that does not end before the next likely one, in bytes: as long as it seems cut off.
_NEAR: Final = (2 << 10, 64 << 10)
#: Bytes of an event in which its phase stands.
_NEAR_PHASE: Final = 1 << 10
_LONG_PHASE: Final = lazy_pattern(rb'"ph"\s*:\s*"[^"]{2}')
#: An error this close to the end of a text may be due to the event being incomplete there.
_NEAR_END: Final = 16
#: Brackets tried as the end of the list behind a last event that cannot be decoded.
_MOST_ENDS: Final = 64
#: Characters that may be looked at for repairs, for each byte that is read.
_EFFORT: Final = 8

_LIST: Final = lazy_pattern(rb'"traceEvents"\s*:\s*\[')
_FURTHER_LIST: Final = lazy_pattern(
    rb'\s*\}[ \t\r]*\n\s*\{\s*(?:"displayTimeUnit"\s*:\s*"[^"\\]*"\s*,\s*)?"traceEvents"\s*:\s*\['
)
_TRAILING: Final = lazy_pattern(r"trailing characters \(byte (\d+)\)")
_POSITION: Final = lazy_pattern(r"\(byte (\d+)\)")
_SPACE: Final = lazy_pattern(r"[\s,]*")
_BETWEEN: Final = lazy_pattern(rb"[ \t\r\n,]*")
_BORDER: Final = lazy_pattern(rb"\}[ \t\r\n]*,[ \t\r\n]*(?=\{)")
_ON_LINES: Final = lazy_pattern(rb"\}[ \t\r]*,[ \t\r]*\n\s*\{")
_NEXT: Final = lazy_pattern(rb'\{\s*"(?:ph|name|cat|ts|pid|tid|id|dur|args|s|bp)"\s*:')
#: An entry of the list that is no object: of another list its bracket.
_SCALAR: Final = lazy_pattern(rb'"(?:[^"\\]|\\.)*"|\[|[^\s,\[\]{}"]+', re.DOTALL)
_LIST_END: Final = lazy_pattern(rb"[}\]]\s*\]")
#: Bytes that are not UTF-8, as decoded by ``surrogateescape``.
_NO_UTF8: Final = lazy_pattern("[\udc80-\udcff]+")
_KEY: Final = lazy_pattern(r'[\s,]*(")')
_COLON: Final = lazy_pattern(r"\s*:\s*")
#: Numbers of a larger magnitude are taken as missing.
_MOST_NUMBER: Final = 1e300

Event = TypeVar("Event")


class Number(str):
    """A JSON number kept as its text, so that microseconds become integers without a binary float."""

    __slots__ = ()


_scan: Final = json.JSONDecoder(parse_float=Number, parse_int=Number, strict=False).raw_decode
_decode_raw: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
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


#: Defects of a text by kind: severity, what is said, and what was done.
_DEFECTS: Final = {
    "metadata_lost": (Severity.WARNING, "The metadata next to the events cannot be decoded.", "It is left out."),
    "malformed": (Severity.ERROR, "Events that cannot be decoded.", "They were left out."),
    "trailing_text": (Severity.ERROR, "There is a second list of events, or text after the trace.", "It was not read."),
    "further_lists": (Severity.NOTE, "Further objects with events, as Proton writes one for each stream.",
                      "They are read as one trace."),
    "values": (Severity.WARNING, "Values that are not JSON, such as NaN or N/A.", "They are treated as not known."),
    "backslashes": (Severity.WARNING, "Events with unescaped backslashes in texts.",
                    "They were repaired: the backslashes are kept."),
    "quotes": (Severity.WARNING, "Events with unescaped quotation marks in texts.",
               "They were repaired: each text ends where the next key follows."),
    "controls": (Severity.NOTE, "Events with control characters in texts.", "They are kept."),
    "no_utf8": (Severity.WARNING, "Bytes that are not UTF-8.", "They are shown as ?."),
}  # fmt: skip


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
        tallies: Defects of the text, by kind (see ``_DEFECTS``).
        metadata: Members of the object next to the list, by key, without those that cannot be decoded.
        offset: Offset of the text of the last chunk.
        ended_sound: Whether the list ended behind an event that could be decoded.
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
        self._decode_one = msgspec.json.Decoder(kind).decode
        self._repairer = Repairer()
        self._from_dict = from_dict
        self._event_starts: list[int] = []
        #: Whether the last event could not be decoded, and whether one seemed to be cut off at the end of the text.
        self._bad = self._cut = False
        #: Whether events begin on lines of their own.
        self._on_lines = False
        #: Whether the list is a member of an object.
        self._is_member = in_object
        self._buffer = b""
        self._offset = begin
        self._ended = False
        self.found = False
        self.truncated = False
        self.tallies = {kind: Tally() for kind in _DEFECTS}
        self.metadata: dict[str, Any] = {}
        self.offset = self.list_end = 0
        self.ended_sound = False

    def __iter__(self) -> Iterator[list[Event]]:
        in_object = self._find_list() if self._in_object is None else self._in_object
        if in_object is None:
            return
        self._is_member = in_object
        yield from self.event_chunks()
        while in_object and self._begin_further_list():
            yield from self.event_chunks()
        self.list_end = self._offset
        if self._read_rest and not self.truncated:
            self._read_trailing_text(in_object=in_object)

    def _begin_further_list(self) -> bool:
        """Skips to the list of an object that follows, as of recorders that write one for each stream; or False."""
        if self.truncated or self.metadata.keys() - {"displayTimeUnit"}:
            return False
        self._fill(CHUNK)
        match = _FURTHER_LIST.match(self._buffer)
        if match:
            self.tallies["further_lists"].add(self._offset)
            self._advance(match.end())
        return match is not None

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
            begin = self._offset
            events, closed = self._decode_in_parts(alone=True)
            yield from zip((begin + position for position in self._event_starts), events, strict=True)

    def add_results(self, tallies: dict[str, Tally], metadata: dict[str, Any], *, truncated: bool) -> None:
        """Adds the results of another reader, which read the text behind this one's."""
        for kind, tally in tallies.items():
            if tally:
                self.tallies[kind].add(tally.first, tally.count)
        self.metadata |= metadata
        self.truncated = truncated

    def problems(self, file: str) -> Iterator[Problem]:
        """Defects of the text read so far, except that it is truncated; one Problem for each kind.

        Args:
            file: Name of the file.
        """
        for kind, (severity, what, done) in _DEFECTS.items():
            tally = self.tallies[kind]
            if kind == "metadata_lost" and tally and not self.truncated:
                yield Problem(severity, what, done, file=file, offset=tally.first)
            elif kind != "metadata_lost" and tally:
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
                self.tallies["no_utf8"].add(self._offset + error.start, len(runs))
        self._buffer = self._buffer[count:]
        self._offset += count
        self._repairer.credit += _EFFORT * count

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
            escaped = with_escapes(self._buffer[: match.start()])
            found = _metadata(escaped.text.rstrip().removesuffix(b",") + b"}")
            # else the match is inside a string, or the text before it is damaged
            repairs: list[tuple[int, Repair]] = []
            if found is None:
                found, repairs = self._repaired_members(escaped.text + b"}")
            if found is None and _brace_depth(escaped.text) == 1:
                found, end, _ = _members(escaped.text)
                self.tallies["metadata_lost"].add(self._offset + escaped.original(end))
            if found is not None:
                self.metadata |= found
                self._count(0, escaped, repairs)
                self._advance(match.end())
                return True
            position = match.end()

    def _read_trailing_text(self, *, in_object: bool) -> None:
        """Decodes the metadata behind the list, and checks for text behind the trace."""
        while self._fill(min(2 * len(self._buffer) + CHUNK, MOST_METADATA)) and len(self._buffer) < MOST_METADATA:
            pass
        escaped, position, closed = with_escapes(self._buffer), 0, True
        rest = escaped.text
        repairs: list[tuple[int, Repair]] = []
        if in_object:
            # replaces the comma behind the list by an opening brace
            comma = rest.find(b",") if rest.lstrip().startswith(b",") else -1
            found, position, closed = _members(b"{" + rest[comma + 1 :])
            position += comma
            if not closed:
                mended, repairs = self._repaired_members(b"{" + rest[comma + 1 :])
                found, position, closed = (found, position, False) if mended is None else (mended, len(rest), True)
            self.metadata |= {key: value for key, value in found.items() if key != "traceEvents"}
            if "traceEvents" in found:
                self.tallies["trailing_text"].add(self._offset + escaped.original(rest.find(b'"traceEvents"')))
        if not closed:
            self.tallies["metadata_lost"].add(self._offset + escaped.original(position))
        elif rest[position:].strip(b" \t\r\n\0"):
            self.tallies["trailing_text"].add(self._offset + escaped.original(position))
        self._count(0, escaped, repairs)
        self._advance(len(self._buffer))

    def _repaired_members(self, text: bytes) -> tuple[dict[str, Any] | None, list[tuple[int, Repair]]]:
        """Members of the object of a text after repairs, and these; None if that fails. Commas at its end are none."""
        text = text.rstrip(b" \t\r\n\0")
        if len(text) > self._repairer.credit or not text.endswith(b"}"):
            return None, []
        members = text[:-1].decode("utf-8", "surrogateescape").rstrip(", \t\r\n")
        # in arguments of events any key may follow
        given = f'{{"args": {members}}}}}'
        try:
            repair = self._repairer.repaired(given)
        except RecursionError:
            return None, []
        found = _metadata(repair.text) if repair is not None and repair.length == _length(given) else None
        args = None if found is None or len(found) > 1 else found["args"]
        return (args, [(0, repair)]) if repair is not None and isinstance(args, dict) else (None, [])

    # -- events

    def _chunk(self) -> tuple[list[Event], bool]:
        """The next events, and whether the list ends behind them."""
        self._fill(CHUNK)
        self.offset = self._offset
        cut = len(self._buffer)
        for _ in range(0 if has_unescaped(self._buffer) else _TRIES):
            if self._ended:
                end = cut
            else:
                cut, end = _cut_before(self._buffer, cut)
                if end < 0:
                    break
            try:
                events = self._decoded(cut, closed=self._ended)
            except msgspec.ValidationError:
                break
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
                    self.ended_sound, self._bad = True, False
                    return events, True
                place = _POSITION.search(str(error))
                # within a text or list that a wrong cut ends, nothing is wrong before the end
                if self._ended or (place and int(place[1]) < cut):
                    break
                continue
            except (RecursionError, UnicodeDecodeError):
                break
            self._advance(end)
            self.ended_sound, self._bad = self._ended, False
            return events, self._ended
        return self._decode_in_parts()

    def _decoded(self, cut: int, *, closed: bool) -> list[Event]:
        """Decodes the buffer up to a cut; ``closed``: it contains the closing bracket of the list."""
        return self._decode(b"".join((b"[", memoryview(self._buffer)[:cut], b"" if closed else b"]")))

    def _decode_in_parts(self, *, alone: bool = False) -> tuple[list[Event], bool]:
        """The events of the buffer, decoded in parts, and whether the list ends behind them.

        ``alone``: one at a time, with their positions in ``_event_starts``.
        """
        self._event_starts = []
        self._on_lines = self._on_lines or _ON_LINES.search(self._buffer) is not None
        self._border_at = _next(self._buffer, _border)
        self._likely_at = _next(self._buffer, _next_event)
        events: list[Event] = []
        position, until, closed = 0, 0, False
        while True:
            match = _BETWEEN.match(self._buffer, position)
            position = match.end() if match else position
            if position >= len(self._buffer):
                break
            if self._buffer[position] == 0x5D:
                follows = self._further(position) if self._bad else -1
                if follows >= 0:
                    position = follows
                    continue
                if self._bad and self._ended:
                    position = self._list_end(self._buffer.rfind(b"}", 0, position))
                closed = position < len(self._buffer)
                position += closed
                break
            if position >= until and not alone:
                border = _BORDER.search(self._buffer, position + _PART)
                until = border.start() + 1 if border else len(self._buffer)
                part = self._part(position, until) if border and not self._bad else None
                if part is not None:
                    events += part
                    position = until
                    continue
            found = self._event_at(position)
            if found is None:
                break
            event, end = found
            if event is not None:
                events.append(event)
                self._event_starts.append(position)
            position = end
        self.ended_sound = closed and not (self._bad or self._cut)
        self._advance(position)
        if not closed and not position and not self._ended:
            self._fill(len(self._buffer) + CHUNK)
        if not closed and self._ended and not self._buffer:
            self.truncated = True
        return events, closed

    def _part(self, begin: int, end: int) -> list[Event] | None:
        """The events of a part of the buffer, after repairs; None if one of them cannot be decoded."""
        escaped = with_escapes(self._buffer[begin:end])
        text, position = escaped.text, 0
        pieces: list[bytes] = []
        repairs: list[tuple[int, Repair]] = []
        lost: list[int] = []
        known, known_count = self._repairer.with_known(text)
        if known_count and _syntax_error(known) < 0:
            text = known
        else:
            known_count = 0
        while not known_count and (error := _syntax_error(text[position:])) >= 0:
            start = max(_cut_before(text, position + error, position)[1], position)
            border = _BORDER.search(text, start)
            follows = border.end() if border else len(text)
            repair = self._repaired(text[start:follows])
            if repair is not None and text[start + repair.length : follows].strip(b", \t\r\n"):
                return None
            if repair is None and not self._is_hopeless(text[start:follows]):
                return None
            pieces.append(text[position:start])
            if repair is not None:
                pieces += repair.text, b"," if border else b""
                repairs.append((start, repair))
            elif not border:
                return None
            else:
                lost.append(begin + escaped.original(start))
            position = follows
        text = _utf8(b"".join((b"[", *pieces, text[position:], b"]")))
        try:
            events = self._decode_or_convert(text)
        except (msgspec.DecodeError, RecursionError):
            return None
        if events is None:
            return None
        self._count(begin, escaped, repairs)
        if known_count:
            self.tallies["quotes"].add(self._offset + begin, known_count)
        for position in lost:
            self._leave_out(position, position + _NEAR[0])
        self._bad = False
        return events

    def _decode_or_convert(self, text: bytes) -> list[Event] | None:
        """The events of a list, with values converted that do not fit their fields; None if one of them is none."""
        try:
            return self._decode(text)
        except msgspec.ValidationError:
            converted = [self._converted(bytes(raw)) for raw in _decode_raw(text)]
            events = [event for event in converted if event is not None]
            return events if len(events) == len(converted) else None

    def _event_at(self, position: int) -> tuple[Event | None, int] | None:
        """The event at a position (None: it cannot be decoded), and the position behind it; None: maybe incomplete."""
        size = len(self._buffer)
        scalar = _SCALAR.match(self._buffer, position)
        if scalar and (scalar.end() < size or self._ended):
            self._leave_out(position, position)
            return None, scalar.end()
        border = self._border_at(position)
        found = self._single(position, border) if border - position <= _NEAR[-1] else None
        # a likely border may be within this event
        found = found or self._long_event(position)
        if found is not None:
            return found if found[1] >= 0 else None
        follows = self._likely_at(position + 1)
        if follows == size and not self._ended and size - position < LONGEST_EVENT:
            return None
        # first up to the next event, then what seems to be one may be within this one
        for end in (follows, min(position + _NEAR[0], size)):
            self._repairer.credit -= end - position
            found = self._single(position, end, repair=True) if self._repairer.credit >= 0 else None
            if found is not None:
                return found
        end = follows if follows < size else self._list_end(position)
        # a last event without an end of the list was cut off
        if end < size or not self._ended:
            self._leave_out(position, end)
        self._bad = True
        return None, end

    def _long_event(self, position: int) -> tuple[Event | None, int] | None:
        """As `_event_at`, with no repairs, however long it is; None if there is none, position -1: maybe incomplete."""
        for size in (*_NEAR, LONGEST_EVENT):
            escaped = with_escapes(self._buffer[position : position + size])
            window = escaped.text.decode("utf-8", "surrogateescape")
            self._repairer.credit -= len(window)
            if self._repairer.credit < 0:
                break
            try:
                place, error = first_error(window)
            except RecursionError:
                break
            if not error:
                return self._single(position, position + escaped.original(_length(window[:place])))
            if not error.startswith("Unterminated") and place < len(window) - _NEAR_END:
                break
            if len(self._buffer) - position <= size:
                if not self._ended and len(self._buffer) - position < LONGEST_EVENT:
                    return None, -1
                self._cut = self._cut or self._ended
                break
        return None

    def _single(self, position: int, end: int, *, repair: bool = False) -> tuple[Event | None, int] | None:
        """The event in a text (None: it is none, or the rest of one), and the position behind it; None: undecodable.

        ``repair``: whether to repair more than backslashes; then there may be more behind the event.
        """
        escaped = with_escapes(self._buffer[position:end].rstrip(b", \t\r\n"))
        repairs: list[tuple[int, Repair]] = []
        try:
            event: Event | None = self._decode_one(escaped.text)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            text = escaped.text
            if not repair and _syntax_error(text) >= 0:
                return None
            if repair:
                repaired = self._repaired(text)
                if repaired is None:
                    return None
                repairs.append((0, repaired))
                text, end = repaired.text, position + escaped.original(repaired.length)
            event = self._converted(_utf8(text))
            if event is None:
                self._leave_out(position, end)
                return None, end
        if self._bad and b'"ph"' not in escaped.text:
            return None, end
        self._count(position, escaped, repairs)
        self._bad = False
        return event, end

    def _repaired(self, text: bytes) -> Repair | None:
        """The event at the beginning of a text after repairs; None if it cannot be repaired."""
        try:
            found = self._repairer.repaired(text.decode("utf-8", "surrogateescape"), on_lines=self._on_lines)
        except RecursionError:
            return None
        # a phase is one letter: what makes more of it has mended the wrong place
        return None if found is not None and _LONG_PHASE.search(found.text) else found

    def _is_hopeless(self, text: bytes) -> bool:
        """Whether an event is wrong before its likely end, so that more text does not help."""
        try:
            place, error = first_error(text.decode("utf-8", "surrogateescape"))
        except RecursionError:
            return False
        return bool(error) and not error.startswith("Unterminated") and place < len(text) - _NEAR_END

    def _converted(self, text: bytes) -> Event | None:
        """The struct of an event, with values converted that do not fit their fields; None if it is none."""
        with suppress(msgspec.DecodeError, RecursionError):
            return self._decode_one(text)
        try:
            value, _ = _scan(text.decode(), 0)
        except (json.JSONDecodeError, RecursionError):
            return None
        return self._from_dict(value) if isinstance(value, dict) else None

    def _count(self, position: int, escaped: Escaped, repairs: Sequence[tuple[int, Repair]] = ()) -> None:
        """Counts repairs in a text at a position, each event under one kind; ``repairs``: and where they were made."""
        begin = self._offset + position
        events = list(escaped.events)
        for start, repair in repairs:
            first = escaped.original(start) if events else start
            if repair.words:
                self.tallies["values"].add(begin + first, repair.words)
            if repair.quotes:
                self.tallies["quotes"].add(begin + first)
                if events:
                    last = escaped.original(start + repair.length)
                    events = [event for event in events if not first <= event < last]
            elif repair.backslashes:
                self.tallies["backslashes"].add(begin + first)
            if repair.controls:
                self.tallies["controls"].add(begin + first)
        if events:
            text = self._buffer[position : position + events[0]]
            start = (
                0 if self.tallies["backslashes"] else max((match.end() for match in _BORDER.finditer(text)), default=0)
            )
            self.tallies["backslashes"].add(begin + start, len(events))

    def _leave_out(self, position: int, end: int) -> None:
        """Counts an event that cannot be decoded; what follows one and has no phase is taken as its rest."""
        if not self._bad or b'"ph"' in self._buffer[position:end]:
            self.tallies["malformed"].add(self._offset + position)
        self._bad = True

    def _further(self, position: int) -> int:
        """Position of a further event behind a bracket that may belong to an event that was left out; -1 if none."""
        while (position := self._likely_at(position)) < len(self._buffer):
            if b'"ph"' in self._buffer[position : position + _NEAR_PHASE]:
                return position
            position += 1
        return -1

    def _list_end(self, position: int) -> int:
        """Position of the bracket that ends the list, behind a last event that cannot be decoded; the end without."""
        for match in islice(_LIST_END.finditer(self._buffer, position), _MOST_ENDS):
            rest = self._buffer[match.end() :].strip(b" \t\r\n\0")
            _, end, closed = _members(b"{" + rest.removeprefix(b",")) if self._is_member else ({}, 0, not rest)
            if closed and (not self._is_member or not rest.removeprefix(b",")[end - 1 :].strip()):
                return match.end() - 1
        return len(self._buffer)


def chunks_of(text: bytes, kind: Any, from_dict: Callable[[dict[str, Any]], Any]) -> EventChunks[Any]:
    """Chunks of a text that begins inside the list of events; see `EventChunks`."""
    waiting = [text]
    return EventChunks(lambda _: waiting.pop() if waiting else b"", kind, from_dict)


def _length(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _next(text: bytes, find: Callable[[bytes, int], int]) -> Callable[[int], int]:
    """Finds the next position from one on (the end if none), each once although it is asked for from many before it.

    ``find`` returns -1 if there is none; calls come in ascending order of positions.
    """
    known = -1

    def at(position: int) -> int:
        nonlocal known
        if known < position:
            found = find(text, position)
            known = len(text) if found < 0 else found
        return known

    return at


def _border(text: bytes, position: int) -> int:
    """End of the next object that another one follows; -1 if none."""
    match = _BORDER.search(text, position)
    return match.start() + 1 if match else -1


def _next_event(text: bytes, position: int) -> int:
    """Position of the next likely event: an object that is no value of a key and not first in a list; -1 if none."""
    for match in _NEXT.finditer(text, position):
        if not text[max(match.start() - _NEAR_END, 0) : match.start()].rstrip().endswith((b":", b"[")):
            return match.start()
    return -1


def _cut_before(text: bytes, end: int, begin: int = 0) -> tuple[int, int]:
    """The last likely border between two events before ``end``: end of the one, begin of the next; -1 if none."""
    size, low = _PART, end
    while low > begin:
        low, size = max(end - size, begin), 8 * size
        if matches := list(_BORDER.finditer(text, low, end)):
            return matches[-1].start() + 1, matches[-1].end()
    return -1, -1


def _syntax_error(events: bytes) -> int:
    """Position of the first error in a text of events; below 0 if there is none."""
    try:
        _decode_raw(b"[%b]" % events)
    except msgspec.DecodeError as error:
        place = _POSITION.search(str(error))
        return int(place[1]) - 1 if place else len(events)
    except RecursionError:
        return len(events)
    return -1


def _utf8(text: bytes) -> bytes:
    """A text with ? in place of bytes that are not UTF-8."""
    return text if text.isascii() else text.decode("utf-8", "surrogateescape").encode("utf-8", "replace")


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
