"""Packs captures whose truth is known: ``python tests/data/keep.py CAPTURES NAME...``.

``CAPTURES`` holds capture directories; beside each ``NAME.truth.json`` (what really happened) and, optionally,
``NAME.reference.jsonl.gz`` (what the reference says, one object per instruction). Written are ``captures/NAME.tar.xz``,
``truth/NAME.json.xz`` and, where its truth agrees with the reference, ``reference/NAME.json.xz``.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import sys
import tarfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "sources" / "sophgo"))

from truth_tables import pack, packed_truth, read_truth, write_packed  # noqa: E402


def main(captures: Path, names: list[str]) -> None:
    manifest = {item["name"]: item for item in json.loads((captures / "manifest.json").read_text(encoding="utf-8"))}
    for folder in ("captures", "truth", "reference"):
        (HERE / folder).mkdir(exist_ok=True)
    index: dict[str, Any] = {}
    for name in names or list(manifest):
        keep_capture(captures / name)
        item = manifest[name]
        entry = {"about": item["about"], "sound": item["well_formed"], "allow": item.get("allow", [])}
        index[name] = entry | {"truth": keep_truth(captures / f"{name}.truth.json", name)}
        reference = captures / f"{name}.reference.jsonl.gz"
        if reference.exists() and not item["known_issue"]:
            write_packed(HERE / "reference" / f"{name}.json.xz", packed_reference(reference))
    text = json.dumps(index, indent=1, ensure_ascii=False)
    (HERE / "index.json").write_text(text + "\n", encoding="utf-8")


def keep_capture(path: Path) -> None:
    """The files of a capture, in one archive that is the same each time."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for file in sorted(path.iterdir()) if path.exists() else []:
            entry = tarfile.TarInfo(file.name)
            entry.size = file.stat().st_size
            with file.open("rb") as content:
                archive.addfile(entry, content)
    packed = lzma.compress(raw.getvalue(), preset=9 | lzma.PRESET_EXTREME)
    (HERE / "captures" / f"{path.name}.tar.xz").write_bytes(packed)


_KNOWN: dict[str, str] = {}


def keep_truth(path: Path, name: str) -> str:
    """Keeps a truth unless another capture has the same; the name it is kept under."""
    body = packed_truth(read_truth(path))
    body["meta"].pop("damage", None)
    digest = hashlib.sha256(json.dumps(body).encode()).hexdigest()
    if digest not in _KNOWN:
        _KNOWN[digest] = name
        write_packed(HERE / "truth" / f"{name}.json.xz", body)
    return _KNOWN[digest]


def packed_reference(path: Path) -> list[dict[str, Any]]:
    """What the reference says of each instruction: per lane its fields as columns, None where it has none."""
    lanes: dict[tuple[str, int], list[dict[str, Any]]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            item = json.loads(line)
            fields = {**item["info"], **(item["extra"] or {}), **item["meta"]}
            lanes.setdefault((item["engine"], item["index"]), []).append(fields)
    result = []
    for (engine, index), rows in lanes.items():
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: pack([row.get(name) for row in rows]) for name in names}
        result.append({"engine": engine, "index": index, "fields": columns})
    return result


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
