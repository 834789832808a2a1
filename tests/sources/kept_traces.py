"""Public profiles kept in ``tests/data/traces``."""

from __future__ import annotations

import tarfile
from pathlib import Path

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"


def unpacked_trace(name: str, parent: Path) -> Path:
    """A kept profile as a folder of its own below ``parent``, with what other tools say of it."""
    path = parent / name
    with tarfile.open(TRACES / f"{name}.tar.xz") as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member)
            assert content is not None
            (path / member.name).parent.mkdir(parents=True, exist_ok=True)
            (path / member.name).write_bytes(content.read())
    return path
