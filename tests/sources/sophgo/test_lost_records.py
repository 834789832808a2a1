"""Files that ``global.profile`` counts records for and that are not there: told, and nobody takes them for idle."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from written_captures import capture

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.cli.main import main
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import Problem, Severity
from tpuprof_tui.sources.catalog import open_profile


def _errors(path: Path) -> list[Problem]:
    return [problem for problem in open_profile(path).problems if problem.severity is Severity.ERROR]


def _copy(kind: str, parent: Path, *gone: str) -> Path:
    path = shutil.copytree(capture(kind), parent / kind)
    for name in gone:
        (path / name).unlink()
    return path


def test_a_core_without_its_file_is_lost_and_not_idle() -> None:
    path = capture("lost_cores")
    profile = open_profile(path)
    assert profile.groups.lost_numbers("core") == (3, 5)
    assert profile.groups.numbers == (0, 1, 2, 4, 6, 7)
    told = [(profile.groups.unit_number(problem.group), problem.file) for problem in _errors(path)]
    assert told == [(3, "global.profile"), (5, "global.profile")]
    found = query_of(profile).headline
    assert [core.number for core in found.units] == list(profile.groups.numbers)
    assert found.idlest is not None
    assert found.idlest.busy
    assert found.most_exposed in found.units


def test_summary_and_info_say_what_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(capture("lost_cores"))
    assert main(["summary", path]) == 1
    text = capsys.readouterr().out
    assert "6 cores (cores 3, 5 lost)" in text
    assert "0.0%" not in text.split("Engines")[0]
    assert main(["info", path]) == 1
    assert re.search(r"^Lost +cores 3, 5$", capsys.readouterr().out, re.MULTILINE)
    assert main(["info", path, "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["cores"], record["lost_cores"], record["lost_cdma_ports"]) == ([*range(8)], [3, 5], [])


@pytest.mark.parametrize(("kind", "lost"), [("lost_ports", (0, 2)), ("lost_all_ports", (0, 1))])
def test_a_port_without_its_file_is_lost(kind: str, lost: tuple[int, ...]) -> None:
    path = capture(kind)
    assert open_profile(path).groups.lost_numbers("port") == lost
    assert [problem.lane for problem in _errors(path)] == [f"port {port}" for port in lost]


def test_cores_that_core_num_alone_counts_are_idle() -> None:
    profile = open_profile(capture("missing_core"))
    assert (profile.groups.numbers, profile.groups.lost_numbers("core")) == (tuple(range(8)), ())


def test_a_core_that_was_idle_is_not_lost() -> None:
    profile = open_profile(capture("idle_core"))
    assert (profile.groups.numbers, profile.groups.lost_numbers("core")) == (tuple(range(8)), ())


def test_a_core_whose_file_holds_none_of_its_records_is_lost(tmp_path: Path) -> None:
    path = _copy("single_core", tmp_path)
    (path / "cdmlib0_1.profile").write_bytes(b"")
    settings = path / "global.profile"
    settings.write_text(settings.read_text() + "core1_tiu_record=1\ncore1_gdma_record=40\n")
    assert open_profile(path).groups.lost_numbers("core") == (1,)
    assert {problem.lane for problem in _errors(path) if problem.group == 1} == {"TIU", "GDMA"}


def test_a_file_that_is_all_damage_is_no_idle_core(tmp_path: Path) -> None:
    path = _copy("single_core", tmp_path)
    (path / "cdmlib0_1.profile").write_bytes(b"<html>404 Not Found</html>")
    assert open_profile(path).groups.lost_numbers("core") == (1,)


def test_counts_of_cores_that_the_chip_does_not_have_are_one_problem(tmp_path: Path) -> None:
    path = _copy("single_core", tmp_path)
    settings = path / "global.profile"
    settings.write_text(settings.read_text() + "".join(f"core{n}_tiu_record=9\n" for n in range(8, 4000)))
    assert open_profile(path).groups.lost_numbers("core") == ()
    (problem,) = _errors(path)
    assert problem.count == 3992
    assert "8 cores" in problem.done


def test_counts_without_any_file_show_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _copy("single_core", tmp_path, "cdmlib0_0.profile")
    with pytest.raises(UnreadableError):
        open_profile(path)
    assert main(["summary", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "there is no core or port file" in printed.err
