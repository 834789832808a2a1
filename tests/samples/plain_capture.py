"""A second, naive look at capture files: loops over words, shares no code with the writer or the reader."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

RECORD_WORDS = {3: 4, 4: 16, 11: 16, 12: 32}
#: Those of BM1688.
WIDE_RECORD_WORDS = RECORD_WORDS | {3: 8, 4: 64, 11: 64}
ENGINE_OF_BLOCK = {3: "TIU", 4: "GDMA", 11: "SDMA", 12: "CDMA"}
AKS_ENGINES = {0: "TIU", 1: "GDMA", 3: "SDMA", 4: "CDMA", 5: "SDMA"}
AKSV_ENGINES = {0: "TIU", 1: "GDMA", 2: "SDMA", 3: "CDMA", 4: "SDMA"}


def file_blocks(path: Path) -> list[tuple[int, bytes]]:
    data, found, at = path.read_bytes(), [], 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        assert at + 8 + size <= len(data), f"{path.name}: block at {at} claims {size} bytes"
        found.append((kind, data[at + 8 : at + 8 + size]))
        at += 8 + size
    return found


def monitor_records(path: Path, record_words: dict[int, int] = RECORD_WORDS) -> dict[str, np.ndarray]:
    """Words of all records, by engine; several blocks joined."""
    parts: dict[str, list[np.ndarray]] = {}
    for kind, payload in file_blocks(path):
        if kind in record_words:
            words = np.frombuffer(payload, "<u4").reshape(-1, record_words[kind]).astype(np.int64)
            parts.setdefault(ENGINE_OF_BLOCK[kind], []).append(words)
    return {engine: np.concatenate(blocks) for engine, blocks in parts.items()}


def node_commands(path: Path, engines: dict[int, str] = AKS_ENGINES) -> list[dict[str, Any]]:
    """Commands of all DYN_DATA blocks in order, with the id, kernel and batch each has."""
    found: list[dict[str, Any]] = []
    for kind, payload in file_blocks(path):
        if kind == 5:
            found += _commands(struct.unpack(f"<{len(payload) // 4}I", payload), engines)
    return found


def _commands(words: tuple[int, ...], engines: dict[int, str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    counters: dict[tuple[str, int], int] = {}
    name, batch, at = None, -1, 0
    while at < len(words):
        word, at = words[at], at + 1
        kind, engine, port = word & 127, engines.get(word >> 7 & 7, ""), word >> 28
        if kind == 0:
            length = word >> 7
            count = -(-length // 4)
            raw = struct.pack(f"<{count}I", *words[at : at + count])[:length]
            name, at = raw.decode("utf-8"), at + count
        elif kind in (1, 13):
            key = (engine, port if engine == "CDMA" else 0)
            found.append({
                "engine": engine, "port": port, "type": word >> 10 & 31, "function": word >> 15 & 31,
                "extra": word >> 20, "id": counters.get(key, 0), "kernel": name, "batch": batch, "rvt": kind == 13,
            })  # fmt: skip
            counters[key] = counters.get(key, 0) + 1
        elif kind == 12:
            counters[(engine, port if engine == "CDMA" else 0)] = 0
        elif kind == 14:
            batch = word >> 7
        elif kind == 15:
            name = None
        elif kind in (8, 9, 10):
            found.append({"engine": {8: "TIU", 9: "GDMA", 10: "SDMA"}[kind], "key": word >> 7, "count": words[at],
                          "kernel": name, "batch": batch})  # fmt: skip
            at += 1
        else:
            raise AssertionError(f"node of type {kind}")
    return found


def extra_contents(path: Path) -> list[bytes]:
    """Contents of all DYN_EXTRA records."""
    found = []
    for kind, payload in file_blocks(path):
        at = 0
        while kind == 6 and at < len(payload):
            _, form, length = struct.unpack_from("<III", payload, at)
            assert form == 1
            found.append(payload[at + 12 : at + 12 + length])
            at += 12 + length
    return found


def load_truth(path: Path) -> tuple[dict[str, Any], dict[tuple[str, int], dict[str, np.ndarray]], dict[str, Any]]:
    """Meta, columns by (engine, index), whole body."""
    body = json.loads(path.read_text(encoding="utf-8"))
    arrays = np.load(path.with_name(body["arrays"])) if "arrays" in body else None
    tracks = {}
    for number, track in enumerate(body["tracks"]):
        if arrays is None:
            columns = {name: np.array(values) for name, values in track["columns"].items()}
        else:
            prefix = f"{number}/"
            columns = {name[len(prefix) :]: arrays[name] for name in arrays.files if name.startswith(prefix)}
        tracks[track["engine"], track["index"]] = columns
    return body["meta"], tracks, body
