"""Figures derived from one trace that several views share: launchers, the tree of operators, steps.

Definitions follow the TensorBoard plugin and HTA where users compare figures with theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.pivot import Frame
from tpuprof_tui.analysis.selecting.filter_masks import apply_filter
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.formats.units import time_text
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Activity
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.views.query import Query

from ..read.believable import is_fragmentary
from ..read.categories import Kind
from ..read.kernel_names import LOADER, OTHER_CARDS
from ..read.launchers import unrecorded_problems
from ..read.profile import TorchProfile, TraceWorker, properties_of
from ..read.steps import STEP, executions, rows_named, step_at, step_numbers

if TYPE_CHECKING:
    from ..read.captures import Replayed

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Item = TypeVar("Item")

_REPLAY: Final = lazy_pattern("Graph")
_GUESSED: Final = ("~ No steps are marked: these are repetitions of device work; of the host, what started meanwhile "
                   "belongs to them.")  # fmt: skip
_OF_GRAPHS: Final = ("Graphs were replayed: operators and modules of their kernels are not recorded; see kernels and "
                     "streams.")  # fmt: skip


class Steps(Struct, frozen=True, eq=False):
    """Steps by time, in columns of one length.

    Attributes:
        label: Label of each step.
        host_start, host_end: As annotated by the host.
        start, end: Including the device work that they launched.
        launched: Number of device events launched.
        counted: Whether a step counts in figures; the last ones may not.
        annotated: Whether the host annotated the steps.
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
    """One worker's trace and the figures derived from it.

    Attributes:
        worker, trace: The worker and its trace.
        launchers: Who launched the trace's calls and device work.
        call: Row of the call of each device work; -1 if none.
        work_start, work_end: Start and end (ns) of each device work.
        kernels: Mask of the device work that is kernels.
        calls: Rows of the calls.
    """

    def __init__(self, worker: TraceWorker) -> None:
        self.worker = worker
        trace = self.trace = worker.trace
        self.call, rows = trace.call, trace.work_rows
        self.work_start, self.work_end = trace.start[rows], trace.end[rows]
        self.launchers = trace.launchers
        self.kernels, self.calls = self.launchers.kernels, self.launchers.calls

    @classmethod
    def of(cls, worker: TraceWorker) -> Run:
        """The run of a worker; reuses what was computed of its trace for an earlier, preliminary profile."""
        run, trace = cls(worker), vars(worker.trace)
        if (before := trace.get("run")) is not None:
            vars(run).update({**vars(before), "worker": worker})
        trace["run"] = run
        return run

    # -- device work

    @cached_property
    def tensor_cores_known(self) -> bool:
        """Whether kernel names show the use of tensor cores: there are kernels, and only on NVIDIA cards."""
        cards = [str(each.get("name") or "") for each in properties_of(self.trace)]
        others = any(map(OTHER_CARDS.search, cards)) or any(name.startswith("hip") for name in self.trace.names)
        return bool(self.kernels.any()) and not others

    @cached_property
    def captures_graphs(self) -> bool:
        """Whether CUDA graphs are captured in the trace; capturing executes next to nothing on the device."""
        return any(name.endswith("StreamBeginCapture") for name in self.trace.names)

    @cached_property
    def is_fragmentary(self) -> bool:
        """Whether the work of many launches was not recorded, or is set aside, so that idle time is not known."""
        return is_fragmentary(self.trace) or any(each.fragmentary for each in unrecorded_problems(self.trace))

    @cached_property
    def collectives(self) -> I64:
        """Rows of the host's collectives."""
        return np.flatnonzero(
            self.launchers.has_collective_name & np.isin(self.trace.kind, (Kind.OPERATOR, Kind.ANNOTATION))
        )

    # -- selections

    @cached_property
    def steps(self) -> Steps:
        """Annotated steps, extended by their device work as in the TensorBoard plugin; else one step for the trace."""
        trace = self.trace
        rows = rows_named(trace, STEP)
        labels = tuple(trace.names[name][len(STEP) :] for name in trace.name[rows].tolist())
        host_start, host_end = trace.start[rows], trace.end[rows]
        annotated = len(rows) > 0
        if not annotated:
            step_spans = np.concatenate([np.flatnonzero(trace.kind == Kind.OPERATOR), self.loaders])
            if not len(step_spans):
                step_spans = np.concatenate([self.calls, trace.work_rows])
            if len(step_spans):
                labels = ("0",)
                host_start, host_end = trace.start[step_spans].min()[None], trace.end[step_spans].max()[None]
        return self._with_work(labels, host_start, host_end, annotated=annotated)

    @cached_property
    def executions(self) -> Steps:
        """Executions of a model by an inference server, extended by their device work."""
        rows, told = executions(self.trace)
        found = self._with_work(
            tuple(each.label for each in told), self.trace.start[rows], self.trace.end[rows], annotated=False
        )
        return replace(found, counted=np.ones(len(rows), np.bool_))

    def _with_work(self, labels: tuple[str, ...], host_start: I64, host_end: I64, *, annotated: bool) -> Steps:
        """Steps of the host, extended by the device work that they launched."""
        run, trace, count = self, self.trace, len(labels)
        launched = np.zeros(count, np.int64)
        start, end, counted = host_start.copy(), host_end.copy(), np.ones(count, np.bool_)
        launched_work = np.flatnonzero(run.call >= 0)
        call_start, call_end = trace.start[run.call[launched_work]], trace.end[run.call[launched_work]]
        order = np.argsort(call_start, kind="stable")
        launched_work, call_start, call_end = launched_work[order], call_start[order], call_end[order]
        matched = np.zeros(len(run.call), np.bool_)
        first_start, last_end = np.full(count, INT_MISSING, np.int64), np.full(count, INT_MISSING, np.int64)
        for step in range(count):
            low, high = np.searchsorted(call_start, (host_start[step], host_end[step] + 1))
            of_step = launched_work[low:high][call_end[low:high] <= host_end[step]]
            launched[step] = len(of_step)
            if len(of_step):
                matched[of_step] = True
                first_start[step], last_end[step] = run.work_start[of_step].min(), run.work_end[of_step].max()
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
        """Union of the intervals of events."""
        return Intervals.union(self.trace.start[rows], self.trace.end[rows])

    def work_union(self, which: Mask) -> Intervals:
        """Union of the intervals of device work."""
        return Intervals.union(self.work_start[which], self.work_end[which])

    @cached_property
    def loaders(self) -> I64:
        """Rows of the events that load data."""
        host = np.isin(self.trace.kind, (Kind.OPERATOR, Kind.ANNOTATION, Kind.OLD_FRAME, Kind.FRAME))
        return np.flatnonzero(host & self.trace.named(LOADER.fullmatch))


class ViewSelection(Struct, frozen=True, eq=False, dict=True):
    """Selection of a query within one worker.

    Attributes:
        run: The worker's run.
        query: The query, of this worker alone.
        events: Mask of the selected events, which start in the window; None: all.
        window: Start and end, ns of the trace, to which unions are clipped; None: no clipping.
        step: Number of the selected step; None: all.
        step_list, step_numbers: The steps that can be selected, and their numbers.
        guessed: Whether the selected step was found by repetition.
    """

    run: Run
    query: Query
    events: Mask | None
    window: tuple[int, int] | None
    step: int | None
    step_list: Steps
    step_numbers: I64
    guessed: bool

    def frame(self, kind: str, *keys: str, reaching: bool = False) -> Frame:
        """Columns of the selected events of the lanes of a kind; ``in_steps``: whether their step counts, as 0 or 1."""
        keys = ("start", "end", "duration", *keys)
        query = self.query
        lanes = [number for number in query.session.lanes_in(query.scope) if query.profile.lanes[number].kind == kind]
        if "in_steps" not in keys:
            return query.events(keys, lanes, reaching=reaching)
        frame = query.events((*(key for key in keys if key != "in_steps"), "step"), lanes, reaching=reaching)
        numbers = self.counted_steps
        inside = np.ones(len(frame), np.bool_) if numbers is None else np.isin(frame["step"], numbers)
        return frame.with_columns(in_steps=inside.astype(np.int64))

    def ran(self, kind: str, *keys: str) -> Frame:
        """As `frame`, with events that reach into the range, in all steps: a step includes all that ran in it."""
        return self.with_query(step=None).frame(kind, *keys, reaching=True)

    def with_query(self, **changes: Any) -> ViewSelection:
        """The selection with another query, for frames."""
        return replace(self, query=replace(self.query, **changes))

    def kernels(self, *keys: str) -> Frame:
        """Columns of the selected kernels."""
        work = self.frame("stream", *keys, "activity")
        return work.take(work["activity"] != Activity.TRANSFER)

    def union(self, events: Frame, which: Mask | slice = slice(None)) -> Intervals:
        """Union of the intervals of events, or of those in a mask, clipped to the range."""
        covered, window = Intervals.union(events["start"][which], events["end"][which]), self.query.range
        return covered if window is None else covered.clip(*window)

    @cached_property
    def counted_steps(self) -> I64 | None:
        """Numbers of the selected steps that count; None, with a selected step or without annotated ones: no steps."""
        if self.step is not None or not self.step_list.annotated:
            return None
        return self.step_numbers[self.step_list.counted & self.steps]

    @property
    def step_count(self) -> int:
        """Number of steps that means per step are of; a selected step, and a trace without marked steps, count as 1."""
        return 1 if self.counted_steps is None else len(self.counted_steps)

    def mask_of(self, rows: I64) -> Mask:
        """Mask of the selected ones among some rows."""
        return np.ones(len(rows), np.bool_) if self.events is None else self.events[rows]

    @cached_property
    def work(self) -> Mask:
        """Mask of the selected device work."""
        return self.mask_of(self.run.trace.work_rows)

    @cached_property
    def steps(self) -> Mask:
        """Mask of the selected steps; with a window, those that overlap it."""
        steps = self.step_list
        selected = np.ones(len(steps.label), np.bool_) if self.step is None else self.step_numbers == self.step
        if self.window is not None:
            selected &= (steps.start < self.window[1]) & (steps.end > self.window[0])
        return np.asarray(selected)

    @cached_property
    def in_steps(self) -> tuple[Mask, int]:
        """Mask of the events of the counted steps, as ``--step`` selects them, and how many steps these are.

        Without annotated steps, and for a selected step: of all events, and 1.
        """
        run, trace, steps = self.run, self.run.trace, self.step_list
        if self.step is not None or not steps.annotated:
            return np.ones(len(trace), np.bool_), 1
        counted = steps.counted & self.steps
        times = trace.start.copy()
        times[trace.work_rows] = run.launchers.step_times
        inside = step_at(steps.host_start[counted], steps.host_end[counted], times) != INT_MISSING
        return np.asarray(inside), int(counted.sum())

    @property
    def step_notes(self) -> tuple[str, ...]:
        """A note if the selected step was found by repetition; else empty."""
        return (_GUESSED,) if self.guessed else ()

    @property
    def replay_notes(self) -> tuple[str, ...]:
        """A note if selected work was launched by replayed graphs, whose operators are not recorded; else empty."""
        run, trace, captured = self.run, self.run.trace, self.replayed
        if captured is not None and captured.matched.any():
            matched, every = int((captured.matched & self.work).sum()), int((captured.replayed & self.work).sum())
            how = " by the number of calls alone" if captured.by_count else ""
            return (f"Of {every:,} events of replayed graphs {matched:,} were found in {len(captured.files)} trace"
                    f"{'s' if len(captured.files) > 1 else ''} of captures{how}: their operators, shapes and modules "
                    "stand in columns of the view kernels alone.",)  # fmt: skip
        rows = np.flatnonzero(self.work & (run.call >= 0))
        rows = rows[trace.named(_REPLAY.search)[run.call[rows]]]
        launcher = run.launchers.of_work[rows]
        return (_OF_GRAPHS,) if (~run.launchers.operators[launcher] | (launcher < 0)).any() else ()

    @property
    def replayed(self) -> Replayed | None:
        """What launched the work of replayed graphs, from captures beside the trace; None if there are none."""
        return self.run.trace.replayed(self.run.worker.rank)

    @property
    def overlap_notes(self) -> tuple[str, ...]:
        """A note if work of one stream overlaps, so that sums are larger than the time that it took; else empty."""
        found = self.run.trace.overlaps
        wrong = "" if found.explained.all() else ", and a duration is wrong (see problems)"
        text = f"Events of one stream overlap: sums count {time_text(found.sum_ns)} twice{wrong}."
        return (text,) if found.sum_ns else ()

    def step_spans(self, steps: I64) -> tuple[I64, I64]:
        """Start and end of some steps, clipped to the window."""
        start, end = self.step_list.start[steps], self.step_list.end[steps]
        return (start, end) if self.window is None else (np.clip(start, *self.window), np.clip(end, *self.window))


def workers_of(query: Query) -> list[TraceWorker]:
    """The workers that a query covers."""
    profile, top = query.profile, query.top_group
    workers = profile.traces if isinstance(profile, TorchProfile) else ()
    return [worker for worker in workers if top < 0 or worker.group == top]


def runs_of(query: Query) -> Iterator[Run]:
    """The runs of a query's workers, one at a time: each is evicted from memory before the next is computed."""
    for worker in workers_of(query):
        run = query.cache.get("PyTorch run", partial(Run.of, worker), worker.key)
        yield run
        trace = run.trace
        trees = [trace.tree] if "tree" in vars(trace) else []
        query.profile.arrays.spill(run, *trees, trace, run.launchers)


def one_by_one(query: Query, of_workers: Iterable[Item]) -> Iterator[Item]:
    """Yields items of workers one at a time; after each, memory of its columns is returned to the system."""
    for each in of_workers:
        yield each
        query.profile.arrays.release_pages()


def selection_of(query: Query, run: Run) -> ViewSelection:
    """The selection of a query within a worker."""
    worker = run.worker
    events: Mask | None = None
    window = None
    is_whole = query.scope.lane < 0 and query.scope.group in (-1, worker.group)
    if query.full_filter or not is_whole:
        events = np.zeros(len(run.trace), np.bool_)
        masks = apply_filter(query.session, query.full_filter) if query.full_filter else None
        chosen = set(query.session.lanes_in(query.scope))
        for lane, rows in worker.lane_rows.items():
            if lane in chosen:
                events[rows] = True if masks is None else masks.lane(lane)
    if query.range is not None:
        window = low, high = query.range[0] - worker.shift_ns, query.range[1] - worker.shift_ns
        # the last event may start at the end of the recording
        inside = (run.trace.start >= low) & ((run.trace.start < high) | (query.range[1] >= query.profile.end_ns))
        events = inside if events is None else events & inside
    guessed = query.step is not None and query.session.steps.guessed
    steps, numbers = _steps_to_select(query, run)
    own = query if query.top_group == worker.group else replace(query, scope=Scope(worker.group))
    return ViewSelection(run, own, events, window, query.step, steps, numbers, guessed)


def _steps_to_select(query: Query, run: Run) -> tuple[Steps, I64]:
    """The steps of a run, and their numbers; if the host annotated none, those that the query's step is one of."""
    if query.step is None or run.steps.annotated:
        return run.steps, step_numbers(run.steps.label)
    known = query.session.steps
    own = known.set_of(run.worker.group)
    if own is None:
        return run.steps, np.full(len(run.steps.label), INT_MISSING, np.int64)
    if not known.guessed:
        return run.executions, step_numbers(run.executions.label)
    # repetitions of device work: these begin and end with it
    start, end = (edge[own.index] - run.worker.shift_ns for edge in (known.steps.start, known.steps.end))
    begins = np.sort(run.work_start)
    launched = np.searchsorted(begins, end) - np.searchsorted(begins, start)
    labels = tuple(map(str, own.number.tolist()))
    return Steps(labels, start, end, start, end, launched, np.ones(len(labels), np.bool_), False), own.number
