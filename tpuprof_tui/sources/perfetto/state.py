"""What packets refer to: interned texts and clocks of their sequence."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from .wire import Field, double, fields, last, numbers, signed, text, varint

#: Deepest nesting of values that is followed.
_DEEPEST: Final = 32
#: Tags of fields of debug annotations.
_NAME_TAG, _INTEGER_TAG = 0x52, b" "
#: Arguments up to this size are kept decoded, as many of them.
_SHORT, _MOST_KEPT = 64, 1 << 16
#: Clock of the trace unless it says another one (BOOTTIME), and ids of clocks that a sequence has for itself.
_BOOTTIME: Final = 6
_OF_SEQUENCE: Final = range(64, 128)
# fields of InternedData
CATEGORIES, NAMES, NOTE_NAMES, SPECIFICATIONS, STRINGS, KERNELS, PARAMETERS = 1, 2, 3, 24, 29, 1000, 1001
CONTEXTS, GPU_COUNTERS = 23, 47
_TEXTS: Final = frozenset((CATEGORIES, NAMES, NOTE_NAMES, SPECIFICATIONS, STRINGS, KERNELS, PARAMETERS))


def as_json(value: Any) -> str:
    """A text or number as JSON; a number that is none as null."""
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "null"
    return msgspec.json.encode(value).decode()


class Clock(Struct):
    """A clock whose times, in units of ``unit`` ns, are ``offset`` ns before those of the trace.

    ``last``: of a clock whose times count from the one before: the last one, ns; None: they do not.
    """

    offset: int
    unit: int = 1
    last: int | None = None


class Sequence:
    """State of a sequence of packets.

    Attributes:
        sound: Whether no packet was lost since its state was last cleared.
        track, clock, counters: What packets have unless they say otherwise; 0: none. Uuids of extra counters by the
            field that holds them.
        tables: Interned texts by id, by field of InternedData; of contexts and counters of GPUs their fields.
        values: Last values of counters that count from the one before, by track.
        thread: Process and thread of events without a track.
        reference: Last time of events that have times of their own, ns.
        unknown: Number of ids that no interned text has.
    """

    def __init__(self) -> None:
        self.unknown = self.reference = 0
        self.thread: tuple[int, int] | None = None
        self.clocks: dict[int, Clock] = {}
        self.clear()

    def clear(self) -> None:
        """Forgets what packets before said."""
        self.sound, self.track, self.clock = True, 0, 0
        self.counters: dict[int, list[int]] = {}
        self.values: dict[int, float] = {}
        self.tables: defaultdict[int, dict[int, Any]] = defaultdict(dict)
        #: What is known of events by their ids; debug annotations, and their names, by their bytes.
        self.heads: dict[Any, str] = {}
        self.notes: dict[bytes, str] = {}
        self.keys: dict[bytes, str] = {}

    def update(self, defaults: bytes) -> None:
        """Takes a message TracePacketDefaults."""
        found = last(defaults)
        self.clock = found.get(58, 0)
        for number, value in fields(found.get(11, b"")):
            if number == 11:
                self.track = value
            else:
                self.counters.setdefault(number, []).extend(numbers(value))

    def intern(self, data: bytes) -> None:
        """Takes a message InternedData."""
        for number, entry in fields(data):
            found = last(entry) if number in _TEXTS or number in (CONTEXTS, GPU_COUNTERS) else {}
            iid = found.get(1, 0)
            # field 3 holds demangled names of kernels
            name = text(found.get(3) or found.get(2, b"")) if number == KERNELS else text(found.get(2, b""))
            value = name if number in _TEXTS else found
            if self.tables[number].setdefault(iid, value) != value:
                self.tables[number][iid] = value
                self.heads, self.notes, self.keys = {}, {}, {}

    def text(self, table: int, iid: int, otherwise: str = "unknown") -> str:
        """An interned text."""
        found: str | None = self.tables[table].get(iid)
        self.unknown += found is None
        return otherwise if found is None else found

    def note(self, data: bytes) -> str:
        """A debug annotation as a member of a JSON object."""
        # most are a name, or the id of one, and a number
        at = 2 + data[1] * (data[0] == _NAME_TAG) if len(data) > 1 else 0
        key = self.keys.get(data[:at])
        if key and data[at : at + 1] == _INTEGER_TAG:
            number, end = varint(data, at + 1)
            if end == len(data):
                return f"{key}{signed(number)}"
        name, value = self._note(fields(data), 0)
        key = self.keys[data[:at]] = f"{as_json(name)}:"
        found = key + value
        if len(data) <= _SHORT and len(self.notes) < _MOST_KEPT:
            self.notes[data] = found
        return found

    def _note(self, note: list[Field], depth: int) -> tuple[str, str]:
        """Name and value, as JSON, of a debug annotation."""
        name, value = "", "null"
        members: list[str] = []
        items: list[str] = []
        for number, each in note:
            if number == 1:
                name = self.text(NOTE_NAMES, each, f"argument {each}")
            elif number == 10:
                name = text(each)
            elif number == 17:
                value = as_json(self.text(STRINGS, each))
            elif number in _VALUES:
                value = _VALUES[number](each)
            elif number in (11, 12) and depth < _DEEPEST:
                key, inner = self._note(fields(each), depth + 1)
                (items.append(inner) if number == 12 else members.append(f"{as_json(key)}:{inner}"))
            elif number == 8:
                value = _nested(each, depth)
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
    3: str,
    4: lambda value: str(signed(value)),
    5: lambda value: as_json(double(value)),
    6: lambda value: as_json(text(value)),
    7: lambda value: f'"0x{value:x}"',
    9: _json,
}
#: Fields of older values (NestedValue), and those of the same kind of newer ones.
_OLDER: Final = {5: 4, 6: 5, 7: 2, 8: 6}


def _nested(data: bytes, depth: int) -> str:
    """An older value of a debug annotation (NestedValue) as JSON."""
    keys, values, value = [], [], "null"
    for number, each in fields(data):
        if number == 2:
            keys.append(as_json(text(each)))
        elif number in (3, 4) and depth < _DEEPEST:
            values.append(_nested(each, depth + 1))
        elif number in _OLDER:
            value = _VALUES[_OLDER[number]](each)
    if keys:
        return "{" + ",".join(map("{}:{}".format, keys, values)) + "}"
    return f"[{','.join(values)}]" if values else value


class Clocks:
    """The clocks that snapshots relate to that of the trace.

    Attributes:
        unknown: Number of times of a clock that no snapshot before related to it.
    """

    def __init__(self) -> None:
        self._main, self._known = _BOOTTIME, dict[int, Clock]()
        self.unknown = 0

    def snapshot(self, sequence: Sequence, data: bytes) -> None:
        """Takes a message ClockSnapshot."""
        found = [last(value) for number, value in fields(data) if number == 1]
        if not self._known:
            self._main = last(data).get(2) or self._main
            self._known[self._main] = Clock(0)
        times = [(each.get(1, 0), each.get(2, 0) * max(each.get(4, 1), 1), each) for each in found]
        # of clocks that none relates to the trace's the first is taken for it
        zero = next((time + self._known[clock].offset for clock, time, _ in times if clock in self._known),
                    times[0][1] if times else 0)  # fmt: skip
        for clock, time, each in times:
            if clock != self._main:
                clocks = sequence.clocks if clock in _OF_SEQUENCE else self._known
                clocks[clock] = Clock(zero - time, max(each.get(4, 1), 1), time if each.get(3) else None)

    def time(self, sequence: Sequence, time: int, clock: int) -> int:
        """A time of a packet, ns on the trace's clock."""
        clock = clock or sequence.clock
        if clock in (0, self._main):
            return time
        found = sequence.clocks.get(clock) if clock in _OF_SEQUENCE else self._known.get(clock)
        if found is None:
            self.unknown += 1
            return time
        time *= found.unit
        if found.last is not None:
            time = found.last = found.last + time
        return time + found.offset
