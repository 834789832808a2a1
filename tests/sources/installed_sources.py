"""Packages with sources, installed as if pip had done it: their folder on the path, with their entry points."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OVEN = Path(__file__).with_name("oven")
#: Environment of a program that finds the oven.
WITH_OVEN = {"PYTHONPATH": str(OVEN)}


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """What lies in a folder, in this process; its modules are forgotten afterwards."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(f"{folder}/"):
                del sys.modules[name]


@contextmanager
def offered(parent: Path, **sources: str) -> Iterator[None]:
    """Sources ("module:NAME") of modules that can be imported, in this process.

    Args:
        parent: Where a package of no modules is made, that has entry points.
        sources: By the names of these.
    """
    made = parent / "offered-1.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: offered\nVersion: 1.0\n")
    lines = ["[tpuprof.sources]", *(f"{name} = {where}" for name, where in sources.items())]
    (made / "entry_points.txt").write_text("\n".join(lines) + "\n")
    with installed(parent):
        yield
