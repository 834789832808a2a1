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


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def python_words(module: str, *words: str) -> list[str]:
    """The command line of a process that runs a module of this very package with these words."""
    folder = str(Path(__file__).resolve().parents[1])
    return [sys.executable, "-c", _CODE.format(folder=folder, module=module), *words]
