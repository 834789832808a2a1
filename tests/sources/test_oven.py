"""A source of another package, with words of its own: found by its entry point, opened through the catalog."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import SOUND, tool
from installed_oven import FOLDER, WITH_OVEN, installed

from tpuprof_tui import open_profile
from tpuprof_tui.cli.main import main
from tpuprof_tui.errors import UnreadableError, UsageError
from tpuprof_tui.model import Severity
from tpuprof_tui.sources.catalog import Catalog


@pytest.fixture(autouse=True)
def oven():
    with installed():
        yield


@pytest.fixture
def written(tmp_path):
    """Writes an example; gives its path."""
    from tpuprof_oven.example import bakery
    from tpuprof_oven.recording import write_recording

    def write(name="x.oven.json", **settings) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        write_recording(bakery(**settings), path)
        return path

    return write


def test_what_is_written_is_read(written):
    from tpuprof_oven.example import bakery
    from tpuprof_oven.recording import read_recording

    made = bakery(1, 2, ovens=3, rounds=4)
    assert read_recording(written(number=1, bakeries=2, ovens=3, rounds=4)) == replace(made, doubts={})
    assert {event.does for lane in made.lanes for event in lane.events} == {"work", "bake", "carry", "pass", "rest"}
    for lane, event, other, to, _ in made.calls:
        assert made.lanes[lane].events[event].start < made.lanes[other].events[to].start
    baker = made.lanes[0].events
    assert all(baker[each.inside].start <= each.start < each.end <= baker[each.inside].end
               for each in baker if each.inside >= 0)  # fmt: skip
    assert [each.start for each in baker] == sorted(each.start for each in baker)


def test_it_is_found_by_its_entry_point(written):
    path = written()
    assert Catalog().source_of(path).id == "oven"
    profile = open_profile(path)
    assert (profile.source, len(profile.lanes)) == ("oven", 5)
    tray = next(lane for lane in profile.lanes if lane.label == "tray 0")
    assert (tray["start"][0], tray["end"][0]) == (50 * 125, 650 * 125)


def test_by_content_under_another_name(written):
    path = written("breakfast.json")
    found = Catalog().decisions(path)
    assert [(each.source.id, each.verdict.by) for each in found] == [("sophgo", ""), ("oven", "content")]
    assert open_profile(path).instructions == open_profile(written()).instructions


def test_a_folder_of_bakeries_is_one_profile(written, tmp_path):
    for number in range(2):
        written(f"town/bakery{number}.oven.json", number=number, bakeries=2)
    written("single.oven.json")
    (tmp_path / "town" / "notes.txt").touch()
    town = tmp_path / "town"
    assert open_profile(town).instructions == 2 * open_profile(tmp_path / "single.oven.json").instructions
    assert list(Catalog().find(tmp_path)) == [tmp_path / "single.oven.json", town]
    assert set(Catalog().beside(town)) == {"single.oven.json", "town"}
    before = Catalog().fingerprint(town)
    (town / "notes.txt").write_text("more")
    assert Catalog().fingerprint(town) == before
    written("town/bakery1.oven.json", rounds=5)
    assert Catalog().fingerprint(town) != before


def test_its_option_is_on_the_command_line_and_not_on_other_paths(written, capsys):
    path = str(written())
    assert main(["info", path, "--json"]) == 0
    usual = json.loads(capsys.readouterr().out)
    assert main(["info", path, "--json", "--tick-ns", "250"]) == 0
    slower = json.loads(capsys.readouterr().out)
    assert [lane["busy_ns"] for lane in slower["lanes"]] == [2 * lane["busy_ns"] for lane in usual["lanes"]]
    assert main(["info", path, "--tick_ns", "fast"]) == 2
    assert "--tick_ns" in capsys.readouterr().err
    assert main(["info", str(SOUND), "--tick_ns", "250"]) == 2
    assert "goes with a recording of ovens, not with a Sophgo capture" in capsys.readouterr().err
    with pytest.raises(UsageError, match="--chip"):
        open_profile(path, chip="AKS")


def test_why_tells_the_decision_of_a_source_of_another_package(written, capsys):
    assert main(["info", str(written()), "--why"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:] == ["  oven    yes, by name: it ends in .oven.json", "It is opened as a recording of ovens."]


def test_as_a_program(written):
    path = written()
    done = tool("info", path, "--json", env=WITH_OVEN)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["instructions"] == 3 * (4 + 2 * 5)
    assert tool("info", path).returncode == 2, "without its package nobody knows it"


@pytest.mark.parametrize("words", ["--help", "info --help", "--version", f"info {SOUND}", f"summary {SOUND}"])
def test_what_needs_no_plug_in_loads_none(words):
    code = f"import sys\nfrom tpuprof_tui.cli.main import main\ntry: main({words.split()!r})\nexcept SystemExit: pass\n"
    code += "print([name for name in ('importlib.metadata', 'tpuprof_oven') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


BROKEN = {
    "no_such_oven.source:OVEN": "ModuleNotFoundError: No module named 'no_such_oven'",
    "tpuprof_oven.source:NOTHING": "AttributeError",
    "tpuprof_oven.recording:VERSION": "tpuprof_oven.recording:VERSION is no Source",
    "burnt_oven:OVEN": "ZeroDivisionError: too hot",
}


@pytest.mark.parametrize("value", BROKEN)
def test_a_broken_one_is_a_sentence(value, tmp_path, monkeypatch, capsys):
    (tmp_path / "burnt_oven.py").write_text("raise ZeroDivisionError('too hot')")
    (tmp_path / "burnt-1.dist-info").mkdir()
    (tmp_path / "burnt-1.dist-info" / "METADATA").write_text("Name: burnt\nVersion: 1\n")
    (tmp_path / "burnt-1.dist-info" / "entry_points.txt").write_text(f"[tpuprof.sources]\nburnt = {value}\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "other").mkdir()
    assert main(["info", str(tmp_path / "other")]) == 2
    told = capsys.readouterr().err
    assert f"The source burnt cannot be used ({BROKEN[value]}" in told
    assert told.count("\n") == 1
    assert main(["info", str(tmp_path / "other"), "--why", "--json"]) == 2
    record = json.loads(capsys.readouterr().out)
    assert len(record["faults"]) == 1
    assert [each["source"] for each in record["decisions"]] == ["sophgo", "oven"]
    assert main(["info", str(SOUND)]) == 0


@pytest.mark.parametrize("text", ["", "[", '{"oven": 2}', '{"oven": 1, "lanes": 3}', "[" * 100_000])
def test_damaged_recordings_never_end_in_a_traceback(text, tmp_path):
    path = tmp_path / "x.oven.json"
    path.write_text(text)
    try:
        profile = open_profile(path)
    except UnreadableError:
        return
    assert profile.problems


def test_what_is_sound_in_a_damaged_recording_is_shown(written):
    path = written()
    record = json.loads(path.read_text())
    record["lanes"][1]["events"][2] = [1, 2]
    record["lanes"].append("no lane")
    path.write_text(json.dumps(record))
    profile = open_profile(path)
    assert profile.instructions == 3 * (4 + 2 * 5) - 1
    assert {problem.severity for problem in profile.problems} == {Severity.ERROR}
    assert {problem.file for problem in profile.problems} == {"x.oven.json"}
    assert len(profile.problems) == 2


def test_nothing_outside_its_folder_names_it():
    package = Path(__file__).parents[2] / "tpuprof_tui"
    assert FOLDER.is_dir()
    words = re.compile(r"\b(tpuprof_)?(ovens?|trays?|baker(y|ies)?)\b", re.IGNORECASE)
    assert not [path for path in package.rglob("*.py") if words.search(path.read_text(encoding="utf-8"))]
