"""What can be broken in a capture: the framing, the nodes, the settings, one thing each."""

from __future__ import annotations

import struct
from pathlib import Path

from .capture import DYN_DATA, DYN_EXTRA, MONITOR
from .damage_edits import DETAILED, HEADER, PORTS, THREE, Damage, core_file, edit, edit_block, edit_text

# -- one thing broken -----------------------------------------------------


def _truncated_header(path: Path) -> None:
    edit(path / core_file(1), lambda data: data + bytes([3, 0, 0, 0, 64]))


def _truncated_block(path: Path) -> None:
    edit(path / core_file(1), lambda data: data[:-777])


def _unknown_block(path: Path) -> None:
    edit(path / core_file(0), lambda data: data + HEADER.pack(77, 21) + bytes(range(21)))


def _giant_claim(path: Path) -> None:
    edit(path / core_file(1), lambda data: data + HEADER.pack(5, 0xFFFFFFFF) + bytes(64))


def _partial_record(path: Path) -> None:
    edit_block(path / core_file(0), MONITOR[0], lambda payload: payload + bytes(9))
    edit_block(path / core_file(0), MONITOR[1], lambda payload: payload[:-26])


def _des_cut(path: Path) -> None:
    edit_block(path / core_file(0), DYN_DATA, lambda payload: payload + struct.pack("<I", 8 | 0x123 << 7))


def _func_overrun(path: Path) -> None:
    edit_block(path / core_file(0), DYN_DATA, lambda payload: payload + struct.pack("<I", 5000 << 7) + b"overlong")


def _odd_words(path: Path) -> None:
    edit_block(path / core_file(0), DYN_DATA, lambda payload: payload + b"\x0f\x00\x00")


def _node_kind(path: Path) -> None:
    edit_block(path / core_file(0), DYN_DATA, lambda payload: _inserted(payload, 55))


def _node_engine(path: Path) -> None:
    edit_block(path / core_file(0), DYN_DATA, lambda payload: _inserted(payload, 1 | 7 << 7))


def _inserted(payload: bytes, word: int) -> bytes:
    """The word put in the middle, directly after a FUNC_END."""
    words = list(struct.unpack(f"<{len(payload) // 4}I", payload))
    ends = [place for place, value in enumerate(words) if value == 15]
    words.insert(ends[len(ends) // 2] + 1, word)
    return struct.pack(f"<{len(words)}I", *words)


def _utf8_name(path: Path) -> None:
    edit_block(path / core_file(0), DYN_DATA, lambda payload: payload.replace(b"rope", b"r\xff\xfee", 1))


def _extra_short(path: Path) -> None:
    edit_block(path / core_file(0), DYN_EXTRA, lambda payload: _without_last(payload, 100))


def _without_last(payload: bytes, count: int) -> bytes:
    starts, offset = [], 0
    while offset < len(payload):
        starts.append(offset)
        offset += 12 + struct.unpack_from("<I", payload, offset + 8)[0]
    return payload[: starts[-count]]


def _extra_kind(path: Path) -> None:
    edit_block(path / core_file(0), DYN_EXTRA, lambda payload: payload[:4] + struct.pack("<I", 9) + payload[8:])


def _port_nodes(path: Path) -> None:
    edit(path / "cdma0_0.profile", lambda data: data + HEADER.pack(DYN_DATA, 8) + bytes(8))


def _no_global(path: Path) -> None:
    (path / "global.profile").unlink()


def _empty_dir(path: Path) -> None:
    for file in path.iterdir():
        file.unlink()


def _record_one(path: Path) -> None:
    edit_text(path / "global.profile", lambda text: text + "core1_gdma_record=1\n")


def _freq_zero(path: Path) -> None:
    edit_text(path / "global.profile", lambda text: text.replace("core_num", "tpu_freq=0\ncore_num"))


def _unknown_arch(path: Path) -> None:
    edit_text(path / "global.profile", lambda text: text.replace("arch=5", "arch=9901"))


def _garbage_core(path: Path) -> None:
    edit(path / core_file(1), lambda data: bytes((7 * n * n + 13) % 251 for n in range(len(data))))


def _zero_core(path: Path) -> None:
    edit(path / core_file(1), lambda data: b"")


DAMAGES: dict[str, Damage] = {
    "bad_truncated_header": Damage("five bytes of a further block header at the end of core 1", _truncated_header),
    "bad_truncated_block": Damage("core 1 ends inside its last block", _truncated_block, partial=("core 1",)),
    "bad_unknown_block": Damage("an extra block of unknown type 77", _unknown_block),
    "bad_giant_claim": Damage("a block header that claims 4 GiB", _giant_claim),
    "bad_partial_record": Damage("monitor blocks that are no multiple of the record size", _partial_record, unbound=1),
    "bad_des_cut": Damage("a DES node at the end, its second word missing", _des_cut),
    "bad_func_overrun": Damage("a function name that runs past the end", _func_overrun),
    "bad_odd_words": Damage("three bytes too many in the node stream", _odd_words),
    "bad_node_kind": Damage("a node of unknown type 55", _node_kind, unbound=1),
    "bad_node_engine": Damage("a node of an engine that does not exist", _node_engine, unbound=1),
    "bad_utf8_name": Damage("a kernel name that is not UTF-8", _utf8_name, partial=("core 0",)),
    "bad_extra_short": Damage("a hundred DYN_EXTRA records fewer than nodes", _extra_short, DETAILED, condensed=100),
    "bad_extra_kind": Damage("a DYN_EXTRA record of unknown kind", _extra_kind, DETAILED),
    "bad_port_nodes": Damage("nodes in a CDMA file", _port_nodes, PORTS),
    "bad_no_global": Damage("no global.profile", _no_global, allow=("refuse",)),
    "bad_empty_dir": Damage("an empty directory", _empty_dir, allow=("refuse",)),
    "bad_unknown_arch": Damage("arch=9901", _unknown_arch, allow=("refuse",)),
    "bad_record_one": Damage("a *_record of 1", _record_one),
    "bad_freq_zero": Damage("tpu_freq=0", _freq_zero),
    "bad_garbage_core": Damage("core 1 is noise", _garbage_core, THREE, lost=("core 1",)),
    "bad_zero_core": Damage("the file of core 1 is empty", _zero_core, THREE, lost=("core 1",), placeless=True),
}
