"""A capture in the explorer, to export from."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from pathlib import Path

from screen import explored

from tpuprof_tui.app.shell.application import TpuprofApp

SAMPLE = Path(__file__).parents[2] / "samples" / "aks_decode_mode2"


@asynccontextmanager
async def sample(tmp_path, monkeypatch, path: Path = SAMPLE, size=(120, 40)):
    """The explorer with a capture from disk, in an empty current directory."""
    monkeypatch.chdir(tmp_path)
    app = TpuprofApp(str(path))
    async with app.run_test(size=size) as pilot:
        await explored(pilot)
        yield pilot


def copied(tmp_path: Path) -> Path:
    """A copy of the sample that a test may change."""
    import shutil

    return Path(shutil.copytree(SAMPLE, tmp_path / "captured"))


def slow_program(folder: Path) -> Path:
    """Stands for the interpreter: an export that reports a third and then takes for ever."""
    program, code = folder / "slow", folder / "slow.py"
    code.write_text('import time\nprint(\'{"kind": "web", "done": 0.34}\', flush=True)\ntime.sleep(60)\n')
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {code}\n")
    program.chmod(0o755)
    return program
