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


def cores() -> int:
    """Number of CPU cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def python_words(module: str, *words: str) -> list[str]:
    """Command line (argv) of a process that runs a module of this package with the arguments ``words``."""
    folder = str(Path(__file__).resolve().parents[1])
    return [sys.executable, "-c", _CODE.format(folder=folder, module=module), *words]
