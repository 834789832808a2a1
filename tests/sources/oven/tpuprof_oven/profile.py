"""Recordings -> a Profile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tpuprof_tui.model import Device, Lane, Problem, Profile, Role, Scopes, Severity, StringsBuilder
from tpuprof_tui.model.sublanes import split_overlaps

from .recording import RecordedLane, Recording

_ROLES = {"rest": Role.WAIT, "wait": Role.WAIT}


def profile_of(path: Path, recordings: Mapping[str, Recording]) -> Profile:
    """One profile of all recordings; zero is their first event. Ovens of one bakery follow those of the one before."""
    strings = {key: StringsBuilder() for key in ("engine", "name", "type", "kernel")}
    problems = [Problem(Severity.ERROR, f"{what}.", f"{count} times; left out.", file=name)
                for name, recording in recordings.items() for what, count in recording.doubts.items()]  # fmt: skip
    starts = [lane.events[0].start * each.tick_ns for each in recordings.values() for lane in each.lanes if lane.events]
    zero, first, lanes = min(starts, default=0), 0, []
    for recording in recordings.values():
        numbers = sorted({lane.oven for lane in recording.lanes if lane.oven >= 0})
        for recorded in recording.lanes:
            core = first + numbers.index(recorded.oven) if recorded.oven >= 0 else -1
            lanes.append(_lane(recorded, core, recording, zero, strings))
        first += len(numbers)
    return Profile(
        path=str(path), name=path.name, source="oven", device=Device("oven"), mode=0, bmodel=False,
        cores=tuple(range(first)), ports=(), lanes=tuple(lanes), scopes=Scopes(), problems=tuple(problems),
        strings={key: builder.build() for key, builder in strings.items()},
    )  # fmt: skip


def _lane(lane: RecordedLane, core: int, recording: Recording, zero: int, strings: dict[str, StringsBuilder]) -> Lane:
    count, tick = len(lane.events), recording.tick_ns
    start = np.array([each.start * tick - zero for each in lane.events], np.int64)
    end = np.array([each.end * tick - zero for each in lane.events], np.int64)
    sublane, sublanes = split_overlaps(start, end)
    columns = {
        "start": start, "end": end, "order": np.arange(count, dtype=np.int64),
        "sublane": np.zeros(count, np.int16) if sublane is None else sublane,
        "role": np.array([_ROLES.get(each.does, Role.WORK) for each in lane.events], np.int8),
        "duration": lambda rows: end[rows] - start[rows],
        "engine": np.full(count, strings["engine"].code(lane.kind), np.int32),
        "name": np.array([strings["name"].code(each.what) for each in lane.events], np.int32),
        "type": np.array([strings["type"].code(each.does) for each in lane.events], np.int32),
        "kernel": np.array([strings["kernel"].code(each.recipe) for each in lane.events], np.int32),
    }  # fmt: skip
    group = f"Bakery {recording.bakery}" + (f" Oven {lane.oven}" if lane.oven >= 0 else "")
    return Lane(engine=lane.kind, core=core, port=-1, label=f"{lane.kind} {lane.number}", group=group, columns=columns,
                sublanes=sublanes)  # fmt: skip
