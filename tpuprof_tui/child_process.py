"""Processes of this package's own modules, which import nothing from the folder they are begun in."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

#: ``python -m`` and ``-c`` look for modules in the current folder first, where captures of others may lie; ``-P`` came
#: with Python 3.11.
_CODE: Final = (
    "import sys; sys.path[:] = [{folder!r}, *filter(None, sys.path)]; import runpy; "
    "runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
)


_sharing = 1
#: Time on the CPU that the process's cgroup grants, and in which time, us ("200000 100000"; "max 100000": no limit).
_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")


def cores() -> int:
    """How many cores this process may use: its part of those it may run on and its cgroup's CPU quota grants."""
    try:
        found = len(os.sched_getaffinity(0))
    except AttributeError:
        found = os.cpu_count() or 1
    try:
        granted, period = _QUOTA.read_text(encoding="ascii").split()
        found = min(found, round(int(granted) / int(period)))
    except (OSError, ValueError):
        pass
    return max(found // _sharing, 1)


def share_cores(processes: int) -> None:
    """Says that so many processes, this one among them, use the cores."""
    global _sharing
    _sharing = processes


def python_words(module: str, *words: str) -> list[str]:
    """The command line of a process that runs a module of this very package with these words."""
    folder = str(Path(__file__).resolve().parents[1])
    return [sys.executable, "-c", _CODE.format(folder=folder, module=module), *words]
