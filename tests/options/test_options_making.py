"""Wishes become options that pass the check, in as few runs as can be; what cannot be is refused."""

from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from options_tables import TABLES, checked

from tpuprof_tui.errors import UsageError
from tpuprof_tui.options.conditions import Context
from tpuprof_tui.options.making import EngineRecords, MakeRequest, make, most_records, parsed_wishes

ASCEND, SOPHGO, TORCH = (TABLES[source] for source in ("ascend", "sophgo", "torch"))
PRODUCTS = [None, *ASCEND.products]
MODES = [None, "training", "inference"]
POINTS = {"fp_point": "Conv_1", "bp_point": "Grad_9"}


def made(*wishes, given=None, tables=ASCEND, records=None, **context):
    return make(wishes, tables, MakeRequest(given or {}, records, Context(**context)))


def lines(*wishes, **more):
    return [line for run in made(*wishes, **more).runs for form in run.forms.values() for line in form]


def options(*wishes, **more):
    return [dict(run.values) for run in made(*wishes, **more).runs]


def test_the_documents_examples():
    assert lines(
        "operator times", "pipe utilisation", "low overhead", mode="inference", given={"output": "/tmp/prof"}
    ) == [
        "export PROFILING_MODE=true",
        'export PROFILING_OPTIONS=\'{"output":"/tmp/prof","task_time":"l0","aic_metrics":"PipeUtilization"}\'',
    ]
    assert lines("iterations", "communication", mode="training") == [
        "export PROFILING_MODE=true",
        'export PROFILING_OPTIONS=\'{"training_trace":"on","fp_point":"","bp_point":"","task_time":"l1"}\'',
    ]


@pytest.mark.parametrize("tables", TABLES.values(), ids=TABLES)
def test_every_wish_is_understood_by_its_id_and_by_every_word(tables):
    for wish in tables.wishes:
        for word in (wish.wish, *wish.words, wish.wish.upper(), wish.wish.replace(" ", "-")):
            assert parsed_wishes([word], tables) == [wish], word


@pytest.mark.parametrize(
    ("words", "wishes"),
    [
        ("kernel times and communication", ["operator times", "communication"]),
        ("memory over time", ["memory over time"]),
        ("memory bandwidth of kernels", ["memory bandwidth of kernels"]),
        ("which kernels", ["operator times"]),
        ("算子和通信", ["operator times", "communication"]),
    ],
)
def test_longest_phrases_go_first(words, wishes):
    assert [wish.wish for wish in parsed_wishes([words], ASCEND)] == wishes


@pytest.mark.parametrize("words", ["nonsense", "kernels without communication", "stepwise", "kernels banana", ""])
def test_what_is_not_understood_is_said_with_the_wishes_there_are(words):
    with pytest.raises(UsageError) as told:
        parsed_wishes([words], ASCEND)
    assert "links between cards" in str(told.value)
    assert told.value.exit_code == 2


def test_low_overhead_gives_way_to_what_needs_more():
    assert options("low overhead", "operator times", mode="inference") == [{"task_time": "l0"}]
    asked = made("communication", "low overhead", mode="inference")
    assert [dict(run.values) for run in asked.runs] == [{"task_time": "l1"}]
    assert any("gives way" in note for note in asked.notes)
    assert options("types and shapes", "low overhead", mode="inference") == [{"task_time": "l1"}]


def test_the_fewest_runs():
    two = made("pipe utilisation", "memory bandwidth", "operator times", "low overhead", mode="inference")
    assert [dict(run.values) for run in two.runs] == [
        {"task_time": "l0", "aic_metrics": "PipeUtilization"},
        {"task_time": "l0", "aic_metrics": "Memory"},
    ]
    assert "2 runs are the fewest" in two.notes[0]
    assert len(made("instructions", "network", "host use").runs) == 1
    assert len(made("instructions", "AI CPU").runs) == 2
    assert len(made("instructions", "conflicts", "L0 bandwidth", "AI CPU", "host calls", "network").runs) == 3


@pytest.mark.parametrize(
    ("wishes", "more"),
    [
        (["iterations"], {"mode": "inference"}),
        (["operator times"], {"dynamic": True}),
        (["operator times"], {"dynamic": True, "given": {"fp_point": "Conv_1"}}),
        (["L2 hits"], {"product": "atlas-training"}),
        (["instructions"], {"product": "atlas-training"}),
        (["instructions"], {"product": "atlas-inference"}),
        (["network"], {"given": {"output": ""}}),
        (["network"], {"given": {"output": "a\nb"}}),
        (["network"], {"given": {"output": "\udcff"}}),
    ],
)
def test_what_cannot_be_is_refused(wishes, more):
    with pytest.raises(UsageError):
        made(*wishes, **more)


def test_names_of_operators_are_used_where_there_is_an_iteration_trace():
    assert options("iterations", dynamic=True, given=POINTS) == [{"training_trace": "on", **POINTS}]
    unused = made("network", given=POINTS)
    assert [dict(run.values) for run in unused.runs] == [{"sys_io_sampling_freq": "50"}]
    assert sum("left out" in note for note in unused.notes) == 2


def test_every_option_has_a_reason_and_the_result_a_command():
    found = made(*(wish.wish for wish in ASCEND.wishes), given={"output": "a b"})
    assert all(run.reasons.keys() == run.values.keys() and all(run.reasons.values()) for run in found.runs)
    assert found.command == "msprof --export=on --output='a b'"
    assert {option for run in found.runs for option in run.values}.isdisjoint({"task_trace", "hccl"})


WISHES = st.lists(st.sampled_from([wish.wish for wish in ASCEND.wishes]), min_size=1, max_size=8, unique=True)


@given(WISHES, st.sampled_from(MODES), st.sampled_from(PRODUCTS), st.booleans(), st.sampled_from([{}, POINTS]))
def test_what_is_made_passes_the_check(wishes, mode, product, dynamic, points):
    given_ = {"output": "/tmp/it's here", **points}
    try:
        found = made(*wishes, mode=mode, product=product, dynamic=dynamic, given=given_)
    except UsageError:
        refusable = {"iterations", "instructions", "L2 hits"} & set(wishes) or (dynamic and not points)
        assert refusable, "refused without need"
        return
    for run in found.runs:
        for line in run.forms[""][1:]:
            context = {"mode": mode, "product": product, "dynamic": dynamic}
            assert checked(line, **context).verdict == "ok", line
            assert json.loads(shlex.split(line)[1].partition("=")[2]) == run.values
    asked = {option for wish in ASCEND.wishes if wish.wish in wishes for option in wish.sets}
    assert asked <= {option for run in found.runs for option in run.values}
    groups = {wish.sets["aic_metrics"] for wish in ASCEND.wishes if wish.wish in wishes and "aic_metrics" in wish.sets}
    # single instructions are recorded with task times off, and without what stands in EXCLUDED
    timed = any(wish.sets.get("task_time", "off") != "off" for wish in ASCEND.wishes if wish.wish in wishes)
    alone = "instructions" in wishes and (timed or bool(asked & set(EXCLUDED)))
    assert len(found.runs) == max(len(groups), 1) + alone


EXCLUDED = ("training_trace", "aicpu", "fp_point", "aic_metrics", "runtime_api")


@given(st.lists(st.sampled_from([wish.wish for wish in SOPHGO.wishes]), max_size=5), st.none() | st.integers(1, 10**9))
def test_what_is_made_for_sophgo_passes_the_check(wishes, count):
    records = None if count is None else EngineRecords("TIU", count, 40960)
    for run in made(*wishes, tables=SOPHGO, records=records).runs:
        for form in run.forms.values():
            text = "\n".join(form)
            assert checked(text, "sophgo", records=0 if records is None else records.count).verdict == "ok", text


@given(st.lists(st.sampled_from([wish.wish for wish in TORCH.wishes]), min_size=1, max_size=6))
def test_what_is_made_for_torch_is_python_and_passes_the_check(wishes):
    for run in made(*wishes, tables=TORCH, given={"output": 'a"b'}).runs:
        for form in run.forms.values():
            compile("\n".join(form), "made", "exec")
            assert checked("\n".join(form), "torch").verdict == "ok"


def test_modes_of_sophgo():
    assert lines("shapes", "tpu-train", tables=SOPHGO)[0] == "torch.ops.my_ops.enable_profile(40960, 2)"
    assert lines("times", "tpudnn", tables=SOPHGO) == ["pimpl->enableProfile(40960, 0);", "pimpl->disableProfile();"]
    assert lines("times", "operations", "tgi", tables=SOPHGO)[0] == "torch.ops.my_ops.enable_profile(40960, 1)"
    assert "PROFILE_MODE" not in lines("times", "bmodel", tables=SOPHGO)[0]


def test_the_call_of_torch():
    text = "\n".join(lines("kernels", "shapes", "stacks", tables=TORCH, given={"output": "run"}))
    assert "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]" in text
    assert 'on_trace_ready=tensorboard_trace_handler("run")' in text
    assert "record_shapes=True" in text
    assert "with_stack=True" in text
    assert "with_flops" not in text
    assert "schedule=" not in "\n".join(lines("whole run", tables=TORCH))
    assert lines("NPU", tables=TORCH)[0].startswith("from torch_npu.profiler import")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            "max_record_num=40960\ncore0_tiu_record=40000\ncore0_gdma_record=9",
            "TIU wrote 40,000 of 40,960: take 65,536",
        ),
        ("max_record_num=4096\n0_tiu_record=10\n1_gdma_record=1446\n", "GDMA wrote 1,446 of 4,096: 4,096 is enough"),
        (
            "cdma3_record=4096\nmax_record_num=4096",
            "CDMA filled all 4,096 records and lost some: take 8,192",
        ),
        ("core0_sdma_record=100", "SDMA wrote 100 or a few more: take 128"),
        ("max_record_num=9999999999999999999999\n0_tiu_record=x\n0_tiu_record=7", "TIU wrote 7 or a few more: take 8"),
    ],
)
def test_the_record_size_from_an_earlier_capture(settings, said):
    assert most_records(settings).sentence(SOPHGO).startswith(said)


def test_settings_that_count_nothing():
    assert most_records("arch=5\nmax_record_num=4096\n0_tiu_record=0") is None


@given(st.integers(1, 10**12), st.integers(0, 10**12))
def test_the_size_to_take_is_more_than_was_written(count, size):
    records = EngineRecords("TIU", count, size)
    assert records.new_size > count
    assert records.new_size >= size or size > count
