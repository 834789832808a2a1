"""Which instructions a problem is about: told by rows of its lane, as the truth has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from profiles import CORES, session_of
from written_captures import capture

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.evidence.problem_rows import Damage, damages
from tpuprof_tui.cli.main import main
from tpuprof_tui.formats.units import exact_time
from tpuprof_tui.model import Problem, Profile, Severity
from tpuprof_tui.sources.sophgo.read.problems import Problems

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


def test_what_is_damaged_is_told_by_core_in_plain_words(capsys):
    session = session_of(open_profile(SAMPLES / "aks_damaged"))
    lanes = [lane for lane in session.profile.lanes if lane.group == 1]
    starts = np.sort(np.concatenate([lane["start"][lane["kernel"] < 0] for lane in lanes]))
    (damage,) = damages(session)
    assert damage == Damage(1, 435, 190, int(starts[0]), int(starts[-1]), onwards=True, lost=0)
    told = "190 of 435 instructions have no name from 287.512 us on: their times are right."
    assert damage.text(session.profile.vocabulary.event) == told
    assert replace(damage, onwards=False, lost=1).text(session.profile.vocabulary.event) == (
        f"190 of 435 instructions have no name between 287.512 us and {exact_time(damage.last)}: their times are "
        "right. 1 instruction is lost: no figure counts it.")  # fmt: skip
    assert main(["report", str(SAMPLES / "aks_damaged"), "problems", "--json"]) == 1
    (worker,) = json.loads(capsys.readouterr().out)["views"]["problems"]["workers"].values()
    assert worker["tables"]["damage"]["rows"] == [
        ["Core 1", told, 435, 190, damage.first / 1000, damage.last / 1000, 0]]  # fmt: skip
    assert main(["info", str(SAMPLES / "aks_damaged")]) == 1
    assert f"Core 1  {told}" in capsys.readouterr().out


def test_what_left_no_record_is_told_by_core():
    path = capture("lost")
    truth = json.loads(path.with_name(f"{path.name}.truth.json").read_text())
    lost: dict[str, int] = {}
    for track in truth["tracks"]:
        count = sum(each == 1 for each in track["columns"]["loss"])
        lost[f"Core {track['index']}"] = lost.get(f"Core {track['index']}", 0) + count
    session = session_of(open_profile(path))
    told = {session.profile.groups.title(damage.group): damage.lost for damage in damages(session)}
    assert told == {core: count for core, count in lost.items() if count}
    assert not damages(session_of(open_profile(SAMPLES / "aks_decode_mode2")))


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
    first, second = Problems(), Problems()
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
