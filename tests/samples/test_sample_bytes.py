"""The bytes of sample captures, against worked examples and against the truth beside them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import plain_capture as plain
import pytest
from capture_writer.capture import write_capture
from capture_writer.chips import CDMA, CHIPS, DDR, FP16, FP32, GDMA, LMEM, SDMA, TIU
from capture_writer.kinds import KINDS
from capture_writer.layouts import layouts, pack
from capture_writer.nodes import func_words, node_word
from capture_writer.ops import OPS
from capture_writer.options import Options
from capture_writer.program import RVT, TDI, Row

AKS, AKSV = CHIPS["AKS"], CHIPS["AKSV"]


def _row(key: str, engine: int, **fields: int) -> Row:
    return Row(OPS[key], engine, 0, 0.0, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("word", "stored"),
    [
        (node_word(_row("ar_add", TIU, dtype=FP16), AKS, TDI), "010c1100"),
        (node_word(_row("tensor", GDMA, src=DDR, dst=LMEM, dtype=FP16), AKS, TDI), "81001008"),
        (node_word(_row("tensor", GDMA, src=LMEM, dst=DDR, dtype=5), AKS, TDI), "81005002"),
        (node_word(_row("dma_send", SDMA, count=0), AKS, TDI), "81990100"),
        (node_word(_row("dma_send", SDMA, count=0), AKSV, TDI), "01990100"),
        (node_word(_row("cdma_send", CDMA, dtype=FP32), AKS, TDI) | 3 << 28, "01022030"),
        (node_word(_row("cdma_rx_wait", CDMA, count=0), AKSV, TDI) | 3 << 28, "811d0330"),
        (node_word(_row("dma_send", SDMA, count=1), AKS, TDI, vsdma=True), "819a1100"),
        (node_word(_row("ar_sub", TIU, dtype=0), AKS, RVT), "0d8c0100"),
    ],
)
def test_node_words_are_those_of_the_format(word: int, stored: str) -> None:
    assert word.to_bytes(4, "little").hex() == stored


def test_function_names_are_padded_to_words() -> None:
    stored = b"".join(word.to_bytes(4, "little") for word in func_words("gelu_fwd"))
    assert stored.hex() == "00040000" + b"gelu_fwd".hex()
    assert len(func_words("gelu_fwd2")) == 4
    assert func_words("") == [0]


def test_a_system_command_packs_to_the_documented_bytes() -> None:
    layout = layouts("aks")["SYS"]
    packed = pack(layout, {"tsk_typ": 15, "tsk_eu_typ": 9, "imm": 0x00010005})
    assert packed.hex() == "00000000003e01000500010000000000"


@pytest.mark.parametrize("chip", ["aks", "aksv"])
def test_layout_fields_lie_inside_their_command_and_apart(chip: str) -> None:
    for name, layout in layouts(chip).items():
        taken = 0
        for field, (first, width) in layout["fields"].items():
            mask = ((1 << width) - 1) << first
            assert first + width <= layout["bits"], (name, field)
            assert not taken & mask, (name, field)
            taken |= mask


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("bytes")
    for name in ("decode_mode1", "decode_mode2", "aksv_cdma", "sdma", "decode_mode0"):
        write_capture(replace(KINDS[name], cores=() if "cdma" in name else (0, 1)), parent)
    return parent


@pytest.mark.parametrize("name", ["decode_mode0", "decode_mode1", "decode_mode2", "sdma", "aksv_cdma"])
def test_monitors_hold_what_the_truth_says(written: Path, name: str) -> None:
    meta, tracks, body = plain.load_truth(written / f"{name}.truth.json")
    for rank, number in enumerate(meta["written_cores"]):
        for engine, words in plain.monitor_records(written / name / f"cdmlib0_{number}.profile").items():
            truth = tracks[engine, rank]
            offset = meta["core_clock_offset"][rank]
            assert np.array_equal(words[:, 0], (truth["start_ns"] + offset) % 2**32)
            assert np.array_equal(words[:, 1], (truth["end_ns"] + offset) % 2**32)
            assert np.array_equal(words[:, 2], truth["cmd_id"])
            assert np.array_equal(truth["cycles"], words[:, 1] - words[:, 0] + 1)
            system = np.array([op["system"] for op in body["ops"]])[truth["op"]]
            if engine == "TIU":
                assert np.array_equal(words[:, 3] == 2, system)
            else:
                assert np.array_equal(words[:, 5] + words[:, 10], truth["bytes"])
                assert np.array_equal(words[:, [5, 10, 12, 13, 14, 15]].sum(axis=1) == 0, system)


@pytest.mark.parametrize(("name", "chip"), [("decode_mode1", AKS), ("sdma", AKS), ("aksv_cdma", AKSV)])
def test_nodes_say_which_command_each_record_is(written: Path, name: str, chip: object) -> None:
    meta, tracks, body = plain.load_truth(written / f"{name}.truth.json")
    engines = plain.AKS_ENGINES if chip is AKS else plain.AKSV_ENGINES
    for rank, number in enumerate(meta["written_cores"]):
        nodes = plain.node_commands(written / name / f"cdmlib0_{number}.profile", engines)
        for engine in ("TIU", "GDMA", "SDMA"):
            mine = [node for node in nodes if node["engine"] == engine]
            truth = tracks[engine, rank]
            assert [node["id"] for node in mine] == truth["cmd_id"].tolist()
            codes = [(body["ops"][op]["typ"], body["ops"][op]["eu"]) for op in truth["op"]]
            assert [(node["type"], node["function"]) for node in mine] == codes
            names = [body["funcs"][func] if func >= 0 else None for func in truth["func"]]
            assert [node["kernel"] for node in mine] == names
            inside = truth["scope"] >= 0
            assert [node["batch"] for node, kept in zip(mine, inside, strict=True) if kept] == truth["batch"][
                inside
            ].tolist()


def test_port_records_and_nodes_agree(written: Path) -> None:
    meta, tracks, body = plain.load_truth(written / "aksv_cdma.truth.json")
    submitted: dict[tuple[int, int], list[int]] = {}
    for number in meta["written_cores"]:
        path = written / "aksv_cdma" / f"cdmlib0_{number}.profile"
        for node in plain.node_commands(path, plain.AKSV_ENGINES):
            if node["engine"] == "CDMA":
                submitted.setdefault((node["port"], number), []).append(node["type"])
    for (engine, port), truth in tracks.items():
        if engine != "CDMA":
            continue
        words = plain.monitor_records(written / "aksv_cdma" / f"cdma0_{port}.profile")["CDMA"]
        assert sorted(words[:, 0]) == sorted(truth["start_ns"] + meta["cdma_clock_offset"][port])
        assert words[:, 4].sum() == truth["bytes"].sum()
        for core in np.unique(truth["core"]):
            kinds = [body["ops"][op]["typ"] for op in truth["op"][truth["core"] == core]]
            assert submitted[port, int(core)] == kinds


def test_detailed_records_carry_the_shapes(written: Path) -> None:
    meta, tracks, body = plain.load_truth(written / "decode_mode2.truth.json")
    for rank, number in enumerate(meta["written_cores"]):
        path = written / "decode_mode2" / f"cdmlib0_{number}.profile"
        nodes, contents = plain.node_commands(path), plain.extra_contents(path)
        assert len(nodes) == len(contents)
        place = {"TIU": 0, "GDMA": 0, "SDMA": 0}
        for node, content in zip(nodes, contents, strict=True):
            truth, at = tracks[node["engine"], rank], place[node["engine"]]
            place[node["engine"]] += 1
            word = int.from_bytes(content, "little")
            if node["engine"] == "TIU":
                assert (word >> 41 & 15, word >> 45 & 31) == (node["type"], node["function"])
            else:
                assert (word >> 32 & 31, word >> 37 & 7) == (node["type"], node["function"])
            if body["ops"][truth["op"][at]]["key"] in ("tensor", "matrix"):
                sizes = [word >> first & 0xFFFF for first in (384, 400, 416, 432)]
                assert sizes == [int(truth[f"d{axis}"][at]) for axis in range(4)]


def test_same_seed_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    options = Options("one", cores=(0, 1), mode=2, ports=2, seed=5)
    contents = []
    for seed in (5, 5, 6):
        path = write_capture(replace(options, seed=seed), tmp_path).path
        files = [*sorted(path.iterdir()), tmp_path / "one.truth.json"]
        contents.append(b"".join(file.read_bytes() for file in files))
    assert contents[0] == contents[1]
    assert contents[0] != contents[2]
