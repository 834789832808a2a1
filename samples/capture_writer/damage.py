"""Damaged variants: a sound capture, then one thing broken in its bytes."""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .capture import DYN_DATA, DYN_EXTRA, MONITOR, write_capture
from .options import Options

_HEADER = struct.Struct("<II")
_BASE = Options("base", cores=(0, 1), seed=301)
_THREE = replace(_BASE, cores=(0, 1, 2), seed=304)
_DETAILED = replace(_BASE, mode=2, seed=302)
_PORTS = replace(_BASE, ports=2, seed=303)


@dataclass(frozen=True)
class Block:
    """One block of a file: where its header begins, its type and payload."""

    offset: int
    kind: int
    payload: bytes


def blocks(data: bytes) -> list[Block]:
    """Blocks of a sound file."""
    found, offset = [], 0
    while offset + _HEADER.size <= len(data):
        kind, size = _HEADER.unpack_from(data, offset)
        found.append(Block(offset, kind, data[offset + _HEADER.size : offset + _HEADER.size + size]))
        offset += _HEADER.size + size
    return found


def joined(parts: list[Block]) -> bytes:
    return b"".join(_HEADER.pack(part.kind, len(part.payload)) + part.payload for part in parts)


def _core(number: int) -> str:
    return f"cdmlib0_{number}.profile"


def _edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def _edit_block(path: Path, kind: int, change: Callable[[bytes], bytes]) -> None:
    """Change the payload of the first block of a kind; its header follows."""
    parts = blocks(path.read_bytes())
    place = next(n for n, part in enumerate(parts) if part.kind == kind)
    parts[place] = replace(parts[place], payload=change(parts[place].payload))
    path.write_bytes(joined(parts))


def _edit_text(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


# -- one thing broken -----------------------------------------------------


def _truncated_header(path: Path) -> None:
    _edit(path / _core(1), lambda data: data + bytes([3, 0, 0, 0, 64]))


def _truncated_block(path: Path) -> None:
    _edit(path / _core(1), lambda data: data[:-777])


def _unknown_block(path: Path) -> None:
    _edit(path / _core(0), lambda data: data + _HEADER.pack(77, 21) + bytes(range(21)))


def _giant_claim(path: Path) -> None:
    _edit(path / _core(1), lambda data: data + _HEADER.pack(5, 0xFFFFFFFF) + bytes(64))


def _partial_record(path: Path) -> None:
    _edit_block(path / _core(0), MONITOR[0], lambda payload: payload + bytes(9))
    _edit_block(path / _core(0), MONITOR[1], lambda payload: payload[:-26])


def _des_cut(path: Path) -> None:
    _edit_block(path / _core(0), DYN_DATA, lambda payload: payload + struct.pack("<I", 8 | 0x123 << 7))


def _func_overrun(path: Path) -> None:
    _edit_block(path / _core(0), DYN_DATA, lambda payload: payload + struct.pack("<I", 5000 << 7) + b"overlong")


def _odd_words(path: Path) -> None:
    _edit_block(path / _core(0), DYN_DATA, lambda payload: payload + b"\x0f\x00\x00")


def _node_kind(path: Path) -> None:
    _edit_block(path / _core(0), DYN_DATA, lambda payload: _inserted(payload, 55))


def _node_engine(path: Path) -> None:
    _edit_block(path / _core(0), DYN_DATA, lambda payload: _inserted(payload, 1 | 7 << 7))


def _inserted(payload: bytes, word: int) -> bytes:
    """The word put in the middle, directly after a FUNC_END."""
    words = list(struct.unpack(f"<{len(payload) // 4}I", payload))
    ends = [place for place, value in enumerate(words) if value == 15]
    words.insert(ends[len(ends) // 2] + 1, word)
    return struct.pack(f"<{len(words)}I", *words)


def _utf8_name(path: Path) -> None:
    _edit_block(path / _core(0), DYN_DATA, lambda payload: payload.replace(b"rope", b"r\xff\xfee", 1))


def _extra_short(path: Path) -> None:
    _edit_block(path / _core(0), DYN_EXTRA, lambda payload: _without_last(payload, 100))


def _without_last(payload: bytes, count: int) -> bytes:
    starts, offset = [], 0
    while offset < len(payload):
        starts.append(offset)
        offset += 12 + struct.unpack_from("<I", payload, offset + 8)[0]
    return payload[: starts[-count]]


def _extra_kind(path: Path) -> None:
    _edit_block(path / _core(0), DYN_EXTRA, lambda payload: payload[:4] + struct.pack("<I", 9) + payload[8:])


def _port_nodes(path: Path) -> None:
    _edit(path / "cdma0_0.profile", lambda data: data + _HEADER.pack(DYN_DATA, 8) + bytes(8))


def _no_global(path: Path) -> None:
    (path / "global.profile").unlink()


def _empty_dir(path: Path) -> None:
    for file in path.iterdir():
        file.unlink()


def _record_one(path: Path) -> None:
    _edit_text(path / "global.profile", lambda text: text + "core1_gdma_record=1\n")


def _freq_zero(path: Path) -> None:
    _edit_text(path / "global.profile", lambda text: text.replace("core_num", "tpu_freq=0\ncore_num"))


def _unknown_arch(path: Path) -> None:
    _edit_text(path / "global.profile", lambda text: text.replace("arch=5", "arch=9901"))


def _garbage_core(path: Path) -> None:
    _edit(path / _core(1), lambda data: bytes((7 * n * n + 13) % 251 for n in range(len(data))))


def _zero_core(path: Path) -> None:
    _edit(path / _core(1), lambda data: b"")


@dataclass(frozen=True)
class Damage:
    """What is broken, in which capture, and what a reader may refuse."""

    about: str
    apply: Callable[[Path], None]
    base: Options = _BASE
    allow: tuple[str, ...] = ()


DAMAGES: dict[str, Damage] = {
    "bad_truncated_header": Damage("five bytes of a further block header at the end of core 1", _truncated_header),
    "bad_truncated_block": Damage("core 1 ends inside its last block", _truncated_block),
    "bad_unknown_block": Damage("an extra block of unknown type 77", _unknown_block),
    "bad_giant_claim": Damage("a block header that claims 4 GiB", _giant_claim),
    "bad_partial_record": Damage("monitor blocks that are no multiple of the record size", _partial_record),
    "bad_des_cut": Damage("a DES node at the end, its second word missing", _des_cut),
    "bad_func_overrun": Damage("a function name that runs past the end", _func_overrun),
    "bad_odd_words": Damage("three bytes too many in the node stream", _odd_words),
    "bad_node_kind": Damage("a node of unknown type 55", _node_kind),
    "bad_node_engine": Damage("a node of an engine that does not exist", _node_engine),
    "bad_utf8_name": Damage("a kernel name that is not UTF-8", _utf8_name),
    "bad_extra_short": Damage("a hundred DYN_EXTRA records fewer than nodes", _extra_short, _DETAILED),
    "bad_extra_kind": Damage("a DYN_EXTRA record of unknown kind", _extra_kind, _DETAILED),
    "bad_port_nodes": Damage("nodes in a CDMA file", _port_nodes, _PORTS),
    "bad_no_global": Damage("no global.profile", _no_global, allow=("refuse",)),
    "bad_empty_dir": Damage("an empty directory", _empty_dir, allow=("refuse",)),
    "bad_unknown_arch": Damage("arch=9901", _unknown_arch, allow=("refuse",)),
    "bad_record_one": Damage("a *_record of 1", _record_one),
    "bad_freq_zero": Damage("tpu_freq=0", _freq_zero),
    "bad_garbage_core": Damage("core 1 is noise", _garbage_core, _THREE),
    "bad_zero_core": Damage("the file of core 1 is empty", _zero_core, _THREE),
}


def damage_capture(name: str, parent: Path, truth: bool = True) -> Path:
    """Write a damaged capture with the truth of the sound one it was made from."""
    damage = DAMAGES[name]
    path = parent / name
    if path.exists():
        shutil.rmtree(path)
    with tempfile.TemporaryDirectory() as scratch:
        written = write_capture(replace(damage.base, name=name), Path(scratch))
        damage.apply(written.path)
        shutil.copytree(written.path, path)
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
