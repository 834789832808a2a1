from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from profiles import Registers, Texts, make_lane, make_profile, tpu_device
from web_reading import WrittenPage

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.export.web.page import write_web
from tpuprof_tui.model import Device
from tpuprof_tui.sources.sophgo.files.page_memory import OPERANDS, LocalMemory, accesses

PARAMETERS = (("Tpu Lmem Addr Width(bits)", "18"), ("Tpu Bank Addr Width(bits)", "14"), ("NPU Num", "64"))
DEVICE = tpu_device("AKS", tiu_mhz=1000, dma_mhz=1000, ddr_gbps=68, parameters=PARAMETERS)
MEMORY = LocalMemory(1 << 18, 1 << 14, 64)
SAMPLE = Path(__file__).parents[2] / "samples" / "aks_decode_mode2"


class Fields(Registers):
    """Register fields with given values."""

    def __init__(self, rows: list[dict[str, int]]) -> None:
        names = tuple(tuple(row) for row in rows)
        self.distinct = sorted(set(names))
        super().__init__(np.array([self.distinct.index(each) for each in names], np.int16), tuple(self.distinct))
        self.rows = rows

    def field(self, operation, name, rows):
        return np.array([self.rows[row][name] for row in np.arange(len(self.rows))[rows]], np.int64)


def tiu(*rows: dict[str, int]):
    lane = make_lane("TIU", 0, starts=np.arange(len(rows)) * 10, ends=np.arange(len(rows)) * 10 + 9,
                     cycles=np.full(len(rows), 10), registers=Fields(list(rows)))  # fmt: skip
    return make_profile([lane], device=DEVICE, mode=2), lane


def found(profile, lane, rows=None):
    found = accesses(profile, lane, slice(0, len(lane)) if rows is None else rows, MEMORY)
    return [(row, OPERANDS[operand], address, size) for row, operand, address, size in found.T.tolist()]


def test_results_and_operands_have_their_shapes():
    profile, lane = tiu({
        "res0_addr": 0x8000, "opd0_addr": 0, "opd1_addr": 0x4000, "opd2_addr": 0,
        "res0_n": 2, "res0_c": 65, "res0_h": 3, "res0_w": 5, "opd1_w": 7,
        "opt_res0_prec": 2, "opt_opd0_prec": 1, "opt_opd1_prec": 0,
    })  # fmt: skip
    assert found(profile, lane) == [
        (0, "res0", 0x8000, 2 * 2 * 3 * 5 * 4),  # 65 channels on 64 lanes: two on the first
        (0, "opd0", 0, 2 * 2 * 3 * 5 * 2),  # the result's shape where it has none
        (0, "opd1", 0x4000, 2 * 2 * 3 * 7),
    ]


def test_constants_are_not_read():
    row = {"res0_addr": 16, "opd0_addr": 32, "opd1_addr": 48, "opt_opd0_const": 1, "opt_opd1_const": 0}
    profile, lane = tiu(row, {**row, "opt_opd0_const": 0})
    assert [(place, name) for place, name, _, _ in found(profile, lane)] == [
        (0, "res0"), (0, "opd1"), (1, "res0"), (1, "opd0"), (1, "opd1"),
    ]  # fmt: skip


def test_half_bytes_are_rounded_up():
    profile, lane = tiu({"res0_addr": 0, "res0_w": 3, "opt_res0_prec": 6})
    assert found(profile, lane) == [(0, "res0", 0, 2)]


@pytest.mark.parametrize(("address", "width", "expected"), [
    ((1 << 18) - 4, 100, ((1 << 18) - 4, 4)), ((5 << 18) + 64, 8, (64, 8)), (0, 1 << 60, (0, 1 << 18)), (0, 0, (0, 1)),
    (0, -5, (0, 1)),
])  # fmt: skip
def test_accesses_stay_inside_a_share(address, width, expected):
    profile, lane = tiu({"res0_addr": address, "res0_w": width})
    assert [each[2:] for each in found(profile, lane)] == [expected]


def test_unknown_precisions_count_as_bytes():
    profile, lane = tiu({"res0_addr": 0, "res0_w": 3, "opt_res0_prec": 127})
    assert found(profile, lane) == [(0, "res0", 0, 3)]


def test_transfers_use_the_side_in_local_memory():
    texts = Texts()
    rows = [
        {"dst_nsize": 1, "dst_csize": 64, "dst_hsize": 2, "dst_wsize": 8},
        {"src_nsize": 1, "src_csize": 1, "src_hsize": 4096, "src_wsize": 64},
        {"dst_nsize": 1, "dst_csize": 64, "dst_hsize": 2, "dst_wsize": 8},
    ]
    lane = make_lane("GDMA", 0, starts=[0, 10, 20], ends=[9, 19, 29], cycles=[10, 10, 10],
                     bytes=[2048, 524_288, 2048], registers=Fields(rows),
                     from_memory=texts.codes("from_memory", ["DDR", "LMEM", "DDR"]),
                     to_memory=texts.codes("to_memory", ["LMEM", "L2M", "L2M"]),
                     dtype=texts.codes("dtype", ["FP16"] * 3), type=texts.codes("type", ["DMA_tensor"] * 3),
                     src_addr=[1 << 40, (31 << 40) + 0x4000, 0],
                     dst_addr=[(31 << 40) + (2 << 18) + 128, 0, 0])  # fmt: skip
    profile = make_profile([lane], strings=texts.build(), device=DEVICE, mode=2)
    assert found(profile, lane) == [
        (0, "dst", 128, 2 * 8 * 2),
        (1, "src", 0x4000, 524_288 // 64),  # too large for one lane's share: spread over all
    ]
    assert found(profile, lane, np.array([1])) == [(0, "src", 0x4000, 524_288 // 64)]


@pytest.mark.parametrize(("kind", "size"), [("DMA_tensor", 128), ("DMA_matrix", 4), ("DMA_general", 4), (None, 4)])
def test_only_tensors_lie_as_their_shape_says(kind, size):
    texts = Texts()
    shape = {"dst_nsize": 1, "dst_csize": 1, "dst_hsize": 8, "dst_wsize": 16}
    lane = make_lane("GDMA", 0, starts=[0], ends=[9], cycles=[10], bytes=[256], registers=Fields([shape]),
                     to_memory=texts.codes("to_memory", ["LMEM"]), dst_addr=[64],
                     dtype=texts.codes("dtype", ["INT8"]), type=texts.codes("type", [kind]))  # fmt: skip
    assert found(make_profile([lane], strings=texts.build(), device=DEVICE), lane) == [(0, "dst", 64, size)]


def test_commands_without_registers_access_nothing():
    lane = make_lane("TIU", 0, starts=[0], ends=[1], cycles=[1])
    assert found(make_profile([lane], device=DEVICE), lane) == []


LABEL = "Tpu Lmem Addr Width(bits)"


@pytest.mark.parametrize(
    "parameters",
    [
        (),
        (("NPU Num", "64"),),
        (*PARAMETERS[:2], ("NPU Num", "0")),
        (*PARAMETERS[1:], (LABEL, "x")),
        (*PARAMETERS[1:], (LABEL, "3")),
        (*PARAMETERS[1:], (LABEL, "99")),
    ],
)
def test_a_chip_that_does_not_tell_has_no_chart(parameters):
    profile, _ = tiu({"res0_addr": 0})
    device = Device("AKS", parameters=parameters)
    assert LocalMemory.of(make_profile(profile.lanes, device=device)) is None


def test_the_shape_of_local_memory_comes_from_the_parameters():
    profile, _ = tiu({"res0_addr": 0})
    assert LocalMemory.of(profile) == MEMORY


def test_a_page_holds_the_accesses_of_its_commands(tmp_path):
    profile = open_profile(SAMPLE)
    path = tmp_path / "result.html"
    write_web(query_of(profile), path)
    page = WrittenPage(path)
    assert page.record["memory"]["lane_bytes"] == 1 << 18
    assert page.record["memory"]["bank_bytes"] == 1 << 14
    checked = 0
    for record in page.record["memory"]["lanes"]:
        written = page.record["lanes"][record["lane"]]
        lane = next(each for each in profile.lanes if profile.title_of(each) == written["title"])
        columns = page.chunks[record["chunk"]]
        assert (columns["address"] + columns["size"] <= 1 << 18).all()
        results = columns["operand"] == OPERANDS.index("res0")
        operations = lane.registers.operations(slice(0, len(lane)))
        for row, address in zip(columns["row"][results], columns["address"][results], strict=True):
            assert lane.registers.field(int(operations[row]), "res0_addr", np.array([row]))[0] == address
            checked += 1
        loads = columns["operand"] == OPERANDS.index("dst")
        for row in columns["row"][loads]:
            assert profile.text("to_memory", int(lane["to_memory"][row])) == "LMEM"
            checked += 1
    assert checked > 800


def test_too_many_accesses_are_cut_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("tpuprof_tui.sources.sophgo.files.page_memory.MOST_ACCESSES", 8)
    monkeypatch.setattr("tpuprof_tui.export.web.lanes.SLICE", 4)
    profile, lane = tiu(*[{"res0_addr": 0, "opd0_addr": 64}] * 20)
    path = tmp_path / "result.html"
    write_web(query_of(profile), path)
    page = WrittenPage(path)
    (record,) = page.record["memory"]["lanes"]
    assert page.chunks[record["chunk"]]["row"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert record["until"] == lane["start"][4]
    assert page.record["memory"]["cut"] == 1
