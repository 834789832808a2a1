"""Steps of a rank, and which of them an event belongs to.

Steps are what the framework marked, else the iterations of a graph, else what a table recorded, else everything is one.
The part of a step on the device runs from the first work that starts at or after the step's own start to that of the
next step; work belongs to a step by its start. What the host did belongs to the step that it started in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.intervals import Intervals, interval_at
from tpuprof_tui.sources.chrome.columns import I64
from tpuprof_tui.sources.chrome.times import step_numbers

from ..records import COMMUNICATION, COMPUTING, STEP, Step
from .kernels import Kernels
from .timeline import Layer, SliceClass, Timeline

_NEVER: Final = np.iinfo(np.int64).max


class Iterations(Struct, frozen=True, eq=False):
    """Iterations of a graph by start: labels, and int64 ns since 1970."""

    labels: list[str]
    start: I64
    end: I64


def work_starts(timeline: Timeline, kernels: Kernels) -> I64:
    """Starts of the intervals in which the device computes or communicates, ascending: the exporter's, else unions."""
    if timeline.derived:
        rows = timeline.rows_of(Layer.OVERLAP)
        return np.sort(timeline.start[rows[timeline.named((COMPUTING, COMMUNICATION).__contains__)[rows]]])
    if len(timeline.work):
        classes = timeline.slice_class[timeline.work]
        rows_of_parts = [timeline.work[classes == each] for each in (SliceClass.KERNEL, SliceClass.COLLECTIVE)]
        parts = [(timeline.start[rows], timeline.end[rows]) for rows in rows_of_parts]
    else:
        rows_of_parts = [np.flatnonzero(kernels.timed & (kernels.communicates == each)) for each in (False, True)]
        parts = [(kernels.start[rows], kernels.end[rows]) for rows in rows_of_parts]
    return np.sort(np.concatenate([Intervals.union(*part).starts for part in parts]))


def steps_of(
    timeline: Timeline, kernels: Kernels, work: I64 | None, iterations: Iterations | None,
    recorded: Sequence[str | None],
) -> tuple[Step, ...]:  # fmt: skip
    """The steps of a rank by its timeline or kernels.

    ``work``: `work_starts`, None if the use of the device is unknown; ``recorded``: labels of a table of steps.
    """
    if work is None or (not len(timeline) and recorded):
        return _recorded(recorded, kernels)
    if len(timeline.steps):
        return _marked(timeline, work)
    if iterations is not None:
        return tuple(map(Step, iterations.labels, step_numbers(iterations.labels).tolist(), iterations.start.tolist(),
                         iterations.end.tolist()))  # fmt: skip
    label = recorded[0] if len(recorded) == 1 else "all"
    return (Step(label, _number(label)),)


def _recorded(labels: Sequence[str | None], kernels: Kernels) -> tuple[Step, ...]:
    """Steps of a table; their work follows from the kernels' step column; of a single step it is everything."""
    lows: list[int | None] = []
    for label in labels:
        starts = kernels.start[kernels.details.whole("step").where(label.__eq__) & kernels.timed]
        lows.append(int(starts.min()) if len(starts) else None)
    found = []
    for label, low in zip(labels, lows, strict=True):
        high = min((other for other in lows if other is not None and low is not None and other > low), default=None)
        found.append(Step(label, _number(label), low, high, known=low is not None or len(labels) == 1))
    return tuple(found)


def _marked(timeline: Timeline, work: I64) -> tuple[Step, ...]:
    marks = timeline.steps
    labels = [timeline.names[name].removeprefix(STEP) for name in timeline.name[marks].tolist()]
    starts, ends = timeline.start[marks].tolist(), timeline.end[marks].tolist()
    begun: list[int | None] = []
    for start, until in zip(starts, [*starts[1:], None], strict=True):
        index = int(np.searchsorted(work, start))
        first = int(work[index]) if index < len(work) else None
        begun.append(first if first is not None and (until is None or first < until) else None)
    steps = []
    for index, (label, number) in enumerate(zip(labels, step_numbers(labels).tolist(), strict=True)):
        high = next((low for low in begun[index + 1 :] if low is not None), None)
        # a step in which no device work began is empty
        low = starts[index] if begun[index] is None else begun[index]
        steps.append(Step(label, number, low, low if begun[index] is None else high, starts[index], ends[index]))
    return tuple(steps)


def _number(label: str | None) -> int:
    return int(label) if label is not None and label.isascii() and label.isdecimal() and len(label) < 18 else -1


def device_steps(steps: Sequence[Step], times: I64) -> I64:
    """Number of the step that device work belongs to, by start; missing if it is none's."""
    return _numbers_at(steps, times, [(step.low, step.high) for step in steps])


def host_steps(steps: Sequence[Step], times: I64) -> I64:
    """Number of the step that a host event belongs to, by start; missing if it is none's."""
    marked = any(step.start is not None for step in steps)
    return _numbers_at(steps, times, [(step.start, step.end) if marked else (step.low, step.high) for step in steps])


def _numbers_at(steps: Sequence[Step], times: I64, bounds: Sequence[tuple[Any, Any]]) -> I64:
    whole = next((step.number for step, (low, _) in zip(steps, bounds, strict=True) if low is None and step.known), -1)
    found = np.full(len(times), whole if whole >= 0 else INT_MISSING)
    bounded = [(low, high, step.number) for step, (low, high) in zip(steps, bounds, strict=True) if low is not None]
    # steps without any work are empty
    parts = sorted((low, _NEVER if high is None else high, number) for low, high, number in bounded if low != high)
    if not parts:
        return found
    starts, ends, numbers = np.array(parts, np.int64).T
    index = interval_at(starts, ends, times)
    found = numbers[np.maximum(index, 0)]
    return np.where((index != INT_MISSING) & (found >= 0), found, INT_MISSING)
