"""Which instructions a problem is about: told by rows of its lane, as the truth has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from profiles import CORES
from written_captures import capture

from tpuprof_tui import open_profile
from tpuprof_tui.model import Problem, Profile, Severity
from tpuprof_tui.sources.sophgo.read.problems import Report

SAMPLES = Path(__file__).parents[3] / "samples"
LOST = "commands without a record"


def lane_of(profile: Profile, problem: Problem) -> Any:
    """The lane a problem is about."""
    found = [lane for lane in profile.lanes if problem.is_about(lane, profile.groups)]
    assert len(found) == 1
    return found[0]


def behind_lost(track: dict[str, Any], zero: float) -> list[int]:
    """Starts of the instructions of a track that stand right behind lost ones, ns; the last one behind nothing."""
    columns = {name: np.array(track["columns"][name]) for name in ("start_ns", "loss", "infra")}
    kept = np.flatnonzero((columns["loss"] == 0) & np.isin(columns["infra"], (0, 5)))
    places = np.searchsorted(kept, np.flatnonzero(columns["loss"] == 1))
    rows = kept[np.unique(np.minimum(places, len(kept) - 1))]
    return np.rint(columns["start_ns"][rows] - zero).astype(int).tolist()


@pytest.mark.parametrize("kind", ["lost", "lost_mode2"])
def test_lost_commands_lead_to_the_instruction_behind_them(kind):
    path = capture(kind)
    truth = json.loads(path.with_name(f"{path.name}.truth.json").read_text())
    tracks = {(track["engine"], track["index"]): track for track in truth["tracks"]}
    profile = open_profile(path)
    told = [problem for problem in profile.problems if LOST in problem.what]
    assert told
    for problem in told:
        lane = lane_of(profile, problem)
        assert problem.rows is not None
        starts = lane["start"][problem.rows].tolist()
        track = tracks[lane.kind, profile.unit_number(lane)]
        assert starts == behind_lost(track, truth["meta"]["reference_zero_ns"])


def test_records_without_a_command_are_those_of_no_kernel_function():
    profile = open_profile(SAMPLES / "aks_damaged")
    told = [problem for problem in profile.problems if "records without a command" in problem.what]
    assert len(told) == 2
    for problem in told:
        lane = lane_of(profile, problem)
        unknown = np.flatnonzero(lane["kernel"] < 0)
        assert problem.rows is not None
        assert problem.rows.tolist() == unknown.tolist()
        assert len(problem.rows) == problem.count


def test_a_lapped_ring_leads_to_its_oldest_record():
    profile = open_profile(capture("ring"))
    told = [problem for problem in profile.problems if "ring buffer wrapped" in problem.what]
    assert told
    for problem in told:
        assert problem.rows is not None
        assert problem.rows.tolist() == [0]
        assert lane_of(profile, problem).kind in problem.what


def test_records_that_cannot_be_lead_to_the_one_behind_them(tmp_path):
    sound = SAMPLES / "aks_decode_mode0"
    before = open_profile(sound)
    for path in sound.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    file = tmp_path / "cdmlib0_0.profile"
    data = bytearray(file.read_bytes())
    # in the middle of the records of TIU, 16 bytes each
    at = 8 + int.from_bytes(data[4:8], "little") // 2 // 16 * 16
    data[at : at + 64] = bytes(64)
    file.write_bytes(bytes(data))
    after = open_profile(tmp_path)
    told = [problem for problem in after.problems if "Impossible" in problem.what]
    assert len(told) == 1
    lane = lane_of(after, told[0])
    old = next(
        each
        for each in before.lanes
        if (before.unit_number(each), each.label) == (before.unit_number(lane), lane.label)
    )
    gone = np.flatnonzero(~np.isin(old["start"], lane["start"]))
    assert told[0].rows is not None
    assert lane["start"][told[0].rows].tolist() == old["start"][gone.max() + 1 : gone.max() + 2].tolist()


def test_what_harms_nothing_leads_nowhere():
    for kind in ("aks_decode_mode2", "aksv_cdma", "aks_bmodel"):
        for problem in open_profile(SAMPLES / kind).problems:
            assert problem.rows is None or problem.severity > Severity.NOTE


def test_records_of_one_problem_found_twice_are_joined():
    first, second = Report(), Report()
    first.warning("Odd.", core=1, lane="TIU", records=np.array([4, 7]))
    second.warning("Odd.", core=1, lane="TIU", records=np.array([2]))
    second.note("Elsewhere.", core=2, lane="TIU", records=np.array([1]))
    first.extend(second)
    odd, elsewhere = first.problems(CORES, {(1, "TIU"): lambda records: np.sort(records) * 10})
    assert odd.rows is not None
    assert (odd.count, odd.rows.tolist()) == (2, [20, 40, 70])
    assert elsewhere.rows is None
    assert odd == first.problems(CORES)[0]
    assert "rows" not in odd.as_record(CORES, "core")
