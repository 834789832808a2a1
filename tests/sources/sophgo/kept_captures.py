"""Captures kept in ``tests/data`` with what is known of them."""

from __future__ import annotations

import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

from truth_tables import Truth, read_packed, unpacked_truth

DATA = Path(__file__).resolve().parents[2] / "data"
INDEX: dict[str, dict[str, Any]] = json.loads((DATA / "index.json").read_text(encoding="utf-8"))
SOUND = [name for name, entry in INDEX.items() if entry["sound"]]


def unpacked(name: str, parent: Path) -> Path:
    """A kept capture as a directory of its own below ``parent``."""
    path = parent / name
    path.mkdir()
    with tarfile.open(DATA / "captures" / f"{name}.tar.xz") as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member)
            assert content is not None
            (path / member.name).write_bytes(content.read())
    return path


@cache
def _truth_body(name: str) -> Any:
    return read_packed(DATA / "truth" / f"{name}.json.xz")


def kept_truth(name: str) -> Truth:
    """What really happened in a kept capture."""
    return unpacked_truth(_truth_body(INDEX[name]["truth"]))


def kept_reference(name: str) -> list[dict[str, Any]] | None:
    """What the reference says of a kept capture, by lane; None where it is wrong about it."""
    path = DATA / "reference" / f"{name}.json.xz"
    return read_packed(path) if path.exists() else None
