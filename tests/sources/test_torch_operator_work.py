"""Work of operators by their shapes, against plain arithmetic; categories of their kernels; sequences that repeat."""

from __future__ import annotations

import gzip
import json

import pytest

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.torch.categories import CATEGORIES, category_of
from tpuprof_tui.sources.torch.operator_work import FORMULAS, Call, Lengths, lengths_in_name, work_of
from tpuprof_tui.sources.torch.views.modules import longest_of_peers, peers_of
from tpuprof_tui.views.registry import answer, view_of

#: Of two requests: 3 queries over 5 keys, and one over 7.
BATCH = Lengths(4, 12, 10, 22)
#: Name, shapes, bytes of elements, arguments; operations and bytes.
WORK = [
    ("aten::mm", [[2, 3], [3, 4]], [2, 2], [], (2 * 2 * 3 * 4, 2 * (6 + 12 + 8))),
    ("aten::mm", [[2, 3], [4, 5]], [2, 2], [], None),
    ("aten::baddbmm", [[7], [5, 2, 3], [5, 3, 4]], [4, 4, 4], [], (5 * 2 * 2 * 3 * 4, 4 * 5 * (6 + 12 + 8))),
    ("aten::_scaled_mm", [[2, 3], [3, 4], [], [], [], [], []], [1, 1], [""] * 6 + ["15"], (48, 6 + 12 + 2 * 8)),
    ("aten::_int_mm", [[2, 3], [3, 4]], [1, 1], [], (48, 6 + 12 + 4 * 8)),
    ("_C::cutlass_scaled_mm", [[2, 4], [2, 3], [3, 4]], [2, 1, 1], [], (48, 6 + 12 + 2 * 8)),
    ("fbgemm::f8f8bf16_rowwise", [[2, 3], [4, 3]], [1, 1], [], (48, 6 + 12 + 2 * 8)),
    ("aten::_weight_int4pack_mm", [[2, 32], [1, 2, 32, 4], [], [1, 8, 2]], [2, 4, None, 2], [],
     (2 * 2 * 32 * 8, 2 * 64 + 4 * 256 + 2 * 16)),
    ("aten::_grouped_mm", [[6, 3], [2, 3, 4], [2]], [2, 2, 4], [], (2 * 6 * 3 * 4, 2 * (18 + 24 + 24))),
    # two tokens choose two of eight experts: four are read
    ("vllm::inplace_fused_experts", [[2, 3], [8, 10, 3], [8, 3, 5], [2, 2], [2, 2]], [2, 1, 1, 4, 4], [],
     (2 * 4 * (30 + 15), 2 * 2 * 6 + 4 * (30 + 15))),
    ("aten::scaled_dot_product_attention", [[1, 2, 3, 4]] * 3, [2] * 3, [""] * 5 + ["True"],
     (2 * 2 * 3 * 3 * 8 // 2, 2 * 4 * 24)),
    # of its ten queries by keys three are of later keys: 1 + 2 of the request with three queries
    ("vllm::unified_attention_with_output", [[4, 6, 8], [4, 2, 8], [4, 2, 8]], [2] * 3, [],
     (2 * (22 - 3) * 6 * 16, 2 * 4 * 6 * 16 + 2 * 12 * 2 * 16)),
    ("aten::add", [[5, 1, 3], [4, 3], []], [2, 4, None], [], (60, 2 * 15 + 4 * 12 + 4 * 60)),
    ("aten::add_", [[5, 3], [3]], [2, 4], [], (15, 2 * 15 + 4 * 3 + 2 * 15)),
    ("aten::eq", [[5, 3], []], [8, None], [], (15, 8 * 15 + 15)),
    ("aten::copy_", [[6], [6], []], [4, 2, None], [], (0, 36)),
    ("aten::zero_", [[6]], [4], [], (0, 24)),
    ("aten::native_layer_norm", [[2, 8], [], [8], [8], []], [2, None, 2, 2, None], [], (8 * 16, 2 * (32 + 16))),
    ("aten::_softmax", [[2, 8], [], []], [2, None, None], ["", "-1"], (5 * 16, 64)),
    ("aten::mean", [[2, 8, 3], [], []], [4, None, None], ["", "[-1]", "False"], (48, 4 * (48 + 16))),
    ("aten::sum", [[2, 8, 3], []], [4, None], ["", ""], (48, 4 * 49)),
    ("aten::sum", [[], []], [4, None], ["", ""], None),
    ("aten::add", [[-2, 3], [3]], [4, 4], [], None),
    ("aten::mm", [[1 << 40, 1 << 40], [1 << 40, 1 << 40]], [2, 2], [], None),
    ("aten::mm", "nonsense", [2, 2], [], None),
    ("aten::mm", [[2, 3], [3, 4]], [None, None], [], (48, None)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dims", "sizes", "args", "work"), WORK)
def test_work_by_shapes(name, dims, sizes, args, work):
    assert work_of(name, Call(dims, sizes, args, BATCH)) == work


def test_every_formula_answers_anything():
    odd = [[], [[]], [["a"]], [[2]], [[2, 3]] * 8, [[0, 3]] * 8, [[2, 3, 4]] * 8, [[2, 3, 4, 5]] * 8, None, {}, 3]
    for name in FORMULAS:
        for dims in odd:
            for sizes in ([2] * 9, [None] * 9, []):
                found = work_of(name, Call(dims, sizes, ["[1]"] * 9, BATCH))
                assert found is None or found[0] >= 0


def test_lengths_of_batches():
    told = "execute_34_context_2(sq30sk50sqsq500sqsk900)_generation_4(sq4sk96sqsq4sqsk96)"
    assert lengths_in_name(told) == Lengths(34, 146, 504, 996)
    told = "step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=9 c_sqsq=25 c_sqsk=45 g_sq=1 g_sk=7 g_sqsq=1 g_sqsk=7]"
    assert lengths_in_name(told) == Lengths(6, 16, 26, 52)
    assert lengths_in_name("execute_context_0(0)_generation_32(32)") is None
    assert lengths_in_name("step[DECODE bs=4]") is None


NAMES = {
    "GEMM": [("aten::addmm", "x"), ("", "Cijk_Alik_Bljk_BBS"), ("", "nvjet_hsh_128x256"), ("", "sm90_xmma_gemm_bf16")],
    "quantised GEMM": [("aten::_scaled_mm", "sm90_gemm"), ("", "marlin_kernel"), ("", "deep_gemm_fp8")],
    "MoE": [("vllm::moe_forward", "x"), ("", "_matmul_ogs_NNT"), ("aten::_grouped_mm", "x")],
    "attention": [("aten::_flash_attention_forward", "x"), ("", "kernel_unified_attention_3d"), ("", "attn_fwd")],
    "convolution": [("aten::convolution_backward", "sgemm"), ("", "cudnn_infer_volta_scudnn_128x64")],
    "normalisation": [("aten::native_layer_norm", "x"), ("", "_ZN7ck_tile12Rmsnorm2dFwd"), ("aten::batch_norm", "")],
    "reduction": [("aten::mean", "x"), ("aten::_softmax", "x"), ("", "triton_red_fused_add_mean"), ("aten::all", "x")],
    "pooling": [("aten::max_pool2d_with_indices", "x")],
    "indexing": [("aten::index_select", "x"), ("fbgemm::split_embedding_codegen_lookup", "x")],
    "elementwise": [("aten::mul", "x"), ("aten::copy_", "x"), ("", "triton_poi_fused_0"), ("aten::cat", "x"),
                    ("", "void vllm::rotary_embedding_kernel<true>()")],
    "optimizer": [("aten::_foreach_add_", "x"), ("", "multi_tensor_apply_kernel<>")],
    "communication": [("record_param_comms", "ncclDevKernel_AllReduce"), ("c10d::allreduce_", "x")],
    "other": [("", "merge"), ("my::operator", "k")],
}  # fmt: skip


@pytest.mark.parametrize("category", NAMES)
def test_categories_of_work(category):
    assert [category_of(*names) for names in NAMES[category]] == [category] * len(NAMES[category])
    assert category in CATEGORIES


def trace(path, operators):
    """A trace of operators (name, length of its kernel), one after the other; gaps of 1 us between kernels."""
    events, time = [], 1000
    for number, (name, length) in enumerate(operators, 1):
        at = {"pid": 1, "tid": 1, "ts": 1000 + 4 * number}
        events += [
            {"ph": "X", "cat": "python_function", "name": f"model.py({number % 2}): f", **at, "dur": 3.5, "args": {}},
            {"ph": "X", "cat": "cpu_op", "name": name, **at, "dur": 3, "args": {"External id": number}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **at, "dur": 1,
             "args": {"External id": number, "correlation": number}},
            {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1000 + time, "dur": length,
             "args": {"correlation": number, "device": 0, "stream": 7}},
        ]  # fmt: skip
        time += length + 1
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events, "deviceProperties": []}).encode()))
    return open_profile(path)


def test_sequences_that_repeat(tmp_path):
    norm = [("aten::pow", 3), ("aten::mean", 2), ("aten::mul", 4), ("aten::mul", 1)]
    operators = [*norm, ("aten::mm", 50), *norm, ("aten::mm", 50), ("aten::add", 9), ("aten::mm", 50)]
    profile = trace(tmp_path / "t.pt.trace.json.gz", operators)
    query = query_of(profile)
    found = answer(view_of(profile.vocabulary, "fusion"), query).table("sequences")
    keys = ("sequence", "kernels", "times", "total_us", "gaps_us", "gain_us", "source")
    (row,) = zip(*(found.column(key) for key in keys), strict=True)
    assert row == ("pow, mean, mul x2", 4, 2, 20_000, 6_000, 18_000, "model.py(1): f")
    assert (
        query.profile.strings["operator"][query.profile.lanes[found.target_of(0).event[0]]["operator"][0]]
        == "aten::pow"
    )
    # what a filter leaves out still stands between the others
    part = query_of(profile, filter="not operator=aten::mm and not operator=aten::mean")
    assert answer(view_of(profile.vocabulary, "fusion"), part).table("sequences").column("sequence") == ["mul x2"]


def test_categories_add_up_to_all_work(tmp_path):
    profile = trace(tmp_path / "t.pt.trace.json.gz", [("aten::mm", 50), ("aten::add", 30), ("aten::mul", 20)])
    table = answer(view_of(profile.vocabulary, "kernels"), query_of(profile)).table("categories")
    assert table.column("category") == ["GEMM", "elementwise"]
    assert table.column("share") == [0.5, 0.5]
    assert table.column("cumulative_share") == [0.5, 1.0]
    narrowed = answer(view_of(profile.vocabulary, "kernels"), query_of(profile, filter="op_category=elementwise"))
    assert narrowed.table("by_name").column("total_us") == [50_000]


def test_modules_beside_their_peers():
    """Those of the same classes from the outermost on; a module in two places counts with all its times."""
    # depth, name, id, times, operators, host total, host self, device total, device self
    tree = [(0, "Model_0", 0, 1, 0, 0, 0, 900, 0), (1, "Layer_0", 0, 2, 0, 0, 0, 600, 0),
            (2, "Linear_0", 0, 2, 1, 0, 0, 400, 400), (2, "Linear_1", 1, 2, 1, 0, 0, 200, 200),
            (1, "Layer_1", 1, 2, 0, 0, 0, 200, 0), (2, "Linear_2", 2, 2, 1, 0, 0, 200, 200),
            (1, "Linear_3", 3, 1, 1, 0, 0, 100, 100)]  # fmt: skip
    peers = peers_of(tree)
    assert {tree[row][1]: (peer.peers, peer.ratio, peer.beyond) for row, peer in peers.items()} == {
        "Layer_0": (1, 3.0, 400), "Layer_1": (1, 1 / 3, -400), "Linear_0": (2, 2.0, 200), "Linear_1": (2, 2 / 3, -100),
        "Linear_2": (2, 2 / 3, -100),
    }  # fmt: skip
    assert [peer.name for peer in longest_of_peers(peers)] == ["Linear_0"], "two alone tell nothing"
    on_host = [(*row[:5], 100 * (number + 1), 0, 0, 0) for number, row in enumerate(tree)]
    assert peers_of(on_host)[3].mean == 200
    assert peers_of([]) == {}
