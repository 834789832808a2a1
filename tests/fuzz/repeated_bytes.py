"""Inputs of one small thing over and over: what costs the most memory for each of its bytes."""

from __future__ import annotations

import gzip
import struct
from functools import cache

import raw_bytes as raw

#: name -> (chip, files of a capture) for about ``size`` bytes in all.
Files = dict[str, bytes]


def _filled(unit: bytes, size: int) -> bytes:
    return unit * max(size // len(unit), 1)


@cache
def repeated(size: int) -> dict[str, tuple[str, Files]]:
    """Captures of about ``size`` bytes, each of one kind of thing."""
    found: dict[str, tuple[str, Files]] = {}

    def add(name: str, data: bytes, chip: str = "aks", settings: bytes = b"", file: str = "cdmlib0_0") -> None:
        found[name] = chip, {"global.profile": settings, f"{file}.profile": data}

    opening = raw.core_file(raw.opening())
    for kind in (*range(16), 55, 100, 127):
        for engine in range(6):
            words = [raw.node(engine, 2, 4, 0x81, kind)]
            if kind == 0:
                words = [1 << 7, 0x61]
            add(f"node {kind} engine {engine}", opening + raw.block(raw.DYN_DATA, _filled(raw.words(words), size)))
            if kind not in (1, 13):
                break
    numbered = b"".join(raw.words(raw.func(f"{number:08}")) for number in range(size // 12))
    add("names, all different", opening + raw.block(raw.DYN_DATA, numbered))
    add("empty names", opening + raw.block(raw.DYN_DATA, bytes(size)))
    add("scopes", opening + raw.block(raw.DYN_DATA, _filled(raw.words([1 << 7, 97, raw.node(0, 2, 4), 15]), size)))
    add("blocks of DES nodes", opening + raw.block(raw.DYN_DATA, _filled(raw.words(raw.des(8, 1, 9)), size)))
    for chip, tiu, dma in (("aks", 16, 64), ("bm1688", 32, 256), ("cv84x6", 16, 64)):
        ids = range(size // tiu)
        tiu_pad, dma_pad = bytes(tiu - 16), bytes(dma - 64)
        add(
            f"TIU records {chip}",
            raw.block(3, b"".join(raw.tiu_record(n * 9, n * 9 + 8, n) + tiu_pad for n in ids)),
            chip,
        )
        add(
            f"TIU records in disorder {chip}",
            raw.block(3, b"".join(raw.tiu_record(n * 0x9E3779B1, n * 7, n * 77) + tiu_pad for n in ids)),
            chip,
        )
        for block in (4, 11):
            add(
                f"DMA records {block} {chip}",
                raw.block(
                    block, b"".join(raw.dma_record(n * 9, n * 9 + 20, n, 8) + dma_pad for n in range(size // dma))
                ),
                chip,
            )
    some = range(size // 128)
    add("CDMA records", raw.block(12, b"".join(raw.cdma_record(n * 9, n * 9 + 99, n, 5) for n in some)), file="cdma0_0")
    half = size // 2
    pairs = raw.words([raw.node(0, 2, 4)] * (half // 20))
    records = b"".join(raw.tiu_record(9000 + n * 9, n * 9 + 9008, n) for n in range(half // 16))
    add("records with commands", raw.block(3, records) + raw.block(raw.DYN_DATA, pairs))
    detail = raw.extra_record(bytes(16))
    each = size // 48
    add(
        "records, commands, registers",
        raw.block(3, b"".join(raw.tiu_record(9000 + n * 9, n * 9 + 9008, n) for n in range(each)))
        + raw.block(raw.DYN_EXTRA, detail * each)
        + raw.block(raw.DYN_DATA, raw.words([raw.node(0, 2, 4)] * each)),
    )
    add(
        "empty registers",
        opening
        + raw.block(raw.DYN_EXTRA, _filled(raw.extra_record(b""), size))
        + raw.block(raw.DYN_DATA, raw.words([raw.node(0, 2, 4)] * 9)),
    )
    for kind in (1, 3, 5, 6, 12, 13, 17, 77):
        add(f"empty blocks {kind}", _filled(raw.block(kind, b""), size))
    keyed = b"".join(raw.block(17, struct.pack("<3I", n, 1, 0)) for n in range(size // 20))
    add("keyed blocks", opening + keyed)
    for kind in (13, 14, 15, 16):
        add(f"stream {kind} of zeros", opening + raw.block(kind, bytes(size)), settings=b"bmodel\n")
        add(f"stream {kind} of ones", opening + raw.block(kind, b"\xff" * size), settings=b"bmodel\n")
    add("claims of blocks", _filled(struct.pack("<II", 3, 0xFFFFFFF0), size))
    add("settings", opening, settings=_filled(b"a_record=0\n", size))
    add("odd settings", opening, settings=_filled(b"tpu_freq=x\n", size))
    add(
        "settings, all different",
        opening,
        settings=b"".join(b"%07d_record=1\n" % number for number in range(size // 17)),
    )
    add(
        "counts, all different",
        opening,
        settings=b"".join(b"core%04d_tiu_record=9\n" % (number % 10000) for number in range(size // 22)),
    )
    return found


@cache
def repeated_traces(size: int) -> dict[str, bytes]:
    """Host traces of about ``size`` bytes, each of one kind of thing; compressed ones of the size they unpack to."""
    head, event = b'{"traceEvents":[', b'{"ph":"X","cat":"tpudnn","ts":1}'
    return {
        "events": head + b",".join([event] * (size // len(event))) + b"]}",
        "events with names": head
        + b",".join(b'{"ph":"X","cat":"tpudnn","name":"%d","ts":%d}' % (n, n) for n in range(size // 48))
        + b"]}",
        "threads": head + b",".join(b'{"ph":"X","tid":%d,"ts":1,"dur":9}' % n for n in range(size // 34)) + b"]}",
        "crossing slices": head
        + b",".join(b'{"ph":"X","ts":%d,"dur":99999999}' % n for n in range(size // 34))
        + b"]}",
        "depth": b"[" * size,
        "depth in an event": head + b'{"a":' + b"[" * size,
        "one string": b'{"a":"' + b"x" * size,
        "one string in an event": head + b'{"ph":"X","ts":1,"name":"' + b"x" * size + b'"}]}',
        "one number": head + b'{"ph":"X","ts":' + b"1" * size + b"}]}",
        "members": head + b"{" + b",".join(b'"%d":1' % n for n in range(size // 9)) + b"}]}",
        "nulls": head + b",".join([b"null"] * (size // 5)) + b"]}",
        "spaces": b" " * size,
        "zeros": bytes(size),
        "compressed spaces": gzip.compress(b"[" + b" " * size),
        "compressed string": gzip.compress(head + b'{"name":"' + b"x" * size),
    }
