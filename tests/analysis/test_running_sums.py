"""Running sums give what looking at every row gives, in any window, also where events overlap."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from profiles import big_profile
from work_rows import headroom, top

from tpuprof_tui.analysis.index.lane_index import BLOCK, MIN_BLOCKS, RunningSums, inner_blocks, rows_between
from tpuprof_tui.analysis.index.unit_index import build_indexes
from tpuprof_tui.analysis.totals.figures import bytes_between
from tpuprof_tui.model import INT_MISSING, Lane, Role


def numbers(rows):
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


def with_peaks(lane: Lane) -> Lane:
    """The lane with times at the peak, some of them unknown."""
    random = np.random.default_rng(len(lane))
    ideal = (lane["end"] - lane["start"]) * random.uniform(0.1, 1.5, len(lane))
    ideal[random.uniform(size=len(lane)) < 0.2] = np.nan
    return replace(lane, columns={**lane.arrays(), "ideal": ideal})


@pytest.fixture(scope="module")
def profile():
    made = big_profile(24_000, cores=2, ports=1)
    made = replace(made, lanes=tuple(with_peaks(lane) for lane in made.lanes))
    assert min(map(len, made.lanes)) > MIN_BLOCKS * BLOCK
    return made


@pytest.fixture(scope="module")
def indexes(profile):
    return build_indexes(profile)


def windows(profile):
    random = np.random.default_rng(3)
    start, end = profile.start_ns, profile.end_ns
    yield start, end
    yield start - 5, end + 5
    for _ in range(25):
        low, high = np.sort(random.integers(start, end, 2)).tolist()
        yield low, high + 1
    yield end, end + 10


def test_rows_of_a_window_come_in_pieces_that_make_it_up(profile, indexes):
    for index in indexes:
        for start, end in windows(profile):
            expected = numbers(rows_between(index, start, end)).tolist()
            first, last, rest = inner_blocks(index, start, end, 100)
            inner = np.arange(first * 100, last * 100)
            assert sorted([*inner.tolist(), *numbers(rest).tolist()]) == expected
            assert (index.starts[inner] >= start).all()
            assert (index.lane.take("end", inner) <= end).all()


@pytest.mark.parametrize(
    ("low", "high"), [(0, 3000), (5, 5), (0, 10), (1, 2999), (512, 1536), (700, 1400), (2900, 3000)]
)
def test_sums_over_rows(low, high):
    values = np.random.default_rng(1).integers(-9, 9, (2, 3000))
    sums = RunningSums(3000, lambda rows: values[:, rows])
    assert sums.over(slice(low, high)).tolist() == values[:, low:high].sum(axis=1).tolist()
    assert sums.over(np.arange(low, high)).tolist() == values[:, low:high].sum(axis=1).tolist()
    assert sums.total.tolist() == values.sum(axis=1).tolist()


def test_bytes_of_a_window(profile, indexes):
    for index in indexes:
        if "bytes" not in index.lane:
            continue
        lane = index.lane
        for start, end in windows(profile):
            inside = np.minimum(lane["end"], end) - np.maximum(lane["start"], start)
            share = np.clip(inside, 0, None) / np.maximum(lane["end"] - lane["start"], 1)
            counted = (lane["role"] == Role.WORK) & (lane["bytes"] != INT_MISSING)
            assert bytes_between(index, start, end) == pytest.approx(
                float((lane["bytes"] * share)[counted].sum()), abs=1
            )


def looked_through(profile, start, end, cores):
    """Count, total and longest by label of kernel, row by row; and the time lost."""
    found: dict[str, list[float]] = {}
    for lane in profile.lanes:
        submitted = lane["core"] if profile.unit_of(lane) < 0 else np.full(len(lane), profile.unit_number(lane))
        chosen = (lane["role"] == Role.WORK) & (lane["start"] >= start) & (lane["start"] < end)
        for row in np.flatnonzero(chosen).tolist():
            if cores is not None and submitted[row] not in cores:
                continue
            begin, finish = int(lane["start"][row]), int(lane["end"][row])
            taken = finish - begin
            code = int(lane["kernel"][row])
            sums = found.setdefault(profile.text("kernel", code) if code >= 0 else "-", [0, 0, 0, 0.0])
            ideal = float(lane["ideal"][row])
            lost = 0.0 if np.isnan(ideal) else max(taken - ideal, 0.0)
            sums[0] += 1
            sums[1] += taken
            sums[2] = max(int(sums[2]), taken)
            sums[3] += lost
    return found


@pytest.mark.parametrize("cores", [None, {1}])
def test_work_by_kernel_function(profile, indexes, cores):
    for start, end in [*windows(profile)][:8]:
        expected = looked_through(profile, start, end, cores)
        rows = top(profile, indexes, start, end, units=cores, limit=None)
        assert {row.label: [row.count, row.total_ns, row.max_ns] for row in rows} == {
            label: each[:3] for label, each in expected.items()
        }
        lost = headroom(profile, indexes, start, end, units=cores, limit=None)
        assert {row.label: row.lost_ns for row in lost} == {
            label: pytest.approx(each[3]) for label, each in expected.items()
        }
