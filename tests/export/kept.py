"""Captures kept in ``tests/data``, opened."""

from __future__ import annotations

import tarfile
from pathlib import Path

from tpuprof_tui import open_profile
from tpuprof_tui.model import Profile

DATA = Path(__file__).resolve().parent.parent / "data"
SAMPLES = DATA.parent.parent / "samples"
HOST_TRACE = DATA / "host" / "aks_host_trace.host_trace.json"


def unpacked(name: str, folder: Path) -> Path:
    """A kept capture, unpacked below a folder."""
    path = folder / name
    path.mkdir()
    with tarfile.open(DATA / "captures" / f"{name}.tar.xz") as archive:
        for entry in archive:
            content = archive.extractfile(entry)
            assert content is not None
            (path / Path(entry.name).name).write_bytes(content.read())
    return path


def kept_profile(name: str, folder: Path) -> Profile:
    """A kept capture, read."""
    return open_profile(unpacked(name, folder))
