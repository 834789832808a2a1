"""The tree of operators, annotations and modules of a trace, with their times on host and device."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.sources.chrome.columns import I64, lookup
from tpuprof_tui.sources.chrome.nesting import depths, innermost, parents, subtree_end

from ..categories import MODULE, Kind
from ..kernel_names import ELIGIBLE, is_tree_annotation

if TYPE_CHECKING:
    from .trace import Trace

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
        self._encloses = parent = parents(trace.start[rows], trace.end[rows], self._threads)
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

    @cached_property
    def _subtree_end(self) -> I64:
        return subtree_end(depths(self._encloses))

    def subtree_sums(self, own: I64) -> I64:
        """Sum of a value over each node and its descendants."""
        sums = np.concatenate([[0], np.cumsum(own)])
        return np.asarray(sums[self._subtree_end] - sums[:-1])

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
        return found, self.subtree_sums(found)

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
        return self.subtree_sums(found.astype(np.int64)) > 0

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
        index = innermost((trace.start[rows], trace.end[rows], self._threads), (time, time, thread), self._encloses)
        return np.where(index >= 0, self.merged_into[index] if len(rows) else -1, -1)
