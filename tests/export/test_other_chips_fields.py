"""Register text and workbook of BM1688 and CV84X6: the fields of their commands, and what sheets show of them.

The captures are synthetic.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace

import pytest
from capture_writer.capture import write_capture
from capture_writer.kinds import KINDS
from converter import converted, needs_converter
from workbook_reading import loaded, stream_order, table_of

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.sources.sophgo import schema as counters
from tpuprof_tui.sources.sophgo.files import workbook
from tpuprof_tui.sources.sophgo.files.field_texts import write_registers_text
from tpuprof_tui.sources.sophgo.files.instructions import write_instructions
from tpuprof_tui.sources.sophgo.files.lane_rows import DMA_COLUMNS, TIU_COLUMNS
from tpuprof_tui.sources.sophgo.files.workbook import write_workbook

COUNTERS = {column.key for column in counters.COUNTERS}
CAPTURES = ("bm1688_mode0", "bm1688_mode1", "bm1688_mode2", "cv84x6_mode0", "cv84x6_mode1", "cv84x6_mode2",
            "cv84x6_rvt")  # fmt: skip
#: What begins and ends the fields of an instruction's own, by kind and file.
FIELDS = {
    ("cv84x6_mode1", "tiu"): "Engine Id,Start Time(ns),End Time(ns),Cmd Id,Asic Cycle,Function Type,Function Name,"
    "Bank Conflict Cycle,Bank Conflict Ratio,Thread Id,Alg Ops,uArch Ops,Alg Cycle,uArch Rate,Sim Power(W)",
    ("cv84x6_mode2", "tiu"): "Function Name,Function Type,Start Time(ns),End Time(ns),Cmd Id,Asic Cycle,Engine Id,"
    "Alg Ops,uArch Ops,Alg Cycle,uArch Rate,Initial Cycle Ratio,Bank Conflict Cycle,Bank Conflict Ratio,Thread Id,"
    "Sim Power(W)",
    ("bm1688_mode2", "tiu"): "Function Name,Function Type,Start Time(ns),End Time(ns),Cmd Id,Asic Cycle,Engine Id,"
    "Alg Ops,uArch Ops,Alg Cycle,uArch Rate,Initial Cycle Ratio,Bank Conflict Ratio,Sim Power(W)",
    ("cv84x6_mode1", "tdma"): "Engine Id,Start Time(ns),End Time(ns),Cmd Id,Asic Cycle,Direction,from_addr,to_addr,"
    "src_data_format,cmd_type,cmd_special_function,Function Type,Function Name,Data Type,Thread Id,AR Latency Cycle,"
    "Stall Cycle,DMA data size(B),gmem_xfer_bytes(B),gmem_dma_data_size(B),lmem_xfer_bytes,lmem_dma_data_size(B),"
    "gmem_bandwidth,lmem_bandwidth,DDR Bandwidth(GB/s),L2M Bandwidth(GB/s),gmem_xact_cnt,lmem_xact_cnt,gmem_bl_sum,"
    "gmem_avg_burst_length,lmem_bl_sum,lmem_avg_burst_length,lmem_msk_wr_cnt,gmem_msk_wr_cnt,lmem_n32Ba_sa_cnt,"
    "gmem_n32Ba_sa_cnt,dst_start_addr,src_start_addr,funcName,layer_ID,index,Msg Id,Sd\\Wt Count,mask_data_format",
}  # fmt: skip
#: Further columns that sheets must have.
FURTHER = {
    ("cv84x6_mode1", "TIU_0"): {"Bank Conflict Cycle", "Bank Conflict Ratio", "Thread Id", "bank_conflict"},
    ("cv84x6_mode2", "TIU_0"): {"Initial Cycle Ratio", "Bank Conflict Cycle", "Msg Id", "Sd\\Wt Count"},
    ("bm1688_mode2", "TIU_0"): {"Initial Cycle Ratio", "Bank Conflict Ratio", "Depends on", "num_read"},
    ("cv84x6_rvt", "GDMA_0"): {"AR Latency Cycle", "gmem_dma_data_size(B)", "lmem_bandwidth", "axi_d0_w_cntr"},
    ("bm1688_mode2", "GDMA_0"): {"gmem_bandwidth", "lmem_xact_cnt", "Msg Id", "gif_l2sram_wr_bytes"},
}


@pytest.fixture(scope="module")
def capture_of(tmp_path_factory):
    """Directory of a capture of a kind, written once."""
    known = {}

    def of(kind):
        if kind not in known:
            known[kind] = write_capture(replace(KINDS[kind], name=kind), tmp_path_factory.mktemp("captures")).path
        return known[kind]

    return of


def blocks_of(path) -> list[list[tuple[str, str]]]:
    """Names and values of each instruction; a line without a value is its own name."""
    parts = re.split(r"^__\w+_REG_INFO__\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [[tuple((line.strip("\t\n") + ": ").split(": ")[:2]) for line in part.splitlines()] for part in parts[1:]]


@pytest.mark.parametrize(("kind", "file"), FIELDS)
def test_fields_come_in_the_order_of_the_description(capture_of, tmp_path, kind, file):
    write_registers_text(query_of(open_profile(capture_of(kind))), tmp_path)
    wanted = FIELDS[kind, file].split(",")
    for block in blocks_of(tmp_path / f"{file}RegInfo_0.txt"):
        names = [name for name, _ in block]
        assert names[: len(wanted)] == wanted
        assert names[len(wanted) : len(wanted) + 2] == ["Global Idx", "Core Id"]


def test_generator_commands_have_no_format(capture_of, tmp_path):
    write_registers_text(query_of(open_profile(capture_of("cv84x6_rvt"))), tmp_path)
    for file, names in (("tdma", ("src_data_format", "Data Type")), ("tiu", ("des_opt_res0_prec",))):
        found = {True: 0, False: 0}
        for block in map(dict, blocks_of(tmp_path / f"{file}RegInfo_0.txt")):
            rvt = block["mode"] == "RVT"
            found[rvt] += 1
            if file == "tdma" or block["Function Type"] != "sys":
                assert all((name in block) != rvt for name in names)
        assert found[True] > 10
        assert found[False] > 5


@pytest.mark.parametrize("kind", ["bm1688_mode2", "cv84x6_mode2", "cv84x6_rvt", "cdma_zoo_des"])
def test_json_lines_have_the_memories_and_formats_of_the_text(capture_of, tmp_path, kind):
    profile = open_profile(capture_of(kind))
    write_registers_text(query_of(profile), tmp_path)
    sink = io.BytesIO()
    write_instructions(query_of(profile), sink)
    rows = [json.loads(line) for line in sink.getvalue().splitlines()]
    for file, engines in (("tdma_0", ("GDMA", "SDMA")), *((f"cdma_{port}", ("CDMA",)) for port in (0, 1))):
        place = "Port" if engines == ("CDMA",) else "Core Id"
        chosen = [row for row in rows if row["engine"] in engines and row[place] == int(file[-1])]
        if not chosen:
            continue
        names = ("Direction", "from_addr", "to_addr", "Data Type")
        blocks = map(dict, blocks_of(tmp_path / f"{file[:4]}RegInfo_{file[-1]}.txt"))
        for row, block in zip(chosen, blocks, strict=True):
            assert [row.get(name) for name in names] == [block.get(name) for name in names]


@pytest.mark.parametrize("kind", CAPTURES)
def test_sheets_say_what_the_text_says_and_more(capture_of, tmp_path, monkeypatch, kind):
    monkeypatch.setattr(workbook._Workbook, "_views", lambda self: None)  # sheets of views are not looked at
    profile = open_profile(capture_of(kind))
    write_workbook(query_of(profile), tmp_path / "book.xlsx")
    write_registers_text(query_of(profile), tmp_path)
    book = loaded(tmp_path / "book.xlsx")
    for lane in profile.lanes_of(0):
        title, file = f"{lane.kind}_0", "tiu" if lane.kind == "TIU" else "tdma"
        names, rows = table_of(book[title])
        listed = TIU_COLUMNS if file == "tiu" else DMA_COLUMNS
        own = [name for name in names if name in listed]
        assert names[: len(own)] == own == [name for name in listed if name in own]
        assert FURTHER.get((kind, title), set()) <= set(names[len(own) :])
        assert not {"Sim Power(W)", "gmem_bl_sum", "funcName"} & set(names)
        compared = 0
        blocks = blocks_of(tmp_path / f"{file}RegInfo_0.txt")
        for row, held, block in zip(stream_order(lane), rows, map(dict, blocks), strict=True):
            for name, value in zip(names, held, strict=True):
                if name in COUNTERS and name in lane:
                    assert value == lane[name][row], (title, name)
                elif name not in OWN_VALUES:
                    assert value == cell_of(name, block.get(name)), (title, name)
                    compared += value is not None
        assert compared > 10 * len(lane)


#: Columns that say more or other than the register text.
OWN_VALUES = ("Layer Id", "Layer Name", "Avg Cycle Last 200", "Direction", "Data Type", "Depends on", "Msg Id",
              "Sd\\Wt Count", "mask_data_format", "index")  # fmt: skip


def cell_of(name: str, text: str | None) -> str | float | None:
    """A value of the register text as sheets hold it."""
    if text is None or not text.strip():
        return None
    if ("addr" in name and text.isdecimal()) or "mask" in name:
        return hex(int(text))
    if text.endswith("%"):
        return pytest.approx(float(text[:-1]) / 100)
    try:
        return float(text)
    except ValueError:
        return text


@pytest.mark.reference
@needs_converter
@pytest.mark.parametrize("kind", CAPTURES)
def test_files_are_those_of_the_reference(capture_of, tmp_path, kind):
    theirs = converted(capture_of(kind), tmp_path / "theirs", "--enable_doc")
    write_registers_text(query_of(open_profile(capture_of(kind))), tmp_path / "ours")
    for path in sorted(theirs.glob("*RegInfo_*.txt")):
        wanted, found = blocks_of(path), blocks_of(tmp_path / "ours" / path.name)
        # without the records of a preamble that the reference drops
        for block, own in zip(wanted, found[len(found) - len(wanted) :], strict=True):
            assert settled(kind, dict(own)) == settled(kind, dict(block)), path.name


def settled(kind: str, block: dict[str, str]) -> dict[str, str]:
    """An instruction without what the two are known to differ in."""
    loose = {"Global Idx", "index", "index_shape", "src_shape", "dst_shape"}
    if kind.startswith("bm1688") and not kind.endswith("mode2"):
        loose |= {"DMA data size(B)", "DDR Bandwidth(GB/s)"}
    return {name: "0" if value == "0.0" else value for name, value in block.items() if name not in loose}
