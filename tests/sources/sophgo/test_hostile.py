"""Nothing a file can hold raises, hangs, or takes memory beyond its size; what is sound beside it is still shown."""

from __future__ import annotations

import os
import random
import socket
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import raw_bytes as raw
from hypothesis import given, settings
from hypothesis import strategies as st
from kept_captures import kept_truth, unpacked
from truth_tables import Leave, differences
from whole_profiles import read_whole

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import Severity
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.read import files as source

# -- captures with bytes changed --------------------------------------------

_SUBJECTS = ("aks_zoo_mode1", "aks_zoo_mode2", "aks_gap_core", "aks_cdma_partial", "aks_mode0", "aksv_rvt",
             "aks_des_kv", "aks_bmodel", "aks_ring_wrap", "aksv_mode2")  # fmt: skip
_TELLING = (0, 1, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 17, 127, 0x7FFFFFFF, 0xFFFFFF80, 0xFFFFFF88, 0xFFFFFFFF)


def _mutated(chance: random.Random, data: bytes) -> bytes:
    """The bytes with bits flipped, words replaced, pieces lost, doubled or made up, or headers written over."""
    result = bytearray(data)
    for _ in range(chance.choice((1, 2, 6, 40))):
        place = chance.randrange(len(result) + 1)
        length = chance.choice((1, 3, 4, 16, 64, 1000))
        change = chance.randrange(7)
        if change == 0 and place < len(result):
            result[place] ^= 1 << chance.randrange(8)
        elif change == 1:
            result[place & ~3 : (place & ~3) + 4] = struct.pack("<I", chance.choice(_TELLING))
        elif change == 2:
            del result[place : place + length]
        elif change == 3:
            result[place:place] = chance.randbytes(length)
        elif change == 4:
            other = chance.randrange(len(result) + 1)
            result[place : place + length] = result[other : other + length]
        elif change == 5:
            result[place : place + 8] = struct.pack("<II", chance.choice(_TELLING), chance.choice((0, 16, 64, 1 << 31)))
        elif chance.random() < 0.2:
            del result[place:]
    return bytes(result)


@pytest.mark.parametrize("name", _SUBJECTS)
def test_captures_with_bytes_changed_open_or_are_refused(tmp_path: Path, name: str) -> None:
    path = unpacked(name, tmp_path)
    files = {file: file.read_bytes() for file in sorted(path.iterdir())}
    for seed in range(8):
        chance = random.Random(f"{name} {seed}")
        hit = chance.sample(sorted(files), chance.randint(1, 3))
        for file, data in files.items():
            file.write_bytes(_mutated(chance, data) if file in hit else data)
        refused = path / "global.profile" in hit and not _names_a_chip(path)
        if refused:
            with pytest.raises(UnreadableError, match="--chip"):
                open_profile(path)
        read_whole(open_profile(path, chip="aks" if refused else None))


def _names_a_chip(path: Path) -> bool:
    """Whether the last ``arch`` line is one of the codes these captures use."""
    found = b""
    for line in (path / "global.profile").read_bytes().split(b"\n"):
        text = line.decode("utf-8", "replace").strip()
        if "bmodel" not in text and text.partition("=")[0].strip() == "arch":
            found = text.partition("=")[2].strip().encode()
    return found in (b"5", b"6")


@raw.FIXED
@given(st.lists(st.tuples(st.sampled_from([*range(1, 18), 100]), st.binary(max_size=400)), max_size=5), st.booleans())
def test_any_bytes_in_any_block(
    tmp_path_factory: pytest.TempPathFactory, blocks: list[tuple[int, bytes]], model: bool
) -> None:
    data = b"".join(raw.block(*item) for item in blocks)
    settings = "arch=5\nbmodel=1\n" if model else "arch=5\n"
    path = raw.write_capture(tmp_path_factory.mktemp("any"), {0: data}, settings, cdma0_0=data)
    read_whole(open_profile(path))


@raw.FIXED
@given(st.binary(max_size=600), st.binary(max_size=300))
def test_any_bytes_in_any_file(tmp_path_factory: pytest.TempPathFactory, core: bytes, port: bytes) -> None:
    path = raw.write_capture(tmp_path_factory.mktemp("any"), {0: core}, "arch=6", cdma0_0=port)
    read_whole(open_profile(path))


@settings(raw.FIXED, max_examples=30)
@given(st.lists(st.integers(0, 2**32 - 1), max_size=40), st.integers(1, 20), st.data())
def test_any_words_as_nodes_of_sound_records(
    tmp_path_factory: pytest.TempPathFactory, words: list[int], count: int, data: Any
) -> None:
    records = raw.opening()
    records["TIU"] += [raw.tiu_record(2000 + 50 * n, 2040 + 50 * n, n % 7) for n in range(count)]
    extras = b"".join(raw.extra_record(data.draw(st.binary(max_size=40))) for _ in range(count))
    file = raw.core_file(records, [*raw.OPENING_NODES, *words], raw.block(raw.DYN_EXTRA, extras))
    profile = open_profile(raw.write_capture(tmp_path_factory.mktemp("any"), {0: file}))
    read_whole(profile)
    tiu = profile.lane("TIU", 0)
    assert tiu is not None
    assert len(tiu) >= count - 2


# -- giant claims ----------------------------------------------------------

#: Python objects and tables that every profile needs, whatever its size.
_ROOM = 24 << 20
_DES_HEAD = struct.pack("<3I", 1, 0xFFFFFFFF, 0)
_GIANT: dict[str, tuple[bytes, str, bytes]] = {
    "block length": (raw.block(5, bytes(64), 0xFFFFFFFF), "", b""),
    "a thousand block lengths": (struct.pack("<II", 3, 0xFFFFFFF0) * 1000, "", b""),
    "DES counts": (raw.block(5, raw.words(raw.des(8, 1, 0xFFFFFFFF) * 500)), "", b""),
    "DES counts of a port": (raw.block(5, raw.words(raw.des(11, 1, 0xFFFFFFF, 3) * 500)), "", b""),
    "a name": (raw.block(5, raw.words([0xFFFFFF80, 0x61616161])), "", b""),
    "names": (raw.block(5, raw.words([0x1FFFF << 7, 1] * 3000)), "", b""),
    "detail record": (raw.block(5, raw.words([raw.node(0, 3, 2)] * 9)) + raw.block(6, b"\xff" * 12), "", b""),
    "keyed block": (raw.block(17, _DES_HEAD) + raw.block(5, raw.words(raw.des(8, 1, 0xFFFFFFFF))), "", b""),
    "core_num": (b"", "core_num=4294967295", b""),
    "record counts": (b"", f"max_record_num={1 << 62}\n0_tiu_record={(1 << 62) - 1}", b""),
    "ids": (raw.block(3, raw.tiu_record(9, 9, 0xFFFFFFFF) * 9) + raw.block(5, raw.words([0xFFFFFF8E])), "", b""),
    "ids of a port": (b"", "", raw.block(12, raw.cdma_record(9, 9, 0xFFFFFF) * 9)),
}


@pytest.mark.parametrize("what", list(_GIANT))
def test_giant_claims_take_no_memory(tmp_path: Path, what: str) -> None:
    core, settings, port = _GIANT[what]
    path = raw.write_capture(tmp_path, {0: core}, f"arch=5\n{settings}\n", cdma0_0=port)
    open_profile(path)  # what is loaded once does not count
    tracemalloc.start()
    try:
        profile = open_profile(path)
        read_whole(profile)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < _ROOM + 400 * (len(core) + len(port))
    assert len(profile.groups.numbers) <= 1024


def test_a_giant_claim_of_des_commands_is_named(tmp_path: Path) -> None:
    nodes = [*raw.OPENING_NODES, *raw.des(8, 1, 0xFFFFFFFF)]
    profile = open_profile(raw.write_capture(tmp_path, {0: raw.core_file(raw.opening(), nodes)}))
    named = [problem for problem in profile.problems if "4294967295" in problem.what]
    assert [(problem.severity, problem.file) for problem in named] == [(Severity.ERROR, "cdmlib0_0.profile")]
    assert named[0].offset == (2 * (16 + 64 + 64)) + 4 * 8 + 4 * len(raw.OPENING_NODES)


# -- files that are none ----------------------------------------------------


def _one_core_lost(path: Path, core: int, *files: str) -> None:
    """The capture opens; the file is named; all other cores are as they were (but for the launch numbers)."""
    profile = open_profile(path)
    errors = {problem.file for problem in profile.problems if problem.severity is Severity.ERROR}
    assert set(files) <= errors
    truth = kept_truth("aks_gap_core")
    truth.lanes = {key: lane for key, lane in truth.lanes.items() if key[1] != core}
    for (_, number), columns in truth.lanes.items():
        columns["scope"][(columns["scope"] >= 0) & (number > core)] -= truth.meta["kernels"]
    assert [text for text in differences(profile, truth, Leave(shift=("core",))) if "cores" not in text] == []


def test_a_core_file_that_is_a_directory(tmp_path: Path) -> None:
    path = unpacked("aks_gap_core", tmp_path)
    (path / "cdmlib0_1.profile").unlink()
    (path / "cdmlib0_1.profile").mkdir()
    _one_core_lost(path, 1, "cdmlib0_1.profile")


def test_a_core_file_that_is_a_pipe_or_a_socket_is_not_waited_for(tmp_path: Path) -> None:
    path = unpacked("aks_gap_core", tmp_path)
    (path / "cdmlib0_1.profile").unlink()
    os.mkfifo(path / "cdmlib0_1.profile")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(path)  # the name of a socket must be short
        try:
            listener.bind("cdma0_0.profile")
        finally:
            os.chdir(here)
        _one_core_lost(path, 1, "cdmlib0_1.profile", "cdma0_0.profile")


@pytest.mark.parametrize("target", ["nowhere", "cdmlib0_1.profile", "/dev/zero", "."])
def test_a_core_file_that_is_a_link_to_nothing_sound(tmp_path: Path, target: str) -> None:
    path = unpacked("aks_gap_core", tmp_path)
    (path / "cdmlib0_1.profile").unlink()
    (path / "cdmlib0_1.profile").symlink_to(target)
    _one_core_lost(path, 1, "cdmlib0_1.profile")


def test_a_core_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = unpacked("aks_gap_core", tmp_path)
    (path / "cdmlib0_1.profile").chmod(0)
    if os.geteuid() == 0:  # who may read everything is told no by other means
        known = os.open

        def refuse(name: Any, *rest: Any, **more: Any) -> int:
            if str(name).endswith("cdmlib0_1.profile"):
                raise PermissionError(13, "Permission denied")
            return known(name, *rest, **more)

        monkeypatch.setattr(os, "open", refuse)
    _one_core_lost(path, 1, "cdmlib0_1.profile")


def test_a_file_on_a_failing_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = unpacked("aks_gap_core", tmp_path)
    known, failing = os.readv, (path / "cdmlib0_1.profile").stat().st_ino

    def fail(descriptor: int, buffers: Any) -> int:
        if os.fstat(descriptor).st_ino == failing:
            raise OSError(5, "Input/output error")
        return known(descriptor, buffers)

    monkeypatch.setattr(source.os, "readv", fail)
    _one_core_lost(path, 1, "cdmlib0_1.profile")


def test_a_directory_that_may_not_be_listed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = unpacked("aks_gap_core", tmp_path)

    def refuse(*_: Any) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(UnreadableError, match="permission denied"):
        open_profile(path)


def test_links_that_lead_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(UnreadableError):
        open_profile(tmp_path / "a")


def test_a_settings_file_that_is_none_leaves_the_chip_to_be_named(tmp_path: Path) -> None:
    path = unpacked("aks_gap_core", tmp_path)
    (path / "global.profile").unlink()
    (path / "global.profile").mkdir()
    with pytest.raises(UnreadableError, match="--chip"):
        open_profile(path)
    profile = open_profile(path, chip="aks")
    assert differences(profile, kept_truth("aks_gap_core")) == []


# -- files that change -------------------------------------------------------


@pytest.mark.parametrize("change", ["shorter", "longer", "other bytes"])
def test_a_file_that_changes_while_it_is_read_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    path = unpacked("aks_gap_core", tmp_path)
    victim = path / "cdmlib0_4.profile"
    data, number = victim.read_bytes(), victim.stat().st_ino
    known = os.readv

    def meddle(descriptor: int, buffers: Any) -> int:
        if os.fstat(descriptor).st_ino == number and victim.read_bytes() == data:
            if change == "shorter":
                os.truncate(victim, 1000)
            elif change == "longer":
                with victim.open("ab") as file:
                    file.write(bytes(99))
            else:
                with victim.open("r+b") as file:
                    file.seek(500)
                    file.write(bytes(4000))
                os.utime(victim, (1, 1))
        return known(descriptor, buffers)

    monkeypatch.setattr(source.os, "readv", meddle)
    profile = open_profile(path)
    read_whole(profile)
    assert [problem for problem in profile.problems if problem.file == victim.name and "changed" in problem.what]


def test_what_is_rewritten_after_reading_changes_nothing(tmp_path: Path) -> None:
    path = unpacked("aks_gap_core", tmp_path)
    profile = open_profile(path)
    for file in path.iterdir():
        file.write_bytes(b"")
    assert differences(profile, kept_truth("aks_gap_core")) == []


def test_empty_files_are_cores_that_did_nothing(tmp_path: Path) -> None:
    path = raw.write_capture(tmp_path, {0: b"", 3: b""}, cdma0_2=b"")
    profile = open_profile(path)
    assert (profile.lanes, profile.groups.numbers, profile.numbers_in("ports")) == ((), (0, 3), ())
    assert profile.event_count == 0
