"""What is computed of one trace and asked for by several of its views: launchers, the tree of operators, steps.

Definitions and their marks follow the TensorBoard plugin and HTA where people compare figures with theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.analysis.index.intervals import Intervals
from tpuprof_tui.analysis.selecting.filter_masks import passing
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.sources.chrome.nesting import behind, depths, innermost, parents
from tpuprof_tui.views.query import Query

from ..read.categories import Kind
from ..read.clocks import COMMUNICATION
from ..read.links import MODULE, STEP, rows_named, step_numbers
from ..read.profile import TorchProfile, TraceWorker, properties_of
from ..read.values import looked_up
from .rules import COLLECTIVE, ELIGIBLE, LOADER, OTHER_CARDS, is_operator, is_tree_annotation, uses_tensor_cores

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Thing = TypeVar("Thing")

#: From so many calls on whose id is their correlation ids are taken for those of launches.
_LAUNCH_IDS: Final = 10
_REPLAY: Final = re.compile("Graph")
_OF_GRAPHS: Final = ("Graphs were replayed: of which operator or module their kernels are is not recorded; kernels and "
                     "streams tell them.")  # fmt: skip


class Steps(Struct, frozen=True, eq=False):
    """Steps by time, in columns of one length.

    Attributes:
        label: What each is called.
        host_start, host_end: As the host annotated them.
        start, end: With the device work that they launched.
        launched: How many device events that is.
        counted: Whether they count; the last ones may not.
        annotated: Whether the host annotated them.
    """

    label: tuple[str, ...]
    host_start: I64
    host_end: I64
    start: I64
    end: I64
    launched: I64
    counted: Mask
    annotated: bool


class Run:
    """One worker's trace and what is derived of it.

    Attributes:
        worker, trace: See there.
        call: Row of the call of each device work; -1 without.
        work_start, work_end, work_kind: Start and end of each, ns, and what it is.
        kernels: Which device work is kernels.
        calls: Rows of the calls.
    """

    def __init__(self, worker: TraceWorker) -> None:
        self.worker = worker
        trace = self.trace = worker.trace
        self.call, rows = trace.call, trace.work_rows
        self.work_start, self.work_end, self.work_kind = trace.start[rows], trace.end[rows], trace.kind[rows]
        self.kernels = np.asarray(self.work_kind == Kind.KERNEL)
        self.calls = np.flatnonzero(trace.kind == Kind.CALL)

    @classmethod
    def of(cls, worker: TraceWorker) -> Run:
        """That of a worker, with what was computed of its trace before others of the run had been read."""
        run, trace = cls(worker), vars(worker.trace)
        if (before := trace.get("run")) is not None:
            vars(run).update({**vars(before), "worker": worker})
            for tree in run.known:
                tree.run = run
        trace["run"] = run
        return run

    @property
    def known(self) -> list[Tree]:
        """The tree, where it has been made."""
        return [vars(self)["tree"]] if "tree" in vars(self) else []

    # -- device work

    @cached_property
    def tensor_cores(self) -> Mask:
        """Which device work uses tensor cores."""
        return np.asarray(self.trace.named(uses_tensor_cores)[self.trace.work_rows] & self.kernels)

    @cached_property
    def tells_tensor_cores(self) -> bool:
        """Whether names of kernels tell tensor cores: there are kernels, and all of them of NVIDIA's cards."""
        cards = [str(each.get("name") or "") for each in properties_of(self.trace)]
        others = any(map(OTHER_CARDS.search, cards)) or any(name.startswith("hip") for name in self.trace.names)
        return bool(self.kernels.any()) and not others

    @cached_property
    def captures_graphs(self) -> bool:
        """Whether CUDA graphs are recorded in it, which runs next to nothing."""
        return any(name.endswith("StreamBeginCapture") for name in self.trace.names)

    @cached_property
    def communicates(self) -> Mask:
        """Which device work is kernels that communicate."""
        named = self.trace.named(COMMUNICATION.match)[self.trace.work_rows]
        launcher = self.launcher
        known = launcher >= 0
        by_launcher = np.zeros(len(launcher), np.bool_)
        by_launcher[known] = self.collective_name[launcher[known]]
        return np.asarray(self.kernels & (named | self.trace.work["collective"] | by_launcher))

    @cached_property
    def collective_name(self) -> Mask:
        """By event: whether its name is that of a collective on the host."""
        return self.trace.named(COLLECTIVE.match)

    @cached_property
    def collectives(self) -> I64:
        """Rows of the collectives on the host."""
        return np.flatnonzero(self.collective_name & np.isin(self.trace.kind, (Kind.OPERATOR, Kind.ANNOTATION)))

    # -- who launched what

    @cached_property
    def ids_usable(self) -> bool:
        """Whether External ids of calls name operators: not where they are the ids of launches."""
        correlation, external = self.trace.correlation[self.calls], self.trace.external[self.calls]
        both = (correlation != INT_MISSING) & (external != INT_MISSING)
        return int(both.sum()) < _LAUNCH_IDS or bool((correlation[both] != external[both]).any())

    def named_by(self, ids: I64) -> I64:
        """Row of the operator or annotation that each External id names; -1 for none."""
        trace = self.trace
        rows = np.flatnonzero(np.isin(trace.kind, (Kind.OPERATOR, Kind.ANNOTATION, Kind.OLD_FRAME))
                              & (trace.external != INT_MISSING) & (trace.external != 0))  # fmt: skip
        rows = rows[np.lexsort((trace.place[rows], trace.external[rows]))]
        return looked_up(trace.external[rows], ids, rows)

    @cached_property
    def operators(self) -> Mask:
        """By event: whether it is an operator."""
        return np.asarray((self.trace.kind == Kind.OPERATOR) & self.trace.named(is_operator))

    @cached_property
    def call_owner(self) -> I64:
        """By event: row of the operator or annotation that a call belongs to; -1 for none and for what is no call."""
        trace, calls = self.trace, self.calls
        found = np.full(len(trace), -1, np.int64)
        external = trace.external[calls]
        by_time = (external == INT_MISSING) if self.ids_usable else np.ones(len(calls), np.bool_)
        found[calls[~by_time]] = self.named_by(external[~by_time])
        found[calls[by_time]] = self.around(np.flatnonzero(self.operators), calls[by_time])
        return found

    def around(self, outer: I64, inner: I64) -> I64:
        """Row of the innermost of some events that contains each of others on its thread; -1 without."""
        trace = self.trace
        place = innermost((trace.start[outer], trace.end[outer], trace.thread_of(outer)),
                          (trace.start[inner], trace.end[inner], trace.thread_of(inner)))  # fmt: skip
        return np.where(place >= 0, outer[place] if len(outer) else -1, -1)

    @cached_property
    def launcher(self) -> I64:
        """Row of the operator or annotation that launched each device work; -1 for none."""
        call = self.call
        found = np.where(call >= 0, self.call_owner[call] if len(self.trace) else -1, -1)
        if self.ids_usable:
            alone = np.flatnonzero(call < 0)
            found[alone] = self.named_by(self.trace.external[self.trace.work_rows[alone]])
        return found

    # -- selections

    @cached_property
    def tree(self) -> Tree:
        """The tree of operators."""
        return Tree(self)

    @cached_property
    def steps(self) -> Steps:
        """The steps."""
        run, trace = self, self.trace
        rows = rows_named(trace, STEP)
        labels = tuple(trace.names[name][len(STEP) :] for name in trace.name[rows].tolist())
        host_start, host_end = trace.start[rows], trace.end[rows]
        annotated = len(rows) > 0
        if not annotated:
            spans = np.concatenate([np.flatnonzero(trace.kind == Kind.OPERATOR), run.loaders])
            if not len(spans):
                spans = np.concatenate([run.calls, trace.work_rows])
            if len(spans):
                labels = ("0",)
                host_start, host_end = trace.start[spans].min()[None], trace.end[spans].max()[None]
        count = len(labels)
        launched = np.zeros(count, np.int64)
        start, end, counted = host_start.copy(), host_end.copy(), np.ones(count, np.bool_)
        known = np.flatnonzero(run.call >= 0)
        call_start, call_end = trace.start[run.call[known]], trace.end[run.call[known]]
        order = np.argsort(call_start, kind="stable")
        known, call_start, call_end = known[order], call_start[order], call_end[order]
        matched = np.zeros(len(run.call), np.bool_)
        first_start, last_end = np.full(count, INT_MISSING, np.int64), np.full(count, INT_MISSING, np.int64)
        for step in range(count):
            low, high = np.searchsorted(call_start, (host_start[step], host_end[step] + 1))
            mine = known[low:high][call_end[low:high] <= host_end[step]]
            launched[step] = len(mine)
            if len(mine):
                matched[mine] = True
                first_start[step], last_end[step] = run.work_start[mine].min(), run.work_end[mine].max()
        if not launched.any():
            return Steps(labels, host_start, host_end, start, end, launched, counted, annotated)
        before = int(host_start[0])
        if launched[0]:
            early = run.work_end[~matched & (run.work_end < first_start[0])]
            before = max(before, int(early.max(initial=before)))
        for step in range(count):
            start[step] = max(before, int(host_start[step]))
            end[step] = max(int(host_end[step]), int(start[step]), int(last_end[step]))
            before = int(end[step])
        last = int(np.flatnonzero(launched)[-1])
        keep = last + 1
        if count > 1 and last > 0 and launched[last] < 0.8 * launched[last - 1]:
            keep = last
        if count > 1:
            counted[keep:] = False
        return Steps(labels, host_start, host_end, start, end, launched, counted, annotated)

    def union(self, rows: I64) -> Intervals:
        """The time that events cover."""
        return Intervals.union(self.trace.start[rows], self.trace.end[rows])

    def work_union(self, which: Mask) -> Intervals:
        """The time that device work covers."""
        return Intervals.union(self.work_start[which], self.work_end[which])

    @cached_property
    def loaders(self) -> I64:
        """Rows of what loads data."""
        host = np.isin(self.trace.kind, (Kind.OPERATOR, Kind.ANNOTATION, Kind.OLD_FRAME, Kind.FRAME))
        return np.flatnonzero(host & self.trace.named(LOADER.fullmatch))


class Tree:
    """Operators, some annotations and nn.Modules of each thread by nesting, in columns of one length.

    A node whose only child is an operator of its own name is one with it: the outer one stays.

    Attributes:
        rows: Events, in the order of nesting.
        parent: Place of the node above; -1 without.
        stays: Which nodes are themselves, not one with that above.
        same: Place of the node that each is one with.
        operator: Which are operators.
    """

    def __init__(self, run: Run) -> None:
        trace = self._trace = run.trace
        self.run = run
        annotation = np.isin(trace.kind, (Kind.ANNOTATION,)) & trace.named(is_tree_annotation)
        module = (trace.kind == Kind.FRAME) & trace.named(lambda name: name.startswith(MODULE))
        self.rows = np.flatnonzero((trace.kind == Kind.OPERATOR) | annotation | module)
        rows = self.rows
        self.module = module[rows]
        self.operator = run.operators[rows]
        self._threads = trace.thread_of(rows)
        self._encloses = parent = parents(trace.start[rows], trace.end[rows], self._threads)
        inner = parent >= 0
        children = np.bincount(parent[inner], minlength=len(rows))
        merged = np.zeros(len(rows), np.bool_)
        merged[inner] = ((children[parent[inner]] == 1) & (trace.name[rows[parent[inner]]] == trace.name[rows[inner]])
                         & (trace.kind[rows[inner]] == Kind.OPERATOR))  # fmt: skip
        same = np.where(merged, parent, np.arange(len(rows)))
        while bool((same != same[same]).any()):
            same = same[same]
        self.same, self.stays = same, ~merged
        self.parent = np.where(inner, same[parent] if len(parent) else -1, -1)
        self.parent[merged] = -1

    @cached_property
    def _behind(self) -> I64:
        """The place behind each node and all below it."""
        return behind(depths(self._encloses))

    def summed_up(self, own: I64) -> I64:
        """Values of nodes that stay and of all below them."""
        sums = np.concatenate([[0], np.cumsum(own)])
        return np.asarray(sums[self._behind] - sums[:-1])

    def summed_down(self, which: Mask) -> I64:
        """How many nodes of some each lies in, itself counted."""
        change = np.zeros(len(self.rows) + 1, np.int64)
        change[:-1] += which
        np.subtract.at(change, self._behind[which], 1)
        return np.asarray(np.cumsum(change[:-1]))

    def at(self, rows: I64) -> I64:
        """Place of the node that each event is one with; -1 where it is none, or -1 itself."""
        place = looked_up(self.rows, rows)
        return np.where(place >= 0, self.same[place] if len(self.rows) else -1, -1)

    @cached_property
    def call_node(self) -> I64:
        """By call (``Run.calls``): place of its node; -1 for none."""
        return self.at(self.run.call_owner[self.run.calls])

    @cached_property
    def work_node(self) -> I64:
        """By device work with a call: place of the node of its call; -1 for none."""
        run = self.run
        owner = np.where(run.call >= 0, run.call_owner[run.call] if len(run.trace) else -1, -1)
        return self.at(owner)

    def _sums(self, which: Mask) -> tuple[I64, I64]:
        run = self.run
        chosen = which & (self.work_node >= 0)
        found = np.zeros(len(self.rows), np.int64)
        np.add.at(found, self.work_node[chosen], (run.work_end - run.work_start)[chosen])
        return found, self.summed_up(found)

    @cached_property
    def device(self) -> tuple[I64, I64]:
        """Device time of each node's own calls, and with all below, ns."""
        return self._sums(np.ones(len(self.run.call), np.bool_))

    @cached_property
    def tensor(self) -> tuple[I64, I64]:
        """The same of tensor-core kernels."""
        return self._sums(self.run.tensor_cores)

    @cached_property
    def eligible(self) -> Mask:
        """Whether a node can use tensor cores, or something of it did."""
        run = self.run
        found = self._trace.named(ELIGIBLE.__contains__)[self.rows] & self.operator
        used = run.tensor_cores & (self.work_node >= 0)
        found[self.work_node[used]] = True
        return self.summed_up(found.astype(np.int64)) > 0

    @cached_property
    def host_total(self) -> I64:
        """Duration of each, ns."""
        return self._trace.end[self.rows] - self._trace.start[self.rows]

    @cached_property
    def host_self(self) -> I64:
        """Duration without what children and own calls cover."""
        trace, run = self._trace, self.run
        inner = np.flatnonzero(self.stays & (self.parent >= 0))
        called = self.call_node >= 0
        return self.host_total - self.covered(
            np.concatenate([self.parent[inner], self.call_node[called]]),
            np.concatenate([trace.start[self.rows[inner]], trace.start[run.calls[called]]]),
            np.concatenate([trace.end[self.rows[inner]], trace.end[run.calls[called]]]),
        )

    @cached_property
    def host_self_without_children(self) -> I64:
        """Duration without what children cover: what modules are told as their own."""
        trace = self._trace
        inner = np.flatnonzero(self.stays & (self.parent >= 0))
        return self.host_total - self.covered(
            self.parent[inner], trace.start[self.rows[inner]], trace.end[self.rows[inner]]
        )

    def covered(self, node: I64, start: I64, end: I64) -> I64:
        """How much of each node intervals cover that belong to it, as far as they lie in it, ns."""
        trace = self._trace
        # all nodes one behind the other on one line, so that intervals of different nodes do not meet
        offset = np.concatenate([[0], np.cumsum(self.host_total)])[:-1]
        begins, ends = trace.start[self.rows], trace.end[self.rows]
        low = np.clip(start, begins[node], ends[node]) - begins[node] + offset[node]
        high = np.clip(end, begins[node], ends[node]) - begins[node] + offset[node]
        edges = np.append(offset, offset[-1:] + self.host_total[-1:])
        return np.asarray(np.diff(Intervals.union(low, high).covered(edges)))

    def node_at(self, thread: npt.NDArray[np.integer], time: I64) -> I64:
        """Place of the innermost node of a thread at each time (start <= time < end); -1 without."""
        trace, rows = self._trace, self.rows
        place = innermost((trace.start[rows], trace.end[rows], self._threads), (time, time, thread), self._encloses)
        return np.where(place >= 0, self.same[place] if len(rows) else -1, -1)


class Asked(Struct, frozen=True, eq=False, dict=True):
    """What a query asks of one worker.

    Attributes:
        run: The worker's trace.
        events: By event: whether it is asked about; None: all are.
        window: Start and end, ns of the trace, at which unions are cut; None: nowhere.
        step: Number of the step that is asked about; None: all are.
        narrowed: Whether scope, range or filter leave events out: a step alone tells all that ran in it.
    """

    run: Run
    events: Mask | None
    window: tuple[int, int] | None
    step: int | None = None
    narrowed: bool = False

    def among(self, rows: I64) -> Mask:
        """Which of some events are asked about."""
        return np.ones(len(rows), np.bool_) if self.events is None else self.events[rows]

    @cached_property
    def work(self) -> Mask:
        """Which device work is asked about."""
        return self.among(self.run.trace.work_rows)

    @cached_property
    def steps(self) -> Mask:
        """Which steps are asked about: of a window those that touch it."""
        steps = self.run.steps
        asked = np.ones(len(steps.label), np.bool_) if self.step is None else step_numbers(steps.label) == self.step
        if self.window is not None:
            asked &= (steps.start < self.window[1]) & (steps.end > self.window[0])
        return np.asarray(asked)

    @property
    def replays(self) -> tuple[str, ...]:
        """What cannot be told of what is asked about, as replayed graphs launched it: a sentence, or none."""
        run, trace = self.run, self.run.trace
        rows = np.flatnonzero(self.work & (run.call >= 0))
        rows = rows[trace.named(_REPLAY.search)[run.call[rows]]]
        launcher = run.launcher[rows]
        return (_OF_GRAPHS,) if (~run.operators[launcher] | (launcher < 0)).any() else ()

    @property
    def narrow_work(self) -> Mask:
        """Which device work fills the steps that are asked about."""
        return self.work if self.narrowed else np.ones(len(self.run.trace.work_rows), np.bool_)

    def narrow(self, rows: I64) -> I64:
        """Those of some events that fill the steps that are asked about."""
        return rows[self.among(rows)] if self.narrowed else rows

    def spans(self, steps: I64) -> tuple[I64, I64]:
        """Start and end of some steps, as far as they lie in the window."""
        start, end = self.run.steps.start[steps], self.run.steps.end[steps]
        return (start, end) if self.window is None else (np.clip(start, *self.window), np.clip(end, *self.window))

    def clip(self, covered: Intervals) -> Intervals:
        """A union within the window."""
        return covered if self.window is None else covered.clip(*self.window)


def workers_of(query: Query) -> list[TraceWorker]:
    """The workers that a query is about."""
    profile, top = query.profile, query.top_group
    workers = profile.traces if isinstance(profile, TorchProfile) else ()
    return [worker for worker in workers if top < 0 or worker.group == top]


def runs_of(query: Query) -> Iterator[Run]:
    """Their runs, one after the other: of many, what was computed of one leaves memory before the next one."""
    for worker in workers_of(query):
        run = query.derived.get("PyTorch run", partial(Run.of, worker), worker.key)
        yield run
        query.profile.arrays.put_away(run, *run.known, run.trace)


def one_by_one(query: Query, of_workers: Iterable[Thing]) -> Iterator[Thing]:
    """What is known of workers, one after the other: of many, what one takes leaves memory before the next one."""
    for each in of_workers:
        yield each
        query.profile.arrays.give_back()


def asked_of(query: Query, run: Run) -> Asked:
    """What a query asks of a worker."""
    worker = run.worker
    events: Mask | None = None
    window = None
    whole = query.scope.lane < 0 and query.scope.group in (-1, worker.group)
    if query.passes or not whole:
        events = np.zeros(len(run.trace), np.bool_)
        passes = passing(query.session, query.passes) if query.passes else None
        chosen = set(query.session.lanes_in(query.scope))
        for lane, rows in worker.lane_rows.items():
            if lane in chosen:
                events[rows] = True if passes is None else passes.lane(lane)
    if query.range is not None:
        low, high = (edge - worker.shift_ns for edge in query.range)
        window = (low, high)
        inside = (run.trace.start >= low) & (run.trace.start < high)
        events = inside if events is None else events & inside
    return Asked(run, events, window, query.step, bool(query.filter) or not whole or query.range is not None)
