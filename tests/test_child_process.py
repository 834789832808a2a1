"""Processes beside this one: how many are worth it."""

from __future__ import annotations

import pytest

from tpuprof_tui import child_process


@pytest.mark.parametrize(
    ("quota", "expected"),
    [("max 100000\n", 8), ("200000 100000\n", 2), ("150000 100000", 2), ("20000 100000", 1), ("6400000 100000", 8),
     ("", 8), ("x y", 8), (None, 8)],
)  # fmt: skip
def test_cores_are_no_more_than_the_quota_of_the_cgroup(tmp_path, monkeypatch, quota, expected):
    if quota is not None:
        (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(child_process, "_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(child_process.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert child_process.cpu_count() == expected
    monkeypatch.setattr(child_process, "_sharing", 1)
    child_process.share_cpus(4)
    assert child_process.cpu_count() == max(expected // 4, 1)
