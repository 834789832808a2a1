"""The command line, in this process and as a program of its own."""

from __future__ import annotations

import io
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tpuprof_tui.cli.main import main

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
SOUND, DAMAGED = SAMPLES / "aks_decode_mode1", SAMPLES / "aks_damaged"


def tool(*words: object) -> subprocess.CompletedProcess[str]:
    """The command line without a terminal, in this process: to start one takes ten times as long as most answers."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm-256color")
        for name, stream in (("stdin", io.StringIO()), ("stdout", out), ("stderr", err)):
            patch.setattr(sys, name, stream)
        status = main([*map(str, words)])
    for stream in (out, err):
        stream.seek(0)
    return subprocess.CompletedProcess(words, status, out.read(), err.read())


def program(*words: object, **settings) -> subprocess.CompletedProcess[str]:
    """The command line as a program of its own."""
    environment = os.environ | {"TERM": "xterm-256color"} | settings.pop("env", {})
    command = [sys.executable, "-m", "tpuprof_tui", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **settings)


def without_powers(words: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs a program that may read and write only what permissions allow; root otherwise may read everything."""
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("run as root, and setpriv is not installed: nothing can be forbidden")
        words = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *words]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def on_a_terminal(command: list[str], environment: dict[str, str]) -> tuple[int, bytes]:
    """Exit status of a process that has a terminal of its own, and all it wrote there."""
    leader, follower = pty.openpty()
    with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment) as process:
        os.close(follower)
        told = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:
                break
            if not piece:
                break
            told += piece
    os.close(leader)
    return process.returncode, told


@pytest.fixture(autouse=True)
def state_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
