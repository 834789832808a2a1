"""Contents of one trace file: complete events in columns, memory instants, counters, flows, and metadata."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Problem
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.chrome.columns import F64, I32, I64, lookup

from ..categories import DEVICE_WORK, Kind
from .arguments import Arguments
from .deferred import FlowEnds, FrameIds, Messages, OperatorArgs, details_of, flow_ends_of
from .launchers import GRAPHS, LAUNCHING, Launchers
from .operator_tree import Tree
from .overlaps import Overlaps, overlaps_of

if TYPE_CHECKING:
    from .captures import Replayed

#: Names of calls that start no work on a device.
_LAUNCHES_NOTHING: Final = lazy_pattern(r"(?:cuda|cu|hip)\w*(?:Synchronize|EventRecord|StreamWaitEvent|Query)\w*$")


class Memory(Struct, frozen=True, eq=False):
    """Memory instants by time, in columns of one length; ``INT_MISSING`` for unknown values.

    Attributes:
        time: ns from ``Trace.zero_ns``.
        lane: Index of the thread in ``Trace.threads``.
        device_type, device_id, change, address, allocated, reserved: int64; sizes in bytes.
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


class CounterSeries(Struct, frozen=True, eq=False):
    """One counter series over time.

    Attributes:
        process: Process of the counter, as text.
        title: Its title.
        time: ns from ``Trace.zero_ns``, ascending.
        value: float64 of the same length.
    """

    process: str
    title: str
    time: I64
    value: F64


class ToldCollectives(Struct, frozen=True, eq=False):
    """What identifies the collectives of events, the same on all ranks that take part in one.

    Attributes:
        file_order: Numbers of the events among the complete events of the file, ascending.
        code: Codes into ``identities``.
        identities: Texts.
    """

    file_order: I64
    code: I32
    identities: tuple[str, ...]


class Aside(Struct, frozen=True, eq=False):
    """Events that are set aside, in columns of one length: their times cannot be those of the recording.

    Attributes:
        thread: int32, index in ``Trace.threads``, ascending.
        name, kind, category, file_order, correlation, external: As in the trace.
        start, end: int64 ns as in the file.
        away: int64 ns, from the recording back to its start, below 0, or on to its start or end, above; 0: it is far
            from its launch only.
    """

    thread: I32
    name: I32
    kind: npt.NDArray[np.int8]
    category: npt.NDArray[np.int16]
    file_order: I64
    correlation: I64
    external: I64
    start: I64
    end: I64
    away: I64

    def __len__(self) -> int:
        return len(self.start)


class Trace(Struct, frozen=True, eq=False, dict=True):
    """Contents of one file. Events are in columns of one length, by thread, within a thread in nesting order.

    Attributes:
        path: The file.
        metadata: Members of the file's object other than the events.
        threads: Process and thread of each lane, as texts.
        first: int64, one longer than threads: row of the first event of each, and the end.
        zero_ns: Time in the file of the earliest event or memory instant, ns.
        start, end: int64 ns from ``zero_ns``.
        name: int32 codes into ``names``.
        kind: int8, see ``Kind``.
        category: int16 codes into ``categories``.
        file_order: int64, number among the complete events of the file, in file order.
        correlation, external: int64 ids; missing if absent.
        names, categories: Texts by code.
        work_rows: Rows of device work, ascending.
        work: Further columns of these rows.
        texts: Texts of codes in these columns; code -1: absent.
        memory: Memory instants.
        flow_processes: Processes that flows begin in, as in the file.
        counters: Counter series.
        process_names, thread_names: Names in the file, by process, and by process and thread.
        problems: Defects of the file.
        arguments: Reads arguments of single events, by ``file_order``.
        aside: Events that are set aside; None: none.
        told: What identifies its collectives; None: nothing does.
        part: What the file says of whose events these are, if several ranks are merged into it.
        file_threads: ``threads`` as the file writes them; empty: the same.
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
    file_order: I64
    correlation: I64
    external: I64
    names: tuple[str, ...]
    categories: tuple[str, ...]
    work_rows: I64
    work: dict[str, npt.NDArray[Any]]
    texts: tuple[str, ...]
    memory: Memory
    flow_processes: frozenset[str]
    counters: tuple[CounterSeries, ...]
    process_names: dict[str, str]
    thread_names: dict[tuple[str, str], str]
    problems: tuple[Problem, ...]
    arguments: Arguments
    aside: Aside | None = None
    told: ToldCollectives | None = None
    part: str = ""
    file_threads: tuple[tuple[str, str], ...] = ()

    def __len__(self) -> int:
        return len(self.start)

    @property
    def length_ns(self) -> int:
        """Time in ns from the earliest event or memory instant to the latest end of either."""
        return max(int(self.end.max(initial=0)), int(self.memory.time.max(initial=0)))

    @cached_property
    def call(self) -> I64:
        """Row of the call that launched each device work (``work_rows``); -1 if it is not in the file.

        Work without an id has 0 in files of ROCm, as other calls have: only those that surely launch count as its own.
        """
        wanted = self.correlation[self.work_rows]
        found = self.calls_of(wanted, ~self.named(_LAUNCHES_NOTHING.match))
        return np.where((wanted == 0) & ~self.named(LAUNCHING.match)[found], -1, found) if len(self) else found

    def calls_of(self, wanted: I64, among: npt.NDArray[np.bool_] | None = None) -> I64:
        """Rows of the calls with the given correlation ids, the earliest if there are several; -1 if none.

        ``among``: mask of the events that are looked at; None: all.
        """
        calls = np.flatnonzero((self.kind == Kind.CALL) & (self.correlation != INT_MISSING)
                               & (True if among is None else among))  # fmt: skip
        order = np.argsort(self.correlation[calls], kind="stable")
        ids = self.correlation[calls[order]]
        if bool((ids[1:] == ids[:-1]).any()):
            order = np.lexsort((self.file_order[calls], self.start[calls], self.correlation[calls]))
        return lookup(ids, wanted, calls[order])

    @cached_property
    def overlaps(self) -> Overlaps:
        """Device work that overlaps the next of its stream."""
        return overlaps_of(self)

    @cached_property
    def launchers(self) -> Launchers:
        """Who launched its calls and device work."""
        return Launchers(self)

    def replayed(self, rank: int | None) -> Replayed | None:
        """What launched the work of replayed graphs, from captures of a rank beside the file; None: nothing tells."""
        if "_replayed" not in self.__dict__:
            self.__dict__["_replayed"] = None
            if self.named(GRAPHS.match).any():
                from .captures import capture_files, replayed_of

                self.__dict__["_replayed"] = replayed_of(self, capture_files(self.path, rank))
        return cast("Replayed | None", self.__dict__["_replayed"])

    @cached_property
    def tree(self) -> Tree:
        """The tree of its operators."""
        return Tree(self)

    @cached_property
    def operator_rows(self) -> I64:
        """Rows of operators and annotations."""
        return np.flatnonzero((self.kind == Kind.OPERATOR) | (self.kind == Kind.ANNOTATION))

    @property
    def operator_args(self) -> OperatorArgs:
        """Arguments of all ``operator_rows``; reads the file again."""
        return self._details[0]

    def operator_args_at(self, rows: I64) -> OperatorArgs:
        """Arguments of the operators in some rows; reads the file again for these alone, unless all are cached."""
        if "_details" in self.__dict__:
            indices, every = np.searchsorted(self.operator_rows, rows), self.operator_args
            return replace(every, dims=every.dims[indices], types=every.types[indices], stack=every.stack[indices])
        return self._read_details(rows, rows[:0])[0]

    @cached_property
    def frame_rows(self) -> I64:
        """Rows of Python frames."""
        return np.flatnonzero(self.kind == Kind.FRAME)

    @property
    def frame_ids(self) -> FrameIds:
        """Ids of all Python frames (``frame_rows``); reads the file again."""
        return self._details[1]

    def module_ids_at(self, rows: I64) -> I64:
        """Ids of the nn.Modules whose frames are in some rows; reads the file again for these alone."""
        if "_details" in self.__dict__:
            return self.frame_ids.module[np.searchsorted(self.frame_rows, rows)]
        return self._read_details(rows[:0], rows)[1].module

    def collective_args_at(self, rows: I64, telling: I64) -> tuple[OperatorArgs, Messages]:
        """Arguments of the collectives in some rows, and what the events in rows ``telling`` tell of their messages.

        Reads the file again for these alone.
        """
        if "_details" in self.__dict__:
            return self.operator_args_at(rows), self._read_details(rows[:0], rows[:0], telling)[2]
        arguments, _, messages = self._read_details(rows, rows[:0], telling)
        return arguments, messages

    @cached_property
    def _details(self) -> tuple[OperatorArgs, FrameIds]:
        return self._read_details(self.operator_rows, self.frame_rows)[:2]

    def _read_details(
        self, operators: I64, frames: I64, telling: I64 | None = None
    ) -> tuple[OperatorArgs, FrameIds, Messages]:  # fmt: skip
        telling = operators[:0] if telling is None else telling
        return details_of(self.arguments, self.file_order[operators], self.file_order[frames], self.file_order[telling])

    @property
    def flows(self) -> tuple[I64, I64]:
        """Rows of the forward and of the backward operators that flows join; reads the file again.

        A flow's end belongs to the operator that starts at its time.
        """
        return self._flow_rows[0]

    @property
    def work_flows(self) -> tuple[I64, I64]:
        """Rows of the device events that flows begin and end at, as between nodes of a graph; reads the file again.

        A flow begins at the event that ends at its time, else at the last one to begin before; it ends at the event
        that starts at its time.
        """
        return self._flow_rows[1]

    @cached_property
    def _flow_rows(self) -> tuple[tuple[I64, I64], tuple[I64, I64]]:
        threads = self.file_threads or self.threads
        with_work = {threads[index][0] for index in uniques(self.thread_of(self.work_rows)).tolist()}
        ends = flow_ends_of(self.arguments if self.flow_processes else None, threads, self.zero_ns,
                            of_work=not self.flow_processes.isdisjoint(with_work))  # fmt: skip
        operators = np.flatnonzero(self.kind == Kind.OPERATOR)
        work = np.flatnonzero(np.isin(self.kind, (*DEVICE_WORK, Kind.WAIT)))
        forward = ends.joined(~ends.of_work, self._starting(operators, ends))
        begins = ends.of_work & ends.begins
        source, target, number = ends.joined(ends.of_work, np.where(begins, self._ending(work, ends),
                                                                    self._starting(work, ends)))  # fmt: skip
        # of threads that share their ids with a stream: a flow with the id of a launch begins at the call
        between = (self.correlation[target] != number) & (source != target)
        return forward[:2], (source[between], target[between])

    def _starting(self, rows: I64, ends: FlowEnds) -> I64:
        """For each end of a flow the first of some rows on its thread that starts at its time; -1 if none."""
        return self._on_threads(rows, ends, lambda here, times: lookup(self.start[here], times, here))

    def _ending(self, rows: I64, ends: FlowEnds) -> I64:
        """For each end of a flow a row on its thread that ends at its time, else the last to contain it; -1 if none."""

        def found(here: I64, times: I64) -> I64:
            order = here[np.argsort(self.end[here], kind="stable")]
            ended = lookup(self.end[order], times, order)
            last = np.searchsorted(self.start[here], times, side="right") - 1
            inside = (last >= 0) & (self.end[here[last]] > times)
            return np.where(ended >= 0, ended, np.where(inside, here[last], -1))

        return self._on_threads(rows, ends, found)

    def _on_threads(self, rows: I64, ends: FlowEnds, find: Callable[[I64, I64], I64]) -> I64:
        found, thread = np.full(len(ends.time), -1, np.int64), self.thread_of(rows)
        for number in uniques(ends.thread).tolist():
            here = np.flatnonzero(ends.thread == number)
            # rows are by thread, then start
            of_thread = rows[slice(*np.searchsorted(thread, (number, number + 1)).tolist())]
            if len(of_thread):
                found[here] = find(of_thread, ends.time[here])
        return found

    def identities_at(self, rows: I64) -> list[str]:
        """What identifies the collectives of events in some rows; empty if nothing does."""
        if self.told is None:
            return [""] * len(rows)
        codes = lookup(self.told.file_order, self.file_order[rows].astype(np.int64), self.told.code.astype(np.int64))
        return [self.told.identities[code] if code >= 0 else "" for code in codes.tolist()]

    def named(self, test: Callable[[str], object]) -> npt.NDArray[np.bool_]:
        """Mask of the events whose name passes a test, which is called once for each distinct name."""
        passing = np.array([bool(test(name)) for name in self.names], np.bool_)
        return passing[self.name] if len(passing) else np.zeros(0, np.bool_)

    def thread_of(self, rows: I64) -> I64:
        """Index of each event's thread in ``threads``."""
        return np.asarray(np.searchsorted(self.first, rows, side="right") - 1)


def numeric_sort_key(text: str) -> tuple[bool, int, str]:
    """Sort key: numbers first, by value; then other texts."""
    is_number = text.isascii() and text.isdecimal()
    return not is_number, int(text[:18]) if is_number else 0, text
