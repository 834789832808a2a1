"""Layers of a compiled model in all that a profile tells: they take the place of kernel functions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from compiled_captures import compiled

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.cli.main import main
from tpuprof_tui.model import Profile
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.views.registry import answer, view_of

_ENGINES = ("TIU", "GDMA")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("bm1690_mlp_f16_mode2", tmp_path_factory.mktemp("layers"))


@pytest.fixture(scope="module")
def profile(folder: Path) -> Profile:
    return open_profile(folder)


def test_each_run_of_a_layer_is_a_scope_of_the_commands_that_the_compiler_lists(folder: Path, profile: Profile) -> None:
    entries = json.loads((folder / "tensor_location.json").read_text())
    assert len(profile.scopes) == 3 * len(entries)
    for number, lane in enumerate(each for each in profile.lanes if each.kind in _ENGINES):
        known = lane["kernel"] >= 0
        assert known.any()
        for row in np.flatnonzero(known).tolist():
            entry = entries[int(lane["kernel"][row])]
            before, after = (entry[f"tiu_dma_id({side})"][number] for side in ("before", "after"))
            assert before < lane["command_id"][row] <= after
            assert profile.scopes.kernel[lane["scope"][row]] == lane["kernel"][row]
        assert set(lane["batch"][known].tolist()) == {0, 1, 2}
        # runs lie one behind the other
        order = np.argsort(lane["start"][known], kind="stable")
        assert (np.diff(lane["batch"][known][order]) >= 0).all()


def test_the_view_tells_time_tensors_and_what_is_of_no_layer(profile: Profile) -> None:
    query = query_of(profile)
    told = answer(view_of(profile.vocabulary, "layers"), query)
    start, end = query.window
    inside, outside = (fact.value for fact in told.facts)
    assert inside + outside == end - start
    table = told.table("launched")
    columns = [table.column(key) for key in ("name", "launches", "result", "shape", "operands")]
    rows = {name: rest for name, *rest in zip(*columns, strict=True)}
    assert rows["Cast_8"] == [3, "sm_f32", "4x64x512 f32", "4x64x512 f16"]
    for lane in (lane for lane in profile.lanes if lane.kind == "TIU"):
        chosen = (lane["kernel"] >= 0) & (lane["role"] == 0)
        expected = int((lane["end"] - lane["start"])[chosen].sum())
        assert sum(table.column("tiu_us")) == expected
    overlap, sides = table.column("overlap_us"), zip(table.column("tiu_us"), table.column("gdma_us"), strict=True)
    assert all(0 <= both <= min(side) for both, side in zip(overlap, sides, strict=True))


def test_a_user_asks_for_layers_by_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summary", str(folder)]) == 0
    assert capsys.readouterr().out.startswith("Cast_8: exposed transfers")
    assert main(["instructions", str(folder), "--filter", "layer=MatMul* run=1"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {(each["layer"], each["run"]) for each in found} == {("MatMul_5", 1)}
    assert not any("kernel_func" in each for each in found)


def test_damaged_layers_leave_the_capture_as_it_was(folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "tensor_location.json").write_text("[{]")
    found = open_profile(tmp_path)
    assert not len(found.scopes)
    assert found.vocabulary.scope.one == "kernel function"
    assert [problem.file for problem in found.problems] == ["tensor_location.json"]
    assert found.event_count == open_profile(folder).event_count
