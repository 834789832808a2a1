"""Tree of tracks, one packet sequence per track (descriptors, defaults, interned texts); events that overlap."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.errors import requires_package
from tpuprof_tui.model.sublanes import nested, packed
from tpuprof_tui.model.uniques import distinct_together, uniques

from ..escape import utf8_text
from .wire import U8, Piece, Pieces, fixed64_field, interleaved, message_field, messages, varint_field

#: Field numbers of the messages that are written in bulk.
TRACE_PACKET: Final = 1
TIMESTAMP, SEQUENCE, TRACK_EVENT, SEQUENCE_FLAGS = 8, 10, 11, 13
EVENT_CATEGORY, EVENT_ANNOTATION, EVENT_TYPE, EVENT_NAME = 3, 4, 9, 10
EVENT_DOUBLE, EVENT_FLOW, EVENT_FLOW_END = 44, 47, 48
NOTE_NAME, NOTE_INT, NOTE_DOUBLE, NOTE_ENTRY, NOTE_TEXT = 1, 4, 5, 11, 17
SLICE_BEGIN, SLICE_END, COUNTER = 1, 2, 4
_CLEARED: Final = 1
_NEEDS_STATE: Final = 2
_PROGRESS_SECONDS: Final = 0.1

#: Tables of interned texts: fields of InternedData, and the field of their entries that holds the text.
EVENT_NAMES, CATEGORIES, NOTE_NAMES, NOTE_TEXTS = range(4)
_TABLES: Final = (
    ("event_names", "name"),
    ("event_categories", "name"),
    ("debug_annotation_names", "name"),
    ("debug_annotation_string_values", "str"),
)

Codes = npt.NDArray[Any]
Iids = npt.NDArray[np.int64]
#: Indices of messages of one shape among all messages (None: all), and the messages.
Shaped = tuple[npt.NDArray[np.intp] | None, U8]


class Track(Struct, frozen=True):
    """A track."""

    name: str
    parent: Track | None = None  #: Parent track; None for the root
    rank: int | None = None  #: Sort rank among its siblings; None: not written
    ordered: bool = False  #: Whether its children are ordered by rank
    counter: bool = False  #: Whether it is a counter track
    unit: str = ""  #: Unit of the samples; empty: not written
    description: str = ""  #: Description for the user; may be empty

    @property
    def path(self) -> str:
        """Names from the root to the track, joined by NUL; unique within a trace."""
        return self.name if self.parent is None else f"{self.parent.path}\0{self.name}"

    @property
    def uuid(self) -> int:
        """63-bit hash of the path: the same capture always gives the same file."""
        digest = hashlib.blake2b(self.path.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "little") >> 1 | 1

    def overflow(self, number: int) -> Track:
        """Sibling track for overlapping events, ``number`` 2, 3, ..."""
        return Track(f"{self.name} #{number}", self.parent)


class PacketSequence:
    """Packets of one track: the first packet holds the defaults; texts are interned before their first use."""

    def __init__(self, number: int, track: Track) -> None:
        self._number = number
        self._track = track
        self._iids: tuple[dict[str, int], ...] = ({}, {}, {}, {})
        self._ids_by_code: dict[tuple[int, str], npt.NDArray[np.int64]] = {}
        self._unwritten: list[tuple[int, int, str]] = []
        self._started = False

    def iid(self, table: int, text: str) -> int:
        """Id of a text in a table of interned texts, assigned on first use."""
        ids = self._iids[table]
        number = ids.get(text)
        if number is None:
            number = ids[text] = len(ids) + 1
            self._unwritten.append((table, number, text))
        return number

    def iids(self, table: int, key: str, texts: Sequence[str], codes: Codes, missing: str = "") -> Iids:
        """Ids of the texts of an array of codes, int64; codes outside ``texts`` give the id of ``missing``.

        Ids are cached by ``key``, which must always be passed with the same ``texts``.
        """
        ids = self._ids_by_code.get((table, key))
        if ids is None:
            ids = self._ids_by_code[table, key] = np.zeros(len(texts) + 1, dtype=np.int64)
        # the last entry is for codes without a text
        indices = np.where((codes >= 0) & (codes < len(texts)), codes, len(texts))
        found = ids[indices]
        if not found.all():
            for index in uniques(indices[found == 0]).tolist():
                ids[index] = self.iid(table, texts[index] if index < len(texts) else missing)
            found = ids[indices]
        return found

    def preamble(self) -> bytes:
        """Packet with the defaults and texts that packets encoded since the last preamble need; empty if none."""
        if self._started and not self._unwritten:
            return b""
        trace = _protos().Trace()
        packet = trace.packet.add()
        packet.trusted_packet_sequence_id = self._number
        packet.sequence_flags = _NEEDS_STATE if self._started else _CLEARED | _NEEDS_STATE
        if not self._started:
            packet.trace_packet_defaults.track_event_defaults.track_uuid = self._track.uuid
        for table, number, text in self._unwritten:
            name, field = _TABLES[table]
            entry = getattr(packet.interned_data, name).add()
            entry.iid = number
            setattr(entry, field, utf8_text(text) if field == "name" else utf8_text(text).encode())
        self._started = True
        self._unwritten.clear()
        data: bytes = trace.SerializeToString()
        return data

    def packet(self, times: npt.NDArray[np.int64], event: Pieces) -> Pieces:
        """Packets with one track event each; ``times``: ns, one per packet, not negative."""
        body = [
            *varint_field(TIMESTAMP, times),
            *varint_field(SEQUENCE, self._number),
            *varint_field(SEQUENCE_FLAGS, _NEEDS_STATE),
            *message_field(TRACK_EVENT, event),
        ]
        return message_field(TRACE_PACKET, body)

    def annotation(self, name: str, value: Pieces) -> Pieces:
        """A debug annotation of an event: its name and the encoded field with its value."""
        key = varint_field(NOTE_NAME, self.iid(NOTE_NAMES, name))
        return message_field(EVENT_ANNOTATION, [*key, *value])

    def slices(self, start: Iids, end: Iids, begin: Pieces, at_end: Sequence[Piece] = ()) -> U8:
        """Begin and end packets of slices that do not overlap, a row for each.

        Args:
            start, end: ns, not negative.
            begin, at_end: Fields of the begin and the end event, without their type.
        """
        packets = [
            *self.packet(start, [*varint_field(EVENT_TYPE, SLICE_BEGIN), *begin]),
            *self.packet(end, [*varint_field(EVENT_TYPE, SLICE_END), *at_end]),
        ]
        return messages(packets, len(start))

    def encoded(self, parts: Sequence[Shaped], count: int) -> bytes:
        """Encodes ``count`` packets of several shapes in order, preceded by the preamble with the texts they use."""
        body = interleaved(parts, count).tobytes()
        return self.preamble() + body

    def samples(
        self, times: npt.NDArray[np.int64], values: npt.NDArray[np.float64], base_ns: int, size: int
    ) -> Iterator[bytes]:
        """Yields the encoded samples of a counter, at most ``size`` per chunk.

        ``base_ns`` is added to ``times``, ns; negative results become 0.
        """
        for first in range(0, len(times), size):
            some = slice(first, first + size)
            event = [*varint_field(EVENT_TYPE, COUNTER), *fixed64_field(EVENT_DOUBLE, values[some])]
            packets = self.packet(np.maximum(times[some] + base_ns, 0), event)
            yield self.preamble() + messages(packets, len(times[some])).tobytes()


class TraceFile:
    """A trace that is written: descriptors of its tracks, their sequences, and how much is done."""

    def __init__(self, sink: IO[bytes], progress: Callable[[float], None], work: int) -> None:
        """``progress``: called with the share of ``work`` that is done, at most ten times a second and at the end."""
        self._sink, self._progress, self._work = sink, progress, max(work, 1)
        self._done = self._sequences = 0
        self._last_report = time.monotonic()
        self.written = 0  #: Bytes

    def put(self, data: bytes, work: int = 0) -> None:
        """Writes packets, which were so much of the work."""
        self._sink.write(data)
        self.written += len(data)
        self._done += work
        now = time.monotonic()
        if now - self._last_report >= _PROGRESS_SECONDS:
            self._last_report = now
            self._progress(min(self._done / self._work, 1.0))

    def sequence(self, track: Track) -> PacketSequence:
        """Writes the descriptor of a track; returns its sequence."""
        self.put(descriptor(track))
        self._sequences += 1
        return PacketSequence(self._sequences, track)

    def close(self) -> None:
        """Writes what a trace without tracks needs, and reports the end."""
        if not self._sequences:
            self.put(descriptor(NOTHING))
        self._progress(1.0)


class Flows:
    """Flow ids of the rows of a lane, in one direction: outgoing or incoming."""

    def __init__(self, rows: Iids, numbers: Iids, count: int) -> None:
        """Groups flows by row.

        Args:
            rows: Row of each flow, in any order.
            numbers: Id of each flow.
            count: Number of rows of the lane.
        """
        self._numbers = numbers[np.argsort(rows, kind="stable")].astype(np.uint64)
        #: Number of flows of each row.
        self.counts = np.bincount(rows, minlength=count).astype(np.int64)
        self._first = np.cumsum(self.counts) - self.counts

    def fields(self, field: int, rows: Iids, count: int) -> Pieces:
        """Encoded flow id fields of rows that have ``count`` flows each."""
        return [piece for index in range(count)
                for piece in fixed64_field(field, self._numbers[self._first[rows] + index])]  # fmt: skip


def by_shape(columns: Sequence[Codes]) -> Iterator[tuple[list[int], npt.NDArray[np.intp]]]:
    """Groups rows by equal values of integer columns; yields the values and the ascending row indices of each group.

    Messages of one group have the same shape (fields and length), so that they can be encoded together.
    """
    codes = np.zeros(len(columns[0]), np.int64)
    size = 1
    for column in columns:
        low, high = int(column.min(initial=0)), int(column.max(initial=0))
        if size * (high - low + 1) >= 1 << 62:
            codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
            size = len(codes)
        codes, size = codes * (high - low + 1) + (column - low), size * (high - low + 1)
    distinct, first = np.unique(codes, return_index=True)
    for code, row in zip(distinct.tolist(), first.tolist(), strict=True):
        yield [int(column[row]) for column in columns], np.flatnonzero(codes == code)


#: The only track of a trace without events: Perfetto rejects an empty file.
NOTHING: Final = Track("Nothing was recorded with times")


def descriptor(track: Track) -> bytes:
    """Encoded packet with the descriptor of a track."""
    trace = _protos().Trace()
    found = trace.packet.add().track_descriptor
    found.uuid = track.uuid
    found.name = utf8_text(track.name)
    if track.parent is not None:
        found.parent_uuid = track.parent.uuid
    if track.ordered:
        found.child_ordering = found.EXPLICIT
    if track.rank is not None:
        found.sibling_order_rank = track.rank
    if track.description:
        found.description = utf8_text(track.description)
    if track.counter:
        found.counter.SetInParent()
        if track.unit:
            found.counter.unit_name = track.unit
    data: bytes = trace.SerializeToString()
    return data


def _protos() -> Any:
    with requires_package("The Perfetto trace"):
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2

    return perfetto_trace_pb2


#: Most slices within one another on a track: Perfetto shows deeper ones without their durations.
MOST_DEPTH: Final = 511

I64 = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]


def first_free_lanes(start: I64, end: I64) -> list[Places] | None:
    """Assigns each slice to the first lane that is free at its start; slices are ordered by (start, end).

    Returns:
        Ascending indices of the slices of each lane; None if one lane is enough.
    """
    lines = packed(start, end)
    return None if lines is None else _by_number(lines)


def by_time(start: I64, end: I64) -> Places | None:
    """Indices of a stable sort by (start, end); None if already sorted."""
    before, after = start[:-1], start[1:]
    if bool((after > before).all()):
        return None
    if not bool(((after < before) | ((after == before) & (end[1:] < end[:-1]))).any()):
        return None
    return np.lexsort((end, start))


def nested_tracks(
    start: I64, end: I64, thread: npt.NDArray[Any] | None = None
) -> list[tuple[Places, npt.NDArray[np.bool_]]]:
    """Assigns nested slices to tracks: one per thread, more where slices of a thread partially overlap or are deep.

    Args:
        start, end: ns.
        thread: Thread of each slice; slices of different threads never share a track.

    Returns:
        For each track the indices of its slices in the order of their begin and end events, and a mask of the begin
        events. Each end event belongs to the innermost open slice.
    """
    threads = np.zeros(len(start), np.int64) if thread is None else thread
    order = np.lexsort((-end, start))
    start, end = start[order], end[order]
    depths, tracks = nested(start, end, threads[order])
    levels, depths = np.divmod(depths, MOST_DEPTH)
    if levels.any():
        tracks, _ = distinct_together(levels, tracks)
    return [_steps(order[rows], start[rows], end[rows], depths[rows]) for rows in _by_number(tracks)]


def _steps(places: Places, start: I64, end: I64, depth: I64) -> tuple[Places, npt.NDArray[np.bool_]]:
    """Begin and end events of the slices of one track, which are ordered by start."""
    row = np.arange(len(places))
    # before slice ``row`` begins there are ``row`` begins, and ends of all these except the ``depth`` enclosing slices
    begins = 2 * row - depth
    # a slice ends after its descendants and before the next slice, at index ``next_row``, begins
    next_row = np.maximum(np.searchsorted(start, end, side="left"), row + 1)
    steps = np.zeros(2 * len(places), np.intp)
    is_begin = np.zeros(2 * len(places), np.bool_)
    steps[begins], steps[2 * next_row - 1 - depth] = places, places
    is_begin[begins] = True
    return steps, is_begin


def _by_number(numbers: I64) -> list[Places]:
    """Ascending indices of each distinct number; numbers are 0 to n-1 without gaps."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.cumsum(np.bincount(numbers))[:-1]) if len(numbers) else []
