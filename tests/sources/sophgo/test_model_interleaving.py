"""Compiled models beside which firmware issues kernels: the records tell how both interleave."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_bytes import blocks_of
from truth_tables import differences, read_truth
from written_captures import capture

from tpuprof_tui.model import Severity
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.read.commands.model_interleaving import _ranks

KINDS = ("bmodel_dynamic", "bmodel_dynamic_mode2", "bmodel_dynamic_lost")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_record_has_its_command_whichever_list_it_is_from(kind, seed):
    path = capture(kind, seed=seed)
    profile = open_profile(path)
    assert differences(profile, read_truth(path.parent / f"{path.name}.truth.json")) == []
    assert profile.source_data["bmodel"]
    assert profile.source_data["mode"] == (2 if kind.endswith("mode2") else 1)
    modes = {mode for lane in profile.lanes for mode in np.unique(lane["mode"]).tolist()}
    assert modes == {-1, 0}  # streams have none, nodes say TDI
    if kind != "bmodel_dynamic_lost":
        assert not [problem for problem in profile.problems if problem.severity > Severity.NOTE]


def test_a_model_without_nodes_beside_it_reads_as_before():
    profile = open_profile(capture("bmodel"))
    assert profile.source_data["mode"] == 0
    assert all("kernel" not in lane or (lane["kernel"] == -1).all() for lane in profile.lanes)


def order_of(runs, static, dynamic) -> str:
    ranks = _ranks(*(np.array(table, np.int64).reshape(-1, 2) for table in (runs, static, dynamic)))
    steps = sorted([*((rank, "s") for rank in ranks[0].tolist()), *((rank, "d") for rank in ranks[1].tolist())])
    return "".join(step for _, step in steps)


MODEL, KERNEL = [(50, 20), (30, 9)], [(5, 4), (7, 2)]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([(50, 20), (5, 4), (7, 2), (30, 9)], "sdds"),
        ([(5, 4), (50, 20), (30, 9), (7, 2)], "dssd"),
        ([(5, 4), (48, 20), (30, 7), (6, 2)], "dssd"),  # each lost some at its end
        ([(5, 4), (50, 20), (7, 2)], "dsds"),  # the second part of the model left no record: anywhere
        ([(5, 4), (50, 20), (3, 3), (30, 9), (7, 2)], "dssd"),  # a run that no list explains
        ([], "ssdd"),
    ],
)
def test_lengths_of_runs_tell_the_order(runs, expected):
    assert order_of(runs, MODEL, KERNEL) == expected


def test_very_many_launches_are_not_all_tried():
    many = [(3, 3)] * 3000
    assert order_of(many * 2, many, many) == "s" * 3000 + "d" * 3000


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_any_bytes_in_streams_and_nodes_are_read(data):
    source = capture("bmodel_dynamic")
    blocks = blocks_of((source / "cdmlib0_0.profile").read_bytes())
    number = data.draw(st.integers(0, len(blocks) - 1))
    payload = bytearray(blocks[number][1])
    if payload:
        places = st.integers(0, len(payload) - 1)
        for at, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=30)):
            payload[at] = value
    blocks[number] = (blocks[number][0], bytes(payload[: data.draw(st.integers(0, len(payload)))]))
    if data.draw(st.booleans()):
        blocks.pop(data.draw(st.integers(0, len(blocks) - 1)))
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder)
        (target / "global.profile").write_bytes((source / "global.profile").read_bytes())
        written = b"".join(struct.pack("<II", kind, len(body)) + body for kind, body in blocks)
        (target / "cdmlib0_0.profile").write_bytes(written)
        for lane in open_profile(target).lanes:
            for key in lane.keys():  # noqa: SIM118
                assert len(lane[key]) == len(lane)
