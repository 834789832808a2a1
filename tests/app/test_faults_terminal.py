"""The explorer in a real terminal when things go wrong around it: nothing breaks, nothing that was chosen is lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_terminal import SAMPLE, SEQUENCE, Session, screen_after

from tpuprof_tui.cli.main import main

pexpect = pytest.importorskip("pexpect")
pytestmark = pytest.mark.skipif(not SAMPLE.is_dir(), reason="the sample captures are not there")


def _shown(sent: bytes) -> str:
    return SEQUENCE.sub(b"", sent).decode("utf-8", "replace")


def _opened(
    *arguments: str,
    size: tuple[int, int] = (24, 80), nohup: bool = False, word: bytes = b"busiest core", **environment: str,
) -> Session:  # fmt: skip
    session = Session(*arguments, size=size, nohup=nohup, **environment)
    session.until(word)
    return session


def _config(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "tpuprof" / "config.json").read_text())
    return found


def _ended(session: Session) -> int:
    """The signal (negative) or status that the program ended with, once it has."""
    end = time.monotonic() + 60
    while session.child.isalive():
        assert time.monotonic() < end, "it goes on"
        session.read(0.1)
    return -session.child.signalstatus if session.child.signalstatus is not None else session.child.exitstatus


@pytest.mark.parametrize("how", ["terminal closed", "terminal closed, nohup", "SIGTERM"])
def test_what_was_chosen_is_remembered_when_the_terminal_goes(tmp_path: Path, how: str) -> None:
    session = _opened(
        str(SAMPLE), nohup="nohup" in how, XDG_CONFIG_HOME=str(tmp_path), XDG_STATE_HOME=str(tmp_path / "state")
    )
    session.press("L")
    if how.startswith("terminal closed"):
        os.close(session.child.child_fd)
        status = os.waitstatus_to_exitcode(os.waitpid(session.child.pid, 0)[1])
        session.child.closed, session.child.child_fd = True, -1
    else:
        os.kill(session.child.pid, signal.Signals[how])
        status = _ended(session)
    lives = how.startswith("SIG")
    assert status == (128 + signal.Signals[how] if lives else -signal.SIGHUP)
    assert "timeline" in _config(tmp_path)
    assert not (tmp_path / "state").exists(), "nothing unexpected was logged"
    if lives:
        assert b"\x1b[?1049l" in session.sent, "the terminal is as it was"
        assert session.child.getecho(), "and echoes what is typed"


def test_without_a_home_to_write_to() -> None:
    """Themes and the legend work; only nothing is remembered."""
    session = _opened(str(SAMPLE), HOME="", XDG_CONFIG_HOME="", XDG_STATE_HOME="")
    session.press("T")
    session.press("2")
    session.press("s")
    assert session.end() == 0
    assert "Unexpected" not in _shown(session.sent)


def test_two_explorers_harm_each_other_in_nothing(tmp_path: Path) -> None:
    """Each remembers what was chosen in it; what was typed into the file by hand stays."""
    file = tmp_path / "tpuprof" / "config.json"
    file.parent.mkdir()
    file.write_text('{"keys": {"timeline.zoom-in": "w,home"}, "mine": [1, 2]}')
    first = _opened(str(SAMPLE), XDG_CONFIG_HOME=str(tmp_path))
    second = _opened(str(SAMPLE), XDG_CONFIG_HOME=str(tmp_path))
    first.press("L")
    second.press("T")
    first.press("1")
    assert (first.end(), second.end()) == (0, 0)
    held = _config(tmp_path)
    assert set(held) >= {"keys", "mine", "timeline", "theme"}
    assert held["mine"] == [1, 2]
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("change", ["noise", "gone"])
def test_files_that_change_under_the_screen(tmp_path: Path, change: str) -> None:
    """What was read stays on the screen with all its details; reading again tells what is left."""
    capture = tmp_path / "capture"
    shutil.copytree(SAMPLE.parent / "aks_decode_mode2", capture)
    session = _opened(str(capture), XDG_CONFIG_HOME=str(tmp_path / "config"))
    for file in capture.glob("cdmlib*"):
        if change == "gone":
            file.unlink()
        else:
            with file.open("r+b") as stream:
                stream.write(bytes(range(7, 250)) * 40)
    for keys in ("2", "\r", "j", "j", "G", "1", "w", "w", "i", "3", "4"):
        session.press_quickly(keys)
    session.sent = b""
    session.press("R")
    session.until(b"Problems")
    session.press("4")
    session.press(":")
    session.press("\x1b")
    assert session.child.isalive()
    assert "Unexpected" not in _shown(session.sent)
    status = session.end("\x03")
    # where nothing can be read the capture that was open stays, as it was
    assert (status, main(["info", str(capture)])) == ((0, 2) if change == "gone" else (1, 1))


def test_a_capture_that_is_being_written_is_followed_to_its_end(tmp_path: Path) -> None:
    """Half of it opens with what is there; when it rests, all of it is shown."""
    capture = tmp_path / "capture"
    capture.mkdir()
    data = {file.name: file.read_bytes() for file in SAMPLE.iterdir()}
    for name, content in data.items():
        (capture / name).write_bytes(content if name == "global.profile" else content[: len(content) // 2])
    session = _opened(str(capture), "--follow", XDG_CONFIG_HOME=str(tmp_path / "config"), size=(40, 120))
    session.press("4")
    assert "holds" in screen_after(session, (40, 120))
    for name, content in data.items():
        (capture / name).write_bytes(content[: len(content) * 3 // 4])
        time.sleep(0.02)
        (capture / name).write_bytes(content)
    # the problems stay on the screen while the capture is read again: those of its half go
    end = time.monotonic() + 30
    while "holds" in screen_after(session, (40, 120)):
        assert time.monotonic() < end, "it was not read again"
        session.read(0.2)
    session.press("3")
    session.until(b"2,832")  # the most frequent operation of all that ran
    assert session.end() == 0


def test_a_named_pipe_is_read_once_and_shown(tmp_path: Path) -> None:
    pipe = tmp_path / "trace.pt.trace.json"
    os.mkfifo(pipe)
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5, "dur": 2}
    script = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
    with subprocess.Popen([sys.executable, "-c", script, pipe, json.dumps({"traceEvents": [event]})]):
        session = Session(str(pipe), XDG_CONFIG_HOME=str(tmp_path / "config"))
        session.until(b"aten::mm")
    assert pipe.name in _shown(session.sent)
    assert session.end() == 0


def test_a_folder_with_odd_things_is_listed(tmp_path: Path) -> None:
    """Links in a circle, links to nothing, pipes and sockets among captures; names that steer terminals."""
    for name in ("sound", "steers \x1b[2J\x1b]0;x\x07", "[red]markup[/]"):
        shutil.copytree(SAMPLE, tmp_path / name)
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "up").symlink_to("..")
    (tmp_path / "gone").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "odd").mkdir()
    os.mkfifo(tmp_path / "odd" / "global.profile")
    (tmp_path / "odd" / "cdmlib0_0.profile").symlink_to("cdmlib0_0.profile")
    session = Session(str(tmp_path), size=(30, 120), XDG_CONFIG_HOME=str(tmp_path / "config"))
    session.until(b"unreadable")
    text = _shown(session.sent)
    assert "[red]markup[/]" in text
    assert "sound" in text
    assert b"\x1b]0;x" not in session.sent
    assert session.end() == 0
