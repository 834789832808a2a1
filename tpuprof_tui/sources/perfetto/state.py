"""What packets refer to: interned texts, clocks and defaults of their sequence, as they were where a packet stands."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.model.uniques import distinct, distinct_together

from .wire import I64, DamagedError, Mask, double, fields, last, signed, text

#: Deepest nesting of values that is followed; longest interned text, and most characters of those of an event.
DEEPEST, _LONGEST, _MOST = 32, 1 << 16, 1 << 20
#: Debug annotations of up to so many bytes are kept decoded, as many of them.
SHORT, MOST_KEPT = 256, 1 << 16
#: Most states of sequences; every one is kept.
_MOST_STATES: Final = 1 << 17
#: Clock of the trace unless it says another one (BOOTTIME), and ids of clocks that a sequence has for itself.
_BOOTTIME, _OF_SEQUENCE = 6, range(64, 128)
#: Times of a larger magnitude, ns, are damaged.
MOST_TIME: Final = 1 << 61
_UNSIGNED: Final = (1 << 64) - 1
#: Arguments of launches as PyTorch names them in Chrome traces, and their values by field.
_TITLES: Final = {"registers_per_thread": "registers per thread", "shared_mem_dynamic": "shared memory"}
_PARAMETERS: Final[dict[int, Callable[[Any], Any]]] = {3: signed, 4: int, 5: double, 6: text}
# fields of InternedData
CATEGORIES, NAMES, NOTE_NAMES, SPECIFICATIONS, STRINGS, KERNELS, PARAMETERS = 1, 2, 3, 24, 29, 1000, 1001
CONTEXTS, GPU_COUNTERS = 23, 47
_TEXTS: Final = frozenset((CATEGORIES, NAMES, NOTE_NAMES, SPECIFICATIONS, STRINGS, KERNELS, PARAMETERS))


def as_json(value: Any) -> str:
    """A text or number as JSON; a number that is none as null."""
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "null"
    return msgspec.json.encode(value).decode()


class Interned:
    """What a sequence interned since it was last cleared.

    Attributes:
        values: Last values of counters that count from the one before, by track.
        unknown: Number of names of arguments of work that were not told.
    """

    def __init__(self) -> None:
        #: Texts by id, by field of InternedData; of contexts and counters of GPUs their fields.
        self._tables: dict[int, dict[int, Any]] = {}
        #: Of ids that were told anew numbers of packets, and what they told.
        self._told: dict[tuple[int, int], tuple[list[int], list[Any]]] = {}
        self.values: dict[int, float] = {}
        self.unknown = 0
        #: Debug annotations and arguments of launches, by their bytes.
        self._notes: dict[bytes, str] = {}
        self._launches: dict[bytes, str] = {}

    def __getstate__(self) -> Any:
        return self.__dict__ | {"_notes": {}, "_launches": {}}

    def add(self, data: bytes, packet: int) -> None:
        """Takes a message InternedData of a packet."""
        for number, entry in fields(data):
            if number in _TEXTS or number in (CONTEXTS, GPU_COUNTERS):
                found = last(entry)
                # field 3 holds demangled names of kernels
                name = found.get(3 if number == KERNELS and 3 in found else 2, b"")
                value, iid = text(name)[:_LONGEST] if number in _TEXTS else found, found.get(1, 0)
                if (known := self._tables.setdefault(number, {}).setdefault(iid, value)) != value:
                    packets, values = self._told.setdefault((number, iid), ([-1], [known]))
                    packets.append(packet)
                    values.append(value)
                    self._tables[number][iid] = value

    def cleared(self) -> Interned:
        """What holds nothing: this if it does."""
        return Interned() if self._tables or self.values else self

    def is_redefined(self, table: int, iid: int) -> bool:
        """Whether an id stood for something else before."""
        return (table, iid) in self._told

    def get(self, table: int, iid: int, packet: int) -> Any:
        """What an id stood for where a packet stands; None if nothing was told."""
        if self._told and (table, iid) in self._told:
            packets, values = self._told[table, iid]
            return values[bisect_right(packets, packet) - 1]
        return self._tables[table].get(iid) if table in self._tables else None

    def note(self, data: bytes, packet: int) -> str:
        """A debug annotation as a member of a JSON object; the value is null if it cannot be decoded."""
        if self._told:
            # what was kept may be of another time
            self._notes.clear()
        found = self._notes.get(data)
        if found is None:
            try:
                name, value = self._note(data, packet, [0], 0)
            except (DamagedError, TypeError, AttributeError, ValueError):
                name, value = self._name(data, packet), "null"
            found = f"{as_json(name)}:{value}"
            if len(self._notes) < MOST_KEPT and len(data) <= SHORT:
                self._notes[data] = found
        return found

    def launch(self, data: bytes, packet: int) -> str:
        """Arguments of a message ComputeKernelLaunch as PyTorch names them: members of JSON, a comma before each."""
        if self._told:
            self._launches.clear()
        if data in self._launches:
            return self._launches[data]
        found = []
        for number, value in fields(data):
            inner = last(value)
            if number in (1, 2):
                sizes = as_json([inner.get(axis, 1) for axis in (1, 2, 3)])
                found.append(f'"{"grid" if number == 1 else "block"}":{sizes}')
            elif number == 3:
                named = text(inner[2]) if 2 in inner else self.get(PARAMETERS, inner.get(1, 0), packet)
                self.unknown += named is None
                named = named or "unknown"
                values = (of(inner[each]) for each, of in _PARAMETERS.items() if each in inner)
                found.append(f"{as_json(_TITLES.get(named, named))}:{as_json(next(values, None))}")
        joined = "".join(f",{each}" for each in found)
        if len(data) <= SHORT and len(self._launches) < MOST_KEPT:
            self._launches[data] = joined
        return joined

    def _name(self, data: bytes, packet: int) -> str:
        found = last(data)
        return text(found[10]) if 10 in found else self.get(NOTE_NAMES, found.get(1, 0), packet) or ""

    def _note(self, data: bytes, packet: int, spent: list[int], depth: int) -> tuple[str, str]:
        """Name and value, as JSON, of a debug annotation; ``spent``: characters of those around it."""
        name, value = "", "null"
        members: list[str] = []
        items: list[str] = []
        for number, each in fields(data):
            if number == 1:
                found = self.get(NOTE_NAMES, each, packet)
                name = f"argument {each}" if found is None else found
            elif number == 10:
                name = text(each)
            elif number == 17:
                value = as_json(self.get(STRINGS, each, packet) or "unknown")
            elif number in _VALUES:
                value = _VALUES[number](each)
            elif number in (11, 12) and depth < DEEPEST:
                key, inner = self._note(each, packet, spent, depth + 1)
                (items if number == 12 else members).append(inner if number == 12 else f"{as_json(key)}:{inner}")
        spent[0] += len(name) + len(value)
        if spent[0] > _MOST:
            raise DamagedError
        return name, f"{{{','.join(members)}}}" if members else f"[{','.join(items)}]" if items else value


def _json(value: bytes) -> str:
    try:
        msgspec.json.decode(value)
        return value.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return as_json(text(value))


#: Values of debug annotations as JSON, by field.
_VALUES: Final[dict[int, Callable[[Any], str]]] = {
    2: lambda value: "true" if value else "false",
    3: lambda value: str(int(value)),
    4: lambda value: str(signed(value)),
    5: lambda value: as_json(double(value)),
    6: lambda value: as_json(text(value)),
    7: lambda value: f'"0x{value:x}"',
    9: _json,
}


class State(Struct):
    """State of a sequence of packets, from one of them on."""

    interned: Interned  #: What it interned
    complete: bool = True  #: Whether no packet was lost since it was last cleared
    #: track, clock, counters: What packets have unless they say otherwise; 0: none. Uuids of extra counters by the
    #: field that holds them.
    track: int = 0
    clock: int = 0
    counters: dict[int, list[int]] = {}
    #: thread, reference: Process and thread of older events; time that is told with them, ns, until it is used.
    thread: tuple[int, int] = (0, 0)
    reference: list[int] = []


class States:
    """All states of the sequences of a trace, by number."""

    def __init__(self) -> None:
        self._every: list[State] = []
        #: Of each sequence numbers of packets from which on it has states, and numbers of these.
        self._of: dict[int, tuple[list[int], list[int]]] = {}
        #: Numbers of packets that cannot be decoded.
        self.damaged = set[int]()

    def __getitem__(self, number: int) -> State:
        return self._every[number]

    def __iter__(self) -> Iterator[State]:
        return iter(self._every)

    def latest(self, sequence: int) -> State:
        """The last state of a sequence."""
        if sequence not in self._of:
            self._of[sequence] = [-1], [len(self._every)]
            self._every.append(State(Interned()))
        return self[self._of[sequence][1][-1]]

    def has(self, sequence: int) -> bool:
        """Whether a sequence has a state."""
        return sequence in self._of

    def change(self, sequence: int, packet: int, **changes: Any) -> None:
        """Gives a sequence another state from a packet on.

        Raises:
            DamagedError: There are more than any recorder tells.
        """
        found = replace(self.latest(sequence), **changes)
        if found == self.latest(sequence):
            return
        if len(self._every) > _MOST_STATES:
            raise DamagedError
        packets, places = self._of[sequence]
        if packets[-1] == packet:
            self._every[places[-1]] = found
        else:
            packets.append(packet)
            places.append(len(self._every))
            self._every.append(found)

    def at(self, sequence: I64, packet: I64) -> I64:
        """Numbers of the states of sequences where packets stand."""
        found = np.zeros(len(sequence), np.int64)
        every, place = distinct(sequence)
        for number, each in enumerate(every.tolist()):
            self.latest(each)
            rows = np.flatnonzero(place == number) if len(every) > 1 else slice(None)
            packets, places = self._of[each]
            found[rows] = np.array(places)[np.searchsorted(packets, packet[rows], "right") - 1]
        return found

    def texts(self, table: int, state: I64, iid: I64, packet: I64, code_of: Callable[[Any], int]) -> I64:
        """Codes of the interned texts of ids; ``code_of``: makes a code of a text, or of None."""
        group, count = distinct_together(state, iid)
        row = np.zeros(count, np.int64)
        row[group[::-1]] = np.arange(len(group))[::-1]
        codes = np.zeros(count, np.int64)
        anew = []
        # in the order of their first use
        order = np.argsort(row)
        columns = (order, *(each[row[order]] for each in (state, iid, packet)))
        for number, one, id_, at in zip(*map(np.ndarray.tolist, columns), strict=True):
            interned, id_ = self[one].interned, id_ & _UNSIGNED
            codes[number] = code_of(interned.get(table, id_, at))
            if interned.is_redefined(table, id_):
                anew.append(number)
        found: I64 = codes[group]
        for place in np.flatnonzero(np.isin(group, anew)).tolist() if anew else ():
            interned = self[int(state[place])].interned
            found[place] = code_of(interned.get(table, int(iid[place]) & _UNSIGNED, int(packet[place])))
        return found


class Clock(Struct):
    """A clock whose times, in units of ``unit`` ns, are ``offset`` ns before those of the trace.

    ``last``: of a clock whose times count from the one before: the last one, ns; None: they do not.
    """

    offset: int
    unit: int = 1
    last: int | None = None


class Clocks:
    """The clocks that snapshots relate to that of the trace.

    ``unknown``: number of times of a clock that no snapshot before related to it.
    """

    def __init__(self) -> None:
        self._main, self.unknown = _BOOTTIME, 0
        #: Numbers of packets from which on clocks, or sequences' clocks, are known, and how.
        self._known: defaultdict[tuple[int, int], tuple[list[int], list[Clock]]] = defaultdict(lambda: ([], []))

    def snapshot(self, sequence: int, packet: int, data: bytes) -> None:
        """Takes a message ClockSnapshot of a packet."""
        if not self._known:
            self._main = signed(last(data).get(2, 0)) or self._main
            self._add(sequence, packet, self._main, Clock(0))
        found = [last(value) for number, value in fields(data) if number == 1]
        times = [(each.get(1, 0), each.get(2, 0) * (each.get(4) or 1), each) for each in found]
        # of clocks that none relates to the trace's the first is taken for it
        zeros = [time + self._known[0, clock][1][-1].offset for clock, time, _ in times if (0, clock) in self._known]
        zero = zeros[0] if zeros else times[0][1] if times else 0
        for clock, time, each in times:
            if clock != self._main:
                self._add(sequence, packet, clock, Clock(zero - time, each.get(4) or 1, time if each.get(3) else None))

    def _add(self, sequence: int, packet: int, clock: int, known: Clock) -> None:
        packets, clocks = self._known[_key(sequence, clock)]
        packets.append(packet)
        clocks.append(known)

    def times(self, sequence: I64, packet: I64, time: I64, clock: I64) -> I64:
        """Times of packets, ns on the trace's clock; those out of range are `MOST_TIME`."""
        rows = np.flatnonzero((clock != 0) & (clock != self._main))
        group, count = distinct_together(sequence[rows], clock[rows])
        for number in range(count):
            own = rows[group == number]
            key = _key(int(sequence[own[0]]), int(clock[own[0]]))
            packets, clocks = self._known.get(key, ([], []))
            place = np.searchsorted(np.array(packets, np.int64), packet[own], "right") - 1
            self.unknown += int((place < 0).sum())
            for version in distinct(place[place >= 0])[0].tolist():
                these = own[place == version]
                time[these] = _on_trace(clocks[version], time[these])
        return time


def _key(sequence: int, clock: int) -> tuple[int, int]:
    return (1 + sequence if clock in _OF_SEQUENCE else 0), clock


def _on_trace(clock: Clock, time: I64) -> I64:
    about = time.astype(np.float64) * clock.unit
    found = time * np.int64(signed(clock.unit & _UNSIGNED))
    since = clock.last
    if since is not None:
        about, found = np.cumsum(about) + since, np.cumsum(found) + np.int64(signed(since & _UNSIGNED))
        clock.last = int(found[-1])
    wrong: Mask = np.abs(about + clock.offset) >= MOST_TIME
    return np.where(wrong, MOST_TIME, found + np.int64(signed(clock.offset & _UNSIGNED)))
