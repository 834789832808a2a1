"""`PerfettoTrace`: a Perfetto trace as columns of events, which the readers of Chrome traces take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any, BinaryIO, Final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import Problem, Severity
from tpuprof_tui.model.uniques import distinct, distinct_together
from tpuprof_tui.sources.chrome.columns import Codes, GrowingColumns
from tpuprof_tui.sources.chrome.inflate import PackedText

from . import packets as of
from .events import BEGIN, COUNTER, END, INSTANT, Events, PieceEvents
from .packets import CLOCK, FLAGS, SEQUENCE, TIME, Packets, Piece
from .state import (
    CATEGORIES,
    GPU_COUNTERS,
    KERNELS,
    MOST_TIME,
    NAMES,
    SPECIFICATIONS,
    Clocks,
    Interned,
    States,
)
from .tracks import THREAD, UUID, Tracks, counter_of, owner_of
from .wire import I64, Field, Fields, Mask, double, fields, last, numbers, signed, text

_CLEARED: Final = 1
#: Phases that an id tells apart, and one with a length.
_WITH_ID, _IDS, _WHOLE = "ben", (1, 6, 10, 11), "X"
#: Fields of ids of flows; of uuids of extra counters, of their values, and what the values are.
_FLOWS, _EXTRA = (36, 42, 47, 48), ((31, 12, signed), (45, 46, double))
_MOST_CATEGORIES: Final = 8
_UNSIGNED: Final = (1 << 64) - 1
#: Fields of work that name its queue, its stage and itself, and the tables of their ids.
_NAMED: Final = {13: SPECIFICATIONS, 14: SPECIFICATIONS, 17: NAMES, 20: NAMES, 19: KERNELS}
#: Categories of PyTorch by the names that it gives to stages.
_CATEGORIES: Final = {
    "Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset", "Annotation": "gpu_user_annotation",
    "EventRecord": "graph_event_node", "HostNode": "graph_host_node",
}  # fmt: skip
#: Data of packets that are not followed, by field; others are named by their number.
_NOT_FOLLOWED: Final = {
    1: "events of the kernel (ftrace)", 5: "events of Chrome", 7: "statistics of the system", 9: "those of processes",
    37: "heap profiles", 39: "logs", 54: "call stacks", 56: "heap graphs", 57: "graphics frames", 62: "Vulkan memory",
    66: "samples of perf", 68: "memory maps", 71: "GPU memory", 73: "memory dumps", 135: "stack samples",
}  # fmt: skip
#: Fields of packets that are followed, and those that say how the trace was recorded; those of packets of events alone.
_FOLLOWED: Final = frozenset((
    *(2, 3, 6, 12, *range(33, 37), *range(41, 47), 48, 50, 51, 59, 60, 67, 69, 72, 79, 87, 89),
    *(90, 98, 124, 126, 128, 133, 138),
))  # fmt: skip
_OF_EVENTS: Final = (TIME, SEQUENCE, FLAGS, CLOCK, *of.EVENTS)
_FAULTS: Final = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError)
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
    "long": (Severity.WARNING, "Events whose arguments are too long.", "They are shown without arguments."),
}  # fmt: skip


class PieceColumns(Struct):
    """The events of a piece: columns of what is shown, in the order of the packets, and what is told with them."""

    events: PieceEvents  #: All, with their arguments
    slot: I64  #: Numbers among all that has arguments in the piece
    row: I64  #: Rows of track events; -1: work
    #: start, length: Times in ns; of slices with a begin and an end the length is 0 at first.
    start: I64
    length: I64
    #: key, name: Codes of category, process and thread, and of names.
    key: I64
    name: I64
    memory: tuple[I64, I64, I64]  #: Instants of memory: rows of track events, times, and codes as above
    samples: dict[str, Any]  #: Counters (codes), times and values
    names: list[tuple[tuple[str, ...], str]]  #: Processes, or processes and threads, and their names


class PerfettoTrace(PackedText):
    """A trace. Slices and instants become complete events."""

    is_text, ratio = False, 4

    def __init__(self, raw: BinaryIO, source: BinaryIO | PackedText) -> None:
        super().__init__(raw)
        self._source, self._packets = source, Packets(source.read)
        self.restart_points: Any = () if source is raw else getattr(source, "restart_points", None)
        self.states, self._clocks, self._tracks = States(), Clocks(), Tracks()
        #: Units of counters, by process and name.
        self.units: dict[tuple[str, str], str] = {}
        #: Of each piece the number of its first packet, and the bytes that might be unpacked of them.
        self.pieces: list[tuple[int, int]] = []
        self._packet = self._count = self._latest = 0
        self._titles, self._words, self._places, self._nests = (Codes() for _ in range(4))
        #: Codes of places by track; keys of work by what it is and where; and times that older events count from.
        self._lanes: dict[int, int] = {}
        self._stages: dict[Any, int] = {}
        self._reference: dict[int, int] = {}
        self._series: dict[int, tuple[int, bool, int]] = {}
        #: Names of queues and stages of work that knows them by number, by field; and of counters of GPUs.
        self._specified: dict[int, list[str]] = {2: [], 3: []}
        self._counters: dict[tuple[int, int], str] = {}
        #: Begins and ends of slices: what they nest in, time, and slot of a begin; below 0: of an end, -1: no slot.
        #: Ends of flows: id, time, slot, and whether the flow ends. Ids of work, and those that it waits for.
        self._edges, self._flows, self._ids, self._waits = (GrowingColumns() for _ in range(4))
        self._defects, self._not_followed = Counter[str](), Counter[str]()
        self._names: list[tuple[tuple[str, ...], str]] = []

    def _decompressed(self, count: int) -> bytes:
        return self._source.read(count)

    @property
    def fault(self) -> tuple[str, str] | None:
        """What is wrong with the packing of the file, and what was read of it; None if nothing is."""
        return self._source.fault if isinstance(self._source, PackedText) else None

    # -- packets

    def events_by_piece(self, codes: dict[str, Codes]) -> Iterator[tuple[int, PieceColumns]]:
        """Offset and events of one piece after the other; ``codes``: where the codes are from."""
        for raw, split in self._packets:
            self.pieces.append((self._packet, self._packets.left))
            piece = Piece(raw, split, *self.pieces[-1])
            self._packet, self._packets.left, fields_ = self._packet + len(piece), piece.left, piece.fields
            other = np.isin(fields_.number, _OF_EVENTS, invert=True)
            other |= (fields_.number == FLAGS) & (fields_.value & _CLEARED != 0)
            for packet in distinct(fields_.owner[other])[0].tolist():
                try:
                    if not piece.damaged[packet]:
                        data = piece.data.raw[piece.begin[packet] : piece.end[packet]]
                        self._take(fields(data), piece.first + packet)
                except _FAULTS:
                    piece.damaged[packet] = True
            self.states.damaged.update((np.flatnonzero(piece.damaged) + piece.first).tolist())
            yield self._packets.offset, self._found(PieceEvents(piece, self.states, self._titles), codes)
            self._defects.update(
                damaged=int(piece.damaged.sum()) + piece.broken, too_long=piece.too_long, zstd=piece.zstd
            )
        self.end = self._packets.offset
        begin, _, end = self.pairs
        order = np.argsort(begin)
        order = order[end[order] >= 0]
        self.added = begin[order], end[order]

    def _take(self, packet: list[Field], number: int) -> None:
        """Takes what a packet says of others."""
        told = dict(packet)
        sequence = signed(told.get(SEQUENCE, 0))
        if told.get(of.DROPPED) and self.states.has(sequence):
            self.states.change(sequence, number, complete=False)
            self._defects["lost"] += 1
        if told.get(FLAGS, 0) & _CLEARED or told.get(of.CLEARED):
            interned = self.states.latest(sequence).interned.cleared()
            self.states.change(sequence, number, interned=interned, complete=True, track=0, clock=0, counters={})
        for key, value in packet:
            if key == of.INTERNED:
                self.states.latest(sequence).interned.add(value, number)
            elif key == of.DEFAULTS:
                found = last(value)
                events = fields(found.get(11, b""))
                counters = {field: [each for key, value in events if key == field for each in numbers(value)]
                            for field in (31, 45)}  # fmt: skip
                self.states.change(sequence, number, clock=signed(found.get(58, 0)), counters=counters,
                                   track=signed(dict(events).get(11, 0)))  # fmt: skip
            elif key == of.SNAPSHOT:
                self._clocks.snapshot(sequence, number, value)
            elif key == of.DESCRIPTOR:
                found = last(value)
                owner, _ = owner_of(found), counter_of(found)
                self._tracks[found.get(UUID, 0)] = found
                self._name(*owner)
            elif key == of.OLD_THREAD:
                ids, name = owner_of({THREAD: value})
                self.states.change(sequence, number, thread=ids, reference=[1000 * signed(last(value).get(6, 0))])
                self._name(ids, name)
            elif key not in _FOLLOWED and key not in _OF_EVENTS:
                self._not_followed[_NOT_FOLLOWED.get(key, f"data of field {key}")] += 1

    def _name(self, ids: tuple[int | str, ...], name: str) -> None:
        if ids and name:
            self._names.append((tuple(map(str, ids)), name))

    # -- events

    def _found(self, events: PieceEvents, codes: dict[str, Codes]) -> PieceColumns:
        piece, track, kind = events.piece, events.track, events.kind
        times = self._times(events)
        start, length = self._older_times(events, times[track.packet]), np.zeros(len(track), np.int64)
        uuid = track.fields.last(11, self._of_states(track.state, "track"))
        place, nest, names = np.full(len(track), -1, np.int64), np.full(len(track), -1, np.int64), dict[int, Any]()
        for row, older in events.older.items():
            phase, thread = chr(older.get(2, 0) & 127), self.states[int(track.state[row])].thread
            length[row] = min(max(1000 * signed(older.get(3, 0)), -MOST_TIME), MOST_TIME) if phase == _WHOLE else 0
            nested: Any = int(uuid[row])
            if not nested or 18 in older or 19 in older:
                nested = signed(older.get(18, thread[0])), signed(older.get(19, thread[-1]))
                place[row] = self._places[nested]
            names[row] = older.get(1)
            ids = _IDS if phase in _WITH_ID else ()
            nest[row] = self._nests[nested, tuple(map(older.get, ids))]
        edge = (kind == BEGIN) | (kind == END)
        timed = edge | (kind == INSTANT)
        piece.damaged[track.packet[timed & (np.abs(start) + np.abs(length) >= MOST_TIME)]] = True
        sound = ~piece.damaged[track.packet]
        shown = sound & (track.slot >= 0) & (kind != END)
        self._latest = max(self._latest, int((start + length)[sound & timed].max(initial=0)))
        columns = {"slot": track.slot, "row": np.arange(len(track)), "start": start, "length": length,
                   "name": self._track_names(events, shown, names, codes["names"]),
                   "key": self._track_keys(events, shown, uuid, place, codes["keys"])}  # fmt: skip
        self._add_edges(track, np.flatnonzero(sound & edge), uuid, nest, start, kind)
        self._add_flows(events, shown, start)
        samples = self._samples(events, sound, uuid, start, times, codes["counters"])
        self._count_kinds(track, kind, names)
        self._defects.update(needed=events.needed, unknown=events.unknown, long=len(events.long()))
        work = self._work(events, times[events.work.packet], codes)
        joined = {field: np.concatenate([values[shown], work[field]]) for field, values in columns.items()}
        order = np.argsort(joined["slot"])
        rows = np.flatnonzero(events.memory & sound)
        key = self._track_keys(events, events.memory & sound, uuid, place, codes["keys"])
        found = PieceColumns(events, samples=samples, names=self._names, memory=(rows, start[rows], key[rows]),
                      **{field: values[order] for field, values in joined.items()})  # fmt: skip
        self._names, self._count = [], self._count + events.count
        return found

    def _of_states(self, state: I64, field: str) -> I64:
        every, place = distinct(state)
        return np.array([getattr(self.states[each], field) for each in every.tolist()], np.int64)[place]

    def _times(self, events: PieceEvents) -> I64:
        """Times of the packets of a piece, ns; those out of range are at least `MOST_TIME`."""
        fields_, none = events.piece.fields, np.zeros(len(events.piece), np.int64)
        times, clock, sequence = (fields_.last(number, none) for number in (TIME, CLOCK, SEQUENCE))
        times[times < 0] = 2 * MOST_TIME
        groups = (events.track, events.work, events.samples)
        packet, state = (np.concatenate([getattr(each, field) for each in groups]) for field in ("packet", "state"))
        order = np.argsort(packet)
        packet, own = packet[order], self._of_states(state[order], "clock")
        times[packet] = self._clocks.times(sequence[packet], packet + events.piece.first, times[packet],
                                           np.where(clock[packet] == 0, own, clock[packet]))  # fmt: skip
        return times

    def _older_times(self, events: PieceEvents, start: I64) -> I64:
        """Times of track events, of which older ones count them from the event before."""
        found = events.track.fields.of(1, 16)
        told = dict(
            zip(found.owner.tolist(), zip(found.number.tolist(), found.value.tolist(), strict=True), strict=True)
        )
        sequence = events.piece.fields.last(SEQUENCE, np.zeros(len(events.piece), np.int64)) if told else start
        for row, (number, value) in told.items():
            state, of_ = self.states[int(events.track.state[row])], int(sequence[events.track.packet[row]])
            if state.reference:
                self._reference[of_] = state.reference.pop()
            since = 0 if number == 16 else self._reference.get(of_, 0)
            self._reference[of_] = min(max(since + 1000 * value, -2 * MOST_TIME), 2 * MOST_TIME)
            start[row] = self._reference[of_]
        return start

    def _count_kinds(self, track: Events, kind: I64, names: dict[int, Any]) -> None:
        """Counts the track events of types that are not followed."""
        named, sampled = np.zeros((2, len(track)), np.bool_)
        named[track.fields.of(10, 23).owner] = True
        named[[row for row, name in names.items() if name is not None]] = True
        sampled[track.fields.of(30, 44).owner] = True
        followed = ((kind > 0) & (kind < COUNTER)) | ((kind == COUNTER) & sampled)
        self._defects["kind"] += int((~followed & ((kind != 0) | named)).sum())

    def _track_names(self, events: PieceEvents, shown: Mask, older: dict[int, Any], codes: Codes) -> I64:
        track, code = events.track, np.full(len(events.track), -1, np.int64)
        named = track.fields.of(10, 23)
        named = named[shown[named.owner]]
        code[named.owner] = events.texts_of(track, named, NAMES, codes)
        for row in (row for row, iid in older.items() if shown[row] and code[row] < 0 and iid is not None):
            one = np.array([row])
            code[row] = events.texts_of(track, Fields(one, one, np.array([older[row]]), one * 0 - 1), NAMES, codes)[0]
        without = np.flatnonzero(shown & (code < 0))
        if len(without):
            code[without] = codes[""]
        return code

    def _track_keys(self, events: PieceEvents, shown: Mask, uuid: I64, place: I64, codes: Codes) -> I64:
        """Codes of category, process and thread of the track events that are shown."""
        track, words = events.track, self._words
        category = np.full(len(track), words[""], np.int64)
        named = track.fields.of(3, 22)
        named = named[shown[named.owner]]
        word = events.texts_of(track, named, CATEGORIES, words)
        category[named.owner] = word
        count = np.bincount(named.owner, minlength=len(track))
        every = list(words) if (count > 1).any() else []
        for row in np.flatnonzero(count > 1).tolist():
            own = word[named.owner == row][:_MOST_CATEGORIES].tolist()
            category[row] = words[",".join(every[each] for each in own)]
        # PyTorch writes these without a category
        waiting = events.has_note("cuda_sync_kind")
        category[waiting[count[waiting] == 0]] = words["cuda_sync"]
        elsewhere = np.flatnonzero(shown & (place < 0))
        tracks, index = distinct(uuid[elsewhere])
        place[elsewhere] = np.array([self._lane(each & _UNSIGNED) for each in tracks.tolist()], np.int64)[index]
        rows = np.flatnonzero(shown)
        group, groups = distinct_together(category[rows], place[rows])
        row = np.zeros(groups, np.int64)
        row[group[::-1]] = rows[::-1]
        order = np.argsort(row)
        every, places = list(words), list(self._places)
        pairs = zip(category[row[order]].tolist(), place[row[order]].tolist(), strict=True)
        key = np.full(len(track), -1, np.int64)
        code = np.zeros(groups, np.int64)
        code[order] = [codes[every[one], places[other][0], places[other][1]] for one, other in pairs]
        key[rows] = code[group]
        return key

    def _lane(self, uuid: int) -> int:
        """Code of the process and thread of a track."""
        found = self._lanes.get(uuid)
        if found is None:
            place = self._tracks.lane(uuid)
            found = self._lanes[uuid] = self._places[place]
            if isinstance(place[0], str):
                self._name(place[:1], place[0])
        return found

    def _add_edges(self, track: Events, rows: I64, uuid: I64, nest: I64, start: I64, kind: I64) -> None:
        """Adds begins and ends of slices."""
        own = rows[nest[rows] < 0]
        every, index = distinct(uuid[own])
        nest[own] = np.array([self._nests[each, ()] for each in every.tolist()], np.int64)[index]
        slot = np.where(track.slot[rows] < 0, -1, track.slot[rows] + self._count)
        self._edges.add(nest=nest[rows], time=start[rows], number=np.where(kind[rows] == BEGIN, slot, -2 - slot))

    def _add_flows(self, events: PieceEvents, shown: Mask, start: I64) -> None:
        """Adds the flows that begin or end at track events."""
        found = events.piece.data.numbers(events.track.fields.of(*_FLOWS), _FLOWS[2:])
        found = found[shown[found.owner]]
        self._flows.add(flow=found.value, time=start[found.owner], number=events.track.slot[found.owner] + self._count,
                        ends=(found.number == 42) | (found.number == 48))  # fmt: skip

    # -- work of GPUs

    def _work(self, events: PieceEvents, time: I64, codes: dict[str, Codes]) -> dict[str, I64]:
        """Columns of work."""
        work, data = events.work, events.piece.data
        length, device, ids, names = work.numbers(2), work.numbers(11), work.numbers(1), Codes()
        found = work.fields.of(7)
        for row, each in zip(found.owner.tolist(), data.texts(found), strict=True):
            try:
                for number, value in fields(each):
                    if number in self._specified:
                        self._specified[number].append(text(last(value).get(1, b"")))
            except _FAULTS:
                events.piece.damaged[work.packet[row]] = True
        told = [self._told(events, *each, names) for each in _NAMED.items()]
        launched = np.zeros(len(work), np.int64)
        launched[work.fields.of(21).owner] = 1
        indices = [work.numbers(field) for field in (3, 4)]
        group, count = distinct_together(*told, *indices, launched)
        first = np.zeros(count, np.int64)
        first[group] = np.arange(len(work))
        texts, what = [*names, None], []
        for row in first.tolist():
            queue, stage, *titles = (texts[column[row]] for column in told)
            if queue is None:
                queue = dict(enumerate(self._specified[2])).get(int(indices[0][row]), f"queue {indices[0][row]}")
            if stage is None:
                stage = dict(enumerate(self._specified[3])).get(int(indices[1][row]), f"stage {indices[1][row]}")
            name = next((each for each in titles if each is not None), stage)
            what.append((_CATEGORIES.get(stage, "kernel" if launched[row] else stage), queue, codes["names"][name]))
        late = (length < 0) | (length >= MOST_TIME) | (np.abs(time) >= MOST_TIME) | (time + length >= MOST_TIME)
        events.piece.damaged[work.packet[late]] = True
        rows = np.flatnonzero(~events.piece.damaged[work.packet])
        self._latest = max(self._latest, int((time + length)[rows].max(initial=0)))
        key = []
        for row, one, card in zip(rows.tolist(), group[rows].tolist(), device[rows].tolist(), strict=True):
            (category, queue, _), stream = what[one], events.stream.get(row)
            if (category, card, stream, queue) not in self._stages:
                place = msgspec.json.decode(stream) if stream else queue
                self._stages[category, card, stream, queue] = codes["keys"].of([(category, card, place)])[0]
            key.append(self._stages[category, card, stream, queue])
        slot = work.slot + self._count
        self._ids.add(id=ids[rows], slot=slot[rows])
        waits = data.numbers(work.fields.of(18))
        self._waits.add(id=waits.value, slot=slot[waits.owner])
        return {"slot": work.slot[rows], "row": np.full(len(rows), -1),
                "start": time[rows], "length": length[rows], "key": np.array(key, np.int64),
                "name": np.array([name for *_, name in what], np.int64)[group[rows]]}  # fmt: skip

    @staticmethod
    def _told(events: PieceEvents, field: int, table: int, codes: Codes) -> I64:
        """Codes of what a field of work names; -1: nothing."""
        named, found = events.work.fields.of(field), np.full(len(events.work), -1, np.int64)
        found[named.owner] = events.texts_of(events.work, named, table, codes)
        return found

    # -- counters

    def _samples(
        self, events: PieceEvents, sound: Mask, uuid: I64, start: I64, times: I64, codes: Codes
    ) -> dict[str, npt.NDArray[Any]]:  # fmt: skip
        """Samples of counters: codes, times and values."""
        track, data = events.track, events.piece.data
        value, known = np.zeros(len(track)), np.zeros(len(track), np.bool_)
        for field in (30, 44):
            told = track.fields.of(field)
            value[told.owner] = told.value.view(np.float64) if field == 44 else told.value
            known[told.owner] = True
        rows = np.flatnonzero(known & sound & (events.kind == COUNTER))
        code, time = np.zeros(len(rows), np.int64), start[rows]
        value = value[rows]
        every, index = distinct(uuid[rows])
        for number, each in enumerate(every.tolist()):
            own = np.flatnonzero(index == number)
            code[own], incremental, factor = self._counter(each & _UNSIGNED, codes)
            value[own] = self._sums(track, rows[own], each & _UNSIGNED, value[own]) if incremental else value[own]
            value[own] *= factor
        more: list[tuple[int, int, float]] = []
        extra = track.fields.of(*(number for fields_ in _EXTRA for number in fields_[:2]))
        for row in distinct(extra.owner[sound[extra.owner]])[0].tolist():
            try:
                more += self._extra(events, row, extra[extra.owner == row], int(start[row]), codes)
            except _FAULTS:
                events.piece.damaged[track.packet[row]] = True
        gpus = events.samples
        for packet, state, begin, end in zip(gpus.packet.tolist(), gpus.state.tolist(), *gpus.places, strict=True):
            interned, number = self.states[state].interned, events.piece.first + packet
            try:
                for process, name, sample in self._gpu_samples(interned, fields(data.raw[begin:end]), number):
                    more.append((codes[str(process), name, "value"], int(times[packet]), sample))
            except _FAULTS:
                events.piece.damaged[packet] = True
        others = np.array([each[0] for each in more], np.int64), np.array([each[1] for each in more], np.int64)
        return {"counter": np.append(code, others[0]).astype(np.int32), "time": np.append(time, others[1]),
                "value": np.append(value, np.array([each[2] for each in more], np.float64))}  # fmt: skip

    def _sums(self, track: Events, rows: I64, uuid: int, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Values of a counter whose values count from the one before."""
        for place, state in enumerate(track.state[rows].tolist()):
            sums = self.states[state].interned.values
            values[place] = sums[uuid] = sums.get(uuid, 0) + float(values[place])
        return values

    def _counter(self, uuid: int, codes: Codes) -> tuple[int, bool, int]:
        """Code of the counter that a track is, whether its values count from the one before, and the factor of them."""
        if uuid not in self._series:
            process, name = map(str, self._tracks.lane(uuid))
            incremental, factor, self.units[process, name] = counter_of(self._tracks.get(uuid, {}))
            self._series[uuid] = codes[process, name, "value"], incremental, factor
        return self._series[uuid]

    def _extra(
        self, events: PieceEvents, row: int, found: Fields, time: int, codes: Codes
    ) -> Iterator[tuple[int, int, float]]:  # fmt: skip
        """Values of counters that a track event of any type holds."""
        state = self.states[int(events.track.state[row])]
        columns = map(np.ndarray.tolist, (found.number, found.value, found.at))
        raw = [(number, value & _UNSIGNED if at < 0 else events.piece.data.raw[at : at + value])
               for number, value, at in zip(*columns, strict=True)]  # fmt: skip
        for uuids, values, value_of in _EXTRA:
            own, wanted = ([each for number, value in raw if number == wanted
                            for each in numbers(value, fixed=wanted == values and value_of is double)]
                           for wanted in (uuids, values))  # fmt: skip
            for uuid, value in zip(own or state.counters.get(uuids, []), wanted, strict=False):
                code, incremental, factor = self._counter(uuid, codes)
                sample, sums = value_of(value), state.interned.values
                if incremental:
                    sample = sums[uuid] = sums.get(uuid, 0) + sample
                yield code, time, sample * factor

    def _gpu_samples(self, interned: Interned, event: list[Field], packet: int) -> Iterator[tuple[int, str, float]]:
        """GPU, name and value of samples of counters (GpuCounterEvent)."""
        found = dict(event)
        known = interned.get(GPU_COUNTERS, found.get(4, 0), packet) or {}
        gpu = signed(found.get(3, known.get(3, 0)))
        for number, value in fields(known.get(2, b"") or found.get(1, b"")):
            counter = last(value) if number == 1 else {}
            if 2 in counter:
                self._counters[gpu, counter.get(1, 0)] = self._counters[-1, counter.get(1, 0)] = text(counter[2])
        for number, value in event:
            sample = last(value) if number == 2 else {}
            if 2 in sample or 3 in sample:
                id_ = sample.get(1, 0)
                name = self._counters.get((gpu, id_)) or self._counters.get((-1, id_), f"counter {id_}")
                yield gpu, name, double(sample[3]) if 3 in sample else signed(sample[2])

    # -- when all is read

    def problems(self, file: str) -> Iterator[Problem]:
        """What is wrong with the trace, and what of it is not followed."""
        packets = self._packets
        if packets.fault and not self.fault:
            yield Problem(Severity.ERROR, f"The trace {packets.fault}.", "All events before are shown.", file=file,
                          offset=packets.offset, lost=1)  # fmt: skip
        # which tell what has no begin or end
        assert self.pairs
        unknown = sum(each.unknown for each in {id(state.interned): state.interned for state in self.states}.values())
        found = self._defects + Counter(clocks=self._clocks.unknown, unknown=unknown)
        for kind, (severity, what, done) in _LINES.items():
            if count := found[kind]:
                yield Problem(severity, what, done, file=file, count=count, lost=severity is Severity.ERROR and count)
        for what, count in sorted(self._not_followed.items()):
            yield Problem(Severity.NOTE, f"Packets with {what}.", "They are not followed.", file=file, count=count)

    @property
    def flows(self) -> tuple[I64, I64]:
        """Slots that flows join: each to the one before, by time, until the flow ends."""
        flow, time, number, ends = (self._flows.column(key) for key in ("flow", "time", "number", "ends"))
        order = np.lexsort((ends, time, flow))
        first, second = order[:-1], order[1:]
        joined = (flow[first] == flow[second]) & (ends[first] == 0)
        return number[first[joined]], number[second[joined]]

    @property
    def waits(self) -> tuple[I64, I64]:
        """Slots of the work that other work waits for, and of that."""
        ids, slots, wanted, waiting = (each.column(key) for each in (self._ids, self._waits) for key in ("id", "slot"))
        order = np.argsort(ids, kind="stable")
        place = np.searchsorted(ids[order], wanted, "right") - 1
        known = np.flatnonzero((place >= 0) & (np.append(ids[order], 0)[place] == wanted))
        return slots[order[place[known]]], waiting[known]

    @cached_property
    def pairs(self) -> tuple[I64, I64, I64]:
        """Slots of slices with a begin and an end, their lengths, and slots of what their ends tell (below 0: nothing).

        An end ends the innermost slice, in the order of their times. At one time they are in the order of the file, but
        where it has others between them ends come first: some recorders write all begins before all ends.
        """
        nest, time, number = (self._edges.take(key) for key in ("nest", "time", "number"))
        by_nest = np.argsort(nest, kind="stable")
        nest, time, number = nest[by_nest], time[by_nest], number[by_nest]
        order = np.lexsort((time, nest))
        first = np.flatnonzero(np.append(True, np.diff(nest[order]) | np.diff(time[order]))[: len(order)])
        size = np.diff(first, append=len(order))
        apart = np.repeat(order[first + size - 1] - order[first] >= size, size)
        order = order[np.lexsort((apart & (number[order] >= 0), np.repeat(first, size)))]
        nest, time, number = nest[order], time[order], number[order]
        # how many slices are open behind each, counted on below 0 where there is none to end
        base = np.cumsum(np.append(0, np.diff(nest) != 0)[: len(nest)]) * -2 * len(nest)
        depth = np.cumsum(np.where(number >= 0, 1, -1))
        starts = np.flatnonzero(np.append(True, np.diff(nest) != 0)[: len(nest)])
        before = np.append(0, depth)[starts]
        depth = depth - np.repeat(before, np.diff(starts, append=len(nest))) + base
        least = np.minimum.accumulate(np.minimum(depth, base))
        alone = np.append(base[:1], np.where(np.diff(nest) != 0, base[1:], least[:-1]))[: len(nest)] > least
        self._defects["ends"] += int(alone.sum())
        kept = np.flatnonzero(~alone)
        level = (depth - least)[kept] + (number[kept] < 0)
        order = kept[np.lexsort((level, base[kept]))]
        begins = np.flatnonzero(number[order] >= 0)
        ends = np.append(order, -1)[begins + 1]
        same = (ends >= 0) & (number[ends] < 0) & (nest[ends] == nest[order[begins]]) if len(nest) else ends >= 0
        begin = order[begins]
        self._defects["open"] += int((~same).sum())
        until = np.where(same, time[ends], self._latest) if len(nest) else ends
        return number[begin], until - time[begin], np.where(same, -2 - number[ends], -1) if len(nest) else ends

    @property
    def lengths(self) -> I64:
        """Lengths of slices with a begin and an end, by slot; 0 of others."""
        found = np.zeros(self._count, np.int64)
        found[self.pairs[0]] = self.pairs[1]
        return found
