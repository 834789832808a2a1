"""Time by call path: the sums against a walk of every row, the view of every source, collapsed stacks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from profiles import Texts, make_lane, make_profile, selected_query

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.totals import call_stacks as trees
from tpuprof_tui.analysis.totals.call_stacks import call_tree
from tpuprof_tui.export.job import Job, run_export
from tpuprof_tui.views.answer import Table
from tpuprof_tui.views.registry import ask

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def walked(parent: list[int], label: list[int], own: list[int], count: list[int]) -> dict[tuple[int, ...], list[int]]:
    """Own and total ns and events of each path, row by row; rows in circles and what they call are left out."""
    found: dict[tuple[int, ...], list[int]] = {}
    for row in range(len(parent)):
        path, at = [row], parent[row]
        while at >= 0 and at not in path:
            path.append(at)
            at = parent[at]
        if at >= 0:
            continue
        names = tuple(label[each] for each in reversed(path))
        for depth in range(1, len(names) + 1):
            sums = found.setdefault(names[:depth], [0, 0, 0])
            sums[0] += own[row] if depth == len(names) else 0
            sums[1] += own[row]
            sums[2] += count[row]
    return {path: sums for path, sums in found.items() if sums[2]}


@pytest.mark.parametrize("deepest", [500, 3])
def test_sums_are_those_of_every_row(monkeypatch, deepest):
    rng = np.random.default_rng(3)
    monkeypatch.setattr(trees, "DEEPEST", deepest)
    for size in (0, 1, 40, 300):
        parent = rng.integers(-2, size, size).clip(-1) if size else np.zeros(0, np.int64)
        label, count = rng.integers(0, 4, size), rng.integers(0, 2, size)
        own = rng.integers(0, 9, size) * count
        tree = call_tree(parent, label, own, count)
        paths: list[tuple[int, ...]] = []
        for place, (above, name) in enumerate(zip(tree.parent.tolist(), tree.label.tolist(), strict=True)):
            assert above < place
            paths.append((*(paths[above] if above >= 0 else ()), name))
            assert tree.depth[place] == len(paths[-1]) - 1
        expected = walked(*(each.tolist() for each in (parent, label, own, count)))
        sums = dict(zip(paths, zip(*(each.tolist() for each in (tree.own, tree.total, tree.count)), strict=True),
                        strict=True))  # fmt: skip
        if deepest < 500:
            # what lies deeper counts where the tree ends
            ends = {path: each for path, each in expected.items() if len(path) <= deepest}
            assert {path: each[1:] for path, each in sums.items()} == {
                path: tuple(each[1:]) for path, each in ends.items()
            }
            assert sum(each[0] for each in sums.values()) == sum(
                each[1] for path, each in ends.items() if len(path) == 1
            )
            continue
        assert sums == {path: tuple(each) for path, each in expected.items()}
        ranks = [(above, -total) for above, total in zip(tree.parent.tolist(), tree.total.tolist(), strict=True)]
        for above in set(tree.parent.tolist()):
            siblings = [rank for rank in ranks if rank[0] == above]
            assert siblings == sorted(siblings)


def tree_of(profile, **asked) -> Table:
    return ask(profile, "calltree", **asked).table("calltree")


def by_depth(table: Table, depth: int, key: str = "total_us") -> Counter[str]:
    found: Counter[str] = Counter()
    columns = (table.column(each) for each in ("name", "depth", key))
    for name, level, value in zip(*columns, strict=True):
        if level == depth:
            found[name] += value
    return found


def test_paths_of_cores_add_up_to_what_other_views_say():
    profile = open_profile(SAMPLES / "aks_decode_mode2")
    middle = (profile.start_ns + 200_000, profile.start_ns + 500_000)
    for asked in ({}, {"range": middle}, {"scope": Scope(2)}, {"filter": "engine=GDMA"}, {"scope": Scope(lane=4)},
                  {"range": middle, "scope": Scope(1), "filter": "dur>1us"}):  # fmt: skip
        table = tree_of(profile, **asked)
        for depth, view in ((1, "kernels"), (2, "operations")):
            other = ask(profile, view, **asked).table("by_name")
            assert by_depth(table, depth) == dict(zip(other.column("name"), other.column("total_us"), strict=True))
        assert sum(by_depth(table, 0, "count").values()) == sum(other.column("count"))
        assert sum(table.column("share")[row] for row in range(len(table)) if not table.depth_of(row)) == pytest.approx(
            1
        )
    row = table.column("name").index("tensorLd")
    target = table.target_of(row)
    assert ask(profile, "operations", **asked | {"filter": f"dur>1us {target.condition}"}).table("by_name").column(
        "count") == [table.column("count")[row]]  # fmt: skip


def test_paths_of_the_host_stand_above_what_it_called():
    for sample, path in (
        ("torch_cuda_synthetic", ("Rank 0", "nn.Module: Decoder_0", "nn.Module: Block_3", "nn.Module: Linear_11",
                                  "aten::linear", "aten::addmm")),
        ("ascend_synthetic", ("Rank 0", "aten::linear", "aten::addmm", "aclnnAddmm_MatMulV2")),
    ):  # fmt: skip
        profile = open_profile(SAMPLES / sample)
        table = tree_of(profile)
        assert ";".join(path) in table.column("path")
        work = sum(
            int((lane["end"] - lane["start"])[lane["role"] == 0].sum()) for lane in profile.lanes if lane.in_sums
        )
        assert sum(by_depth(table, 0).values()) == work == sum(table.column("self_us"))
        # who called what passes is told whatever passes
        kernel = max(by_depth(table, len(path) - (sample[0] == "a")))
        some = tree_of(profile, filter=f'name="{kernel}"')
        assert len(some)
        assert set(some.column("path")) < set(table.column("path"))
    host = tree_of(open_profile(SAMPLES / "torch_cpu_recorded"))
    assert host.column("name")[:2] == ["worker0", "nn.Module: Net_0"]
    assert all(own <= total for own, total in zip(host.column("self_us"), host.column("total_us"), strict=True))


def test_collapsed_stacks_have_a_line_for_each_path_whatever_names_hold(tmp_path):
    texts = Texts()
    lane = make_lane("TIU", 0, starts=[0, 100, 200, 300], ends=[50, 150, 250, 300],
                     kernel=texts.codes("kernel", ["k;1", "k;1", "", ""]),
                     name=texts.codes("name", ["a\nb 7", "a\nb 7", "c", "c"]))  # fmt: skip
    profile = make_profile([lane], strings=texts.build())
    written = run_export(Job(tmp_path, frozenset(("collapsed",)), query_of(profile)))[0].path
    assert written.name == "calltree.collapsedstack.txt"
    assert written.read_text().splitlines() == ["Core 0;k,1;a\\x0ab 7 100", "Core 0;-;c 50"]
    keep = {"filter": "name=c"}
    run_export(Job(tmp_path, frozenset(("collapsed",)), selected_query(profile, **keep)))
    assert written.read_text().splitlines() == ["Core 0;-;c 50"]


@pytest.mark.parametrize("sample", ["ascend_synthetic", "torch_cuda_synthetic"])
def test_events_whose_enclosing_ones_a_filter_leaves_out_stand_by_themselves(sample):
    profile = open_profile(SAMPLES / sample)
    kept = []
    for lane in profile.lanes:
        inner = np.flatnonzero(lane["sublane"] > 1) if "sublane" in lane else np.arange(len(lane))
        kept.append(inner if len(inner) else np.arange(len(lane)))
    assert any(0 < len(rows) < len(lane) for rows, lane in zip(kept, profile.lanes, strict=True))
    assert ask(profile.restricted_to(kept), "calltree") is not None
