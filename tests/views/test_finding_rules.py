"""Each rule of findings: a profile made to have it, one made not to; and that nothing beyond the window can be won."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from profiles import Registers, Texts, make_lane, make_profile

from tpuprof_tui.analysis.evidence.top_events import LARGE
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.cli.main import main
from tpuprof_tui.model import Profile, Role, Scopes, Steps, Strings
from tpuprof_tui.sources.ascend.vocabulary import VOCABULARY as ASCEND
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.snapshot.vocabulary import VOCABULARY as SNAPSHOT
from tpuprof_tui.sources.sophgo.vocabulary import VOCABULARY as SOPHGO
from tpuprof_tui.sources.torch.vocabulary import VOCABULARY as TORCH
from tpuprof_tui.views.answer import Target
from tpuprof_tui.views.findings import findings_of, findings_view, rules_of
from tpuprof_tui.views.generic_rules import RULES as GENERIC
from tpuprof_tui.views.registry import answer, view_of


def found(profile: Profile) -> dict[str, list[tuple[object, ...]]]:
    """Rows of the view, by rule; what holds of all of them."""
    query = query_of(profile)
    tables = answer(view_of(profile.vocabulary, "findings"), query).tables
    rows: dict[str, list[tuple[object, ...]]] = {}
    for place, row in enumerate(tables[0].rows() if tables else ()):
        rows.setdefault(str(row[1]), []).append(row)
        assert row[4] is None or 0 <= row[4] <= query.span
        assert row[5]
        # Enter follows each of them
        assert tables[0].target(place) != Target()
        assert row[7]
        assert all({"group", "lane", "start_us", "duration_us", "name"} <= set(each) for each in row[6])
    return rows


@pytest.mark.parametrize("vocabulary", [SOPHGO, TORCH, ASCEND, SNAPSHOT])
def test_every_rule_says_what_it_is(vocabulary):
    rules = rules_of(vocabulary)
    assert len({rule.id for rule in rules}) == len(rules)
    for rule in rules:
        assert rule.title[0].isupper()
        assert rule.measures.endswith(".")
        assert rule.chosen
        assert rule.advice.endswith((".", "N.")) or rule.id == "prof_rule"
        assert 0 <= rule.threshold < 1


@pytest.mark.parametrize("vocabulary", [SOPHGO, TORCH, ASCEND, SNAPSHOT])
def test_a_source_says_what_it_makes_of_the_generic_rules(vocabulary):
    own, generic = vocabulary.entry("rules"), {rule.id for rule in GENERIC}
    assert generic.isdisjoint(rule.id for rule in own.adds)
    assert generic >= {rule.id for rule in own.replaces} | own.leaves_out.keys()
    assert all(own.leaves_out.values())
    kept = generic - own.leaves_out.keys() - {rule.id for rule in own.replaces}
    assert kept <= {rule.id for rule in rules_of(vocabulary)}
    assert all(rule in rules_of(vocabulary) for rule in GENERIC if rule.id in kept)


# -- captures


def lanes_of(*units: tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]], **columns: list[object]) -> Profile:
    """Cores with a TIU and a GDMA: (start, end, role) of each; ``columns`` of the GDMA's."""
    texts = Texts()
    lanes = []
    for number, sides in enumerate(units):
        for engine, rows in zip(("TIU", "GDMA"), sides, strict=True):
            start, end, role = (np.array(column, np.int64) for column in zip(*rows, strict=True)) if rows else (
                np.zeros(0, np.int64),) * 3  # fmt: skip
            count = len(start)
            more = {"kernel": texts.codes("kernel", ["work"] * count), "name": texts.codes("name", ["op"] * count)}
            if engine == "GDMA":
                more |= {key: np.array(values[:count], np.int64) for key, values in columns.items() if key != "memory"}
                if "memory" in columns:
                    more |= {"from_memory": texts.codes("from_memory", ["DDR"] * count),
                             "to_memory": texts.codes("to_memory", ["LMEM"] * count)}  # fmt: skip
            lanes.append(make_lane(engine, number, starts=start, ends=end, roles=role, **more))
    return make_profile(lanes, strings=texts.build(), mode=2)


def one_operation(ideal: float) -> Profile:
    """An operation of 100 ns with an ideal time, that of the microarchitecture being 20 ns."""
    texts = Texts()
    lane = make_lane("TIU", 0, starts=[0], ends=[100], name=texts.codes("name", ["mm"]), ideal=np.array([ideal]),
                     uarch_rate=np.array([20.0]), registers=Registers(np.zeros(1, np.int16), (("res0_c", "res0_w"),))
                     )  # fmt: skip
    return make_profile([lane], strings=texts.build(), mode=2)


def transfers(slowest: int) -> Profile:
    """Transfers of one direction and size, 100 ns each but for the last, and one in the other direction."""
    texts = Texts()
    length = np.array([100] * 8 + [slowest, 900])
    lane = make_lane("GDMA", 0, starts=np.cumsum(length) - length, ends=np.cumsum(length), bytes=[1 << 16] * 10,
                     direction=texts.codes("direction", ["DDR->LMEM"] * 9 + ["LMEM->DDR"]))  # fmt: skip
    return make_profile([lane], strings=texts.build(), mode=2)


def taking_turns(wanted: int) -> Profile:
    """TIU's second command names the first or the second of GDMA's, or one that nobody knows."""
    gdma = make_lane("GDMA", 0, starts=[0, 100], ends=[90, 190], command_id=[1, 2], depends_on=[0, 0])
    tiu = make_lane("TIU", 0, starts=[90, 190], ends=[100, 290], command_id=[1, 2], depends_on=[1, wanted])
    return make_profile([tiu, gdma], mode=2)


def two_launches(pause: int) -> Profile:
    """Two launches with a pause between them, ns."""
    lane = make_lane("TIU", 0, starts=[0, 100 + pause], ends=[100, 200 + pause], scope=np.array([0, 1]),
                     kernel=np.zeros(2, np.int32))  # fmt: skip
    return make_profile([lane], strings={"kernel": Strings(["k"])},
                        scopes=Scopes(np.zeros(2, np.int32), np.zeros(2, np.int32)))  # fmt: skip


def nine_steps(last: int) -> Profile:
    """Eight steps of 100 ns, and a last one."""
    end = np.cumsum(np.array([100] * 8 + [last], np.int64))
    start = np.append(0, end[:-1])
    steps = Steps(Strings([f"step {n}" for n in range(9)]), np.arange(9, dtype=np.int32), np.full(9, -1, np.int32),
                  start, end)  # fmt: skip
    return replace(make_profile([make_lane("TIU", 0, starts=start, ends=end)]), steps=steps)


W, WAIT = int(Role.WORK), int(Role.WAIT)
BUSY = [(0, 100, W)]
HALF = [(0, 50, W)]
LATE = [(50, 100, W)]
#: Of each rule, by id: a profile of which it speaks, and others of which it does not.
CAPTURES = {
    "exposed_transfer": (lanes_of(([(60, 100, W)], [(0, 60, W)])), lanes_of((BUSY, [(0, 60, W)]))),
    "slow_transfer": (lanes_of((BUSY, [(0, 60, W)]), bytes=[LARGE]), lanes_of((BUSY, [(0, 60, W)]), bytes=[LARGE - 1])),
    "wait": (lanes_of(([(0, 90, W), (90, 100, WAIT)], [])), lanes_of((BUSY, []))),
    "pause": (lanes_of(([(0, 50, W), (60, 100, W)], [])), lanes_of((BUSY, []))),
    "imbalance": (lanes_of((BUSY, []), (HALF, [])), lanes_of((BUSY, []), (BUSY, []))),
    "late_unit": (lanes_of((BUSY, []), ([(0, 20, W), (20, 100, WAIT)], [])),
                  lanes_of(([(0, 50, W), (50, 100, WAIT)], []), ([(0, 50, W), (50, 100, WAIT)], []))),
    "exposed_scope": (lanes_of(([(60, 100, W)], [(0, 60, W)])), lanes_of((BUSY, [(0, 60, W)]))),
    # what computing covers cannot be won
    "small_transfers": (lanes_of((LATE, [(0, 10, W), (20, 30, W)]), bytes=[64, 64]),
                        lanes_of((LATE, [(0, 10, W), (20, 30, W)]), bytes=[1 << 20, 1 << 20]),
                        lanes_of((BUSY, [(0, 10, W), (20, 30, W)]), bytes=[64, 64])),
    "repeated_loads": (
        lanes_of((LATE, [(0, 30, W), (40, 70, W)]), memory=[1], src_addr=[4096, 4096], bytes=[9999, 9999]),
        lanes_of((LATE, [(0, 30, W), (40, 70, W)]), memory=[1], src_addr=[4096, 8192], bytes=[9999, 9999]),
        lanes_of((BUSY, [(0, 30, W), (40, 70, W)]), memory=[1], src_addr=[4096, 4096], bytes=[9999, 9999])),
    "shared_loads": (
        lanes_of((LATE, [(0, 30, W)]), (LATE, [(0, 30, W)]), memory=[1], src_addr=[4096], bytes=[1280]),
        lanes_of((LATE, [(0, 30, W)]), (LATE, []), memory=[1], src_addr=[4096], bytes=[1280]),
        lanes_of((BUSY, [(0, 30, W)]), (BUSY, [(0, 30, W)]), memory=[1], src_addr=[4096], bytes=[1280]),
        # it stays: from L2M it takes as long
        lanes_of((LATE, [(0, 30, W)]), (LATE, [(0, 30, W)]), memory=[1], src_addr=[4096], bytes=[3840])),
    "below_peak": tuple(map(one_operation, (10.0, 90.0, float("nan")))),
    "below_bandwidth": tuple(map(transfers, (400, 100))),
    "serial_stretches": tuple(map(taking_turns, (1, 2, 9))),
    "launch_gaps": tuple(map(two_launches, (40, 0))),
    "step_outliers": tuple(map(nine_steps, (500, 100))),
}  # fmt: skip


def test_what_is_told_of_captures():
    told = found(CAPTURES["below_peak"][0])["below_peak"][0][5]
    assert "padding; 100% of what is lost has the shape res0 0x1" in told
    # the one in the other direction is alone, so that nothing tells what is reached there
    assert found(CAPTURES["below_bandwidth"][0])["below_bandwidth"][0][4] == 300
    assert found(CAPTURES["serial_stretches"][0])["serial_stretches"][0][4:6] == (90, (
        "TIU of Core 0 is idle 1 times while another engine works and no command id or message holds it back, "
        "90 ns in all, 90 ns at the longest."))  # fmt: skip


def test_what_several_cores_load_still_has_to_be_read_from_l2m_once_by_each():
    profile = lanes_of(*[(LATE, [(0, 30, W)])] * 2, memory=[1], src_addr=[4096], bytes=[1280])
    assert profile.device.peak("L2") == 128
    ((_, _, _, _, gain, text, *_),) = found(profile)["shared_loads"]
    assert gain == 20
    assert text == ("Several cores load the same address from DDR: 30 ns on Core 0, of which 10 ns stay: reading it "
                    "from L2M at the peak.")  # fmt: skip


def test_people_read_events_of_one_name_as_one_row_and_programs_each_of_them():
    moves = [(0, 20, W), (30, 60, W)]
    profile = lanes_of(([(60, 100, W)], moves), ([(60, 100, W)], moves[1:]))
    table = findings_view(query_of(profile)).table("findings")
    events = [table.target_of(row).event for row, rule in enumerate(table.column("rule")) if rule == "exposed_transfer"]
    assert events == [(1, 1), (3, 0), (1, 0)]
    told = table.merged()
    (row,) = [row for row, rule in enumerate(told.column("rule")) if rule == "exposed_transfer"]
    text = "Top 3, 80 ns. Exposed 100%: Core 0 GDMA op at 30 ns in work: 30 ns to win."
    assert told.row(row)[3:6] == ("Core 0, 1", 50, text)
    assert [told.target_of(row).event, *told.target_of(row).others] == events
    gains = [gain or 0 for gain in told.column("gain_us")]
    assert gains == sorted(gains, reverse=True)


def test_the_command_for_a_step_that_takes_longer_can_be_given(capsys):
    (rule,) = (each for each in GENERIC if each.id == "step_outliers")
    _, command = rule.advice.rstrip(".").split(": tpuprof ")
    path = str(Path(__file__).parents[2] / "samples" / "torch_cuda_synthetic")
    assert command == "diff BASE OTHER alignment --step N"
    words = [{"BASE": path, "OTHER": path, "N": "1"}.get(word, word) for word in command.split()]
    assert main(words) == 0
    assert "Launches" in capsys.readouterr().out


# -- traces


def trace(path: Path, events: list[dict[str, object]], **more: object) -> Profile:
    """A PyTorch trace: on the host thread calls and operators, on the device kernels and copies."""
    record = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A100", "computeMajor": 8, "computeMinor": 0}],
              "traceEvents": [{"ph": "X", **each} for each in events], **more}  # fmt: skip
    path.write_bytes(gzip.compress(json.dumps(record).encode()))
    return open_profile(path)


def host(name: str, start: int, length: int, cat: str = "cuda_runtime", **args: object) -> dict[str, object]:
    return {"cat": cat, "name": name, "pid": 1, "tid": 1, "ts": 1000 + start, "dur": length, "args": args}


def device(name: str, start: int, length: int, cat: str = "kernel", **args: object) -> dict[str, object]:
    return {"cat": cat, "name": name, "pid": 0, "tid": 7, "ts": 1000 + start, "dur": length,
            "args": {"device": 0, "stream": 7, **args}}  # fmt: skip


def launched(number: int, start: int, length: int, call: int, name: str = "k", cat: str = "kernel") -> list[dict]:
    return [host("cudaLaunchKernel", call, 2, correlation=number), device(name, start, length, cat, correlation=number)]


#: Kernels that change each element, and between them a product.
NAMES = ("silu", "gelu", "gemm", "dropout", "silu", "gemm")
ROW = [event for n in range(6) for event in launched(n + 1, 10 + 5 * n, 2, 0 + n * 3)]
LONG = launched(1, 10, 900, 0)
#: Between these the GPU is idle.
IDLE = [*launched(1, 10, 300, 0), *launched(2, 900, 100, 300)]
MEMORY = [{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 1500, "s": "t",
           "args": {"Device Type": 1, "Device Id": 0, "Bytes": 100, "Addr": 1, "Total Allocated": 100,
                    "Total Reserved": reserved}} for reserved in (1000, 110)]  # fmt: skip


def allocated(*points: tuple[int, int]) -> list[dict[str, object]]:
    """Memory that is allocated from some times on."""
    return [
        {**MEMORY[0], "ts": 1000 + time,
         "args": {**MEMORY[0]["args"], "Total Allocated": size << 20, "Total Reserved": 1000 << 20}}
        for time, size in points
    ]  # fmt: skip


def late(delay: int, steps: int) -> list[list[dict[str, object]]]:
    """Two ranks of which the second begins collectives later, us."""
    ranks: list[list[dict[str, object]]] = [[], []]
    for step in range(steps):
        for rank, events in enumerate(ranks):
            begin, start = 1000 * step, 100 + delay * rank
            events += [
                host(f"ProfilerStep#{step}", begin, 1000, "user_annotation"),
                host("nccl:all_reduce", begin + 50, 20, "user_annotation", **{"External id": 3 + step}),
                host("cudaLaunchKernel", begin + 51, 2, correlation=1 + step, **{"External id": 3 + step}),
                device("ncclKernel_AllReduce", begin + start, 700 - start, correlation=1 + step),
            ]
    return ranks


#: The same of traces: events, or those of each rank.
TRACES = {
    "late_rank": (late(400, 1), late(0, 1)),
    "host_bound": ([*launched(1, 10, 100, 0), *launched(2, 800, 100, 790)],
                   [*launched(1, 10, 400, 0), *launched(2, 410, 400, 5)]),
    "synchronises": ([*IDLE, host("cudaDeviceSynchronize", 310, 500)],
                     [*LONG, host("cudaDeviceSynchronize", 100, 800)]),
    "pageable_copies": (
        [*LONG, *launched(2, 910, 100, 4, "Memcpy HtoD (Pageable -> Device)", "gpu_memcpy")],
        [*LONG, *launched(2, 910, 100, 4, "Memcpy HtoD (Pinned -> Device)", "gpu_memcpy")]),
    "loader_waits": (
        [*IDLE, host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 310, 500, "user_annotation")],
        [*IDLE, host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100, 5, "user_annotation")]),
    "exposed_communication": ([*LONG, *launched(2, 910, 500, 4, "ncclKernel_AllReduce")], LONG),
    "short_kernels": (ROW, LONG),
    "fusible_kernels": (
        [event for n in range(6) for event in launched(n + 1, 10 + 150 * n, 140, n * 3, f"{NAMES[n % 3]}_kernel")],
        [event for n in range(6) for event in launched(n + 1, 10 + 150 * n, 140, n * 3, f"{NAMES[n]}_kernel")]),
    "tensor_cores_unused": (
        [host("aten::mm", 0, 20, "cpu_op", **{"External id": 5}),
         host("cudaLaunchKernel", 1, 2, correlation=1, **{"External id": 5}), device("sgemm", 10, 900, correlation=1)],
        [host("aten::mm", 0, 20, "cpu_op", **{"External id": 5}),
         host("cudaLaunchKernel", 1, 2, correlation=1, **{"External id": 5}),
         device("h884gemm", 10, 900, correlation=1)]),
    "memory_peak": ([*LONG, *allocated((0, 400), (100, 900), (110, 400))],
                    [*LONG, *allocated((0, 400), (100, 900), (600, 400))]),
    "fragmentation": ([*LONG, MEMORY[0]], [*LONG, MEMORY[1]]),
}  # fmt: skip


def traced(events: list[Any], folder: Path) -> Profile:
    """The profile of a trace, or of those of ranks."""
    folder.mkdir()
    for rank, own in enumerate(events if isinstance(events[0], list) else [events]):
        several = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}} if own is not events else {}
        profile = trace(folder / f"rank{rank}.pt.trace.json.gz", own, **several)
    return open_profile(folder) if isinstance(events[0], list) else profile


def test_a_rank_that_is_late_in_each_of_many_steps(tmp_path):
    for steps in (1, 30):
        (row,) = found(traced(late(400, steps), tmp_path / str(steps)))["late_rank"]
        assert row[5] == "Rank 1 is late: the others wait 400.0 us longer in each step for it."


#: Sources with rules of their own, whose cases stand here; those of Ascend profiles in test_ascend.py.
RULES = {
    **{("generic", rule.id): rule for rule in GENERIC},
    **{(source, rule.id): rule for source, vocabulary in (("sophgo", SOPHGO), ("torch", TORCH))
       for rule in (*vocabulary.entry("rules").adds, *vocabulary.entry("rules").replaces)},
}  # fmt: skip


@pytest.mark.parametrize(("source", "rule"), RULES, ids="-".join)
def test_each_rule_speaks_where_it_must_and_nowhere_else(source, rule, tmp_path):
    """A rule without cases of both kinds fails."""
    if rule in CAPTURES and source != "torch":
        has, *has_not = CAPTURES[rule]
    else:
        has, *has_not = (traced(events, tmp_path / str(number)) for number, events in enumerate(TRACES[rule]))
    assert has_not
    assert len(found(has)[rule]) == 1
    assert all(rule not in found(profile) for profile in has_not)


def test_cases_are_of_rules():
    assert {*CAPTURES, *TRACES} == {rule for _, rule in RULES}


def test_nothing_is_said_of_waiting_for_a_host_that_records_graphs(tmp_path):
    for rule in ("host_bound", "short_kernels"):
        events = [*TRACES[rule][0], host("hipStreamBeginCapture", 0, 1)]
        assert rule not in found(trace(tmp_path / f"{rule}.pt.trace.json.gz", events))


def test_a_filter_leaves_sums_alone_and_the_view_says_so():
    profile = CAPTURES["imbalance"][0]
    narrowed = query_of(profile, filter="dur>1")
    assert {each.rule for each in findings_of(narrowed)} <= {rule.id for rule in GENERIC if rule.sees == "events"}
    assert "a filter or a single" in findings_view(narrowed).notes[0]
    assert not findings_view(query_of(profile)).notes
