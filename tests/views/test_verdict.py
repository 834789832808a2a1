"""What a comparison names as the reason: known differences between two, three and more profiles."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from profiles import make_lane, make_profile, session_of

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.cli.json_schema import schema_text
from tpuprof_tui.cli.main import main
from tpuprof_tui.model import Profile, Role, Scopes, Strings
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.views.comparing import Compared

SAMPLES = Path(__file__).parents[2] / "samples"

import torch_trace  # noqa: E402
from capture_writer.capture import write_capture  # noqa: E402
from capture_writer.options import Options  # noqa: E402

#: What a step of a model does: operator, kernels (name, us), module.
Model = Sequence[tuple[str, Sequence[tuple[str, float]], str]]
H100: Model = (
    ("aten::mm", [("sm90_gemm", 400), ("sm90_gemm", 400)], "MLP"),
    ("aten::addmm", [("sm90_gemm_small", 260)], "Attention"),
    ("aten::_flash_attention_forward", [("flash_fwd_kernel", 250)], "Attention"),
    ("aten::mul", [("elementwise_kernel<128>", 300)], "MLP"),
    ("aten::add", [("elementwise_kernel<128, add>", 100)], "MLP"),
)
MI300: Model = (
    ("aten::mm", [("Cijk_Alik", 520), ("Cijk_Alik", 520)], "MLP"),
    ("aten::addmm", [("Cijk_Bljk", 330)], "Attention"),
    ("aten::_flash_attention_forward", [("attn_fwd", 360)], "Attention"),
    ("aten::mul", [("elementwise_kernel<512>", 120)], "MLP"),
    ("aten::add", [("elementwise_kernel<512, add>", 102)], "MLP"),
)


def write_trace(path: Path, model: Model, *, steps: int = 4, operators: bool = True, jitter: int = 1) -> str:
    """A trace of steps in which operators, within a module each, launch kernels one after the other."""
    random, events, now, number = np.random.default_rng(jitter), [], 0.0, 0
    for step in range(steps):
        begun = now
        for operator, kernels, module in model:
            length, begins = 10 + 20 * len(kernels), now + 12
            frame = {"ph": "X", "cat": "python_function", "name": f"nn.Module: {module}_0", "pid": 1, "tid": 1,
                     "ts": now, "dur": length, "args": {"Python id": number + 1, "Python module id": 0}}  # fmt: skip
            called = {"ph": "X", "cat": "cpu_op", "name": operator, "pid": 1, "tid": 1, "ts": now + 1,
                      "dur": length - 2, "args": {"External id": number + 1}}  # fmt: skip
            events += [frame, called] if operators else []
            for place, (name, took) in enumerate(kernels):
                number, took = number + 1, round(took * (1 + 0.002 * random.standard_normal()), 3)
                events += [
                    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
                     "ts": now + 5 + 20 * place, "dur": 5, "args": {"correlation": number, "External id": number}},
                    {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": begins,
                     "dur": took, "args": {"device": 0, "stream": 7, "correlation": number}},
                ]  # fmt: skip
                begins += took
            now = begins + 60
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1,
                       "ts": begun, "dur": now - begun - 20})  # fmt: skip
    record = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": path.stem}], "traceEvents": events}
    file = path.with_suffix(".pt.trace.json")
    file.write_text(json.dumps(record))
    return str(file)


def diff(capsys: pytest.CaptureFixture[str], *words: str, views: Sequence[str] = ("units",), status: int = 0) -> dict:
    """The record of a comparison; its verdict does not depend on the views."""
    assert main(["diff", *words, *views, "--json"]) == status
    record: dict = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(json.loads(schema_text("diff"))).validate(record)
    return record


def text_of(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> list[str]:
    assert main(["diff", *words]) == status
    return capsys.readouterr().out.splitlines()


def parts(record: Mapping, view: str) -> dict[str, dict]:
    """Parts of a step by name, which add up to the work of a step."""
    per_step = record["verdict"]["per_step"]
    found = {each["name"]: each for each in per_step["contributors"] if each["view"] == view}
    delta = sum(each["delta_us"] for each in found.values())
    assert delta == pytest.approx(per_step["work"]["delta_us"], abs=0.01)
    return found


# -- across vendors


def test_across_vendors_operators_are_the_reason_not_names_of_kernels(capsys, tmp_path):
    paths = write_trace(tmp_path / "h100", H100), write_trace(tmp_path / "mi300", MI300, jitter=2)
    record = diff(capsys, *paths, views=())
    why = record["verdict"]["why"]
    told = dict(re.findall(r"(aten::\w+) [^(]*?\(([-+][\d.]+)%\)", why.replace("took longer: ", "")))
    assert {name: round(float(share)) for name, share in told.items()} == pytest.approx(
        {"aten::mm": 30, "aten::addmm": 27, "aten::_flash_attention_forward": 44, "aten::mul": -60}, abs=1)  # fmt: skip
    assert why.startswith("aten::mm took longer: +")
    assert not re.search("sm90|Cijk|is gone|is new", why)
    for view in ("operators", "modules", "kernels"):
        assert parts(record, view)
    assert parts(record, "modules")["Attention"]["delta_us"] == pytest.approx(180, abs=5)
    assert {each["status"] for each in parts(record, "kernels").values()} == {"added", "removed"}
    # people are not shown a table of other names for the same work
    lines = text_of(capsys, *paths)
    titles = [line for line in lines if line.startswith("What contributes, ")]
    assert titles == [f"What contributes, {view} (us of work per step)" for view in ("operators", "modules")]
    assert lines[0].startswith("Slower per step: ")


def test_a_kernel_within_an_operator_is_told_with_it(capsys, tmp_path):
    slower = [(operator, [(name, took * (1.5 if operator == "aten::mul" else 1)) for name, took in kernels], module)
              for operator, kernels, module in H100]  # fmt: skip
    record = diff(capsys, write_trace(tmp_path / "a", H100), write_trace(tmp_path / "b", slower, jitter=2))
    assert record["verdict"]["why"].startswith("aten::mul took longer: +15")
    (changed,) = [each for each in parts(record, "operators").values() if each["status"] == "more"]
    assert changed["name"] == "aten::mul"


def test_names_that_replace_one_another_are_one_part_where_nothing_tells_operators(capsys, tmp_path):
    paths = [write_trace(tmp_path / name, model, operators=False, jitter=number)
             for number, (name, model) in enumerate((("a", H100), ("b", MI300)))]  # fmt: skip
    record = diff(capsys, *paths)
    assert record["verdict"]["why"].startswith("Other names (5 gone, 5 new) took longer: +")
    assert {each["view"] for each in record["verdict"]["contributors"]} == {"kernels"}


def test_a_side_without_work_of_a_device_is_the_reason(capsys):
    """Not a kernel that is gone."""
    device, host = (str(SAMPLES / name) for name in ("torch_cuda_synthetic", "torch_cpu_recorded"))
    assert diff(capsys, device, host)["verdict"]["why"].startswith("No work of a device is recorded in the other.")
    assert diff(capsys, host, device)["verdict"]["why"].startswith("No work of a device is recorded in the base.")


def test_a_rank_fewer_and_a_host_that_is_not_recorded_are_the_reason(capsys, tmp_path):
    """Sums are of all units: the names of what a missing one ran are no reason."""
    run, half = tmp_path / "run", tmp_path / "half"
    for folder in (run, half):
        torch_trace.write_run(folder, ranks=2, steps=2, layers=2)
    second = sorted(half.glob("*"))[1]
    second.write_bytes(second.read_bytes()[:100])
    for base, other, told in ((run, half, "1 GPU fewer (2 -> 1)."), (half, run, "1 GPU more (1 -> 2).")):
        why = diff(capsys, str(base), str(other), status=1)["verdict"]["why"]
        assert why.startswith(f"The other has {told}")
    both, device = (tmp_path / f"{name}.json" for name in ("both", "device"))
    events = json.loads(Path(write_trace(tmp_path / "whole", H100)).read_text())["traceEvents"]
    events = [each for each in events if each["cat"] != "user_annotation"]
    for path, some in ((both, events), (device, [each for each in events if each["cat"] == "kernel"])):
        path.write_text(json.dumps({"traceEvents": some}))
    assert "No host is recorded in the other." in diff(capsys, str(both), str(device))["verdict"]["why"]


def test_work_whose_launches_are_not_recorded_is_not_gone(capsys, tmp_path):
    """Which step it belongs to is then not known: all of it is compared."""
    whole = write_trace(tmp_path / "whole", H100)
    record = json.loads(Path(whole).read_text())
    for event in record["traceEvents"]:
        event.get("args", {}).pop("correlation", 0)
    alone = tmp_path / "alone.json"
    alone.write_text(json.dumps(record))
    for words in ((whole, str(alone)), (str(alone), whole)):
        verdict = diff(capsys, *words)["verdict"]
        assert verdict["per_step"] is None
        assert verdict["why"] == "No part changed by more than noise."


# -- per step


def test_a_run_with_more_steps_is_the_same_per_step(capsys, tmp_path):
    paths = write_trace(tmp_path / "a", H100, steps=3), write_trace(tmp_path / "b", H100, steps=6, jitter=2)
    record = diff(capsys, *paths)
    verdict = record["verdict"]
    assert (verdict["status"], verdict["per_step"]["status"]) == ("slower", "same")
    assert verdict["per_step"]["steps"] == {"base": 3, "other": 6}
    assert verdict["per_step"]["word"] == "step"
    assert {each["status"] for each in verdict["per_step"]["contributors"]} == {"same"}
    assert parts(record, "operators")["aten::mm"]["base_count"] == 2
    for each in verdict["contributors"]:
        assert each["other_us"] == pytest.approx(2 * each["base_us"], rel=0.02)
    lines = text_of(capsys, *paths)
    assert lines[0].startswith("Same per step: ")
    assert lines[1] == "Why: No part changed by more than noise. The other has 3 steps more (3 -> 6)."
    assert any(line.startswith("Total  slower: ") for line in lines)
    # a step alone is compared as a whole
    assert diff(capsys, *paths, "--step", "1")["verdict"]["per_step"] is None


def test_steps_of_the_host_are_compared_where_no_device_works(capsys):
    path = str(SAMPLES / "torch_cpu_recorded")
    record = diff(capsys, path, path)
    assert record["verdict"]["per_step"]["status"] == "same"
    whole = {each["name"]: each["base_us"] for each in record["verdict"]["contributors"]}
    for name, part in parts(record, "operators").items():
        assert part["base_us"] * record["verdict"]["per_step"]["steps"]["base"] <= whole[name] + 0.01


# -- across sources


def test_pytorch_is_compared_with_ascend_by_operator(capsys, tmp_path):
    model: Model = (("aten::addmm", [("gemm", 50)], "Linear"), ("aten::relu", [("relu", 5)], "Linear"))
    trace, ascend = write_trace(tmp_path / "gpu", model), str(SAMPLES / "ascend_synthetic" / "rank0_ascend_pt")
    record = diff(capsys, trace, ascend, views=["operators"])
    rows = {row[0]: row for row in record["views"]["operators"]["tables"]["by_name"]["rows"]}
    # 12 of 41.5 us and 12 of 6.25 us, as the view `operators` of Ascend has them
    assert rows["aten::addmm"][2] == pytest.approx(498)
    assert rows["aten::relu"][2] == pytest.approx(75)
    assert not [name for name in rows if name.startswith("aclnn")]
    assert {each["view"] for each in record["verdict"]["contributors"]} == {"operators"}
    assert "c10d::allreduce_ is new" in record["verdict"]["why"]
    for words in ([], ["waits"], ["alignment"], ["units"]):
        assert text_of(capsys, trace, ascend, *words)
        assert text_of(capsys, ascend, trace, *words)
    assert main(["gate", ascend, "--against", trace]) == 2
    assert "cannot be compared" in capsys.readouterr().err


def test_what_has_no_operators_is_not_comparable_with_another_source(capsys, tmp_path):
    trace = write_trace(tmp_path / "bare", H100, operators=False)
    assert main(["diff", trace, str(SAMPLES / "ascend_synthetic")]) == 2
    told = capsys.readouterr().err
    assert "bare.pt.trace.json (PyTorch trace)" in told
    assert "ascend_synthetic (Ascend profile)" in told
    assert main(["diff", trace, str(SAMPLES / "aks_decode_mode1")]) == 2


def test_chips_are_compared_by_what_both_name(capsys):
    record = diff(capsys, str(SAMPLES / "aks_decode_mode1"), str(SAMPLES / "aksv_cdma"))
    assert record["verdict"]["per_step"]["word"] == "batch"
    assert {each["view"] for each in record["verdict"]["contributors"]} == {"kernels", "operations"}
    assert main(["gate", str(SAMPLES / "aksv_cdma"), "--against", str(SAMPLES / "aks_decode_mode1")]) == 2


# -- three and more


def test_three_runs_are_columns_beside_a_reference(capsys, tmp_path):
    half = [(operator, [(name, took / 2) for name, took in kernels], module) for operator, kernels, module in H100]
    paths = [write_trace(tmp_path / name, model, jitter=number)
             for number, (name, model) in enumerate((("h100", H100), ("mi300", MI300), ("half", half)))]  # fmt: skip
    lines = text_of(capsys, *paths)
    assert re.fullmatch(r"mi300.*: slower per step \(\+.*%\); half.*: faster per step \(-.*%\)", lines[0])
    (row,) = [line.split() for line in lines if line.startswith("aten::mm ")]
    assert [round(float(cell.rstrip("%"))) for cell in (row[3], row[5])] == [30, -50]
    back = diff(capsys, *paths, "--reference", paths[2])
    assert (back["base"]["path"], [each["path"] for each in back["others"]]) == (paths[2], paths[:2])
    for each in back["others"]:
        alone = diff(capsys, paths[2], each["path"])
        assert each["verdict"] == alone["verdict"]
        assert each["views"] == alone["views"]
    # of two it chooses the base
    assert diff(capsys, *paths[:2], "--reference", paths[1])["base"]["path"] == paths[1]
    assert main(["diff", *paths, "--reference", "elsewhere"]) == 2
    assert "none of the captures" in capsys.readouterr().err
    assert main(["diff", *paths, "kernels"]) == 2


# -- Sophgo


def of_kernels(lengths: Mapping[tuple[str, str], Sequence[int]], layers: Mapping[str, str] | None = None) -> Profile:
    """A core that ran launches of kernels: by kernel and operation, lengths of an instruction of each launch, ns."""
    kernels, operations = (list(dict.fromkeys(key[at] for key in lengths)) for at in (0, 1))
    of_kernel = [[key for key in lengths if key[0] == kernel] for kernel in kernels]
    launches = [(number, turn) for number, keys in enumerate(of_kernel) for turn in range(len(lengths[keys[0]]))]
    rows = [(number, operations.index(key[1]), lengths[key][turn], scope)
            for scope, (number, turn) in enumerate(launches) for key in of_kernel[number]]  # fmt: skip
    kernel, name, length, scope = (np.array(column) for column in zip(*rows, strict=True))
    end = np.cumsum(length + 1)
    texts, columns = {"name": Strings(tuple(operations)), "kernel": Strings(tuple(kernels))}, {}
    if layers is not None:
        texts["layer"] = Strings(tuple(dict.fromkeys(layers.values())))
        of_operation = [list(texts["layer"]).index(layers[operation]) for operation in operations]
        columns["layer"] = np.array(of_operation, np.int32)[name]
    lane = make_lane("TIU", starts=end - length, ends=end, name=name.astype(np.int32), kernel=kernel.astype(np.int32),
                     scope=scope, tiu_type=name, tiu_function=np.zeros(len(name), np.int64), **columns)  # fmt: skip
    (core,) = make_profile([lane], strings=texts).units
    kernel_of = np.array([number for number, _ in launches], np.int32)
    scopes = Scopes(kernel=kernel_of, group=np.full(len(launches), core, np.int32))
    return make_profile([lane], strings=texts, scopes=scopes)


def compared(base: Profile, other: Profile) -> Compared:
    return Compared(*(Query(session_of(profile)) for profile in (base, other)))


def test_the_operation_that_explains_the_change_is_named_not_the_kernel_that_changed_most():
    """MM2_NN takes longer in three kernels, each of which does something else faster or slower."""
    usual = {(kernel, operation): [1000 + 3 * (turn % 2) for turn in range(40)]
             for kernel in ("attention", "mlp", "head") for operation in ("MM2_NN", f"load of {kernel}")}  # fmt: skip
    slower = {key: [round(ns * (1.5 if key[1] == "MM2_NN" else 1)) for ns in each] for key, each in usual.items()}
    why = compared(of_kernels(usual), of_kernels(slower)).verdict.why
    assert why.startswith("MM2_NN took longer: +60.06 us of work (+50.0%)")
    # in one kernel alone, it is the kernel, and the operation in it
    one = {key: slower[key] if key[0] == "mlp" else each for key, each in usual.items()}
    why = compared(of_kernels(usual), of_kernels(one)).verdict.why
    assert why.startswith("mlp took longer: +20.02 us of work (+25.0%)")
    assert "of it MM2_NN +20.02 us" in why


def test_layers_are_compared_first_and_their_types_where_another_compiler_numbers_them():
    lengths = {("", operation): [1000 + 3 * (turn % 2) for turn in range(40)] for operation in ("a", "b", "c")}
    slower = {key: [2 * ns for ns in each] if key[1] == "b" else each for key, each in lengths.items()}
    layers = {"a": "Conv_1", "b": "Softmax_2", "c": "Conv_3"}
    both = compared(of_kernels(lengths, layers), of_kernels(slower, layers))
    assert [*both.comparison.origins] == ["layers", "layer_types"]
    assert both.verdict.why.startswith("Softmax_2 took longer: +40.06 us")
    numbered = {"a": "Conv_7", "b": "Softmax_8", "c": "Conv_9"}
    both = compared(of_kernels(lengths, layers), of_kernels(slower, numbered))
    assert both.verdict.why.startswith("Softmax took longer: +40.06 us")


def of_waits(waits: Sequence[int], total: int = 2_000_000) -> Profile:
    """Three cores that work for ``total`` ns, of which core 2 waits so long after each part of its work."""
    lanes = []
    for core, waited in enumerate(((6_000, 6_000), (6_000, 6_000), waits)):
        work = [(total - sum(waited)) // (20 * len(waited))] * 20
        lengths = np.array([ns for wait in waited for ns in (*work, wait)])
        end, is_wait = np.cumsum(lengths), np.tile(np.append(np.zeros(20, np.bool_), True), len(waited))
        lanes.append(make_lane("TIU", core, starts=end - lengths, ends=end, name=is_wait.astype(np.int32),
                               roles=np.where(is_wait, Role.WAIT, Role.WORK), tiu_type=np.where(is_wait, 15, 2),
                               tiu_function=np.zeros(len(end), np.int64)))  # fmt: skip
    return make_profile(lanes, strings={"name": Strings(("MM2_NN", "barrier"))})


def test_a_core_that_waits_longer_is_told_beside_the_reason():
    """Core 2 waits 494 us longer, at one barrier, within a total that is the same."""
    both = compared(of_waits((6_000, 6_000)), of_waits((6_000, 500_000)))
    assert both.verdict.total.status == "same"
    assert both.verdict.why.endswith("Core 2 waits 494.0 us longer; one of them 494.0 us longer, at 1.500 ms.")
    longest = max(both.comparison.waits().items(), key=lambda wait: wait[1].delta)
    assert (longest[0], longest[1].delta) == (("Core 2", "-", "barrier"), 494_000)
    both = compared(of_waits((6_000, 6_000)), of_waits((253_000, 253_000)))
    assert both.verdict.why.endswith("Core 2 waits 494.0 us longer.")


def test_a_late_core_is_one_reason_however_many_kernels_wait_for_it(tmp_path):
    """What the others wait for it is told of a batch, as the lead is."""
    base = Options("base", mode=2, layers=1, batches=2)
    sides = [open_profile(write_capture(dataclasses.replace(base, name=name, late=late), tmp_path, truth=False).path)
             for name, late in (("base", ()), ("late", ("2:60000",)))]  # fmt: skip
    both = compared(*sides)
    lead, why = both.verdict.lead, both.verdict.why
    told = re.fullmatch(r"Waits, not work: Core 2 comes later to where the others wait, each ([\d.]+) us longer per "
                        r"batch, [\d.]+ us of it in \w+\.", why)  # fmt: skip
    assert told, why
    assert float(told[1]) == pytest.approx(lead.delta / 1000, rel=0.02)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_launches_that_lost_records_keep_their_place(tmp_path, mode):
    base = Options("base", mode=mode, layers=2, batches=4, cores=(0, 1))
    whole, *others = (open_profile(write_capture(dataclasses.replace(base, name=f"lost{lost}", lost=lost, run=run),
                      tmp_path, truth=False).path) for run, lost in ((1, 0.0), (2, 0.01), (2, 0.05)))  # fmt: skip
    for other in others:
        for sides in ((whole, other), (other, whole)):
            both = compared(*sides)
            assert max(both.comparison.lost.base, both.comparison.lost.other) > 0
            launches = both.comparison.launches
            ours, theirs = (work.launches for work in both.comparison.works)
            assert len(launches) == len(ours) == len(theirs)
            assert (ours.unit[launches.base] == theirs.unit[launches.other]).all()
            assert (np.diff(launches.other) > 0).all()
            assert launches.changed.any()


def test_gate_tells_the_total_beside_a_part_that_grew(capsys, tmp_path):
    base = Options("base", layers=2, batches=4, cores=(0, 1, 2, 3))
    paths = [str(write_capture(dataclasses.replace(base, **more), tmp_path, truth=False).path)
             for more in ({"run": 1}, {"name": "slower", "slower": ("mlp:1.2",), "run": 2})]  # fmt: skip
    assert main(["gate", paths[1], "--against", paths[0]]) == 3
    why = capsys.readouterr().out.splitlines()[1]
    assert re.match(
        r"Why: The kernel llama_mlp_multi_core grew by .*\. The total is the same: .* -> .*\(\+[\d.]+%\)\.", why
    )


def test_gate_fails_for_slower_steps_of_a_shorter_run(capsys, tmp_path):
    slower = [(operator, [(name, took * 1.2) for name, took in kernels], module) for operator, kernels, module in H100]
    base, other = write_trace(tmp_path / "a", H100, steps=12), write_trace(tmp_path / "b", slower, steps=10, jitter=2)
    assert main(["gate", other, "--against", base]) == 3
    why = capsys.readouterr().out.splitlines()[1]
    assert re.match(r"Why: The step grew by .* \(16\.\d%\)\. The total is less: ", why)
    assert main(["baseline", "save", str(tmp_path / "kept.json"), base]) == 0
    assert main(["gate", other, "--against", str(tmp_path / "kept.json")]) == 3
    assert main(["gate", base, "--against", str(tmp_path / "kept.json")]) == 0
