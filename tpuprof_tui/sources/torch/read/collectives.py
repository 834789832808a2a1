"""Which collectives of several ranks are one: by what identifies them in the files, else by their order.

Newer files state an id that is the same on all ranks (``Comms Id``), or the number of the collective within its process
group (``Seq``); ids of several kernels, or of several calls of one collective, count in order of start. Without any the
k-th collectives belong together, if all ranks have the same in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.sources.chrome.columns import lookup
from tpuprof_tui.sources.chrome.impossible_times import clock_difference

from ..categories import Kind
from ..kernel_names import COLLECTIVE, COMMUNICATION
from ..recorded import numbered

if TYPE_CHECKING:
    from .trace import Trace

I64 = npt.NDArray[np.int64]
#: Name of the operator that records a collective and its arguments.
RECORD: Final = "record_param_comms"
#: Least number of collectives for a meaningful median of clocks.
_FEW: Final = 3


def collective_identity(args: Any) -> str | None:
    """What identifies a collective among those of all ranks, from the arguments of an event; None if nothing does."""
    if isinstance(args.comms, (int, str)) and str(args.comms).strip() not in ("", "0"):
        return f"id {args.comms}"
    number = str(args.sequence)
    if args.group is None or not number.isdecimal():
        return None
    import hashlib  # slow to import

    # lists of ranks may be long
    ranks = hashlib.blake2b(b"".join(bytes(args.ranks).split()), digest_size=8).hexdigest()
    return f"{args.group} {ranks} {number}"


def identities_of(trace: Trace, rows: I64) -> list[str]:
    """What identifies the collectives of events: told by itself, its launcher or the record around it; else empty."""
    if not trace.identities:
        return [""] * len(rows)
    place = lookup(trace.work_rows, rows)
    launcher = np.where(place >= 0, np.append(trace.launchers.of_work, -1)[place], -1)
    records = np.flatnonzero((trace.kind == Kind.OPERATOR) & trace.named(RECORD.__eq__))
    around, host = np.full(len(rows), -1, np.int64), np.where(place >= 0, launcher, rows)
    around[host >= 0] = trace.launchers.enclosing(records, host[host >= 0])
    found = [""] * len(rows)
    for each in (around, launcher, rows):
        known = np.flatnonzero(each >= 0)
        for index, text in zip(known.tolist(), trace.identities_at(each[known]), strict=True):
            found[index] = text or found[index]
    return found


def collectives(trace: Trace) -> tuple[I64, list[str]]:
    """Rows and names of communication kernels, by start; if there are none, of the host's communication events."""
    for kinds, pattern in (((Kind.KERNEL,), COMMUNICATION), ((Kind.OPERATOR, Kind.ANNOTATION), COLLECTIVE)):
        rows = np.flatnonzero(np.isin(trace.kind, kinds) & trace.named(pattern.match))
        if len(rows):
            rows = rows[np.argsort(trace.start[rows], kind="stable")]
            return rows, [trace.names[code] for code in trace.name[rows].tolist()]
    return np.zeros(0, np.int64), []


def matched(traces: Sequence[Trace]) -> I64:
    """The collectives of ranks that belong together: rows in each trace (first axis); -1: not recorded there.

    Empty if they cannot be told: without ids, if the ranks do not have the same in the same order.
    """
    found = [collectives(trace) for trace in traces]
    keys = [identities_of(trace, rows) for trace, (rows, _) in zip(traces, found, strict=True)]
    if not all(map(any, keys)):
        same = all(names == found[0][1] for _, names in found)
        return np.stack([rows for rows, _ in found]) if same else np.zeros((len(traces), 0), np.int64)
    columns: dict[tuple[str, int], int] = {}
    of_trace = [[columns.setdefault(key, len(columns)) if key[0] else -1 for key in numbered(each)] for each in keys]
    table = np.full((len(traces), len(columns) + 1), -1, np.int64)
    for place, ((rows, _), own) in enumerate(zip(found, of_trace, strict=True)):
        table[place, own] = rows
    # the last column is of those without an id
    table = table[:, :-1]
    return table[:, (table >= 0).sum(axis=0) > 1]


def shifts(traces: Sequence[Trace], clocks: Sequence[int]) -> list[int]:
    """Offsets in ns to add to the clock of each trace of a run; 0 for the first, and for clocks that agree with it.

    Args:
        traces: Of different ranks.
        clocks: Clock reading of each trace at its zero, ns.
    """
    found = [0] * len(traces)
    for number in range(1, len(traces)):
        rows, other_rows = matched((traces[0], traces[number]))
        if len(rows) < _FEW:
            continue
        one, two, apart = traces[0], traces[number], clocks[number] - clocks[0]
        found[number] = -clock_difference((one.start[rows], one.end[rows]),
                                          (two.start[other_rows] + apart, two.end[other_rows] + apart))  # fmt: skip
    return found
