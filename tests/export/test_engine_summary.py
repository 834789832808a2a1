"""The summary of engines: one unit for all clocks, ends where the last instruction ends."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from profiles import make_lane, make_profile

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.model import Role, Strings
from tpuprof_tui.sources.sophgo.files.summary_table import CoreSums, Sums, lane_sums, published_window
from tpuprof_tui.sources.sophgo.files.workbook import SUMMARY_COLUMNS, summary_row

ALL = [slice(0, 3)]
STRINGS = {"direction": Strings(["DDR->LMEM"])}


def profile_of(tiu_mhz: float, dma_mhz: float):
    """One core: TIU and GDMA ran for the same time, counted by clocks of their own; an early GDMA row ends last."""
    tiu = make_lane("TIU", 0, starts=[0, 1000, 2000], ends=[900, 1900, 2900],
                    cycles=np.array([900, 900, 900]) * int(tiu_mhz) // 1000)  # fmt: skip
    gdma = make_lane("GDMA", 0, starts=[0, 1000, 2000], ends=[3900, 1900, 2900], roles=[Role.WORK] * 3,
                     cycles=np.array([900, 900, 900]) * int(dma_mhz) // 1000, bytes=np.array([4096] * 3),
                     direction=np.zeros(3, np.int32))  # fmt: skip
    profile = make_profile([tiu, gdma], strings=STRINGS)
    return replace(profile, device=replace(profile.device, clocks=(("TIU", tiu_mhz), ("DMA", dma_mhz))))


def rows_of(profile, total_ns: int = 10_000):
    sums = CoreSums(Sums, {lane.kind: lane_sums(profile, lane, ALL) for lane in profile.lanes})
    one, every = (
        dict(zip(SUMMARY_COLUMNS, summary_row(profile, core, [sums], total_ns), strict=True)) for core in (0, None)
    )
    return one, every


@pytest.mark.parametrize(("tiu_mhz", "dma_mhz"), [(1000, 1000), (1000, 500), (800, 1000), (900, 750)])
def test_times_of_engines_are_added_in_ns_whatever_their_clocks(tiu_mhz, dma_mhz):
    one, every = rows_of(profile_of(tiu_mhz, dma_mhz))
    for row in (one, every):
        assert row["TiuWorkingRatio"] == pytest.approx(0.27, abs=1e-4)
        assert row["Parallelism"] == pytest.approx(0.54, abs=1e-4)
    assert one["totalGdmaCycle"] == 2700 * dma_mhz // 1000
    assert every["totalGdmaCycle"] == pytest.approx(2.7)


def test_an_engine_ends_where_its_last_instruction_ends_not_its_last_row():
    assert published_window(query_of(profile_of(1000, 1000))) == (0, 3900)


def test_parts_add_up_to_the_whole():
    profile = profile_of(1000, 1000)
    sums = lane_sums(profile, profile.lanes[1], ALL)
    parts = [slice(0, 1), slice(1, 3)]
    assert lane_sums(profile, profile.lanes[1], parts) == sums
