"""``manifest.json``: what lies in a directory of captures, for programs that judge readers by them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .capture import Written
from .options import Options


def entry(options: Options, written: Written) -> dict[str, Any]:
    """The line of an undamaged capture."""
    return {
        "name": options.name,
        "about": options.about,
        "well_formed": True,
        "chip": options.chip_name,
        "cores": len(options.written),
        "mode": written.meta["mode"],
        "records": written.records,
        "host_trace": written.meta.get("host_trace"),
        "known_issue": options.reference_fails,
        "allow": list(options.allow),
    }


def write_manifest(directory: Path, entries: list[dict[str, Any]]) -> None:
    """Write ``manifest.json``; entries of other captures already in it are kept."""
    path = directory / "manifest.json"
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    names = {item["name"] for item in entries}
    body = [item for item in old if item["name"] not in names] + entries
    path.write_text(json.dumps(body, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
