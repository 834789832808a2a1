"""Device work that overlaps the next of its stream: a stream runs one thing at a time.

Some launches explain it: programmatic dependent launch begins a kernel before the one before it ends, though it ends
after that one, and the branches of a graph run side by side. Otherwise a duration is wrong (AMD MI355), and sums are
too large.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.formats.units import time_text
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import Group, Lane, Problem, Severity
from tpuprof_tui.sources.chrome.columns import I64

if TYPE_CHECKING:
    from .trace import Trace

#: Calls that launch with attributes.
_ATTRIBUTES: Final = lazy_pattern(r"(?:cuda|cu|hip)\w*LaunchKernelEx")


class Overlaps(Struct, frozen=True, eq=False):
    """Device work that overlaps the next of its stream, in columns of one length.

    Attributes:
        first: int64, indices in ``Trace.work_rows``, ascending; the next of its stream is the index behind it.
        explained: Mask of those that the launch of the next explains.
        sum_ns: By which the sum of all durations exceeds the time in which the streams worked.
    """

    first: I64
    explained: npt.NDArray[np.bool_]
    sum_ns: int


def overlaps_of(trace: Trace) -> Overlaps:
    """The overlaps of a trace. O(device work)."""
    rows = trace.work_rows
    start, end = trace.start[rows], trace.end[rows]
    later = start[1:] - end[:-1]
    edges = np.searchsorted(rows, trace.first)
    # the last of a lane has no next one
    later[edges[(edges > 0) & (edges < len(rows))] - 1] = 0
    found = np.flatnonzero(later < 0)
    if len(found):
        # times in whole us, or cut to ns, are off by one
        whole = not (start % 1000).any() and not (end % 1000).any()
        found = found[later[found] < (-1000 if whole else -1)]
    if not len(found):
        return Overlaps(found, np.zeros(0, np.bool_), 0)
    total = 0
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if high - low > 1:
            reach = np.maximum.accumulate(end[low:high])
            total += int(np.maximum(np.minimum(reach[:-1], end[low + 1 : high]) - start[low + 1 : high], 0).sum())
    call = trace.call[found + 1]
    dependent = trace.named(_ATTRIBUTES.match)[call] & (end[found + 1] >= end[found])
    # only the work of a graph has a common call
    explained = (call >= 0) & (dependent | (call == trace.call[found]))
    return Overlaps(found, explained, total)


def overlap_problems(trace: Trace, rows: I64 | slice, groups: Sequence[Group], lane: Lane) -> Iterator[Problem]:
    """The problem of a stream, if its work overlaps; ``rows``: the rows of its events in the trace."""
    found = trace.overlaps
    begin, last = (rows.start, rows.stop - 1) if isinstance(rows, slice) else (int(rows[0]), int(rows[-1]))
    own = (trace.work_rows[found.first] >= begin) & (trace.work_rows[found.first] <= last)
    if not own.any():
        return
    explained = bool(found.explained[own].all())
    wrong = found.first[own & (explained | ~found.explained)]
    place, behind = trace.work_rows[wrong], trace.work_rows[wrong + 1]
    time = time_text(int((trace.end[place] - trace.start[behind]).sum()))
    which = f"{len(wrong):,} events overlap" if len(wrong) > 1 else "One event overlaps"
    why = "as programmatic dependent launch and graphs do" if explained else "though a stream runs one thing at a time"
    yield Problem(
        Severity.NOTE if explained else Severity.WARNING,
        f"{which} the next on {groups[lane.group].label} {lane.label} by {time}, {why}.",
        "Shown as recorded: sums count that time twice, unions once.", file=trace.path.name,
        offset=trace.arguments.offset_of_number(int(trace.file_order[place[0]])), group=lane.group, lane=lane.label,
        count=len(wrong), rows=place - begin if isinstance(rows, slice) else np.searchsorted(rows, place),
    )  # fmt: skip
