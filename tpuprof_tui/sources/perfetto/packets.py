"""Packets of a trace: messages `TracePacket` one after the other, some of them packed in others."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from .wire import DamagedError, fields, varint

_CHUNK: Final = 1 << 20
#: Longest packet; most bytes that are unpacked of one, and of all, also for each byte of the trace.
_LONGEST, _MOST_UNPACKED, _ALWAYS_UNPACKED, _MOST_RATIO = 64 << 20, 16 << 20, 64 << 20, 100
#: Packets of up to so many bytes behind their time are kept decoded, as many of them: ends of slices are all alike.
_SHORT, _MOST_KEPT = 48, 1 << 14
_TAG, _TIME_TAG = 0x0A, 0x40
# fields of packets
SNAPSHOT, TIME, SEQUENCE, EVENT, INTERNED, FLAGS, CLEARED, DROPPED = 6, 8, 10, 11, 12, 13, 41, 42
OLD_THREAD, COUNTERS, STAGE, CLOCK, DEFAULTS, DESCRIPTOR = 44, 52, 53, 58, 59, 60
_DEFLATE, PACKED, EVENTS = 50, (50, 133), (EVENT, STAGE, COUNTERS)
#: Fields with numbers, and those that show that a message is a packet.
_NUMBERS: Final = frozenset((3, TIME, SEQUENCE, FLAGS, CLEARED, DROPPED, CLOCK, 79, 87, 98))
_MARKS: Final = frozenset(
    (*EVENTS, *PACKED, TIME, SEQUENCE, FLAGS, 33, 36, CLEARED, DROPPED, 43, OLD_THREAD, DEFAULTS, DESCRIPTOR, 79)
)
#: Time of a packet in units of a clock, and its other fields; of events their fields.
Packet = tuple[int, list[tuple[int, Any]]]


def is_perfetto(head: bytes) -> bool:
    """Whether a text begins with packets of a Perfetto trace; ``head``: its first bytes."""
    try:
        length, begin = varint(head, 1)
        found = fields(head[begin : begin + length], cut=begin + length > len(head))
    except (DamagedError, IndexError):
        return False
    kinds = all(isinstance(value, int) is (number in _NUMBERS) and number < 1000 for number, value in found)
    behind = head[begin + length : begin + length + 1]
    return head[0] == _TAG and kinds and not _MARKS.isdisjoint(dict(found)) and behind in (b"", b"\n")


class Packets:
    """The packets of a trace, decoded as they are asked for.

    Args:
        read: Returns at most the given number of bytes; none at the end.

    Attributes:
        offset: Offset behind the last packet.
        fault: Why the rest cannot be read; empty: it can.
        damaged, too_long, zstd: Numbers of packets that cannot be decoded, that hold more packed ones than are read,
            and that no installed package unpacks.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read, self._left, self._needed = read, _ALWAYS_UNPACKED, 0
        self.offset = self.damaged = self.too_long = self.zstd = 0
        self.fault, self._inside, self._kept = "", False, dict[bytes, list[tuple[int, Any]]]()

    def __iter__(self) -> Iterator[Packet]:
        data, at_end = b"", False
        while not at_end and not self.fault:
            parts, length = [data], len(data)
            while length < max(self._needed, _CHUNK) and (more := self._read(_CHUNK)):
                parts.append(more)
                length += len(more)
            at_end = length < max(self._needed, _CHUNK)
            data, before = b"".join(parts), self.offset
            self._left += _MOST_RATIO * length
            yield from self._split(data)
            data = data[self.offset - before :]
        self.fault = self.fault or ("ends within a packet" if data else "")

    def packed(self, number: int, data: bytes) -> Iterator[Packet]:
        """The packets that are packed in a field of one; none of one that is packed itself."""
        self.damaged += self._inside
        if not self._inside:
            self._inside = True
            yield from self._split(self._unpacked(number, data))
            self._inside = False

    def _split(self, data: bytes) -> Iterator[Packet]:
        at, end, size = 0, 0, len(data)
        try:
            while at < size:
                length, begin = data[at + 1], at + 2
                if length > 127:
                    length, begin = varint(data, at + 1)
                if data[at] != _TAG or length > _LONGEST:
                    raise DamagedError
                end = begin + length
                if end > size:
                    break
                self.offset += 0 if self._inside else end - at
                at = end
                try:
                    packet = self._packet(data, begin, end)
                except (DamagedError, IndexError, TypeError):
                    self.damaged += 1
                    continue
                yield packet
        except IndexError:
            end = size + 1
        except DamagedError:
            self.damaged += self._inside
            self.fault = self.fault if self._inside else "goes on with what is no packet"
        if not self._inside:
            self._needed = end - at

    def _packet(self, data: bytes, begin: int, end: int) -> Packet:
        time, at = varint(data, begin + 1) if begin < end and data[begin] == _TIME_TAG else (0, begin)
        rest = data[at:end]
        found = self._kept.get(rest)
        if found is None:
            found = [(key, fields(value) if key in EVENTS else value) for key, value in fields(rest)]
            if at == begin:
                time = dict(found).get(TIME, 0)
            elif len(rest) <= _SHORT and len(self._kept) < _MOST_KEPT:
                self._kept[rest] = found
        return time, found

    def _unpacked(self, number: int, data: bytes) -> bytes:
        most = min(_MOST_UNPACKED, self._left)
        try:
            if number == _DEFLATE:
                found = zlib.decompressobj().decompress(data, most + 1)
            else:
                import zstandard

                with zstandard.ZstdDecompressor().stream_reader(data) as stream:
                    found = stream.read(most + 1)
        except ImportError:
            self.zstd += 1
            return b""
        except Exception:  # those of zlib and zstandard are of no common kind
            self.damaged += 1
            return b""
        self._left -= len(found)
        self.too_long += len(found) > most
        return found[:most]
