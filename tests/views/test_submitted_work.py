"""Views of one core count the CDMA commands that it submitted, on ports that several cores share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from profiles import session_of

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import Role
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.views.critical_path import critical, path_of
from tpuprof_tui.views.overview import overview
from tpuprof_tui.views.steps import steps
from tpuprof_tui.views.units import lanes
from tpuprof_tui.views.work import operations

CAPTURE = Path(__file__).parents[2] / "samples" / "aksv_cdma"


@pytest.fixture(scope="module")
def session() -> Session:
    return session_of(open_profile(CAPTURE))


@pytest.mark.parametrize("condition", ["", "dur>1us"])
def test_a_core_has_its_part_of_every_port(session, condition):
    profile = session.profile
    parts = dict.fromkeys(profile.units, 0)
    for core in profile.units:
        query = Query(session, Scope(core), filter=condition)
        table = lanes(query).table("lanes")
        rows = {row[0]: dict(zip((each.key for each in table.columns), row, strict=True)) for row in table.rows()}
        own = {}
        for lane in profile.lanes:
            chosen = lane["owner"] == core if profile.unit_of(lane) < 0 else np.full(len(lane), lane.group == core)
            chosen &= lane["end"] - lane["start"] > 1000 if condition else True
            own[profile.title_of(lane)] = int(chosen.sum())
            row = rows.get(profile.title_of(lane))
            if row is not None and profile.unit_of(lane) < 0:
                work = chosen & (lane["role"] == Role.WORK)
                assert row["busy_us"] == Intervals.union(lane["start"][work], lane["end"][work]).total
                assert row["bytes"] == lane["bytes"][work].sum()
        assert {title: row["count"] for title, row in rows.items()} == {
            title: count for title, count in own.items() if title in rows
        }
        count = parts[core] = sum(own.values())
        assert sum(row[2] for row in lanes(query).table("kinds").rows()) == count
        assert next(fact.value for fact in overview(query).facts if fact.key == "events") == count
        assert sum(steps(query).table("steps").column("events")) == count
    assert sum(parts.values()) == sum(lanes(Query(session, filter=condition)).table("lanes").column("count"))


def test_the_critical_path_of_a_core_runs_on_what_it_submitted(session):
    ports = {number: lane for number, lane in enumerate(session.profile.lanes) if session.profile.unit_of(lane) < 0}
    seen = 0
    for core in session.profile.units:
        query = Query(session, Scope(core))
        path = path_of(query)
        beside = critical(query).table("beside")
        events = {beside.target(row).event for row in range(len(beside))}
        seen += len(events)
        events |= {*zip(path.lane.tolist(), path.row.tolist(), strict=True)}
        for number, row in events:
            assert number not in ports or row < 0 or ports[number]["owner"][row] == core
        assert path.length.sum() == query.span
    assert seen


def test_what_runs_through_a_window_of_a_core_was_submitted_by_it(session):
    """A moment in each command of a port: of other cores' commands there, a core shows none."""
    profile, others = session.profile, 0
    for lane in profile.lanes:
        if profile.unit_of(lane) >= 0:
            continue
        for row in range(0, len(lane), 7):
            moment = int(lane["start"][row] + lane["end"][row]) // 2
            for core in profile.units:
                query = Query(session, Scope(core), range=(moment, moment + 1))
                found = [table for table in operations(query).tables if table.key == "running_through"]
                if not found:
                    continue
                events = {found[0].target(place).event for place in range(len(found[0]))}
                running = set()
                for number, each in enumerate(profile.lanes):
                    own = each["owner"] == core if profile.unit_of(each) < 0 else np.full(len(each), each.group == core)
                    rows = np.flatnonzero(own & (each["start"] <= moment) & (each["end"] > moment))
                    running |= {(number, int(rows[-1]))} if len(rows) else set()
                assert events == running
                others += lane["owner"][row] != core
    assert others
