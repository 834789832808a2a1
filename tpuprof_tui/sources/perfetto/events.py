"""Events of a piece of a trace: track events, and work of GPUs, each with its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

import msgspec
import numpy as np

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.uniques import distinct
from tpuprof_tui.sources.chrome.columns import Codes

from .packets import COUNTERS, EVENT, EVENTS, FLAGS, SEQUENCE, STAGE, Piece
from .state import CONTEXTS, DEEPEST, NAMES, NOTE_NAMES, STRINGS, States, as_json
from .wire import I64, DamagedError, Fields, Mask, signed, text

#: Types of track events, and by the phases that older ones have.
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
PHASES: Final = {"B": BEGIN, "E": END, "b": BEGIN, "e": END, **dict.fromkeys("IinX", INSTANT)}
_NEEDS_STATE: Final = 2
#: Fields of events, of debug annotations (4) and of older events (6) that are numbers, and those that are bytes.
_TYPES: Final = {EVENT: ((1, 9, 11, 16, 30, 44), (4, 6)), STAGE: ((1, 2, 3, 4, 5, 11, 13, 14, 19, 20), (6, 7, 17, 21)),
                 COUNTERS: ((3, 4), (1, 2)), 4: ((1, 2, 3, 4, 5, 7, 17), (6, 9, 10, 11, 12)),
                 6: ((1, 2, 3, 6, 10, 11, 18, 19), ())}  # fmt: skip
#: Fields of arguments of work; extra ones as PyTorch names them in Chrome traces, and begins of numbers and lists.
_EXTRA, _LAUNCH = 6, 21
_TITLES: Final = {"device id": "device", "context id": "context", "stream id": "stream"}
_STREAM, _BEGINS = ',"stream":', tuple(b"%c" % each for each in b"-0123456789[")
#: Most characters of the arguments of an event, and most arguments and bytes whose characters are not counted.
_LONGEST, _SEVERAL, _MUCH = 1 << 20, 16, 1 << 16
_MEMORY: Final = "[memory]"


class Events:
    """The events of a kind in a piece.

    Attributes:
        packet, state: Packets of the piece that hold them, ascending, and numbers of their states.
        fields: Their fields.
        slot: Number of what has arguments among all that do in the piece; -1: it has none.
    """

    def __init__(self, piece: Piece, kind: int, events: Fields, state: I64) -> None:
        rows = np.flatnonzero(events.number == kind)
        self.packet, self.state = events.owner[rows], state[rows]
        self.size, begin = events.value[rows], events.at[rows]
        self.places = begin.tolist(), (begin + self.size).tolist()
        self.fields, damaged = piece.data.fields(begin, begin + self.size)
        self.slot = np.full(len(rows), -1, np.int64)
        damaged[self.fields.of_other_types(*_TYPES[kind])] = True
        piece.damaged[self.packet[damaged]] = True

    def __len__(self) -> int:
        return len(self.packet)

    def numbers(self, field: int, otherwise: Any = 0) -> I64:
        """The last number of a field of each event; those of others are ``otherwise``."""
        return self.fields.last(field, np.broadcast_to(np.asarray(otherwise, np.int64), len(self)))


class PieceEvents:
    """Track events, work and samples of counters of GPUs.

    Args:
        piece: Packets; those whose events cannot be decoded become damaged ones.
        states: States of sequences, which these packets have changed.
        titles: Codes of the names of debug annotations.

    Attributes:
        track, work, samples: The events.
        kind: Types of track events.
        memory: Which track events are PyTorch's instants of memory, whose arguments are columns alone.
        older: What older track events have instead of types, by row.
        stream: Streams of work, as JSON, by row.
        count: Number of what has arguments: work, slices, instants, and ends of slices with arguments.
        needed, unknown: Numbers of packets that need a state that was lost, and of ids that no interned text has.
    """

    def __init__(self, piece: Piece, states: States, titles: Codes) -> None:
        self.piece, self.states, self._titles = piece, states, titles
        self.unknown, before = 0, -1
        while before < (before := int(piece.damaged.sum())):
            # what one part of a packet is damaged in is left out of all
            self._decode()
        self._find_names()
        self.kind, self.older = self.track.numbers(9), dict[int, dict[int, int]]()
        columns = self._older[0].owner[self._older[1].owner], self._older[1].number, self._older[1].value
        for row, number, value in zip(*map(np.ndarray.tolist, columns), strict=True):
            self.older.setdefault(row, {})[number] = value
        for row, older in self.older.items():
            self.kind[row] = self.kind[row] or PHASES.get(chr(older.get(2, 0) & 127), 0)
        self.memory = (self.kind == INSTANT) & self._is_memory()
        shown = ((self.kind == BEGIN) | (self.kind == INSTANT)) & ~self.memory
        rows = np.flatnonzero(shown | ((self.kind == END) & (np.diff(self._first)[: len(self.track)] > 0)))
        packets = np.concatenate([self.track.packet[rows], self.work.packet])
        #: Row of what has each argument: of work behind those of track events.
        self._row = np.concatenate([rows, np.arange(len(self.work)) + len(self.track)])[np.argsort(packets)]
        self.count = len(packets)
        slot = np.full(len(self.track) + len(self.work), -1, np.int64)
        slot[self._row] = np.arange(self.count)
        self.track.slot, self.work.slot = slot[: len(self.track)], slot[len(self.track) :]
        self._of_work, self.stream = self._arguments()

    def _decode(self) -> None:
        piece = self.piece
        found = piece.fields.of(*EVENTS)
        place = np.full(len(piece), -1, np.int64)
        place[found.owner] = np.arange(len(found.owner))
        found = found[place[(place >= 0) & ~piece.damaged]]
        none = np.zeros(len(piece), np.int64)
        state = self.states.at(piece.fields.last(SEQUENCE, none)[found.owner], piece.first + found.owner)
        used, place = distinct(state)
        sound = np.array([self.states[each].complete for each in used.tolist()], np.bool_)[place]
        sound |= piece.fields.last(FLAGS, none)[found.owner] & _NEEDS_STATE == 0
        self.needed = int((~sound).sum())
        found, state = found[sound], state[sound]
        self.track, self.work, self.samples = (Events(piece, kind, found, state) for kind in (EVENT, STAGE, COUNTERS))
        self._notes, self._note_fields = self._inner(4)
        self._older = self._inner(6)
        # values in values: what is damaged in one belongs to the annotation
        deep, event = self._note_fields.of(11, 12), self._notes.owner
        for _ in range(DEEPEST):
            if not len(deep.owner):
                break
            event = event[deep.owner]
            found, damaged = piece.data.fields(deep.at, deep.at + deep.value)
            damaged[found.of_other_types(*_TYPES[4])] = True
            piece.damaged[self.track.packet[event[damaged]]] = True
            deep = found.of(11, 12)

    def _inner(self, field: int) -> tuple[Fields, Fields]:
        """Fields of track events that hold messages, and the fields of these."""
        outer, track = self.track.fields.of(field), self.track
        found, damaged = self.piece.data.fields(outer.at, outer.at + outer.value)
        damaged[found.of_other_types(*_TYPES[field])] = True
        self.piece.damaged[track.packet[outer.owner[damaged]]] = True
        return outer, found

    def texts_of(self, group: Events, fields: Fields, table: int, codes: Codes, *, count: bool = True) -> I64:
        """Codes of the texts that fields of events hold, or the ids of."""
        code, is_id = np.zeros(len(fields.owner), np.int64), fields.at < 0
        ids = fields[is_id]
        told = self.states.texts(table, group.state[ids.owner], ids.value, group.packet[ids.owner] + self.piece.first,
                                 lambda text: -1 if text is None else codes[text])  # fmt: skip
        unknown = told < 0
        if unknown.any():
            self.unknown += int(unknown.sum()) * count
            told[unknown] = codes["unknown"]
        code[is_id] = told
        code[~is_id] = [codes[text(each)] for each in self.piece.data.texts(fields[~is_id])]
        return code

    def _is_memory(self) -> Mask:
        """Which track events are named as PyTorch names instants of memory."""
        named, found = self.track.fields.of(10, 23), np.zeros(len(self.track), np.bool_)
        codes = Codes()
        code = self.texts_of(self.track, named[named.at < 0], NAMES, codes, count=False)
        found[named.owner[named.at < 0]] = code == codes.get(_MEMORY, -1)
        found[named.owner[self.piece.data.equal(named, _MEMORY.encode())]] = True
        return found

    # -- debug annotations

    def _find_names(self) -> None:
        """Names and integers of debug annotations, and where those of each track event begin."""
        notes, found = self._notes, self._note_fields
        self._first = np.searchsorted(notes.owner, np.arange(len(self.track) + len(self.work) + 1))
        #: Names: texts, or ids of them; the codes of these.
        self._named, integers = found.of(1, 10), found.of(3, 4)
        known = self._codes_of_notes(found.of(17), STRINGS)
        self._title = np.full(len(notes.owner), -1, np.int64)
        ids = self._named[self._named.at < 0]
        self._title[ids.owner] = codes = self._codes_of_notes(ids, NOTE_NAMES)
        self.unknown += int((codes < 0).sum() + (known < 0).sum())
        self.value = np.zeros(len(notes.owner), np.int64)
        self.value[integers.owner] = integers.value
        self._is_integer = np.zeros(len(notes.owner), np.bool_)
        self._is_integer[integers.owner[(integers.number == 4) | (integers.value >= 0)]] = True
        self._is_integer &= np.bincount(found.owner, minlength=len(notes.owner)) == 2
        self._is_integer &= np.bincount(self._named.owner, minlength=len(notes.owner)) == 1

    def _codes_of_notes(self, ids: Fields, table: int) -> I64:
        """Codes of interned texts that debug annotations refer to; -1: there is none."""
        row = self._notes.owner[ids.owner]
        return self.states.texts(table, self.track.state[row], ids.value, self._number(self.track, row),
                                 lambda found: -1 if found is None else self._titles[found])  # fmt: skip

    def _notes_of(self, title: str) -> I64:
        """The debug annotations of a name."""
        texts = self._named.owner[self.piece.data.equal(self._named, title.encode())]
        code = self._titles.get(title)
        return texts if code is None else np.append(texts, np.flatnonzero(self._title == code))

    def has_note(self, title: str) -> I64:
        """Rows of the track events with a debug annotation of a name."""
        return self._notes.owner[self._notes_of(title)]

    def integers(self, *titles: str) -> tuple[I64, I64]:
        """Integers of debug annotations of a name, of several the first that a track event has.

        Returns:
            The integers by track event, missing of others; and rows of events that have another value of these names.
        """
        values, others = np.full(len(self.track), INT_MISSING), [np.zeros(0, np.int64)]
        for title in reversed(titles):
            notes = self._notes_of(title)
            others.append(self._notes.owner[notes[~self._is_integer[notes]]])
            notes = notes[self._is_integer[notes]]
            values[self._notes.owner[notes]] = self.value[notes]
        return values, np.concatenate(others)

    def long(self) -> I64:
        """Rows of track events whose arguments are too long."""
        rows = np.flatnonzero((np.diff(self._first)[: len(self.track)] > _SEVERAL) | (self.track.size > _MUCH))
        rows = rows[self.track.slot[rows] >= 0]
        return np.array([row for row, found in zip(rows.tolist(), self.texts(self.track.slot[rows]), strict=True)
                         if found == "{}" and self._first[row + 1] > self._first[row]], np.int64)  # fmt: skip

    # -- arguments

    def texts(self, slots: Sequence[int] | I64) -> list[str]:
        """JSON objects of arguments; of those that are too long there are none."""
        raw, track, notes, rows = self.piece.data.raw, self.track, self._notes, self._row[np.asarray(slots, np.int64)]
        first, count = self._first[rows], self._first[rows + 1] - self._first[rows]
        ends = np.cumsum(count)
        note = np.arange(int(count.sum())) + np.repeat(first - ends + count, count)
        state, keys, members = track.state[notes.owner[note]], _Keys(), list[str]()
        interned = {each: self.states[each].interned for each in distinct(state)[0].tolist()}
        columns = (self._is_integer[note], self.value[note], *self._name_places[:, note], notes.at[note],
                   notes.at[note] + notes.value[note], state, self._number(track, notes.owner[note]))  # fmt: skip
        for is_integer, value, begin, end, at, behind, one, packet in zip(
            *map(np.ndarray.tolist, columns), strict=True
        ):
            members.append(f"{keys[raw[begin:end]]}{value}" if is_integer and begin >= 0
                           else interned[one].note(raw[at:behind], packet))  # fmt: skip
        found, low, submitted = [], 0, self._submitted
        for row, high in zip(rows.tolist(), ends.tolist(), strict=True):
            own = ",".join(members[low:high]) if row < len(track) else self._of_work[row - len(track)]
            if row in submitted and not any(each.startswith('"correlation":') for each in members[low:high]):
                own += f',"correlation":{submitted[row]}' if own else f'"correlation":{submitted[row]}'
            found.append(f"{{{own}}}" if len(own) <= _LONGEST else "{}")
            low = high
        return found

    @cached_property
    def _name_places(self) -> I64:
        """Begins and ends of the names of debug annotations; -1: it is an id."""
        found = np.full((2, len(self._notes.owner)), -1, np.int64)
        found[:, self._named.owner] = self._named.at, self._named.at + self._named.value
        return found

    @cached_property
    def _submitted(self) -> dict[int, int]:
        """Ids of the work that track events submitted, by row."""
        found = self.track.fields.of(3000)
        found = found[found.at >= 0]
        inner, _ = self.piece.data.fields(found.at, found.at + found.value)
        inner = self.piece.data.numbers(inner.of(1))[::-1]
        return dict(zip(found.owner[inner.owner].tolist(), inner.value.tolist(), strict=True))

    def correlations(self) -> tuple[I64, I64]:
        """Correlations of track events, and rows of those whose is no integer."""
        values, others = self.integers("correlation", "correlation_id", "corr_id")
        rows, submitted = (np.array(list(each), np.int64) for each in (self._submitted, self._submitted.values()))
        missing = values[rows] == INT_MISSING
        values[rows[missing]] = submitted[missing]
        return values, others

    def _arguments(self) -> tuple[list[str], dict[int, str]]:
        """Arguments of work as members of JSON objects, later ones of a name hold; and streams, as JSON, by row."""
        work, data = self.work, self.piece.data
        parts = work.fields.of(_EXTRA, _LAUNCH)
        members: Any = np.full(len(parts.owner), "", object)
        extra = np.flatnonzero(parts.number == _EXTRA)
        inner, damaged = data.fields(parts.at[extra], parts.at[extra] + parts.value[extra])
        self.piece.damaged[work.packet[parts.owner[extra[damaged]]]] = True
        words = np.full((2, len(extra)), b"", object)
        for number, column in enumerate(words, 1):
            told = inner.of(number)
            told = told[told.at >= 0]
            column[told.owner] = data.texts(told)
        keys, values = _Keys(",", _TITLES), _Values()
        key, value = (list(map(of.__getitem__, each.tolist())) for of, each in zip((keys, values), words, strict=True))
        members[extra] = list(map(str.__add__, key, value))
        stream = {row: value[place] for place, row in enumerate(parts.owner[extra].tolist()) if key[place] == _STREAM}
        members = members.tolist()
        launches = np.flatnonzero(parts.number == _LAUNCH)
        for place, launch in zip(launches.tolist(), data.texts(parts[launches]), strict=True):
            row = int(parts.owner[place])
            try:
                members[place] = self.states[int(work.state[row])].interned.launch(launch, self._number(work, row))
            except (DamagedError, TypeError, ValueError):
                self.piece.damaged[work.packet[row]] = True
        first = np.searchsorted(parts.owner, np.arange(len(work) + 1)).tolist()
        device, id_, context = (work.numbers(field) for field in (11, 1, 5))
        found = [f'"device":{card},"correlation":{one}{"".join(members[begin:end])}' for card, one, begin, end in
                 zip(device.tolist(), id_.tolist(), first, first[1:], strict=False)]  # fmt: skip
        for row in np.flatnonzero(context).tolist():
            told = self.states[int(work.state[row])].interned.get(CONTEXTS, int(context[row]), self._number(work, row))
            if told:
                found[row] = f'"process_id":{signed(told.get(2, 0))},{found[row]}'
        return found, stream

    def _number(self, group: Events, row: Any) -> Any:
        """Numbers of the packets of events in the trace."""
        return self.piece.first + group.packet[row]


class _Keys(dict[bytes, str]):
    """Names as keys of JSON behind a text; ``others``: names that are shown instead of some."""

    def __init__(self, before: str = "", others: Mapping[str, str] = MappingProxyType({})) -> None:
        self._before, self._others = before, others

    def __missing__(self, name: bytes) -> str:
        title = text(name)
        found = self[name] = f"{self._before}{as_json(self._others.get(title, title))}:"
        return found


class _Values(dict[bytes, str]):
    """Values of ExtraData as JSON: numbers or lists if they are the texts of such."""

    def __missing__(self, word: bytes) -> str:
        try:
            if word.isdigit() and len(word) < 16 and word[:1] != b"0":
                found = word.decode()
            else:
                found = as_json(msgspec.json.decode(word)) if word[:1] in _BEGINS else as_json(text(word))
        except (msgspec.DecodeError, RecursionError):
            found = as_json(text(word))
        self[word] = found
        return found
