"""`PerfettoText`: a Perfetto trace as the text of a Chrome trace, which the readers of these take."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import Problem, Severity
from tpuprof_tui.sources.chrome.inflate import FORMAT, ConvertedText, PackedText

from . import packets as of
from .packets import CLOCK, EVENT, EVENTS, FLAGS, SEQUENCE, STAGE, TIME, Packets
from .stages import Stages
from .state import CATEGORIES, NAMES, Clocks, Sequence, as_json
from .tracks import THREAD, UUID, Tracks, counter_of, owner_of
from .wire import DamagedError, Field, double, last, numbers, signed, text

I64 = npt.NDArray[np.int64]
_CLEARED, _NEEDS_STATE = 1, 2
#: Types of track events, and by the phases that older ones have; phases that an id tells apart, and one with a length.
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_PHASES: Final = {"B": _BEGIN, "E": _END, "b": _BEGIN, "e": _END, **dict.fromkeys("IinX", _INSTANT)}
_WITH_ID, _WHOLE = "ben", "X"
#: Fields of ids of flows; of uuids of extra counters, of their values, and what the values are.
_FLOWS, _EXTRA = (36, 42, 47, 48), ((31, 12, signed), (45, 46, double))
#: Times of a larger magnitude, ns, are damaged.
_MOST_TIME: Final = 1 << 61
#: From so many arguments on their length is looked at.
_SEVERAL: Final = 16
#: Characters of text that are made at a time; most of an event; most events whose heads are kept; most categories.
_AT_ONCE, _LONGEST, _MOST_HEADS, _MOST_CATEGORIES = 1 << 20, 1 << 20, 1 << 16, 8
#: Instants that PyTorch writes, which are read as such.
_MEMORY: Final = '"name":"[memory]"'
#: Data of packets that are not followed, by field; others are named by their number.
_NOT_FOLLOWED: Final = {
    1: "events of the kernel (ftrace)", 5: "events of Chrome", 7: "statistics of the system", 9: "those of processes",
    37: "heap profiles", 39: "logs", 54: "call stacks", 56: "heap graphs", 57: "graphics frames", 62: "Vulkan memory",
    66: "samples of perf", 68: "memory maps", 71: "GPU memory", 73: "memory dumps", 135: "stack samples",
}  # fmt: skip
#: Fields of packets that are followed, and those that say how the trace was recorded.
_FOLLOWED: Final = frozenset((
    *(2, 3, 6, 12, *range(33, 37), *range(41, 47), 48, 50, 51, 59, 60, 67, 69, 72, 79, 87, 89),
    *(90, 98, 124, 126, 128, 133, 138),
))  # fmt: skip
_LINES: Final = {
    "damaged": (Severity.ERROR, "Packets that cannot be decoded.", "They are left out."),
    "too_long": (Severity.ERROR, "Packed packets that are too long for the file.", "Their begin is shown."),
    "zstd": (Severity.ERROR, "Packets that are packed with zstd.",
             "They are left out: install the package zstandard (pip install zstandard)."),
    "lost": (Severity.ERROR, "Packets were lost while the trace was recorded.", "What they held is missing."),
    "needed": (Severity.ERROR, "Packets that need names or clocks of packets that were lost.", "They are left out."),
    "kind": (Severity.NOTE, "Track events of a type that is not followed.", "They are left out."),
    "clocks": (Severity.WARNING, "Times of a clock that no snapshot relates to the trace's.",
               "They are taken for times of the trace's clock."),
    "unknown": (Severity.WARNING, "Names that were not recorded.", "They are shown as unknown."),
    "ends": (Severity.WARNING, "Ends of slices that did not begin: the recording began within them.",
             "They are left out."),
    "open": (Severity.WARNING, "Slices that did not end.", "They are shown up to the end of the recording."),
    "added": (Severity.NOTE, "Arguments at the ends of slices.", "They are left out."),
    "long": (Severity.WARNING, "Events whose arguments are too long.", "They are shown without arguments."),
}  # fmt: skip


class PerfettoText(ConvertedText):
    """The text of a trace: an object with ``traceEvents``.

    Slices and instants become complete events, those that have a begin and an end without a length at first.
    """

    ratio = 4

    def __init__(self, raw: BinaryIO, source: BinaryIO | PackedText) -> None:
        super().__init__(raw)
        self._source, self._packets = source, Packets(source.read)
        self._chunks, self._waiting, self._at = self._text(), b"", 0
        self._keeps, self.kept = True, None
        self._parts: list[str] = []
        self._sequences: dict[int, Sequence] = {}
        self._clocks, self._tracks, self._stages = Clocks(), Tracks(), Stages()
        self._lanes: dict[int, str] = {}
        self._series: dict[int, tuple[str, bool, int]] = {}
        #: Number of complete events, characters of text that wait, and the latest time.
        self._count = self._size = self._latest = 0
        #: Codes of what slices nest in, and their begins and ends: code, time, and number of the event, -1 of an end.
        self._nests: dict[Any, int] = {}
        self._edges = array("q")
        #: Ends of flows: id, time, number of the event, and whether the flow ends.
        self._flows = array("q")
        self._defects, self._not_followed = Counter[str](), Counter[str]()
        self.units = {}

    # -- the text

    def _decompressed(self, count: int) -> bytes:
        if self._at >= len(self._waiting):
            self._waiting, self._at = next(self._chunks, b""), 0
            if self._keeps and self._waiting:
                import tempfile  # slow to import

                try:
                    self.kept = self.kept or tempfile.TemporaryFile()  # noqa: SIM115 - it is read as long as the profile
                    self.kept.write(self._waiting)
                    self.kept.flush()
                except OSError:
                    # the text is made again where it is needed
                    self._keeps, self.kept = False, None
        found = self._waiting[self._at : self._at + count]
        self._at += len(found)
        return found

    def _text(self) -> Iterator[bytes]:
        # the first event says nothing
        self._parts.append('{"traceEvents":[{"ph":"M"}')
        for packet in self._packets:
            self._add(*packet)
            if self._size > _AT_ONCE:
                yield self._made()
        yield self._made() + b'],"format":"%b"}' % FORMAT.encode()

    def _made(self) -> bytes:
        found = "".join(self._parts).encode("utf-8", "replace")
        self._parts.clear()
        self._size = 0
        return found

    def _write(self, event: str) -> None:
        self._parts.append(f",\n{{{event}}}")
        self._size += len(event)

    @property
    def fault(self) -> tuple[str, str] | None:
        """What is wrong with the packing of the file, and what was read of it; None if nothing is."""
        return (self._source.fault if isinstance(self._source, PackedText) else None) or super().fault

    def problems(self, file: str) -> Iterator[Problem]:  # noqa: D102
        packets = self._packets
        if packets.fault and not self.fault:
            yield Problem(Severity.ERROR, f"The trace {packets.fault}.", "All events before are shown.", file=file,
                          offset=packets.offset, lost=1)  # fmt: skip
        # which tell what has no begin or end
        assert len(self.lengths) == self._count
        found = self._defects + Counter(
            damaged=packets.damaged, too_long=packets.too_long, zstd=packets.zstd, clocks=self._clocks.unknown,
            unknown=sum(each.unknown for each in self._sequences.values()),
        )  # fmt: skip
        for kind, (severity, what, done) in _LINES.items():
            if count := found[kind]:
                yield Problem(severity, what, done, file=file, count=count, lost=severity is Severity.ERROR and count)
        for what, count in sorted(self._not_followed.items()):
            yield Problem(Severity.NOTE, f"Packets with {what}.", "They are not followed.", file=file, count=count)

    @property
    def flows(self) -> tuple[I64, I64]:
        """Numbers of the complete events that flows join: each to the one before, by time, until the flow ends."""
        flow, time, number, ends = np.array(self._flows, np.int64).reshape(-1, 4).T
        order = np.lexsort((ends, time, flow))
        first, second = order[:-1], order[1:]
        joined = (flow[first] == flow[second]) & (ends[first] == 0)
        return number[first[joined]], number[second[joined]]

    @property
    def waits(self) -> tuple[I64, I64]:  # noqa: D102
        return self._stages.waits

    @cached_property
    def lengths(self) -> I64:
        """Lengths of slices with a begin and an end, by number of the complete event; 0 of others.

        An end ends the innermost slice, in the order of their times. At one time they are in the order of the file, but
        where it has others between them ends come first: some recorders write all begins before all ends.
        """
        edges = np.array(self._edges, np.int64).reshape(-1, 3)
        nest, time, number = edges[np.argsort(edges[:, 0], kind="stable")].T
        order = np.lexsort((time, nest))
        first = np.flatnonzero(np.append(True, np.diff(nest[order]) | np.diff(time[order]))[: len(order)])
        size = np.diff(first, append=len(order))
        apart = np.repeat(order[first + size - 1] - order[first] >= size, size)
        order = order[np.lexsort((apart & (number[order] >= 0), np.repeat(first, size)))]
        found, last_nest = np.zeros(self._count, np.int64), -1
        open_: list[list[tuple[int, int]]] = [[]]
        for of_nest, at, event in zip(nest[order].tolist(), time[order].tolist(), number[order].tolist(), strict=True):
            if of_nest != last_nest:
                last_nest, stack = of_nest, list[tuple[int, int]]()
                open_.append(stack)
            if event >= 0:
                stack.append((event, at))
            elif stack:
                event, begun = stack.pop()
                found[event] = at - begun
            else:
                self._defects["ends"] += 1
        for stack in open_:
            self._defects["open"] += len(stack)
            for event, begun in stack:
                found[event] = self._latest - begun
        return found

    # -- packets

    def _add(self, time: int, packet: list[Field]) -> None:
        try:
            self._add_sound(time, packet)
        except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError):
            # fields of other types than they are of
            self._defects["damaged"] += 1

    def _add_sound(self, time: int, packet: list[Field]) -> None:
        number = flags = clock = kind = 0
        event: list[Field] = []
        others: list[Field] = []
        for entry in packet:
            key, value = entry
            if key == SEQUENCE:
                number = value
            elif key == FLAGS:
                flags = value
            elif key in EVENTS:
                kind, event = entry
            elif key == CLOCK:
                clock = value
            elif key != TIME:
                others.append(entry)
        sequence = self._sequences.get(number)
        told = dict(others) if others else {}
        if sequence is None:
            sequence = self._sequences[number] = Sequence()
        elif told.get(of.DROPPED):
            sequence.sound = False
            self._defects["lost"] += 1
        if flags & _CLEARED or told.get(of.CLEARED):
            sequence.clear()
        for key, value in others:
            self._add_other(sequence, key, value)
        if kind and flags & _NEEDS_STATE and not sequence.sound:
            self._defects["needed"] += 1
        elif kind:
            time = self._clocks.time(sequence, time, clock)
            if kind == EVENT:
                self._add_event(sequence, time, event)
            elif kind == STAGE:
                length, head, arguments = self._stages.work(sequence, event, self._count)
                self._add_complete(head, arguments, time, length)
            else:
                for process, name, value in self._stages.samples(sequence, event):
                    self._sample(f'"pid":{process},"name":{as_json(name)}', time, value)

    def _add_other(self, sequence: Sequence, key: int, value: Any) -> None:
        if key == of.INTERNED:
            sequence.intern(value)
        elif key == of.DEFAULTS:
            sequence.update(value)
        elif key == of.SNAPSHOT:
            self._clocks.snapshot(sequence, value)
        elif key == of.DESCRIPTOR:
            found = last(value)
            self._tracks[found.get(UUID, 0)] = found
            self._name(*owner_of(found))
        elif key == of.OLD_THREAD:
            ids, name = owner_of({THREAD: value})
            sequence.thread, sequence.reference = ids, 1000 * signed(last(value).get(6, 0))
            self._name(ids, name)
        elif key in of.PACKED:
            for packet in self._packets.packed(key, value):
                self._add(*packet)
        elif key not in _FOLLOWED:
            self._not_followed[_NOT_FOLLOWED.get(key, f"data of field {key}")] += 1

    def _name(self, ids: tuple[int | str, ...], name: str) -> None:
        """Writes the name of a process, or of a process and thread."""
        if ids and name:
            kind, place = ("thread", f',"tid":{ids[1]}') if len(ids) > 1 else ("process", "")
            who = f'"name":"{kind}_name","pid":{as_json(ids[0])}{place}'
            self._write(f'"ph":"M",{who},"args":{{"name":{as_json(name)}}}')

    def _lane(self, uuid: int) -> str:
        """Process and thread of a track as members of a JSON object."""
        found = self._lanes.get(uuid)
        if found is None:
            process, thread = self._tracks.lane(uuid)
            found = self._lanes[uuid] = f'"pid":{as_json(process)},"tid":{as_json(thread)}'
            if isinstance(process, str):
                self._name((process,), process)
        return found

    # -- track events

    def _add_event(self, sequence: Sequence, time: int, event: list[Field]) -> None:
        kind, uuid, name, sequence.spent = 0, sequence.track, None, 0
        categories: list[Any] = []
        arguments: list[str] = []
        rest: list[Field] = []
        for entry in event:
            number, value = entry
            if number == 4:
                arguments.append(sequence.notes.get(value) or sequence.note(value))
            elif number == 9:
                kind = value
            elif number == 11:
                uuid = value
            elif number in (10, 23):
                name = value
            elif number in (3, 22):
                categories.append(value)
            else:
                rest.append(entry)
        nest: Any = uuid
        flows: tuple[tuple[int, bool], ...] = ()
        place, length, sample = "", 0, None
        if rest:
            found = dict(rest)
            flows = tuple((signed(flow), number in (42, 48)) for number, value in rest if number in _FLOWS
                          for flow in numbers(value, fixed=number > 42))  # fmt: skip
            if 1 in found or 16 in found:
                since = 0 if 16 in found else sequence.reference
                time = sequence.reference = since + 1000 * signed(found.get(16, found.get(1)))
            sample = double(found[44]) if 44 in found else signed(found[30]) if 30 in found else None
            self._add_extra(sequence, time, rest)
            submitted = last(found.get(3000)).get(1)
            if submitted is not None and not any(each.startswith('"correlation":') for each in arguments):
                arguments.append(f'"correlation":{numbers(submitted)[0]}')
            if 6 in found:
                older = last(found[6])
                phase, name = chr(older.get(2, 0) & 127), older.get(1) if name is None else name
                kind, length = kind or _PHASES.get(phase, 0), 1000 * signed(older.get(3, 0)) if phase == _WHOLE else 0
                if not uuid or 18 in older or 19 in older:
                    nest = signed(older.get(18, sequence.thread[0])), signed(older.get(19, sequence.thread[1]))
                    place = '"pid":{},"tid":{}'.format(*nest)
                if phase in _WITH_ID:
                    nest = nest, name, *(older.get(number) for number in (6, 10, 11))
        if kind == _END:
            self._until(time)
            self._edges.extend((self._nests.setdefault(nest, len(self._nests)), time, -1))
            self._defects["added"] += bool(arguments)
        elif kind == _COUNTER and sample is not None:
            self._add_sample(sequence, uuid, time, sample)
        elif kind in (_BEGIN, _INSTANT):
            if len(arguments) > _SEVERAL and sum(map(len, arguments)) > _LONGEST:
                self._defects["long"] += 1
                arguments = []
            head = self._head(sequence, name, categories, place or self._lane(uuid), arguments)
            if kind == _INSTANT and _MEMORY in head:
                self._write(f'"ph":"i",{head},"ts":{_us(time)},"args":{{{",".join(arguments)}}}')
                return
            self._add_complete(head, f"{{{','.join(arguments)}}}", time, length, flows)
            if kind == _BEGIN:
                self._edges.extend((self._nests.setdefault(nest, len(self._nests)), time, self._count - 1))
        elif kind or name is not None:
            self._defects["kind"] += 1

    def _head(self, sequence: Sequence, name: Any, categories: list[Any], place: str, arguments: list[str]) -> str:
        """Category, name and place of a slice as members of a JSON object."""
        if not categories and any(each.startswith('"cuda_sync_kind":') for each in arguments):
            # PyTorch writes these without a category
            categories = [b"cuda_sync"]
        key = name, *categories[:_MOST_CATEGORIES], place
        found = sequence.heads.get(key)
        if found is None:
            title = "" if name is None else text(name) if isinstance(name, bytes) else sequence.text(NAMES, name)
            words = [text(each) if isinstance(each, bytes) else sequence.text(CATEGORIES, each) for each in key[1:-1]]
            found = f'"cat":{as_json(",".join(words))},"name":{as_json(title)},{place}'
            if len(sequence.heads) < _MOST_HEADS:
                sequence.heads[key] = found
        return found

    def _add_complete(self, head: str, arguments: str, time: int, length: int, flows: tuple[Any, ...] = ()) -> None:
        """Adds a complete event, and the flows that begin or end at it."""
        self._until(time + length)
        if len(arguments) > _LONGEST:
            self._defects["long"] += 1
            arguments = "{}"
        self._write(f'"ph":"X",{head},"ts":{_us(time)},"dur":{_us(length) if length else 0},"args":{arguments}')
        for flow, ends in flows:
            self._flows.extend((flow, time, self._count, ends))
        self._count += 1

    def _until(self, time: int) -> None:
        if not -_MOST_TIME < time < _MOST_TIME:
            raise DamagedError
        self._latest = max(self._latest, time)

    # -- counters

    def _add_extra(self, sequence: Sequence, time: int, rest: list[Field]) -> None:
        """Adds values of counters that an event of another type holds."""
        for uuids, values, value_of in _EXTRA:
            wanted = [each for number, value in rest if number == values
                      for each in numbers(value, fixed=value_of is double)]  # fmt: skip
            own = [each for number, value in rest if number == uuids for each in numbers(value)]
            for uuid, value in zip(own or sequence.counters.get(uuids, []), wanted, strict=False):
                self._add_sample(sequence, uuid, time, value_of(value))

    def _add_sample(self, sequence: Sequence, uuid: int, time: int, value: float) -> None:
        found = self._series.get(uuid)
        if found is None:
            process, name = self._tracks.lane(uuid)
            incremental, factor, self.units[str(process), str(name)] = counter_of(self._tracks.get(uuid, {}))
            head = f'"pid":{as_json(process)},"name":{as_json(name)}'
            found = self._series[uuid] = head, incremental, factor
        head, incremental, factor = found
        if incremental:
            value = sequence.values[uuid] = sequence.values.get(uuid, 0) + value
        self._sample(head, time, value * factor)

    def _sample(self, head: str, time: int, value: float) -> None:
        self._write(f'"ph":"C",{head},"ts":{_us(time)},"args":{{"value":{as_json(value)}}}')


def _us(time: int) -> str:
    """A time in ns as µs."""
    return f"{time // 1000}.{time % 1000:03}" if time >= 0 else f"-{_us(-time)}"
