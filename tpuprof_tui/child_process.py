"""Command lines for child processes that run modules of this package and import nothing from the current folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

#: ``python -m`` and ``-c`` search the current folder first, which may hold untrusted captures; ``-P``, which disables
#: that, needs Python 3.11.
_CODE: Final = (
    "import sys; sys.path[:] = [{folder!r}, *filter(None, sys.path)]; import runpy; "
    "runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
)


#: Number of processes that share the CPUs.
_sharing = 1
#: CPU quota of the process's cgroup: CPU time and period, us ("200000 100000"; "max 100000": no limit).
_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")


def cpu_count() -> int:
    """Number of CPU cores for this process: its CPU affinity, limited by the cgroup's quota, shared among processes.

    See `share_cpus`.
    """
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


def share_cpus(processes: int) -> None:
    """Sets the number of processes, including this one, that share the CPUs."""
    global _sharing
    _sharing = processes


def python_words(module: str, *words: str) -> list[str]:
    """Command line (argv) of a process that runs a module of this package with the arguments ``words``."""
    folder = str(Path(__file__).resolve().parents[1])
    return [sys.executable, "-c", _CODE.format(folder=folder, module=module), *words]
