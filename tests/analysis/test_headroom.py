"""Lost time against the peak, by kernel function and operation."""

from __future__ import annotations

import numpy as np
import pytest
from profiles import make_lane, make_profile
from work_rows import headroom

from tpuprof_tui.analysis.index.unit_index import build_indexes
from tpuprof_tui.model import Role, Strings

NAN = float("nan")
STRINGS = {"kernel": Strings(["rope", "mlp"]), "name": Strings(["mul", "load"]), "type": Strings(["a"])}


def small():
    """Two cores: TIU and GDMA rows as (start, end, ideal, kernel, name, role)."""
    work, wait = Role.WORK, Role.WAIT
    tables = {
        ("TIU", 0): [(0, 100, 40.0, 0, 0, work), (100, 200, NAN, 0, 0, work), (200, 300, 50.0, 1, 0, wait)],
        ("GDMA", 0): [(0, 80, 60.0, 1, 1, work), (80, 100, 30.0, 1, 1, work)],
        ("TIU", 1): [(0, 50, 10.0, 1, 0, work)],
    }
    lanes = []
    for (engine, core), rows in tables.items():
        start, end, ideal, kernel, name, role = (np.array(column) for column in zip(*rows, strict=True))
        lanes.append(make_lane(engine, core, starts=start, ends=end, roles=role, ideal=ideal.astype(float),
                               kernel=kernel.astype(np.int32), name=name.astype(np.int32)))  # fmt: skip
    return make_profile(lanes, strings=STRINGS)


def rows_of(profile, start=0, end=1000, **options):
    found = headroom(profile, build_indexes(profile), start, end, **options)
    return [(row.label, row.count, row.unknown, row.total_ns, row.ideal_ns, row.lost_ns) for row in found]


def test_time_is_lost_by_kernel_function():
    # of mlp: 20 of the first load, nothing of the one faster than the peak, 40 of the other core's computation
    assert rows_of(small()) == [("mlp", 3, 0, 150, 100, 60), ("rope", 1, 1, 100, 40, 60)]


def test_and_by_operation():
    assert rows_of(small(), by="name") == [("mul", 2, 1, 150, 50, 100), ("load", 2, 0, 100, 90, 20)]


def test_only_what_was_asked_for():
    assert rows_of(small(), units={1}) == [("mlp", 1, 0, 50, 10, 40)]
    assert rows_of(small(), lanes={1}) == [("mlp", 2, 0, 100, 90, 20)]
    assert len(rows_of(small(), limit=1)) == 1


def test_what_starts_in_the_window_counts_with_all_of_its_time():
    assert rows_of(small(), 50, 80, lanes={0, 1}) == []
    assert rows_of(small(), 50, 101, lanes={0, 1}) == [("mlp", 1, 0, 20, 30, 0), ("rope", 0, 1, 0, 0, 0)]


def test_the_ratio_is_time_at_the_peak_over_time_taken():
    profile = small()
    ratios = {row.label: row.ratio for row in headroom(profile, build_indexes(profile), 0, 1000)}
    assert ratios == {"rope": pytest.approx(0.4), "mlp": pytest.approx(100 / 150)}


def test_profiles_that_know_no_peak_have_only_unknown_work():
    lane = make_lane(starts=[0, 10], ends=[5, 20])
    rows = headroom(make_profile([lane], strings=STRINGS), build_indexes(make_profile([lane])), 0, 100)
    assert [(row.label, row.count, row.unknown, row.lost_ns, row.ratio) for row in rows] == [("-", 0, 2, 0.0, 0.0)]
