"""Recordings -> a Profile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tpuprof_tui.model import (
    Activity,
    Device,
    Group,
    Groups,
    Lane,
    Problem,
    Profile,
    Role,
    Scopes,
    Severity,
    StringsBuilder,
)
from tpuprof_tui.model.profile import Recording as How
from tpuprof_tui.model.sublanes import split_overlaps
from tpuprof_tui.model.vocabulary import NAMES

from .recording import RecordedLane, Recording
from .vocabulary import VOCABULARY

_ROLES = {"rest": Role.WAIT, "wait": Role.WAIT}
_DOES = {"carry": Activity.TRANSFER, "pass": Activity.COMMUNICATION}


def profile_of(path: Path, recordings: Mapping[str, Recording]) -> Profile:
    """One profile of all recordings; zero is their first event. A bakery is a group of ovens and bakers."""
    strings = {key: StringsBuilder() for key in ("engine", "name", "type", "kernel")}
    problems = [Problem(Severity.ERROR, f"{what}.", f"{count} times; left out.", file=name)
                for name, recording in recordings.items() for what, count in recording.doubts.items()]  # fmt: skip
    starts = [lane.events[0].start * each.tick_ns for each in recordings.values() for lane in each.lanes if lane.events]
    zero, groups, lanes = min(starts, default=0), list[Group](), list[Lane]()
    for recording in recordings.values():
        bakery = len(groups)
        groups.append(Group(f"Bakery {recording.bakery}", "bakery", number=recording.bakery))
        ids = {-1: bakery}
        for oven in sorted({lane.oven for lane in recording.lanes if lane.oven >= 0}):
            ids[oven] = len(groups)
            groups.append(Group(f"Oven {oven}", "oven", bakery, oven, is_unit=True))
        lanes += [_lane(recorded, ids[recorded.oven], recording, zero, strings) for recorded in recording.lanes]
    return Profile(
        path=str(path), name=path.name, vocabulary=VOCABULARY, device=Device("oven"), recording=How("a recording"),
        capabilities=frozenset((NAMES,)), own={},
        groups=Groups(groups), lanes=tuple(lanes), scopes=Scopes(), problems=tuple(problems),
        strings={key: builder.build() for key, builder in strings.items()},
    )  # fmt: skip


def _lane(lane: RecordedLane, group: int, recording: Recording, zero: int, strings: dict[str, StringsBuilder]) -> Lane:
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
    if lane.kind == "tray":
        columns["activity"] = np.array([_DOES.get(each.does, Activity.COMPUTE) for each in lane.events], np.int8)
    return Lane(kind=lane.kind, group=group, label=f"{lane.kind} {lane.number}", number=lane.number,
                activity=Activity.HOST, columns=columns, sublanes=sublanes)  # fmt: skip
