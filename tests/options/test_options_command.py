"""``tpuprof options`` as people type it: texts, files, standard input, environment; text, JSON, both languages."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from command_line import SAMPLES, program, state_folder, tool  # noqa: F401
from options_tables import KINDS, TABLES

from tpuprof_tui.cli.main import main

WRONG = "export PROFILING_OPTIONS=\"{'output':'/tmp/prof','task_trace':'on'}\""
BETTER = '{"output":"/tmp/prof","task_trace":"on","storage_limit":"300","aicpu":true}'
RIGHT = '{"output":"/tmp/prof","task_trace":"on","storage_limit":"300MB","aicpu":"on","training_trace":"on"}'


@pytest.fixture(autouse=True)
def _english(monkeypatch):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG", "PROFILING_OPTIONS", "PROFILING_MODE", "ENABLE_ALL_PROFILE"):
        monkeypatch.delenv(name, raising=False)


def told(capsys, *words):
    """Exit status, and what stands on stdout and on stderr."""
    status = main(["options", *map(str, words)])
    found = capsys.readouterr()
    return status, found.out, found.err


def as_json(capsys, *words):
    status, out, err = told(capsys, *words, "--json")
    assert err == ""
    return status, json.loads(out)


def test_from_a_wrong_line_to_a_right_one(capsys, monkeypatch):
    status, out, _ = told(capsys, "check", WRONG, "--mode", "training")
    assert status == 2
    assert "not_json" in out
    assert "single quotes" in out
    status, out, _ = told(capsys, "check", BETTER, "--mode", "training")
    assert status == 1
    assert [line.split()[1] for line in out.splitlines()[:5]] == [
        "storage_limit", "aicpu", "aicpu", "training_trace", "errors:",
    ]  # fmt: skip
    line = out.splitlines()[-1]
    assert shlex.split(line) == ["export", f"PROFILING_OPTIONS={RIGHT}"]
    monkeypatch.setenv("PROFILING_OPTIONS", RIGHT)
    status, out, _ = told(capsys, "check", "--mode", "training")
    assert (status, out.splitlines()[0]) == (0, "PROFILING_OPTIONS: ok")
    assert "PROFILING_MODE is not true" in out
    monkeypatch.setenv("PROFILING_MODE", "true")
    assert "the options take effect" in told(capsys, "check", "--mode", "training")[1]


def test_text_comes_from_argument_file_standard_input_and_environment(tmp_path):
    path = tmp_path / "options.sh"
    path.write_text(f"# it's for training\nexport PROFILING_MODE=true\nexport PROFILING_OPTIONS='{RIGHT}'\n")
    # argv, environment and files may hold bytes that are no UTF-8
    (tmp_path / "broken").write_bytes(b'{"output":"\xff"}')
    answers = [
        tool("options", "check", RIGHT, "--mode", "training"),
        tool("options", "check", "--mode", "training", RIGHT),
        tool("options", "check", path, "--mode", "training"),
        program("options", "check", "-", "--mode", "training", input=RIGHT),
        program("options", "check", "--mode", "training", env={"PROFILING_OPTIONS": RIGHT}),
    ]
    assert [(done.returncode, done.stdout.splitlines()[0]) for done in answers] == [(0, "PROFILING_OPTIONS: ok")] * 5
    broken = tool("options", "check", tmp_path / "broken")
    assert (broken.returncode, broken.stderr) == (2, "")
    assert "UTF-8" in broken.stdout


def test_the_shape_of_json(capsys):
    status, found = as_json(capsys, "check", '{"storage_limit":"100MB","l2":"off","dvpp_freq":5}')
    assert status == 1
    assert (found["verdict"], found["kind"], found["line"], found["notes"]) == ("errors", "PROFILING_OPTIONS", None, [])
    first = found["findings"][0]
    assert list(first) == ["severity", "code", "option", "value", "text", "fix"]
    assert (first["code"], first["value"]) == ("out_of_range", "100MB")
    assert found["options"] == {
        "storage_limit": {"value": "100MB", "default": False},
        "l2": {"value": "off", "default": True},
        "dvpp_freq": {"value": 5, "default": False},
    }
    assert as_json(capsys, "check", "[")[0] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check"], "PROFILING_OPTIONS is not set. Give a text, a file, or - for stdin."),
        (["check", "sophgo"], "None of ENABLE_ALL_PROFILE, "),
        (["check", "--kind", "profileConfig"], "No text of profileConfig given."),
        (["check", str(SAMPLES)], "is a folder"),
        (["check", "{}", "{}"], "one text or file"),
        (["check", "{}", "--output", "x"], "--output is for tpuprof options make."),
        (["explain", "task_tme"], "Similar: task_time."),
        (["explain", "aic_metrics=memory"], "has no value memory"),
        (["explain", "l2", "on", "off"], "Not understood: on."),
        (["make"], "No wish given. Wishes: operator times,"),
        (["make", "nonsense"], 'Not understood: "nonsense". Wishes: operator times,'),
        (["make", "iterations", "--mode", "inference"], "the mode is inference"),
        (["make", "operator times", "--dynamic"], "Shapes are dynamic"),
        (["make", "profileConfig", "l2"], "not made"),
        (["make", "sophgo", "--kind", "torch"], "sophgo has no kind torch"),
        (["make", "sophgo", "--capture", "/no/such"], "/no/such"),
        (["destroy"], "invalid choice"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(words, said, capsys):
    status, out, err = told(capsys, *words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


# -- explain ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_option_is_explained_once(kind, capsys):
    names = [option.name for option in TABLES[KINDS[kind]].options if option.kind == kind]
    status, out, _ = told(capsys, "explain", "--kind", kind)
    assert status == 0
    heads = [line.split()[0] for line in out.split("\n\n", 1)[1].splitlines() if line and not line.startswith(" ")]
    assert heads == names
    assert [option["name"] for option in as_json(capsys, "explain", "--kind", kind)[1]["options"]] == names


@pytest.mark.parametrize("option", [option for tables in TABLES.values() for option in tables.options],
                         ids=lambda option: option.name)  # fmt: skip
def test_one_option_is_explained_by_its_name_alone(option, capsys):
    status, out, _ = told(capsys, "explain", option.name)
    assert status == 0
    assert out.startswith(f"{option.name}  ")
    assert " ".join(option.summary.split()[:3]) in " ".join(out.split())
    assert all(name in out for name in option.files)
    assert as_json(capsys, "explain", option.name)[1]["cost"] == option.cost


def test_a_text_is_explained_with_what_it_leaves_out_and_what_will_be_seen(capsys):
    text = '{"training_trace":"on","task_trace":"l0","aic_metrics":"Memory","new":"1"}'
    _, out, _ = told(capsys, "explain", text)
    written, rest = out.split("Left at its default:")
    assert [name for name in ("training_trace =", "task_trace =", "aic_metrics =", "new =") if name in written] != []
    left, views = rest.split("The run will be able to show:")
    assert "task_time" not in left
    assert "hccl" in left
    assert [line.split()[0] for line in views.splitlines() if line] == [
        "training_trace=on", "task_trace=l0", "aic_metrics=Memory",
    ]  # fmt: skip
    _, found = as_json(capsys, "explain", text)
    assert [option["name"] for option in found["options"]][:3] == ["training_trace", "task_trace", "aic_metrics"]
    assert found["unknown"] == ["new"]
    assert {"by": "training_trace=on", "views": "steps"} in found["views"]
    assert "bound" in json.dumps(as_json(capsys, "explain", "{}")[1]["views"])
    assert "by_type" not in json.dumps(as_json(capsys, "explain", '{"task_time":"off"}')[1]["views"])


def test_a_value_is_explained_alone(capsys):
    out = told(capsys, "explain", "aic_metrics", "MemoryUB")[1]
    assert "ub_read_bw_vector" in out
    assert "mac_fp16_ratio" not in out
    assert told(capsys, "explain", "aic_metrics=MemoryUB")[1] == out


def test_sophgo_and_torch_are_explained(capsys):
    sophgo = told(capsys, "explain", "sophgo")[1]
    for word in ("ENABLE_ALL_PROFILE", "PROFILE_MODE", "PROFILE_RECORD_SIZE", "TPUKERNEL_FIRMWARE_PATH",
                 "enable_profile(max_record_num, mode)", "about 4 %", "7 to 10 %", "131072"):  # fmt: skip
        assert word in sophgo
    torch = told(capsys, "explain", "torch")[1]
    for word in (
        "schedule",
        "activities",
        "record_shapes",
        "profile_memory",
        "with_stack",
        "with_modules",
        "with_flops",
    ):
        assert f"\n{word}  " in torch


@pytest.mark.parametrize("language", ["en", "zh"])
def test_explanations_fit_the_terminal(language, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    out = told(capsys, "explain", "task_time", "--lang", language)[1]
    widths = [sum(1 + (letter > "\u2e80") for letter in line) for line in out.splitlines()]
    assert 50 < max(widths) <= 60
    wide = [line for line in out.splitlines() if re.match(r"    \S+ +\S", line)]
    assert len(wide) > 6


# -- make -------------------------------------------------------------------------


def test_what_is_made_can_be_pasted_and_checked_as_it_is(capsys, tmp_path):
    status, out, _ = told(capsys, "make", "kernels", "--product", "atlas-a2-training", "links", "--output", "a b")
    assert status == 0
    assert all(line.startswith(("export ", "#")) for line in out.splitlines())
    (tmp_path / "made").write_text(out)
    assert told(capsys, "check", tmp_path / "made", "--product", "atlas-a2-training")[:2] == (
        0,
        "PROFILING_OPTIONS: ok\n",
    )


def test_several_runs_in_text_and_json(capsys):
    status, out, _ = told(capsys, "make", "pipe", "l0")
    assert (status, out.count("export PROFILING_OPTIONS="), out.count("# run ")) == (0, 2, 2)
    _, found = as_json(capsys, "make", "pipe", "l0", "--output", "out")
    assert [run["options"]["aic_metrics"] for run in found["runs"]] == ["PipeUtilization", "MemoryL0"]
    assert all(run["lines"][0] == "export PROFILING_MODE=true" for run in found["runs"])
    assert found["command"] == "msprof --export=on --output=out"


def test_the_record_size_of_a_capture(capsys, tmp_path):
    (tmp_path / "global.profile").write_text("arch=5\nmax_record_num=40960\ncore0_tiu_record=40000\n")
    out = told(capsys, "make", "sophgo", "registers", "--capture", tmp_path)[1]
    assert "TIU wrote 40,000 of 40,960: take 65,536" in out
    assert "export PROFILE_RECORD_SIZE=65536" in out
    assert "torch.ops.my_ops.enable_profile(65536, 2)" in out
    status, found = as_json(capsys, "check", "sophgo", "enable_profile(40000, 1)", "--capture", tmp_path)
    assert (status, [each["code"] for each in found["findings"]]) == (0, ["record_size_small"])


def test_a_capture_that_counts_no_records_is_read(capsys, tmp_path):
    capture = tmp_path / "capture"
    shutil.copytree(SAMPLES / "aks_decode_mode0", capture)
    (capture / "global.profile").write_text("arch=5\n")
    out = told(capsys, "make", "sophgo", "bmodel", "--capture", capture / "global.profile")[1]
    assert "TIU wrote 378 or a few more: take 512" in out
    assert "export PROFILE_RECORD_SIZE=512" in out


def test_sophgos_environment_is_checked(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("ENABLE_ALL_PROFILE", "1")
    monkeypatch.setenv("TPUKERNEL_FIRMWARE_PATH", str(tmp_path / "libfirmware_core.so"))
    _, found = as_json(capsys, "check", "sophgo")
    assert [each["code"] for each in found["findings"]] == ["path_missing"]
    (tmp_path / "libfirmware_core.so").touch()
    assert as_json(capsys, "check", "sophgo")[1]["verdict"] == "ok"


# -- languages, help, import --------------------------------------------------------


def test_the_language_is_asked_for_or_that_of_the_locale(capsys, monkeypatch):
    assert "存储" in told(capsys, "explain", "aic_metrics", "--lang", "zh")[1]
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert "改正后" in told(capsys, "check", BETTER)[1]
    assert "没有看懂" in told(capsys, "make", "nonsense")[2]
    assert "Corrected" in told(capsys, "check", BETTER, "--lang", "en")[1]
    monkeypatch.setenv("LC_ALL", "C")
    assert "Corrected" in told(capsys, "check", BETTER)[1]


def test_help_in_both_languages(capsys, monkeypatch):
    def help_of(*words):
        assert main(["options", *words]) == 0
        return capsys.readouterr().out

    english, chinese = help_of("--help"), help_of("--lang=zh", "make", "--help")
    assert "Profiling options: what each means" in english
    assert "产生 profile 的选项" in chinese
    flags = set(re.findall(r"--[a-z-]+", english))
    assert len(flags) > 10
    assert flags == set(re.findall(r"--[a-z-]+", chinese))
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert help_of("-h").splitlines()[-5:] == chinese.splitlines()[-5:]
    assert main(["help", "options"]) == 0
    assert "产生 profile 的选项" in capsys.readouterr().out


def test_no_text_lacks_a_language():
    folder = Path(__file__).parents[2] / "tpuprof_tui" / "options" / "tables"

    def texts(data):
        if isinstance(data, dict):
            if {"en", "zh"} & data.keys():
                assert data.keys() == {"en", "zh"}, data
                assert all(data.values())
                yield data
            else:
                for each in data.values():
                    yield from texts(each)
        elif isinstance(data, list):
            for each in data:
                yield from texts(each)

    found = [text for path in folder.rglob("*.json") for text in texts(json.loads(path.read_text(encoding="utf-8")))]
    assert len(found) > 300
