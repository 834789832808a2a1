"""The rules of findings of Ascend profiles: of each a run of which it speaks, and others of which it does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import ascend_profile
import pytest
from test_ascend_recipes import (
    experts,
    moving,
    over_rdma,
    while_computing,
    with_calls,
    with_frequencies,
    with_garbage,
    with_norms,
)

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.sources.ascend.views.rules import RULES
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.views.findings import findings_of

OUTPUT = "ASCEND_PROFILER_OUTPUT"
#: Writes a profile into a folder, and returns what to open.
Make = Callable[[Path], Path]


def kernels(*changes: dict[str, Any]) -> Make:
    """A table of kernels of 100 us, one after the other, with changes; ``gap``: us before it."""
    usual = {"name": "k", "type": "Add", "core": "AI_VECTOR_CORE", "length": 100, "gap": 0, "blocks": 40,
             "state": "static", "mac": 0.9}  # fmt: skip

    def make(folder: Path) -> Path:
        output = folder / OUTPUT
        output.mkdir(parents=True)
        time, lines = 1_700_000_000_000_000, []
        for each in ({**usual, **more} for more in changes):
            time += each["gap"]
            head = ",".join(each[key] for key in ("name", "type", "core", "state"))
            lines.append(f"{head},{time},{each['length']},{each['blocks']},{each['mac']}")
            time += each["length"]
        header = "Name,Type,Accelerator Core,OP State,Start Time(us),Duration(us),Block Dim,aic_mac_ratio"
        (output / "kernel_details.csv").write_text("\n".join([header, *lines]))
        return output

    return make


#: What becomes of the files of a rank: its run, its number and the folder of its tables.
Change = Callable[[Any, int, Path], None]


def run(*changes: Change) -> Make:
    """A run of two ranks, its files changed."""

    def make(folder: Path) -> Path:
        for rank in range(2):
            made = ascend_profile.run_of(rank)
            written = ascend_profile.write_text(made, folder)
            for change in changes:
                change(made, rank, written / OUTPUT)
        return folder

    return make


def host_waits(made: Any, rank: int, output: Path) -> None:
    trace = json.loads((output / "trace_view.json").read_text())
    host = next(each for each in trace if each.get("cat") == "cpu_op")
    length = (made.steps[-1][2] - made.steps[0][1]) / 2000
    (output / "trace_view.json").write_text(json.dumps([*trace, {**host, "name": "aten::item", "dur": length}]))


def called_early(made: Any, rank: int, output: Path) -> None:
    """All is called at once, long before it runs."""
    trace = json.loads((output / "trace_view.json").read_text())
    first = ascend_profile.us(made.steps[0][1])
    trace = [{**each, "ts": first} if each["ph"] == "s" else each for each in trace]
    (output / "trace_view.json").write_text(json.dumps(trace))


def tensors_kept(made: Any, rank: int, output: Path) -> None:
    """Each step keeps one."""
    lines = [f"aten::empty,{1024 * number + 9},{ascend_profile.us(start + 5)},,,"
             for number, start, _ in made.steps]  # fmt: skip
    header = "Name,Size(KB),Allocation Time(us),Release Time(us),Duration(us),Stream"
    (output / "operator_memory.csv").write_text("\n".join([header, *lines]))


def communication(change: Callable[[int, dict[str, Any]], None]) -> Change:
    def changed(made: Any, rank: int, output: Path) -> None:
        told = json.loads((output / "communication.json").read_text())
        for step in told.values():
            for operator in step["collective"].values():
                change(rank, operator)
        (output / "communication.json").write_text(json.dumps(told))

    return changed


def slow_link(rank: int, operator: dict[str, Any]) -> None:
    operator["Communication Bandwidth Info"]["HCCS"]["Transit Time(ms)"] *= 3 if rank else 1


def small_packets(rank: int, operator: dict[str, Any]) -> None:
    links = operator["Communication Bandwidth Info"]
    links["RDMA"] = {**links["HCCS"], "Transit Size(MB)": 200}


def in_time(rank: int, operator: dict[str, Any]) -> None:
    operator["Communication Time Info"]["Synchronization Time(ms)"] = 0


def level(word: str) -> Change:
    def changed(made: Any, rank: int, output: Path) -> None:
        info = next(output.parent.glob("profiler_info_*.json"))
        info.write_text(info.read_text().replace("Level1", word))

    return changed


def metrics(word: str) -> Change:
    def changed(made: Any, rank: int, output: Path) -> None:
        info = next(output.parent.glob("profiler_info_*.json"))
        told = json.loads(info.read_text())
        told["config"]["experimental_config"]["_aic_metrics"] = word
        info.write_text(json.dumps(told))

    return changed


def longer_by(us: str) -> Change:
    """The first recorded step computes for longer."""

    def changed(made: Any, rank: int, output: Path) -> None:
        file = output / "step_trace_time.csv"
        head, first, *others = file.read_text().splitlines()
        step, computing, *rest = first.split(",")
        assert head.startswith("Step,Computing")
        file.write_text("\n".join([head, ",".join([step, str(Decimal(computing) + Decimal(us)), *rest]), *others]))

    return changed


def last_task(longer: int, folder: Path) -> Path:
    """One rank, whose last task takes longer, ns."""
    made = ascend_profile.run_of(0)
    next(each for each in reversed(made.tasks) if each.type).end += longer
    return ascend_profile.write_text(made, folder)


def summary_alone(folder: Path) -> Path:
    folder.mkdir(parents=True)
    header = "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)"
    (folder / "op_summary.csv").write_text(f"{header}\nk,Add,AI_CORE,1,2\n")
    return folder


def vendor_says(advice: list[dict[str, Any]], folder: Path) -> Path:
    # made up: no real file is public
    summary_alone(folder)
    (folder / "prof_rule_0.json").write_text(json.dumps([{"rule_type": "Computation", "result": advice}]))
    return folder


ADVICE = [{"rule subtype": "cube", "rule suggestion": "use fp16", "op list": ["conv"]}]
CASES: dict[str, tuple[Make, ...]] = {
    "free": (kernels(*[{"gap": 30}] * 4), kernels(*[{"gap": 3}] * 4)),
    "exposed_communication": (kernels({}, {"core": "HCCL", "length": 50}), kernels({}, {"core": "HCCL", "length": 9}),
                              kernels({}, {"core": "HCCL", "length": 50, "gap": -30})),
    "long_gap": (kernels({}, {"gap": 20}), kernels({}, {"gap": 4})),
    "ai_cpu": (kernels({}, {"core": "AI_CPU", "length": 5}), kernels({}, {"core": "AI_CPU", "length": 1})),
    "transdata": (kernels({}, {"type": "TransData", "length": 9}), kernels({}, {"type": "TransData", "length": 2})),
    "cast": (kernels({}, {"type": "Cast", "length": 9}), kernels({}, {"type": "Cast", "length": 2})),
    "dynamic_shapes": (kernels({"state": "dynamic"}, {}, {"state": "dynamic"}), kernels({"state": "dynamic"}, {})),
    "cube_idle": (kernels({"type": "Convolution", "mac": 0.1}, {}),
                  kernels({"type": "MatMulV2", "mac": 0.8}, {"mac": 0.1}), kernels({"type": "Convert", "mac": 0.1}, {}),
                  kernels({"type": "MatMulV2", "mac": 0.1, "length": 1}, {})),
    "small_kernels": (kernels(*[{"length": 5}] * 3, {}), kernels({"length": 5}, {})),
    "few_blocks": (kernels({"blocks": 8}, {}), kernels({}, {}), kernels({"blocks": 8, "length": 0.5}, {})),
    "launch_bound": (run(), run(called_early)),
    "host_synchronises": (run(host_waits), run()),
    "memory_grows": (run(tensors_kept), run()),
    "small_packets": (run(communication(small_packets)), run()),
    "slow_link": (run(communication(slow_link)), run()),
    "slow_rank": (run(), run(communication(in_time))),
    "level0": (run(level("Level0")), run()),
    "no_metrics": (summary_alone, run()),
    "uneven_steps": (partial(last_task, 90_000), partial(last_task, 0)),
    "recorded_differs": (run(longer_by("0.011")), run(longer_by("0.009"))),
    "prof_rule": (partial(vendor_says, ADVICE), partial(vendor_says, [])),
    "low_frequency": tuple(partial(with_frequencies, least) for least in (1200, 1750, 1800)),
    "garbage_collection": tuple(partial(with_garbage, length) for length in (400_000, 10_000)),
    "memory_calls": tuple(partial(with_calls, "aclMallocMemInner", length) for length in (900_000, 9_000)),
    "compiles": tuple(partial(with_calls, "opCompile", length) for length in (900_000, 9_000)),
    "synchronised_norms": tuple(partial(with_norms, count) for count in (21, 20)),
    "unaligned_transfers": tuple(partial(moving, size) for size in (1_500_000, 1_500_160, 200)),
    "bandwidth_contention": tuple(partial(while_computing, length) for length in (200_000, 100_000)),
    "retransmission": tuple(partial(over_rdma, transit) for transit in (4001, 3999)),
    "uneven_experts": tuple(partial(experts, tokens) for tokens in ((300, 100), (210, 190))),
}  # fmt: skip


def spoken(path: Path) -> set[str]:
    """Ids of the rules that speak of a profile; ``prof_rule``: the vendor's."""
    found = findings_of(query_of(open_profile(path)))
    return {each.rule if each.source == "tpuprof" else "prof_rule" for each in found}


@pytest.mark.parametrize("rule", [rule.id for rule in (*RULES.adds, *RULES.replaces)])
def test_each_rule_speaks_where_it_must_and_nowhere_else(rule, tmp_path):
    """A rule without cases of both kinds fails."""
    makes, *makes_not = CASES[rule]
    assert makes_not
    assert rule in spoken(makes(tmp_path / "has"))
    for number, make in enumerate(makes_not):
        assert rule not in spoken(make(tmp_path / str(number)))


def test_cases_are_of_rules():
    assert CASES.keys() == {rule.id for rule in (*RULES.adds, *RULES.replaces)}


def test_metrics_that_were_asked_not_to_be_recorded(tmp_path):
    assert "no_metrics" in spoken(run(metrics("ACL_AICORE_NONE"))(tmp_path / "none"))
