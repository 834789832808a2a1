from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys

import pytest
from command_line import DAMAGED, SAMPLES, SOUND, on_a_terminal, program, state_folder, tool  # noqa: F401
from profiles import big_profile, make_profile, small_profile

import tpuprof_tui.app
import tpuprof_tui.sources.catalog
from tpuprof_tui import __version__
from tpuprof_tui.cli.main import main, split_command

TRACE = SAMPLES / "aks_host_trace" / "host_trace.json"


@pytest.fixture
def opened(monkeypatch):
    """Has every path hold the same small profile; gives what `open_profile` was asked for."""
    asked = []

    def opens(path, **options):
        asked.append((path, options))
        return make_profile(small_profile().lanes, strings=small_profile().strings, cores=range(3))

    monkeypatch.setattr(tpuprof_tui.sources.catalog, "open_profile", opens)
    return asked


# -- words ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "command", "rest"),
    [
        ("info X --json", "info", "X --json"),
        ("--tiu_freq 900 info X", "info", "--tiu_freq 900 X"),
        ("--tiu_freq=900 info X", "info", "--tiu_freq=900 X"),
        ("--chip info X", "open", "--chip info X"),
        ("--ascii summary X", "summary", "--ascii X"),
        ("X info", "open", "X info"),
        ("./info", "open", "./info"),
        ("-- info", "open", "-- info"),
        ("open", "open", "open"),
        ("", "open", ""),
    ],
)
def test_the_command_is_the_first_free_word(words, command, rest):
    assert split_command(words.split()) == (command, rest.split())


@pytest.mark.parametrize(
    "words",
    ["info X --tiu_freq 900 --chip AKS", "--tiu_freq 900 --chip AKS info X", "--chip AKS info --tiu-freq=900 X"],
)
def test_options_stand_anywhere(words, opened, capsys):
    assert main(words.split()) == 0
    assert opened == [("X", {"part": None, "chip": "AKS", "tiu_mhz": 900})]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("info", "No capture given."),
        ("instructions", "./NAME"),
        ("info X --nonsense", "Unrecognized arguments: --nonsense."),
        ("instructions X Y", "Unrecognized arguments: Y."),
        ("info X --tiu_freq 0", "'0' is not a whole number of MHz"),
        ("info X --tiu_freq 9.5", "'9.5' is not a whole number of MHz"),
        ("instructions X --core -1", "core"),
        ("instructions X --format xml", "invalid choice"),
        ("instructions X --core 7", "The capture has no core 7. Its cores: 0, 1, 2."),
    ],
)
def test_usage_errors_are_one_sentence(words, said, opened, capsys):
    assert main(words.split()) == 2
    message = capsys.readouterr().err
    assert message.startswith("tpuprof: ")
    assert said in message
    assert message.count("\n") == 1


# -- commands ---------------------------------------------------------------


def test_info_as_json():
    done = tool("info", SOUND, "--json")
    assert done.returncode == 0
    record = json.loads(done.stdout)
    assert record["chip"] == "AKS"
    assert record["mode"] == 1
    assert record["cores"] == list(range(8))
    assert record["instructions"] == sum(lane["instructions"] for lane in record["lanes"]) > 10_000
    assert record["problems"] == []


def test_info_with_memory():
    record = json.loads(tool("info", SOUND, "--json", "--memory").stdout)
    plain = json.loads(tool("info", SOUND, "--json").stdout)
    assert record.pop("memory")["process"] > 0
    assert record == plain
    assert "\nMemory\n" in tool("info", SOUND, "--memory").stdout


def test_every_listed_instruction_is_counted():
    count = json.loads(tool("info", SOUND, "--json").stdout)["instructions"]
    lines = tool("instructions", SOUND).stdout.split("\n")
    assert lines.pop() == ""
    assert len([json.loads(line) for line in lines]) == count
    cells = list(csv.DictReader(io.StringIO(tool("instructions", SOUND, "--format", "csv").stdout)))
    assert len(cells) == count


def test_instructions_of_a_core_and_engine():
    lines = tool("instructions", SOUND, "--core", 3, "--engine", "gdma").stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert {(row["engine"], row["Core Id"]) for row in rows} == {("GDMA", 3)}
    assert [row["Global Idx"] for row in rows] == sorted(row["Global Idx"] for row in rows)


def test_the_clock_can_be_given():
    record = json.loads(tool("info", SOUND, "--json", "--tiu_freq", 500).stdout)
    assert record["tiu_mhz"] == 500
    assert record["dma_mhz"] == 1000


def test_summary_in_a_pipe_is_plain():
    done = program("summary", SOUND)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert done.stdout.split("\n\n")[1].startswith("aks_decode_mode1: AKS, 8 cores")
    assert "Busiest core" in done.stdout


def test_summary_on_a_terminal_is_styled():
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    status, seen = on_a_terminal([sys.executable, "-m", "tpuprof_tui", "summary", str(SOUND)], environment)
    assert status == 0
    assert b"\x1b[1m" in seen
    assert b"Busiest core" in seen


# -- the way into the explorer ------------------------------------------------


def test_without_a_terminal_a_capture_is_summed_up():
    assert tool(SOUND).stdout == tool("summary", SOUND).stdout


def test_without_a_terminal_there_must_be_a_capture():
    done = tool()
    assert done.returncode == 2
    assert "No capture given" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_screen_that_goes_to_a_file_is_not_drawn(tmp_path):
    leader, follower = pty.openpty()
    with (tmp_path / "errors").open("wb") as errors:
        command = [sys.executable, "-m", "tpuprof_tui", str(SOUND)]
        environment = os.environ | {"TERM": "xterm-256color", "NO_COLOR": "1"}
        process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=errors, env=environment)
        os.close(follower)
        seen = b""
        while b"Busiest core" not in seen:
            seen += os.read(leader, 65536)
        process.terminate()
        process.wait()
    os.close(leader)
    assert b"\x1b[?1049h" not in seen + (tmp_path / "errors").read_bytes()


@pytest.fixture
def terminal(monkeypatch):
    """A terminal, and what the explorer would be started with."""
    started = []
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(
        tpuprof_tui.app, "run", lambda paths, **options: started.append((paths, options)) or 0, raising=False
    )
    return started


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ([], {}),
        (["--ascii"], {"ascii": True}),
        (["--unicode"], {"ascii": False}),
        (["--no-mouse", "--debug"], {"mouse": False, "debug": True}),
        (["--chip", "AKSV", "--tiu_freq", "950"], {"options": {"chip": "AKSV", "tiu_mhz": 950}}),
        (["--trace_file", str(TRACE)], {"options": {"trace_file": str(TRACE)}}),
    ],
)
def test_a_terminal_gets_the_explorer(words, changed, terminal, tmp_path):
    assert main([*words, str(tmp_path)]) == 0
    usual = {"options": {}, "ascii": None, "mouse": True, "debug": False}
    paths, options = terminal[0]
    assert (paths, {name: options[name] for name in usual}) == ([str(tmp_path)], usual | changed)


def test_without_a_path_the_explorer_chooses(terminal):
    assert main([]) == 0
    assert terminal[0][0] == []


@pytest.mark.parametrize("words", [["/nowhere/at/all"], [str(SOUND), "--trace_file", "/nowhere/at/all"]])
def test_a_missing_path_never_starts_the_explorer(words, terminal, capsys):
    assert main(words) == 2
    assert not terminal
    assert "/nowhere/at/all: no such file or directory." in capsys.readouterr().err


@pytest.mark.parametrize("words", [["memory://fleet/a"], ["summary", "memory://fleet/a"], ["memory://a", "memory://b"]])
def test_of_another_file_system_one_data_set_alone_is_opened(words, terminal, capsys):
    pytest.importorskip("fsspec")
    assert main(words) == 2
    assert not terminal
    told = capsys.readouterr().err
    assert "only one data set at a time can be opened there" in told
    assert "tpuprof dataset build OUT memory://" in told


@pytest.mark.parametrize("kind", ["dumb", "", "unknown"])
def test_a_dumb_terminal_gets_the_summary(kind, terminal, opened, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TERM", kind)
    assert main([str(tmp_path)]) == 0
    assert not terminal
    assert "Busiest core" in capsys.readouterr().out


# -- help ---------------------------------------------------------------------


def test_version():
    assert program("--version").stdout == tool("info", "--version").stdout == f"tpuprof {__version__}\n"


def test_help_says_of_a_range_what_each_command_does(capsys):
    """A window in the middle of the longest instruction: it runs there, and starts before."""
    from tpuprof_tui.sources.catalog import open_profile

    profile = open_profile(SOUND)
    lane = max(profile.lanes, key=lambda lane: int(lane["duration"].max(initial=0)))
    row = int(lane["duration"].argmax())
    middle, end = int(lane["start"][row] + lane["end"][row]) // 2, int(lane["end"][row]) + 1
    running, starting = (
        sum(int(((each[key] >= middle) & (each["start"] < end)).sum()) for each in profile.lanes)
        for key in ("end", "start")
    )
    assert starting < running
    span = f"--range={middle}ns..{end}ns"

    def out(*words: str) -> str:
        assert main([*words]) in (0, 1)
        return capsys.readouterr().out

    (report,) = json.loads(out("report", str(SOUND), "overview", span, "--json"))["views"]["overview"][
        "workers"
    ].values()
    assert report["figures"]["events"] == starting
    assert len(out("instructions", str(SOUND), span).splitlines()) == starting
    for command, words in (
        ("report", "count events that start in this time"),
        ("instructions", "only events that start in this time, whole"),
        ("export", "only events that start in this time, whole"),
        ("open", "open at this time; figures are those of report"),
    ):
        assert main([command, "--help"]) == 0
        assert words in " ".join(capsys.readouterr().out.split()), command


def test_help_has_examples_for_every_command():
    text = tool("--help").stdout
    for command in ("info", "instructions", "summary"):
        assert f"tpuprof {command} " in text
        assert "CAPTURE" in tool(command, "--help").stdout


def test_names_that_a_pipe_cannot_spell_do_not_stop_the_summary(tmp_path):
    done = program("summary", SOUND, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 0


def test_big_profiles_are_summed_up(monkeypatch, capsys):
    monkeypatch.setattr(tpuprof_tui.sources.catalog, "open_profile", lambda path, **_: big_profile(200_000, ports=2))
    assert main(["summary", "X"]) == 0
    assert "200,000 instructions" in capsys.readouterr().out


# -- several captures ---------------------------------------------------------


def test_one_answer_each_in_order():
    done = tool("summary", SOUND, "/nowhere/at/all", DAMAGED)
    assert done.returncode == 2
    assert done.stderr == "tpuprof: /nowhere/at/all: no such file or directory.\n"
    first, second = (tool("summary", path) for path in (SOUND, DAMAGED))
    assert done.stdout == f"==> {SOUND} <==\n{first.stdout}\n==> {DAMAGED} <==\n{second.stdout}"
    assert tool("info", SOUND, DAMAGED).returncode == 1


def test_info_as_json_of_several_is_one_object_after_another():
    done = tool("info", SOUND, DAMAGED, "--json")
    assert done.stdout == "".join(tool("info", path, "--json").stdout for path in (SOUND, DAMAGED))
    assert done.returncode == 1


def test_several_without_a_terminal_are_summed_up():
    assert tool(SOUND, DAMAGED).stdout == tool("summary", SOUND, DAMAGED).stdout


def test_several_are_a_list_in_the_explorer(terminal, tmp_path):
    paths = [str(tmp_path), str(SOUND)]
    assert main(paths) == 0
    assert terminal[0][0] == paths


def test_one_missing_of_several_never_starts_the_explorer(terminal, capsys):
    assert main([str(SOUND), "/nowhere/at/all"]) == 2
    assert not terminal
    assert "/nowhere/at/all: no such file or directory." in capsys.readouterr().err


def test_a_file_of_a_capture_stands_for_it():
    file = next(SOUND.glob("cdmlib*"))
    assert tool("summary", file).stdout == tool("summary", SOUND).stdout


def test_what_is_typed_in_place_of_a_number_is_told_whatever_it_holds(capsys):
    for words in (["instructions", ".", "--core", "{x}"], ["export", ".", "--num-core", "{0}"]):
        assert main(words) == 2
        assert f"{words[-1]!r} is not" in capsys.readouterr().err
    assert main(["export", str(SOUND), "/nowhere", "--cores", "{x}"]) == 2
    assert "'{x}' is not a list of cores." in capsys.readouterr().err


def test_a_workbook_of_one_core_does_not_ask_for_the_launches_of_another(tmp_path):
    # steps were found by the launches of core 0
    assert main(["export", str(SAMPLES / "aks_decode_mode1"), str(tmp_path), "--only", "xlsx", "--cores", "3"]) == 0
