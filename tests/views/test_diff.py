"""``tpuprof diff``: a capture against itself, against changed ones, and that sums close."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from msgspec.structs import replace
from profiles import make_lane, make_profile, session_of

from tpuprof_tui.analysis.compare.match import paired_events, paired_launches
from tpuprof_tui.analysis.compare.work import JointWork
from tpuprof_tui.analysis.operation_names import renamed_operations
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.cli.json_schema import schema_text
from tpuprof_tui.cli.main import main
from tpuprof_tui.cli.printing import MOST_BYTES
from tpuprof_tui.model import Profile, Scopes, Strings
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.views.answer import Answer, Column, Table, Target
from tpuprof_tui.views.comparing import Compared, joined, view_to_compare
from tpuprof_tui.views.diff_report import diff_record, selected_views
from tpuprof_tui.views.differences import difference_text, differences_of

SAMPLES = Path(__file__).parents[2] / "samples"

import torch_trace  # noqa: E402
from capture_writer.capture import write_capture  # noqa: E402
from capture_writer.kinds import KINDS  # noqa: E402
from capture_writer.options import Options  # noqa: E402

BASE = Options("base", layers=2, batches=4, cores=(0, 1, 2, 3))
STEP = ("embedding", "rmsnorm", "matmul", "mlp", "rmsnorm", "lm_head", "sampling")
SLOW = "llama_mlp_multi_core"


def compared(base: Profile, other: Profile, step: int | None = None) -> Compared:
    return Compared(*(Query(session_of(profile), step=step) for profile in (base, other)))


def record_of(both: Compared, *views: str) -> dict:
    record = json.loads(json.dumps(diff_record(both, selected_views(both, views))))
    closes(record)
    return record


def rows_of(record: dict, view: str, table: str) -> list[dict]:
    told = record["views"][view]["tables"][table]
    keys = [column["key"] for column in told["columns"]]
    return [dict(zip(keys, row, strict=True)) for row in told["rows"]]


def closes(record: dict) -> None:
    """Contributors of each view add up to the work, steps and gaps to the total, launches to those of each side."""
    verdict = record["verdict"]
    by_view: Counter[str] = Counter()
    for each in verdict["contributors"]:
        by_view[each["view"]] += round(each["delta_us"] * 1000)
        assert each["delta_us"] == pytest.approx(each["other_us"] - each["base_us"], abs=1e-6)
    assert set(by_view.values()) <= {round(verdict["work"]["delta_us"] * 1000)}
    sizes = [abs(each["delta_us"]) for each in verdict["contributors"]]
    assert sizes == sorted(sizes, reverse=True)
    if "steps" in record["views"]:
        parts = rows_of(record, "steps", "parts")
        assert sum(row["delta_us"] for row in parts) == pytest.approx(verdict["total"]["delta_us"])
    if "alignment" in record["views"]:
        figures = record["views"]["alignment"]["figures"]
        assert figures["matched"] + figures["removed"] == figures["base_launches"]
        assert figures["matched"] + figures["added"] == figures["other_launches"]
        assert figures["changed"] <= figures["matched"]
        # launches that nothing names stand in rows by how many commands they have, which may differ
        for table in ("launches", "operations") if "alignment" not in by_view else ():
            for row in rows_of(record, "alignment", table):
                assert row["matched"] + row["removed"] == row["base_count"] or row["moved"]
                assert row["matched"] + row["added"] == row["other_count"] or row["moved"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    kept: dict[str, Profile] = {}

    def made(name: str, **options: object) -> Profile:
        if name not in kept:
            kept[name] = open_profile(
                write_capture(dataclasses.replace(BASE, name=name, **options), folder, truth=False).path
            )
        return kept[name]

    return made


@pytest.mark.parametrize("name", ["aks_decode_mode0", "aks_decode_mode1", "aks_decode_mode2", "aksv_cdma"])
def test_a_capture_against_itself(name):
    profile = open_profile(SAMPLES / name)
    record = record_of(compared(profile, profile))
    assert record["verdict"]["status"] == "same"
    for view, told in record["views"].items():
        assert {key: value for key, value in told["figures"].items() if key.startswith("delta_") and value} == {}
        for table in told["tables"]:
            for row in rows_of(record, view, table):
                assert row["status"] in ("same", None), (view, table)
                assert not any(value for key, value in row.items() if key.startswith("delta_"))
    assert {each["status"] for each in record["verdict"]["contributors"]} == {"same"}
    figures = record["views"]["alignment"]["figures"]
    assert (figures["added"], figures["removed"], figures["changed"]) == (0, 0, 0)


def test_workers_of_one_rank_pair_by_their_order(tmp_path):
    """Two traces of one process, taken one after the other, have one rank: each is compared with itself."""
    for name, length in (("first", 100), ("second", 900)):
        record = {"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1000, "dur": length,
             "args": {"device": 0, "stream": 7}}]}  # fmt: skip
        (tmp_path / f"{name}.pt.trace.json").write_text(json.dumps(record))
    both = compared(open_profile(tmp_path), open_profile(tmp_path))
    assert [(one.key, two.key) for one, two in both.pairs] == [("first", "first"), ("second", "second")]
    for told in record_of(both)["views"].values():
        assert not [value for key, value in told["figures"].items() if key.startswith("delta_") and value]


def test_rows_of_workers_with_other_columns_are_compared_too(tmp_path):
    """Two ranks, one of which lacks a metric: each row is there, largest difference of the main number first."""
    paths = []
    for number, side in enumerate(("base", "other")):
        paths.append(shutil.copytree(SAMPLES / "ascend_synthetic", tmp_path / side))
        for rank in (0, 1):
            file = paths[-1] / f"rank{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
            lines = file.read_text().splitlines()
            if rank:
                lines = [line.rpartition(",")[0] for line in lines]
                lines[1] = lines[1].replace(",41.500,", f",{41.5 + 100 * number},")
            file.write_text("\n".join(lines) + "\n")
    both = compared(*(open_profile(path) for path in paths))
    record = record_of(both, "kernels")
    rows = rows_of(record, "kernels", "kernels")
    assert Counter(row["worker"] for row in rows) == {"rank0_ascend_pt": 50, "rank1_ascend_pt": 50}
    assert sum(row["delta_duration_us"] for row in rows) == 100
    assert (rows[0]["worker"], rows[0]["delta_duration_us"]) == ("rank1_ascend_pt", 100)
    assert rows[0]["base_aic_mac_ratio"] == 0.82
    assert "base_aiv_vec_ratio" in rows[0]
    assert rows[0]["base_aiv_vec_ratio"] is None
    (first, *_) = rows_of(record, "kernels", "by_name")
    assert (first["worker"], first["delta_total_us"]) == ("rank1_ascend_pt", 100)


def test_figures_of_several_workers_are_rows(capsys):
    """A row for each worker: there is no single figure."""
    path = str(SAMPLES / "torch_cuda_synthetic")
    assert main(["report", path, "overview", "--json"]) == 0
    workers = json.loads(capsys.readouterr().out)["views"]["overview"]["workers"]
    assert main(["diff", path, path, "overview", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(json.loads(schema_text("diff"))).validate(record)
    rows = {row["worker"]: row for row in rows_of(record, "overview", "workers")}
    assert rows.keys() == workers.keys()
    for worker, told in workers.items():
        for name, value in told["figures"].items():
            assert (rows[worker][f"base_{name}"], rows[worker][f"other_{name}"]) == (value, value)
            assert rows[worker][f"delta_{name}"] == 0
    assert not record["views"]["overview"]["figures"]


def test_a_slower_kernel_is_the_cause(written):
    both = compared(written("base"), written("slower", slower=("mlp:1.2",), run=2))
    record = record_of(both)
    first = record["verdict"]["contributors"][0]
    # the total grew by what one of many kernels did: it may be within what runs differ by, the kernel is not
    assert record["verdict"]["status"] in ("slower", "unclear")
    assert (first["view"], first["name"], first["status"]) == ("kernels", "llama_mlp_multi_core", "more")
    assert first["delta_us"] / first["base_us"] == pytest.approx(0.2, abs=0.05)
    assert record["verdict"]["why"].startswith("llama_mlp_multi_core took longer")
    assert record["views"]["alignment"]["figures"]["changed"] == 0
    # the other way round it is the same, less
    back = record_of(compared(both.other.profile, both.base.profile), "kernels")
    assert back["verdict"]["status"] in ("faster", "unclear")
    assert back["verdict"]["contributors"][0]["delta_us"] == -first["delta_us"]


@pytest.mark.parametrize("seed", range(1, 6))
def test_noise_alone_is_no_change(written, seed):
    """Runs lie a percent apart, and launches in them some: neither alone, nor both together, is told as a change."""
    few = {"layers": 1, "batches": 3, "cores": (0, 1), "seed": seed}
    verdict = record_of(compared(written(f"seed{seed}", **few), written(f"noise{seed}", run=3, **few)), "kernels")[
        "verdict"
    ]
    assert verdict["status"] in ("same", "unclear")
    assert {each["status"] for each in verdict["contributors"]} <= {"same", "unclear"}
    assert "noise" in verdict["why"]


def test_work_that_is_new_or_gone(written):
    base = written("step", kernels=STEP)
    other = written("more", kernels=(*STEP, "rope"), run=2)
    record = record_of(compared(base, other), "alignment", "kernels")
    assert record["verdict"]["why"].startswith("llama_rope") or " is new: " in record["verdict"]["why"]
    assert record["views"]["alignment"]["figures"]["added"] == 16
    assert record["views"]["alignment"]["figures"]["removed"] == 0
    new = [each for each in record["verdict"]["contributors"] if each["status"] == "added"]
    assert new[0]["view"] == "kernels"
    assert (new[0]["base_us"], new[0]["base_count"]) == (0, 0)
    gone = record_of(compared(other, base), "alignment", "kernels")
    assert " is gone: " in gone["verdict"]["why"]
    assert gone["views"]["alignment"]["figures"]["removed"] == 16
    # one launch of several of a kernel
    fewer = record_of(compared(base, written("fewer", kernels=tuple(dict.fromkeys(STEP)), run=2)), "alignment")
    assert fewer["verdict"]["why"].startswith("rmsnorm_multi_core took less")
    assert "16 launches removed" in fewer["verdict"]["why"]


def test_another_shape_is_told_with_its_operands(written):
    tiles = {"kernels": ("embedding", "prefill", "sampling")}
    record = record_of(compared(written("tiles", prefill_tiles=32, **tiles), written("fewer tiles", prefill_tiles=40,
                                                                                   run=3, **tiles)))  # fmt: skip
    figures = record["views"]["alignment"]["figures"]
    assert (figures["changed"], figures["matched"], figures["added"]) == (16, 48, 0)
    assert "16 launches with other commands or operands" in record["verdict"]["why"]


def test_a_core_that_comes_late_is_named(written):
    record = record_of(compared(written("base"), written("late", late=("2:40000",))), "waits", "steps")
    assert record["verdict"]["status"] == "slower"
    assert abs(record["verdict"]["work"]["delta_us"]) < 0.02 * record["verdict"]["work"]["base_us"]
    assert "Core 2 comes later to where the others wait" in record["verdict"]["why"]


def test_work_on_another_core_has_moved(written):
    base = written("base")
    kernel = base.strings["kernel"].index("lm_head_matmul_multi_core")
    lanes = {(lane.kind, lane.group): lane for lane in base.lanes}
    # what core 0 did of a kernel, core 1 does beside its own
    for kind in ("TIU", "GDMA"):
        mine, theirs = lanes[kind, 0], lanes[kind, 1]
        goes = np.flatnonzero(mine["kernel"] == kernel)
        lanes[kind, 0] = mine.select_rows(np.flatnonzero(mine["kernel"] != kernel))
        keys = [key for key in mine.columns if key in theirs and key != "core"]
        columns = {key: np.concatenate([mine.take(key, goes), theirs[key]]) for key in keys}
        order = np.argsort(columns["start"], kind="stable")
        lanes[kind, 1] = replace(theirs, columns={key: values[order] for key, values in columns.items()},
                                 registers=None, describe=None)  # fmt: skip
    moved = replace(base, lanes=tuple(lanes.values()), links=None)
    record = record_of(compared(base, moved), "alignment", "kernels")
    assert record["verdict"]["work"]["delta_us"] == 0
    assert record["views"]["alignment"]["figures"]["moved"] == 4
    assert record["views"]["alignment"]["figures"]["removed"] == 0
    assert "lm_head_matmul_multi_core" in record["verdict"]["why"]
    assert "moved from Core 0 to Core 1" in record["verdict"]["why"]


def test_a_recording_that_names_nothing_tells_the_cause_by_its_launches(written):
    """Mode 0: launches are told by ids that start anew, and apart by how many commands they have."""
    few = {"mode": 0, "layers": 1, "batches": 2, "cores": (0, 1)}
    base = written("base0", **few)
    causes = {
        "slower0": ({"slower": ("mlp:1.2",), "run": 2}, r"A launch of 66 TIU .* took longer: .*, the same commands"),
        "noise0": ({"run": 3}, "No .*part changed by more than noise"),
        "late0": ({"late": ("1:40000",)}, "Waits, not work: Core 1 comes later to where the others wait, each"),
        "lost0": ({"lost": 0.05}, "Records are lost, [0-9]+ of the other"),
    }
    for name, (options, cause) in causes.items():
        record = record_of(compared(base, written(name, **few, **options)), "alignment")
        assert re.match(cause, record["verdict"]["why"]), record["verdict"]["why"]
    tiles = {**few, "kernels": ("embedding", "prefill", "sampling")}
    shape = compared(written("tiles0", prefill_tiles=32, **tiles), written("tiles40", prefill_tiles=40, **tiles))
    figures = record_of(shape, "alignment")["views"]["alignment"]["figures"]
    assert (figures["changed"], figures["added"], figures["removed"]) == (4, 0, 0)
    assert " became " in shape.verdict.why


@pytest.fixture(scope="module")
def full_duplex(tmp_path_factory):
    """Two runs of a program whose ports send and receive at once, by kind and mode."""
    folder = tmp_path_factory.mktemp("duplex")

    def made(kind: str, mode: int) -> list[Profile]:
        options = [dataclasses.replace(KINDS[kind], name=f"{kind}_{mode}_{run}", mode=mode, run=run) for run in (1, 3)]
        return [open_profile(write_capture(each, folder, truth=False).path) for each in options]

    return made


@pytest.mark.parametrize(("kind", "mode"), [("cdma", 1), ("cdma", 0), ("bmodel_cdma", 0)])
def test_which_direction_of_a_port_starts_first_is_no_change(full_duplex, kind, mode):
    base, other = full_duplex(kind, mode)
    assert any((np.diff(lane["order"]) < 0).any() for lane in other.lanes)
    figures = record_of(compared(base, other), "alignment")["views"]["alignment"]["figures"]
    assert (figures["added"], figures["removed"], figures["changed"]) == (0, 0, 0)
    # the figures leave out launches of ports
    work = JointWork(base, other)
    pairs = paired_launches(work)
    assert len(pairs) == len(work.base.launches) == len(work.other.launches)
    assert not pairs.changed.any()


def test_other_commands_of_a_port_are_changes(full_duplex):
    base, other = full_duplex("cdma", 1)
    port = next(index for index, lane in enumerate(other.lanes) if lane.kind == "CDMA")
    lane = other.lanes[port]
    sends = np.flatnonzero(lane["name"] == other.strings["name"].index("send"))
    one, two = next(
        pair for pair in itertools.pairwise(sends)
        if lane["scope"][pair[0]] == lane["scope"][pair[1]]
    )  # fmt: skip

    def changed(**columns: np.ndarray) -> tuple[int, ...]:
        lanes = list(other.lanes)
        lanes[port] = replace(lane, columns={**lane.columns, **columns}, registers=None, describe=None)
        record = record_of(compared(base, replace(other, lanes=tuple(lanes), links=None)), "alignment")
        return tuple(record["views"]["alignment"]["figures"][key] for key in ("added", "removed", "changed"))

    for column in ("bytes", "name"):
        values = lane[column].copy()
        values[two] = 7 if column == "bytes" else other.strings["name"].index("receive")
        assert changed(**{column: values}) == (0, 0, 1)
    # the same commands in another order
    order = lane["order"].copy()
    order[[one, two]] = order[[two, one]]
    assert changed(order=order) == (0, 0, 1)
    fewer = lane.select_rows(np.delete(np.arange(len(lane)), two))
    lanes = [*other.lanes[:port], fewer, *other.lanes[port + 1 :]]
    record = record_of(compared(base, replace(other, lanes=tuple(lanes), links=None)), "alignment")
    assert record["views"]["alignment"]["figures"]["changed"] == 1


def test_lost_records_make_what_they_could_explain_unclear(written):
    both = compared(written("base"), written("lost", lost=0.05))
    record = record_of(both, "kernels")
    assert record["verdict"]["lost"]["other"] > 0
    assert record["verdict"]["lost"]["base"] == 0
    assert "less" not in {each["status"] for each in record["verdict"]["contributors"]}
    assert both.verdict.why.startswith("Records are lost")


@pytest.mark.parametrize("kind", ["lost", "lost_mode2"])
def test_the_same_belongs_together_whichever_side_comes_first(tmp_path, kind):
    base, other = (
        open_profile(write_capture(KINDS[each], tmp_path, truth=False).path) for each in ("decode_mode1", kind)
    )
    found = []
    for one, two in ((base, other), (other, base)):
        work = JointWork(one, two)
        launches = paired_launches(work)
        pairs = [(each.base.tolist(), each.other.tolist()) for each in (launches, paired_events(work, launches))]
        found.append([{*zip(*(each if one is base else each[::-1]), strict=True)} for each in pairs])
    assert found[0] == found[1]


def test_a_core_that_lost_its_commands_is_no_reason_to_stop(tmp_path):
    """One core of a capture of mode 2 lacks the columns that its others have: it is compared as far as it goes."""
    base = dataclasses.replace(BASE, mode=2, layers=1, batches=2)
    paths = [write_capture(dataclasses.replace(base, name=name), tmp_path, truth=False).path for name in ("a", "b")]
    core = paths[1] / "cdmlib0_1.profile"
    os.truncate(core, core.stat().st_size // 5)
    sides = [open_profile(path) for path in paths]
    assert len({frozenset(lane.keys()) for lane in sides[1].lanes if lane.kind == "TIU"}) > 1
    for one, two in (sides, sides[::-1]):
        record = record_of(compared(one, two), "operations", "alignment")
        assert sum(record["verdict"]["lost"].values()) > 0
        assert "are lost" in record["verdict"]["why"]
        assert not {each["status"] for each in record["verdict"]["contributors"]} & {"added", "removed", "more", "less"}


def test_operations_pair_by_their_codes():
    one, two = (open_profile(SAMPLES / name) for name in ("aks_decode_mode1", "aks_decode_mode2"))
    record = record_of(compared(one, two), "operations")
    rows = {row["name"]: row for row in rows_of(record, "operations", "by_name")}
    assert "arith.mul" not in rows
    assert rows["mul"]["base_count"] == 1694
    assert rows["mul"]["other_count"] == 202


def test_some_rows_of_a_comparison(capsys):
    paths = [str(SAMPLES / name) for name in ("aks_decode_mode1", "aks_decode_mode2")]
    told = []
    for more in ([], ["--limit", "2", "--offset", "1"]):
        assert main(["diff", *paths, "operations", "--json", *more]) == 0
        told.append(json.loads(capsys.readouterr().out)["views"]["operations"]["tables"]["by_name"])
    whole, some = told
    assert (whole["total_rows"], whole["truncated"]) == (len(whole["rows"]), False)
    assert some["rows"] == whole["rows"][1:3]
    assert (some["total_rows"], some["truncated"]) == (len(whole["rows"]), True)


def test_views_are_the_reports_side_by_side(capsys):
    paths = [str(SAMPLES / name) for name in ("aks_decode_mode1", "aks_decode_mode2")]
    sides = []
    for path in paths:
        assert main(["report", path, "units", "--json"]) == 0
        (told,) = json.loads(capsys.readouterr().out)["views"]["units"]["workers"].values()
        sides.append(told["tables"]["units"])
    assert main(["diff", *paths, "units", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(json.loads(schema_text("diff"))).validate(record)
    rows = rows_of(record, "units", "units")
    keys = [column["key"] for column in sides[0]["columns"]]
    base, other = ({row[0]: dict(zip(keys, row, strict=True)) for row in side["rows"]} for side in sides)
    assert {row["unit"] for row in rows} == base.keys() | other.keys()
    for row in rows:
        ours, theirs = base[row["unit"]], other.get(row["unit"])
        assert row["base_busy_us"] == ours["busy_us"]
        assert row["other_busy_us"] == (theirs["busy_us"] if theirs else 0)
        assert row["status"] == ("removed" if theirs is None else row["status"])


def test_exit_status_and_what_cannot_be_compared(capsys, written):
    paths = [str(SAMPLES / name) for name in ("aks_decode_mode1", "aksv_cdma", "aks_damaged", "aks_decode_mode0")]
    assert main(["diff", paths[3], paths[1]]) == 2  # of other chips, and one of them names nothing
    told = capsys.readouterr().err
    assert "AKSV" in told
    assert "aks_decode_mode0" in told
    assert main(["diff", paths[0], paths[2]]) == 1
    assert main(["diff", paths[0], paths[0], "--step", "9"]) == 2
    assert main(["diff", paths[0], paths[0], "nonsense"]) == 2
    assert main(["diff", paths[0], paths[0], "--run-noise", "lots"]) == 2
    capsys.readouterr()
    assert main(["diff", paths[0], paths[0], "kernels", "--step", "1", "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("### Same: ")


def test_markdown_of_views_is_short_unless_a_limit_is_given(capsys, written):
    words = ["diff", str(written("base").path), str(written("slower again", run=2).path), "kernels", "operations"]
    words += ["alignment", "lanes", "units", "waits", "--markdown"]
    assert main(words) == 0
    short = capsys.readouterr().out
    assert len(short.encode()) <= MOST_BYTES
    assert short.splitlines()[-1].startswith("Left out, as it is long: ")
    assert main([*words, "--limit", "100"]) == 0
    assert len(capsys.readouterr().out.encode()) > MOST_BYTES


def test_people_are_told_the_cause_first(capsys, written):
    paths = [written("base").path, written("much slower", slower=("mlp:1.6",), run=2).path]
    assert main(["diff", *paths]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Slower per batch: ")
    assert lines[1].startswith("Why: llama_mlp")


def test_operations_with_several_names_for_one_code_are_one():
    """One recording has two names for a code, the other one: their sums are compared, nothing is new or gone."""
    sides = []
    for texts, codes in ((("first", "second", "same"), (0, 1, 2)), (("both", "same"), (0, 0, 1))):
        lane = make_lane("TIU", starts=[0, 10, 30], ends=[10, 30, 60], name=np.array(codes, np.int32),
                         tiu_type=np.array([2, 2, 3]), tiu_function=np.array([4, 4, 0]))  # fmt: skip
        sides.append(make_profile([lane], strings={"name": Strings(texts)}))
    assert renamed_operations(*sides) == dict.fromkeys(("first", "second", "both"), "first, second")
    assert renamed_operations(*sides[::-1]) == dict.fromkeys(("first", "second"), "both")
    for base, other in (sides, sides[::-1], (sides[0], sides[0])):
        both = compared(base, other)
        (table,) = both.answer(view_to_compare(base, other, "operations")).tables
        keys = [column.key for column in table.columns]
        rows = [dict(zip(keys, row, strict=True)) for row in table.rows()]
        assert {row["delta_total_us"] for row in rows} == {0}
        assert {row["status"] for row in rows} == {"same"}
        assert [part.delta for part in both.comparison.breakdowns["operations"]] == [0] * len(rows)


def test_what_does_not_repeat_varies_as_its_like_does():
    """An operation that nothing repeats is judged by how much operations vary, not by how much their launches do."""
    random, sides = np.random.default_rng(5), []
    for single in (100, 116):
        length = np.append(np.maximum(1, 100 + 13 * random.standard_normal(400)).astype(np.int64), single)
        end = np.cumsum(length + 1)
        scope = np.append(np.repeat(np.arange(4), 100), 4)
        kernel = np.append(np.zeros(400, np.int32), np.int32(1))
        lane = make_lane("TIU", starts=end - length, ends=end, name=kernel, kernel=kernel, scope=scope,
                         tiu_type=np.full(401, 3), tiu_function=np.append(np.zeros(400, np.int64), 1))  # fmt: skip
        strings = {"name": Strings(("many", "once")), "kernel": Strings(("loop", "tail"))}
        (core,) = make_profile([lane], strings=strings).units
        scopes = Scopes(kernel=np.array([0, 0, 0, 0, 1], np.int32), group=np.full(5, core, np.int32))
        sides.append(make_profile([lane], strings=strings, scopes=scopes))
    both = compared(*sides)
    assert both.comparison.noise.within < 0.03 < 0.1 < both.comparison.within_events
    (once,) = [part for part in both.comparison.breakdowns["operations"] if part.name == "once"]
    assert (once.delta, once.status) == (16, "unclear")


def test_a_launch_that_took_longer_is_a_difference_where_no_event_alone_is(written):
    """The launches of a kernel function 20 % slower are told, each at the event that it comes from the most."""
    base, other = (session_of(written(name, **options)) for name, options in
                   (("base", {}), ("slower", {"slower": ("mlp:1.2",), "run": 2})))  # fmt: skip
    found = differences_of(replace(other, baseline=base))
    events, before, after = found.launches
    kernels = Counter()
    for number, there, here in zip(events.tolist(), before.tolist(), after.tolist(), strict=True):
        lane, row = other.locate(number)
        kernels[other.profile.text("kernel", int(other.profile.lanes[lane]["kernel"][row]))] += 1
        assert found.launch_at(number) == (there, here)
        assert found.differs[number]
    launches = int((other.profile.scopes.kernel == list(other.profile.strings["kernel"]).index(SLOW)).sum())
    assert kernels[SLOW] > 0.9 * launches
    assert kernels[SLOW] > 0.8 * sum(kernels.values())
    number = int(events[np.argmax(after - before)])
    assert "; its launch: " in difference_text(replace(other, baseline=base), found, number)
    # beside itself nothing differs
    assert not len(differences_of(replace(base, baseline=base)).launches[0])


def test_rows_that_are_one_on_the_other_side_are_added_up_with_their_mean():
    columns = (Column("name", "Name"), Column("count", "Count", "count"), Column("total_us", "Total", "duration"),
               Column("mean_us", "Mean", "duration"), Column("max_us", "Max", "duration"),
               Column("min_us", "Min", "duration"), Column("share", "Share", "share"))  # fmt: skip

    def answer_of(*rows):
        return Answer(tables=(Table.of_rows("t", "T", columns, rows, word="operation"),))

    several = answer_of(("one", 3, 30, 10.0, 15, 5, 0.3), ("two", 1, 30, 30.0, 30, 30, 0.3))
    single = answer_of(("both", 4, 64, 16.0, 32, 4, 0.6))
    renamed = ("operation", dict.fromkeys(("one", "two"), "both"))
    (table,) = joined([("", -1, several, single)], lambda *_: "same", renamed).tables
    (row,) = table.rows()
    told = dict(zip((column.key for column in table.columns), row, strict=True))
    keys = ("count", "total_us", "mean_us", "max_us", "min_us")
    assert [told[f"base_{key}"] for key in keys] == [4, 60, 15.0, 30, 5]
    assert [told[f"delta_{key}"] for key in keys] == [0, 4, 1.0, 2, -1]
    assert told["base_share"] == pytest.approx(0.6)


def test_rows_of_several_workers_lead_to_events_of_their_own():
    """By worker, largest difference first; a row that is gone leads nowhere, a table for programs stays one."""
    columns = (Column("name", "Name", filter_column="name"), Column("count", "Count", "count"))

    def answer_of(*rows):
        return Answer(tables=(Table.of_rows("t", "T", columns, rows, shown=False),))

    pairs = [("rank 0", 3, answer_of(("a", 1)), answer_of(("a", 2))),
             ("rank 1", 4, answer_of(("a", 3)), answer_of(("b", 5)))]  # fmt: skip
    (table,) = joined(pairs, lambda *_: "same").tables
    assert [row[:5] for row in table.rows()] == [
        ("rank 1", "b", 0, 5, 5), ("rank 1", "a", 3, 0, -3), ("rank 0", "a", 1, 2, 1),
    ]  # fmt: skip
    targets = [Target("name=b", scope=Scope(4)), None, Target("name=a", scope=Scope(3))]
    assert [table.target_of(row) for row in range(3)] == targets
    assert not table.shown


def test_a_table_without_rows_that_the_other_side_lacks_stays_without_rows():
    columns = (Column("name", "Name"), Column("count", "Count", "count"))
    empty = Answer(tables=(Table.of_rows("t", "T", columns, [], word="operation"),))
    for sides in ((empty, Answer()), (Answer(), empty)):
        (table,) = joined([("", -1, *sides)], lambda *_: "same").tables
        assert not len(table)


@pytest.fixture(scope="module")
def runs_of_ranks(tmp_path_factory) -> tuple[Profile, Profile]:
    """Two runs of two ranks; the other one has a step more."""
    folder = tmp_path_factory.mktemp("runs")
    for name, steps in (("base", 2), ("other", 3)):
        torch_trace.write_run(folder / name, ranks=2, steps=steps, layers=2, seed=steps)
    return open_profile(folder / "base"), open_profile(folder / "other")


def test_of_several_workers_the_figures_of_each_are_told(runs_of_ranks, capsys):
    record = record_of(compared(*runs_of_ranks), "kernels", "overview")
    for view in ("kernels", "overview"):
        assert record["views"][view]["figures"] == {}
        told = rows_of(record, view, "workers")
        assert [row["worker"] for row in told] == ["Rank 0", "Rank 1"]
        for side, profile in zip(("base", "other"), runs_of_ranks, strict=True):
            assert main(["report", profile.path, view, "--json"]) == 0
            workers = json.loads(capsys.readouterr().out)["views"][view]["workers"]
            for row in told:
                for key, value in workers[row["worker"]]["figures"].items():
                    assert row[f"{side}_{key}"] == pytest.approx(value)


def test_of_several_workers_rows_are_in_the_order_of_the_main_number(runs_of_ranks):
    record = record_of(compared(*runs_of_ranks), "operators", "kernels")
    for view, table, key in (
        ("operators", "by_name", "delta_device_self_us"),
        ("kernels", "by_name", "delta_total_us"),
    ):
        sizes = [abs(row[key]) for row in rows_of(record, view, table)]
        assert sizes == sorted(sizes, reverse=True)
        assert len(sizes) > 8


def test_steps_and_gaps_of_several_ranks_are_not_counted_twice(runs_of_ranks):
    record = record_of(compared(*runs_of_ranks), "steps")
    parts = {row["part"]: row for row in rows_of(record, "steps", "parts")}
    assert min(row[key] for row in parts.values() for key in ("base_us", "other_us")) >= 0
    assert [name for name in sorted(parts) if name.startswith("step")] == ["step 0", "step 1", "step 2"]
    assert (parts["step 2"]["base_us"], parts["step 2"]["status"]) == (0, "added")


def test_steps_of_two_runs_are_compared_by_position_and_have_labels_that_step_takes(tmp_path, capsys):
    """Steps 5 and 6 against 8 and 9: each with the work that it launched; --step takes what is printed."""
    paths = []
    for first, took in ((5, 300), (8, 400)):
        events = []
        for number in range(2):
            start = 1000 * number
            events += [
                {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{first + number}", "pid": 1, "tid": 1,
                 "ts": start, "dur": 100},
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": start + 10,
                 "dur": 5, "args": {"correlation": number}},
                {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": start + 20, "dur": took,
                 "args": {"device": 0, "stream": 7, "correlation": number}},
            ]  # fmt: skip
        paths.append(tmp_path / f"{first}.pt.trace.json")
        paths[-1].write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    record = record_of(compared(*map(open_profile, paths)), "steps")
    parts = {row["part"]: row for row in rows_of(record, "steps", "parts")}
    assert (parts["step 5"]["base_us"], parts["step 5"]["other_us"]) == (320, 420)
    assert (parts["gap before step 6"]["base_us"], parts["gap before step 6"]["other_us"]) == (680, 580)
    assert sum(row["base_us"] for row in parts.values()) == 1320
    for label in ("6", "step 6", "ProfilerStep#6"):
        assert main(["summary", str(paths[0]), "--step", label]) == 0
        assert "step 6 only" in capsys.readouterr().out
    assert main(["summary", str(paths[0]), "--step", "last"]) == 2
    assert "is not the number of a step" in capsys.readouterr().err


def test_another_number_of_steps_is_the_cause(runs_of_ranks):
    told = compared(*runs_of_ranks).verdict.why
    assert told.endswith("The other has 1 step more (2 -> 3).")
    assert "1 step fewer (3 -> 2)" in compared(*reversed(runs_of_ranks)).verdict.why
    assert "step fewer" not in compared(*runs_of_ranks, step=1).verdict.why


def test_rows_of_pytorch_are_compared_per_counted_step_too(runs_of_ranks):
    """The mean of what ``--step`` tells of each counted step: a longer run alone is no difference per step."""
    columns = {
        "names": ("calls", "total_us"), "kernels": ("calls", "total_us"),
        "operators": ("calls", "device_self_us", "device_total_us", "host_self_us", "host_total_us"),
    }  # fmt: skip
    record = record_of(compared(*runs_of_ranks), *columns)
    of_steps = [[record_of(compared(profile, profile, step), *columns) for step in steps]
                for profile, steps in zip(runs_of_ranks, ((0, 1), (0, 1, 2)), strict=True)]  # fmt: skip
    for view, numbers in columns.items():
        table = "names" if view == "names" else "by_name"

        def key(row: dict) -> tuple:
            return row["worker"], row.get("side"), row["name"]

        alone = [[{key(row): row for row in rows_of(each, view, table)} for each in side] for side in of_steps]
        told = rows_of(record, view, table)
        assert told
        for row in told:
            for number in numbers:
                stem, unit = number.removesuffix("_us"), "_us" if number.endswith("_us") else ""
                of_sides = []
                for side, steps in zip(("base", "other"), alone, strict=True):
                    mean = sum(each.get(key(row), {}).get(f"base_{number}", 0) for each in steps) / len(steps)
                    assert row[f"{side}_{stem}_per_step{unit}"] == pytest.approx(mean, abs=1e-6)
                    of_sides.append(mean)
                delta = row[f"delta_{stem}_per_step{unit}"]
                assert delta == pytest.approx(of_sides[1] - of_sides[0], abs=1e-6)
        # a step more is more of each in total, not per step
        alike = [row for row in told if row["delta_calls"] and not row["delta_calls_per_step"]]
        assert len(alike) > len(told) / 2
