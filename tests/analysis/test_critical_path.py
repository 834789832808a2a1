"""The critical path: of a program whose path is known, and that its parts always add up to the window."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from profiles import make_lane, make_profile

from tpuprof_tui.analysis.critical_path import (
    CriticalPath,
    PathPart,
    Slack,
    SlackSearch,
    critical_path,
    longest_off_path,
)
from tpuprof_tui.analysis.links.dependencies import dependencies_in, find_dependencies
from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.model import Activity, Links, Profile, Role
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.views.registry import answer, view_of

SAMPLES = Path(__file__).parents[2] / "samples"


def add_up(path: CriticalPath, start: int, end: int) -> None:
    """Parts follow one another, from the start of the window to its end."""
    assert int(path.length.sum()) == end - start
    assert (path.start[1:] == path.end[:-1]).all()
    assert (path.length > 0).all()
    assert path.start[0] == start


def told(profile: Profile, path: CriticalPath) -> list[tuple[str, str, int]]:
    return [(PathPart(part).name, profile.lanes[lane].kind if lane >= 0 else "", int(ns))
            for part, lane, ns in zip(path.part, path.lane, path.length, strict=True)]  # fmt: skip


def two_engines(links: bool) -> Profile:
    """A transfer of 50, a product that needs it of 30, a transfer beside it of 20, and another product of 10."""
    tiu = make_lane("TIU", 0, starts=np.array([55, 100]), ends=np.array([85, 110]))
    gdma = make_lane("GDMA", 0, starts=np.array([0, 52]), ends=np.array([50, 72]))
    made = make_profile([tiu, gdma])
    if not links:
        return made
    # the second product needs the second transfer
    pairs = [(2, 0), (3, 1)]
    columns = [np.array(column, np.int64) for column in zip(*pairs, strict=True)]
    return replace(made, links=lambda: Links(("needs",), np.zeros(2, np.int8), *columns))


def test_a_path_is_what_nothing_was_shorter_beside():
    profile = two_engines(links=True)
    path = critical_path(profile, find_dependencies(profile), 0, 110)
    add_up(path, 0, 110)
    assert told(profile, path) == [
        ("EVENT", "GDMA", 50), ("GAP", "TIU", 5), ("EVENT", "TIU", 30), ("GAP", "TIU", 15), ("EVENT", "TIU", 10),
    ]  # fmt: skip
    assert not path.assumed[:-1].any()


def test_without_links_what_ended_last_is_assumed():
    profile = two_engines(links=False)
    path = critical_path(profile, None, 0, 110)
    assert told(profile, path)[:3] == [("EVENT", "GDMA", 50), ("GAP", "TIU", 5), ("EVENT", "TIU", 30)]
    assert path.assumed[:2].all()


@pytest.mark.parametrize("links", [True, False])
def test_slack_is_the_pause_before_what_needs_it(links):
    """The transfer beside the path ends at 72; the product that needs it, on the path, begins at 100."""
    profile = two_engines(links)
    known = find_dependencies(profile) if links else None
    path = critical_path(profile, known, 0, 110)
    search = SlackSearch(profile, known, path, 110)
    assert search.of(0, 1) == Slack(0)
    assert search.of(1, 1) == Slack(28, assumed=not links)
    # where nothing waits for it, all that is left of the window
    assert SlackSearch(profile, known, path, 90).of(1, 1).ns == 18
    assert longest_off_path(profile, path, 0, 110, np.arange(2), 10).tolist() == [[1, 1]]


def test_a_wait_takes_all_of_its_length_up():
    tiu = make_lane("TIU", 0, starts=[0, 10, 50], ends=[10, 50, 70], roles=[0, int(Role.WAIT), 0])
    gdma = make_lane("GDMA", 1, starts=[0], ends=[50])
    links = lambda: Links(("sent",), np.zeros(1, np.int8), np.array([3]), np.array([1]), ending=frozenset((0,)))  # noqa: E731
    profile = replace(make_profile([tiu, gdma]), links=links)
    known = find_dependencies(profile)
    assert SlackSearch(profile, known, critical_path(profile, known, 0, 70), 70).of(0, 0) == Slack(40)


def test_a_wait_ends_with_what_came_last():
    """Core 1 waits until core 0 is done: its wait is not on the path, but for what it took to end."""
    slow = make_lane("TIU", 0, starts=np.array([0]), ends=np.array([100]))
    fast = make_lane("TIU", 1, starts=np.array([0, 20, 108]), ends=np.array([20, 105, 120]),
                     roles=[Role.WORK, Role.WAIT, Role.WORK])  # fmt: skip
    profile = make_profile([slow, fast])
    path = critical_path(profile, None, 0, 120)
    add_up(path, 0, 120)
    assert told(profile, path) == [
        ("EVENT", "TIU", 100), ("WAIT", "TIU", 5), ("GAP", "TIU", 3), ("EVENT", "TIU", 12),
    ]  # fmt: skip
    assert path.lane.tolist() == [0, 1, 1, 1]


NONE = -1
HOST = (0, 4)


class Slow:
    """The path by its definition: looks at all events for each part.

    Events are (start, end, lane, waits); lanes 0 and 4 are threads of the host, 1 and 2 are one unit, 3 is another.
    """

    def __init__(self, events, links):
        self.events = events
        self.lanes = {number: [each for each, event in enumerate(events) if event[2] == number] for number in range(5)}
        outer = {first for number in HOST for first, second in zip(self.lanes[number], self.lanes[number][1:],
                 strict=False) if events[second][0] < events[first][1]}  # fmt: skip
        self.counts = [each for each, event in enumerate(events) if event[1] > event[0] and each not in outer]
        self.links = links

    def last(self, numbers, time):
        known = [each for each in numbers if each in self.counts and self.events[each][1] <= time]
        return max(known, key=lambda each: (self.events[each][1], each), default=NONE)

    def cause(self, event, kind):
        known = [one for which, one, other in self.links if (which, other) == (kind, event)
                 and self.events[one][0] < self.events[event][0 if kind == 0 else 1]]  # fmt: skip
        return max(known, key=lambda each: self.events[each][1], default=NONE)

    def end(self, event):
        return self.events[event][1] if event != NONE else -1

    def before(self, event, time):
        lane = self.events[event][2]
        own = self.last(self.lanes[lane], time)
        cause = self.cause(event, 0)
        unit = {1: (1, 2), 2: (1, 2), 3: (3,)}.get(lane, ())
        beside = self.last([each for number in unit for each in self.lanes[number]], time)
        if cause != NONE and lane not in HOST and self.events[cause][2] in HOST:
            begun = [each for each in range(len(self.events))
                     if self.events[each][2] not in HOST and self.cause(each, 0) == cause]  # fmt: skip
            if len(begun) > 1 and beside in begun and self.end(beside) > self.end(own):
                return beside
        if cause != NONE and self.events[cause][0] < time and min(self.end(cause), time) > self.end(own):
            return cause
        awaited = self.meanwhile(lane, self.end(own), time, True)
        if awaited != NONE:
            return awaited
        linked = any(which == 0 and self.events[other][2] == lane and self.cause(other, 0) != NONE
                     for which, _, other in self.links)  # fmt: skip
        return beside if lane not in HOST and not linked and self.end(beside) > self.end(own) else own

    def meanwhile(self, lane, since, time, both):
        """What ended last on threads that this one began work on; with ``both`` also on those that did so here."""
        if lane not in HOST:
            return NONE
        pairs = {(self.events[self.cause(other, 0)][2], self.events[other][2])
                 for other in range(len(self.events)) if self.cause(other, 0) != NONE}  # fmt: skip
        others = {other for other in HOST if other != lane
                  and ((lane, other) in pairs or (both and (other, lane) in pairs))}  # fmt: skip
        found = self.last([each for other in others for each in self.lanes[other]], time - 1)
        return found if self.end(found) > since else NONE

    def pause(self, waiter, start, end):
        """Of the host the innermost event that encloses what it led to, then those around it; the rest is a gap."""
        parts = []
        while waiter != NONE and self.events[waiter][2] in HOST and end > start:
            waiter = self.parent(waiter)
            if waiter != NONE:
                begin = min(max(self.events[waiter][0], start), end)
                parts.append((PathPart.EVENT, begin, end))
                end = begin
        return [*parts, (PathPart.GAP, start, end)]

    def parent(self, event):
        begin, end, lane, _ = self.events[event]
        around = [each for each in self.lanes[lane] if each < event and self.events[each][0] <= begin
                  and end <= self.events[each][1]]  # fmt: skip
        return max(around, default=NONE)

    def path(self, start, end):
        device = [each for each in range(len(self.events))
                  if self.events[each][2] not in HOST and not self.events[each][3]]  # fmt: skip
        host = [each for number in HOST for each in self.lanes[number] if not self.events[each][3]
                and sum(other in self.counts for other in self.lanes[number]) >= 3]  # fmt: skip
        event, time, parts, waiter = self.last(device + host, end), end, [], NONE
        while time > start:
            if event == NONE or self.end(event) <= start:
                parts += self.pause(waiter, start, time)
                break
            begin, stop = max(self.events[event][0], start), min(self.end(event), time)
            parts += self.pause(waiter, stop, time)
            time = stop
            if self.events[event][3]:
                cause = self.cause(event, 1)
                cause = cause if cause != NONE else self.last(device, time)
                if cause == NONE or self.end(cause) <= begin or self.events[cause][0] >= time:
                    parts.append((PathPart.WAIT, begin, time))
                    event, time = self.before(event, begin), begin
                else:
                    parts.append((PathPart.WAIT, min(self.end(cause), time), time))
                    event, time = cause, min(self.end(cause), time)
                waiter = event
                continue
            awaited = self.meanwhile(self.events[event][2], begin, time, False)
            if awaited != NONE:
                parts.append((PathPart.EVENT, self.end(awaited), time))
                waiter, event, time = event, awaited, self.end(awaited)
                continue
            met = self.cause(event, 2)
            if met != NONE and start < self.events[met][0] < time:
                event, begin = met, self.events[met][0]
            parts.append((PathPart.EVENT, begin, time))
            waiter, event, time = event, self.before(event, begin), begin
        return [(int(part), low, high) for part, low, high in reversed(parts) if high > low]


events = st.lists(st.tuples(st.integers(0, 80), st.integers(0, 30), st.integers(0, 4), st.sampled_from([0, 0, 0, 1])),
                  max_size=14)  # fmt: skip
links = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 13), st.integers(0, 13)), max_size=10)


@given(events, links, st.integers(0, 60), st.integers(1, 80))
def test_the_path_is_that_of_a_slow_walk(rows, pairs, start, length):
    rows = sorted((lane, begin, begin + took, waits) for begin, took, lane, waits in rows)
    every = [(begin, end, lane, waits) for lane, begin, end, waits in rows]
    slow = Slow(every, [])
    lanes = []
    for number, (engine, core) in enumerate((("TIU", 9), ("TIU", 0), ("GDMA", 0), ("TIU", 1), ("TIU", 8))):
        mine = [each for each in every if each[2] == number]
        begin, end, _, waits = (np.array(column, np.int64) for column in zip(*mine, strict=True)) if mine else (
            np.zeros(0, np.int64),) * 4  # fmt: skip
        made = make_lane(engine, core, starts=begin, ends=end, roles=np.where(waits, Role.WAIT, Role.WORK))
        if number in HOST:
            first = slow.lanes[number][0] if mine else 0
            parent = [max(slow.parent(each) - first, -1) for each in slow.lanes[number]]
            made = replace(made.with_column("parent", np.array(parent, np.int64)), activity=Activity.HOST, group=-1)
        lanes.append(made)
    pairs = [each for each in dict.fromkeys(pairs) if max(each[1:]) < len(every) and each[1] != each[2]]
    kind, cause, row = (np.array(column, np.int64) for column in zip(*pairs, strict=True)) if pairs else (
        np.zeros(0, np.int64),) * 3  # fmt: skip
    known = Links(("needs", "sent", "meets"), kind.astype(np.int8), cause, row, ending=frozenset((1, 2)),
                  meeting=frozenset((2,)))  # fmt: skip
    profile = make_profile(lanes, cores=range(10))
    path = critical_path(profile, dependencies_in(known, profile.lanes), start, start + length)
    add_up(path, start, start + length)
    assert list(zip(path.part.tolist(), path.start.tolist(), path.end.tolist(), strict=True)) == Slow(
        every, pairs).path(start, start + length)  # fmt: skip


@pytest.mark.parametrize("name", ["aks_decode_mode0", "aks_decode_mode1", "aks_decode_mode2", "aks_host_trace"])
def test_the_view_adds_up(name):
    profile = open_profile(SAMPLES / name)
    query = query_of(profile)
    view = view_of(profile.vocabulary, "critical_path")
    for asked in (query, replace(query, range=(100_000, 300_000))):
        found = answer(view, asked)
        window = found.figure("window_us")
        assert window == asked.span
        assert sum(found.figure(f"{key}_us") for key in ("device", "host", "wait", "gap")) == window
        beside = found.table("beside")
        assert all(0 <= ns <= window for ns in beside.column("slack_us"))
        for table in found.tables:
            if table is beside:
                continue
            key = "duration_us" if table.key == "segments" else "total_us"
            assert sum(table.column(key)) == window
        rows = found.table("operations").rows()
        assert all(row[3] is None or -window / 2 <= row[3] <= 0 for row in rows)
    assert isinstance(query, Query)
