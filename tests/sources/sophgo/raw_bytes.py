"""Bytes of captures, written by hand: nothing here knows the reader."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings

MONITOR_TIU, MONITOR_GDMA, DYN_DATA, DYN_EXTRA, MONITOR_SDMA, MONITOR_CDMA, DES_KV = 3, 4, 5, 6, 11, 12, 17
#: The same examples in every run, as many as half a second allows.
FIXED = settings(
    derandomize=True,
    max_examples=20,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

#: Words of a GDMA record: bytes written to the bus and to local memory, write and read handshakes (capture 5.3).
BUS_BYTES, LOCAL_BYTES, WRITES, READS = 5, 10, 12, 13


def block(kind: int, payload: bytes, claim: int | None = None) -> bytes:
    """A block; ``claim`` is the length it claims, if not its own."""
    return struct.pack("<II", kind, len(payload) if claim is None else claim) + payload


def blocks_of(data: bytes) -> list[tuple[int, bytes]]:
    """Kind and payload of each block of a file."""
    found, at = [], 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        found.append((kind, data[at + 8 : at + 8 + size]))
        at += 8 + size
    return found


def tiu_record(start: int, end: int, number: int, system: bool = False) -> bytes:
    return struct.pack("<4I", start & 0xFFFFFFFF, end & 0xFFFFFFFF, number, 2 if system else 0)


def dma_record(start: int, end: int, number: int, size: int = 0, to_local: bool = True) -> bytes:
    """A GDMA or SDMA record; of a system command when it moved nothing."""
    words = np.zeros(16, "<u4")
    words[:3] = start & 0xFFFFFFFF, end & 0xFFFFFFFF, number
    if size:
        words[LOCAL_BYTES if to_local else BUS_BYTES] = size
        words[WRITES], words[READS] = 1, 1
    return words.tobytes()


def cdma_record(start: int, end: int, number: int, size: int = 0) -> bytes:
    words = np.zeros(32, "<u4")
    words[:3] = start & 0xFFFFFFFF, end & 0xFFFFFFFF, number
    words[4] = size
    return words.tobytes()


# -- nodes (AKS engine codes) ----------------------------------------------

TIU, GDMA, SDMA, CDMA, VSDMA = 0, 1, 3, 4, 5
FUNC_END = 15


def node(engine: int, type_: int, function: int, extra: int = 0, kind: int = 1) -> int:
    return kind | engine << 7 | type_ << 10 | function << 15 | extra << 20


def func(name: str | bytes) -> list[int]:
    raw = name.encode() if isinstance(name, str) else name
    padded = raw + bytes(-len(raw) % 4)
    return [len(raw) << 7, *struct.unpack(f"<{len(padded) // 4}I", padded)]


def id_reset(engine: int, port: int = 0) -> int:
    return 12 | engine << 7 | port << 28


def batch(number: int) -> int:
    return 14 | number << 7


def des(kind: int, key: int, count: int, port: int = 0) -> list[int]:
    return [kind | key << 7, count | port << 28]


def words(values: Iterable[int]) -> bytes:
    return np.array(list(values), "<u4").tobytes()


def extra_record(content: bytes, kind: int = 1) -> bytes:
    return struct.pack("<3I", 9, kind, len(content)) + content


# -- whole captures --------------------------------------------------------

OPENING_NODES = [node(engine, type_, function) for engine, type_ in ((TIU, 15), (GDMA, 6), (SDMA, 6))
                 for function in ((8, 9) if engine == TIU else (3, 4))]  # fmt: skip
_RESETS = [id_reset(TIU), id_reset(GDMA), id_reset(SDMA)]


def words_of_resets() -> list[int]:
    """The resets with which the opening ends."""
    return list(_RESETS)


CLOSING_NODES = [*_RESETS, *OPENING_NODES[:4]]


def write_capture(parent: Path, cores: dict[int, bytes], settings_text: str = "arch=5\n", **files: bytes) -> Path:
    """A capture of core files by number, and other files by name (``cdma0_1`` for ``cdma0_1.profile``)."""
    path = parent / "capture"
    path.mkdir(parents=True, exist_ok=True)
    (path / "global.profile").write_text(settings_text, encoding="utf-8")
    for number, data in cores.items():
        (path / f"cdmlib0_{number}.profile").write_bytes(data)
    for name, data in files.items():
        (path / f"{name}.profile").write_bytes(data)
    return path


def opening(base: int = 1000) -> dict[str, list[bytes]]:
    """Records of the opening pairs: the TIU wait ends 100 cycles after ``base``."""
    return {
        "TIU": [tiu_record(base, base + 10, 0, True), tiu_record(base + 20, base + 100, 1, True)],
        "GDMA": [dma_record(base, base + 10, 0), dma_record(base + 20, base + 101, 1)],
        "SDMA": [dma_record(base, base + 10, 0), dma_record(base + 20, base + 102, 1)],
    }


def core_file(records: dict[str, list[bytes]], nodes: Iterable[int] | None = None, *more: bytes) -> bytes:
    """A core file: one monitor block per engine, then ``more``, then the node stream."""
    kinds = {"TIU": MONITOR_TIU, "GDMA": MONITOR_GDMA, "SDMA": MONITOR_SDMA}
    parts = [block(kinds[engine], b"".join(items)) for engine, items in records.items()]
    parts += more
    if nodes is not None:
        parts.append(block(DYN_DATA, words(nodes)))
    return b"".join(parts)
