"""Ranks and stages in names."""

from __future__ import annotations

import pytest

from tpuprof_tui.sources.rank_names import rank_in_name, ranks_in_names


@pytest.mark.parametrize(("name", "rank", "stage"), [
    ("rank_0", 0, ""), ("rank-0_", 0, ""), ("trace_rank3.pt.trace.json", 3, ""), ("rank-3.json.gz", 3, ""),
    ("Rank12_trace.json", 12, ""), ("node1_rank07.1700000000000.pt.trace.json", 7, ""), ("rank0of8.json", 0, ""),
    ("rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", 0, ""), ("rank7_12345.1700000000000.pt.trace.json", 7, ""),
    ("rank0_ascend_pt", 0, ""), ("[rank3].json", 3, ""), ("global_rank5_local_rank1.json", 5, ""),
    ("local_rank_2.json", 2, ""), ("rank_3_rank_3.json", 3, ""), ("rank0_rank1_merged.json", None, ""),
    ("dp0_pp0_tp0_dcp0_ep0_rank0.1700000000000000000.pt.trace.json.gz", 0, ""),
    ("dp0_pp1_tp1_dcp0_ep1_rank3.1700000000000000000.pt.trace.json.gz", 3, ""),
    ("dp1_pp0_tp0_dcp0_ep0_rank0.1700000000000000000.pt.trace.json.gz", None, ""),
    ("1700000000-TP-1.trace.json.gz", 1, ""), ("1700000000.123-TP-0-DECODE.trace.json.gz", 0, "DECODE"),
    ("1700000000-TP-1-DP-0-EXTEND.trace.json.gz", 1, "EXTEND"), ("p-1700-TP-0-PP-1.trace.json.gz", None, ""),
    ("1700000000-TP-0-EP-1-prefill.trace.json.gz", 0, "prefill"), ("decode_rank1.json", 1, "decode"),
    ("1-TP-0-TARGET_VERIFY.trace.json.gz", 0, "TARGET_VERIFY"), ("mixed_precision_rank1.json", 1, ""),
    ("frank7_12345.1700000000000.pt.trace.json", None, ""), ("crank2.example", None, ""), ("prank-3.json", None, ""),
    ("rank2.example.org_123.1700000000000.pt.trace.json", None, ""),
    ("drank_1_77.1700000000000.pt.trace.json", None, ""),
    ("rank2.example_123_20260511093035123_ascend_pt", None, ""),
    ("node.example.org_rank3_123.1700000000000.pt.trace.json", 3, ""), ("lora_rank16.json", None, ""),
    ("rank12345678.json", None, ""), ("rank.1700000000000.pt.trace.json", None, ""), ("rank", None, ""), ("", None, ""),
    ("llama_tp8_bs4.pt.trace.json", None, ""), ("rank7a_1.json", None, ""),
])  # fmt: skip
def test_a_name_says_rank_and_stage(name: str, rank: int | None, stage: str) -> None:
    found = rank_in_name(name)
    assert (found.rank, found.stage) == (rank, stage)


def test_the_name_of_the_host_says_nothing() -> None:
    assert rank_in_name("rank7_12345.1700000000000.pt.trace.json", host="rank7").rank is None
    assert rank_in_name("rank7_rank2.json", host="rank7").rank == 2


def test_names_of_a_run_tell_the_size_of_each_dimension() -> None:
    vllm = [f"dp{dp}_pp0_tp{tp}_dcp0_ep0_rank{tp}.1.pt.trace.json" for dp in (0, 1) for tp in (0, 1)]
    assert [each.rank for each in ranks_in_names(vllm)] == [0, 1, 2, 3]
    assert len({each.place for each in ranks_in_names(vllm)}) == 4
    sglang = [f"1700-TP-{tp}-PP-{pp}-{stage}.trace.json.gz" for stage in ("EXTEND", "DECODE") for pp in (0, 1)
              for tp in (0, 1)]  # fmt: skip
    assert [each.rank for each in ranks_in_names(sglang)] == [0, 1, 2, 3] * 2
    # attention by data: the number of the tensor-parallel rank is the rank
    spread = [f"1700-TP-{tp}-DP-{tp // 2}.trace.json.gz" for tp in range(4)]
    assert [each.rank for each in ranks_in_names(spread)] == [0, 1, 2, 3]


def test_an_incomplete_grid_tells_no_ranks() -> None:
    names = ["1700-TP-0-PP-0.trace.json.gz", "1700-TP-0-PP-1.trace.json.gz", "1700-TP-1-PP-1.trace.json.gz"]
    assert [each.rank for each in ranks_in_names(names)] == [None, None, None]
    assert [each.rank for each in ranks_in_names(["a.json", "rank1.json"])] == [None, 1]


def test_hostile_names_say_nothing_or_a_number() -> None:
    for name in ("rank" * 50_000, "-TP-0" * 40_000, "dp0_pp0_" + "a1_" * 60_000, "a_" * 60_000 + "rank", "1" * 200_000):
        rank_in_name(name)
    assert rank_in_name("a" * 200_000 + "_rank3").rank == 3
