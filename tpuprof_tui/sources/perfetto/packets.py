"""Packets of a trace, a chunk at a time: messages `TracePacket` one after the other, some packed in others."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct, field

from .wire import DamagedError, Field, fields, varint

_CHUNK: Final = 1 << 20
_LONGEST: Final = 64 << 20
#: Most bytes that are unpacked of one packet, and of all, also for each byte of the trace.
_MOST_UNPACKED: Final = 16 << 20
_ALWAYS_UNPACKED, _MOST_RATIO = 64 << 20, 100
#: Packets of up to so many bytes behind their time are kept decoded, as many of them: ends of slices are all alike.
_SHORT, _MOST_KEPT = 48, 1 << 14
_TAG, _TIME_TAG = 0x0A, 0x40
# fields of packets
PROCESSES, SNAPSHOT, TIME, SEQUENCE, EVENT, INTERNED, FLAGS = 2, 6, 8, 10, 11, 12, 13
CLEARED, DROPPED, PROCESS, THREAD, COUNTERS, STAGE, CLOCK, DEFAULTS, DESCRIPTOR = 41, 42, 43, 44, 52, 53, 58, 59, 60
_DEFLATE, _ZSTD = 50, 133
#: Fields with numbers, and those that show that a message is a packet.
_NUMBERS: Final = frozenset((3, TIME, SEQUENCE, FLAGS, CLEARED, DROPPED, CLOCK, 79, 87, 98))
_MARKS: Final = frozenset((TIME, SEQUENCE, EVENT, FLAGS, 33, 36, *range(CLEARED, 45), *range(COUNTERS, 54), 59, 60, 79))


class Packet(Struct):
    """A packet.

    Attributes:
        time, sequence, flags, clock: Its time, unless that comes first, in units of a clock; numbers; 0: none.
        kind: Field of the event in it: ``EVENT``, ``STAGE``, ``COUNTERS``; 0: none.
        event: The fields of the event.
        others: All other fields.
    """

    time: int = 0
    sequence: int = 0
    flags: int = 0
    clock: int = 0
    kind: int = 0
    event: list[Field] = field(default_factory=list)
    others: list[Field] = field(default_factory=list)


#: Time and packet: packets that differ in their times alone may be one.
Timed = tuple[int, Packet]


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
        packet, behind = head[begin : begin + length], head[begin + length : begin + length + 1]
        at = 0
        # of a packet that is longer than the head only the fields before its end
        while at < len(packet) < length:
            tag, end = varint(packet, at)
            value, end = varint(packet, end)
            end += value if tag & 7 == 2 else 0
            if end > len(packet):
                packet = packet[:at]
            at = end
        found = fields(packet)
    except (DamagedError, IndexError):
        return False
    kinds = all(isinstance(value, int) is (number in _NUMBERS) and number < 1000 for number, value in found)
    return head[0] == _TAG and kinds and not _MARKS.isdisjoint(dict(found)) and behind in (b"", b"\n")


class Packets:
    """The packets of a trace.

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
        self.offset = self.damaged = self.too_long = self.zstd = 0
        self.fault = ""
        self._kept: dict[bytes, Packet] = {}

    def __iter__(self) -> Iterator[list[Timed]]:
        """The packets of a chunk of bytes after the other."""
        data, wanted = b"", _CHUNK
        while True:
            parts, length = [data], len(data)
            while length < wanted and (more := self._read(wanted - length)):
                parts.append(more)
                length += len(more)
            at_end, data = length < wanted, b"".join(parts)
            packets, behind, needed = self._split(data)
            self.offset += behind
            data, wanted = data[behind:], max(needed, _CHUNK)
            yield packets
            if at_end or self.fault:
                self.fault = self.fault or ("ends within a packet" if data else "")
                return

    def _split(self, data: bytes, *, packed: bool = False) -> tuple[list[Timed], int, int]:
        """The whole packets in some bytes, the offset behind them, and bytes that the next one needs."""
        found: list[Timed] = []
        at, size = 0, len(data)
        self._left += 0 if packed else _MOST_RATIO * size
        try:
            while at < size:
                length, begin = varint(data, at + 1)
                end = begin + length
                if data[at] != _TAG or length > _LONGEST:
                    raise DamagedError
                if end > size:
                    return found, at, end - at
                at = end
                try:
                    timed = self._packet(data, begin, end)
                except DamagedError:
                    self.damaged += 1
                    continue
                inner = [] if packed else [each for each in timed[1].others if each[0] in (_DEFLATE, _ZSTD)]
                found += self._split(self._unpacked(*inner[0]), packed=True)[0] if inner else (timed,)
        except IndexError:
            pass
        except DamagedError:
            if packed:
                self.damaged += 1
            else:
                self.fault = "goes on with what is no packet"
        return found, at, size - at + 1

    def _packet(self, data: bytes, begin: int, end: int) -> Timed:
        if end - begin < 2 or data[begin] != _TIME_TAG:
            packet = packet_of(data[begin:end])
            return packet.time, packet
        time, at = varint(data, begin + 1)
        rest = data[at:end]
        kept = self._kept.get(rest)
        if kept is not None:
            return time, kept
        packet = packet_of(rest)
        if len(rest) <= _SHORT and len(self._kept) < _MOST_KEPT and not packet.time:
            self._kept[rest] = packet
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
