"""The oven's package, installed as if pip had done it: its folder on the path, with its entry point."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(__file__).with_name("oven")
#: Environment of a program that finds it.
WITH_OVEN = {"PYTHONPATH": str(FOLDER)}


@contextmanager
def installed() -> Iterator[None]:
    """In this process."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield
    finally:
        sys.path.remove(str(FOLDER))
        for name in [name for name in sys.modules if name.partition(".")[0] == "tpuprof_oven"]:
            del sys.modules[name]
