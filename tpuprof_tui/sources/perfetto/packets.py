"""Packets of a trace: messages `TracePacket` one after the other, some of them packed in others."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
from msgspec import Struct

from .wire import I64, DamagedError, Data, Fields, Mask, fields, varint

#: Bytes that are decoded at a time: the arrays of these stay in the cache of a core.
_CHUNK: Final = 1 << 20
#: Longest packet; most bytes that are unpacked of one, and of all, also for each byte of the trace.
_LONGEST, _MOST_UNPACKED, _ALWAYS_UNPACKED, _MOST_RATIO = 64 << 20, 16 << 20, 64 << 20, 100
_TAG: Final = 0x0A
# fields of packets
SNAPSHOT, TIME, SEQUENCE, EVENT, INTERNED, FLAGS, CLEARED, DROPPED = 6, 8, 10, 11, 12, 13, 41, 42
OLD_THREAD, COUNTERS, STAGE, CLOCK, DEFAULTS, DESCRIPTOR = 44, 52, 53, 58, 59, 60
_DEFLATE, PACKED, EVENTS = 50, (50, 133), (EVENT, STAGE, COUNTERS)
#: Fields with numbers, and those that show that a message is a packet.
_NUMBERS: Final = frozenset((3, TIME, SEQUENCE, FLAGS, CLEARED, DROPPED, CLOCK, 79, 87, 98))
_MARKS: Final = frozenset(
    (*EVENTS, *PACKED, TIME, SEQUENCE, FLAGS, 33, 36, CLEARED, DROPPED, 43, OLD_THREAD, DEFAULTS, DESCRIPTOR, 79)
)


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


class Split(Struct):
    """The packets in a text: their begins and ends, what a whole packet more needs, and whether no packet follows."""

    begin: list[int]
    end: list[int]
    needed: int = 0
    damaged: bool = False

    @classmethod
    def of(cls, data: bytes) -> Split:
        """The packets of a text that begins with one."""
        found, at, size = cls([], []), 0, len(data)
        add_begin, add_end = found.begin.append, found.end.append
        try:
            while at < size:
                if data[at] != _TAG:
                    raise DamagedError
                length, begin = data[at + 1], at + 2
                if length > 127:
                    # most have two bytes
                    length, begin = length + (data[begin] - 1 << 7), begin + 1
                    if data[begin - 1] > 127:
                        length, begin = varint(data, at + 1)
                end = begin + length
                if end > size:
                    found.needed, found.damaged = end - at, length > _LONGEST
                    break
                add_begin(begin)
                add_end(end)
                at = end
        except IndexError:
            found.needed, found.damaged = size - at + 1, data[at] != _TAG
        except DamagedError:
            found.damaged = True
        return found


class Packets:
    """The packets of a trace, a piece at a time.

    Args:
        read: Returns at most the given number of bytes; none at the end.

    Attributes:
        offset: Offset behind the last piece.
        fault: Why the rest cannot be read; empty: it can.
        left: Bytes that may still be unpacked of packets.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read, self.left, self.offset, self.fault = read, _ALWAYS_UNPACKED, 0, ""

    def __iter__(self) -> Iterator[tuple[bytes, Split]]:
        data, at_end, wanted = b"", False, _CHUNK
        while not at_end and not self.fault:
            parts, length = [data], len(data)
            while length < wanted and (more := self._read(_CHUNK)):
                parts.append(more)
                length += len(more)
            self.left += _MOST_RATIO * (length - len(data))
            at_end, data = length < wanted, b"".join(parts)
            found = Split.of(data)
            end = found.end[-1] if found.end else 0
            self.fault = "goes on with what is no packet" if found.damaged else ""
            if end:
                yield data[:end], found
            self.offset += end
            data, wanted = data[end:], max(_CHUNK, found.needed)
        self.fault = self.fault or ("ends within a packet" if data else "")


class Piece:
    """Some packets, and those that are packed in them behind each.

    Args:
        raw, split: Their bytes, and where each begins and ends.
        first: Number of the first one.
        left: Bytes that may be unpacked.

    Attributes:
        data, fields: Their bytes and fields.
        damaged: Those that cannot be decoded.
        broken, too_long, zstd: Numbers of packets with packed ones that cannot be unpacked, that hold more than are
            read, and that no installed package unpacks.
    """

    def __init__(self, raw: bytes, split: Split, first: int, left: int) -> None:
        self.first, self.left = first, left
        self.broken = self.too_long = self.zstd = 0
        self.begin, self.end = np.array(split.begin, np.int64), np.array(split.end, np.int64)
        self._decode(raw)
        packed = self.fields.of(*PACKED)
        packed = packed[(packed.at >= 0) & ~self.damaged[packed.owner]]
        if len(packed.owner):
            self._decode(self._with_packed(raw, packed))

    def __len__(self) -> int:
        return len(self.begin)

    def mark_damaged(self, numbers: Iterable[int]) -> None:
        """Marks packets, by their numbers in the trace."""
        places = [number - self.first for number in numbers]
        self.damaged[[place for place in places if 0 <= place < len(self)]] = True

    def _decode(self, raw: bytes) -> None:
        self.data = Data(raw)
        self.fields: Fields
        self.damaged: Mask
        self.fields, self.damaged = self.data.fields(self.begin, self.end)
        self.damaged[self.fields.of_other_types(
            (TIME, SEQUENCE, FLAGS, CLEARED, DROPPED, CLOCK),
            (SNAPSHOT, EVENT, INTERNED, OLD_THREAD, COUNTERS, STAGE, DEFAULTS, DESCRIPTOR),
        )] = True  # fmt: skip

    def _with_packed(self, raw: bytes, packed: Fields) -> bytes:
        """The bytes with those of packed packets behind them, whose places are put behind the packets they are in."""
        parts, size, at = [raw], len(raw), 0
        begin: list[I64] = []
        end: list[I64] = []
        for owner, number, data in zip(packed.owner.tolist(), packed.number.tolist(), self.data.texts(packed),
                                       strict=True):  # fmt: skip
            inner = self._unpacked(number, data)
            found = Split.of(inner)
            self.broken += found.damaged
            # those that hold packed ones again are left out
            places = np.array([found.begin, found.end], np.int64)
            again, _ = Data(inner).fields(*places)
            twice = np.zeros(places.shape[1], np.bool_)
            twice[again.of(*PACKED).owner] = True
            self.broken += int(twice.sum())
            begin += [self.begin[at : owner + 1], places[0][~twice] + size]
            end += [self.end[at : owner + 1], places[1][~twice] + size]
            parts.append(inner)
            size, at = size + len(inner), max(owner + 1, at)
        self.begin, self.end = np.concatenate([*begin, self.begin[at:]]), np.concatenate([*end, self.end[at:]])
        return b"".join(parts)

    def _unpacked(self, number: int, data: bytes) -> bytes:
        most = min(_MOST_UNPACKED, self.left)
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
            self.broken += 1
            return b""
        self.left -= len(found)
        self.too_long += len(found) > most
        return found[:most]
