"""Damaged variants: a sound capture, then one thing broken in its bytes."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from .capture import write_capture
from .damage_edits import Block, Damage, blocks, joined
from .damage_files import FILE_DAMAGES
from .damage_kinds import DAMAGES as FIRST
from .damage_streams import STREAM_DAMAGES

__all__ = ["DAMAGES", "Block", "Damage", "blocks", "damage_capture", "damaged_entry", "joined"]

DAMAGES: dict[str, Damage] = {**FIRST, **FILE_DAMAGES, **STREAM_DAMAGES}


def damage_capture(name: str, parent: Path, truth: bool = True) -> Path:
    """Write a damaged capture with the truth of the sound one it was made from."""
    damage = DAMAGES[name]
    path = parent / name
    if path.exists():
        shutil.rmtree(path)
    with tempfile.TemporaryDirectory() as scratch:
        written = write_capture(replace(damage.base, name=name), Path(scratch))
        shutil.copytree(written.path, path)
        damage.apply(path)
        if truth:
            body = json.loads((Path(scratch) / f"{name}.truth.json").read_text(encoding="utf-8"))
            body["meta"]["damage"] = damage.about
            text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
            (parent / f"{name}.truth.json").write_text(text, encoding="utf-8")
    return path


def damaged_entry(name: str, parent: Path) -> dict[str, Any]:
    """The line of a damaged capture in ``manifest.json``."""
    damage = DAMAGES[name]
    meta = json.loads((parent / f"{name}.truth.json").read_text(encoding="utf-8"))["meta"]
    return {
        "name": name,
        "about": damage.about,
        "well_formed": False,
        "chip": damage.base.chip_name,
        "cores": len(damage.base.written),
        "mode": damage.base.mode,
        "records": meta["records"],
        "host_trace": None,
        "known_issue": "",
        "allow": list(damage.allow),
    }
