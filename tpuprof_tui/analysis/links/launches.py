"""Kernel launches as one lane per unit: each spans from the first start to the last end of its events."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.model.uniques import uniques

from ..index.lane_index import LaneIndex, build_index, event_at
from ..selecting.session import Session
from ..selecting.state import DisplayState
from ..selecting.time_scale import TIME, Measure
from ..steps.launch_sequence import launch_lane


def launches(session: Session, unit: int) -> LaneIndex:
    """The launches of a unit as a lane with columns ``kernel`` and ``scope``; empty if none are known.

    O(events of the unit) the first time.
    """
    return session.cache.get("launches", lambda: build_index(launch_lane(session.profile, unit)), unit)


def launches_with(session: Session, filtered: Session, unit: int) -> LaneIndex:
    """The launches of a unit that issued at least one event of ``filtered``, at their full length.

    ``filtered`` is the same capture, filtered. O(events of the unit) the first time.
    """

    def make() -> LaneIndex:
        lane = launches(session, unit).lane
        lanes = [each for each in filtered.profile.lanes_of(unit) if "scope" in each and len(each)]
        scopes = [uniques(each["scope"]) for each in lanes]
        rows = np.flatnonzero(np.isin(lane["scope"], np.concatenate(scopes))) if scopes else np.zeros(0, np.int64)
        return build_index(lane.select_rows(rows, eager=lane.keys()))

    return filtered.cache.get("launches of all", make, unit)


def launch_text(session: Session, unit: int, time: int, measure: Measure = TIME) -> str:
    """Describes the launch that runs at a time: kernel, duration, number."""
    index = launches(session, unit)
    row = event_at(index, time) if len(index.lane) else -1
    if row < 0:
        return session.say("no {scope}")
    start, end = span_of(index, row)
    code = int(index.lane.take("kernel", slice(row, row + 1))[0])
    name = clean(session.profile.text("kernel", code)) if code >= 0 else "unknown"
    number = int(index.lane.take("scope", slice(row, row + 1))[0])
    return f"{name}  {measure.length(end - start)}  launch {number:,}"


def unit_text(session: Session, unit: int, time: int, measure: Measure = TIME) -> str:
    """Describes what the lanes of a unit run at a time, the kernel of the launch, and the idle lanes."""
    profile = session.profile
    parts: list[str] = []
    idle: list[str] = []
    within = profile.groups.within(unit)
    for number, lane in enumerate(profile.lanes):
        if lane.group not in within:
            continue
        row = event_at(session.indexes[number], time) if len(lane) else -1
        if row < 0:
            idle.append(lane.label)
            continue
        role = int(lane.take("role", slice(row, row + 1))[0])
        start, end = session.span_of(number, row)
        name = text_of(profile, lane, "name", row) or ("work", "wait", "sync")[role % 3]
        parts.append(f"{lane.label} {name} {measure.length(end - start)}")
    index = launches(session, unit)
    row = event_at(index, time) if len(index.lane) else -1
    kernel = text_of(profile, index.lane, "kernel", row)
    busy = ", ".join(parts) + (f", in {kernel}" if kernel and parts else "")
    if not idle:
        return busy
    # a narrow screen cuts the end: busy lanes come first
    return f"{busy}; {', '.join(idle)} idle" if parts else f"{', '.join(idle)} idle{f', in {kernel}' if kernel else ''}"


def span_of(index: LaneIndex, row: int) -> tuple[int, int]:
    """Start and end of a launch, ns."""
    rows = slice(row, row + 1)
    return int(index.starts[row]), int(index.lane.take("end", rows)[0])


def step_launch(session: Session, state: DisplayState, unit: int, steps: int) -> DisplayState:
    """The state with a launch as its range: ``steps`` after the launch that is the range, else the one at the cursor.

    The window moves to show it, and the cursor to its start.
    """
    index = launches(session, unit)
    if not len(index.lane):
        return state
    row = event_at(index, state.cursor, state.full_end - state.full_start)
    if state.range is not None:
        at_start = slice(*np.searchsorted(index.starts, [state.range[0], state.range[0] + 1]).tolist())
        same = np.flatnonzero(np.maximum(index.lane.take("end", at_start), state.range[0] + 1) == state.range[1])
        row = at_start.start + int(same[0]) + steps if len(same) else row
    row = min(max(row, 0), len(index.lane) - 1)
    start, end = span_of(index, row)
    end = max(end, start + 1)
    return replace(state.showing(start, end).at(start), range=(start, end), anchor=None)
