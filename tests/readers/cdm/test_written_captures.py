"""Every kind of capture that the sample program writes, also with other seeds, against what it wrote."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from capture_writer.capture import write_capture
from capture_writer.damage import DAMAGES, damage_capture
from capture_writer.kinds import KINDS
from truth_tables import Leave, Truth, differences, read_truth

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import Severity, is_missing
from tpuprof_tui.readers import open_profile

#: Kinds in which something must be found again: tried with other seeds, too.
_TRICKY = ("lost", "lost_mode2", "lost_opening", "no_opening", "ring", "ring_all", "ring_wrap", "mode0_ring",
           "wrap_time", "wrap_after_pause", "wrap_time_cdma", "wrap_time_freq", "cdma", "cdma_many_ports", "cdma_short",
           "cdma_lost", "cdma_twins", "cdma_partial", "cdma_wrap_lost", "aksv_cdma", "sync_only", "many_blocks",
           "dyn_blocks_mode2", "sdma_swap", "tiny_lost", "tiny_ring", "tiny_kernels", "des_lost", "overlap",
           "late_overlap", "crossed_pairs", "noise")  # fmt: skip
_SEEDS = (7, 4242)
_SLOW = ("id_wrap", "rvt_wrap")
_CASES = [*((name, 0) for name in KINDS if name not in _SLOW), *((name, seed) for name in _TRICKY for seed in _SEEDS)]
_SHIFTS = {"core shift": ("core", "CDMA"), "CDMA shift": ("CDMA",)}


def _case(name: str, seed: int, parent: Path) -> tuple[Path, Truth, Leave]:
    options = KINDS[name]
    options = replace(options, seed=seed) if seed else options
    written = write_capture(options, parent)
    truth = read_truth(parent / f"{name}.truth.json")
    shift = tuple(lane for allowed in options.allow for lane in _SHIFTS.get(allowed, ()))
    unbound = truth.instructions if "unbound" in options.allow else 0
    return written.path, truth, Leave(shift=shift, unbound=unbound)


@pytest.mark.parametrize(("name", "seed"), _CASES)
def test_every_instruction_is_what_was_written(tmp_path: Path, name: str, seed: int) -> None:
    path, truth, leave = _case(name, seed, tmp_path)
    assert differences(open_profile(path), truth, leave) == []
