"""The view of steps, and every view of one step: on the command line, in JSON and in Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.cli.main import main
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.views.registry import answer, view_of

SAMPLES = Path(__file__).parents[2] / "samples"
DECODE, BMODEL = str(SAMPLES / "aks_decode_mode1"), str(SAMPLES / "aks_bmodel")


def told(path: str, view: str, **asked):
    query = query_of(open_profile(path), **asked)
    return answer(view_of(query.vocabulary, view), query)


def rows(found, key: str) -> list[dict]:
    table = found.table(key)
    return [dict(zip([column.key for column in table.columns], row, strict=True)) for row in table.rows()]


def test_batches_and_their_layers():
    found = told(DECODE, "steps")
    assert (found.figure("steps"), found.figure("warm_up")) == (2, 0)
    first, second = rows(found, "steps")
    assert (first["step"], second["step"], second["number"]) == ("batch 0", "batch 1", 1)
    assert (first["gap_us"], second["gap_us"]) == (None, second["start_us"] - first["start_us"] - first["length_us"])
    assert second["delta_us"] == -first["delta_us"] == (second["length_us"] - first["length_us"]) / 2
    assert found.figure("median_us") == (first["length_us"] + second["length_us"]) / 2
    steps, layers = rows(found, "repeats")
    assert (steps["level"], steps["what"], steps["count"], steps["launches"]) == (0, "batches", 2, 21)
    assert (layers["level"], layers["launches"], layers["count"]) == (1, 9, 4)
    assert layers["what"] == "rmsnorm_multi_core ... all_reduce_multi_core"
    assert layers["low_us"] <= layers["median_us"] <= layers["high_us"] <= layers["longest_us"]
    assert found.table("steps").target_of(1).step == 1


@pytest.mark.parametrize("number", [0, 1])
def test_a_row_is_what_other_views_say_of_the_step(number):
    row = rows(told(DECODE, "steps"), "steps")[number]
    units = rows(told(DECODE, "units", step=number), "units")
    for key in ("busy_us", "compute_us", "transfer_us", "exposed_us"):
        assert sum(unit[key] for unit in units) == row[key]
    overview = told(DECODE, "overview", step=number)
    assert overview.figure("total_us") == row["length_us"], "the window is the step's"
    assert overview.figure("events") == row["events"]
    (alone,) = rows(told(DECODE, "steps", step=number), "steps")
    assert alone == row


def test_a_unit_alone():
    profile = open_profile(DECODE)
    group = profile.units[3]
    from tpuprof_tui.analysis.selecting.state import Scope

    found = rows(told(DECODE, "steps", scope=Scope(group)), "steps")
    for number, row in enumerate(found):
        (unit,) = rows(told(DECODE, "units", scope=Scope(group), step=number), "units")
        assert (row["busy_us"], row["exposed_us"]) == (unit["busy_us"], unit["exposed_us"])
    assert told(DECODE, "steps", scope=Scope(lane=0)).missing


def test_a_range_and_a_filter():
    whole = rows(told(DECODE, "steps"), "steps")
    (second,) = rows(told(DECODE, "steps", range=(1, 10**9)), "steps")
    assert second == whole[1], "the first began before"
    for row, all_of in zip(rows(told(DECODE, "steps", filter="engine=TIU"), "steps"), whole, strict=True):
        assert (row["compute_us"], row["transfer_us"]) == (all_of["compute_us"], 0)
        assert row["events"] < all_of["events"]
        assert row["length_us"] == all_of["length_us"]


def test_what_repeats_is_marked_as_found():
    found = told(BMODEL, "steps")
    assert [row["step"] for row in rows(found, "steps")] == ["step 0", "step 1"]
    assert found.table("steps").guessed == {0, 1}
    assert "were marked" in found.notes[0]


def test_no_steps():
    (missing,) = told(str(SAMPLES / "aks_decode_mode0"), "steps").missing
    assert missing.sentence == ("No batches are recorded, and no sequence of launches repeats. "
                                "It needs a profile of mode 1.")  # fmt: skip


# the command line


def printed(capsys, *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_report_as_json(capsys):
    record = json.loads(printed(capsys, "report", DECODE, "steps", "overview", "--step", "1", "--json"))
    steps = record["views"]["steps"]["workers"]["aks_decode_mode1"]["tables"]["steps"]
    keys = [column["key"] for column in steps["columns"]]
    (row,) = steps["rows"]
    figures = record["views"]["overview"]["workers"]["aks_decode_mode1"]["figures"]
    assert row[keys.index("length_us")] == figures["total_us"]
    assert row[keys.index("events")] == figures["events"] == 7278


def test_the_summary_of_a_step(capsys):
    text = printed(capsys, "summary", DECODE, "--step", "1")
    assert text.splitlines()[2].endswith("14,556 instructions, batch 1 only")
    assert "Total time        1.537 ms" in text
    assert "batch 0" not in text
    assert "batch 0" in printed(capsys, "summary", DECODE)
    assert "Batches" not in printed(capsys, "summary", str(SAMPLES / "aks_decode_mode2")), "one alone says nothing"


def test_instructions_of_a_step(capsys):
    lines = printed(capsys, "instructions", DECODE, "--step", "1").splitlines()
    assert {json.loads(line)["batch_launch"] for line in lines} == {1}
    assert len(lines) == 7278
    both = printed(capsys, "instructions", DECODE, "--step", "0", "--filter", "TIU | SDMA", "--columns", "engine,step",
                   "--format", "csv").splitlines()  # fmt: skip
    assert set(both[1:]) == {"TIU,0"}


def test_an_export_of_a_step(capsys, tmp_path):
    sizes = {}
    for name, words in (("all", ()), ("one", ("--step", "1"))):
        printed(capsys, "export", DECODE, str(tmp_path / name), "--only", "pftrace", *words)
        sizes[name] = (tmp_path / name / "perfetto.pftrace").stat().st_size
    assert sizes["one"] < 0.7 * sizes["all"]


@pytest.mark.parametrize("command", ["summary", "report", "instructions", "export"])
def test_a_step_that_is_not_there(command, capsys, tmp_path):
    words = (str(tmp_path / "out"),) if command == "export" else ()
    assert main([command, DECODE, *words, "--step", "2"]) == 2
    assert "The capture has no batch 2. There are: 0, 1." in capsys.readouterr().err
    assert main([command, str(SAMPLES / "aks_decode_mode0"), *words, "--step", "0"]) == 2
    assert "no batches, and no sequence of its launches repeats" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_figures_and_repetitions_are_of_the_selected_steps():
    whole = told(DECODE, "steps")
    _, second = rows(whole, "steps")
    found = told(DECODE, "steps", step=1)
    assert (found.figure("steps"), found.figure("median_us")) == (1, second["length_us"])
    steps, layers = rows(found, "repeats")
    assert (steps["count"], layers["count"]) == (1, 2)
    assert steps["median_us"] == second["length_us"]
    # a range in which no step starts has no usual length
    nothing = told(DECODE, "steps", range=(second["start_us"] + 1, second["start_us"] + 2))
    assert nothing.figure("steps") == 0
    assert not any(fact.key == "median_us" for fact in nothing.facts)
    assert not rows(nothing, "repeats")
    # a filter hides launches
    filtered = told(DECODE, "steps", filter="dur>1us")
    assert not rows(filtered, "repeats")
    assert any("not narrowed by the filter" in note for note in filtered.notes)


@pytest.mark.parametrize(
    ("view", "selection"), [("critical_path", {"step": 1}), ("critical_path", {"filter": "dur>1us"})]
)
def test_a_view_that_does_not_follow_says_so(view, selection):
    known = told(DECODE, view).notes
    assert any(
        "is that of all instructions" in note for note in told(DECODE, view, **selection).notes if note not in known
    )
