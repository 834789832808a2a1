"""Packets of a trace: messages `TracePacket` one after the other, some of them packed in others."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct, field

from .wire import DamagedError, Field, fields, varint

_CHUNK: Final = 1 << 20
#: Longest packet; most bytes that are unpacked of one, and of all, also for each byte of the trace.
_LONGEST, _MOST_UNPACKED, _ALWAYS_UNPACKED, _MOST_RATIO = 64 << 20, 16 << 20, 64 << 20, 100
#: Packets of up to so many bytes behind their time are kept decoded, as many of them: ends of slices are all alike.
_SHORT, _MOST_KEPT = 48, 1 << 14
_TAG, _TIME_TAG = b"\n", b"\x40"
# fields of packets
PROCESSES, SNAPSHOT, TIME, SEQUENCE, EVENT, INTERNED, FLAGS = 2, 6, 8, 10, 11, 12, 13
CLEARED, DROPPED, THREAD, COUNTERS, STAGE, CLOCK, DEFAULTS, DESCRIPTOR = 41, 42, 44, 52, 53, 58, 59, 60
_DEFLATE, _ZSTD = 50, 133
#: Fields with numbers, and those that show that a message is a packet.
_NUMBERS: Final = frozenset((3, TIME, SEQUENCE, FLAGS, CLEARED, DROPPED, CLOCK, 79, 87, 98))
_MARKS: Final = frozenset((TIME, SEQUENCE, EVENT, FLAGS, 33, 36, CLEARED, DROPPED, 43, THREAD, COUNTERS, STAGE,
                           DEFAULTS, DESCRIPTOR, 79))  # fmt: skip


class Packet(Struct):
    """A packet: its time in units of a clock (0: it comes first, or is missing), the event in it, all other fields.

    ``kind``: field of the event: ``EVENT``, ``STAGE`` or ``COUNTERS``; 0: there is none.
    """

    time: int = 0
    sequence: int = 0
    flags: int = 0
    clock: int = 0
    kind: int = 0
    event: list[Field] = field(default_factory=list)
    others: list[Field] = field(default_factory=list)


def packet_of(data: bytes) -> Packet:
    """Decodes a packet.

    Raises:
        DamagedError: It is none.
    """
    found = Packet()
    for entry in fields(data):
        key, value = entry
        if key == SEQUENCE:
            found.sequence = value
        elif key == FLAGS:
            found.flags = value
        elif key in (EVENT, STAGE, COUNTERS):
            found.kind, found.event = key, fields(value)
        elif key == TIME:
            found.time = value
        elif key == CLOCK:
            found.clock = value
        else:
            found.others.append(entry)
    return found


def is_perfetto(head: bytes) -> bool:
    """Whether a text begins with packets of a Perfetto trace; ``head``: its first bytes."""
    try:
        length, begin = varint(head, 1)
        found = fields(head[begin : begin + length], cut=begin + length > len(head))
    except (DamagedError, IndexError):
        return False
    kinds = all(isinstance(value, int) is (number in _NUMBERS) and number < 1000 for number, value in found)
    behind = head[begin + length : begin + length + 1]
    return head[:1] == _TAG and kinds and not _MARKS.isdisjoint(dict(found)) and behind in (b"", _TAG)


class Packets:
    """The packets of a trace, with their times.

    Args:
        read: Returns at most the given number of bytes; none at the end.

    Attributes:
        offset: Offset behind the last packet.
        fault: Why the rest cannot be read; empty: it can.
        damaged, too_long, zstd: Numbers of packets that cannot be decoded, that hold more packed ones than are read,
            and that no installed package unpacks.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read, self._left = read, _ALWAYS_UNPACKED
        self.offset = self.damaged = self.too_long = self.zstd = self._needed = 0
        self.fault = ""
        self._kept: dict[bytes, Packet] = {}

    def __iter__(self) -> Iterator[tuple[int, Packet]]:
        data, at_end = b"", False
        while not at_end and not self.fault:
            parts, length = [data], len(data)
            while length < max(self._needed, _CHUNK) and (more := self._read(_CHUNK)):
                parts.append(more)
                length += len(more)
            at_end = length < max(self._needed, _CHUNK)
            data, before = b"".join(parts), self.offset
            self._left += _MOST_RATIO * length
            yield from self._split(data, packed=False)
            data = data[self.offset - before :]
        self.fault = self.fault or ("ends within a packet" if data else "")

    def _split(self, data: bytes, *, packed: bool) -> Iterator[tuple[int, Packet]]:
        at, size = 0, len(data)
        try:
            while at < size:
                length, begin = varint(data, at + 1)
                end = begin + length
                if data[at : at + 1] != _TAG or length > _LONGEST:
                    raise DamagedError
                if end > size:
                    break
                self.offset += 0 if packed else end - at
                at = end
                try:
                    timed = self._packet(data[begin:end])
                except (DamagedError, IndexError, TypeError):
                    self.damaged += 1
                    continue
                inner = [] if packed else [each for each in timed[1].others if each[0] in (_DEFLATE, _ZSTD)]
                if inner:
                    yield from self._split(self._unpacked(*inner[0]), packed=True)
                else:
                    yield timed
        except IndexError:
            end = size + 1
        except DamagedError:
            self.damaged += packed
            self.fault = self.fault if packed else "goes on with what is no packet"
        self._needed = 0 if at == size else end - at

    def _packet(self, data: bytes) -> tuple[int, Packet]:
        if data[:1] != _TIME_TAG:
            packet = packet_of(data)
            return packet.time, packet
        time, at = varint(data, 1)
        packet = self._kept.get(data[at:]) or packet_of(data[at:])
        if len(data) - at <= _SHORT and len(self._kept) < _MOST_KEPT and not packet.time:
            self._kept[data[at:]] = packet
        return packet.time or time, packet

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
