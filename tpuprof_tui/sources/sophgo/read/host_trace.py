"""Adds the slices of a host trace to a device's profile, on the device's time line."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.model import Activity, Group, Groups, Lane, Problem, Profile, Role, Severity, Strings
from tpuprof_tui.model.profile import time_of_day
from tpuprof_tui.model.sublanes import nested_depths
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.chrome.host_trace import HostMarks, HostTrace, read_host_trace

from .arrays import I32

#: Fact: host time of the profile's zero, ns.
HOST_BASE: Final = "host_base_ns"
#: Fact: ``exact``, or one sentence on how host and device were aligned.
HOST_ALIGNMENT: Final = "host_alignment"
#: Fact: path of the host trace.
HOST_TRACE: Final = "host_trace"
EXACT: Final = "exact"

#: ``tail_offset_ns`` is measured from the capture's last record to the end of ``disable_profile``.
MARKS: Final = HostMarks(
    "tpudnn",
    "disable_profile",
    frozenset(("PyTorch Profiler (0)", "enable_profile", "my_ops::enable_profile", "disable_profile",
               "my_ops::disable_profile")),
)  # fmt: skip

KIND: Final = "HOST"
GROUP: Final = Group("Host", "host")
CPU_LABEL: Final = "cpu op"
LAUNCH_LABEL: Final = "tpudnn op"

#: Bounds for the host time (ns) of the profile's zero: beyond them other times would overflow 64 bits.
_SMALLEST_BASE: Final = -(1 << 60)
_LARGEST_BASE: Final = 1 << 62


class Alignment(Struct, frozen=True):
    """Position of a profile's zero on the host's clock."""

    base_ns: int  #: Host time of the profile's zero
    how: str = EXACT  #: ``exact``, or one sentence on why it is not


def with_host_trace(
    profile: Profile, path: str | os.PathLike[str], *, progress: Callable[[int, int], None] | None = None
) -> Profile:
    """A profile with the slices of a host trace.

    Args:
        path: Chrome-trace JSON, optionally compressed.
        progress: Called with the bytes read and the size of the file; an exception it raises aborts the reading.

    Returns:
        A profile with the lanes ``cpu op`` and ``tpudnn op`` (kind ``HOST``, group ``Host``) after those of the device.
        All times stay on the device's time line, so host times may be negative; the facts ``host_base_ns`` and
        ``host_alignment`` state the host time of its zero. Sub-lanes are nesting depths; the column ``nest`` numbers
        the stacks of slices, which never share a sub-lane. Without anything to align by, the profile has no host lanes
        and a Problem states why.

    Raises:
        UnreadableError: No such file, or no list of events in it.
    """
    trace = read_host_trace(path, MARKS, progress=progress)
    found = alignment(profile, trace)
    what, done = "Host and device could not be aligned exactly.", "" if found is None else found.how
    if found is None:
        what = "The host trace has neither a launch nor an end of profiling to align by."
        done = "Its slices are not shown."
    problems = (*profile.problems, *trace.problems)
    if done != EXACT:
        problems += (Problem(Severity.WARNING, what, done, file=os.path.basename(trace.path)),)
    facts = {**profile.facts, HOST_TRACE: os.fspath(trace.path)}
    if found is None:
        return replace(profile, problems=problems, facts=facts)
    facts |= {HOST_BASE: found.base_ns, HOST_ALIGNMENT: found.how}
    strings, codes = _extended_strings(profile, trace)
    launches = trace.launches
    group = len(profile.groups)
    lanes = [_lane(trace, codes, found.base_ns, group, label, np.flatnonzero(mask))
             for label, mask in ((CPU_LABEL, ~launches), (LAUNCH_LABEL, launches)) if mask.any()]  # fmt: skip
    wall = time_of_day(found.base_ns) if found.how == EXACT else None
    return replace(profile, groups=Groups((*profile.groups, GROUP)), lanes=(*profile.lanes, *lanes), strings=strings,
                   problems=problems, facts=facts, wall_ns=wall)  # fmt: skip


def alignment(profile: Profile, trace: HostTrace) -> Alignment | None:
    """Position of the profile's zero on the host's clock; None if it cannot be determined.

    Preferably by the tail: the last record is ``tail_offset_ns`` before the end of ``disable_profile``. Otherwise the
    end of the first launch is taken for the start of the first instruction.
    """
    if trace.closing_ns is None:
        reason = "the host trace has no disable_profile"
    elif profile.tail_offset_ns is None:
        reason = "the capture has no tail_offset_ns"
    elif profile.tail_ns is None:
        reason = "the capture has no records"
    else:
        base = trace.closing_ns - profile.tail_offset_ns - profile.tail_ns
        if _SMALLEST_BASE < base < _LARGEST_BASE:
            return Alignment(base)
        reason = f"tail_offset_ns={profile.tail_offset_ns} is not possible"
    if trace.first_launch_ns is None:
        return None
    return Alignment(
        trace.first_launch_ns, f"Approximate: {reason}; the first launch's end is used as the device's start."
    )


def _extended_strings(profile: Profile, trace: HostTrace) -> tuple[dict[str, Strings], dict[str, I32]]:
    """String tables extended by the trace's texts, and the code of each trace text (-1 if unused)."""
    strings = dict(profile.strings)
    codes = {key: np.full(len(trace.texts) + 1, -1, np.int32) for key in ("name", "type")}
    for key, used in (("name", trace.events.name), ("type", trace.events.category)):
        table = {text: code for code, text in enumerate(profile.strings.get(key, ()))}
        for number in uniques(used).tolist():
            codes[key][number] = table.setdefault(trace.texts[number], len(table))
        strings[key] = Strings(table)
    return strings, codes


def _lane(
    trace: HostTrace, codes: dict[str, I32], base_ns: int, group: int, label: str, rows: npt.NDArray[np.intp]
) -> Lane:
    events = trace.events
    # parents before children: by start, then longest first
    rows = rows[np.lexsort((-events.end[rows], events.start[rows]))]
    start, end = events.start[rows] - base_ns, events.end[rows] - base_ns
    sublane, nest, _ = nested_depths(start, end, events.thread[rows])
    columns: dict[str, Any] = {
        "start": start,
        "end": end,
        "order": rows.astype(np.int64),
        "sublane": sublane,
        "role": np.full(len(rows), Role.WORK, np.int8),
        "duration": lambda some: end[some] - start[some],
        "name": codes["name"][events.name[rows]],
        "type": codes["type"][events.category[rows]],
        "nest": nest,
    }
    return Lane(kind=KIND, group=group, label=label, activity=Activity.HOST, columns=columns)
