"""Changes of the bytes of a capture, block by block."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from .options import Options

HEADER = struct.Struct("<II")
BASE = Options("base", cores=(0, 1), seed=301)
THREE = replace(BASE, cores=(0, 1, 2), seed=304)
DETAILED = replace(BASE, mode=2, seed=302)
PORTS = replace(BASE, ports=2, seed=303)
PREBUILT = replace(BASE, des=("a16_matmul", "mlp"), seed=305)
MODEL = replace(BASE, mode=0, bmodel=True, seed=306)
UNNAMED = replace(BASE, mode=0, seed=307)


@dataclass(frozen=True)
class Damage:
    """What is broken, in which capture, and what of it no reader can show.

    Attributes:
        about: What is broken.
        apply: Breaks it.
        base: The capture.
        allow: ``refuse``: nothing can be shown.
        lost: Lanes of which nothing can be told: "core 1", "TIU 1", "port 0".
        unbound: Most instructions that lose their command.
        condensed: Most instructions that lose their registers.
        partial: Lanes of which only some instructions are left, or some are wrong.
        placeless: Whether what is broken lies at no offset of a file.
    """

    about: str
    apply: Callable[[Path], None]
    base: Options = BASE
    allow: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    unbound: int = 0
    condensed: int = 0
    partial: tuple[str, ...] = ()
    placeless: bool = False


@dataclass(frozen=True)
class Block:
    """One block of a file: where its header begins, its type and payload."""

    offset: int
    kind: int
    payload: bytes


def blocks(data: bytes) -> list[Block]:
    """Blocks of a sound file."""
    found, offset = [], 0
    while offset + HEADER.size <= len(data):
        kind, size = HEADER.unpack_from(data, offset)
        found.append(Block(offset, kind, data[offset + HEADER.size : offset + HEADER.size + size]))
        offset += HEADER.size + size
    return found


def joined(parts: list[Block]) -> bytes:
    return b"".join(HEADER.pack(part.kind, len(part.payload)) + part.payload for part in parts)


def core_file(number: int) -> str:
    """Name of a core's file."""
    return f"cdmlib0_{number}.profile"


def edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def edit_block(path: Path, kind: int, change: Callable[[bytes], bytes]) -> None:
    """Change the payload of the first block of a kind; its header follows."""
    parts = blocks(path.read_bytes())
    place = next(n for n, part in enumerate(parts) if part.kind == kind)
    parts[place] = replace(parts[place], payload=change(parts[place].payload))
    path.write_bytes(joined(parts))


def edit_text(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def header_of(path: Path, kind: int) -> int:
    """Where the header of the first block of a kind lies."""
    return next(part.offset for part in blocks(path.read_bytes()) if part.kind == kind)


def insert(path: Path, offset: int, data: bytes) -> None:
    edit(path, lambda held: held[:offset] + data + held[offset:])


def overwrite(path: Path, offset: int, data: bytes) -> None:
    edit(path, lambda held: held[:offset] + data + held[offset + len(data) :])


def noise(count: int) -> bytes:
    """Bytes without meaning, the same each time; none of their words could be a block's header."""
    return bytes(17 + (7 * n * n + 13 * n) % 229 for n in range(count))


def words_of(payload: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(payload) // 4}I", payload[: len(payload) // 4 * 4]))


def bytes_of(words: list[int]) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


def extras_of(payload: bytes) -> list[bytes]:
    """Records of a DYN_EXTRA payload."""
    found, offset = [], 0
    while offset < len(payload):
        size = 12 + struct.unpack_from("<I", payload, offset + 8)[0]
        found.append(payload[offset : offset + size])
        offset += size
    return found
