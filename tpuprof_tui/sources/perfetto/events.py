"""Events of a piece of a trace: track events, and work of GPUs, each with its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec
import numpy as np

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.uniques import distinct
from tpuprof_tui.sources.chrome.columns import Codes

from .packets import COUNTERS, EVENT, EVENTS, FLAGS, SEQUENCE, STAGE, Piece
from .state import CONTEXTS, NOTE_NAMES, STRINGS, States, as_json
from .wire import I64, DamagedError, Fields, last, numbers, signed, text

#: Types of track events, and by the phases that older ones have.
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
PHASES: Final = {"B": BEGIN, "E": END, "b": BEGIN, "e": END, **dict.fromkeys("IinX", INSTANT)}
_NEEDS_STATE: Final = 2
#: Fields of events, of work and of debug annotations that are numbers, and those that are bytes.
_TYPES: Final = {EVENT: ((1, 9, 11, 16, 30, 44), (4, 6)), STAGE: ((1, 2, 3, 4, 5, 11, 13, 14, 19, 20), (6, 7, 17, 21)),
                 COUNTERS: ((3, 4), (1, 2)), 0: ((1, 2, 3, 4, 5, 7, 17), (6, 9, 10, 11, 12))}  # fmt: skip
#: Fields of arguments of work; extra ones as PyTorch names them in Chrome traces, and begins of numbers and lists.
_EXTRA, _LAUNCH = 6, 21
_TITLES: Final = {"device id": "device", "context id": "context", "stream id": "stream"}
_BEGINS: Final = tuple("-0123456789[")
#: Most characters of the arguments of an event, and most arguments and bytes whose characters are not counted.
_LONGEST, _SEVERAL, _MUCH = 1 << 20, 16, 1 << 16


class Group:
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


class Events:
    """Track events, work and samples of counters of GPUs.

    Args:
        piece: Packets; those whose events cannot be decoded become damaged ones.
        states: States of sequences, which these packets have changed.
        titles: Codes of the names of debug annotations.

    Attributes:
        track, work, samples: The events.
        kind: Types of track events.
        older: What older track events have instead of types, by row.
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
        self.kind, self.older = self.track.numbers(9), dict[int, dict[int, Any]]()
        found = self.track.fields.of(6)
        for row, data in zip(found.owner.tolist(), piece.data.texts(found), strict=True):
            self.older[row] = legacy = last(data)
            self.kind[row] = self.kind[row] or PHASES.get(chr(legacy.get(2, 0) & 127), 0)
        has_notes = np.diff(self._first) > 0
        rows = np.flatnonzero((self.kind == BEGIN) | (self.kind == INSTANT) | ((self.kind == END) & has_notes))
        packets = np.concatenate([self.track.packet[rows], self.work.packet])
        #: Row of what has each argument: of work behind those of track events.
        self._row = np.concatenate([rows, np.arange(len(self.work)) + len(self.track)])[np.argsort(packets)]
        self.count = len(packets)
        slot = np.full(len(self.track) + len(self.work), -1, np.int64)
        slot[self._row] = np.arange(self.count)
        self.track.slot, self.work.slot = slot[: len(self.track)], slot[len(self.track) :]
        self.arguments = self._arguments()

    def _decode(self) -> None:
        piece = self.piece
        found = piece.fields.of(*EVENTS)
        place = np.full(len(piece), -1, np.int64)
        place[found.owner] = np.arange(len(found.owner))
        found = found[place[(place >= 0) & ~piece.damaged]]
        none = np.zeros(len(piece), np.int64)
        state = self.states.at(piece.fields.last(SEQUENCE, none)[found.owner], piece.first + found.owner)
        used, place = distinct(state)
        sound = np.array([self.states[each].sound for each in used.tolist()], np.bool_)[place]
        sound |= piece.fields.last(FLAGS, none)[found.owner] & _NEEDS_STATE == 0
        self.needed = int((~sound).sum())
        found, state = found[sound], state[sound]
        self.track, self.work, self.samples = (Group(piece, kind, found, state) for kind in (EVENT, STAGE, COUNTERS))
        self._notes = self.track.fields.of(4)
        self._note_fields, damaged = piece.data.fields(self._notes.at, self._notes.at + self._notes.value)
        damaged[self._note_fields.of_other_types(*_TYPES[0])] = True
        piece.damaged[self.track.packet[self._notes.owner[damaged]]] = True

    def texts_of(self, group: Group, found: Fields, table: int, codes: Codes) -> I64:
        """Codes of the texts that fields of events hold, or the ids of."""
        code, is_id = np.zeros(len(found.owner), np.int64), found.at < 0
        ids = found[is_id]
        told = self.states.texts(table, group.state[ids.owner], ids.value, group.packet[ids.owner] + self.piece.first,
                                 lambda text: -1 if text is None else codes[text])  # fmt: skip
        unknown = told < 0
        if unknown.any():
            self.unknown += int(unknown.sum())
            told[unknown] = codes["unknown"]
        code[is_id] = told
        code[~is_id] = [codes[text(each)] for each in self.piece.data.texts(found[~is_id])]
        return code

    # -- debug annotations

    def _find_names(self) -> None:
        """Names and numbers of debug annotations, and where those of each track event begin."""
        notes, found, track = self._notes, self._note_fields, self.track
        self._first = np.searchsorted(notes.owner, np.arange(len(track) + 1))
        #: Codes of names; and of integers the values, and which these are.
        self._title = np.full(len(notes.owner), -1, np.int64)
        for table, field in ((NOTE_NAMES, 1), (STRINGS, 17)):
            ids = found.of(field)
            event = notes.owner[ids.owner]
            code = self.states.texts(table, track.state[event], ids.value, track.packet[event] + self.piece.first,
                                     self._title_of if table == NOTE_NAMES else self._is_known)  # fmt: skip
            self.unknown += int((code < 0).sum())
            if table == NOTE_NAMES:
                self._title[ids.owner] = code
        texts = found.of(10)
        self._title[texts.owner] = [self._titles[each] for each in self.piece.data.texts(texts)]
        self.value = np.zeros(len(notes.owner), np.int64)
        integers = found.of(3, 4)
        self.value[integers.owner] = integers.value
        size = np.bincount(found.owner, minlength=len(notes.owner))
        self._is_integer = (size == 2) & (self._title >= 0)
        whole = np.zeros(len(notes.owner), np.bool_)
        whole[integers.owner[(integers.number == 4) | (integers.value >= 0)]] = True
        self._is_integer &= whole

    def _title_of(self, found: str | None) -> int:
        return -1 if found is None else self._titles[found.encode()]

    @staticmethod
    def _is_known(found: str | None) -> int:
        return -1 if found is None else 0

    def has_note(self, title: str) -> I64:
        """Rows of the track events with a debug annotation of a name."""
        return self._notes.owner[self._title == self._titles.get(title.encode(), -2)]

    def integers(self, *titles: str) -> tuple[I64, I64]:
        """Integers of debug annotations of a name, of several the first that a track event has.

        Returns:
            The integers by track event, missing of others; and rows of events that have another value of these names.
        """
        values, others = np.full(len(self.track), INT_MISSING), [np.zeros(0, np.int64)]
        for title in reversed(titles):
            named = self._title == self._titles.get(title.encode(), -2)
            values[self._notes.owner[named & self._is_integer]] = self.value[named & self._is_integer]
            others.append(self._notes.owner[named & ~self._is_integer])
        return values, np.concatenate(others)

    def long(self) -> I64:
        """Rows of track events whose arguments are too long."""
        rows = np.flatnonzero((np.diff(self._first) > _SEVERAL) | (self.track.size > _MUCH))
        rows = rows[self.track.slot[rows] >= 0]
        return np.array([row for row, found in zip(rows.tolist(), self.texts(self.track.slot[rows]), strict=True)
                         if found == "{}" and self._first[row + 1] > self._first[row]], np.int64)  # fmt: skip

    # -- arguments

    def texts(self, slots: Sequence[int] | I64) -> list[str]:
        """JSON objects of arguments; of those that are too long there are none."""
        raw, notes, first, found = self.piece.data.raw, self._notes, self._first.tolist(), []
        rows = self._row[slots].tolist()
        submitted = dict(zip(*(each.tolist() for each in self._submitted), strict=True))
        keys = [f"{as_json(text(each))}:" for each in self._titles]
        for row in rows:
            if row >= len(self.track):
                members = list(self.arguments[row - len(self.track)].values())
            else:
                interned = self.states[int(self.track.state[row])].interned
                packet, members = self.piece.first + int(self.track.packet[row]), []
                own = slice(first[row], first[row + 1])
                for at, size, title, is_integer, value in zip(
                    *(each[own].tolist() for each in (notes.at, notes.value, self._title, self._is_integer, self.value)),
                    strict=True,
                ):  # fmt: skip
                    members.append(f"{keys[title]}{value}" if is_integer else interned.note(raw[at : at + size], packet))
                if row in submitted and not any(each.startswith('"correlation":') for each in members):
                    members.append(f'"correlation":{submitted[row]}')
            found.append(f"{{{','.join(members)}}}" if sum(map(len, members)) <= _LONGEST else "{}")
        return found

    @cached_property
    def _submitted(self) -> tuple[I64, I64]:
        """Track events that submitted work, and the ids of this."""
        found = self.track.fields.of(3000)
        found = found[found.at >= 0]
        inner, _ = self.piece.data.fields(found.at, found.at + found.value)
        inner = inner.of(1)
        values = inner.value.copy()
        several = np.flatnonzero(inner.at >= 0)
        values[several] = [next(iter(numbers(each)), 0) for each in self.piece.data.texts(inner[several])]
        return found.owner[inner.owner], values

    def correlations(self) -> tuple[I64, I64]:
        """Correlations of track events, and rows of those whose is no integer."""
        values, others = self.integers("correlation", "correlation_id")
        rows, submitted = self._submitted
        missing = values[rows] == INT_MISSING
        values[rows[missing]] = submitted[missing]
        return values, others

    def _arguments(self) -> list[dict[str, str]]:
        """Arguments of work, as members of JSON objects by name."""
        work, data, found = self.work, self.piece.data, []
        extra, parts = self._extra(), work.fields.of(_EXTRA, _LAUNCH)
        first = np.searchsorted(parts.owner, np.arange(len(work) + 1)).tolist()
        pairs = list(zip(parts.number.tolist(), parts.at.tolist(), (parts.at + parts.value).tolist(), strict=True))
        columns = (work.numbers(11), work.numbers(1), work.numbers(5), work.packet, work.state)
        for row, (device, id_, context, packet, state) in enumerate(zip(*map(np.ndarray.tolist, columns), strict=True)):
            arguments, interned = {"device": f'"device":{device}'}, self.states[state].interned
            try:
                for number, begin, end in pairs[first[row] : first[row + 1]]:
                    if number == _EXTRA:
                        key, member = next(extra)
                        arguments[key] = member
                    else:
                        arguments |= interned.launch(data.raw[begin:end], self.piece.first + packet)
            except (DamagedError, TypeError, ValueError):
                self.piece.damaged[packet] = True
            told = interned.get(CONTEXTS, context, self.piece.first + packet)
            if told and "process_id" not in arguments:
                arguments["process_id"] = f'"process_id":{signed(told.get(2, 0))}'
            arguments.setdefault("correlation", f'"correlation":{id_}')
            found.append(arguments)
        return found

    def _extra(self) -> Iterator[tuple[str, str]]:
        """Names and members of messages ExtraData: the value is a number or list if it is the text of one."""
        parts = self.work.fields.of(_EXTRA)
        inner, damaged = self.piece.data.fields(parts.at, parts.at + parts.value)
        self.piece.damaged[self.work.packet[parts.owner[damaged]]] = True
        words: list[list[bytes]] = []
        for number in (1, 2):
            told = inner.of(number)
            told = told[told.at >= 0]
            words.append([b""] * len(parts.owner))
            for owner, word in zip(told.owner.tolist(), self.piece.data.texts(told), strict=True):
                words[-1][owner] = word
        titles: dict[bytes, tuple[str, str]] = {}
        values: dict[bytes, str] = {}
        for name, word in zip(*words, strict=True):
            if name not in titles:
                title = _TITLES.get(text(name), text(name))
                titles[name] = title, f"{as_json(title)}:"
            title, key = titles[name]
            if word.isdigit() and len(word) < 16 and word[0] != 48:
                yield title, key + word.decode()
            else:
                if word not in values:
                    values[word] = _value_of(text(word))
                yield title, key + values[word]


def _value_of(word: str) -> str:
    try:
        return as_json(msgspec.json.decode(word) if word[:1] in _BEGINS else word)
    except (msgspec.DecodeError, RecursionError):
        return as_json(word)
