"""Rules: each with texts that break it and texts that do not, and what the corrected line says."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from options_tables import KINDS, TABLES, checked, codes, tables_of

CASES = json.loads((Path(__file__).parents[1] / "data" / "options_cases.json").read_text(encoding="utf-8"))["cases"]
TRAINING, INFERENCE = {"mode": "training"}, {"mode": "inference"}

#: Each option: a value that is right by itself, and one that is not (None: none is wrong).
VALUES = {
    "output": ("/tmp/p", "a\tb"), "storage_limit": ("200MB", "200 MB"), "training_trace": ("on", "ON"),
    "task_trace": ("off", "l2"), "task_time": ("off", "2"), "ge_api": ("l1", "on"), "hccl": ("off", "l0"),
    "aicpu": ("on", "true"), "fp_point": ("", None), "bp_point": ("", None), "l2": ("on", ""),
    "aic_metrics": ("Custom: 0x1 , 110", "Custom:"), "msproftx": ("on", "mstx"), "runtime_api": ("on", "yes"),
    "sys_hardware_mem_freq": ("100", "101"), "llc_profiling": ("write", "both"), "sys_io_sampling_freq": ("1", "0"),
    "sys_interconnection_freq": ("50", "51"), "dvpp_freq": ("100", "1e2"), "instr_profiling_freq": ("300", "299"),
    "host_sys": ("cpu, mem", "cpu,"), "host_sys_usage": ("mem", "disk"), "host_sys_usage_freq": ("50", "-1"),
    "ACL_PROF_ACL_API": ("True", "1"), "ACL_PROF_TASK_TIME": ("False", "'True'"),
    "ACL_PROF_AICORE_METRICS": ("True", "None"), "ACL_PROF_AICPU": ("True", "on"), "ACL_PROF_L2CACHE": ("False", "0"),
    "ACL_PROF_HCCL_TRACE": ("True", "[]"), "ACL_PROF_TRAINING_TRACE": ("True", "x.y"),
    "TORCH_CALL_STACK": ("False", "2"), "aiCoreMetricsType": ("0xFF", "True"),
    "ENABLE_ALL_PROFILE": ("1", "yes"), "PROFILE_MODE": ("2", "0"), "PROFILE_RECORD_SIZE": ("65536", "0"),
    "TPUKERNEL_FIRMWARE_PATH": ("/lib/x.so", None), "max_record_num": ("65536", "0"), "mode": ("0", "3"),
    "activities": ("[ProfilerActivity.CPU]", None), "schedule": ("schedule(wait=1, warmup=1, active=3)", None),
    "on_trace_ready": ("handler", None), "record_shapes": ("True", "1"), "profile_memory": ("True", "yes"),
    "with_stack": ("True", "0"), "with_modules": ("True", "'on'"), "with_flops": ("True", "1.0"),
    "experimental_config": ("config()", None), "execution_trace_observer": ("observer", None),
    "acc_events": ("True", "1"), "custom_trace_id_callback": ("f", None), "use_cuda": ("True", None),
}  # fmt: skip

#: What breaks each rule: kind, text, circumstances, the option of the finding; and the same without breaking it.
OPTIONS, CONFIG = "PROFILING_OPTIONS", "profileConfig"
RULES = {
    ("ascend", "not_json"): (OPTIONS, "[]", {}, None, "{}"),
    ("ascend", "duplicate_option"): (OPTIONS, '{"l2":"on","l2":"on"}', {}, "l2", '{"l2":"on"}'),
    ("ascend", "unknown_option"): (OPTIONS, '{"L2":"on"}', {}, "L2", '{"l2":"on"}'),
    ("ascend", "value_not_text"): (OPTIONS, '{"dvpp_freq":50}', {}, "dvpp_freq", '{"dvpp_freq":"50"}'),
    ("ascend", "bad_value"): (OPTIONS, '{"host_sys":""}', {}, "host_sys", '{"host_sys":"cpu"}'),
    ("ascend", "aicpu_counts_as_off"): (OPTIONS, '{"aicpu":"maybe"}', {}, "aicpu", '{"aicpu":"off"}'),
    ("ascend", "out_of_range"): (
        OPTIONS,
        '{"storage_limit":"199MB"}',
        {},
        "storage_limit",
        '{"storage_limit":"200MB"}',
    ),
    ("ascend", "storage_limit_unit"): (
        OPTIONS,
        '{"storage_limit":300}',
        {},
        "storage_limit",
        '{"storage_limit":"1GB"}',
    ),
    ("ascend", "path_characters"): (OPTIONS, '{"output":"a\x7f"}', {}, "output", '{"output":"a "}'),
    ("ascend", "output_empty"): (OPTIONS, '{"output":""}', {}, "output", '{"output":"."}'),
    ("ascend", "custom_syntax"): (
        OPTIONS,
        '{"aic_metrics":"Custom:0x1,,2"}',
        {},
        "aic_metrics",
        '{"aic_metrics":"Custom:0x1,2"}',
    ),
    ("ascend", "custom_range"): (
        OPTIONS,
        '{"aic_metrics":"Custom:111"}',
        {},
        "aic_metrics",
        '{"aic_metrics":"Custom:0x6e"}',
    ),
    ("ascend", "custom_too_many"): (
        OPTIONS,
        '{"aic_metrics":"Custom:1,2,3,4,5,6,7,8,9"}',
        {},
        "aic_metrics",
        '{"aic_metrics":"Custom:1,2,3,4,5,6,7,8"}',
    ),
    ("ascend", "custom_twice"): (
        OPTIONS,
        '{"aic_metrics":"Custom:0x8,8"}',
        {},
        "aic_metrics",
        '{"aic_metrics":"Custom:0x8,9"}',
    ),
    ("ascend", "training_trace_needed"): (
        OPTIONS,
        '{"task_time":"l0"}',
        TRAINING,
        "training_trace",
        '{"task_time":"off"}',
    ),
    ("ascend", "not_in_inference"): (OPTIONS, '{"fp_point":""}', INFERENCE, "fp_point", '{"training_trace":"off"}'),
    ("ascend", "fp_bp_without_trace"): (
        OPTIONS,
        '{"bp_point":""}',
        {},
        "bp_point",
        '{"bp_point":"","training_trace":"on"}',
    ),
    ("ascend", "fp_bp_needed"): (
        OPTIONS,
        '{"training_trace":"on","bp_point":"x"}',
        {"dynamic": True},
        "fp_point",
        '{"training_trace":"on","bp_point":"x","fp_point":"y"}',
    ),
    ("ascend", "instr_excludes"): (
        OPTIONS,
        '{"instr_profiling_freq":"1000","task_time":"off","fp_point":"off"}',
        {},
        "fp_point",
        '{"instr_profiling_freq":"1000","task_time":"off","l2":"off"}',
    ),
    ("ascend", "instr_needs_task_off"): (
        OPTIONS,
        '{"instr_profiling_freq":"1000"}',
        {},
        "task_trace",
        '{"instr_profiling_freq":"1000","task_trace":"off"}',
    ),
    ("ascend", "not_on_product"): (
        OPTIONS,
        '{"aic_metrics":"L2Cache"}',
        {"product": "atlas-training"},
        "aic_metrics",
        '{"aic_metrics":"Memory"}',
    ),
    ("ascend", "deprecated"): (OPTIONS, '{"hccl":"on"}', {}, "hccl", '{"hccl":"off"}'),
    ("ascend", "task_switches_disagree"): (
        OPTIONS,
        '{"task_time":"l0","task_trace":"on"}',
        {},
        "task_time",
        '{"task_time":"l1","task_trace":"on"}',
    ),
    ("ascend", "metrics_without_tasks"): (
        OPTIONS,
        '{"aic_metrics":"Memory","task_time":"off"}',
        {},
        "aic_metrics",
        '{"aic_metrics":"Memory"}',
    ),
    ("ascend", "frequency_without_switch"): (
        OPTIONS,
        '{"llc_profiling":"read"}',
        {},
        "llc_profiling",
        '{"llc_profiling":"read","sys_hardware_mem_freq":"1"}',
    ),
    ("ascend", "wrong_framework"): (OPTIONS, "{}", {"framework": "pytorch"}, None, None),
    ("ascend", "metrics_type_ignored"): (
        CONFIG,
        "profileConfig(ACL_PROF_AICORE_METRICS=False, aiCoreMetricsType=2)",
        {},
        "aiCoreMetricsType",
        "profileConfig(aiCoreMetricsType=2)",
    ),
    ("ascend", "result_grows"): (
        CONFIG,
        "profileConfig(TORCH_CALL_STACK=True)",
        {},
        "TORCH_CALL_STACK",
        "profileConfig(TORCH_CALL_STACK=False)",
    ),
    ("sophgo", "no_options"): ("sophgo", "PATH=/bin", {}, None, "ENABLE_ALL_PROFILE=1"),
    ("sophgo", "duplicate_option"): (
        "sophgo",
        "ENABLE_ALL_PROFILE=1 ENABLE_ALL_PROFILE=1 x",
        {},
        "ENABLE_ALL_PROFILE",
        "ENABLE_ALL_PROFILE=1 x",
    ),
    ("sophgo", "unknown_option"): (
        "sophgo",
        "ENABLE_ALL_PROFILES=1",
        {},
        "ENABLE_ALL_PROFILES",
        "ENABLE_ALL_PROFILE=1",
    ),
    ("sophgo", "bad_value"): ("sophgo", "enable_profile(9, 7)", {}, "mode", "enable_profile(9, 2)"),
    ("sophgo", "out_of_range"): (
        "sophgo",
        "pimpl->enableProfile(0, 1);",
        {},
        "max_record_num",
        "pimpl->enableProfile(40960, 1);",
    ),
    ("sophgo", "not_switched_on"): (
        "sophgo",
        "export ENABLE_ALL_PROFILE=0",
        {},
        "ENABLE_ALL_PROFILE",
        "export ENABLE_ALL_PROFILE='1'",
    ),
    ("sophgo", "switch_missing"): (
        "sophgo",
        "PROFILE_MODE=1",
        {},
        "PROFILE_MODE",
        "PROFILE_MODE=1 ENABLE_ALL_PROFILE=1",
    ),
    ("sophgo", "path_missing"): (
        "sophgo",
        "TPUKERNEL_FIRMWARE_PATH=/no/such",
        {"here": True},
        "TPUKERNEL_FIRMWARE_PATH",
        "TPUKERNEL_FIRMWARE_PATH=/",
    ),
    ("sophgo", "record_size_small"): (
        "sophgo",
        "enable_profile(40000, 1)",
        {"records": 40000},
        "max_record_num",
        "enable_profile(40001, 1)",
    ),
    ("torch", "no_options"): ("torch", "with profile(record_shapes=True: pass", {}, None, "profile()"),
    ("torch", "duplicate_option"): (
        "torch",
        "profile(with_stack=True, with_stack=True)",
        {},
        "with_stack",
        "profile(with_stack=True)",
    ),
    ("torch", "unknown_option"): ("torch", "profile(with_stacks=True)", {}, "with_stacks", "profile(with_stack=True)"),
    ("torch", "bad_value"): ("torch", "profile(with_stack='yes')", {}, "with_stack", "profile(with_stack=False)"),
    ("torch", "deprecated"): ("torch", "profile(use_cuda=True)", {}, "use_cuda", "profile()"),
    ("torch", "no_file"): ("torch", "profile(schedule=f)", {}, "schedule", "profile(schedule=f, on_trace_ready=g)"),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_documents_cases(case):
    found = checked(case["input"], case["kind"], **case["context"])
    assert found.verdict == case["verdict"]
    told = sorted((each.severity, each.code, str(each.option)) for each in found.violations)
    assert told == sorted((each["severity"], each["code"], str(each["option"])) for each in case["codes"])


def test_every_option_is_tested():
    assert VALUES.keys() == {option.name for tables in TABLES.values() for option in tables.options}


def text_with(option, value):
    if option.kind == "PROFILING_OPTIONS":
        return json.dumps({option.name: value})
    call = {"profileConfig": "profileConfig", "torch": "profile"}.get(option.kind) or (
        "enable_profile" if option.name.islower() else ""
    )
    return f"{call}({option.name}={value})" if call else f"{option.name}={shlex.quote(value)}"


@pytest.mark.parametrize("name", VALUES)
def test_values_right_and_wrong(name):
    option = next(each for tables in TABLES.values() for each in tables.options if each.name == name)
    right, wrong = VALUES[name]
    by_value = {
        "bad_value",
        "out_of_range",
        "value_not_text",
        "path_characters",
        "custom_syntax",
        "aicpu_counts_as_off",
        "not_switched_on",
    }
    assert not by_value & {code for code, _ in codes(text_with(option, right), option.kind)}
    if wrong is not None:
        assert by_value & {code for code, about in codes(text_with(option, wrong), option.kind) if about == name}


def test_every_rule_is_tested():
    assert RULES.keys() == {(source, code) for source, tables in TABLES.items() for code in tables.rules}


@pytest.mark.parametrize(("source", "code"), RULES, ids="-".join)
def test_what_breaks_a_rule_and_what_does_not(source, code):
    kind, broken, context, option, sound = RULES[source, code]
    assert KINDS[kind] == source
    assert (code, option) in codes(broken, kind, **context)
    if sound is not None:
        assert code not in {each for each, _ in codes(sound, kind, **context)}
    finding = next(each for each in checked(broken, kind, **context).violations if each.code == code)
    assert finding.text.endswith(".")
    assert finding.fix
    assert "{" not in finding.text.replace("{…}", "") + finding.fix


# -- single sentences of the documents --------------------------------------------


def test_severity_of_the_iteration_trace_depends_on_the_mode():
    text = '{"task_trace":"l1"}'
    assert checked(text).verdict == "warnings"
    assert checked(text, **TRAINING).verdict == "errors"
    assert checked(text, **INFERENCE).verdict == "ok"


def test_a_wrong_value_counts_as_written():
    assert ("training_trace_needed", "training_trace") in codes('{"task_time":"L1"}', **TRAINING)
    assert ("instr_excludes", "l2") in codes('{"instr_profiling_freq":"x","l2":null,"task_time":"off"}')


def test_values_that_are_no_text():
    assert codes('{"l2":true}') == {("value_not_text", "l2"), ("bad_value", "l2")}
    assert codes('{"storage_limit":300}') == {
        ("value_not_text", "storage_limit"),
        ("storage_limit_unit", "storage_limit"),
    }
    assert codes('{"output":5}') == {("value_not_text", "output"), ("bad_value", "output")}
    assert codes('{"dvpp_freq":50.0}') == {("value_not_text", "dvpp_freq"), ("bad_value", "dvpp_freq")}
    assert codes('{"dvpp_freq":-5}') == {("value_not_text", "dvpp_freq"), ("out_of_range", "dvpp_freq")}
    assert codes('{"host_sys":["cpu"]}') == {("value_not_text", "host_sys"), ("bad_value", "host_sys")}


def test_instructions_exclude_ten_options():
    excluded = {"training_trace": "on", "task_trace": "l0", "hccl": "on", "aicpu": "on", "fp_point": "", "bp_point": "",
                "aic_metrics": "Memory", "l2": "on", "task_time": "on", "runtime_api": "on"}  # fmt: skip
    found = codes(json.dumps({"instr_profiling_freq": "1000", **excluded}))
    assert {option for code, option in found if code == "instr_excludes"} == set(excluded)


def test_the_framework_is_told_even_of_an_unreadable_text():
    found = checked("nothing", framework="mindspore")
    assert [each.code for each in found.violations] == ["not_json", "wrong_framework"]
    assert (found.verdict, found.readable) == ("errors", False)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"storage_limit":"300"}', '{"storage_limit":"300MB"}'),
        ('{"storage_limit":"300 mb"}', '{"storage_limit":"300MB"}'),
        ('{"aic_metrics":"memoryl0"}', '{"aic_metrics":"MemoryL0"}'),
        ('{"l2":true,"msproftx":false}', '{"l2":"on","msproftx":"off"}'),
        ('{"dvpp_freq":50}', '{"dvpp_freq":"50"}'),
        ('{"Task-Time":"l0"}', '{"task_time":"l0","training_trace":"on"}'),
        ('{"aic_metrics":"Custom:0x8,8,9"}', '{"aic_metrics":"Custom:0x8,9"}'),
        ('{"hccl":"on","l2":"on"}', '{"l2":"on"}'),
        ('{"instr_profiling_freq":"500"}', '{"instr_profiling_freq":"500","task_time":"off"}'),
        ('{"l2":"on","l2":"off"}', '{"l2":"off"}'),
        ('{"output":"it\'s","l2":"yes"}', '{"output":"it\'s","l2":"on"}'),
    ],
)
def test_the_corrected_line_says_what_was_meant_and_passes(text, line):
    found = checked(text)
    assert shlex.split(found.line) == ["export", f"PROFILING_OPTIONS={line}"]
    assert checked(found.line).verdict == "ok"


@pytest.mark.parametrize("text", ['{"dvpp_freq":"101"}', '{"hccl":"on","task_time":"l0","training_trace":"on"}',
                                  '{"l2":"on"}', '{"zzz":"1"}', '{"output":""}'])  # fmt: skip
def test_no_line_where_nothing_or_more_than_one_thing_is_to_be_done(text):
    assert checked(text).line is None


def test_flags_of_a_call_are_corrected_too():
    found = checked("cfg = profileConfig(ACL_PROF_AICPU='true', aicore_metrics=ACL_AICORE_MEMORY_UB)", "profileConfig")
    assert found.line == "torch_npu.npu.profileConfig(ACL_PROF_AICPU=True, aiCoreMetricsType=5)"
    assert checked(found.line, "profileConfig").verdict == "ok"
    both = checked("PROFILE_MODE=1 PROFILE_RECORD_SIZE=5", "sophgo")
    assert both.line.split("\n")[-1] == "export ENABLE_ALL_PROFILE=1"


def test_the_order_of_findings_is_that_of_the_table():
    one = checked('{"l2":"x","zz":"1","aicpu":"x","aa":"2"}')
    other = checked('{"aa":"2","aicpu":"x","zz":"1","l2":"x"}')
    assert one.violations == other.violations
    assert [each.option for each in one.violations] == ["aicpu", "l2", "aa", "zz"]


def test_both_languages_say_everything():
    from tpuprof_tui.options.tables import load

    for kind, source in KINDS.items():
        for one, other in zip(tables_of(kind).rules.values(), load(source, "zh").rules.values(), strict=True):
            assert one.code == other.code
            assert any("\u4e00" <= letter <= "\u9fff" for letter in other.says)
