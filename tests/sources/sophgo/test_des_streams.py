"""Streams of a compiled model that DES nodes announce."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from capture_writer.capture import write_block
from compiled_captures import RECORDED, compiled, compiled_truth
from truth_tables import Leave, differences
from written_captures import capture

from tpuprof_tui.analysis.links.dependencies import find_dependencies
from tpuprof_tui.model import Profile, Severity
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.read.commands.command_table import CommandStream
from tpuprof_tui.sources.sophgo.read.commands.nodes import match_nodes_to_streams
from tpuprof_tui.sources.sophgo.read.dependencies import LinkKind


def _stream(count: int, *, only_ends: bool = False) -> CommandStream:
    offsets, lengths = np.arange(count, dtype=np.int64) * 16, np.full(count, 16, np.int32)
    return CommandStream(offsets, lengths, np.zeros(count, np.int16), 16 * count, True, only_ends)


def _nodes(engine: str, *counts: int, first: int = 0) -> list[tuple[int, str, int, int, int]]:
    return [(first + 10 * number, engine, -1, 0x40, count) for number, count in enumerate(counts)]


def _found(nodes: list[tuple[int, str, int, int, int]], **streams: list[CommandStream]) -> list[int]:
    result = match_nodes_to_streams(nodes, streams, ())
    return [result[node[0]] for node in nodes] if result else []


@pytest.mark.parametrize("name", RECORDED)
def test_every_instruction_of_a_compiled_model_is_what_ran(tmp_path: Path, name: str) -> None:
    folder = compiled(name, tmp_path)
    # with the compiler's files layers take the place of kernel functions, of which a model has none
    for file in ("tensor_location.json", "final.mlir"):
        (folder / file).unlink(missing_ok=True)
    profile = open_profile(folder)
    assert differences(profile, compiled_truth(name), Leave()) == []
    assert profile.problems == ()
    assert profile.start_ns == 0


@pytest.mark.parametrize("name", RECORDED)
def test_every_command_that_names_one_to_wait_for_has_its_link(tmp_path: Path, name: str) -> None:
    profile = open_profile(compiled(name, tmp_path))
    waiters = sum(int((lane["depends_on"] > 0).sum()) for lane in profile.lanes if lane.kind in ("TIU", "GDMA"))
    links = find_dependencies(profile)
    assert waiters > 100
    assert int((links.links.kind == LinkKind.COMMAND).sum()) == waiters


def test_an_id_that_is_not_enabled_is_not_waited_for(tmp_path: Path) -> None:
    lane = open_profile(compiled(RECORDED[1], tmp_path)).lane("TIU", 0)
    assert lane is not None
    told = lane["dependency"]
    named = (told > 0) & (told >> 20 == 0)
    assert named.any()
    assert not lane["depends_on"][named].any()
    assert (lane["depends_on"][told >> 20 == 1] == told[told >> 20 == 1] & 0xFFFFF).all()


def test_the_kth_node_is_of_the_kth_stream() -> None:
    assert _found(_nodes("TIU", 5, 7, 5), TIU=[_stream(5), _stream(7), _stream(5)]) == [0, 1, 2]


def test_what_an_sdma_node_claims_says_nothing() -> None:
    assert _found(_nodes("SDMA", 42, 42), SDMA=[_stream(1), _stream(3)]) == [0, 1]


def test_a_stream_that_only_ends_and_has_no_node_did_not_run() -> None:
    streams = [_stream(1, only_ends=True), _stream(3), _stream(1, only_ends=True), _stream(4)]
    assert _found(_nodes("SDMA", 42, 42), SDMA=streams) == [1, 3]
    assert _found(_nodes("SDMA", 42, 42, 42, 42), SDMA=streams) == [0, 1, 2, 3]


def test_where_streams_are_missing_the_counts_tell_which() -> None:
    assert _found(_nodes("TIU", 5, 7, 9, 5), TIU=[_stream(7), _stream(9), _stream(5)]) == [-1, 0, 1, 2]
    assert _found(_nodes("TIU", 7, 9), TIU=[_stream(5), _stream(7), _stream(8), _stream(9)]) == [1, 3]


def test_nodes_of_keyed_blocks_announce_no_stream() -> None:
    nodes = [(0, "TIU", -1, 0x80, 4), *_nodes("TIU", 5, first=10)]
    assert match_nodes_to_streams(nodes, {"TIU": [_stream(5)]}, {(0x80, 4)}) == {10: 0}


def test_nodes_whose_counts_are_not_those_of_the_streams_are_of_something_else() -> None:
    assert _found(_nodes("TIU", 5, 7), TIU=[_stream(50), _stream(70)]) == []


def _edited(path: Path, change: dict[int, int], kind: int = 5) -> Path:
    """The capture with words of its first block of a kind changed, by place."""
    file = path / "cdmlib0_0.profile"
    data = bytearray(file.read_bytes())
    at = 0
    while at < len(data):
        this, length = struct.unpack_from("<II", data, at)
        if this == kind:
            for place, word in change.items():
                struct.pack_into("<I", data, at + 8 + 4 * place, word)
            break
        at += 8 + length
    file.write_bytes(bytes(data))
    return path


def _des_counts(path: Path) -> list[int]:
    """Places of the counts of DES nodes among the words of the node stream."""
    data = (path / "cdmlib0_0.profile").read_bytes()
    at = 0
    while True:
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 5:
            break
        at += 8 + length
    words = struct.unpack_from(f"<{length // 4}I", data, at + 8)
    return [place + 1 for place, word in enumerate(words) if 8 <= word & 127 <= 11]


def _said(profile: Profile) -> list[str]:
    return [problem.what for problem in profile.problems if problem.severity > Severity.NOTE]


def test_a_node_that_claims_another_number_is_told_and_the_stream_taken(tmp_path: Path) -> None:
    path = compiled(RECORDED[0], tmp_path)
    for place in _des_counts(path)[:1]:
        _edited(path, {place: 0x7FFFFFFF})
    profile = open_profile(path)
    assert _said(profile) == ["DES nodes claim another number of commands than the streams of the model hold."]
    assert differences(profile, compiled_truth(RECORDED[0]), Leave()) == []


def test_a_stream_without_a_node_is_told(tmp_path: Path) -> None:
    path = compiled(RECORDED[0], tmp_path)
    whole = open_profile(path).event_count
    file = path / "cdmlib0_0.profile"
    data = file.read_bytes()
    at = 0
    while struct.unpack_from("<I", data, at)[0] != 13:
        at += 8 + struct.unpack_from("<I", data, at + 4)[0]
    length = struct.unpack_from("<I", data, at + 4)[0]
    with file.open("ab") as more:
        write_block(more, 13, length, [data[at + 8 : at + 8 + length]])
    profile = open_profile(path)
    assert _said(profile) == ["Streams of TIU commands that no DES node announces."]
    assert profile.event_count == whole


def test_a_compiled_model_that_lost_its_nodes_keeps_its_streams_without_the_pairs_before_them(tmp_path: Path) -> None:
    path = compiled(RECORDED[1], tmp_path)
    whole = open_profile(path)
    file = path / "cdmlib0_0.profile"
    data = file.read_bytes()
    parts, at = [], 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind not in (5, 6):
            parts.append(data[at : at + 8 + length])
        at += 8 + length
    file.write_bytes(b"".join(parts))
    profile = open_profile(path)
    for engine in ("TIU", "GDMA"):
        mine, theirs = profile.lane(engine, 0), whole.lane(engine, 0)
        assert mine is not None
        assert theirs is not None
        of_model = theirs["mode"] != list(whole.strings["mode"]).index("TDI")
        shift = theirs["start"][of_model][0] - mine["start"][0]
        assert (mine["start"] + shift).tolist() == theirs["start"][of_model].tolist()
        assert profile.strings["name"].texts(mine["name"]) == whole.strings["name"].texts(theirs["name"][of_model])
    assert profile.problems == ()


def test_the_first_launch_s_own_pair_is_shown_and_the_opening_pair_is_not() -> None:
    profile = open_profile(capture("compiled"))
    for lane in profile.lanes:
        assert lane.take("command_id", slice(0, 2)).tolist() == [3, 4]
        assert profile.text("mode", int(lane["mode"][0])) == "TDI"
