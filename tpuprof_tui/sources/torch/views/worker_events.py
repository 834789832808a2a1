"""Events and steps of one worker that a query selects, and answers of several workers; shared by the views.

Definitions follow the TensorBoard plugin and HTA where users compare figures with theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.events import rows_of_table
from tpuprof_tui.analysis.pivot import Frame
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.formats.units import time_text
from tpuprof_tui.model import INT_MISSING, Activity
from tpuprof_tui.model.group import Worker
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.model.table import Table as Records
from tpuprof_tui.views.answer import Answer, Missing
from tpuprof_tui.views.workers import stack_workers

from ..categories import COLLECTIVE, COLLECTIVE_COMM, LOADER, LOADER_KINDS, STEP, Kind
from ..records import RecordedTrace
from ..vocabulary import DEVICE, MEMORY, MODULES

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_GUESSED: Final = ("~ No steps are marked: these are repetitions of device work; of the host, what started meanwhile "
                   "belongs to them.")  # fmt: skip
_OF_GRAPHS: Final = ("Graphs were replayed: operators and modules of their kernels are not recorded; see kernels and "
                     "streams.")  # fmt: skip
_NO_STREAM: Final = "These figures are of device streams, and the scope has none: choose the rank or a GPU."


class WorkerSteps(Struct, frozen=True, eq=False):
    """Steps by time, in columns of one length; times are ns."""

    label: tuple[str, ...]  #: Label of each step
    number: I64  #: Its number, as ``--step`` takes it; missing: it cannot be selected
    #: host_start, host_end: As annotated by the host.
    host_start: I64
    host_end: I64
    #: start, end: Including the device work that they launched.
    start: I64
    end: I64
    launched: I64  #: Number of device events launched
    counted: Mask  #: Whether a step counts in figures; the last ones may not
    annotated: bool  #: Whether the host annotated the steps


class WorkerEvents(Struct, frozen=True, eq=False, dict=True):
    """The events of one worker that a query, of it alone, selects; ``steps``: those that can be selected."""

    query: Query
    worker: Worker
    steps: WorkerSteps

    @property
    def recorded(self) -> RecordedTrace:
        """What is known of the trace beside its events."""
        recorded: RecordedTrace = self.worker.recorded
        return recorded

    @cached_property
    def whole(self) -> WorkerEvents:
        """All events of the worker."""
        return replace(self, query=whole_of(self.query, self.worker))

    @cached_property
    def in_worker(self) -> WorkerEvents:
        """The events that range, step and filter select, of the whole worker."""
        return self.with_query(scope=Scope(self.worker.group))

    def with_query(self, **changes: Any) -> WorkerEvents:
        """The events of a changed query."""
        return replace(self, query=replace(self.query, **changes))

    def frame(self, kind: str, *keys: str, reaching: bool = False) -> Frame:
        """Columns of the selected events of the lanes of a kind; ``in_steps``: whether their step counts, as 0 or 1."""
        keys = ("start", "end", "duration", *keys)
        query = self.query
        lanes = [number for number in query.session.lanes_in(query.scope) if query.profile.lanes[number].kind == kind]
        if "in_steps" not in keys:
            return query.events(keys, lanes, reaching=reaching)
        frame = query.events((*(key for key in keys if key != "in_steps"), "step"), lanes, reaching=reaching)
        numbers = self.counted_numbers
        inside = np.ones(len(frame), np.bool_) if numbers is None else np.isin(frame["step"], numbers)
        return frame.with_columns(in_steps=inside.astype(np.int64))

    def selects(self, events: Frame) -> Mask:
        """Mask of the events of threads, a frame with their lane and row, that the query selects."""
        offsets = self.query.session.offsets
        own = self.frame("thread", "lane", "row")
        return np.isin(offsets[events["lane"]] + events["row"], offsets[own["lane"]] + own["row"])

    def ran(self, kind: str, *keys: str) -> Frame:
        """As `frame`, with events that reach into the range, in all steps: a step includes all that ran in it."""
        return self.with_query(step=None).frame(kind, *keys, reaching=True)

    def kernels(self, *keys: str) -> Frame:
        """Columns of the selected kernels."""
        work = self.frame("stream", *keys, "activity")
        return work.take(work["activity"] != Activity.TRANSFER)

    def table(self, name: str) -> Records:
        """A table of the worker (`recorded`)."""
        found = self.query.profile.table(name, self.worker.group)
        assert found is not None, "readers write all of them"
        return found

    def rows(self, table: Records) -> I64:
        """Rows of a table that start in the range, of events that pass filter and step."""
        return rows_of_table(self.query.session, table, self.query.range, self.query.full_filter)

    def union(self, events: Frame, which: Mask | slice = slice(None)) -> Intervals:
        """Union of the intervals of events, or of those in a mask, clipped to the range."""
        covered, window = Intervals.union(events["start"][which], events["end"][which]), self.query.range
        return covered if window is None else covered.clip(*window)

    # -- steps

    @cached_property
    def chosen(self) -> Mask:
        """Mask of the selected steps; with a range, those that overlap it."""
        steps, step, window = self.steps, self.query.step, self.query.range
        selected = np.ones(len(steps.label), np.bool_) if step is None else steps.number == step
        if window is not None:
            selected &= (steps.start < window[1]) & (steps.end > window[0])
        return np.asarray(selected)

    @cached_property
    def counted(self) -> I64:
        """Indices of the selected steps that count."""
        return np.flatnonzero(self.steps.counted & self.chosen)

    @cached_property
    def counted_numbers(self) -> I64 | None:
        """Numbers of the selected steps that count; None, with a selected step or without annotated ones: no steps."""
        if self.query.step is not None or not self.steps.annotated:
            return None
        return self.steps.number[self.counted]

    @property
    def step_count(self) -> int:
        """Number of steps that means per step are of; a selected step, and a trace without marked steps, count as 1."""
        return 1 if self.counted_numbers is None else len(self.counted_numbers)

    @property
    def step_spans(self) -> tuple[I64, I64]:
        """Start and end of the selected steps that count, clipped to the range."""
        start, end, window = self.steps.start[self.counted], self.steps.end[self.counted], self.query.range
        return (start, end) if window is None else (np.clip(start, *window), np.clip(end, *window))

    # -- notes

    @property
    def step_notes(self) -> tuple[str, ...]:
        """A note if the selected step was found by repetition; else empty."""
        return (_GUESSED,) if self.query.step is not None and self.query.steps.guessed else ()

    @property
    def replay_notes(self) -> tuple[str, ...]:
        """A note if selected work was launched by replayed graphs, whose operators are not recorded; else empty."""
        captures = self.recorded.captures()
        if captures is not None and captures.files:
            work = self.frame("stream", "captured", "replayed")
            matched, every = int((work["captured"] > 0).sum()), int(work["replayed"].sum())
            how = " by the number of calls alone" if captures.by_count else ""
            return (f"Of {every:,} events of replayed graphs {matched:,} were found in {captures.files} trace"
                    f"{'s' if captures.files > 1 else ''} of captures{how}: their operators, shapes and modules "
                    "stand in columns of the view kernels alone.",)  # fmt: skip
        return (_OF_GRAPHS,) if self.frame("stream", "of_graph")["of_graph"].any() else ()

    @property
    def overlap_notes(self) -> tuple[str, ...]:
        """A note if work of one stream overlaps, so that sums are larger than the time that it took; else empty."""
        wrong = "" if self.recorded.overlaps_explained else ", and a duration is wrong (see problems)"
        length = self.recorded.overlap_ns
        return (f"Events of one stream overlap: sums count {time_text(length)} twice{wrong}.",) if length else ()


def whole_of(query: Query, worker: Worker) -> Query:
    """The query of everything in a worker."""
    return replace(query.whole, scope=Scope(worker.group), baseline=None)


def workers_of(query: Query) -> list[Worker]:
    """The workers that a query covers."""
    top = query.top_group
    return [worker for worker in query.profile.workers or () if top < 0 or worker.group == top]


def worker_by_worker(query: Query, workers: Iterable[Worker] | None = None) -> Iterator[WorkerEvents]:
    """The events of a query's workers, or of some of them; after each, what was computed of it leaves memory."""
    for worker in workers_of(query) if workers is None else workers:
        own = query if query.top_group == worker.group else replace(query, scope=Scope(worker.group))
        yield WorkerEvents(own, worker, _steps_to_select(own, worker))
        worker.release()


def steps_of(query: Query, worker: Worker) -> WorkerSteps:
    """Annotated steps, extended by their device work as in the TensorBoard plugin; else one step for the trace."""
    return query.cache.get("PyTorch steps", partial(_steps_of, query, worker), worker.key)


def _steps_of(query: Query, worker: Worker) -> WorkerSteps:
    events = WorkerEvents(whole_of(query, worker), worker, _steps((), np.zeros((3, 0), np.int64), annotated=False))
    if worker.recorded.annotated:
        labels, *columns = _recorded_steps(query, worker)
        labels = tuple(label.removeprefix(STEP) for label in labels)
        return _with_work(events, _steps(labels, np.stack(columns), annotated=True))
    host = events.frame("thread", "kind", "name")
    loads = np.isin(host["kind"], LOADER_KINDS) & host.has("name", LOADER.fullmatch)
    parts = [host.take((host["kind"] == Kind.OPERATOR) | loads)]
    if not len(parts[0]):
        parts = [host.take(host["kind"] == Kind.CALL), events.frame("stream")]
    spans = [(int(part["start"].min()), int(part["end"].max())) for part in parts if len(part)]
    if not spans:
        return events.steps
    span = min(start for start, _ in spans), max(end for _, end in spans)
    return _with_work(events, _steps(("0",), np.array([[0], [span[0]], [span[1]]], np.int64), annotated=False))


def _recorded_steps(query: Query, worker: Worker) -> tuple[tuple[str, ...], I64, I64, I64]:
    steps = query.profile.steps
    own = np.flatnonzero(steps.group == worker.group)
    return tuple(steps.labels.texts(steps.label[own])), steps.number[own], steps.start[own], steps.end[own]


def _steps(labels: tuple[str, ...], columns: I64, *, annotated: bool) -> WorkerSteps:
    number, start, end = columns
    launched, counted = np.zeros(len(labels), np.int64), np.ones(len(labels), np.bool_)
    return WorkerSteps(labels, number, start, end, start, end, launched, counted, annotated)


def _with_work(events: WorkerEvents, steps: WorkerSteps) -> WorkerSteps:
    """Steps of the host, extended by the device work that they launched."""
    work = events.frame("stream", "call_start", "call_end")
    count, host_start, host_end = len(steps.label), steps.host_start, steps.host_end
    launched, matched = np.zeros(count, np.int64), np.zeros(len(work), np.bool_)
    first_start, last_end = np.full(count, INT_MISSING, np.int64), np.full(count, INT_MISSING, np.int64)
    for step, of_step in enumerate(work_of_steps(work, steps)):
        launched[step] = len(of_step)
        if len(of_step):
            matched[of_step] = True
            first_start[step], last_end[step] = work["start"][of_step].min(), work["end"][of_step].max()
    if not launched.any():
        return steps
    start, end, counted = host_start.copy(), host_end.copy(), np.ones(count, np.bool_)
    before = int(host_start[0])
    if launched[0]:
        early = work["end"][~matched & (work["end"] < first_start[0])]
        before = max(before, int(early.max(initial=before)))
    for step in range(count):
        start[step] = max(before, int(host_start[step]))
        end[step] = max(int(host_end[step]), int(start[step]), int(last_end[step]))
        before = int(end[step])
    last = int(np.flatnonzero(launched)[-1])
    keep = last if last > 0 and launched[last] < 0.8 * launched[last - 1] else last + 1
    if count > 1:
        counted[keep:] = False
    return replace(steps, start=start, end=end, launched=launched, counted=counted)


def work_of_steps(work: Frame, steps: WorkerSteps) -> Iterator[I64]:
    """Rows of the work (with ``call_start`` and ``call_end``) that calls within each step of the host launched."""
    order = np.argsort(work["call_start"], kind="stable")
    # missing times are lowest
    order = order[np.searchsorted(work["call_start"][order], INT_MISSING, side="right") :]
    call_start, call_end = work["call_start"][order], work["call_end"][order]
    edges = (np.searchsorted(call_start, times).tolist() for times in (steps.host_start, steps.host_end + 1))
    for low, high, end in zip(*edges, steps.host_end.tolist(), strict=True):
        yield order[low:high][call_end[low:high] <= end]


def _steps_to_select(query: Query, worker: Worker) -> WorkerSteps:
    """The steps of a worker; if the host annotated none, those that the query's step is one of."""
    steps = steps_of(query, worker)
    if query.step is None or steps.annotated:
        return steps
    found = query.steps
    own = found.set_of(worker.group)
    if own is None:
        return replace(steps, number=np.full(len(steps.label), INT_MISSING, np.int64))
    events = WorkerEvents(whole_of(query, worker), worker, steps)
    if not found.guessed:
        labels, *columns = _recorded_steps(query, worker)
        steps = _with_work(events, _steps(labels, np.stack(columns), annotated=False))
        return replace(steps, counted=np.ones(len(labels), np.bool_))
    # repetitions of device work: these begin and end with it
    start, end = (edge[own.index] for edge in (found.steps.start, found.steps.end))
    begins = np.sort(events.with_query(filter=query.condition).frame("stream")["start"])
    launched = np.searchsorted(begins, end) - np.searchsorted(begins, start)
    guessed = _steps(tuple(map(str, own.number.tolist())), np.stack((own.number, start, end)), annotated=False)
    return replace(guessed, launched=launched)


# -- answers of several workers


def of_workers(query: Query, compute: Callable[[WorkerEvents], Answer], needs: str = "") -> Answer:
    """Answers a query for one worker; of several, merges facts into a table and concatenates the tables' rows.

    ``needs``: capability that the view requires; if the profile lacks it, the answer states what to record.
    """
    found, worked = [], False
    for events in worker_by_worker(query):
        answer = compute(events)
        worked = worked or any(lane.kind == "stream" for lane in query.profile.lanes_of(events.worker.group))
        lacking = () if needs == MEMORY else tuple(map(Missing, events.recorded.unrecorded))
        found.append((events.worker.key, replace(answer, missing=(*answer.missing, *lacking)) if lacking else answer))
    if needs and not (query.profile.has(needs) and (needs != DEVICE or worked)):
        capability = query.vocabulary.capability(needs)
        assert capability is not None
        # with calls of the runtime it was asked for
        asked = query.profile.has(needs)
        lack = Missing(f"There is no {capability.title} in this trace." if needs != MODULES else
                       "There are no nn.Modules in this trace.", "" if asked else capability.needs)  # fmt: skip
        found = [(key, replace(answer, missing=(lack, *answer.missing))) for key, answer in found]
    return stack_workers(found, [worker.group for worker in workers_of(query)])


def per_worker(needs: str = "") -> Callable[[Callable[[WorkerEvents], Answer]], Callable[[Query], Answer]]:
    """Decorator that makes a view of a function that answers for one worker (`of_workers`)."""
    return lambda compute: lambda query: of_workers(query, compute, needs)


def of_streams(compute: Callable[[WorkerEvents], Answer]) -> Callable[[Query], Answer]:
    """As ``per_worker(DEVICE)``, for views of device work only: a scope without any stream is noted."""

    def view(query: Query) -> Answer:
        answer, lanes = of_workers(query, compute, DEVICE), query.profile.lanes
        streams = {number for number, lane in enumerate(lanes) if lane.kind == "stream"}
        if not streams or not streams.isdisjoint(query.session.lanes_in(query.scope)):
            return answer
        return replace(answer, notes=(*answer.notes, _NO_STREAM))

    return view


def not_narrowed(query: Query, answer: Answer, subject: str, by: Sequence[str] = ()) -> Answer:
    """Adds a note to an answer: a scope below the worker does not narrow it, and neither do some parts of the query.

    ``subject`` is the subject of the sentence; ``by``: parts of the query to check.
    """
    narrowing = [word for word in by if getattr(query, word) not in (None, "")]
    if query.scope.lane >= 0 or query.scope.group not in (-1, query.top_group):
        narrowing.append("scope below the rank")
    note = f"{subject} are not narrowed by {' and '.join(narrowing)}."
    return replace(answer, notes=(*answer.notes, note)) if narrowing else answer


def is_collective(host: Frame) -> Mask:
    """Mask of the collectives among host events, with their name, type and kind."""
    named = host.has("name", COLLECTIVE.match) | host.has("type", lambda text: text.lower() == COLLECTIVE_COMM)
    return np.asarray(named & np.isin(host["kind"], (Kind.OPERATOR, Kind.ANNOTATION)))


def ratio(part: float | int, whole: float | int) -> float | None:
    """The quotient; None if ``whole`` is 0."""
    return float(part) / float(whole) if whole else None
