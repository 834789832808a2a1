"""Recordings -> a Profile.

Bakeries are the top groups, their ovens the units below them. A tray bakes, carries and passes on: its activity is a
column. A cart belongs to the bakery, what it carries to the oven it was carried for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.model import (
    INT_MISSING,
    Activity,
    Counter,
    Device,
    Group,
    Groups,
    Lane,
    Links,
    Problem,
    Profile,
    Role,
    Scopes,
    Severity,
    Steps,
    StringsBuilder,
)
from tpuprof_tui.model.profile import RecordingMode as How
from tpuprof_tui.model.sublanes import split_overlaps
from tpuprof_tui.model.vocabulary import NAMES

from .recording import LARGEST_TICK, Event, RecordedLane, Recording
from .vocabulary import VOCABULARY

_ROLES: Final = {"rest": Role.WAIT, "wait": Role.WAIT}
_ACTIVITIES: Final = {"carry": Activity.TRANSFER, "pass": Activity.COMMUNICATION}
#: Lanes of which all events do the same.
_ONE_ACTIVITY: Final = {"cart": Activity.TRANSFER, "baker": Activity.HOST}


def profile_of(path: Path, recordings: Mapping[str, Recording]) -> Profile:
    """One profile of all recordings; zero is their first event."""
    return _Town(path, recordings).profile()


class _Town:
    """All bakeries of a profile being made.

    Attributes:
        owners: Id of each group, by place of the recording and number of the oven; -1 for the bakery itself.
    """

    def __init__(self, path: Path, recordings: Mapping[str, Recording]) -> None:
        self._path = path
        self._files = tuple(recordings)
        self._recordings = tuple(recordings.values())
        self._texts = {key: StringsBuilder() for key in ("name", "type", "kernel")}
        self._problems = [Problem(Severity.ERROR, f"{what}.", f"{count} times; left out.", file=name)
                          for name, each in recordings.items() for what, count in each.doubts.items()]  # fmt: skip
        self._zero = min((lane.events[0].start * each.tick_ns for each in self._recordings for lane in each.lanes
                          if lane.events), default=0)  # fmt: skip
        self.owners: dict[tuple[int, int], int] = {}

    def profile(self) -> Profile:
        """The whole."""
        groups = self._groups()
        # the rounds come first: events name them
        steps, rounds = self._steps()
        scopes: dict[tuple[int, int, int], int] = {}
        lanes: list[Lane] = []
        for place, number in self._order():
            recording = self._recordings[place]
            lanes.append(self._lane(groups, place, recording.lanes[number], rounds[place], scopes))
        return Profile(
            path=str(self._path), name=self._path.name, vocabulary=VOCABULARY, device=Device("oven"),
            recording=How("a recording"), capabilities=frozenset((NAMES,)), source_data={}, groups=groups,
            lanes=_labelled(lanes), counters=self._counters(), steps=steps, links=self._links(),
            scopes=Scopes(np.array([kernel for kernel, *_ in scopes], np.int32),
                          np.array([group for _, group, _ in scopes], np.int32)),
            strings={key: builder.build() for key, builder in self._texts.items()}, problems=tuple(self._problems),
        )  # fmt: skip

    def _groups(self) -> Groups:
        """Bakeries, each with its ovens: by their numbers, or by place where two have the same one."""
        known = [sorted({lane.oven for lane in each.lanes if lane.oven >= 0}
                        | {oven["number"] for oven in each.ovens if _number(oven.get("number"), 4095)})
                 for each in self._recordings]  # fmt: skip
        flat = [oven for ovens in known for oven in ovens]
        unique = len(set(flat)) == len(flat)
        groups: list[Group] = []
        units = 0
        for place, ovens in enumerate(known):
            bakery = self.owners[place, -1] = len(groups)
            number = self._recordings[place].bakery
            groups.append(Group(f"Bakery {number}", "bakery", number=number))
            for oven in ovens:
                self.owners[place, oven] = len(groups)
                groups.append(Group(f"Oven {oven}", "oven", bakery, oven if unique else units, is_unit=True))
                units += 1
        return Groups(groups)

    def _order(self) -> list[tuple[int, int]]:
        """Recording and lane, by group."""
        every = [(place, number) for place, each in enumerate(self._recordings) for number in range(len(each.lanes))]
        return sorted(every, key=lambda each: self.owners[each[0], self._recordings[each[0]].lanes[each[1]].oven])

    def _lane(
        self,
        groups: Groups,
        place: int,
        lane: RecordedLane,
        rounds: Collection[tuple[int, int]],
        scopes: dict[tuple[int, int, int], int],
    ) -> Lane:
        """A lane; events of a recipe in one round of an oven are one scope."""
        tick, group = self._recordings[place].tick_ns, self.owners[place, lane.oven]
        start = np.array([each.start * tick - self._zero for each in lane.events], np.int64)
        end = np.array([each.end * tick - self._zero for each in lane.events], np.int64)
        sublane, _ = split_overlaps(start, end)
        count = len(lane.events)

        def codes(key: str, texts: Sequence[str]) -> Any:
            return np.array([self._texts[key].code(text) for text in texts], np.int32)

        kernel = codes("kernel", [each.recipe for each in lane.events])
        ovens = [each.carried_for if lane.kind == "cart" else lane.oven for each in lane.events]
        columns: dict[str, Any] = {
            "start": start, "end": end, "order": np.arange(count, dtype=np.int64),
            "sublane": np.zeros(count, np.int16) if sublane is None else sublane,
            "role": np.array([_ROLES.get(each.does, Role.WORK) for each in lane.events], np.int8),
            "duration": lambda rows: end[rows] - start[rows],
            "name": codes("name", [each.what for each in lane.events]),
            "type": codes("type", [each.does for each in lane.events]), "kernel": kernel,
            "step": np.array([each.round if (oven, each.round) in rounds else INT_MISSING
                              for oven, each in zip(ovens, lane.events, strict=True)], np.int64),
        }  # fmt: skip
        if lane.kind != "baker":
            columns["grams"] = np.array([each.grams or INT_MISSING for each in lane.events], np.int64)
            keys = [(int(code), self.owners.get((place, oven), -1), each.round)
                    for code, oven, each in zip(kernel, ovens, lane.events, strict=True)]  # fmt: skip
            columns["scope"] = np.array([scopes.setdefault(key, len(scopes)) for key in keys], np.int64)
        else:
            columns |= _nesting(lane.events)
        if lane.kind == "cart":
            owners = [self.owners.get((place, each.carried_for), INT_MISSING) for each in lane.events]
            columns["owner"] = np.array(owners, np.int64)
            columns["core"] = groups.unit_numbers(columns["owner"])
        activity = _ONE_ACTIVITY.get(lane.kind)
        if activity is None:
            columns["activity"] = np.array(
                [_ACTIVITIES.get(each.does, Activity.COMPUTE) for each in lane.events], np.int8
            )
        return Lane(kind=lane.kind, group=group, label=f"{lane.kind} {lane.number}", number=lane.number,
                    activity=activity, columns=columns)  # fmt: skip

    def _steps(self) -> tuple[Steps, list[set[tuple[int, int]]]]:
        """The rounds, and those of each recording by oven and number."""
        labels, rows = StringsBuilder(), []
        known_rounds: list[set[tuple[int, int]]] = []
        for place, recording in enumerate(self._recordings):
            known_rounds.append(set())
            turns: dict[int | None, int] = {}
            for each in recording.rounds:
                oven, begin, end = each.get("oven"), each.get("from"), each.get("until")
                group = self.owners.get((place, oven)) if _number(oven, 4095) else None
                # a round that cannot be used counts, too: events name rounds by their number
                turn = turns[group] = turns.get(group, -1) + 1
                known = group is not None and isinstance(each.get("label"), str)
                if not (known and _number(begin, LARGEST_TICK) and _number(end, LARGEST_TICK) and begin <= end):
                    self._problem(place, "A round without label, oven or times.")
                    continue
                known_rounds[-1].add((oven, turn))
                times = (tick * recording.tick_ns - self._zero for tick in (begin, end))
                rows.append((labels.code(each["label"]), group, *times, turn))
        label, group, *times = zip(*rows, strict=True) if rows else ((), (), (), (), ())
        start, end, number = (np.array(column, np.int64) for column in times)
        return Steps(labels.build(), np.array(label, np.int32), np.array(group, np.int32), start, end,
                     number), known_rounds  # fmt: skip

    def _counters(self) -> tuple[Counter, ...]:
        """The meters."""
        found = []
        for place, recording in enumerate(self._recordings):
            for each in recording.meters:
                ticks, values = each.get("ticks"), each.get("values")
                oven = each.get("oven")
                group = self.owners.get((place, oven)) if _number(oven, 4095) else None
                named = isinstance(each.get("name"), str) and isinstance(each.get("unit"), str)
                if not (group is not None and named and _series(ticks, values)):
                    self._problem(place, "A meter without oven, name, unit or values at growing ticks.")
                    continue
                times = np.array(ticks, np.int64) * recording.tick_ns - self._zero
                found.append(Counter(group, each["name"], each["unit"], times, np.array(values, np.float64)))
        return tuple(found)

    def _links(self) -> Callable[[], Links]:
        """Makes the calls as links between events."""
        first: dict[tuple[int, int], int] = {}
        total = 0
        for place, number in self._order():
            first[place, number] = total
            total += len(self._recordings[place].lanes[number].events)
        calls = [
            (first[place, one] + row, first[place, other] + to, what)
            for place, each in enumerate(self._recordings)
            for one, row, other, to, what in each.calls
        ]

        def make() -> Links:
            kinds = tuple(dict.fromkeys(what for _, _, what in calls))[:127]
            rows = [(kinds.index(what), begin, end) for begin, end, what in calls if what in kinds]
            columns = np.array(rows, np.int64).reshape(-1, 3)
            return Links(kinds, columns[:, 0].astype(np.int8), columns[:, 1].copy(), columns[:, 2].copy())

        return make

    def _problem(self, place: int, what: str) -> None:
        self._problems.append(Problem(Severity.ERROR, what, "left out.", file=self._files[place]))


def _nesting(events: Sequence[Event]) -> dict[str, Any]:
    """The row that encloses each event, and how many do."""
    depth: list[int] = []
    for each in events:
        depth.append(depth[each.inside] + 1 if each.inside >= 0 else 0)
    return {"parent": np.array([each.inside for each in events], np.int64), "depth": np.array(depth, np.int64)}


def _labelled(lanes: Sequence[Lane]) -> tuple[Lane, ...]:
    """The lanes, of which no two of a group have the same label."""
    seen: dict[tuple[int, str], int] = {}
    result = []
    for lane in lanes:
        count = seen[lane.group, lane.label] = seen.get((lane.group, lane.label), 0) + 1
        label = lane.label if count == 1 else f"{lane.label} ({count})"
        result.append(replace(lane, label=label))
    return tuple(result)


def _number(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _series(ticks: Any, values: Any) -> bool:
    """Whether these are values at growing ticks."""
    return (
        isinstance(ticks, list) and isinstance(values, list) and len(ticks) == len(values)
        and all(_number(tick, LARGEST_TICK) for tick in ticks) and ticks == sorted(ticks)
        and all(isinstance(value, int | float) and abs(value) < 1e300 for value in values)
    )  # fmt: skip
