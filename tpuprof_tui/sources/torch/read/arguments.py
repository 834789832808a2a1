"""Arguments of events, decoded from the file again on demand."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.sources.chrome.chunks import chunks_of
from tpuprof_tui.sources.chrome.columns import NULL, ArgumentColumns, Codes
from tpuprof_tui.sources.chrome.events import Phases
from tpuprof_tui.sources.chrome.inflate import GzipText, RestartPoint, text_of
from tpuprof_tui.sources.chrome.sections import state_of

from .events import ARGUMENTS, PHASES, AnyComplete

I64 = npt.NDArray[np.int64]
#: One in so many chunks is read by itself, more in one pass over the file.
_FEW: Final = 4


class Arguments(Struct, frozen=True, eq=False):
    """Index of a file's text by which the arguments of events are found.

    Attributes:
        state: Size and modification time when it was read; a file changed since then yields no arguments.
        first: Number of the first complete event (``ph`` X) of each chunk of text.
        offset: Offset of each chunk, and the end of the last one.
        restart_points: Of a gzip file; empty: not compressed; None: only readable from the beginning.
    """

    path: Path
    state: tuple[int, int]
    first: Sequence[int]
    offset: Sequence[int]
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
        return self.offset_of(chunk, "X", number - self.first[chunk])

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
    """Index of the packets of a Perfetto trace; the text is made of them.

    Attributes:
        states: What the packets refer to.
        pieces: Number of the first packet of each chunk, and bytes that may be unpacked in it.
        added: Numbers of slices, ascending, whose ends have arguments too, and the numbers of these.
    """

    states: Any
    pieces: Sequence[tuple[int, int]]
    added: tuple[I64, I64]

    def of(self, number: int) -> dict[str, Any]:
        """Arguments of an event, and those of its end."""
        begins, ends = self.added
        place = int(np.searchsorted(begins, number))
        found: dict[str, Any] = {}
        for each in (number, *ends[place : place + 1][begins[place : place + 1] == number].tolist()):
            chunk = bisect_right(self.first, each) - 1
            if (events := _events_of(self, chunk)) is not None:
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

    def decoded(self, chunk: int, packets: bytes | None = None) -> Any:
        """The events of a chunk; None if the file cannot be read any more."""
        from tpuprof_tui.sources.perfetto.events import Events
        from tpuprof_tui.sources.perfetto.packets import Piece, Split

        with contextlib.suppress(OSError):
            packets = packets or super()._text(self.offset[chunk], self.offset[chunk + 1])
        if packets is None:
            return None
        piece = Piece(packets, Split.of(packets), *self.pieces[chunk])
        piece.mark_damaged(self.states.damaged)
        return Events(piece, self.states, Codes())


@lru_cache(maxsize=1)
def _events_of(arguments: PacketArguments, chunk: int) -> Any:
    """The events of a chunk, kept until others are asked for: rows are looked at one after the other."""
    return arguments.decoded(chunk)


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
    return [each.args for each in _events(text, ARGUMENTS) if type(each) is AnyComplete]


def _events(text: bytes, phases: Phases) -> list[Any]:
    chunks = chunks_of(text.rstrip(b", \t\r\n") + b"]", phases.any, phases.from_dict)
    return [each for part in chunks.event_chunks() for each in part]
