"""Selects the events to read of a file that is larger than memory: those of a time range or of a step.

A first pass keeps calls, device work and step markers. From these follows what else belongs to the range: the calls of
its device work, the device work of its calls, and the host activity from the first of these calls to the last. Steps
that overlap the range are read as a whole, so that their figures equal those of the whole file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.errors import UsageError
from tpuprof_tui.formats.parsing import TimeBase, range_typed
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.chrome.columns import I64, lookup
from tpuprof_tui.sources.source import Part

from ..categories import ON_DEVICE, Kind
from .steps import marked_steps
from .trace import Trace

Mask = npt.NDArray[np.bool_]
_DEVICE: Final = np.isin(np.arange(len(Kind)), (*ON_DEVICE, Kind.MTIA))
_LAUNCHES: Final = np.isin(np.arange(len(Kind)), (Kind.CALL, Kind.KERNEL, Kind.COPY, Kind.SET, Kind.MTIA))


#: Mask of the events to keep; arguments: starts, ends (ns of the file's clock), kinds, correlations, step-marker mask.
EventFilter = Callable[[I64, I64, npt.NDArray[np.int8], I64, Mask], Mask]


def first_pass_filter(start: I64, end: I64, kind: npt.NDArray[np.int8], correlation: I64, marked: Mask) -> Mask:
    """Mask of calls, device work and step markers (an ``EventFilter``), for the first pass."""
    return np.asarray(_LAUNCHES[kind] | marked)


class Window(Struct, frozen=True, eq=False):
    """Selection of the events that belong to a time range.

    Attributes:
        low, high: Range of device work, ns of the file's clock.
        host_low, host_high: Range of host activity.
        correlations: Correlation ids of calls and device work in the range, ascending.
    """

    low: int
    high: int
    host_low: int
    host_high: int
    correlations: I64

    def __call__(self, start: I64, end: I64, kind: npt.NDArray[np.int8], correlation: I64, marked: Mask) -> Mask:
        """Mask of the events that belong to the range (an ``EventFilter``)."""
        device = _DEVICE[kind]
        low, high = np.where(device, self.low, self.host_low), np.where(device, self.high, self.host_high)
        joined = lookup(self.correlations, correlation) >= 0
        return np.asarray(((start < high) & (end >= low)) | joined | marked)


def window_of(outlines: Sequence[Trace], zero_ns: int, part: Part) -> Window:
    """Resolves a part to a window, which comprises those of all ranks that were merged into a file.

    Args:
        outlines: The events of the first pass, of each rank.
        zero_ns: Zero of the range in the file, ns.
        part: The part.

    Raises:
        UsageError: There is no such step in any rank, or the range is invalid or in percent.
    """
    found, errors = [], []
    for outline in outlines:
        try:
            found.append(_window_of_rank(outline, zero_ns - outline.zero_ns, part))
        except UsageError as error:
            errors.append(error)
    if not found:
        raise errors[0]
    return Window(min(each.low for each in found), max(each.high for each in found),
                  min(each.host_low for each in found), max(each.host_high for each in found),
                  uniques(np.concatenate([each.correlations for each in found])))  # fmt: skip


def _window_of_rank(outline: Trace, begin: int, part: Part) -> Window:
    found, _, numbers, _ = marked_steps(outline)
    starts, ends = outline.start[found], outline.end[found]
    requested = _requested_range(outline, begin, part, starts, ends, numbers)
    low, high = requested
    call = outline.call
    launched_at = np.where(call >= 0, outline.start[call] if len(outline) else 0, INT_MISSING)
    work_end = outline.end[outline.work_rows]
    # a step ends with the device work that it launched
    ended = [int(work_end[(launched_at >= start) & (launched_at < end)].max(initial=end))
             for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]  # fmt: skip
    overlapping = (starts < high) & (np.array(ended, np.int64) >= low) if part.step is None else numbers == part.step
    if overlapping.any():
        low, high = min(low, int(starts[overlapping].min())), max(high, int(np.array(ended)[overlapping].max()))
    inside = (outline.start < high) & (outline.end >= low) & _LAUNCHES[outline.kind]
    correlations = uniques(outline.correlation[inside])
    correlations = correlations[correlations != INT_MISSING]
    calls = (outline.kind == Kind.CALL) & np.isin(outline.correlation, correlations)
    zero = outline.zero_ns
    return Window(zero + low, zero + high, zero + min(low, int(outline.start[calls].min(initial=low))),
                  zero + max(high, int(outline.end[calls].max(initial=high))), correlations)  # fmt: skip


def _requested_range(
    outline: Trace, zero: int, part: Part, starts: I64, ends: I64, numbers: I64
) -> tuple[int, int]:  # fmt: skip
    """Begin and end of the requested range, ns from the trace's zero; ``zero``: that of the range, likewise."""
    low, high = 0, outline.length_ns
    if part.step is not None:
        of_step = numbers == part.step
        if not of_step.any():
            raise UsageError(f"The capture has no step {part.step}.",
                             f"There are: {', '.join(map(str, numbers[:8].tolist())) or 'none'}.")  # fmt: skip
        low, high = int(starts[of_step].min()), int(ends[of_step].max())
    if part.range:
        if "%" in part.range:
            raise UsageError("--range for a file larger than memory takes times only.", "Write 1.2s..3.4s.")
        begin, end = range_typed(part.range, TimeBase(0, outline.length_ns))
        if part.step is None:
            return zero + (begin or 0), high if end is None else zero + end
    return low, high
