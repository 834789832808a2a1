"""The published converter, where it is installed: on PATH, or named by TPUPROF_REFERENCE."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

TOOL = os.environ.get("TPUPROF_REFERENCE") or shutil.which("bigTpuProfile")

needs_converter = pytest.mark.skipif(TOOL is None, reason="the published converter is not installed")


def converted(capture: Path, out: Path, *options: str) -> Path:
    """What it makes of a capture; gives the output folder."""
    subprocess.run([str(TOOL), *options, str(capture), str(out)], capture_output=True, check=True, cwd=out.parent)
    return out
