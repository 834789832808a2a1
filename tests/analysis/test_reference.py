from __future__ import annotations

import numpy as np
import pytest
from profiles import Texts, make_lane, make_profile, small_profile, tpu_device

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.model import Role
from tpuprof_tui.sources.sophgo.files.summary_table import query_sums, summary_rows, to_ns
from tpuprof_tui.sources.sophgo.files.summary_text import summary_text

RULE, LINE = "=" * 190, "-" * 190
#: Written by the reference for four AKSV cores; all cores alike.
WRITTEN = f"""\
{RULE}
Summary
{RULE}
 CoreId | Parallelism(%) |  totalTime(us) | TiuWorkingRatio |  totalTiuCycle | uArchURate |   totalGdmaCycle |\
 GdmaDdrAvgBW(GB/s) |  GdmaL2AvgBW(GB/s) |   totalSdmaCycle | SdmaDdrAvgBW(GB/s)
{LINE}
      0 |         43.85% |          3.430 |          23.38% |            802 |    100.00% |              301 |\
               3.32 |               0.00 |              401 |              12.47
      1 |         43.85% |          3.430 |          23.38% |            802 |    100.00% |              301 |\
               3.32 |               0.00 |              401 |              12.47
{LINE}
Overall |         43.85% |          3.430 |          23.38% |      0.802(us) |    100.00% |        0.301(us) |\
               3.32 |               0.00 |        0.401(us) |              12.47
{RULE}
"""


def alike_cores():
    lanes = []
    for core in (0, 1):
        lanes += [
            make_lane("TIU", core, starts=[0, 900], ends=[801, 950], cycles=[802, 51], roles=[Role.WORK, Role.WAIT]),
            make_lane("GDMA", core, starts=[100], ends=[400], cycles=[301], bytes=[1000]),
            make_lane("SDMA", core, starts=[3030], ends=[3430], cycles=[401], bytes=[5000]),
        ]
    return make_profile(lanes, mode=0)


def table_of(profile):
    return summary_rows(query_of(profile))


def sums_of(profile, unit, engine):
    return query_sums(query_of(profile))[unit][engine]


def test_the_text_is_the_references():
    assert summary_text(query_of(alike_cores())).startswith(WRITTEN)


def test_one_core_leaves_sdma_out_of_parallelism():
    lanes = alike_cores().lanes[:3]
    (core, overall) = table_of(make_profile(lanes, mode=0))
    assert core.cells[1] == overall.cells[1] == f"{(802 + 301) / 3430 * 100:.2f}%"


def test_directions_split_the_bytes():
    texts = Texts()
    way = texts.codes("direction", ["DDR->LMEM", "L2M->LMEM", "L2M->DDR", "LMEM->LMEM", None])
    columns = {"cycles": [10, 20, 30, 40, 50], "bytes": [1, 2, 4, 8, 16], "direction": way}
    dma = make_lane("GDMA", starts=np.arange(5) * 100, ends=np.arange(5) * 100 + 50, **columns)
    profile = make_profile([dma], strings=texts.build())
    sums = sums_of(profile, 0, "GDMA")
    # a missing direction is the reference's placeholder, DDR->DDR
    assert (sums["ddr_bytes"], sums["ddr_cycles"]) == (1 + 4 + 16, 10 + 30 + 50)
    assert (sums["l2_bytes"], sums["l2_cycles"]) == (2, 20)
    assert sums["cycles"] == 150


def test_sdma_counts_sends_but_not_waits():
    lane = make_lane("SDMA", starts=[0, 10, 20], ends=[5, 15, 25], cycles=[6, 60, 600], bytes=[100, 0, 0],
                     roles=[Role.WORK, Role.SYNC, Role.WAIT])  # fmt: skip
    sums = sums_of(make_profile([lane]), 0, "SDMA")
    assert (sums["cycles"], sums["ddr_bytes"], sums["ddr_cycles"]) == (66, 100, 66)


def test_commands_issued_by_rvt_always_count_as_work():
    texts = Texts()
    mode = texts.codes("mode", ["TDI", "RVT"])
    lane = make_lane(starts=[0, 10], ends=[5, 15], cycles=[6, 60], roles=[Role.WAIT, Role.WAIT], mode=mode)
    assert sums_of(make_profile([lane], strings=texts.build()), 0, "TIU")["cycles"] == 60


def test_operations_of_all_tiu_instructions_count():
    lane = make_lane(starts=[0, 10], ends=[5, 15], cycles=[6, 6], roles=[Role.WORK, Role.SYNC],
                     alg_ops=[100, 1], uarch_ops=[400, 1])  # fmt: skip
    assert table_of(make_profile([lane]))[0].cells[5] == f"{101 / 401 * 100:.2f}%"


def test_idle_cores_have_a_row():
    rows = table_of(small_profile())
    assert [row.core for row in rows] == [0, 1, 2, None]
    assert rows[2].cells[1] == "0.00%"


@pytest.mark.parametrize("lanes", [[], [make_lane(starts=[], ends=[])]])
def test_nothing_to_sum_up(lanes):
    assert table_of(make_profile(lanes)) == []


def test_clocks():
    assert to_ns(1000, 950) == 1052
    assert to_ns(1000, 0) == 0
    rows = table_of(
        make_profile([make_lane(starts=[0], ends=[2000], cycles=[950])], device=tpu_device("AKS", tiu_mhz=950))
    )
    assert rows[0].cells[3] == "50.00%"
    assert rows[1].cells[4] == "1.000(us)"
