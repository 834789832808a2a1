"""What packets refer to: interned texts, clocks and defaults of their sequence."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from .wire import DamagedError, Field, double, fields, last, numbers, signed, text, varint

#: Deepest nesting of values that is followed; longest interned text, and most characters of those of an event.
_DEEPEST, _LONGEST, _MOST = 32, 1 << 16, 1 << 20
#: Tags of fields of debug annotations; those of up to so many bytes are kept decoded, as many of them.
_NAME_TAG, _INTEGER_TAG, SHORT, MOST_KEPT = 0x52, b" ", 256, 1 << 16
#: Clock of the trace unless it says another one (BOOTTIME), and ids of clocks that a sequence has for itself.
_BOOTTIME, _OF_SEQUENCE = 6, range(64, 128)
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
        heads: What is known of events by their ids.
        thread, reference: Process and thread of older events, and the last time that they tell, ns.
        unknown: Number of ids that no interned text has.
        spent: Characters of interned texts in an event.
    """

    def __init__(self) -> None:
        self.unknown = self.reference = self.spent = 0
        self.thread: tuple[int, ...] = (0, 0)
        self.clocks: dict[int, Clock] = {}
        self.clear()

    def clear(self) -> None:
        """Forgets what packets before said."""
        self.sound, self.track, self.clock = True, 0, 0
        self.counters: dict[int, list[int]] = {}
        self.values: dict[int, float] = {}
        self.tables: defaultdict[int, dict[int, Any]] = defaultdict(dict)
        self._forget()

    def _forget(self) -> None:
        self.heads: dict[Any, str] = {}
        #: Debug annotations, and their names, by their bytes.
        self.notes: dict[bytes, str] = {}
        self._keys: dict[bytes, str] = {}
        #: Arguments of work of GPUs by their bytes.
        self.arguments: dict[bytes, dict[str, str]] = {}

    def update(self, defaults: bytes) -> None:
        """Takes a message TracePacketDefaults."""
        found = last(defaults)
        self.clock, events = found.get(58, 0), fields(found.get(11, b""))
        self.track = dict(events).get(11, 0)
        self.counters = {number: [each for key, value in events if key == number for each in numbers(value)]
                         for number in (31, 45)}  # fmt: skip

    def intern(self, data: bytes) -> None:
        """Takes a message InternedData."""
        for number, entry in fields(data):
            if number in _TEXTS or number in (CONTEXTS, GPU_COUNTERS):
                found = last(entry)
                # field 3 holds demangled names of kernels
                name = found.get(3 if number == KERNELS and 3 in found else 2, b"")
                value, table = text(name)[:_LONGEST] if number in _TEXTS else found, self.tables[number]
                if table.setdefault(found.get(1, 0), value) != value:
                    table[found.get(1, 0)] = value
                    self._forget()

    def text(self, table: int, iid: int, otherwise: str = "unknown") -> str:
        """An interned text."""
        found: str | None = self.tables[table].get(iid)
        self.unknown += found is None
        return otherwise if found is None else found

    def note(self, data: bytes) -> str:
        """A debug annotation as a member of a JSON object.

        Raises:
            DamagedError: It is none, or the interned texts of an event are too long.
        """
        # most are a name, or the id of one, and a number, in either order
        if data[:1] == _INTEGER_TAG:
            number, end = varint(data, 1)
            named = data[end:]
        else:
            at = 2 + data[1] * (data[0] == _NAME_TAG) if len(data) > 1 else 0
            named = data[:at]
            number, end = varint(data, at + 1) if data[at : at + 1] == _INTEGER_TAG else (0, 0)
            end = end if end == len(data) else 0
        key = self._keys.get(named) if end else None
        if key:
            return f"{key}{signed(number)}"
        name, value = self._note(fields(data), 0)
        key = f"{as_json(name)}:"
        if len(self._keys) < MOST_KEPT and len(self.notes) < MOST_KEPT and len(data) <= SHORT:
            self.notes[data] = key + value
            if end:
                self._keys[named] = key
        return key + value

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
                (items if number == 12 else members).append(inner if number == 12 else f"{as_json(key)}:{inner}")
        self.spent += len(name) + len(value)
        if self.spent > _MOST:
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


class Clocks:
    """The clocks that snapshots relate to that of the trace.

    ``unknown``: number of times of a clock that no snapshot before related to it.
    """

    def __init__(self) -> None:
        self._main, self._known, self.unknown = _BOOTTIME, dict[int, Clock](), 0

    def snapshot(self, sequence: Sequence, data: bytes) -> None:
        """Takes a message ClockSnapshot."""
        if not self._known:
            self._main = signed(last(data).get(2, 0)) or self._main
            self._known[self._main] = Clock(0)
        found = [last(value) for number, value in fields(data) if number == 1]
        times = [(each.get(1, 0), each.get(2, 0) * (each.get(4) or 1), each) for each in found]
        # of clocks that none relates to the trace's the first is taken for it
        zero = next((time + self._known[clock].offset for clock, time, _ in times if clock in self._known),
                    times[0][1] if times else 0)  # fmt: skip
        for clock, time, each in times:
            if clock != self._main:
                clocks = sequence.clocks if clock in _OF_SEQUENCE else self._known
                clocks[clock] = Clock(zero - time, each.get(4) or 1, time if each.get(3) else None)

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
