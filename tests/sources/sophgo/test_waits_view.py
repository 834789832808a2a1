"""Who waits for whom: sums of the waits, and the barriers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tpuprof_tui.analysis.links.waits import barrier_of, waits_of
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import Role
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.views.waits import waits

SAMPLES = Path(__file__).resolve().parents[3] / "samples"


@pytest.fixture(scope="module")
def session():
    return Session(open_profile(SAMPLES / "aks_decode_mode2"))


def test_the_last_core_and_what_it_did_are_told(session):
    answer = waits(Query(session))
    makers, matrix, barriers = answer.tables
    assert makers.row(0) == ("Core 0", 970_585, 66, 11, 134_917)
    # the sums close
    total = sum(int((lane["end"] - lane["start"])[lane["role"] == Role.WAIT].sum()) for lane in session.profile.lanes)
    assert sum(matrix.column("total_us")) == total
    assert sum(sum(matrix.column(f"for_{core}_us")) for core in range(4)) == total
    assert len(barriers) == 12
    longest = barriers.row(0)
    assert longest == (889_312, "Core 0", 96_081, 640_660, 8, "GDMA tensorLd (65%)")
    lane, row = barriers.target_of(0).event
    assert session.profile.lanes[lane].kind == "GDMA"
    assert session.span_of(lane, row)[1] == 889_312
    assert barrier_of(session, (lane, row)).late_ns.tolist() == [96_081]
    assert not waits_of(session).guessed.any()


def test_window_scope_and_filter_choose_the_waits(session):
    core = session.profile.units[3]
    assert [row[0] for row in waits(Query(session, Scope(core))).table("waits").rows()] == ["Core 3"]
    window = waits(Query(session, range=(700_000, 890_000)))
    assert len(window.table("barriers")) == len(window.table("barriers").brief) == 1
    assert len(waits(Query(session, filter="engine=TIU")).table("waits")) == 4
    assert waits(Query(session, filter="engine=TIU")).table("makers").row(0)[2] == 33
    assert waits(Query(session, filter="role=work")).missing


def test_guesses_are_marked():
    answer = waits(Query(Session(open_profile(SAMPLES / "aks_decode_mode1"))))
    assert all(table.guessed == frozenset(range(len(table))) for table in answer.tables)
    assert answer.table("makers").row(0)[0] == "Core 5"


def test_waits_of_ports_are_of_the_cores_that_submitted_them():
    profile = open_profile(SAMPLES / "aksv_cdma")
    kinds, expected = set(), 0
    for lane in profile.lanes:
        waiting = lane["role"] == Role.WAIT
        known = profile.groups.units_of(lane["owner"]) >= 0 if lane.kind == "CDMA" else waiting
        expected += int((lane["end"] - lane["start"])[waiting & known].sum())
        kinds |= {lane.kind} if (waiting & known).any() else set()
    assert "CDMA" in kinds
    assert sum(waits(Query(Session(profile))).table("waits").column("total_us")) == expected
