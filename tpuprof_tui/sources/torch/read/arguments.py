"""Events as they are decoded, and their arguments: at once as columns, or from the file again on demand."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.formats.decimals import wholes
from tpuprof_tui.sources.chrome.chunks import chunks_of
from tpuprof_tui.sources.chrome.collector import FLOW, Metadata, Phases, Sample, complete_events, event, state_of
from tpuprof_tui.sources.chrome.columns import ANY, FLOAT, I64, INTEGER, JSON, NULL, TEXT, ArgumentColumns, Cast, Codes
from tpuprof_tui.sources.chrome.inflate import GzipText, RestartPoint, text_of

#: Bytes of an element by the type that PyTorch names in the arguments of collectives.
ELEMENT_BYTES: Final = {
    name: size for size, names in {
        1: "Byte Char Bool QInt8 QUInt8 Float8_e5m2 Float8_e4m3fn Float8_e5m2fnuz Float8_e4m3fnuz Float8_e8m0fnu",
        2: "Short Half BFloat16 UInt16", 4: "Int Float ComplexHalf QInt32 UInt32", 8: "Long Double ComplexFloat UInt64",
        16: "ComplexDouble",
    }.items() for name in names.split()
}  # fmt: skip

_ID: Final = Cast(lambda values, texts, _: np.array(
    [-1 if value is None else texts[str(value)] for value in values], np.int32))  # fmt: skip
_COUNT: Final = Cast(lambda values, texts, _: np.array([texts[str(value)] for value in values], np.int32))
_GIVEN: Final = Cast(lambda values, *_: np.array([value is not None for value in values], np.bool_))
_ELEMENT: Final = Cast(lambda values, *_: wholes(
    [ELEMENT_BYTES.get(value) if isinstance(value, str) else None for value in values]))  # fmt: skip

#: Arguments of device work; others of all complete events: ids, and what identifies a collective.
WORK: Final = ArgumentColumns(
    {"external": (INTEGER, "External id", "external id"),
     "correlation": (INTEGER, "correlation", "correlation_id", "corr_id"), "comms": (ANY, "Comms Id"),
     "sequence": (ANY, "Seq"), "group": (ANY, "Process Group Name"), "ranks": (JSON, "Process Group Ranks")},
    device=(_ID, "device"), stream=(_ID, "stream"), grid=(JSON, "grid"), block=(JSON, "block"),
    registers=(_COUNT, "registers per thread"), shared_memory=(_COUNT, "shared memory"),
    blocks=(FLOAT, "blocks per SM"), occupancy=(FLOAT, "est. achieved occupancy %"),
    bytes=(INTEGER, "bytes", "copy_bytes"), collective=(_GIVEN, "Collective name"),
)  # fmt: skip
#: Arguments of memory instants (``[memory]``).
MEMORY: Final = ArgumentColumns(
    device_type=(INTEGER, "Device Type"), device_id=(INTEGER, "Device Id"), change=(INTEGER, "Bytes"),
    address=(INTEGER, "Addr"), allocated=(INTEGER, "Total Allocated"), reserved=(INTEGER, "Total Reserved"),
    event_index=(INTEGER, "Ev Idx"),
)  # fmt: skip

# -- read on demand

#: Arguments of operators and annotations: shapes, types and call stacks.
OPERATORS: Final = ArgumentColumns(
    shapes=(JSON, "Input Dims", "Input dims"), input_types=(JSON, "Input type"), stack=(TEXT, "Call stack")
)
#: Arguments of Python frames.
FRAMES: Final = ArgumentColumns(
    id=(INTEGER, "Python id"), parent=(INTEGER, "Python parent id"), module=(INTEGER, "Python module id")
)
#: Arguments of collectives, on ``record_param_comms`` and on kernels of NCCL.
MESSAGES: Final = ArgumentColumns(
    sent=(INTEGER, "In msg nelems"), received=(INTEGER, "Out msg nelems"), element_bytes=(_ELEMENT, "dtype"),
    size=(INTEGER, "Group size"), group=(JSON, "Process Group Name"), ranks=(JSON, "Process Group Ranks"),
)  # fmt: skip

# -- events

Complete: Final = complete_events(WORK.struct)


_INSTANT: Final = {"name": Any, "pid": Any, "tid": Any, "ts": msgspec.Raw, "args": MEMORY.struct | None}
#: Instants, of which only those of memory are used; older PyTorch writes phase ``I``.
Instant, OldInstant = event("i", **_INSTANT), event("I", **_INSTANT)
#: Starts of flows in the first pass, which only collects the processes that flows begin in.
FlowBegin: Final = event("s", pid=Any)
#: Ends of flows: in a legacy trace at the operator, and at the kernel, of its name.
NamedStart, NamedEnd = event("s", **FLOW, name=Any), event("f", **FLOW, name=Any)
#: Events with a duration, their arguments as text.
AnyComplete: Final = event("X", args=msgspec.Raw)
#: Phases that PyTorch writes; events of others are not read.
PHASES: Final = Phases({
    Complete: "add_complete", Instant: "add_memory", OldInstant: "add_memory", Metadata: "add_names",
    Sample: "add_samples", FlowBegin: "add_flows",
}, "ft")  # fmt: skip
FLOWS: Final = Phases({NamedStart: "", NamedEnd: ""})
ARGUMENTS: Final = Phases({AnyComplete: ""})


#: One in so many chunks is read by itself, more in one pass over the file.
_FEW: Final = 4


class Arguments(Struct, frozen=True, eq=False):
    """Index of a file's text by which the arguments of events are found."""

    path: Path
    #: Size and modification time when it was read; a file changed since then yields no arguments.
    state: tuple[int, int]
    first: Sequence[int]  #: Number of the first complete event (``ph`` X) of each chunk of text
    offset: Sequence[int]  #: Offset of each chunk, and the end of the last one
    #: Of a gzip file; empty: not compressed; None: only readable from the beginning.
    restart_points: Sequence[RestartPoint] | None

    def of(self, number: int) -> dict[str, Any]:
        """Arguments of the complete event of a number; empty if the file cannot be read any more."""
        chunk = bisect_right(self.first, number) - 1
        try:
            text = self._text(self.offset[chunk], self.offset[chunk + 1])
        except OSError:
            return {}
        arguments = [] if text is None else _raw_arguments(text)
        index = number - self.first[chunk]
        if index >= len(arguments) or not arguments[index]:
            return {}
        try:
            found = msgspec.json.decode(arguments[index])
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return {}
        return found if isinstance(found, dict) else {}

    def offset_of(self, chunk: int, phases: str, index: int) -> int:
        """Offset of an event in the text.

        Args:
            chunk: Number of its chunk.
            phases: Values of ``ph`` that are counted; empty: all that PyTorch does not write.
            index: Its index among these events of the chunk, from 0.

        Returns:
            The offset; that of the chunk if the file cannot be read any more; -1 if it would tell nobody anything.
        """
        begin, wanted = self.offset[chunk], tuple(phases) or PHASES.known
        with contextlib.suppress(OSError):
            text = self._text(begin, self.offset[chunk + 1]) or b""
            for offset, event in chunks_of(text, dict, lambda each: each).with_offsets():
                if (event.get("ph") in wanted) is bool(phases):
                    if not index:
                        return begin + offset
                    index -= 1
        return begin

    def offset_of_number(self, number: int) -> int:
        """Offset of the complete event of a number, as `offset_of` gives it."""
        chunk = bisect_right(self.first, number) - 1
        return self.offset_of(chunk, "XB", number - self.first[chunk])

    def columns(self, texts: Codes, *wanted: tuple[ArgumentColumns, npt.NDArray[np.integer]]) -> list[dict[str, Any]]:
        """Columns of arguments of events; as of events without arguments from where the file is unreadable.

        Args:
            texts: Codes of texts.
            wanted: Pairs of columns and the numbers of the events, in any order.
        """
        orders = [np.argsort(numbers, kind="stable") for _, numbers in wanted]
        ascending = [numbers[order] for (_, numbers), order in zip(wanted, orders, strict=True)]
        edges = [np.searchsorted(numbers, [*self.first, np.iinfo(np.int64).max]).tolist() for numbers in ascending]
        wanted_chunks = [
            chunk for chunk in range(len(self.first)) if any(edge[chunk] < edge[chunk + 1] for edge in edges)
        ]
        parts: list[list[dict[str, Any]]] = [[] for _ in wanted]
        for chunk, source in self._texts_of(wanted_chunks):
            known = self._known(chunk, source)
            first = self.first[chunk]
            here = [numbers[edge[chunk] : edge[chunk + 1]].tolist()
                    for numbers, edge in zip(ascending, edges, strict=True)]  # fmt: skip
            for (columns, _), numbers, part in zip(wanted, here, parts, strict=True):
                raw = self._raw(known, [number - first for number in numbers])
                part.append(columns.of(columns.decoded(raw), texts))
        found = []
        for (columns, numbers), order, part in zip(wanted, orders, parts, strict=True):
            missing = len(numbers) - sum(len(next(iter(each.values()))) for each in part)
            part.append(columns.of([None] * missing, texts))
            place = np.argsort(order)
            found.append({key: np.concatenate([each[key] for each in part])[place] for key in columns.columns})
        return found

    def _known(self, chunk: int, text: bytes) -> Any:
        """What arguments of the events of a chunk are found in."""
        del chunk
        return dict(enumerate(_raw_arguments(text)))

    @staticmethod
    def _raw(known: Any, places: Sequence[int]) -> list[Any]:
        """JSON of the arguments of some events; of a damaged text less may be known."""
        return [known.get(place) or NULL for place in places]

    def events(self, phases: Phases, words: Sequence[bytes]) -> Iterator[list[Any]]:
        """Decodes events that contain one of some words, one chunk of text at a time; ends early if unreadable.

        Args:
            phases: Structs of the events.
            words: Quoted strings. If a word is found outside flat objects, all events of that chunk are returned.
        """
        decode = msgspec.json.Decoder(list[phases.any]).decode  # type: ignore[name-defined]
        for text in self._texts():
            try:
                yield decode(b"[%b]" % b",".join(_simple_objects(text, words)))
            except (msgspec.DecodeError, UnicodeDecodeError):
                yield _events(text, phases)

    def _texts_of(self, chunks: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """Some chunks, ascending, with their texts; ends early if the file becomes unreadable."""
        if self.restart_points is None or _FEW * len(chunks) > len(self.first):
            wanted = set(chunks)
            yield from ((chunk, text) for chunk, text in enumerate(self._texts() if wanted else ()) if chunk in wanted)
            return
        with contextlib.suppress(OSError, UnreadableError):
            for chunk in chunks:
                if (text := self._text(self.offset[chunk], self.offset[chunk + 1])) is None:
                    return
                yield chunk, text

    def _texts(self) -> Iterator[bytes]:
        """The text of each chunk; ends early if the file becomes unreadable."""
        with contextlib.suppress(OSError, UnreadableError), self.path.open("rb") as raw:
            if state_of(raw.fileno()) == self.state:
                source = text_of(self.path, raw)
                _skip(source, self.offset[0])
                for begin, end in pairwise(self.offset):
                    yield _exactly(source, end - begin)

    def _text(self, begin: int, end: int) -> bytes | None:
        with self.path.open("rb") as raw:
            if state_of(raw.fileno()) != self.state:
                return None
            if self.restart_points is None:
                source = text_of(self.path, raw)
                _skip(source, begin)
                return _exactly(source, end - begin)
            if not self.restart_points:
                raw.seek(begin)
                return raw.read(end - begin)
            point = self.restart_points[bisect_right(self.restart_points, begin, key=lambda each: each.text_offset) - 1]
            source = GzipText.from_restart_point(raw, point)
            source.read(begin - point.text_offset)
            return _exactly(source, end - begin)


class PacketArguments(Arguments, frozen=True, eq=False):
    """Index of the packets of a Perfetto trace; the text is made of them."""

    states: Any  #: What the packets refer to
    pieces: Sequence[tuple[int, int]]  #: Number of the first packet of each chunk, and bytes that may be unpacked in it
    added: tuple[I64, I64]  #: Numbers of slices, ascending, whose ends have arguments too, and the numbers of these
    last: list[Any] = field(default_factory=list)  #: The chunk decoded last, and its events

    def of(self, number: int) -> dict[str, Any]:
        """Arguments of an event, and those of its end."""
        begins, ends = self.added
        place = int(np.searchsorted(begins, number))
        found: dict[str, Any] = {}
        for each in (number, *ends[place : place + 1][begins[place : place + 1] == number].tolist()):
            chunk = bisect_right(self.first, each) - 1
            if (events := self._events(chunk)) is not None:
                found |= msgspec.json.decode(self._raw(events, [each - self.first[chunk]])[0]) or {}
        return found

    def offset_of(self, chunk: int, phases: str, index: int) -> int:
        """None: the text is not that of the file."""
        return -1

    def _known(self, chunk: int, text: bytes) -> Any:
        return self.decoded(chunk, text)

    @staticmethod
    def _raw(known: Any, places: Sequence[int]) -> list[Any]:
        inside = [place for place in places if place < known.count]
        return [*map(str.encode, known.texts(inside)), *[NULL] * (len(places) - len(inside))]

    def events(self, phases: Phases, words: Sequence[bytes]) -> Iterator[list[Any]]:
        """None: packets hold no events of a Chrome trace."""
        return iter(())

    def _events(self, chunk: int) -> Any:
        # kept until others are asked for: rows are looked at one after the other
        if self.last[:1] != [chunk]:
            self.last[:] = chunk, self.decoded(chunk)
        return self.last[1]

    def decoded(self, chunk: int, packets: bytes | None = None) -> Any:
        """The events of a chunk; None if the file cannot be read any more."""
        from tpuprof_tui.sources.perfetto.events import PieceEvents
        from tpuprof_tui.sources.perfetto.packets import Piece, Split

        with contextlib.suppress(OSError):
            packets = packets or super()._text(self.offset[chunk], self.offset[chunk + 1])
        if packets is None:
            return None
        piece = Piece(packets, Split.of(packets), *self.pieces[chunk])
        piece.mark_damaged(self.states.damaged)
        return PieceEvents(piece, self.states, Codes())


def _simple_objects(text: bytes, words: Sequence[bytes]) -> Iterator[bytes]:
    """Text from the preceding to the following brace around each match of some words, each range once."""
    found: set[tuple[int, int]] = set()
    for word in words:
        at = text.find(word)
        while at >= 0:
            end = text.find(b"}", at) + 1 or len(text)
            found.add((text.rfind(b"{", 0, at), end))
            at = text.find(word, end)
    return (text[max(begin, 0) : end] for begin, end in sorted(found))


def _exactly(source: Any, count: int) -> bytes:
    """Exactly ``count`` bytes, or all that are left; zstd returns them in parts."""
    parts = []
    while count > 0 and (data := source.read(count)):
        parts.append(data)
        count -= len(data)
    return b"".join(parts)


def _skip(source: Any, count: int) -> None:
    while count > 0 and (data := source.read(min(count, 1 << 20))):
        count -= len(data)


def _raw_arguments(text: bytes) -> list[msgspec.Raw]:
    """Raw arguments of the complete events of a chunk of text."""
    return [each.args for each in _events(text, ARGUMENTS) if type(each) in (AnyComplete, ARGUMENTS.begin)]


def _events(text: bytes, phases: Phases) -> list[Any]:
    chunks = chunks_of(text.rstrip(b", \t\r\n") + b"]", phases.any, phases.from_dict)
    return [each for part in chunks.event_chunks() for each in part]
