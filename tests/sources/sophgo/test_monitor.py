"""Time arithmetic: counters that wrap, rings that lapped, both at once, records written late, ids that wrap."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest
import raw_bytes as raw
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from profiles import CORES

from tpuprof_tui.model import Severity
from tpuprof_tui.sources.sophgo.chips.chip import chip_by_name
from tpuprof_tui.sources.sophgo.read.ports import unwrapped_port
from tpuprof_tui.sources.sophgo.read.problems import Problems
from tpuprof_tui.sources.sophgo.read.records.monitor import RecordStream, in_order, read_stream, to_ns, unwrapped_ids

_WRAP = 1 << 32
_HALF = 1 << 31
_CHIP = chip_by_name("aks")
assert _CHIP is not None
_RECORDS = {"TIU": raw.tiu_record, "GDMA": raw.dma_record, "SDMA": raw.dma_record, "CDMA": raw.cdma_record}

Records = list[tuple[int, int, int]]  # start, end on a count that does not wrap, id


def _stream(engine: str, records: Records, *, system: int = 0) -> RecordStream:
    """The stream of records as dumped; the first ``system`` of them are of system commands."""
    if engine == "TIU":
        parts = [raw.tiu_record(*item, place < system) for place, item in enumerate(records)]
    else:
        parts = [_RECORDS[engine](*item, 0 if place < system else 64) for place, item in enumerate(records)]  # type: ignore[operator]
    payload = np.frombuffer(b"".join(parts), np.uint8)
    return read_stream([payload], [0], _CHIP, engine, Problems())


def _order(stream: RecordStream) -> tuple[RecordStream, Problems]:
    report = Problems()
    return in_order(stream, _CHIP, report), report


def _assert_times(stream: RecordStream, records: Records) -> None:
    """Same order and times, but for whole turns of the counter."""
    assert stream.id.tolist() == [number for _, _, number in records]
    turns = int(stream.start[0]) - records[0][0]
    assert turns % _WRAP == 0
    assert (stream.start - turns).tolist() == [start for start, _, _ in records]
    assert (stream.end - turns).tolist() == [end for _, end, _ in records]


_SMALL = st.integers(0, 5_000)
_GAP = st.one_of(
    _SMALL, _SMALL, st.integers(0, 1 << 25), st.integers(_HALF - 9, _HALF + 9), st.integers(0, 1_900_000_000)
)
_LENGTH = st.one_of(_SMALL, _SMALL, st.integers(0, 2_000_000_000))
_BASE = st.one_of(st.integers(0, _WRAP - 1), st.integers(_WRAP - 20_000, _WRAP - 1))


def _serial(base: int, steps: list[tuple[int, int]], first_id: int = 0) -> Records:
    """Records one after the other: (gap, length) each."""
    records: Records = []
    now = base
    for number, (gap, length) in enumerate(steps):
        now += gap
        records.append((now, now + length, first_id + number))
        now += length
    return records


def _with_opening(base: int, steps: list[tuple[int, int]]) -> Records:
    return [(base, base + 9, 0), (base + 12, base + 90, 1), *_serial(base + 100, steps)]


# -- counters that wrap ----------------------------------------------------


@raw.FIXED
@given(st.sampled_from(["TIU", "GDMA", "SDMA"]), _BASE, st.lists(st.tuples(_GAP, _LENGTH), min_size=1, max_size=12))
def test_any_number_of_wraps_is_undone(engine: str, base: int, steps: list[tuple[int, int]]) -> None:
    """Exact while records begin less than 2^32 - 2^24 cycles apart: overlaps above 2^31 lift nothing either."""
    records = _with_opening(base, steps)
    stream, _ = _order(_stream(engine, records, system=2))
    _assert_times(stream, records)
    assert not stream.lapped


@raw.FIXED
@given(_BASE, st.lists(st.tuples(_SMALL, _SMALL), min_size=1, max_size=12), st.integers(1, 4000))
def test_overlaps_are_overlaps_wherever_the_counter_stands(base: int, steps: list[tuple[int, int]], over: int) -> None:
    """The reference lifts every overlap above 2^31 by 2^32 (limit 2)."""
    records = [(start, end + over, number) for start, end, number in _with_opening(base, steps)]
    stream, report = _order(_stream("TIU", records, system=2))
    _assert_times(stream, records)
    assert report.problems(CORES) == ()


@raw.FIXED
@given(st.integers(0, 5_000), st.integers(_HALF + 200, _WRAP - (1 << 24) - 20_000))
def test_a_wrap_in_a_gap_of_over_two_seconds_is_named(after: int, gap: int) -> None:
    records = _with_opening(_WRAP - gap - after, [(gap + after - 100, 5), (3, 5)])
    stream, report = _order(_stream("GDMA", records, system=2))
    _assert_times(stream, records)
    assert [problem.severity for problem in report.problems(CORES)] == [Severity.WARNING]


# -- lapped rings ----------------------------------------------------------


@st.composite
def _survivors(draw: Any, most_cycles: int = _HALF - 1) -> Records:
    """What is left of a stream of kernels with restarting ids, spanning less than ``most_cycles``."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    ids = [number for size in sizes for number in range(size)][draw(st.integers(0, 6)) :]
    count = max(len(ids), 3)
    ids = ids + list(range(count - len(ids)))
    room = most_cycles // (2 * count)
    pairs = st.tuples(st.one_of(_SMALL, st.integers(0, room)), st.one_of(st.integers(1, 5000), st.integers(1, room)))
    steps = draw(st.lists(pairs, min_size=count, max_size=count))
    records = _serial(draw(_BASE), [(gap + 1, length) for gap, length in steps])
    return [(start, end, number) for (start, end, _), number in zip(records, ids, strict=True)]


@raw.FIXED
@given(st.sampled_from(["TIU", "GDMA", "SDMA"]), _survivors(), st.data())
def test_a_lapped_ring_is_turned_also_across_a_wrap(engine: str, records: Records, data: Any) -> None:
    """Any split, any position of the counter: the survivors come out in the order they ran."""
    seam = data.draw(st.integers(1, len(records) - 1))
    dump = records[seam:] + records[:seam]
    # where the seam is the very place of the wrap, times grow through the dump and nothing shows it
    assume(any(after[0] % _WRAP < before[0] % _WRAP for before, after in pairwise(dump)))
    stream, report = _order(_stream(engine, dump))
    _assert_times(stream, records)
    assert stream.lapped
    assert [problem.severity for problem in report.problems(CORES)] == [Severity.WARNING]
    assert f"last {len(records)} records" in report.problems(CORES)[0].what
    assert engine in report.problems(CORES)[0].what


@raw.FIXED
@given(_survivors())
def test_a_dump_in_order_is_no_lapped_ring(records: Records) -> None:
    """Also one that begins in the middle of a kernel, without the opening pair."""
    stream, _ = _order(_stream("TIU", records))
    _assert_times(stream, records)
    assert not stream.lapped


@raw.FIXED
@given(st.integers(3, 40), st.integers(5, 1000), _BASE, st.integers(1, 2 * _HALF), st.data())
def test_a_ring_of_more_than_2_31_cycles_is_turned_by_its_ids(
    count: int, first: int, base: int, span: int, data: Any
) -> None:
    step = max(2, (_HALF + span // 4) // count)
    records = _serial(base, [(step // 2, step // 2)] * count, first)
    seam = data.draw(st.integers(1, count - 1))
    stream, _ = _order(_stream("TIU", records[seam:] + records[:seam]))
    if span // 4 + _HALF < _WRAP - 2 * step:
        assert stream.id.tolist() == [number for _, _, number in records]
        assert stream.lapped


def test_the_opening_pair_proves_that_a_dump_has_not_lapped() -> None:
    """A wrap looks exactly like the seam of a ring to who looks at times alone (limit 1 of the reference)."""
    records = _with_opening(_WRAP - 3_000, [(500, 400)] * 12)
    assert any(end % _WRAP < start % _WRAP for (start, _, _), (end, _, _) in pairwise(records))
    stream, report = _order(_stream("TIU", records, system=2))
    _assert_times(stream, records)
    assert report.problems(CORES) == ()


# -- written late ----------------------------------------------------------


@raw.FIXED
@given(_BASE, st.lists(st.tuples(st.integers(1, 4000), st.integers(1, 4000)), min_size=4, max_size=20), st.data())
def test_sdma_records_written_late_get_their_place(base: int, steps: list[tuple[int, int]], data: Any) -> None:
    """A send retires at once; its record may come after that of the long wait that follows it."""
    records = _with_opening(base, steps)
    dump = list(records)
    place = 2
    while place + 1 < len(dump):
        if data.draw(st.booleans()):
            dump[place], dump[place + 1] = dump[place + 1], dump[place]
            place += 1
        place += 1
    stream, _ = _order(_stream("SDMA", dump, system=2))
    _assert_times(stream, records)


@raw.FIXED
@given(st.integers(1, 200_000_000), st.integers(1, 1000))
def test_a_port_record_from_before_a_wrap_may_be_written_behind_it(before: int, after: int) -> None:
    """Ports are full duplex: a long receive is written when it ends, behind what started after the wrap."""
    records = [(_WRAP - before - 500, _WRAP - before - 400, 1), (_WRAP + after, _WRAP + after + 9, 3),
               (_WRAP - before, _WRAP + after + 20, 2), (_WRAP + after + 30, _WRAP + after + 50, 4)]  # fmt: skip
    stream = unwrapped_port(_stream("CDMA", records), Problems())
    _assert_times(stream, records)


@raw.FIXED
@given(_BASE, st.lists(st.tuples(_SMALL, st.integers(0, 2_000_000), st.booleans()), min_size=1, max_size=20))
def test_port_records_may_overlap_freely(base: int, steps: list[tuple[int, int, bool]]) -> None:
    starts = list(accumulate((gap for gap, _, _ in steps), initial=base))
    records = [(start, start + length, 1 + number) for number, (start, (_, length, _)) in
               enumerate(zip(starts, steps, strict=False))]  # fmt: skip
    stream = unwrapped_port(_stream("CDMA", records), Problems())
    _assert_times(stream, records)


# -- ids -------------------------------------------------------------------

_KERNEL = st.one_of(st.integers(1, 40), st.integers(1, 64_900), st.integers(65_537, 140_000))


@settings(raw.FIXED, max_examples=30)
@given(st.lists(_KERNEL, min_size=1, max_size=4), st.integers(0, 3), st.randoms(use_true_random=False))
def test_ids_of_sixteen_bits_are_lifted_kernel_by_kernel(sizes: list[int], keep: int, random: Any) -> None:
    """After a wrap the next kernel starts at 0 again (the reference keeps it lifted); lost records change nothing."""
    ids = np.concatenate([np.arange(size) for size in sizes])
    if keep:
        lost = np.array([random.randrange(len(ids)) for _ in range(keep)])
        ids = np.delete(ids, lost[(ids[lost] > 0) & (ids[lost] % 65_536 < 60_000)])
    # a kernel that ends between 65,001 and 65,535 mod 2^16 cannot be told from a wrap
    if not any((size - 1) % 65_536 > 65_000 for size in sizes):
        assert np.array_equal(unwrapped_ids(ids & 0xFFFF, max(sizes) - 1), ids)


def test_ids_of_wider_counters_are_left_alone() -> None:
    ids = np.concatenate([np.arange(70_000), np.arange(70_000), np.arange(65_400), np.arange(30)])
    assert np.array_equal(unwrapped_ids(ids[:140_000], 69_999), ids[:140_000])
    assert np.array_equal(unwrapped_ids(ids[140_000:], 65_399), ids[140_000:])


# -- clocks ----------------------------------------------------------------


@raw.FIXED
@given(st.integers(1, 4000), st.lists(st.integers(0, 1 << 40), min_size=1, max_size=9))
def test_cycles_become_ns_by_rounding_half_to_even(mhz: int, starts: list[int]) -> None:
    stream = _stream("TIU", [(0, 0, 0)] * len(starts))
    stream.start = np.array(starts, np.int64)
    stream.end = stream.start + 37
    to_ns(stream, mhz)
    assert stream.start.tolist() == [round(start / mhz * 1000) for start in starts]
    assert stream.end.tolist() == [round((start + 37) / mhz * 1000) for start in starts]
    if stream.cycles is not None:
        assert stream.cycles.tolist() == [38] * len(starts)
    else:
        assert mhz == 1000


# -- blocks of records -----------------------------------------------------


@pytest.mark.parametrize("engine", list(_RECORDS))
@pytest.mark.parametrize("rest", [1, 9])
def test_a_partial_record_is_dropped_and_named(engine: str, rest: int) -> None:
    record = _RECORDS[engine](5, 9, 3)
    report = Problems(core=4)
    payload = np.frombuffer(record * 2 + bytes(rest), np.uint8)
    stream = read_stream([payload], [800], _CHIP, engine, report)
    assert stream.id.tolist() == [3, 3]
    problem = report.problems(CORES)[0]
    assert (problem.severity, problem.offset, problem.group) == (Severity.ERROR, 800 + 2 * len(record), 4)


def test_several_blocks_of_one_engine_are_one_dump() -> None:
    """The reference uses the first alone (limit 16); a wrap between two blocks is a wrap like any other."""
    records = _with_opening(_WRAP - 2_000, [(300, 200)] * 9)
    parts = [np.frombuffer(b"".join(raw.tiu_record(*item, place < 2) for item in part), np.uint8)
             for place, part in ((0, records[:2]), (2, records[2:7]), (7, records[7:]))]  # fmt: skip
    report = Problems()
    stream = read_stream(parts, [0, 100, 200], _CHIP, "TIU", report)
    _assert_times(_order(stream)[0], records)
    assert [problem.severity for problem in report.problems(CORES)] == [Severity.NOTE]
