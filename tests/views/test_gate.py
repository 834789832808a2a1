"""``tpuprof gate``: how often it is wrong, by simulation, and what it says of captures."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from profiles import session_of

from tpuprof_tui.analysis.compare.gate import Figure, Rule, Run, gate, joint_names
from tpuprof_tui.analysis.compare.noise import Lost, quantile, upper_tail
from tpuprof_tui.analysis.operation_names import operation_synonyms
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.cli.json_schema import schema_text
from tpuprof_tui.cli.main import main
from tpuprof_tui.cli.printing import MOST_BYTES
from tpuprof_tui.errors import UsageError
from tpuprof_tui.formats.escape import markdown_code, markdown_text
from tpuprof_tui.formats.parsing import TimeBase, range_typed
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.views.gate_report import side_of
from tpuprof_tui.views.registry import answer, view_of
from tpuprof_tui.views.report import of_worker, workers_of

SAMPLES = Path(__file__).parents[2] / "samples"

import torch_trace  # noqa: E402
from capture_writer.capture import write_capture  # noqa: E402
from capture_writer.options import Options  # noqa: E402

LAUNCHES, LAUNCH_NOISE, RUN_NOISE = 40, 0.02, 0.01
#: Comparisons that are simulated; what docs/compare.md says is of GATE_COMPARISONS=400.
COMPARISONS = int(os.environ.get("GATE_COMPARISONS", "100"))


def a_run(random: np.random.Generator, slower: float = 1.0, *, together: bool = True) -> Run:
    """A run of ten kernels of equal time; a run is slower or faster as a whole, or each kernel by itself."""
    common = 1 + RUN_NOISE * random.standard_normal()
    figures, total = {}, 0.0
    for number in range(10):
        pace = common if together else 1 + RUN_NOISE * random.standard_normal()
        mean = 10_000 * pace * (slower if number == 0 else 1)
        took = mean * (1 + LAUNCH_NOISE * random.standard_normal(LAUNCHES))
        figures[f"kernel:k{number}"] = Figure(took.sum(), LAUNCHES, LAUNCHES * took.var(ddof=1), LAUNCHES - 1)
        total += took.sum()
    return Run("", {**figures, "total": Figure(total, 1, sum(each.variance for each in figures.values()), 300)})


def runs(random: np.random.Generator, *, slower: float = 1.0, together: bool = True) -> list[Run]:
    return [a_run(random, slower, together=together) for _ in range(5)]


@pytest.mark.parametrize("together", [True, False])
def test_noise_alone_seldom_raises_an_alarm(together):
    random = np.random.default_rng(1)
    alarms = sum(
        gate(runs(random, together=together), runs(random, together=together)).result == "FAIL"
        for _ in range(COMPARISONS)
    )
    assert alarms <= 0.03 * COMPARISONS


@pytest.mark.parametrize("together", [True, False])
def test_a_slower_kernel_is_found(together):
    random = np.random.default_rng(2)
    found = 0
    for _ in range(COMPARISONS // 4):
        result = gate(runs(random, together=together), runs(random, slower=1.05, together=together))
        found += any(each.rule.figure == "kernel:k0" and each.result == "FAIL" for each in result.rules)
    assert found >= 0.95 * (COMPARISONS // 4)


def test_one_run_a_side_rests_on_what_is_stated():
    random = np.random.default_rng(3)
    one, same, slower = a_run(random), a_run(random), a_run(random, 1.2)
    assert gate([one], [one]).result == "PASS"
    assert gate([one], [same], [Rule.parse("kernel:k0>5%")], run_noise=0.02).result != "FAIL"
    assert gate([one], [slower], [Rule.parse("kernel:k0>5%")], run_noise=0.02).result == "FAIL"
    assert gate([one], [slower], [Rule.parse("kernel:k0>5%")], run_noise=0.3).result == "INCONCLUSIVE"
    assert gate([one], [slower]).noise.stated
    assert not gate([one] * 3, [slower] * 3).noise.stated


def test_what_is_new_fails_and_what_is_gone_passes():
    run = Run("", {"total": Figure(100.0), "kernel:a": Figure(10.0, 3, 0.1, 2)})
    without = Run("", {"total": Figure(100.0), "kernel:b": Figure(10.0, 3, 0.1, 2)})
    for text in ("kernel:a>5%", "kernel:a>0%"):
        assert gate([without], [run], [Rule.parse(text)]).result == "FAIL"
        assert gate([run], [without], [Rule.parse(text)]).result == "PASS"
    assert gate([without], [run], [Rule.parse("kernel:a>0.02us")]).result == "PASS"
    assert gate([without], [run], [Rule.parse("kernel:a>0.001us")]).result == "FAIL"


def test_what_a_run_does_not_record_is_not_judged():
    """A figure that a run lacks is neither gone nor new, nor is a part of runs of which some name no parts."""
    total = {"total": Figure(100.0), "step": Figure(10.0)}
    named = Run("", {**total, "kernel:a": Figure(9.0, 3, 0.1, 2), "operation:b": Figure(9.0, 3, 0.1, 2)})
    lanes = Run("", {**total, "kernel:Core 0 TIU": Figure(9.0, 3, 0.1, 2)})
    short = Run("", {"total": Figure(100.0)})
    for base, other, text in (
        ([named], [lanes], "kernel:a>5us"), ([lanes], [named], "kernel:a>5us"), ([named], [lanes], "operation:b>5%"),
        ([named], [short], "step>5%"), ([short], [named], "step>5%"), ([named] * 3, [named, named, short], "step>5%"),
        ([named], [short], "kernel:a>5%"),
    ):  # fmt: skip
        (told,) = gate(base, other, [Rule.parse(text)]).rules
        assert (told.result, told.recorded) == ("INCONCLUSIVE", False)


def test_parts_of_recordings_of_which_one_names_nothing_are_not_new():
    lanes = Run("", {"total": Figure(1_000.0, 1, 0.0), "kernel:Core 0 TIU": Figure(900.0, 9, 0.0)})
    named = Run("", {"total": Figure(1_000.0, 1, 0.0), "kernel:softmax": Figure(900.0, 9, 0.0)})
    assert [each.result for each in gate([lanes], [named]).rules] == ["PASS"]


def test_growth_that_nothing_measures_is_no_failure():
    """One run a side of what does not repeat: the floor alone shows no growth, but it can show that there is none."""
    before, after, fewer = (Run("", {"total": Figure(100.0, 1, 0.01, 9), "kernel:a": Figure(value)})
                            for value in (10.0, 12.0, 9.0))  # fmt: skip
    rule = [Rule.parse("kernel:a>5%")]
    assert gate([before], [after]).result == "PASS"
    (told,) = gate([before], [after], rule).rules
    assert (told.result, told.amount.low, told.amount.high) == ("INCONCLUSIVE", None, None)
    assert gate([before], [fewer], rule).result == "PASS"
    # three runs a side measure it themselves
    assert gate([before] * 3, [after] * 3, rule).result == "FAIL"


def test_lost_records_leave_open_what_they_could_explain():
    """A part that grew as the base lost some, or shrank as the other did, is not judged; all else is."""
    few, many = ({"total": Figure(100.0, 1, 0.01, 9), "kernel:a": Figure(value, count, 0.01, 9)}
                 for value, count in ((10.0, 5), (20.0, 10)))  # fmt: skip
    rule = [Rule.parse("kernel:a>5%")]
    for lost, base, other, result in (
        ((3, 0), few, many, "INCONCLUSIVE"), ((0, 3), few, many, "FAIL"),
        ((3, 0), many, few, "PASS"), ((0, 3), many, few, "INCONCLUSIVE"),
    ):  # fmt: skip
        sides = [Run("", base, lost[0])], [Run("", other, lost[1])]
        assert gate(*sides, rule).result == gate(*sides).result == result
    # of other figures only how much they shrank, or the base did, is known; what is lost without a number counts too
    for figure in ("total", "step", "overview.busiest_us"):
        less, more = ({"total": Figure(100.0), figure: Figure(value, 1, 0.0, 9)} for value in (50.0, 100.0))
        for run in (Run("", less, 3), Run("", less, incomplete=True)):
            assert gate([Run("", more)], [run], [Rule.parse(f"{figure}>5%")]).result == "INCONCLUSIVE"
        assert gate([Run("", more)], [Run("", more, 3)], [Rule.parse(f"{figure}>5%")]).result == "PASS"
        assert gate([Run("", less)], [Run("", more, 3)], [Rule.parse(f"{figure}>5%")]).result == "FAIL"
        for run in (Run("", less, 3), Run("", less, incomplete=True)):
            assert gate([run], [Run("", more)], [Rule.parse(f"{figure}>5%")]).result == "INCONCLUSIVE"
    unnamed = {**few, "kernel:-": Figure(9.0, 4, 0.01, 3)}
    assert gate([Run("", few)], [Run("", unnamed)]).result == "FAIL"
    assert gate([Run("", few)], [Run("", unnamed, 3)]).result == "INCONCLUSIVE"
    found = gate([Run("", few)], [Run("", few, 3), Run("", few, 4, incomplete=True)])
    assert (found.lost, found.incomplete) == (Lost(0, 7), Lost(0, 8))


def test_operations_pair_by_their_codes():
    """Names of each side are told together, however many a side has; a name that both know is compared with itself."""
    codes = ({("TIU", "2"): ("MM",), ("TIU", "3"): ("mul", "mul_c"), ("DMA", "0"): ("ld", "st"), ("TIU", "9"): ("x",)},
             {("TIU", "2"): ("mm.nn",), ("TIU", "3"): ("arith.mul",), ("DMA", "0"): ("ld", "st")})  # fmt: skip
    sides = [[Run("", {"total": Figure(100.0, 1, 1.0, 9),
                       **{f"operation:{name}": Figure(10.0, 2, 0.5, 4) for names in known.values() for name in names}},
                  codes=known)] for known in codes]  # fmt: skip
    called = joint_names(*sides)
    base, other = ([run.renamed(called) for run in side] for side in sides)
    assert base[0].figures["operation:mul, mul_c (arith.mul)"] == Figure(20.0, 4, 1.0, 8.0)
    assert called["operation:arith.mul"] == called["operation:mul_c"] == "operation:mul, mul_c (arith.mul)"
    assert set(base[0].figures) - set(other[0].figures) == {"operation:x"}
    assert set(other[0].figures) < set(base[0].figures)
    # of one recording nothing changes
    assert joint_names(sides[0], sides[0]) == {}


def test_a_program_recorded_in_another_mode_passes(capsys, tmp_path):
    base = Options("base", layers=1, batches=4, cores=(0, 1))
    paths = [str(write_capture(replace(base, name=f"mode{mode}", mode=mode, run=mode + 2), tmp_path, truth=False).path)
             for mode in (1, 2)]  # fmt: skip
    assert main(["baseline", "save", str(tmp_path / "kept"), paths[0]]) == 0
    kept = str(tmp_path / "kept.json")
    capsys.readouterr()
    for other, base in ((paths[1], paths[0]), (paths[0], paths[1]), (paths[1], kept)):
        main(["gate", other, "--against", base, "--json"])
        told = json.loads(capsys.readouterr().out)
        assert "FAIL" not in {each["result"] for each in told["rules"]}
        assert not {each["status"] for each in told["verdict"]["contributors"]} & {"added", "removed"}
        assert "differently than before" not in told["verdict"]["why"]
    # a rule may name an operation as either side does
    for name in ("MM2_NN", "mm2.nn", "MM2_NN (mm2.nn)"):
        assert main(["gate", paths[1], "--against", paths[0], "--fail-on", f"operation:{name}>50%"]) == 0


def test_kept_signatures_do_not_depend_on_the_order_of_names(tmp_path):
    """The same commands give the same numbers whatever else a recording names before them."""
    found = []
    for kernels in (("rmsnorm", "mlp", "sampling"), ("sampling", "mlp", "rmsnorm"), ("rope", "rmsnorm", "mlp")):
        options = Options("base", cores=(0, 1), kernels=kernels)
        path = write_capture(replace(options, name="-".join(kernels)), tmp_path, truth=False).path
        (run,) = side_of(Query(session_of(open_profile(path))), str(path)).runs
        found.append(run.signatures)
    for name in ("rmsnorm_multi_core", "llama_mlp_multi_core"):
        assert len({each[name] for each in found}) == 1


def test_rules_are_cut_at_their_last_sign_outside_quotes():
    assert Rule.parse("total>5%") == Rule("total>5%", "total", 0.05)
    assert Rule.parse("step > 1.5us").ns == 1500
    assert Rule.parse("kernel:f<int>(x)>2%").figure == "kernel:f<int>(x)"
    assert Rule.parse('kernel:"a > b">2%').figure == "kernel:a > b"
    for text in ("", "total", "total>5", ">5%", "total>x%", "total>5%%", 'kernel:"a>5%"'):
        with pytest.raises(UsageError, match=f"^{re.escape(repr(text))} is not a rule"):
            Rule.parse(text)


def test_the_distribution_is_students():
    """Values from tables."""
    for tail, degrees_of_freedom, value in (
        (0.025, 1, 12.7062),
        (0.025, 10, 2.2281),
        (0.005, 8, 3.3554),
        (0.0005, 20, 3.8495),
    ):
        assert quantile(tail, degrees_of_freedom) == pytest.approx(value, abs=1e-4)
        assert upper_tail(value, degrees_of_freedom) == pytest.approx(tail, rel=1e-3)
    assert quantile(0.025, 1e9) == pytest.approx(1.959964, abs=1e-5)
    assert upper_tail(-1.0, 5) == pytest.approx(1 - upper_tail(1.0, 5))


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    base = Options("base", layers=1, batches=4, cores=(0, 1))
    for number in range(1, 7):
        slower = ("mlp:1.1",) if number > 3 else ()
        write_capture(replace(base, name=f"run{number}", run=number, slower=slower), folder, truth=False)
    return folder


def test_captures(capsys, written, tmp_path):
    before, after = ([str(written / f"run{number}") for number in numbers] for numbers in ((1, 2, 3), (4, 5, 6)))
    kept = tmp_path / "main.json"
    assert main(["baseline", "save", str(tmp_path / "main"), *before]) == 0
    assert kept.stat().st_size < 20_000
    capsys.readouterr()
    answers = []
    for base in (before, [str(kept)]):
        assert main(["gate", *after, "--against", *base, "--json"]) == 3
        answers.append(json.loads(capsys.readouterr().out))
    jsonschema.Draft202012Validator(json.loads(schema_text("gate"))).validate(answers[0])
    # a baseline says what its captures say
    assert answers[0] == answers[1]
    broken = [each["rule"] for each in answers[0]["rules"] if each["result"] == "FAIL"]
    assert "kernel:llama_mlp_multi_core>0%" in broken
    assert not [rule for rule in broken if rule.startswith("kernel:") and "mlp" not in rule]
    assert "llama_mlp_multi_core grew by" in answers[0]["verdict"]["why"]
    assert not answers[0]["verdict"]["noise"]["stated"]
    # what could be won, each by another rule
    assert answers[0]["findings"]
    assert len({each["rule"] for each in answers[0]["findings"]}) == len(answers[0]["findings"]) <= 3
    # and less is no failure
    assert main(["gate", *before, "--against", *after, "--fail-on", "kernel:llama_mlp_multi_core>1%"]) == 0
    assert main(["gate", before[0], "--against", before[0]]) == 0
    assert main(["gate", after[0], "--against", before[0], "--fail-on", "overview.busiest_us>1000000us"]) == 0
    capsys.readouterr()


def test_files_of_results(capsys, written, tmp_path):
    words = ["gate", str(written / "run4"), "--against", str(written / "run1"), "--fail-on", "total>0.001us",
             "--fail-on", "kernel:llama_mlp_multi_core>1%", "--fail-on", "kernel:rmsnorm_multi_core>50%"]  # fmt: skip
    paths = [tmp_path / f"gate{ending}" for ending in (".json", ".md", ".xml")]
    for path in paths:
        assert main([*words, "--output", str(path)]) == 3
    assert json.loads(paths[0].read_text())["result"] == "FAIL"
    assert paths[1].read_text().startswith("### tpuprof gate: FAIL\n")
    assert "Possible savings:" in paths[1].read_text()
    suite = ElementTree.parse(paths[2]).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    assert main([*words, "--output", str(tmp_path / "gate.txt")]) == 2
    assert capsys.readouterr().out.startswith("FAIL\n")
    # the command opens the longest launch of what grew the most
    place = re.search(r"- `tpuprof (\S+) (--range \S+ --core \S+) --against \S+run1`", paths[1].read_text())
    assert main(["instructions", place[1], *place[2].split(), "--columns", "kernel", "--format", "csv"]) == 0
    assert set(capsys.readouterr().out.split()) == {"kernel", "llama_mlp_multi_core"}


def slower_traces(folder: Path, kernel: str) -> list[Path]:
    """Two traces of a kernel that became slower."""
    paths = []
    folder.mkdir()
    for file, took in (("base", 10), ("other", 30)):
        events = [{"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": 40 * number,
                   "dur": took + number % 3, "args": {"device": 0, "stream": 7}} for number in range(12)]  # fmt: skip
        paths.append(folder / f"{file}.pt.trace.json")
        paths[-1].write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return paths


def stepped_trace(path: Path, took: int, *, first: int = 5) -> Path:
    """Three marked steps of 100 us of the host, each of which launches a kernel that takes longer; a last one of 20 us.

    The last one launches nothing, so that it does not count.
    """
    events = []
    for number in range(3):
        start = 1000 * number
        call = {"pid": 1, "tid": 1, "ts": start + 10, "dur": 5, "args": {"correlation": number}}
        events += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{first + number}", "pid": 1, "tid": 1,
             "ts": start, "dur": 100},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **call},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": start + 20, "dur": took + number,
             "args": {"device": 0, "stream": 7, "correlation": number}},
        ]  # fmt: skip
    events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{first + 3}", "pid": 1, "tid": 1,
                   "ts": 3000, "dur": 20})  # fmt: skip
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def test_a_step_is_what_the_views_say_it_is(capsys, tmp_path):
    """With the work that it launched, and of the steps that count: the host's spans are the same on both sides."""
    base, other = (stepped_trace(tmp_path / f"{name}.pt.trace.json", took) for name, took in
                   (("base", 400), ("other", 800)))  # fmt: skip
    words = [str(other), "--against", str(base), "--json", "--fail-on"]
    assert main(["gate", *words, "step>5%"]) == 3
    (rule,) = json.loads(capsys.readouterr().out)["rules"]
    assert (rule["base"], rule["other"]) == (421, 821)
    main(["gate", *words, "overview.step_us>5%"])
    (same,) = json.loads(capsys.readouterr().out)["rules"]
    assert (same["base"], same["other"]) == (421, 821)


def test_a_baseline_of_other_definitions_is_refused_with_the_command_that_saves_it(capsys, tmp_path):
    trace = stepped_trace(tmp_path / "a run.pt.trace.json", 400)
    kept = tmp_path / "kept.json"
    assert main(["baseline", "save", str(kept), str(trace)]) == 0
    record = json.loads(kept.read_text())
    kept.write_text(json.dumps({**record, "tpuprof_baseline": "1.1"}))
    capsys.readouterr()
    assert main(["gate", str(trace), "--against", str(kept)]) == 2
    told = capsys.readouterr().err
    command = shlex.split(told.partition("Save it again: ")[2].splitlines()[0])
    assert main(command[1:]) == 0
    assert main(["gate", str(trace), "--against", str(kept)]) == 0


def test_a_long_name_leaves_the_outcome_short(capsys, tmp_path):
    base, other = slower_traces(tmp_path / "long", "\u540d" * 5000)
    assert main(["gate", str(other), "--against", str(base)]) == 3
    text = capsys.readouterr().out
    assert text.startswith("FAIL\nWhy: The kernel")
    assert len(text.encode()) <= MOST_BYTES
    assert main(["gate", str(other), "--against", str(base), "--markdown"]) == 3
    assert len(capsys.readouterr().out.encode()) <= MOST_BYTES


def test_commands_can_be_pasted_whatever_the_names(capsys, tmp_path):
    """Paths and names are quoted for the shell, and in Markdown a command ends where its fence does."""
    kernel = '``x`` <i> "it\'s"*'
    paths = slower_traces(tmp_path / "a `b` $(c)", kernel)
    words = ["gate", str(paths[1]), "--against", str(paths[0]), "--fail-on", f"kernel:{kernel}>1%"]
    assert main(words) == 3
    lines = [line[7:] for line in capsys.readouterr().out.splitlines() if line.startswith("See    ")]
    assert [shlex.split(line)[:2] for line in lines] == [["tpuprof", str(paths[1])], ["tpuprof", "instructions"]]
    assert main([*shlex.split(lines[1])[1:], "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 13
    assert main([*words, "--markdown"]) == 3
    marked = capsys.readouterr().out
    assert all(f"- {markdown_code(line)}\n" in marked for line in lines)
    assert main(["diff", str(paths[0]), str(paths[1]), "--markdown"]) == 0
    command = shlex.join(["tpuprof", str(paths[1]), "--against", str(paths[0])])
    assert f"\n- Next   {markdown_text(command)}\n" in capsys.readouterr().out


def test_a_capture_that_cannot_be_read_is_told_and_the_others_are_judged(capsys, written, tmp_path):
    runs = [str(written / f"run{number}") for number in (1, 2, 3)]
    lost = tmp_path / "nothing\x1b[2J"
    lost.mkdir()
    both = ["gate", runs[1], str(lost), "--against", str(lost), runs[0]]
    assert main([*both, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["result"] == "PASS"
    assert [each["path"] for each in told["unread"]] == [str(lost), str(lost)]
    jsonschema.Draft202012Validator(json.loads(schema_text("gate"))).validate(told)
    assert main(both) == 1
    text = capsys.readouterr().out
    assert text.count("is left out") == 2
    assert "\x1b" not in text
    junit = tmp_path / "gate.xml"
    assert main([*both, "--output", str(junit)]) == 1
    assert ElementTree.parse(junit).getroot().get("errors") == "2"
    # a broken rule says more than a capture that is missing
    assert main(["gate", str(written / "run4"), str(lost), "--against", runs[0]]) == 3
    kept = tmp_path / "kept.json"
    capsys.readouterr()
    assert main(["baseline", "save", str(kept), str(lost), *runs]) == 1
    out, err = capsys.readouterr()
    assert "3 runs" in out
    assert "is left out" in err
    assert main(["gate", runs[1], "--against", str(kept)]) == 0
    # none that can be read is nothing to judge
    assert main(["gate", str(lost), "--against", runs[0]]) == 2
    assert main(["gate", runs[0], "--against", str(lost), str(lost)]) == 2


def test_what_cannot_be_judged(capsys, tmp_path, written):
    run = str(written / "run1")
    broken = tmp_path / "broken.json"
    broken.write_text('{"tpuprof_baseline": "1.0", "runs": [{"figures": {"total": [1e999, 1, 0, 0]}}]}')
    newer = tmp_path / "newer.json"
    newer.write_text('{"tpuprof_baseline": "9.0"}')
    for words, told in (
        (["gate", run], "--against"),
        (["gate", run, "--against", str(SAMPLES / "aksv_cdma")], "AKSV"),
        (["gate", run, "--against", run, "--fail-on", "kernel:nope>1%"], "kernel:nope"),
        (["gate", run, "--against", run, "--fail-on", "nonsense"], "nonsense"),
        (["gate", run, "--against", run, "--fail-on", "overview.launches>5us"], "is not a time"),
        (["gate", run, "--against", str(broken)], "broken.json"),
        (["gate", run, "--against", str(newer)], "another version"),
    ):
        assert main(words) == 2
        assert told in capsys.readouterr().err


def test_a_kernel_is_not_gone_where_no_kernel_is_named(capsys, tmp_path):
    named, unnamed = str(SAMPLES / "aks_decode_mode1"), str(SAMPLES / "aks_decode_mode0")
    words = ["gate", unnamed, "--against", named, "--fail-on", "kernel:rmsnorm_multi_core>20us"]
    junit = tmp_path / "gate.xml"
    assert main([*words, "--output", str(junit)]) == 4
    assert "Not every run records what kernel:rmsnorm_multi_core>20us is about" in capsys.readouterr().out
    assert 'message="not recorded by every run' in junit.read_text()
    assert main([*words, "--json"]) == 4
    jsonschema.Draft202012Validator(json.loads(schema_text("gate"))).validate(json.loads(capsys.readouterr().out))


def test_a_run_without_events_is_refused(capsys, tmp_path):
    base, other = slower_traces(tmp_path / "traces", "k")
    other.write_text('{"schemaVersion": 1, "traceEvents": []}')
    for rules in ([], ["--fail-on", "total>5%"], ["--fail-on", "kernel:k>5%"]):
        for one, two in ((base, other), (other, base)):
            assert main(["gate", str(two), "--against", str(one), *rules]) == 2
            assert "holds no events" in capsys.readouterr().err


def test_a_damaged_capture_does_not_pass_because_it_is_short(capsys, tmp_path):
    sound, damaged = str(SAMPLES / "aks_decode_mode1"), str(SAMPLES / "aks_damaged")
    kept = str(tmp_path / "kept.json")
    assert main(["baseline", "save", kept, damaged]) == 0
    capsys.readouterr()
    for rule in ("total>5%", "step>5%", "overview.busiest_us>5%", "kernel:rmsnorm_multi_core>5%"):
        for other in (damaged, kept):
            assert main(["gate", other, "--against", sound, "--fail-on", rule]) == 4
            assert "Why: Records are lost or unreadable" in capsys.readouterr().out


def test_names_of_an_operation_are_one_however_many_recordings_have_them():
    old, new = {("TIU", "1"): ("add",)}, {("TIU", "1"): ("plus",), ("TIU", "2"): ("mul",)}
    named = ("add", "plus")
    found = operation_synonyms([old, new])
    assert found == operation_synonyms([old, *[new, old] * 1_000]) == dict.fromkeys(named, named)
    assert operation_synonyms([old] * 3) == {}


def test_of_a_host_alone_the_longest_event_of_a_name_is_its_place():
    profile = open_profile(SAMPLES / "torch_cpu_recorded")
    side = side_of(Query(session_of(profile)), "x", findings=True)
    kinds = [name for name in side.runs[0].figures if name.startswith("operation:")]
    assert kinds
    assert set(kinds) <= set(side.places)
    longest: dict[str, int] = {}
    for lane in profile.lanes:
        for code, start, end in zip(lane["name"].tolist(), lane["start"].tolist(), lane["end"].tolist(), strict=True):
            name = profile.strings["name"][code]
            longest[name] = max(longest.get(name, 0), end - start)
    for name in kinds:
        begin, end = range_typed(side.places[name].range, TimeBase(profile.start_ns, profile.end_ns))
        assert end - begin == max(longest[name.removeprefix("operation:")], 1), name


def test_gains_of_findings_are_whole_ns(capsys, tmp_path):
    """Shares of a step that a table tells are gains, too: of Ascend output without kernels and timeline."""
    base, statistics = str(SAMPLES / "ascend_synthetic"), tmp_path / "run"
    shutil.copytree(base, statistics)
    for name in ("trace_view.json", "kernel_details.csv"):
        for path in statistics.rglob(name):
            path.unlink()
    assert main(["gate", str(statistics), "--against", base]) == 4
    assert "Try    exposed_communication, at most " in capsys.readouterr().out


def test_of_several_workers_the_largest_figure_counts(tmp_path):
    torch_trace.write_run(tmp_path, ranks=2, steps=2, layers=2)
    profile = open_profile(tmp_path)
    (run,) = side_of(Query(session_of(profile)), str(tmp_path)).runs
    told = [answer(view_of(profile.vocabulary, "overview"), of_worker(Query(session_of(profile)), each))
            for each in workers_of(profile)]  # fmt: skip
    shares = [each.figure("dataloader_us") for each in told]
    assert shares[1] > 2 * shares[0]
    assert run.figures["overview.dataloader_us"].value == pytest.approx(max(shares))
    assert run.figures["overview.communication_us"].value == max(each.figure("communication_us") for each in told)


def test_other_numbers_of_units_and_steps_are_told(capsys, tmp_path):
    """Sums of more of them are larger, by themselves; a baseline knows the numbers, too."""
    for name, ranks, steps in (("one", 1, 3), ("two", 2, 4)):
        torch_trace.write_run(tmp_path / name, ranks=ranks, steps=steps, layers=2)
    kept = str(tmp_path / "kept.json")
    assert main(["baseline", "save", kept, str(tmp_path / "one")]) == 0
    capsys.readouterr()
    for base in (kept, str(tmp_path / "one")):
        main(["gate", str(tmp_path / "two"), "--against", base, "--json"])
        why = json.loads(capsys.readouterr().out)["verdict"]["why"]
        assert "The other has 1 unit more (1 -> 2). The other has 1 step more (3 -> 4)." in why


def test_a_host_that_one_side_alone_records_is_told(capsys, tmp_path):
    torch_trace.write_run(tmp_path / "both", ranks=1, steps=3, layers=2)
    (path,) = (tmp_path / "both").glob("*.json*")
    trace = json.loads(gzip.decompress(path.read_bytes()))
    kept = ("kernel", "gpu_memcpy", "gpu_memset")
    trace["traceEvents"] = [each for each in trace["traceEvents"] if each["ph"] == "M" or each.get("cat") in kept]
    (tmp_path / "device").mkdir()
    (tmp_path / "device" / path.name.removesuffix(".gz")).write_text(json.dumps(trace))
    for base, other, where in (("both", "device", "other"), ("device", "both", "base")):
        main(["gate", str(tmp_path / other), "--against", str(tmp_path / base), "--json"])
        assert f"No host is recorded in the {where}." in json.loads(capsys.readouterr().out)["verdict"]["why"]


def test_names_beyond_the_third_of_different_launches_are_counted(capsys):
    assert (
        main(["gate", str(SAMPLES / "aks_host_trace"), "--against", str(SAMPLES / "aks_decode_mode1"), "--json"]) == 0
    )
    why = json.loads(capsys.readouterr().out)["verdict"]["why"]
    assert re.search(r"differently than before: (\w+, ){2}\w+ and \d+ more\.$", why)
