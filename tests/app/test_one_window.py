"""With a host trace beside it a capture has one window, one count and one exposed transfer, in all panes."""

from __future__ import annotations

import numpy as np
import pytest
from profiles import Texts, make_lane, make_profile, session_of, small_profile
from screen import explorer, frame, opened, press

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope
from tpuprof_tui.analysis.totals.grouping import group_table
from tpuprof_tui.app.drawing.glyphs import UNICODE
from tpuprof_tui.app.drawing.theme import DARK
from tpuprof_tui.app.panes.headline import headline_items
from tpuprof_tui.app.panes.summary.answer_lines import AnswerLines
from tpuprof_tui.app.panes.tree import nodes_of
from tpuprof_tui.formats.units import percent_text, time_text
from tpuprof_tui.model import Activity, Profile
from tpuprof_tui.model.lane import Lane
from tpuprof_tui.views.text_pages import summary_report
from tpuprof_tui.views.units import lanes
from tpuprof_tui.views.work import operations


def hosted() -> Profile:
    """A profile of 1,000 ns whose host begins before it and ends after it."""
    starts, ends = np.array([-1000, 200]), np.array([-500, 3000])
    columns = {"start": starts, "end": ends, "order": np.arange(2), "role": np.zeros(2, np.int8)}
    lanes = [
        make_lane("TIU", 0, starts=[0], ends=[400], cycles=[400]),
        make_lane("GDMA", 0, starts=[100], ends=[700], cycles=[600], bytes=[1]),
        make_lane("TIU", 1, starts=[900], ends=[1000], cycles=[100]),
        make_lane("GDMA", 1, starts=[0], ends=[500], cycles=[500], bytes=[1]),
        Lane(kind="HOST", group=-1, label="cpu op", activity=Activity.HOST, columns=columns),
    ]
    return make_profile(lanes, cores=(0, 1))


@pytest.fixture
def session() -> Session:
    return session_of(hosted())


def whole(session: Session) -> DisplayState:
    return DisplayState.of(session.profile.start_ns, session.profile.end_ns)


def test_headline_tree_and_summary_have_one_window(session):
    assert (session.profile.start_ns, session.profile.end_ns) == (-1000, 3000)
    assert session.profile.windows == ((0, 1000),)
    units = Query(session).unit_figures
    assert [core.utilisation for core in units] == [0.7, 0.6]
    assert units == Query(session).headline.units
    nodes = {(node.label, node.scope): node for node in nodes_of(session)}
    for number, lane in enumerate(session.profile.lanes):
        node = nodes[lane.label, Scope(session.unit_of(number), number)]
        alone = lanes(Query(session, Scope(-1, number))).table("lanes")
        told = tuple(alone.column(key)[0] for key in ("utilisation", "busy_us", "count"))
        assert (node.share, node.busy, node.count) == told
    assert nodes["GDMA", Scope(0, 1)].share == 0.6
    assert nodes["cpu op", Scope(-1, 4)].share == pytest.approx(3300 / 4000), "the host's own time is all of it"


def test_a_window_counts_as_far_as_the_device_ran(session):
    assert session.clip_window(-500, 500) == (0, 500)
    assert session.clip_window(-500, 500, 4) == (-500, 500)
    assert session.clip_window(2000, 2500) == (2000, 2000)
    view = whole(session).windowed(-500, 1000)
    assert [core.utilisation for core in Query.of_state(session, view, Scope()).unit_figures] == [1.0, 1.0]


async def test_the_timeline_has_it_too():
    async with opened(hosted()) as pilot:
        assert "% of the device's time" in frame(pilot.app)
        timeline = explorer(pilot).timeline
        told = {
            row.lane: timeline.painter.line(number, -1)[2].text.strip()
            for number, row in enumerate(timeline.lanes.rows)
        }
        nodes = {node.scope.lane: node for node in nodes_of(explorer(pilot).session) if node.scope is not None}
        assert {lane: text for lane, text in told.items() if lane >= 0} == {
            lane: percent_text(nodes[lane].share) for lane in range(5)
        }
        lines = frame(pilot.app).splitlines()
        assert "4 instructions" in lines[0]
        await press(pilot, "2")
        assert explorer(pilot).table.title_text().startswith("4 instructions and 2 host slices, ")


async def test_without_a_host_nothing_is_said_of_it():
    async with opened(small_profile(1, event_count=600)) as pilot:
        assert "device's time" not in frame(pilot.app)
        await press(pilot, "2")
        assert explorer(pilot).table.title_text().startswith("600 instructions, ")


def test_exposed_transfer_is_that_of_the_core_with_the_most(session):
    core = Query(session).headline.most_exposed
    assert (core.number, core.exposed) == (1, 500)
    parts = [[text for text, *_ in item] for item in headline_items(session, DARK)]
    assert ["exposed transfer ", "core 1 500 ns 50.0%"] in parts
    short = [[text for text, *_ in item] for item in headline_items(session, DARK, short=True)]
    assert ["exposed ", "core 1 50%"] in short
    assert any(line == "Exposed transfer  Core 1: 500 ns, 50.0%" for line in summary_report(session.profile).lines)


def test_means_are_rounded_and_the_same_in_every_list():
    """Two of 2 and one of 1 ns: 1.67, which is 2 and not 1; the bottom of a list is cut nowhere."""
    texts = Texts()
    names = texts.codes("name", ["add"] * 3)
    lane = make_lane("TIU", 0, starts=[0, 10, 20], ends=[2, 12, 21], name=names, cycles=[2, 2, 1])
    session = session_of(make_profile([lane], strings=texts.build()))
    found = operations(Query(session))
    assert found.table("by_name").column("mean_us") == [pytest.approx(5 / 3)]
    lines = AnswerLines(session.profile.vocabulary, DARK, UNICODE, 100, 9).entries("Operations", found)
    assert "".join(segment.text for segment in lines[1][0]).split()[-2:] == ["2", "2"]
    report = summary_report(session.profile)
    (row,) = next(table for table in report.tables if table.title.startswith("Operations")).rows
    assert row[3] == "2"
    groups = group_table(session, whole(session), ("name",), work_only=True)
    assert time_text(round(float(groups.mean[0]))) == "2 ns"
