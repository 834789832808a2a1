"""How the command line ends: statuses, sentences, logs, and pipes that close."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from command_line import DAMAGED, SAMPLES, SOUND, state_folder, tool  # noqa: F401

import tpuprof_tui.app
import tpuprof_tui.sources.catalog
from tpuprof_tui import __version__, crash_log
from tpuprof_tui.cli.main import main
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.exit_status import INTERRUPTED

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


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (["diff", "x"], "CAPTURE"),
        (["dataset"], "ACTION"),
        (["gate"], "CAPTURE"),
        (["baseline", "save"], "FILE, CAPTURE"),
    ],
)
def test_only_what_is_required_is_told_as_missing(words, missing, capsys):
    assert main(words) == 2
    assert f"The following arguments are required: {missing}. See" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["export", str(SOUND), ""], "OUTDIR"),
        (["gate", str(SOUND), "--against", str(SOUND), "--output", ""], "--output"),
        (["instructions", str(SOUND), "--output", " "], "--output"),
        (["baseline", "save", "", str(SOUND)], "FILE"),
        (["dataset", "build", "", str(SOUND)], "OUTDIR"),
    ],
)
def test_an_empty_path_to_write_to_is_refused(words, name, tmp_path, monkeypatch, capsys):
    """It is an unset variable of the shell: nothing is written elsewhere, or left out, without a word."""
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert f"Argument {name}: the path is empty. See" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_no_command_replaces_a_capture_or_a_baseline(tmp_path, capsys):
    """``baseline save RUN1 RUN2`` lacks the name of its file."""
    trace, kept = tmp_path / "run1.json", tmp_path / "kept.json"
    trace.write_text(json.dumps({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 0,
                                                  "dur": 9}]}))  # fmt: skip
    assert main(["baseline", "save", str(kept), str(trace)]) == 0
    assert main(["baseline", "save", str(kept), str(trace)]) == 0
    before = trace.read_bytes(), kept.read_bytes()
    for words in (
        ["baseline", "save", str(trace), str(trace)],
        ["gate", str(trace), "--against", str(kept), "--output", str(trace)],
        ["gate", str(trace), "--against", str(kept), "--output", str(kept)],
        ["instructions", str(trace), "--output", str(trace)], ["export", str(trace), str(trace)],
    ):  # fmt: skip
        assert main(words) == 2
        assert "which is not replaced" in capsys.readouterr().err
    assert (trace.read_bytes(), kept.read_bytes()) == before


def test_a_folder_of_captures_names_them():
    done = tool("summary", SAMPLES)
    assert done.returncode == 2
    assert f"{SAMPLES} is not a capture, but a folder of " in done.stderr
    assert f"Name one of them: {SAMPLES / 'aks_bmodel'}, " in done.stderr


def test_a_folder_without_captures_is_told_apart(tmp_path):
    (tmp_path / "empty").mkdir()
    assert "but a folder of" not in tool("summary", tmp_path).stderr


def test_a_folder_around_one_capture_stands_for_it(tmp_path):
    inner = shutil.copytree(SAMPLES / "aks_decode_mode0", tmp_path / "run" / "capture")
    assert tool("info", tmp_path / "run", "--json").stdout == tool("info", inner, "--json").stdout
    (inner / "global.profile").unlink()
    assert f"{inner}: global.profile is missing" in tool("info", tmp_path / "run").stderr


def test_errors_say_what_to_do(monkeypatch, capsys):
    def refuses(path, **_):
        raise UnreadableError("Nothing is there.", "Look elsewhere.")

    monkeypatch.setattr(tpuprof_tui.sources.catalog, "open_profile", refuses)
    assert main(["info", "X"]) == 2
    assert capsys.readouterr().err == "tpuprof: Nothing is there. Look elsewhere.\n"


@pytest.mark.parametrize(
    ("words", "status"),
    [(("instructions", SOUND), 0), (("info", SOUND, "--json"), 0), (("--help",), 0), (("help", "KEYS"), 0),
     (("info", "/none"), 2), (("--none",), 2)],
)  # fmt: skip
def test_pipes_that_nobody_reads_are_no_error(words, status):
    """Neither stdout nor stderr, with Python's buffers."""
    environment = os.environ | {"PYTHONUNBUFFERED": ""}
    command = [sys.executable, "-m", "tpuprof_tui", *map(str, words)]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as unread:
        done = subprocess.run(command, stdout=unread, stderr=subprocess.PIPE, text=True, env=environment, check=False)
        assert done.returncode == status
        assert "Broken" not in done.stderr
        assert "Exception" not in done.stderr
        if status or words == ("--help",):
            done = subprocess.run(command, stdout=unread, stderr=unread, env=environment, check=False)
    assert done.returncode == status


@pytest.mark.parametrize("form", ["--json", "--markdown"])
def test_a_gate_fails_although_its_reader_stops_early(form, tmp_path):
    """An answer of any length: one that fits into the buffer fails when it is flushed, a longer one before."""
    paths = []
    for name, took in (("base", 10), ("other", 30)):
        events = [{"ph": "X", "cat": "kernel", "name": f"kernel{number % 500}", "pid": 0, "tid": 7, "ts": 40 * number,
                   "dur": took, "args": {"device": 0, "stream": 7}} for number in range(1000)]  # fmt: skip
        paths.append(tmp_path / f"{name}.pt.trace.json")
        paths[-1].write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    command = [sys.executable, "-m", "tpuprof_tui", "gate", str(paths[1]), "--against", str(paths[0]), form]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 3


def test_a_short_answer_about_lost_data_ends_with_1_although_its_reader_stops_early():
    command = [sys.executable, "-m", "tpuprof_tui", "describe", str(DAMAGED)]
    buffered = os.environ | {"PYTHONUNBUFFERED": ""}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=buffered) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_closed_streams():
    """Without stdout there is one sentence, without stderr no note is written into the answer."""
    command = f"{sys.executable} -m tpuprof_tui instructions {SOUND} --limit 1"
    done = subprocess.run(f"{command} >&-", shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("tpuprof: Standard output is closed. ")
    done = subprocess.run(f"{command} 2>&-", shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("words", [("instructions", SOUND), ("info", SOUND, "--json")])
def test_a_full_disk_is_one_sentence(words):
    command = [sys.executable, "-m", "tpuprof_tui", *map(str, words)]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "tpuprof: The output could not be written: No space left on device.\n"


#: Interrupts the process when it imports the command line; PROGRAM is what imports it.
_INTERRUPTED = """
import os, runpy, signal, sys

class Interrupts:
    def find_spec(self, name, *_):
        if name == "tpuprof_tui.cli.main":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
sys.argv = ["tpuprof", "--version"]
PROGRAM
"""
_AS_MODULE = "runpy.run_module('tpuprof_tui', run_name='__main__', alter_sys=True)"
_AS_SCRIPT = "from tpuprof_tui.__main__ import main; sys.exit(main())"


def interrupted(program: str) -> subprocess.CompletedProcess[str]:
    code = _INTERRUPTED.replace("PROGRAM", program)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.skipif(os.name == "nt", reason="os.kill ends the process there")
@pytest.mark.parametrize("program", [_AS_MODULE, _AS_SCRIPT])
def test_ctrl_c_during_the_imports_ends_without_a_traceback(program):
    done = interrupted(program)
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "", "")
    # where the signal is ignored, as in the background of a script, it stays so
    done = interrupted(f"signal.signal(signal.SIGINT, signal.SIG_IGN)\n{program}")
    assert (done.returncode, done.stderr) == (0, "")
    # a process started by multiprocessing keeps its handling
    done = interrupted(f"sys.modules['__mp_main__'] = os\n{program}")
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")


def test_a_thread_can_import_the_program():
    code = (
        "import importlib, threading\n"
        "thread = threading.Thread(target=importlib.import_module, args=('tpuprof_tui.__main__',))\n"
        "thread.start(), thread.join()\n"
        "import sys; sys.exit(sys.modules['tpuprof_tui.__main__'].main(['--version']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"tpuprof {__version__}\n", "")


def test_after_the_imports_ctrl_c_is_handled_as_usual(tmp_path):
    """Also in processes that a script like the installed one starts: there nothing is replaced even for a while."""
    script = tmp_path / "tpuprof"
    script.write_text(
        "import multiprocessing, signal, tpuprof_tui.__main__ as module\n"
        "def told():\n"
        "    return module._quiet, signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(told(), pool.apply(told))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("(True, True) (False, True)\n", "")


def test_too_little_memory_is_one_sentence(monkeypatch, capsys):
    def grows(path, **_):
        raise MemoryError

    monkeypatch.setattr(tpuprof_tui.sources.catalog, "open_profile", grows)
    assert main(["info", "X"]) == 2
    assert capsys.readouterr().err == "tpuprof: There is not enough memory for this capture.\n"


@pytest.fixture
def broken(monkeypatch, tmp_path):
    """A reader with a defect, and a state folder of its own."""

    def breaks(path, **_):
        raise ZeroDivisionError("three\nlines\nof it")

    monkeypatch.setattr(tpuprof_tui.sources.catalog, "open_profile", breaks)
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
    for _ in range(crash_log.MOST_LOGS + 3):
        main(["info", "X"])
    assert len(list(broken.glob("*.log"))) == crash_log.MOST_LOGS


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

    monkeypatch.setattr(tpuprof_tui.sources.catalog, "open_profile", stops)
    assert main(["info", "X"]) == 130
    assert capsys.readouterr().err == ""


# -- named pipes ------------------------------------------------------------------

TRACE = json.dumps({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 2,
                                     "args": {"device": 0, "stream": 7}}]})  # fmt: skip


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "trace.pt.trace.json"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("words", [["info"], ["summary"], ["report", "--json"], ["instructions"], ["describe"]])
def test_a_named_pipe_is_read_once(words, pipe, capsys):
    """As standard input is, also if its writer waits for a reader first."""
    with subprocess.Popen([sys.executable, "-c", "import sys; open(sys.argv[1], 'w').write(sys.argv[2])", pipe, TRACE]):
        assert main([words[0], str(pipe), *words[1:]]) == 0
    found = capsys.readouterr().out
    assert found
    assert str(pipe) in found or words[0] not in ("info", "report")


@pytest.mark.parametrize(
    "words",
    [["info"], ["summary"], ["diff", SOUND], ["export"], []],
)
def test_a_named_pipe_without_a_writer_is_one_sentence(words, pipe, capsys, monkeypatch):
    monkeypatch.setattr("tpuprof_tui.cli.opening._WAIT", 0.0)
    assert main([*map(str, words), str(pipe)]) == 2
    assert "is a named pipe, and nothing writes into it" in capsys.readouterr().err


def test_a_named_pipe_is_never_opened_by_a_source(pipe):
    with pytest.raises(UnreadableError, match="is a named pipe"):
        tpuprof_tui.sources.catalog.open_profile(pipe)


def test_a_device_and_an_empty_file_are_told(tmp_path, capsys):
    assert main(["info", "/dev/zero"]) == 2
    assert "is a device or socket" in capsys.readouterr().err
    (tmp_path / "some.json").touch()
    assert main(["info", str(tmp_path / "some.json")]) == 2
    assert "is empty" in capsys.readouterr().err
