"""A capture of real hardware against the published converter's figures of it; skipped where it is not present."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

import openpyxl
import pytest

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.cli.main import main
from tpuprof_tui.model import Profile
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.files.summary_text import summary_text
from tpuprof_tui.sources.sophgo.files.workbook import write_workbook
from tpuprof_tui.views.registry import answer, view_of

_REAL = Path(__file__).resolve().parents[4] / "shared" / "vendor" / "real"
_CAPTURE = _REAL / "cdm_profile_data_dev0_bm1690"
pytestmark = pytest.mark.skipif(not _CAPTURE.is_dir(), reason="the capture of real hardware is not here")


@cache
def _profile() -> Profile:
    return open_profile(_CAPTURE)


def _beside(ending: str) -> Path:
    return _CAPTURE.with_name(_CAPTURE.name + ending)


def test_no_problem_and_the_length_of_the_model() -> None:
    device = _profile().device_part
    assert _profile().problems == ()
    assert (device.end_ns - device.start_ns, device.event_count) == (133_158, 242)


def test_every_instruction_is_the_converter_s() -> None:
    with gzip.open(_beside(".reference.jsonl.gz"), "rt", encoding="utf-8") as lines:
        reference = [json.loads(line) for line in lines][1:]
    for engine in ("TIU", "GDMA"):
        lane = _profile().lane(engine, 0)
        assert lane is not None
        wanted = [item["info"] for item in reference if item["engine"] == engine]
        assert _profile().strings["name"].texts(lane["name"]) == [info["Function Name"] for info in wanted]
        shift = wanted[0]["Start Time(ns)"] - lane["start"][0]
        assert (lane["start"] + shift).tolist() == [info["Start Time(ns)"] for info in wanted]
        assert (lane["end"] + shift).tolist() == [info["End Time(ns)"] for info in wanted]


def test_summary_is_the_converter_s() -> None:
    wanted = _beside(".reference.summary.txt").read_text(encoding="utf-8")
    assert summary_text(
        query_of(
            _profile(),
        )
    ).startswith(wanted.rstrip("\n"))


def test_copies_of_one_input_and_two_outputs() -> None:
    (copies,) = (lane for lane in _profile().lanes if lane.kind == "COPY")
    assert copies["bytes"].tolist() == [196_608, 57_344, 3_584]
    assert _profile().strings["name"].texts(copies["name"]) == ["input copy", "output copy", "output copy"]


def test_layers_have_the_figures_of_the_model_s_commands(tmp_path: Path) -> None:
    write_workbook(query_of(_profile()), tmp_path / "book.xlsx")
    book = openpyxl.load_workbook(tmp_path / "book.xlsx", read_only=True)
    rows = list(book["Layer by Layer Info"].iter_rows(min_row=9, values_only=True))
    columns = [rows[0].index(name) for name in ("layer_id", "alg_ops", "uarch_ops", "sim_cycle")]
    with _beside(".layers.jsonl").open(encoding="utf-8") as lines:
        known = {each["layer"]: each for each in map(json.loads, lines)}
    assert len(rows) - 1 == 187
    for row in rows[1:]:
        number, *figures = (row[column] for column in columns)
        each = known.get(number, {"alg_ops": 0, "uarch_ops": 0, "tiu_cycles": 0})
        assert figures == [each["alg_ops"], each["uarch_ops"], each["tiu_cycles"]]
    cases = [row for row in book["Summary"].iter_rows(values_only=True) if "100% Concurrency" in row]
    assert [cases[0][place] for place in (2, 3)] == [71.034, 62.124]


def test_layers_take_the_place_of_kernel_functions(capsys: pytest.CaptureFixture[str]) -> None:
    with _beside(".commands.jsonl").open(encoding="utf-8") as lines:
        known = [json.loads(line) for line in lines]
    profile = _profile()
    tiu = profile.lane("TIU", 0)
    assert tiu is not None
    assert tiu["cycles"][tiu["kernel"] >= 0].sum() == 62_124
    lanes = [lane for lane in profile.lanes if lane.kind in ("TIU", "GDMA")]
    assert sum(int((lane["kernel"] >= 0).sum()) for lane in lanes) == sum(row["layer"] is not None for row in known)
    told = answer(view_of(profile.vocabulary, "layers"), query_of(profile))
    assert sum(fact.value for fact in told.facts) == 133_158
    table = told.table("launched")
    columns = [table.column(key) for key in ("name", "result", "shape", "tiu_us")]
    slowest = next(zip(*columns, strict=True))
    assert slowest == ("Conv2D_5", "80_Relu", "1x24x64x64 f16", 26_596)
    assert main(["report", str(_CAPTURE), "operations", "--filter", "layer=Conv2D*"]) == 0
    assert "conv.normal" in capsys.readouterr().out
