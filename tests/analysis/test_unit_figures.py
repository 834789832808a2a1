"""Figures of units of any depth, whose lanes may mix what their events do."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from profiles import make_lane, make_profile, selected_query, session_of
from work_rows import top

from tpuprof_tui.analysis.derived_columns import with_exposed
from tpuprof_tui.analysis.events import numbers_in
from tpuprof_tui.analysis.evidence.top_events import LARGE, slow_score
from tpuprof_tui.analysis.index.lane_index import build_index
from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope
from tpuprof_tui.analysis.totals.chart_data import ChartData, chart_data
from tpuprof_tui.analysis.totals.figures import bytes_between, unit_figures
from tpuprof_tui.export.selection import rows_by_lane
from tpuprof_tui.model import INT_MISSING, Activity, Group, Groups, Lane, Profile, Role, Strings
from tpuprof_tui.model.lane import row_numbers
from tpuprof_tui.views.generic_rules import top_events
from tpuprof_tui.views.units import lanes, units
from tpuprof_tui.views.work import operations

COMPUTE, TRANSFER, COMMUNICATION, HOST = (int(each) for each in Activity)
GROUPS = Groups((
    Group("rank 0", "rank", number=0), Group("GPU 4", "gpu", 0, 4, is_unit=True), Group("stream 1", "stream", 1, 1),
    Group("stream 2", "stream", 1, 2), Group("rank 1", "rank", number=1),
    Group("GPU 5", "gpu", 4, 5, is_unit=True), Group("Host", "host", 4), Group("Switch", "switch"),
))  # fmt: skip
NAMES = Strings(("gemm", "copy", "all_reduce"))


def lane(kind: str, group: int, label: str, *events: tuple[int, int, int], **given) -> Lane:
    """A lane of (start, end, activity); the name of each event is that of its activity."""
    start, end, activity = (np.array(column, np.int64) for column in zip(*events, strict=True))
    given = {key: np.array(values, np.int64) for key, values in given.items()}
    columns = {"start": start, "end": end, "activity": activity.astype(np.int8), "order": np.arange(len(start)),
               "role": np.full(len(start), Role.WORK, np.int8), "sublane": np.zeros(len(start), np.int16),
               "name": np.minimum(activity, 2).astype(np.int32), **given}  # fmt: skip
    return Lane(kind=kind, group=group, label=label, columns=columns)


def ranks() -> Profile:
    """Two streams of GPU 4, none of GPU 5, a host thread, a link that GPU 5 and a stream of GPU 4 use, a stray lane."""
    thread = lane("thread", 6, "main", (0, 100, HOST))
    columns = {key: values for key, values in thread.columns.items() if key != "activity"}
    on_host = replace(thread, columns=columns, activity=Activity.HOST)
    lanes = (
        lane("stream", 2, "s", (0, 40, COMPUTE), (40, 60, TRANSFER), (70, 100, COMMUNICATION),
             bytes=(LARGE, 2 * LARGE, 3 * LARGE)),
        lane("stream", 3, "s", (10, 30, TRANSFER), (50, 80, COMPUTE), bytes=(4 * LARGE, 0)),
        on_host,
        lane("link", 7, "link", (20, 50, COMMUNICATION), (90, 95, COMMUNICATION), (96, 97, COMMUNICATION),
             owner=(3, 5, INT_MISSING)),
        lane("stray", -1, "stray", (0, 1, COMPUTE)),
    )  # fmt: skip
    return replace(make_profile([], strings={"name": NAMES}), groups=GROUPS, lanes=lanes)


def covered(*spans: tuple[int, int]) -> np.ndarray:
    """Which of 100 ns some spans cover."""
    held = np.zeros(100, np.bool_)
    for start, end in spans:
        held[start:end] = True
    return held


def data_of(query: Query) -> ChartData:
    return chart_data(query.work_indexes, *query.extent)


def test_figures_of_a_unit_follow_what_its_events_do():
    profile = ranks()
    compute = covered((0, 40), (50, 80))
    transfer, communication = covered((40, 60), (10, 30)), covered((70, 100), (20, 50))
    moving = transfer | communication
    found = unit_figures(Session(profile), 1, 0, 100)
    assert (found.label, found.number, found.name) == ("GPU 4", 4, "4")
    assert (found.compute, found.transfer, found.communication) == (
        compute.sum(), transfer.sum(), communication.sum(),
    )  # fmt: skip
    assert found.overlap == (compute & moving).sum()
    assert found.exposed == (transfer & ~compute & ~communication).sum()
    assert found.exposed_communication == (communication & ~compute).sum()
    assert found.busy == (compute | moving).sum()
    assert found.idle == 100 - found.busy
    # two streams, and what a stream submitted to the link
    assert {kind: figures.count for kind, figures in found.lanes.items()} == {"stream": 5, "link": 1}
    assert found.lanes["stream"].window == 200


def test_a_unit_of_the_host_alone_is_as_busy_as_its_threads():
    profile = ranks()
    groups = Groups(replace(group, is_unit=group.is_unit or group.kind == "host") for group in GROUPS)
    found = unit_figures(Session(replace(profile, groups=groups)), 6, 10, 60)
    assert (found.busy, found.compute, found.exposed, found.overlap, found.idle) == (50, 0, 0, 0, 0)


def test_exposed_time_of_events_of_a_lane_that_mixes_them():
    profile = with_exposed(ranks())
    first, second, thread, link, stray = profile.lanes
    # a copy is covered by computing and communication, communication by computing
    assert first["exposed"].tolist() == [INT_MISSING, 0, 20]
    assert second["exposed"].tolist() == [0, INT_MISSING]
    assert link["exposed"].tolist() == [10, 5, INT_MISSING]
    assert link.take("exposed", np.array([1, 0])).tolist() == [5, 10]
    assert "exposed" not in thread
    assert stray["exposed"].tolist() == [INT_MISSING]


def test_the_headline_is_about_units():
    profile = ranks()
    found = query_of(profile).headline
    assert [unit.label for unit in found.units] == ["GPU 4", "GPU 5"]
    assert (found.busiest.label, found.idlest.busy) == ("GPU 4", 5)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("group", "lanes", "rows"),
    [(-1, (0, 1, 2, 3, 4), 10), (0, (0, 1, 3), 6), (1, (0, 1, 3), 6), (2, (0,), 3), (3, (1, 3), 3), (4, (2, 3), 2),
     (7, (3,), 3)],
)  # fmt: skip
def test_a_scope_is_any_group(group, lanes, rows):
    session = session_of(ranks())
    assert session.lanes_in(Scope(group)) == lanes
    numbers = numbers_in(session, Scope(group), None)
    assert len(numbers) == rows
    state = replace(DisplayState.of(0, 100), scope=Scope(group))
    assert [unit.unit for unit in Query(session, Scope(group)).unit_figures] == list(GROUPS.units_within(group))
    on_host = sum(session.profile.lanes[session.locate(number)[0]].on_host for number in numbers.tolist())
    assert sum(data_of(Query(session, state.scope)).durations) == rows - on_host
    if group >= 0:
        told = top(session.profile, session.indexes, 0, 100, by="name", units={group}, limit=None)
        assert sum(row.count for row in told) == rows - on_host


def test_durations_of_the_host_are_those_of_one_of_its_lanes():
    session = session_of(ranks())
    (thread,) = (number for number, lane in enumerate(session.profile.lanes) if lane.on_host)
    found = data_of(Query(session, Scope(-1, thread)))
    assert sum(found.durations) == len(session.profile.lanes[thread]) > 0


def test_lanes_that_are_not_counted_count_for_themselves_alone():
    """A plane with the tasks of a collective: the first begins before it, and a wait outlasts all."""
    profile = ranks()
    plane = lane("plane", 1, "plane", (65, 75, COMMUNICATION), (75, 80, COMMUNICATION), (100, 110, COMMUNICATION),
                 bytes=(LARGE, LARGE, 0))  # fmt: skip
    plane = replace(plane.with_column("role", np.array([Role.WORK, Role.WORK, Role.WAIT], np.int8)), counted=False)
    session = session_of(replace(profile, lanes=(*profile.lanes, plane)))
    state, number = replace(DisplayState.of(0, 120), scope=Scope(1)), len(profile.lanes)
    with_plane, without = (unit_figures(each, 1, 0, 120) for each in (session, session_of(profile)))
    # its waits alone are seen: the unit is not idle meanwhile
    assert replace(with_plane, idle=without.idle, lanes={}) == replace(without, lanes={})
    assert with_plane.idle == without.idle - 10
    assert (with_plane.lanes["plane"].busy, with_plane.lanes["plane"].bytes) == (15, 2 * LARGE)
    one, other = (operations(Query(each, Scope(1))).table("by_name") for each in (session, session_of(profile)))
    assert one.rows() == other.rows()
    assert sum(data_of(Query(session, state.scope)).durations) == 6
    found = top_events(Query(session), 3)
    assert all(each.lane != number for events in found for each in events)
    alone = replace(state, scope=Scope(-1, number))
    told = operations(Query(session, alone.scope)).table("by_name")
    assert (told.column("name"), told.column("total_us")) == (["all_reduce"], [15])
    assert sum(data_of(Query(session, alone.scope)).durations) == 2
    completed = with_exposed(session.profile)
    assert [each["exposed"].tolist() for each in completed.lanes[:2]] == [
        each["exposed"].tolist() for each in with_exposed(profile).lanes[:2]
    ]


def test_each_event_of_the_device_is_in_one_row_of_the_lanes_and_of_their_kinds():
    found = lanes(Query(session_of(ranks())))
    assert sum(found.table("lanes").column("count")) == sum(found.table("kinds").column("count")) == 9
    alone = lanes(Query(session_of(ranks()), Scope(2)))
    assert alone.table("lanes").column("count") == alone.table("kinds").column("count") == [3]


def test_computing_is_no_slow_transfer():
    first = ranks().lanes[0]
    assert np.isneginf(slow_score(first, slice(0, 3))).tolist() == [True, False, False]
    assert list(data_of(Query(session_of(ranks()), Scope(2))).bandwidth) == ["stream"]


@pytest.mark.parametrize(
    ("unit", "expected"),
    [(1, [[0, 1, 2], [0, 1], [], [0], [0]]), (5, [[], [], [0], [1], [0]])],
)
def test_an_export_of_some_units_has_what_they_submitted(unit, expected):
    query = selected_query(ranks(), (unit,))
    # what nobody is known to have submitted is nobody's, as in reports; the host that submits to the rank's units is
    # theirs, and lanes that do not record it are everybody's
    assert [row_numbers(rows).tolist() for rows in rows_by_lane(query)] == expected
    assert query.units == (unit,)


def test_a_profile_without_a_device_is_headed_by_what_the_host_did():
    host = replace(make_lane(starts=[0, 40], ends=[30, 90]), activity=Activity.HOST)
    profile = make_profile([host])
    figures = query_of(profile).headline
    assert (figures.device_ns, figures.event_count) == (90, 2)


def test_a_single_unit_has_a_mean_which_is_its_own_and_not_shown_twice():
    query = Query(session_of(make_profile([make_lane(starts=[0, 90], ends=[50, 100])])))
    (fact,) = units(query).facts
    assert (fact.key, fact.value, fact.shown) == ("mean_utilisation", 0.6, False)


def test_bytes_that_nobody_recorded_are_not_known():
    unknown = int(INT_MISSING)
    lanes = [
        lane("stream", 1, "none", (0, 10, TRANSFER), bytes=(unknown,)),
        lane("stream", 1, "some", (0, 10, TRANSFER), (20, 30, TRANSFER), bytes=(unknown, 64)),
    ]
    indexes = [build_index(each) for each in lanes]
    assert [bytes_between(each, 0, 30) for each in indexes] == [None, 64]
    assert [bytes_between(each, 0, 15) for each in indexes] == [None, 0]
