"""The view ``bandwidth``: known moves by core, engine and direction, memories with their peaks, and bus ports."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import SAMPLES
from profiles import Texts, make_lane, make_profile

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.app.drawing.charts import series_curve
from tpuprof_tui.cli.main import main
from tpuprof_tui.model import Profile
from tpuprof_tui.views.answer import Answer
from tpuprof_tui.views.registry import answer, view_of

LOAD, STORE = "DDR->LMEM", "LMEM->DDR"
#: Peak of DDR for a core of the profiles made here, GB/s.
PEAK = 68.25
#: Moves of each core: start, end (ns), bytes, direction. The window is 0 to 2400 ns: a part is 10 ns.
MOVES = (
    [(0, 1200, 38_400, LOAD), (1200, 1800, 6_000, STORE)],
    [(600, 2400, 57_600, LOAD)],
)


def moved(*cores: list[tuple[int, int, int, str]], ports: bool = False) -> Profile:
    texts, lanes = Texts(), []
    for number, rows in enumerate(cores):
        start, end, size = (np.array([row[place] for row in rows], np.int64) for place in range(3))
        more = {f"axi_d0_{part}_bytes": size // 4 for part in ("ar", "wr")} if ports else {}
        lanes.append(make_lane("GDMA", number, starts=start, ends=end, bytes=size,
                               direction=texts.codes("direction", [row[3] for row in rows]), **more))  # fmt: skip
    return make_profile(lanes, strings=texts.build(), mode=2)


def bandwidth(profile: Profile, **selection: object) -> Answer:
    return answer(view_of(profile.vocabulary, "bandwidth"), query_of(profile, **selection))


def rows(found: Answer) -> dict[tuple[str, str], dict[str, float]]:
    table = found.table("by_direction")
    keys = [column.key for column in table.columns]
    told = [dict(zip(keys, row, strict=True)) for row in table.rows()]
    return {(row["unit"], row["direction"]): row for row in told}


def test_moves_by_core_and_direction():
    found = rows(bandwidth(moved(*MOVES)))
    assert {key: row["bytes"] for key, row in found.items()} == {
        ("Core 1", LOAD): 57_600, ("Core 0", LOAD): 38_400, ("Core 0", STORE): 6_000}  # fmt: skip
    load = found["Core 0", LOAD]
    assert (load["engine"], load["mean_gbps"], load["peak_gbps"]) == ("GDMA", 16, PEAK)
    assert (load["most_gbps"], load["of_peak"]) == pytest.approx((32, 16 / PEAK))
    assert found["Core 0", STORE]["mean_gbps"] == 2.5


def test_curves_have_the_peak_of_the_cores_that_move_so():
    series = {each.key: each for each in bandwidth(moved(*MOVES)).series}
    assert list(series) == ["GDMA", "DDR", LOAD, STORE]
    assert {key: each.peak for key, each in series.items()} == {
        "GDMA": 0, "DDR": 2 * PEAK, LOAD: 2 * PEAK, STORE: PEAK}  # fmt: skip
    # both load, then core 0 stores
    edges = series["DDR"].values[[0, 59, 60, 119, 120, 179, 180, 239]].tolist()
    assert edges == pytest.approx([32, 32, 64, 64, 42, 42, 32, 32])
    assert series["DDR"].values == pytest.approx(series["GDMA"].values)
    assert series[STORE].values.sum() * 10 == pytest.approx(6_000)


def test_a_range_cuts_moves_and_a_filter_and_a_core_narrow_them():
    profile = moved(*MOVES)
    cut = rows(bandwidth(profile, range=(0, 600)))
    assert {key: row["bytes"] for key, row in cut.items()} == {("Core 0", LOAD): 19_200}
    stores = bandwidth(profile, filter=f"direction={STORE}")
    assert list(rows(stores)) == [("Core 0", STORE)]
    assert [each.key for each in stores.series] == ["GDMA", STORE]
    table = bandwidth(profile).table("by_direction")
    target = table.target_of(0)
    (only,) = rows(bandwidth(profile, scope=target.scope, filter=target.condition)).values()
    assert only["bytes"] == 57_600


def test_bus_ports_where_the_records_have_them():
    series = {each.key: each for each in bandwidth(moved(*MOVES, ports=True)).series}
    assert {"Bus 0 read", "Bus 0 written"} == {key for key in series if key.startswith("Bus")}
    assert series["Bus 0 read"].values.sum() * 10 == pytest.approx((38_400 + 6_000 + 57_600) / 4)


def test_ports_are_told_with_the_core_that_submitted_their_transfers(capsys):
    assert main(["report", str(SAMPLES / "aksv_cdma"), "bandwidth", "--json"]) == 0
    (worker,) = json.loads(capsys.readouterr().out)["views"]["bandwidth"]["workers"].values()
    tables = worker["tables"]
    keys = [column["key"] for column in tables["by_direction"]["columns"]]
    told = [dict(zip(keys, row, strict=True)) for row in tables["by_direction"]["rows"]]
    ports = {(row["unit"], row["engine"]): row["peak_gbps"] for row in told if row["engine"].startswith("CDMA")}
    assert ports == {(f"Core {core}", f"CDMA port {port}"): None for core in range(4) for port in range(3)}
    assert [column["key"] for column in tables["DDR"]["columns"]] == ["time_us", "value", "peak"]
    assert {row[2] for row in tables["DDR"]["rows"]} == {4 * 68.264}


def test_the_peak_is_told_and_drawn(capsys):
    assert main(["report", str(SAMPLES / "aks_decode_mode2"), "bandwidth"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Bandwidth of DDR  ")]
    assert line.split()[-2:] == ["273.06", "GB/s"]
    series = {each.key: each for each in bandwidth(moved(*MOVES)).series}
    chart = series_curve(series["DDR"], 0, 2400, 60, 8, ascii_only=True)
    assert chart[0].startswith(" 136.5- - - -")
    # beyond four times what was reached it would flatten the chart
    assert not any("- -" in line for line in series_curve(series[STORE], 0, 2400, 60, 8, ascii_only=True))
