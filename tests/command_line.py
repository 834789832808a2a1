"""The command line, run as a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
SOUND, DAMAGED = SAMPLES / "aks_decode_mode1", SAMPLES / "aks_damaged"


def tool(*words: object, **settings) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"TERM": "xterm-256color"} | settings.pop("env", {})
    command = [sys.executable, "-m", "tpuprof_tui", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **settings)


@pytest.fixture(autouse=True)
def state_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
