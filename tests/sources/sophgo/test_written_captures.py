"""Every kind of capture that the sample program writes, also with other seeds, against what it wrote."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from capture_writer.capture import write_capture
from capture_writer.chips import CHIPS
from capture_writer.kinds import KINDS
from truth_tables import Leave, Truth, differences, read_truth

from tpuprof_tui.model import Role, is_missing
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.chips.chip import chip_by_name
from tpuprof_tui.sources.sophgo.read import core as reading
from tpuprof_tui.sources.sophgo.read.commands.command_table import NodeRules

#: Kinds in which something must be found again: tried with other seeds, too.
_TRICKY = ("lost", "lost_mode2", "lost_opening", "no_opening", "ring", "ring_all", "ring_wrap", "mode0_ring",
           "wrap_time", "wrap_after_pause", "wrap_time_cdma", "wrap_time_freq", "cdma", "cdma_many_ports", "cdma_short",
           "cdma_lost", "cdma_twins", "cdma_partial", "cdma_wrap_lost", "aksv_cdma", "sync_only", "many_blocks",
           "dyn_blocks_mode2", "sdma_swap", "tiny_lost", "tiny_ring", "tiny_kernels", "des_lost", "overlap",
           "late_overlap", "crossed_pairs", "noise", "compiled", "aksv_compiled", "compiled_once", "compiled_lost",
           "edge_markers", "edge_markers_mode0", "edge_markers_compiled")  # fmt: skip
_SEEDS = (7,)
_SLOW = ("id_wrap", "rvt_wrap")
_CASES = [
    *((name, 0) for name in KINDS if name not in (*_SLOW, "des_no_blocks", "bmodel_cdma_twins") and KINDS[name].pmu),
    *((name, seed) for name in _TRICKY for seed in _SEEDS),
]
_SHIFTS = {"core shift": ("core", "CDMA"), "CDMA shift": ("CDMA",)}


def _case(name: str, parent: Path, **more: Any) -> tuple[Path, Truth, Leave]:
    options = dataclasses.replace(KINDS[name], **more)
    written = write_capture(options, parent)
    truth = read_truth(parent / f"{name}.truth.json")
    shift = tuple(lane for allowed in options.allow for lane in _SHIFTS.get(allowed, ()))
    unbound = truth.event_count if "unbound" in options.allow else 0
    native = options.chip_name in ("AKS", "AKSV")
    if options.bmodel and not native:  # nothing in such a capture happened on all cores at once
        shift = ("core",)
    return written.path, truth, Leave(shift=shift, unbound=unbound, names=native)


@pytest.mark.parametrize(("name", "seed"), _CASES)
def test_every_instruction_is_what_was_written(tmp_path: Path, name: str, seed: int) -> None:
    path, truth, leave = _case(name, tmp_path, **({"seed": seed} if seed else {}))
    assert differences(open_profile(path), truth, leave) == []


#: Losses on top of other effects of the hardware.
_MIXED = {
    "cdma_short": [{"lost_cdma": 0.2, "seed": 20}, {"lost_cdma": 0.3, "seed": 21}, {"lost_cdma": 0.2, "seed": 27}],
    "cdma_twins": [{"lost_cdma": 0.1, "cdma_pairs": 2, "seed": 27}, {"lost_cdma": 0.3, "cdma_pairs": 2, "seed": 24}],
    "cdma_partial": [{"lost_cdma": 0.3, "seed": 23}],
    "lost": [{"lost": 0.1, "seed": 5}, {"lost": 0.3, "seed": 6}],
    "sync_only": [{"lost": 0.05, "seed": 7}],
    "sdma_swap": [{"lost": 0.05, "seed": 8}],
    "ring_wrap": [{"lost": 0.03, "seed": 9}],
    "many_blocks": [{"lost": 0.05, "seed": 10}],
    "batches": [{"wrap_at": 0.3, "overlap": 0.1, "lost": 0.02, "seed": 12}],
    "tiny_kernels": [{"wrap_at": 0.5, "overlap": 0.1, "sdma": True, "seed": 13}],
}


@pytest.mark.parametrize(("name", "more"), [(name, more) for name, list_ in _MIXED.items() for more in list_])
def test_several_effects_at_once(tmp_path: Path, name: str, more: dict[str, Any]) -> None:
    path, truth, leave = _case(name, tmp_path, **more)
    assert differences(open_profile(path), truth, leave) == []


def test_ids_that_start_again_within_a_kernel(tmp_path: Path) -> None:
    path, truth, leave = _case("id_wrap", tmp_path)
    assert differences(open_profile(path), truth, leave) == []


def test_ids_that_firmware_starts_again_within_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with the chip's own limit, of which 265,000 commands would have to be written."""
    assert chip_by_name("AKSV").rvt_id_limit == CHIPS["AKSV"].rvt_id_limit == (1 << 18) - 1
    few = 4000
    monkeypatch.setitem(CHIPS, "AKSV", dataclasses.replace(CHIPS["AKSV"], rvt_id_limit=few))
    monkeypatch.setattr(reading, "NodeRules", lambda codes, _, *rest: NodeRules(codes, few, *rest))
    path, truth, leave = _case("rvt_wrap", tmp_path, prefill_tiles=1000)
    assert differences(open_profile(path), truth, leave) == []


def test_des_commands_without_their_blocks_keep_the_kernel_they_ran_in(tmp_path: Path) -> None:
    path, truth, leave = _case("des_no_blocks", tmp_path)
    profile = open_profile(path)
    assert differences(profile, truth, leave) == []
    for (engine, core), wanted in truth.lanes.items():
        lane = profile.lane(engine, core)
        assert lane is not None
        prebuilt = wanted["mode"] == 3
        kernels = [truth.funcs[code] for code in wanted["func"][prebuilt]]
        assert profile.strings["kernel"].texts(lane["kernel"][prebuilt]) == kernels
        assert (lane["scope"][prebuilt] == wanted["scope"][prebuilt]).all()
        assert (is_missing(lane["name"]) >= (prebuilt & (lane["role"] == Role.WORK))).all()
        assert (lane["mode"][~prebuilt] == 0).all()
