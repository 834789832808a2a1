"""Contents of one trace file: events in columns, their tree of operators, memory, counters, flows, metadata."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, cast

import numpy as np
import numpy.typing as npt
from msgspec import field

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.sources.chrome.columns import I32, I64, ArgumentColumns, Codes, lookup, printable
from tpuprof_tui.sources.chrome.nesting import Nesting, Slices, innermost

from ..categories import ELIGIBLE, MODULE, Kind, is_tree_annotation
from .arguments import FRAMES, OPERATORS, Arguments
from .launchers import GRAPHS, LAUNCHING, Launchers, Overlaps, overlaps_of

if TYPE_CHECKING:
    from .graph_captures import ReplayedWork

#: Names of calls that start no work on a device.
_LAUNCHES_NOTHING: Final = lazy_pattern(r"(?:cuda|cu|hip)\w*(?:Synchronize|EventRecord|StreamWaitEvent|Query)\w*$")
_LONGEST_TEXT: Final = 1 << 20
#: Events are few if they are fewer than this part of all: their arguments are read again for them alone.
_FEW: Final = 8
#: Columns of one length, by name.
Columns = dict[str, npt.NDArray[Any]]
NO_LINKS: Final = (np.zeros(0, np.int64), np.zeros(0, np.int64))


class Trace(Slices, frozen=True, eq=False, dict=True, kw_only=True):
    """Contents of one file: its complete events are the slices, their times count from ``zero_ns``."""

    per_slice: ClassVar = ("start", "end", "name", "kind", "category", "file_order", "correlation", "external")

    path: Path  #: The file
    metadata: dict[str, Any]  #: Members of the file's object other than the events
    threads: tuple[tuple[str, str], ...]  #: Process and thread of each lane, as texts
    zero_ns: int  #: Time in the file of the earliest event or memory instant, ns
    kind: npt.NDArray[np.int8]  #: int8, see ``Kind``
    category: npt.NDArray[np.int16]  #: int16 codes into ``categories``
    #: correlation, external: int64 ids; missing if absent.
    correlation: I64
    external: I64
    categories: tuple[str, ...]
    work_rows: I64  #: Rows of device work, ascending
    work: Columns  #: Further columns of these rows, those of `arguments.WORK`
    #: Columns of memory instants by time, those of `arguments.MEMORY`, with ``time`` and ``thread`` (its index).
    memory: Columns
    flow_processes: frozenset[str]  #: Processes that flows begin in, as in the file
    #: process_names, thread_names: Names in the file, by process, and by process and thread.
    process_names: dict[str, str]
    thread_names: dict[tuple[str, str], str]
    arguments: Arguments  #: Reads arguments of single events, by ``file_order``
    aside: Trace | None = None  #: Events that are set aside, with the times of the file; None: none
    #: The ``file_order`` of events that tell what identifies their collective, the same on all ranks that take part in
    #: it, ascending; and codes into ``identities``.
    identity_codes: tuple[I64, I32]
    identities: tuple[str, ...]
    part: str = ""  #: What the file says of whose events these are, if several ranks are merged into it
    file_threads: tuple[tuple[str, str], ...] = ()  #: ``threads`` as the file writes them; empty: the same
    #: flows, waits: Of a Perfetto trace: ``file_order`` of the events that flows join, and of work of a GPU that other
    #: work waits for; of causes and of consequences.
    flows: tuple[I64, I64] = NO_LINKS
    waits: tuple[I64, I64] = NO_LINKS
    #: Numbers of steps by the names of the ranges that mark them, beside PyTorch's own.
    step_labels: Mapping[str, str] = field(default_factory=dict)
    #: writer, device_titles: Program that wrote the file, and titles of devices by process, if it is not PyTorch.
    writer: str = ""
    device_titles: Mapping[str, str] = field(default_factory=dict)

    @property
    def length_ns(self) -> int:
        """Time in ns from the earliest event or memory instant to the latest end of either."""
        return max(int(self.end.max(initial=0)), int(self.memory["time"].max(initial=0)))

    @property
    def first_ns(self) -> int:
        """Time from zero to the first event or memory instant that is left, ns."""
        return min((int(times.min()) for times in (self.start, self.memory["time"]) if len(times)), default=0)

    def rows_of(self, numbers: I64) -> I64:
        """Rows of complete events by their numbers in the file; -1 for those that are not here."""
        order = np.argsort(self.file_order, kind="stable")
        return lookup(self.file_order[order].astype(np.int64), numbers, order)

    @cached_property
    def call(self) -> I64:
        """Row of the call that launched each device work (``work_rows``); -1 if it is not in the file.

        Work without an id has 0 in files of ROCm, as other calls have: only those that surely launch count as its own.
        """
        wanted = self.correlation[self.work_rows]
        found = self.calls_of(wanted, ~self.named(_LAUNCHES_NOTHING.match))
        return np.where((wanted == 0) & ~self.named(LAUNCHING.match)[found], -1, found) if len(self) else found

    def calls_of(self, wanted: I64, which: npt.NDArray[np.bool_] | None = None) -> I64:
        """Rows of the calls with the given correlation ids, the earliest if there are several; -1 if none.

        ``which``: mask of the events that are looked at; None: all.
        """
        calls = np.flatnonzero((self.kind == Kind.CALL) & (self.correlation != INT_MISSING)
                               & (True if which is None else which))  # fmt: skip
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

    @cached_property
    def tree(self) -> Tree:
        """The tree of its operators."""
        return Tree(self)

    def replayed(self, rank: int | None) -> ReplayedWork | None:
        """What launched the work of replayed graphs, from captures of a rank beside the file; None: nothing tells."""
        if "_replayed" not in self.__dict__:
            self.__dict__["_replayed"] = None
            if self.named(GRAPHS.match).any():
                from .graph_captures import capture_files, replayed_of

                self.__dict__["_replayed"] = replayed_of(self, capture_files(self.path, rank))
        return cast("ReplayedWork | None", self.__dict__["_replayed"])

    # -- read from the file again

    def arguments_at(self, *wanted: tuple[ArgumentColumns, I64]) -> tuple[list[Columns], tuple[str, ...]]:
        """Arguments of the events in some rows, and the texts of codes in them.

        All are read at once: reading the file takes longer than decoding any.
        """
        texts = Codes()
        found = self.arguments.columns(texts, *((columns, self.file_order[rows]) for columns, rows in wanted))
        return found, tuple(printable(text, _LONGEST_TEXT) for text in texts)

    @cached_property
    def operator_rows(self) -> I64:
        """Rows of operators and annotations."""
        return np.flatnonzero((self.kind == Kind.OPERATOR) | (self.kind == Kind.ANNOTATION))

    @cached_property
    def frame_rows(self) -> I64:
        """Rows of Python frames."""
        return np.flatnonzero(self.kind == Kind.FRAME)

    def details(self, of: Literal["operators", "frames"], rows: I64 | None = None) -> tuple[Columns, tuple[str, ...]]:
        """Arguments of operators and annotations, or of Python frames, and the texts of codes in them.

        ``rows``: those of these events, which are read for them alone if they are few; None: of all, which are kept.
        """
        every, columns = (self.operator_rows, OPERATORS) if of == "operators" else (self.frame_rows, FRAMES)
        if of not in vars(self):
            if rows is not None and _FEW * len(rows) < len(every):
                (found,), texts = self.arguments_at((columns, rows))
                return found, texts
            (found,), texts = self.arguments_at((columns, every))
            vars(self)[of] = found, texts
        found, texts = vars(self)[of]
        places = slice(None) if rows is None else np.searchsorted(every, rows)
        return {key: values[places] for key, values in found.items()}, texts

    def identities_at(self, rows: I64) -> list[str]:
        """What identifies the collectives of events in some rows; empty if nothing does."""
        order, codes = self.identity_codes
        found = lookup(order, self.file_order[rows].astype(np.int64), codes.astype(np.int64))
        return [self.identities[code] if code >= 0 else "" for code in found.tolist()]


def numeric_sort_key(text: str) -> tuple[bool, int, str]:
    """Sort key: numbers first, by value; then other texts."""
    is_number = text.isascii() and text.isdecimal()
    return not is_number, int(text[:18]) if is_number else 0, text


Mask = npt.NDArray[np.bool_]


class Tree:
    """Operators, some annotations and nn.Modules of each thread, nested by time, in columns of one length.

    A node whose only child is an operator of the same name is merged with it: the outer node stays.

    Attributes:
        rows: Rows of the nodes' events, in nesting order.
        parent: Index of the parent node; -1 at top level.
        unmerged: Mask of the nodes that are not merged into their parent.
        merged_into: Index of the node that each is merged into; its own if it stays.
        operator: Mask of the nodes that are operators.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        annotation = np.isin(trace.kind, (Kind.ANNOTATION,)) & trace.named(is_tree_annotation)
        module = (trace.kind == Kind.FRAME) & trace.named(lambda name: name.startswith(MODULE))
        self.rows = np.flatnonzero((trace.kind == Kind.OPERATOR) | annotation | module)
        rows = self.rows
        self.module = module[rows]
        self.operator = trace.launchers.operators[rows]
        self._threads = trace.thread_of(rows)
        self.nesting = Nesting(trace.start[rows], trace.end[rows], self._threads)
        parent = self.nesting.parent.astype(np.int64)
        inner = parent >= 0
        children = np.bincount(parent[inner], minlength=len(rows))
        merged = np.zeros(len(rows), np.bool_)
        merged[inner] = ((children[parent[inner]] == 1) & (trace.name[rows[parent[inner]]] == trace.name[rows[inner]])
                         & (trace.kind[rows[inner]] == Kind.OPERATOR))  # fmt: skip
        merged_into = np.where(merged, parent, np.arange(len(rows)))
        while bool((merged_into != merged_into[merged_into]).any()):
            merged_into = merged_into[merged_into]
        self.merged_into, self.unmerged = merged_into, ~merged
        self.parent = np.where(inner, merged_into[parent] if len(parent) else -1, -1)
        self.parent[merged] = -1

    def at(self, rows: I64) -> I64:
        """Index of the node that each event is merged into; -1 for events that are no node, and for row -1."""
        index = lookup(self.rows, rows)
        return np.where(index >= 0, self.merged_into[index] if len(self.rows) else -1, -1)

    @cached_property
    def call_node(self) -> I64:
        """Index of the node of each call (``Run.calls``); -1 if none."""
        launchers = self._trace.launchers
        return self.at(launchers.of_call[launchers.calls])

    @cached_property
    def work_node(self) -> I64:
        """Index of the node of each device work's call, or of the operator that a flow joins with it; -1 if none."""
        trace, call, launchers = self._trace, self._trace.call, self._trace.launchers
        return self.at(np.where(call >= 0, launchers.of_call[call] if len(trace) else -1, launchers.of_flow))

    def _sums(self, which: Mask) -> tuple[I64, I64]:
        trace, rows = self._trace, self._trace.work_rows
        chosen = which & (self.work_node >= 0)
        found = np.zeros(len(self.rows), np.int64)
        np.add.at(found, self.work_node[chosen], (trace.end[rows] - trace.start[rows])[chosen])
        return found, self.nesting.total(found)

    @cached_property
    def device(self) -> tuple[I64, I64]:
        """Device time in ns of each node's own calls, and including its descendants."""
        return self._sums(np.ones(len(self._trace.call), np.bool_))

    @cached_property
    def tensor(self) -> tuple[I64, I64]:
        """Device time of tensor-core kernels by TensorBoard's list, as `device`."""
        return self._sums(self._trace.launchers.tensor_cores)

    @cached_property
    def used(self) -> tuple[I64, I64]:
        """Device time of tensor-core kernels by more names, as `device`."""
        return self._sums(self._trace.launchers.on_tensor_cores[0])

    @cached_property
    def unknown(self) -> tuple[I64, I64]:
        """Device time of kernels whose use of tensor cores no name tells, as `device`."""
        return self._sums(self._trace.launchers.on_tensor_cores[1])

    @cached_property
    def eligible(self) -> Mask:
        """Mask of the nodes that can use tensor cores, or that have a descendant that can or did."""
        found = self._trace.named(ELIGIBLE.__contains__)[self.rows] & self.operator
        used = self._trace.launchers.tensor_cores & (self.work_node >= 0)
        found[self.work_node[used]] = True
        return np.asarray(self.nesting.total(found) > 0)

    @property
    def host(self) -> tuple[I64, I64]:
        """Time in ns of each node without its children, and with them."""
        return self.host_self, self.host_total

    @cached_property
    def host_total(self) -> I64:
        """Duration of each node, ns."""
        return self._trace.end[self.rows] - self._trace.start[self.rows]

    @cached_property
    def host_self(self) -> I64:
        """Duration of each node without the time that its children and own calls cover, ns."""
        called = self.call_node >= 0
        calls = self._trace.launchers.calls[called]
        return self._without_children(self.call_node[called], calls)

    @cached_property
    def host_self_without_children(self) -> I64:
        """Duration of each node without the time that its children cover, ns: the self time of modules."""
        return self._without_children(self.rows[:0], self.rows[:0])

    def _without_children(self, node: I64, rows: I64) -> I64:
        """Duration of each node without what its children cover, and events in some rows that belong to nodes, ns."""
        inner = np.flatnonzero(self.unmerged & (self.parent >= 0))
        every = np.concatenate([self.rows[inner], rows])
        return self.host_total - self.covered(np.concatenate([self.parent[inner], node]), self._trace.start[every],
                                              self._trace.end[every])  # fmt: skip

    @cached_property
    def inner_operators(self) -> tuple[I64, I64]:
        """Number of the operators directly in each node, and their device time with what they call, ns."""
        inner = np.flatnonzero(self.unmerged & self.operator & (self.parent >= 0))
        found = np.zeros((2, len(self.rows)), np.int64)
        np.add.at(found[0], self.parent[inner], 1)
        np.add.at(found[1], self.parent[inner], self.device[1][inner])
        return found[0], found[1]

    def covered(self, node: I64, start: I64, end: I64) -> I64:
        """Time in ns of each node that intervals cover; ``node``: index of the node that each interval belongs to."""
        trace = self._trace
        # place all nodes on one time axis, so that intervals of different nodes do not merge
        offset = np.concatenate([[0], np.cumsum(self.host_total)])[:-1]
        begins, ends = trace.start[self.rows][node], trace.end[self.rows][node]
        low, high = (np.clip(times, begins, ends) - begins + offset[node] for times in (start, end))
        edges = np.append(offset, offset[-1:] + self.host_total[-1:])
        return np.asarray(np.diff(Intervals.union(low, high).covered(edges)))

    def node_at(self, thread: npt.NDArray[np.integer], time: I64) -> I64:
        """Index of the innermost node of a thread at each time (start <= time < end); -1 if none."""
        trace, rows = self._trace, self.rows
        index = innermost(
            (trace.start[rows], trace.end[rows], self._threads), (time, time, thread), self.nesting.parent
        )
        return np.where(index >= 0, self.merged_into[index] if len(rows) else -1, -1)
