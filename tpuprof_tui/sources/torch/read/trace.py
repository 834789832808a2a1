"""What one trace file holds: its complete events in columns, memory instants, counters, flows, and metadata."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.model import INT_MISSING, Problem

from .arguments import Arguments
from .categories import Kind
from .details import Frames, Operators, details_of, flow_ends_of
from .values import F64, I32, I64, looked_up


class Memory(Struct, frozen=True, eq=False):
    """Memory instants by time, in columns of one length; ``INT_MISSING`` where nothing is known.

    Attributes:
        time: ns, as events have them.
        lane: Place of the thread in ``Trace.threads``.
        device_type, device_id, change, address, allocated, reserved: int64.
    """

    time: I64
    lane: I32
    device_type: I64
    device_id: I64
    change: I64
    address: I64
    allocated: I64
    reserved: I64

    def __len__(self) -> int:
        return len(self.time)


class Series(Struct, frozen=True, eq=False):
    """One number of a counter over time.

    Attributes:
        process: Whose counter it is, as a text.
        title: What it is called.
        time: ns, as events have them, ascending.
        value: float64 of the same length.
    """

    process: str
    title: str
    time: I64
    value: F64


class Trace(Struct, frozen=True, eq=False, dict=True):
    """One file. Events lie in columns of one length, thread by thread, in each in the order of nesting.

    Attributes:
        path: The file.
        metadata: What stands beside the events.
        threads: Process and thread of each lane, as texts.
        first: int64, one more than threads: first event of each.
        zero_ns: The file's time of the earliest event or memory instant, ns.
        start, end: int64 ns from ``zero_ns``.
        name: int32 codes into ``names``.
        kind: int8, see ``Kind``.
        category: int16 codes into ``categories``.
        place: int64, place in the file among complete events.
        correlation, external: int64; missing without.
        names, categories: Texts.
        work: Events of the device in columns, for those rows (``work_rows``, ascending).
        texts: Texts of codes in these columns; -1 is none.
        memory: Memory instants.
        has_flows: Whether flows begin in it.
        counters: What counters told.
        process_names, thread_names: What the file calls them, by process, and by process and thread.
        problems: What could not be used.
        arguments: Arguments of single events, by their place in the file.
    """

    path: Path
    metadata: dict[str, Any]
    threads: tuple[tuple[str, str], ...]
    first: I64
    zero_ns: int
    start: I64
    end: I64
    name: I32
    kind: npt.NDArray[np.int8]
    category: npt.NDArray[np.int16]
    place: I64
    correlation: I64
    external: I64
    names: tuple[str, ...]
    categories: tuple[str, ...]
    work_rows: I64
    work: dict[str, npt.NDArray[Any]]
    texts: tuple[str, ...]
    memory: Memory
    has_flows: bool
    counters: tuple[Series, ...]
    process_names: dict[str, str]
    thread_names: dict[tuple[str, str], str]
    problems: tuple[Problem, ...]
    arguments: Arguments

    def __len__(self) -> int:
        return len(self.start)

    @property
    def length_ns(self) -> int:
        """From the earliest event or memory instant to the latest end of both."""
        return max(int(self.end.max(initial=0)), int(self.memory.time.max(initial=0)))

    @cached_property
    def call(self) -> I64:
        """Row of the call that started each device work (``work_rows``); -1 where it is not in the file."""
        return self.calls_of(self.correlation[self.work_rows])

    def calls_of(self, wanted: I64) -> I64:
        """Rows of the calls with some correlations, of several the first in time; -1 without."""
        calls = np.flatnonzero((self.kind == Kind.CALL) & (self.correlation != INT_MISSING))
        order = np.argsort(self.correlation[calls], kind="stable")
        known = self.correlation[calls[order]]
        if bool((known[1:] == known[:-1]).any()):
            order = np.lexsort((self.place[calls], self.start[calls], self.correlation[calls]))
        return looked_up(known, wanted, calls[order])

    @cached_property
    def operator_rows(self) -> I64:
        """Rows of operators and annotations."""
        return np.flatnonzero((self.kind == Kind.OPERATOR) | (self.kind == Kind.ANNOTATION))

    @property
    def operators(self) -> Operators:
        """What they were given (``operator_rows``); the file is read again for it."""
        return self._details[0]

    def operators_at(self, rows: I64) -> Operators:
        """What some of them were given; of these alone the file is read for it, where not all are known already."""
        if "_details" in self.__dict__:
            places, told = np.searchsorted(self.operator_rows, rows), self.operators
            return replace(told, dims=told.dims[places], types=told.types[places], stack=told.stack[places])
        return self._given_to(rows, rows[:0])[0]

    @cached_property
    def frame_rows(self) -> I64:
        """Rows of Python frames."""
        return np.flatnonzero(self.kind == Kind.FRAME)

    @property
    def frames(self) -> Frames:
        """Ids of Python frames (``frame_rows``); the file is read again for them."""
        return self._details[1]

    def frames_at(self, rows: I64) -> Frames:
        """Ids of some of them; of these alone the file is read."""
        return self._given_to(rows[:0], rows)[1]

    @cached_property
    def _details(self) -> tuple[Operators, Frames]:
        return self._given_to(self.operator_rows, self.frame_rows)

    def _given_to(self, operators: I64, frames: I64) -> tuple[Operators, Frames]:
        names = [self.names[code] for code in self.name[operators].tolist()]
        return details_of(self.arguments, self.place[operators], names, self.place[frames])

    @cached_property
    def flows(self) -> tuple[I64, I64]:
        """Rows of the operators, forward and backward, at whose starts the ends of a flow stand.

        The file is read again for it.
        """
        begins, ids, lanes, times = flow_ends_of(self.arguments if self.has_flows else None, self.threads, self.zero_ns)
        rows = np.flatnonzero(self.kind == Kind.OPERATOR)
        # by thread, then start, as rows are: of several that begin together the first
        at = np.full(len(times), -1, np.int64)
        lane = self.thread_of(rows)
        for number in np.unique(lanes).tolist():
            mine = np.flatnonzero(lanes == number)
            there = rows[lane == number]
            at[mine] = looked_up(self.start[there], times[mine], there)
        begin = dict(zip(ids[begins].tolist(), at[begins].tolist(), strict=True))
        target = np.flatnonzero(~begins & (at >= 0))
        source = np.array([begin.get(number, -1) for number in ids[target].tolist()], np.int64)
        return source[source >= 0], at[target][source >= 0]

    def named(self, test: Callable[[str], object]) -> npt.NDArray[np.bool_]:
        """Whether the name of each event passes a test, made once for each name."""
        passing = np.array([bool(test(name)) for name in self.names], np.bool_)
        return passing[self.name] if len(passing) else np.zeros(0, np.bool_)

    def thread_of(self, rows: I64) -> I64:
        """Place of each event's thread."""
        return np.asarray(np.searchsorted(self.first, rows, side="right") - 1)


def by_number(text: str) -> tuple[bool, int, str]:
    """Numbers first, by their value; other texts behind them."""
    number = text.isascii() and text.isdecimal()
    return not number, int(text[:18]) if number else 0, text
