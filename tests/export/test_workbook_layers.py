from __future__ import annotations

import json

import numpy as np
import openpyxl
import pytest
import raw_bytes as raw
from capture_writer.capture import write_capture
from capture_writer.kinds import KINDS
from kept import unpacked
from profiles import selected_query
from workbook_reading import loaded

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.cli.main import main
from tpuprof_tui.sources.sophgo.file_names import LOCATIONS, NETWORK
from tpuprof_tui.sources.sophgo.files.field_texts import write_merged_csv
from tpuprof_tui.sources.sophgo.files.workbook import write_workbook
from tpuprof_tui.sources.sophgo.read.layers import layers_of, read_layer_files

MLIR = """#loc = loc(unknown)
module @resnet attributes {module.FLOPs = 8000000 : i64, module.chip = "bm1690", module.mode = "F16"} {
    %1 = "tpu.Conv2D"(%0) {kernel_shape = [3, 5], pads = [1, 1, 1, 1], strides = [2, 1]} : () -> tensor<1xf16>
    %2 = "tpu.MatMul"(%1) {do_relu = false} : () -> tensor<1xf16>
"""
#: Name, line, last TIU id, last DMA id, operands, result.
LAYERS = (
    ("tpu.Conv2D", 3, 60, 40, ("1x64x56x56xf16", "64x64x3x5xf16", "1x64x1x1xf32"), "1x64x28x56xf16"),
    ("tpu.MatMul", 4, 150, 90, ("4x512xf16", "512x1024xf16"), "4x1024xf16"),
    ("tpu.Add", 5, 240, 130, ("4x1024xf16", "4x1024xf16"), "4x1024xf16"),
)


def entries(cores):
    found = []
    for core in cores:
        before = [0, 0]
        for name, line, tiu, dma, operands, result in LAYERS:
            found.append({
                "file-line": line, "subnet_id": 0, "opcode": name, "core_id": core,
                "tiu_dma_id(before)": before, "tiu_dma_id(after)": [tiu, dma],
                "operands": [{"memory_type": f"<{text}>"} for text in operands],
                "results": [{"memory_type": f"<{result}>"}],
            })  # fmt: skip
            before = [tiu, dma]
    return found


@pytest.fixture
def capture(tmp_path):
    path = unpacked("aks_bmodel", tmp_path)
    (path / NETWORK).write_text(MLIR)
    (path / LOCATIONS).write_text(json.dumps(entries(range(4))))
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A capture with its network, and the workbook of all of it."""
    folder = tmp_path_factory.mktemp("whole")
    path = unpacked("aks_bmodel", folder)
    (path / NETWORK).write_text(MLIR)
    (path / LOCATIONS).write_text(json.dumps(entries(range(4))))
    profile = open_profile(path)
    write_workbook(query_of(profile), folder / "book.xlsx")
    return profile, opened(folder / "book.xlsx")


def opened(path):
    """A workbook of which only what is asked for is read."""
    return openpyxl.load_workbook(path, read_only=True)


def last_of_each_id(lane, first, last):
    """Rows of a layer's commands, slowly: the last with each id."""
    rows = {}
    for row in np.argsort(lane["order"], kind="stable").tolist():
        rows[int(lane["command_id"][row])] = row
    return [row for number, row in rows.items() if first < number <= last]


def test_layer_sheets_come_first_and_add_up(whole):
    profile, book = whole
    assert book.sheetnames[:3] == ["Summary", "Layer by Layer Info", "Engine Summary"]
    sheet = book["Layer by Layer Info"]
    names = [cell.value for cell in sheet[9]]
    assert names[:3] == ["layer_id", "layer_name", "data_type"]
    rows = [dict(zip(names, row, strict=True)) for row in sheet.iter_rows(min_row=10, values_only=True)]
    assert len(rows) == 12
    wanted = entries(range(4))
    for row, entry in zip(rows, wanted, strict=True):
        lane = profile.lane("TIU", entry["core_id"])
        (first, _), (last, _) = entry["tiu_dma_id(before)"], entry["tiu_dma_id(after)"]
        mine = last_of_each_id(lane, first, last)
        assert mine
        assert row["alg_ops"] == int(lane["alg_ops"][mine].sum())
        assert row["sim_cycle"] == int(lane["cycles"][mine].sum())
        gdma = profile.lane("GDMA", entry["core_id"])
        mine = last_of_each_id(gdma, entry["tiu_dma_id(before)"][1], entry["tiu_dma_id(after)"][1])
        texts = profile.strings["direction"].texts(gdma["direction"][mine])
        touching = [size for size, text in zip(gdma["bytes"][mine].tolist(), texts, strict=True) if "DDR" in text]
        assert row["ddr<->l1/l2 bytes(B)"] == sum(touching)
    conv, product = rows[0], rows[1]
    assert (conv["layer_id"], conv["layer_name"], conv["data_type"]) == (1, "Conv2D", "FP16")
    assert [conv[name] for name in ("kh", "kw", "k_stride_h", "k_stride_w")] == [3, 5, 2, 1]
    assert [conv[name] for name in ("iN", "iC", "iH", "iW", "oH")] == [1, 64, 56, 56, 28]
    assert conv["weight_size"] == 64 * 64 * 15 * 2 + 64 * 4
    assert conv["ifm"] == conv["weight_size"] + conv["feature_size"] == 64 * 56 * 56 * 2 + conv["weight_size"]
    assert [product[name] for name in "mkn"] == [4, 512, 1024]
    assert sum(row["sim_cycle_ratio"] for row in rows) == pytest.approx(1, abs=0.001)


def test_groups_of_operations_are_added_up(whole):
    sheet = whole[1]["Summary"]
    assert [cell.value for cell in sheet[2]][1:8] == ["resnet", 0.008, "f16", "AKS", 262.144, 131.072, 16.384]
    # the figures that the reference gives for the same files
    rows = [[cell.value for cell in sheet[row]] for row in range(10, 14)]
    assert [row[1] for row in rows] == ["Conv", "Eltwise", "MatMul", "Overall"]
    assert [row[2] for row in rows] == [280832768, 142458184, 423307460, 846598412]
    assert [row[5] for row in rows] == [1144438784, 565960712, 1710481412, 3420880908]
    assert [row[8] for row in rows] == [39650, 18277, 60086, 118013]
    assert rows[3][9] == pytest.approx(118.013)
    assert rows[3][11] == pytest.approx(8473.64)
    assert [sheet.cell(row, 2).value for row in (16, 17, 18)] == ["Case", "origin", "100% Concurrency"]
    assert sheet["D18"].value == pytest.approx(118.013)


def test_rows_name_their_layer(whole, tmp_path):
    profile, book = whole
    for title, bounds in (("TIU_1", (0, 60, 150, 240)), ("GDMA_1", (0, 40, 90, 130))):
        sheet = book[title]
        named = 0
        for row in sheet.iter_rows(min_row=20, max_col=6, values_only=True):
            place = int(np.searchsorted(bounds, row[3])) - 1
            wanted = (4 + place, LAYERS[place][0][4:]) if 0 <= place < 3 else (None, "-")
            assert (row[4], row[5]) == wanted
            named += place < 3
        assert named > 0
    write_merged_csv(query_of(profile), tmp_path / "list.csv")
    assert b",Conv2D," in (tmp_path / "list.csv").read_bytes()


FEW = {"units": frozenset({0}), "end": 20_000}
GOOD = json.dumps(entries([0]))


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "{}", "[]", "[1, null, {}]", "[" * 100_000, '[{"tiu_dma_id(before)": [1], "opcode": 3}]',
     "\udcff", GOOD.replace("60", "-60"), GOOD.replace("60", "1" + "0" * 30),
     GOOD.replace('"core_id": 0', '"core_id": "x"'),
     json.dumps([{**entries([0])[0], "operands": [None, {"memory_type": 7}, {"memory_type": "<9x" * 40}], "results": 1,
                  "file-line": -1}])],
)  # fmt: skip
def test_odd_files_beside_a_capture_do_no_harm(tmp_path, text, request):
    (tmp_path / NETWORK).write_text(MLIR)
    (tmp_path / LOCATIONS).write_text(text, errors="surrogateescape")
    if read_layer_files(tmp_path)[0] is None:
        return  # what a workbook is then: the test below
    capture = request.getfixturevalue("capture")
    (capture / LOCATIONS).write_text(text, errors="surrogateescape")
    assert write_workbook(selected_query(open_profile(capture), **FEW), tmp_path / "book.xlsx") > 0
    assert "Summary" in loaded(tmp_path / "book.xlsx").sheetnames


@pytest.mark.parametrize(
    ("file", "text", "said", "severity"),
    [
        (LOCATIONS, "{", "It is not valid JSON (line 1, column 2).", "error"),
        (LOCATIONS, "[" * 100_000, "It is nested too deeply to be read.", "error"),
        (LOCATIONS, "9" * 5000, "It is not valid JSON.", "error"),
        (LOCATIONS, "{}", "It is not a list of layers.", "error"),
        (LOCATIONS, "[]", "The list of layers is empty.", "warning"),
        (LOCATIONS, json.dumps([1, *entries([0])]), "A layer does not list its commands.", "error"),
        (NETWORK, "\x00garbage", "No line names the network (module @NAME).", "error"),
        (NETWORK, None, f"{LOCATIONS} exists without {NETWORK}.", "note"),
        (LOCATIONS, None, f"{NETWORK} exists without {LOCATIONS}.", "note"),
    ],
)
def test_what_is_wrong_with_the_files_is_told(capture, tmp_path, file, text, said, severity):
    (capture / file).write_text(text) if text is not None else (capture / file).unlink()
    words = ["export", str(capture), str(tmp_path / "out"), "--only", "xlsx", "--cores", "0", "--range", "..1us"]
    assert main(words) == (severity == "error")
    book = opened(tmp_path / "out" / "PerfDoc" / "PerfAI_output.xlsx")
    rows = [row[0:1] + row[5:6] for row in book["Problems"].iter_rows(values_only=True)]
    assert (severity, said) in rows


def test_sound_files_need_no_words(capture, tmp_path, capsys):
    assert main(["export", str(capture), str(tmp_path / "out"), "--only", "xlsx", "--range", "..1us"]) == 0
    assert "tpuprof:" not in capsys.readouterr().err


def test_one_file_alone_is_not_enough(capture, tmp_path):
    (capture / NETWORK).unlink()
    write_workbook(selected_query(open_profile(capture), **FEW), tmp_path / "book.xlsx")
    assert loaded(tmp_path / "book.xlsx").sheetnames[0] == "Engine Summary"


@pytest.mark.parametrize("kind", ["bm1688_bmodel", "cv84x6_bmodel"])
def test_other_chips_have_layer_sheets_too(kind, tmp_path):
    path = write_capture(KINDS[kind], tmp_path).path
    (path / NETWORK).write_text(MLIR)
    (path / LOCATIONS).write_text(json.dumps(entries(range(2))))
    profile = open_profile(path)
    write_workbook(query_of(profile), tmp_path / "book.xlsx")
    sheet = opened(tmp_path / "book.xlsx")["Layer by Layer Info"]
    names = [cell.value for cell in sheet[9]]
    rows = [dict(zip(names, row, strict=True)) for row in sheet.iter_rows(min_row=10, values_only=True)]
    assert len(rows) == 6
    moved = 0
    for row, entry in zip(rows, entries(range(2)), strict=True):
        lane, gdma = (profile.lane(engine, entry["core_id"]) for engine in ("TIU", "GDMA"))
        first, last = entry["tiu_dma_id(before)"], entry["tiu_dma_id(after)"]
        assert row["sim_cycle"] == int(lane["cycles"][last_of_each_id(lane, first[0], last[0])].sum())
        mine = last_of_each_id(gdma, first[1], last[1])
        texts = profile.strings["direction"].texts(gdma["direction"][mine])
        touching = [size for size, text in zip(gdma["bytes"][mine].tolist(), texts, strict=True) if "DDR" in str(text)]
        assert row["ddr<->l1/l2 bytes(B)"] == sum(touching)
        moved += sum(touching)
    assert moved


def test_products_have_the_sizes_of_their_logical_shapes(capture, tmp_path):
    layers = entries(range(4))
    for layer in layers:
        if layer["opcode"] == "tpu.MatMul":
            layer["operands"] = [{"memory_type": "<4x64x256x1xf16>", "shape": [4, 64, 256]},
                                 {"memory_type": "<1x256x512x1xf16>", "shape": [1, 256, 512]}]  # fmt: skip
            layer["results"] = [{"memory_type": "<4x64x512x1xf16>", "shape": [4, 64, 512]}]
    (capture / LOCATIONS).write_text(json.dumps(layers))
    write_workbook(selected_query(open_profile(capture), **FEW), tmp_path / "book.xlsx")
    sheet = opened(tmp_path / "book.xlsx")["Layer by Layer Info"]
    names = [cell.value for cell in sheet[9]]
    rows = [dict(zip(names, row, strict=False)) for row in sheet.iter_rows(min_row=10, values_only=True)]
    product = next(row for row in rows if row["layer_name"] == "MatMul")
    assert [product[name] for name in "mkn"] == [256, 256, 512]
    assert [product[name] for name in ("iN", "iC", "iH", "iW")] == [4, 64, 256, 1]


def test_shapes_that_cannot_be_leave_those_of_memory(capture, tmp_path):
    shapes = [None, 7, [], [0, 4], [-1, 4], ["4", 4], [1 << 80, 4], [4] * 100, [True, None]]
    product = entries([0])[1]
    layers = []
    for number, shape in enumerate(shapes):
        tensors = {key: [{**tensor, "shape": shape} for tensor in product[key]] for key in ("operands", "results")}
        bounds = {"tiu_dma_id(before)": [10 * number] * 2, "tiu_dma_id(after)": [10 * number + 10] * 2}
        layers.append({**product, **tensors, **bounds})
    (capture / LOCATIONS).write_text(json.dumps(layers))
    write_workbook(selected_query(open_profile(capture), **FEW), tmp_path / "book.xlsx")
    sheet = opened(tmp_path / "book.xlsx")["Layer by Layer Info"]
    names = [cell.value for cell in sheet[9]]
    rows = [dict(zip(names, row, strict=False)) for row in sheet.iter_rows(min_row=10, values_only=True)]
    assert [[row[name] for name in "mkn"] for row in rows if row["layer_name"] == "MatMul"] == [[4, 512, 1024]] * 9


@pytest.mark.parametrize("kind", ["compiled", "measured", "bmodel_dynamic"])
def test_only_commands_of_the_model_s_streams_have_layers(kind, tmp_path):
    path = write_capture(KINDS[kind], tmp_path).path
    (path / NETWORK).write_text(MLIR)
    everything = [{**entries([0])[0], "tiu_dma_id(before)": [0, 0], "tiu_dma_id(after)": [10_000, 10_000]}]
    (path / LOCATIONS).write_text(json.dumps(everything))
    profile = open_profile(path)
    layers = layers_of(profile)
    for engine in ("TIU", "GDMA"):
        lane = profile.lane(engine, 0)
        by_node = np.array([text == "TDI" for text in profile.strings["mode"].texts(lane["mode"])])
        assert ((layers.indices(lane, slice(0, len(lane))) < 0) == by_node).all()
        assert by_node.any() == (kind != "measured")


def test_records_without_a_command_have_no_layer(tmp_path):
    path = write_capture(KINDS["measured"], tmp_path).path
    file = path / "cdmlib0_0.profile"
    file.write_bytes(b"".join(raw.block(*each) for each in raw.blocks_of(file.read_bytes()) if each[0] != 14))
    (path / NETWORK).write_text(MLIR)
    (path / LOCATIONS).write_text(json.dumps(entries([0])))
    profile = open_profile(path)
    layers = layers_of(profile)
    found = {engine: layers.indices(profile.lane(engine, 0), slice(0, None)).max() for engine in ("TIU", "GDMA")}
    assert found["TIU"] >= 0 > found["GDMA"]
