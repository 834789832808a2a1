"""Recipes of Ascend profiles, and rules about what few recordings have: data that has it, and data that has not.

All of it is made up (synthetic), but for the name of a group of a real run and what names of operators have of it.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ascend_profile
import pytest

from tpuprof_tui.sources.ascend.views.recipes import operations
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.views.registry import ask

OUTPUT = "ASCEND_PROFILER_OUTPUT"
Records = list[dict[str, Any]]


def rows(path: Path, view: str, table: str, **selection: Any) -> Records:
    """Rows of a table by key, times in ns."""
    found = {each.key: each for each in ask(open_profile(path), view, **selection).tables}.get(table)
    return (
        [dict(zip((column.key for column in found.columns), row, strict=True)) for row in found.rows()] if found else []
    )


def told(path: Path, rule: str) -> list[str]:
    """Sentences of a rule."""
    return [row["text"] for row in rows(path, "findings", "findings") if row["rule"] == rule]


def ranks(folder: Path, change: Callable[[Any, int], None] = lambda run, rank: None) -> Path:
    """A run of two ranks as text."""
    for rank in range(2):
        run = ascend_profile.run_of(rank)
        change(run, rank)
        ascend_profile.write_text(run, folder)
    return folder


def with_events(folder: Path, process: str, events: Records, tid: int = 1) -> Path:
    """Rank 0 of a run, with further events of a process."""
    rank = ascend_profile.write_text(ascend_profile.run_of(0), folder)
    file = rank / OUTPUT / "trace_view.json"
    name = {"ph": "M", "name": "process_name", "pid": 999, "tid": 0, "args": {"name": process}}
    found = json.loads(file.read_text())
    file.write_text(json.dumps([*found, name, *({"pid": 999, "tid": tid, **event} for event in events)]))
    return rank


def slice_at(after: int, length: int, name: str, **more: Any) -> dict[str, Any]:
    """A slice some ns after the start of the run."""
    return {
        "ph": "X",
        "name": name,
        "ts": ascend_profile.us(ascend_profile.START + after),
        "dur": length / 1000,
        **more,
    }


def with_frequencies(least: int, folder: Path) -> Path:
    """A frequency that falls to ``least`` MHz from the middle of the run on."""
    samples = [{"ph": "C", "name": "AI Core Freq", "args": {"MHz": megahertz},
                "ts": ascend_profile.us(ascend_profile.START + after)}
               for after, megahertz in ((0, 1800), (1_000_000, least))]  # fmt: skip
    return with_events(folder, "AI Core Freq", samples)


def with_garbage(length: int, folder: Path) -> Path:
    """Python collects garbage once, for ``length`` ns."""
    return with_events(folder, "Python GC", [slice_at(500_000, length, "GC")])


def with_calls(name: str, length: int, folder: Path) -> Path:
    """A call of ``length`` ns within an operator."""
    operator = slice_at(200_000, 1_000_000, "aten::empty", cat="cpu_op", pid=7, tid=100)
    call = slice_at(200_100, length, f"AscendCL@{name}", pid=224, tid=100)
    return with_events(folder, "Unused", [operator, call])


def with_norms(count: int, folder: Path) -> Path:
    """Operators that normalise over all ranks, and a frame named like them."""
    norms = [slice_at(1000 * number, 500, "SyncBatchNorm", cat="cpu_op", pid=7, tid=9) for number in range(count)]
    frame = slice_at(0, 500, "SyncBatchNorm.py(3): forward", cat="python_function", pid=7, tid=10)
    return with_events(folder, "Unused", [*norms, frame])


def experts(tokens: tuple[int, ...], folder: Path) -> Path:
    """Three kernels of experts in each rank, with some tokens."""
    header = "Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes"
    group = {"parallel_group_info": {"a": {"group_name": "tp", "global_ranks": [0]},
                                     "b": {"group_name": "exp", "global_ranks": [0, 1]}}}  # fmt: skip
    for rank, count in enumerate(tokens):
        own = folder / f"rank{rank}_ascend_pt"
        lines = [f'k,GroupedMatmul,AI_CORE,{1_750_000_000_000_000 + 100 * number},80,"""{count},64;8,64,128;;8"""'
                 for number in range(3)]  # fmt: skip
        kernels(own / OUTPUT, [*lines, 'm,MatMulV2,AI_CORE,1750000000000900,80,"""7,64;64,8"""'], header)
        (own / f"profiler_info_{rank}.json").write_text("{}")
        (own / "profiler_metadata.json").write_text(json.dumps(group))
    return folder


def kernels(folder: Path, lines: list[str], header: str) -> Path:
    """A kernel table alone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel_details.csv").write_text("\n".join([header, *lines]))
    return folder


# -- rules


@pytest.mark.parametrize(("least", "speaks"), [(1200, True), (1750, False), (1800, False), (0, False), (-1, False)])
def test_a_frequency_below_the_highest(tmp_path, least, speaks):
    found = rows(with_frequencies(least, tmp_path), "findings", "findings")
    found = [row for row in found if row["rule"] == "low_frequency"]
    assert bool(found) == speaks
    if speaks:
        work = [task for task in ascend_profile.run_of(0).tasks if task.type]
        slow = sum(task.end - task.start for task in work if task.start >= ascend_profile.START + 1_000_000)
        assert found[0]["gain_us"] == pytest.approx(slow / 3, abs=1)
        assert "below 1,800 MHz, down to 1,200 MHz" in found[0]["text"]


@pytest.mark.parametrize(("length", "speaks"), [(400_000, True), (10_000, False)])
@pytest.mark.parametrize("form", ["text", "db"])
def test_python_collects_garbage(tmp_path, form, length, speaks):
    if form == "text":
        rank = with_garbage(length, tmp_path)
    else:
        rank = ascend_profile.write_database(ascend_profile.run_of(0), tmp_path)
        with sqlite3.connect(next(rank.glob("*/ascend_pytorch_profiler_0.db"))) as database:
            begun = ascend_profile.START + 500_000
            database.execute("create table GC_RECORD (startNs, endNs, globalTid)")
            database.execute("insert into GC_RECORD values (?, ?, ?)", (begun, begun + length, 7 << 32 | 100))
        database.close()
    assert [text.split(" times")[0] for text in told(rank, "garbage_collection")] == (
        ["Python collects garbage 1"] if speaks else [])  # fmt: skip


@pytest.mark.parametrize(("length", "speaks"), [(900_000, True), (9_000, False)])
@pytest.mark.parametrize(
    ("rule", "name"), [("memory_calls", "aclMallocMemInner"), ("memory_calls", "aclrtFree"), ("compiles", "opCompile")]
)
def test_calls_that_keep_the_host(tmp_path, rule, name, length, speaks):
    rank = with_calls(name, length, tmp_path)
    found = told(rank, rule)
    assert bool(found) == speaks
    # what can be won is the free time of the device meanwhile; the profile begins with the run's first step
    begin = 200_100 - (ascend_profile.run_of(0).steps[0][1] - ascend_profile.START)
    gaps = [(gap["start_us"], gap["start_us"] + gap["duration_us"]) for gap in rows(rank, "free", "gaps")]
    free = sum(max(min(end, begin + length) - max(start, begin), 0) for start, end in gaps)
    gains = [row["gain_us"] for row in rows(rank, "findings", "findings") if row["rule"] == rule]
    assert gains == ([free] if speaks else [])
    most = ", most in aten::empty" if rule == "memory_calls" else ""
    assert not speaks or f"(1 calls{most})" in found[0]


@pytest.mark.parametrize(("count", "speaks"), [(21, True), (20, False)])
def test_norms_that_communicate(tmp_path, count, speaks):
    assert bool(told(with_norms(count, tmp_path), "synchronised_norms")) == speaks


def moving(bytes_of_task: int, folder: Path, more: Sequence[dict[str, Any]] = ()) -> Path:
    """Rank 0 of a run, whose transfers have a size, with further ones."""
    rank = with_events(folder, "Unused", [{"pid": 226, "tid": 1, **event} for event in more])
    file = rank / OUTPUT / "trace_view.json"
    file.write_text(file.read_text().replace('"size(Byte)": 1500000', f'"size(Byte)": {bytes_of_task}'))
    return rank


def while_computing(length: int, folder: Path) -> Path:
    """A transfer of ``length`` ns while a kernel computes."""
    kernel = next(task for task in ascend_profile.run_of(0).tasks if task.type == "MatMulV2")
    args = {"size(Byte)": 1_500_000, "task type": "Memcpy"}
    return moving(1_500_000, folder, [slice_at(kernel.start - ascend_profile.START + 1, length, "Memcpy", args=args)])


def over_rdma(transit: int, folder: Path) -> Path:
    """A transfer over RDMA of some ms."""
    file = ascend_profile.write_text(ascend_profile.run_of(0), folder) / OUTPUT / "communication.json"
    found = json.loads(file.read_text())
    (op,) = found["step1"]["collective"].values()
    links = op["Communication Bandwidth Info"]
    links["RDMA"] = {**links["HCCS"], "Transit Time(ms)": transit}
    file.write_text(json.dumps(found))
    return file.parent


@pytest.mark.parametrize(("size", "speaks"), [(1_500_000, True), (1_500_160, False), (200, False)])
def test_transfers_that_end_within_a_block(tmp_path, size, speaks):
    assert told(moving(size, tmp_path), "unaligned_transfers") == (
        ["3 of 3 transfers, 100% of the bytes, end within a block."] if speaks else [])  # fmt: skip


@pytest.mark.parametrize(("length", "speaks"), [(200_000, True), (100_000, False)])
def test_transfers_that_take_longer_while_kernels_compute(tmp_path, length, speaks):
    # the others take 90 us
    lost = f"{(length - 90_000) / length:.1%}"
    assert told(while_computing(length, tmp_path), "bandwidth_contention") == (
        [f"While kernels compute, transfers lose {lost} of their time."] if speaks else []
    )


@pytest.mark.parametrize(("transit", "speaks"), [(4001, True), (3999, False)])
def test_transfers_that_rdma_sends_again(tmp_path, transit, speaks):
    assert bool(told(over_rdma(transit, tmp_path), "retransmission")) == speaks


@pytest.mark.parametrize(("tokens", "speaks"), [((300, 100), True), ((210, 190), False)])
def test_experts_of_uneven_load(tmp_path, tokens, speaks):
    experts(tokens, tmp_path)
    load = rows(tmp_path, "cluster", "experts")
    assert [(row["group"], row["rank"], row["kernels"], row["tokens"]) for row in load] == [
        ("0, 1", "0", 3, 3 * tokens[0]), ("0, 1", "1", 3, 3 * tokens[1])]  # fmt: skip
    excess = 2 * tokens[0] / sum(tokens) - 1
    assert [row["excess_share"] for row in load] == pytest.approx([excess, -excess])
    found = [row for row in rows(tmp_path, "findings", "findings") if row["rule"] == "uneven_experts"]
    assert bool(found) == speaks
    # with the mean load it would take that much less
    assert not speaks or found[0]["gain_us"] == pytest.approx(240_000 * (1 - sum(tokens) / 2 / tokens[0]), abs=1)


@pytest.mark.parametrize("where", ["host", "device"])
def test_why_the_others_wait_for_a_rank(tmp_path, where):
    def slower(run: Any, rank: int) -> None:
        for task in run.tasks:
            task.end += 900_000 if where == "device" and rank == 1 and task is run.tasks[1] else 0

    made = ranks(tmp_path, slower)
    found = rows(made, "cluster", "causes")
    assert {row["rank"] for row in found} == {1}
    assert all(row["excess_us"] == row["value_us"] - row["mean_us"] > 0 for row in found)
    # the data of rank 1 takes its host longer; its kernels last as long as those of rank 0, but for one
    what = {"host": "The host had not called it", "device": "aclnnRelu_Relu"}[where]
    assert what == found[0]["name"]
    gaps = rows(made, "free", "gaps")
    times = [[gap["duration_us"] for gap in gaps if (gap["cause"], gap["worker"]) == ("host", f"Rank {rank}")]
             for rank in range(2)]  # fmt: skip
    of_host = [(row["mean_us"], row["value_us"]) for row in found if row["name"] == "The host had not called it"]
    assert of_host == [tuple(map(sum, times))]
    # 240 us of its data are before its first kernel
    assert [row["excess_us"] for row in found if row["part"] == "Preparing"] == [240_000]
    # the finding says the first row
    (text,) = told(made, "slow_rank")
    assert "the others waited for rank 1 (" in text
    assert what.lower() in text.lower()
    # a rank alone waits for none
    assert not rows(made / "rank0_ascend_pt", "cluster", "causes")


# -- tables


def test_times_of_modules(tmp_path):
    run = ascend_profile.run_of(0)
    linear = [operator for operator in run.operators if operator.name == "aten::linear"][:3]
    start = ascend_profile.START

    def module(name: str, first: Any, last: Any, around: int) -> dict[str, Any]:
        begin, length = first.start - start - around, last.end - first.start + 2 * around
        return slice_at(begin, length, f"nn.Module: {name}", cat="python_function", pid=7, tid=100)

    frames = [module("Linear_0", linear[0], linear[0], 100), module("Linear_0", linear[1], linear[1], 100),
              module("Block_0", linear[0], linear[1], 200), module("Linear_1", linear[2], linear[2], 100)]  # fmt: skip
    rank = with_events(tmp_path, "Unused", frames)
    whole = {row.pop("name"): row for row in rows(rank, "modules", "by_name")}
    inside = [operator for operator in run.operators if linear[0].start <= operator.start < linear[1].end]
    called = {connection for operator in inside for connection in operator.connections}
    time = sum(task.end - task.start for task in run.tasks if task.connection in called)
    of_linear = 2 * 41_500
    assert {name: row["calls"] for name, row in whole.items()} == {"Linear_0": 2, "Block_0": 1, "Linear_1": 1}
    assert whole["Block_0"]["operators"] == len(inside)
    assert (whole["Block_0"]["device_total_us"], whole["Block_0"]["device_self_us"]) == (time, time - of_linear)
    assert (whole["Linear_0"]["device_total_us"], whole["Linear_0"]["device_self_us"]) == (of_linear, of_linear)
    both = whole["Linear_0"]["host_total_us"]
    assert whole["Block_0"]["host_self_us"] == whole["Block_0"]["host_total_us"] - both
    # a selection chooses modules, which keep their times
    chosen = rows(rank, "modules", "by_name", filter='name="nn.Module: Linear_1"')
    assert [{**row} for row in chosen] == [{"name": "Linear_1", **whole["Linear_1"]}]


@pytest.mark.parametrize(
    ("inputs", "outputs", "count"),
    [('"32,1000;1000,4096"', '"32,4096"', 2 * 32 * 1000 * 4096), ("32,1000;32,4096", "1000,4096", 2 * 32 * 1000 * 4096),
     ("8,32,64;8,64,16;16", "8,32,16", 2 * 8 * 32 * 64 * 16), ("32,64;4,64,16;4", "32,16", 2 * 32 * 64 * 16),
     ("32,64;64,0", "32,0", 0)],
)  # fmt: skip
def test_operations_of_a_matrix_multiplication(inputs, outputs, count):
    assert operations(inputs, outputs, "ND;FRACTAL_NZ") == count
    assert math.isnan(operations(inputs, outputs, "FRACTAL_NZ;ND"))


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [("2,2,16,16;32,32", "32,32"), ("N/A", ""), ("x,y;1,2", "3,4"), ("9,64;64,16", "32,16;1,2"), ("5,7;7,3", "2,3"),
     ("5,7;7,3", "0,3"), ("5,9999999999;9999999999,3", "5,3"), (f"{'9,' * 99}9", f"{'9,' * 99}9")],
)  # fmt: skip
def test_shapes_that_do_not_tell_operations(inputs, outputs):
    assert math.isnan(operations(inputs, outputs))


def test_use_of_the_cube_cores(tmp_path):
    header = ("Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Input Data Types,Output Shapes,"
              "aicore_time(us),aic_total_cycles")  # fmt: skip
    # 24 cores at 1,800 MHz; one kernel uses a half of them
    full, fp16 = 40 * 24 * 1800, ("512,1024;1024,2048", "FLOAT16;FLOAT16")
    every = (("MatMulV2", *fp16, full), ("MatMulV2", *fp16, full), ("QuantBatchMatmul", "1,1", "INT8", 0),
             ("MatMulV3", fp16[0], "INT8;INT8", full // 2), ("MatMulV3", "9,9,9", "FLOAT16", 0))  # fmt: skip
    lines = [
        f'k,{kind},AI_CORE,17500000000000{number}0,50,"""{shapes}""",{types},"""512,2048""",40,{cycles}'
        for number, (kind, shapes, types, cycles) in enumerate(every)
    ]
    found = rows(kernels(tmp_path / OUTPUT, lines, header), "mfu", "mfu")
    flop, peak = 2 * 512 * 1024 * 2048, 24 * 1.8 * 8192  # FLOP per ns
    assert [(row["input_types"], row["count"], row["flop"]) for row in found] == [
        ("FLOAT16;FLOAT16", 2, 2 * flop), ("INT8;INT8", 1, flop), ("FLOAT16", 1, None)]  # fmt: skip
    assert found[0]["tflops"] == pytest.approx(flop / 50_000 / 1000)
    assert [row["mfu"] for row in found[:2]] == pytest.approx([flop / 50_000 / peak, flop / 2 / 50_000 / peak])
    # cube_utilization tells all cores, of which these are a half
    head, *lines = (tmp_path / OUTPUT / "kernel_details.csv").read_text().splitlines()
    lines = [f"{line},40.0" for line in lines]
    found = rows(kernels(tmp_path / "more" / OUTPUT, lines, f"{head},cube_utilization(%)"), "mfu", "mfu")
    assert found[0]["mfu"] == pytest.approx(flop / 50_000 / (full / 50_000 / 0.4 * 8192))
    # without cycles the peak is not known
    lines = [line.rpartition(",")[0].rpartition(",")[0] for line in lines]
    found = rows(kernels(tmp_path / "less" / OUTPUT, lines, head.rpartition(",")[0]), "mfu", "mfu")
    assert found[0]["flop"] == 2 * flop
    assert {row["mfu"] for row in found} == {None}


#: Of a real run: name of a group, and the number that names of its operators have.
_REAL = ("90.91.105.46%enp189s0f0_60000_0_1736410538306028", "17148521525495523210")


@pytest.mark.parametrize("form", ["text", "db"])
def test_communication_by_group(tmp_path, monkeypatch, form):
    monkeypatch.setattr(ascend_profile, "GROUP", _REAL[1])
    write = ascend_profile.write_text if form == "text" else ascend_profile.write_database
    rank = write(ascend_profile.run_of(0), tmp_path)
    alone = rows(rank, "communication", "by_group")
    assert [(row["parallel"], row["ranks"], row["group"]) for row in alone] == [(None, None, _REAL[1])]
    groups = {_REAL[0]: {"group_name": "dp", "group_rank": 0, "global_ranks": [0, 1]}, "other": {"group_name": "tp"},
              "damaged": [1], "none": None}  # fmt: skip
    if form == "text":
        told_groups = {"ENV_VARIABLES": {"TOKEN": "secret"}, "parallel_group_info": groups}
        (rank / "profiler_metadata.json").write_text(json.dumps(told_groups))
    else:
        with sqlite3.connect(next(rank.glob("*/ascend_pytorch_profiler_0.db"))) as database:
            database.execute("create table META_DATA (name, value)")
            database.execute("insert into META_DATA values (?, ?)", ("parallel_group_info", json.dumps(groups)))
        database.close()
    (found,) = rows(rank, "communication", "by_group")
    assert (found["parallel"], found["ranks"], found["group"]) == ("dp", "0, 1", _REAL[1])
    run = ascend_profile.run_of(0)
    assert found["count"] == len(run.collectives)
    assert found["elapse_us"] == pytest.approx(sum(each.end - each.start for each in run.collectives), abs=1)
    assert found["wait_us"] == pytest.approx(sum(run.waits), abs=1)
    # operators of a range alone count
    until = rows(rank, "communication", "operations")[0]["start_us"]
    assert [row["count"] for row in rows(rank, "communication", "by_group", range=(0, until))] in ([], [1], [2])


@pytest.mark.parametrize("damage", ["{", "[]", '{"parallel_group_info": [1]}'])
def test_damaged_groups_are_not_known(tmp_path, damage):
    rank = ascend_profile.write_text(ascend_profile.run_of(0), tmp_path)
    (rank / "profiler_metadata.json").write_text(damage)
    assert [row["parallel"] for row in rows(rank, "communication", "by_group")] == [None]
