from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from profiles import big_profile, make_profile, small_profile

import tpuprof_tui.app
import tpuprof_tui.readers
from tpuprof_tui import __version__, crash_log
from tpuprof_tui.cli import main, split_command
from tpuprof_tui.errors import UnreadableError

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
SOUND, DAMAGED = SAMPLES / "aks_decode_mode1", SAMPLES / "aks_damaged"


def tool(*words: object, **settings) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"TERM": "xterm-256color"} | settings.pop("env", {})
    command = [sys.executable, "-m", "tpuprof_tui", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **settings)


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def opened(monkeypatch):
    """Has every path hold the same small profile; gives what `open_profile` was asked for."""
    asked = []

    def opens(path, **options):
        asked.append((path, options))
        return make_profile(small_profile().lanes, strings=small_profile().strings, cores=range(3))

    monkeypatch.setattr(tpuprof_tui.readers, "open_profile", opens)
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
    assert opened == [("X", {"chip": "AKS", "tiu_mhz": 900})]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("info", "No capture given."),
        ("instructions", "./NAME"),
        ("info X --nonsense", "Unrecognized arguments: --nonsense."),
        ("info X Y", "Unrecognized arguments: Y."),
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
    done = tool("summary", SOUND)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert done.stdout.startswith("aks_decode_mode1: AKS, 8 cores")
    assert "Busiest core" in done.stdout


def test_summary_on_a_terminal_is_styled():
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "tpuprof_tui", "summary", str(SOUND)]
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(command, stdout=follower, stderr=follower, env=environment) as process:
        os.close(follower)
        seen = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:
                break
            if not part:
                break
            seen += part
    os.close(leader)
    assert process.returncode == 0
    assert b"\x1b[1m" in seen
    assert b"Busiest core" in seen


# -- the way into the explorer ------------------------------------------------


def test_without_a_terminal_a_capture_is_summed_up():
    assert tool(SOUND, stdin=subprocess.DEVNULL).stdout == tool("summary", SOUND).stdout


def test_without_a_terminal_there_must_be_a_capture():
    done = tool(stdin=subprocess.DEVNULL)
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
        tpuprof_tui.app, "run", lambda path, **options: started.append((path, options)) or 0, raising=False
    )
    return started


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ([], {}),
        (["--ascii"], {"ascii": True}),
        (["--unicode"], {"ascii": False}),
        (["--no-mouse", "--debug"], {"mouse": False, "debug": True}),
        (["--chip", "AKSV", "--tiu_freq", "950"], {"chip": "AKSV", "tiu_mhz": 950}),
        (["--trace_file", "host.json"], {"trace_file": "host.json"}),
    ],
)
def test_a_terminal_gets_the_explorer(words, changed, terminal, tmp_path):
    assert main([*words, str(tmp_path)]) == 0
    usual = {"chip": None, "tiu_mhz": None, "trace_file": None, "ascii": None, "mouse": True, "debug": False}
    path, options = terminal[0]
    assert (path, {name: options[name] for name in usual}) == (str(tmp_path), usual | changed)


def test_without_a_path_the_explorer_chooses(terminal):
    assert main([]) == 0
    assert terminal[0][0] is None


def test_a_missing_path_never_starts_the_explorer(terminal, capsys):
    assert main(["/nowhere/at/all"]) == 2
    assert not terminal
    assert "/nowhere/at/all: no such file or directory." in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["dumb", "", "unknown"])
def test_a_dumb_terminal_gets_the_summary(kind, terminal, opened, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TERM", kind)
    assert main([str(tmp_path)]) == 0
    assert not terminal
    assert "Busiest core" in capsys.readouterr().out


# -- how it ends ----------------------------------------------------------------


def test_lost_data_ends_with_1():
    done = tool("info", DAMAGED, "--json")
    assert done.returncode == 1
    assert "error" in {problem["severity"] for problem in json.loads(done.stdout)["problems"]}
    assert tool("summary", DAMAGED).returncode == 1
    assert tool("instructions", DAMAGED).returncode == 1


def test_unreadable_ends_with_2(tmp_path):
    for command in ("info", "instructions", "summary"):
        done = tool(command, tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("tpuprof: ")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["a\x1b[2J\nb"], ["info", "a\x1b[2J\nb"], ["info", "X", "--\x1b[2J\nb"]])
def test_messages_cannot_steer_the_terminal(words, capsys):
    assert main(words) == 2
    message = capsys.readouterr().err
    assert "\x1b" not in message
    assert message.count("\n") == 1


def test_a_folder_of_captures_names_them():
    done = tool("summary", SAMPLES)
    assert done.returncode == 2
    assert f"{SAMPLES} is no capture, but a folder of " in done.stderr
    assert f"Name one of them: {SAMPLES / 'aks_bmodel'}, " in done.stderr


def test_a_folder_without_captures_is_told_apart(tmp_path):
    (tmp_path / "empty").mkdir()
    assert "folder of" not in tool("summary", tmp_path).stderr


def test_errors_say_what_to_do(monkeypatch, capsys):
    def refuses(path, **_):
        raise UnreadableError("Nothing is there.", "Look elsewhere.")

    monkeypatch.setattr(tpuprof_tui.readers, "open_profile", refuses)
    assert main(["info", "X"]) == 2
    assert capsys.readouterr().err == "tpuprof: Nothing is there. Look elsewhere.\n"


@pytest.mark.parametrize("words", [("instructions", SOUND), ("summary", SOUND), ("info", SOUND, "--json"), ("--help",)])
def test_a_pipe_that_closes_early_is_no_error(words):
    command = [sys.executable, "-m", "tpuprof_tui", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("words", [("instructions", SOUND), ("summary", SOUND), ("info", SOUND, "--json")])
def test_a_full_disk_is_one_sentence(words):
    command = [sys.executable, "-m", "tpuprof_tui", *map(str, words)]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "tpuprof: The output could not be written: No space left on device.\n"


def test_too_little_memory_is_one_sentence(monkeypatch, capsys):
    def grows(path, **_):
        raise MemoryError

    monkeypatch.setattr(tpuprof_tui.readers, "open_profile", grows)
    assert main(["info", "X"]) == 2
    assert capsys.readouterr().err == "tpuprof: There is not enough memory for this capture.\n"


@pytest.fixture
def broken(monkeypatch, tmp_path):
    """A reader with a defect, and a state folder of its own."""

    def breaks(path, **_):
        raise ZeroDivisionError("three\nlines\nof it")

    monkeypatch.setattr(tpuprof_tui.readers, "open_profile", breaks)
    return tmp_path / "state" / "tpuprof"


def test_an_unexpected_error_is_one_sentence_and_a_log(broken, capsys):
    assert main(["info", "X"]) == 2
    (log,) = broken.glob("*.log")
    message = capsys.readouterr().err
    assert message == f"tpuprof: Unexpected error (ZeroDivisionError: three lines of it). Details are in {log}.\n"
    assert "Traceback" in log.read_text()
    assert "'info', 'X'" in log.read_text()
    assert log.stat().st_mode & 0o077 == 0


def test_only_the_newest_logs_are_kept(broken, capsys):
    for _ in range(crash_log.KEPT + 3):
        main(["info", "X"])
    assert len(list(broken.glob("*.log"))) == crash_log.KEPT


def test_debug_shows_the_traceback(broken):
    with pytest.raises(ZeroDivisionError):
        main(["info", "X", "--debug"])
    assert not broken.exists()


def test_a_log_goes_elsewhere_where_the_state_folder_cannot_be(broken, monkeypatch, tmp_path, capsys):
    (tmp_path / "state").write_text("a file is in the way")
    monkeypatch.setattr(crash_log.tempfile, "gettempdir", lambda: str(tmp_path))
    assert main(["info", "X"]) == 2
    (log,) = tmp_path.glob("*.log")
    assert str(log) in capsys.readouterr().err


def test_no_log_can_be_written(broken, monkeypatch, tmp_path, capsys):
    (tmp_path / "state").write_text("a file is in the way")
    monkeypatch.setattr(crash_log.tempfile, "gettempdir", lambda: str(tmp_path / "missing" / "\0"))
    monkeypatch.setattr(crash_log, "_folders", lambda: iter([tmp_path / "state" / "below"]))
    assert main(["info", "X"]) == 2
    assert "No log could be written" in capsys.readouterr().err


def test_the_state_folder_is_absolute(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert crash_log.state_folder() == tmp_path / ".local" / "state" / "tpuprof"


def test_interruption_is_quiet(monkeypatch, capsys):
    def stops(path, **_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tpuprof_tui.readers, "open_profile", stops)
    assert main(["info", "X"]) == 130
    assert capsys.readouterr().err == ""


# -- help ---------------------------------------------------------------------


def test_version():
    assert tool("--version").stdout == tool("info", "--version").stdout == f"tpuprof {__version__}\n"


def test_help_has_examples_for_every_command():
    text = tool("--help").stdout
    for command in ("info", "instructions", "summary"):
        assert f"tpuprof {command} " in text
        assert "CAPTURE" in tool(command, "--help").stdout


def test_names_that_a_pipe_cannot_spell_do_not_stop_the_summary(tmp_path):
    done = tool("summary", SOUND, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 0


def test_big_profiles_are_summed_up(monkeypatch, capsys):
    monkeypatch.setattr(tpuprof_tui.readers, "open_profile", lambda path, **_: big_profile(200_000, ports=2))
    assert main(["summary", "X"]) == 0
    assert "200,000 instructions" in capsys.readouterr().out
