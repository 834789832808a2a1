"""Codes of nodes and registers that the chip does not know: a problem with its place for each."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import raw_bytes as raw
from written_captures import capture

from tpuprof_tui.model import Problem, Profile, Severity
from tpuprof_tui.sources.catalog import open_profile

_FILE = "cdmlib0_0.profile"


def _blocks(data: bytes) -> list[tuple[int, int, int]]:
    """Type, offset of the payload, length."""
    found, at = [], 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        found.append((kind, at + 8, length))
        at += 8 + length
    return found


def _changed(parent: Path, kind: str, engine: int, mask: int, value: int, *, nth: int = 3) -> tuple[Profile, int]:
    """A capture in which some bits of the n-th working command of an engine are others; where its word lies."""
    source = capture(kind, cores=(0,))
    data = bytearray((source / _FILE).read_bytes())
    system = {raw.TIU: 15, raw.GDMA: 6}[engine]
    places = [
        offset + 4 * n
        for block, offset, length in _blocks(bytes(data)) if block == raw.DYN_DATA
        for n, word in enumerate(struct.unpack_from(f"<{length // 4}I", data, offset))
        if word & 127 == 1 and word >> 7 & 7 == engine and word >> 10 & 31 != system and word >> 20
    ]  # fmt: skip
    place = places[nth]
    word = struct.unpack_from("<I", data, place)[0]
    struct.pack_into("<I", data, place, word & ~mask | value)
    parent.mkdir(exist_ok=True)
    for file in source.iterdir():
        (parent / file.name).write_bytes(file.read_bytes())
    (parent / _FILE).write_bytes(data)
    return open_profile(parent), place


def _odd(profile: Profile) -> list[Problem]:
    return [problem for problem in profile.problems if "does not know" in problem.what]


@pytest.mark.parametrize(
    ("engine", "first", "width", "value", "said"),
    [
        (raw.GDMA, 24, 2, 3, "source memory code 3"),
        (raw.GDMA, 26, 2, 3, "destination memory code 3"),
        (raw.GDMA, 20, 4, 12, "data type code 12"),
        (raw.GDMA, 10, 5, 22, "type code 22"),
        (raw.GDMA, 10, 5, 31, "type code 31"),
        (raw.TIU, 10, 5, 27, "type code 27"),
    ],
)
def test_a_code_of_a_node_that_nobody_knows_is_told(
    tmp_path: Path, engine: int, first: int, width: int, value: int, said: str
) -> None:
    profile, place = _changed(tmp_path / "c", "decode_mode1", engine, ((1 << width) - 1) << first, value << first)
    (problem,) = _odd(profile)
    assert said in problem.what
    assert "AKS" in problem.what
    assert (problem.severity, problem.count, problem.file) == (Severity.ERROR, 1, _FILE)
    assert (problem.offset, problem.group) == (place, 0)
    assert problem.rows is not None
    lane = profile.lane(problem.lane, 0)
    assert lane is not None
    key = {20: "data_format", 10: "dma_type" if engine == raw.GDMA else "tiu_type"}.get(first)
    if key is None:
        seen = profile.strings["direction"].texts(lane["direction"])
        assert [row for row, text in enumerate(seen) if "INVALID" in text] == problem.rows.tolist()
    else:
        assert np.flatnonzero(lane[key] == value).tolist() == problem.rows.tolist()


def test_the_place_is_found_in_a_later_block(tmp_path: Path) -> None:
    profile, place = _changed(tmp_path / "c", "many_blocks", raw.GDMA, 3 << 24, 3 << 24, nth=-5)
    (problem,) = _odd(profile)
    assert problem.offset == place


def test_registers_say_better_than_the_node(tmp_path: Path) -> None:
    profile, _ = _changed(tmp_path / "c", "decode_mode2", raw.GDMA, 3 << 24, 3 << 24)
    assert _odd(profile) == []


@pytest.mark.parametrize(
    "kind", ["zoo_mode1", "zoo_mode2", "aksv_mode1", "rvt", "cdma_zoo", "cv84x6_rvt", "bm1688_mode1"]
)
def test_all_codes_of_a_sound_capture_are_known(kind: str) -> None:
    assert _odd(open_profile(capture(kind))) == []
