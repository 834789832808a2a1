from __future__ import annotations

import copy
import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tpuprof_tui.sources.sophgo.chips import chip as chips
from tpuprof_tui.sources.sophgo.chips.bit_layout import ChipDataError, parse_fields, record_layout
from tpuprof_tui.sources.sophgo.chips.chip import variant_direction


def the(name: str) -> chips.Chip:
    chip = chips.chip_by_name(name)
    assert chip is not None
    return chip


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("5", "AKS"), ("8800", "AKS"), (" aks ", "AKS"), ("6", "AKSV"), ("140814", "AKSV"), ("AKSV", "AKSV"),
        ("4", "BM1688"), ("bm1688", "BM1688"), ("7", "CV84X6"), ("Bm1684x2", "CV84X6"), ("007", "CV84X6"),
    ],
)  # fmt: skip
def test_arch_values_select_their_chip(value: str, name: str) -> None:
    chip = chips.chip_by_arch(value)
    assert chip is not None
    assert chip.name == name


@pytest.mark.parametrize("value", ["", "1", "3", "9901", "0", "-5", "５", "5.0", "A2", "9" * 5000, "../aks"])
def test_other_arch_values_select_none(value: str) -> None:
    assert chips.chip_by_arch(value) is None


def test_known_but_unreadable_archs_have_names() -> None:
    assert chips.unsupported_arch("1") == "bm1684"
    assert chips.unsupported_arch("3") == "bm1684x"
    assert chips.unsupported_arch("5") is None


def test_names_that_are_paths_load_nothing() -> None:
    assert chips.chip_by_name("common/tables") is None
    assert chips.chip_by_name("") is None
    assert chips.chip_by_name("AKS") is chips.chip_by_arch("5")


@pytest.mark.parametrize(
    ("name", "sizes", "cores", "ports"),
    [
        ("AKS", {"tiu": 16, "dma": 64, "cdma": 128}, 8, 11),
        ("AKSV", {"tiu": 16, "dma": 64, "cdma": 128}, 4, 10),
        ("BM1688", {"tiu": 32, "dma": 256}, 2, 0),
        ("CV84X6", {"tiu": 16, "dma": 64}, 4, 0),
    ],
)
def test_constants(name: str, sizes: dict[str, int], cores: int, ports: int) -> None:
    chip = the(name)
    assert {family: layout.size for family, layout in chip.records.items()} == sizes
    assert (chip.core_count, chip.cdma_ports) == (cores, ports)
    assert chip.parameter("Core Num") == cores
    assert chip.tiu_mhz == chip.parameter("TIU Frequency(MHz)")
    assert chip.dma_mhz == chip.parameter("DMA Frequency(MHz)")
    assert len(chip.parameters) == 20
    assert chip.parameters[0][0] == "Chip Arch"


def test_engine_codes_differ_between_chips() -> None:
    assert the("AKS").engine_codes == {0: "TIU", 1: "GDMA", 2: "HAU", 3: "SDMA", 4: "CDMA", 5: "VSDMA"}
    assert the("AKSV").engine_codes == {0: "TIU", 1: "GDMA", 2: "SDMA", 3: "CDMA", 4: "VSDMA"}


def test_records_are_read_by_field() -> None:
    layout = the("CV84X6").records["tiu"]
    payload = struct.pack("<4I", 100, 200, 7, 0x13) + struct.pack("<4I", 300, 0xFFFFFFFF, 8, 0xFFFFFFFE) + b"\1\2\3"
    words = layout.words(payload)
    assert words.shape == (2, 4)
    assert layout.column(words, "thread_id").tolist() == [1, 0]
    assert layout.column(words, "bank_conflict").tolist() == [9, 0x7FFFFFFF]
    assert layout.column(words, "inst_end_time").tolist() == [200, 0xFFFFFFFF]


def test_fields_may_cross_a_word() -> None:
    layout = the("BM1688").records["tiu"]
    words = layout.words(struct.pack("<IIQ4I", 100, 200, 7 | 0xFEDCBA987654 << 16, 1, 2, 3, 4))
    assert layout.column(words, "inst_id").tolist() == [7]
    assert layout.column(words, "computation_load").tolist() == [0xFEDCBA987654]
    assert layout.column(words, "num_write").tolist() == [3]


@pytest.mark.parametrize(
    ("family", "field", "byte"),
    [
        ("dma", "gif_wr_rd_stall_cntr", 16),
        ("dma", "gif_mem_w_cntr", 40),
        ("dma", "gif_rd_valid_cntr", 60),
        ("cdma", "m0_data_aw_cntr", 16),
        ("cdma", "ati_txfifo_stall_cntr", 64),
        ("cdma", "m0_data_aw_st", 88),
        ("cdma", "ari_data_end", 124),
    ],
)
def test_counters_lie_where_the_format_says(family: str, field: str, byte: int) -> None:
    assert the("AKS").records[family].by_name[field].first == byte * 8


@pytest.mark.parametrize(
    ("field", "byte"), [("axi_d0_wr_valid_bytes", 64), ("axi_d0_aw_end", 128), ("gif_fmem_ar_end", 200)]
)
def test_wide_records_lie_where_the_format_says(field: str, byte: int) -> None:
    assert the("BM1688").records["dma"].by_name[field].first == byte * 8


@pytest.mark.parametrize(
    ("chip", "engine", "codes", "texts"),
    [
        ("AKS", "TIU", (3, 2), ("arith/SEG", "add")),
        ("AKSV", "TIU", (2, 5), ("mm/mm2", "MM2_NT")),
        ("AKS", "TIU", (2, 1), ("mm/mm2", "mm/mm2_1")),
        ("AKS", "TIU", (11, 4), ("cmd_type_11", "cmd_type_11_4")),
        ("AKS", "GDMA", (0, 0, 0, 2), ("DMA_tensor", "tensorLd")),
        ("AKS", "GDMA", (1, 0, 2, 0), ("DMA_matrix", "tensorSt")),
        ("AKS", "SDMA", (0, 0, 2, 2), ("DMA_tensor", "tensorMv")),
        ("AKS", "GDMA", (0, 0, 1, 2), ("DMA_tensor", "tensor")),
        ("AKS", "GDMA", (0, 0, 3, 2), ("DMA_tensor", "tensor")),
        ("AKS", "GDMA", (7, 5, 0, 0), ("DMA_gather", "DMA_gather")),
        ("AKS", "GDMA", (20, 0, 0, 0), ("cmd_type_20", "cmd_type_20")),
        ("AKS", "CDMA", (7, 4), ("sys", "sys_msg_tx_wait")),
        ("AKS", "CDMA", (12, 1), ("cmd_type_12", "cmd_type_12_1")),
        ("BM1688", "GDMA", (6, 3, 0, 0), ("chain end", "sys_send")),
        ("BM1688", "GDMA", (20, 0, 0, 0), ("unknown", "unknown")),
        ("CV84X6", "GDMA", (6, 3, 0, 0), ("sys", "sys_send")),
    ],
)
def test_condensed_names(chip: str, engine: str, codes: tuple[int, ...], texts: tuple[str, str]) -> None:
    key = sum(code << shift for code, shift in zip(codes, (0, 5, 10, 12), strict=False))
    assert the(chip).names(engine).texts_of(key) == texts


def test_generator_indices_have_names_of_their_own() -> None:
    table = the("CV84X6").names("TIU", rvt=True)
    assert table.texts_of(8 | 36 << 5) == ("sar", "rvt_sub")
    assert table.texts_of(31) == ("rvt", "unknown")
    assert the("AKSV").names("TIU", rvt=True) is the("AKSV").names("TIU")
    assert variant_direction("rvt_dma_ldbc") == (0, 2)
    assert variant_direction("rvt_dma_stt") == (2, 0)
    assert variant_direction("rvt_dma_cp") is None


def test_data_types_out_of_the_table_keep_their_code() -> None:
    assert the("AKS").data_type_text(5) == "BFP16"
    assert the("AKS").data_type_text(13) == "unknown_13"
    assert the("AKS").data_type_text(-1) == "unknown_-1"


@pytest.mark.parametrize("text", ["a:0", "a:65", "a:x", ":4", "a:1,,b:2", "a:-1"])
def test_layouts_that_are_not_layouts_are_refused(text: str) -> None:
    with pytest.raises(ChipDataError):
        parse_fields(text)


@pytest.mark.parametrize("text", ["a,a", "a,b,c", "a:16", "a:31,b:63,c:2"])
def test_records_that_contradict_their_name_are_refused(text: str) -> None:
    with pytest.raises(ChipDataError):
        record_layout("x_8", text)


def edited(path: list[Any], value: Any) -> dict[str, Any]:
    source = Path(chips.__file__).with_name("aks.json")
    data: dict[str, Any] = json.loads(source.read_text(encoding="utf-8"))
    target: Any = copy.deepcopy(data)
    result = target
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return dict(result)


def test_unedited_data_loads() -> None:
    chip = chips.chip_from_data(edited(["core_count"], 8), chips.common_tables())
    assert chip.name == "AKS"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["engine_codes", "9"], "TIU"),
        (["engine_codes", "6"], "TIU"),
        (["engine_codes", "0"], "NPU"),
        (["system_types"], {"tiu": 15}),
        (["cdma_ports"], 0),
        (["system_records", "tiu", "fields"], ["nonsense"]),
        (["tiu_mhz"], 0),
        (["parameters"], [["Chip Arch", "A"], ["Chip Arch", "B"]]),
        (["memory_of_address", "other"], 9),
    ],
)
def test_data_that_contradicts_itself_is_refused(path: list[Any], value: Any) -> None:
    with pytest.raises(ChipDataError):
        chips.chip_from_data(edited(path, value), chips.common_tables())


def test_choosing_a_chip_reads_no_command_layouts() -> None:
    program = (
        "from tpuprof_tui.sources.sophgo.chips import chip as chips\n"
        "from tpuprof_tui.sources.sophgo.read.commands import operation_counts, registers\n"
        "from tpuprof_tui.sources.sophgo.chips import commands\n"
        "from tpuprof_tui.sources.sophgo.chips.bit_layout import CHIP_FILES\n"
        "chips.chip_by_arch('5').names('TIU').texts_of(3)\n"
        "assert not CHIP_FILES.read & {'common/layouts.json', 'common/models.json'}\n"
        "commands.command_table(chips.chip_by_arch('5'), 'TIU')\n"
        "assert 'common/layouts.json' in CHIP_FILES.read\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
