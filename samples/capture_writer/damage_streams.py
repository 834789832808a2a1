"""More that can be broken in a capture: its records, its nodes, its registers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from .capture import DYN_DATA, DYN_EXTRA, MONITOR
from .damage_edits import (
    DETAILED,
    HEADER,
    MODEL,
    PORTS,
    PREBUILT,
    THREE,
    UNNAMED,
    Damage,
    blocks,
    bytes_of,
    core_file,
    edit,
    edit_block,
    extras_of,
    joined,
    noise,
    words_of,
)

_TIU, _GDMA = MONITOR[0], MONITOR[1]
_KEYED = 17
_STREAM = 13


def _in_block(kind: int, change: Callable[[bytes], bytes], core: int = 1) -> Callable[[Path], None]:
    return lambda path: edit_block(path / core_file(core), kind, change)


def _over(offset: int, data: bytes) -> Callable[[bytes], bytes]:
    return lambda payload: payload[:offset] + data + payload[offset + len(data) :]


def _in_port(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda path: edit(path / "cdma0_0.profile", lambda data: data[:8] + change(data[8:]))


# -- records ------------------------------------------------------------------


def _word(record: int, size: int, word: int, change: Callable[[int], int]) -> Callable[[bytes], bytes]:
    """One word of one record changed."""

    def changed(payload: bytes) -> bytes:
        offset = record * size + 4 * word
        value = struct.unpack_from("<I", payload, offset)[0]
        return _over(offset, struct.pack("<I", change(value) & 0xFFFFFFFF))(payload)

    return changed


def _ends_before(payload: bytes) -> bytes:
    start = struct.unpack_from("<I", payload, 1600)[0]
    return _over(1604, struct.pack("<I", start - 20))(payload)


def _doubled(payload: bytes) -> bytes:
    return payload[: 16 * 60] + payload[16 * 50 :]


def _shifted(payload: bytes) -> bytes:
    return payload[: 16 * 100] + b"\x5a\xa5\x5a\xa5" + payload[16 * 100 :]


# -- nodes --------------------------------------------------------------------


def _names_at(words: list[int]) -> list[int]:
    """Places of kernel names in a sound stream without DES nodes."""
    found, place = [], 0
    while place < len(words):
        if words[place] & 127 == 0:
            found.append(place)
            place += (words[place] // 128 + 3) // 4
        place += 1
    return found


def _name_length(change: Callable[[int], int]) -> Callable[[bytes], bytes]:
    def changed(payload: bytes) -> bytes:
        words = words_of(payload)
        place = _names_at(words)[4]
        words[place] = change(words[place] >> 7) << 7
        return bytes_of(words)

    return changed


def _first_node(payload: bytes) -> int:
    """Place of the first command of the fifth kernel."""
    words = words_of(payload)
    start = _names_at(words)[4]
    start += 1 + (words[start] // 128 + 3) // 4
    return next(place for place in range(start, len(words)) if words[place] & 127 == 1)


def _node_lost(payload: bytes) -> bytes:
    place = 4 * _first_node(payload)
    return payload[:place] + payload[place + 4 :]


def _nodes_over(data: bytes) -> Callable[[bytes], bytes]:
    return lambda payload: _over(4 * _first_node(payload), data)(payload)


def _des_count(payload: bytes) -> bytes:
    words = words_of(payload)
    place = next(n for n, word in enumerate(words) if word & 127 == 8 and n + 1 < len(words) and words[n + 1] < 4096)
    words[place + 1] = 0xFFFFFFF0
    return bytes_of(words)


# -- registers ----------------------------------------------------------------


def _extras(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], None]:
    return _in_block(DYN_EXTRA, lambda payload: b"".join(change(extras_of(payload))))


def _one_extra(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """The content of the fortieth record changed."""

    def changed(records: list[bytes]) -> list[bytes]:
        content = change(records[40][12:])
        return [*records[:40], records[40][:8] + struct.pack("<I", len(content)) + content, *records[41:]]

    return _extras(changed)


def _extra_claims(records: list[bytes]) -> list[bytes]:
    return [*records[:-1], records[-1][:8] + b"\xff\xff\xff\xff" + records[-1][12:]]


def _stream_lost(path: Path) -> None:
    edit(path / core_file(1), lambda data: joined([part for part in blocks(data) if part.kind != _STREAM]))


def _short_keyed(path: Path) -> None:
    edit(path / core_file(1), lambda data: data + HEADER.pack(_KEYED, 5) + bytes(5))


_HIGH, _HALF = 1 << 31, 1 << 30

STREAM_DAMAGES: dict[str, Damage] = {
    "bad_zeroed_records": Damage(
        "40 TIU records overwritten with zeros", _in_block(_TIU, _over(1600, bytes(640))), partial=("TIU 1",)
    ),
    "bad_zeroed_tail": Damage(
        "the last 40 TIU records are zeros", _in_block(_TIU, lambda p: p[:-640] + bytes(640)), partial=("TIU 1",)
    ),
    "bad_ones_records": Damage(
        "40 GDMA records overwritten with ones", _in_block(_GDMA, _over(64 * 90, b"\xff" * 2560)), partial=("GDMA 1",)
    ),
    "bad_end_flipped": Damage(
        "a bit flipped in the end of a record", _in_block(_TIU, _word(100, 16, 1, _HALF.__xor__)), partial=("TIU 1",)
    ),
    "bad_start_flipped": Damage(
        "a bit flipped in the start of a record", _in_block(_TIU, _word(100, 16, 0, _HALF.__xor__)), partial=("TIU 1",)
    ),
    "bad_start_high": Damage(
        "the highest bit flipped in the start of a record",
        _in_block(_TIU, _word(100, 16, 0, _HIGH.__xor__)),
        partial=("TIU 1",),
    ),
    "bad_end_before": Damage(
        "a record ends 20 cycles before it starts", _in_block(_TIU, _ends_before), partial=("TIU 1",)
    ),
    "bad_id_flipped": Damage(
        "a bit flipped in the id of a record",
        _in_block(_TIU, _word(100, 16, 2, (1 << 9).__xor__)),
        unbound=2,
        partial=("TIU 1",),
    ),
    "bad_records_shifted": Damage(
        "four bytes too many within the TIU records", _in_block(_TIU, _shifted), THREE, partial=("TIU 1",)
    ),
    "bad_records_doubled": Damage("ten TIU records are there twice", _in_block(_TIU, _doubled), partial=("TIU 1",)),
    "bad_records_noise": Damage(
        "640 bytes of noise among the TIU records", _in_block(_TIU, _over(1600, noise(640))), THREE, partial=("TIU 1",)
    ),
    "bad_unnamed_zeros": Damage(
        "mode 0: 40 TIU records overwritten with zeros",
        _in_block(_TIU, _over(1600, bytes(640))),
        UNNAMED,
        partial=("TIU 1",),
    ),
    "bad_name_huge": Damage(
        "a function name of 32 MiB in the middle",
        _in_block(DYN_DATA, _name_length(lambda _: (1 << 25) - 1)),
        unbound=40,
    ),
    "bad_name_long": Damage(
        "a function name that claims eight bytes too many",
        _in_block(DYN_DATA, _name_length(lambda n: n + 8)),
        partial=("core 1",),
    ),
    "bad_name_short": Damage(
        "a function name that claims eight bytes too few",
        _in_block(DYN_DATA, _name_length(lambda n: n - 8)),
        partial=("core 1",),
    ),
    "bad_node_lost": Damage("a node is missing", _in_block(DYN_DATA, _node_lost), partial=("core 1",)),
    "bad_nodes_zeroed": Damage(
        "16 words of nodes overwritten with zeros", _in_block(DYN_DATA, _nodes_over(bytes(64))), partial=("core 1",)
    ),
    "bad_nodes_ones": Damage(
        "16 words of nodes overwritten with ones", _in_block(DYN_DATA, _nodes_over(b"\xff" * 64)), partial=("core 1",)
    ),
    "bad_nodes_noise": Damage(
        "16 words of nodes overwritten with noise", _in_block(DYN_DATA, _nodes_over(noise(64))), partial=("core 1",)
    ),
    "bad_nodes_lost": Damage(
        "the nodes of core 1 are zeros", _in_block(DYN_DATA, lambda p: bytes(len(p))), partial=("core 1",)
    ),
    "bad_des_count": Damage(
        "a DES node that claims 4 billion commands", _in_block(DYN_DATA, _des_count), PREBUILT, partial=("core 1",)
    ),
    "bad_keyed_cut": Damage(
        "a block of pre-built commands is cut in half",
        _in_block(_KEYED, lambda p: p[: len(p) // 2 & ~3]),
        PREBUILT,
        partial=("core 1",),
    ),
    "bad_keyed_noise": Damage(
        "a block of pre-built commands is noise",
        _in_block(_KEYED, lambda p: p[:12] + noise(len(p) - 12)),
        PREBUILT,
        partial=("core 1",),
    ),
    "bad_keyed_short": Damage("a block of pre-built commands of five bytes", _short_keyed, PREBUILT),
    "bad_stream_cut": Damage(
        "a command stream is cut in half",
        _in_block(_STREAM, lambda p: p[: len(p) // 2 & ~3]),
        MODEL,
        partial=("core 1",),
    ),
    "bad_stream_noise": Damage(
        "noise within a command stream", _in_block(_STREAM, _over(256, noise(300))), MODEL, partial=("core 1",)
    ),
    "bad_stream_lost": Damage("a command stream is missing", _stream_lost, MODEL, partial=("core 1",), placeless=True),
    "bad_extra_cut": Damage(
        "the last DYN_EXTRA record is cut", _in_block(DYN_EXTRA, lambda p: p[:-6]), DETAILED, condensed=1
    ),
    "bad_extra_claims": Damage("a DYN_EXTRA record that claims 4 GiB", _extras(_extra_claims), DETAILED, condensed=1),
    "bad_extra_noise": Damage(
        "a DYN_EXTRA record of noise", _one_extra(lambda c: noise(len(c))), DETAILED, partial=("core 1",)
    ),
    "bad_extra_empty": Damage("an empty DYN_EXTRA record", _one_extra(lambda c: b""), DETAILED, partial=("core 1",)),
    "bad_extra_more": Damage(
        "a DYN_EXTRA record more than nodes", _extras(lambda records: [*records, records[-1]]), DETAILED
    ),
    "bad_port_cut": Damage(
        "a CDMA port is cut within a record", _in_port(lambda data: data[:-50]), PORTS, partial=("port 0",)
    ),
    "bad_port_noise": Damage(
        "the records of a CDMA port are noise", _in_port(lambda data: noise(len(data))), PORTS, partial=("port 0",)
    ),
    "bad_port_zeroed": Damage(
        "CDMA records overwritten with zeros", _in_port(_over(128 * 4, bytes(128 * 3))), PORTS, partial=("port 0",)
    ),
}
