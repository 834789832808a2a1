"""Time arithmetic at its edges, each with an answer counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
import raw_bytes as raw
from profiles import CORES

from tpuprof_tui.model import Severity
from tpuprof_tui.sources.sophgo.chips.chip import chip_by_name
from tpuprof_tui.sources.sophgo.read.ports import unwrapped_port
from tpuprof_tui.sources.sophgo.read.problems import Problems
from tpuprof_tui.sources.sophgo.read.records.monitor import (
    RecordStream,
    begins_with_preamble,
    in_order,
    read_stream,
    to_ns,
    unwrapped_ids,
)

_WRAP, _HALF, _DISORDER = 1 << 32, 1 << 31, 1 << 24
_CHIP = chip_by_name("aks")
assert _CHIP is not None
Records = list[tuple[int, int, int]]


def _bytes(engine: str, records: Records, system: int = 0) -> np.ndarray:
    write = {"TIU": raw.tiu_record, "CDMA": raw.cdma_record}.get(engine, raw.dma_record)
    parts = []
    for place, (start, end, number) in enumerate(records):
        more = (place < system,) if engine == "TIU" else (0 if place < system else 64,)
        parts.append(write(start, end, number, *more))
    return np.frombuffer(b"".join(parts), np.uint8)


def _read(
    engine: str, *blocks: Records, system: int = 0, port: int = -1, core: int = -1
) -> tuple[RecordStream, Problems]:
    report, payloads = (
        Problems("f", core),
        [_bytes(engine, block, system if not place else 0) for place, block in enumerate(blocks)],
    )
    offsets = [1000 * (1 + place) for place in range(len(blocks))]
    return read_stream(payloads, offsets, _CHIP, engine, report, port), report


def _ordered(engine: str, records: Records, system: int = 0) -> tuple[RecordStream, Problems]:
    stream, _ = _read(engine, records, system=system)
    report = Problems()
    return in_order(stream, _CHIP, report), report


# -- what is read ------------------------------------------------------------


def test_a_stream_says_whose_it_is_and_what_is_missing() -> None:
    report = Problems()
    stream = read_stream([_bytes("TIU", [(5, 9, 3)])], [0], _CHIP, "TIU", report)
    assert (stream.port, stream.label, stream.lapped, stream.left_out) == (-1, "TIU", False, 0)
    assert stream.cycles is None
    assert report.problems(CORES) == ()
    assert _read("CDMA", [(5, 9, 3)], port=0)[0].label == "port 0"


def test_records_know_where_they_lie() -> None:
    data = np.concatenate([np.zeros(24, np.uint8), _bytes("TIU", [(10 * n, 10 * n + 5, n) for n in range(6)])])
    stream = read_stream([data[24:]], [24], _CHIP, "TIU", Problems())
    assert [stream.byte_offset(data, row) for row in (0, 1, 5)] == [24, 40, 104]
    assert stream.take(slice(2, 5)).byte_offset(data, 1) == 24 + 16 * 3
    assert stream.take(np.array([4, 1])).byte_offset(data, 0) == 24 + 16 * 4
    assert stream.take(np.array([4, 1])).take(np.array([1])).byte_offset(data, 0) == 24 + 16
    assert stream.take(np.array([4, 1])).counter("inst_id").tolist() == [4, 1]
    assert stream.take(np.array([4, 1])).counter("inst_id", np.array([1])).tolist() == [1]
    assert stream.take(np.arange(6) > 3).id.tolist() == [4, 5]
    joined, _ = _read("TIU", [(0, 5, 0)], [(10, 15, 1)])
    assert joined.byte_offset(data, 0) == -1


def test_a_record_that_cannot_be_is_named_where_it_lies() -> None:
    """In the second of two blocks: its offset counts from where that block lies."""
    first = [(10 * n, 10 * n + 5, n) for n in range(40)]
    second = [(1000 + 10 * n, 1000 + 10 * n + 5, n) for n in range(40)]
    second[3] = (0, 0, 0)
    stream, report = _read("TIU", first, second, core=6)
    assert (len(stream), stream.left_out) == (79, 1)
    (problem,) = [problem for problem in report.problems(CORES) if problem.severity is Severity.ERROR]
    assert (problem.offset, problem.group, problem.lane, problem.count) == (2000 + 3 * 16, 6, "TIU", 1)


@pytest.mark.parametrize(
    ("engine", "port", "lane"), [("CDMA", 0, "port 0"), ("CDMA", 3, "port 3"), ("SDMA", -1, "SDMA")]
)
def test_the_lane_of_such_a_record_is_named(engine: str, port: int, lane: str) -> None:
    records = [(10 * n, 10 * n + 5, n) for n in range(1, 41)]
    data = _bytes(engine, records).copy()
    size = len(data) // 40
    data[size * 7 : size * 8] = 0xFF
    report = Problems()
    stream = read_stream([data], [800], _CHIP, engine, report, port)
    assert stream.left_out == 1
    assert [(problem.lane, problem.offset) for problem in report.problems(CORES)] == [(lane, 800 + size * 7)]


@pytest.mark.parametrize(("port", "found"), [(-1, True), (0, False), (2, False)])
def test_bytes_too_many_are_looked_for_where_records_follow_one_another(port: int, found: bool) -> None:
    """Those of a port overlap freely: nothing tells where one of them was parted."""
    engine = "TIU" if port < 0 else "CDMA"
    data = _bytes(engine, [(1000 * n, 1000 * n + 900, n) for n in range(60)]).tobytes()
    size = len(data) // 60
    data = data[: 20 * size] + b"\xa7" * 4 + data[20 * size :]
    report = Problems()
    stream = read_stream([np.frombuffer(data, np.uint8)], [800], _CHIP, engine, report, port)
    (problem, *others) = report.problems(CORES)
    assert ("separated" in problem.what) == found
    if found:
        # what is left of the record in which they lie cannot be; offsets behind count the bytes too many
        assert [other.offset for other in others] == [problem.offset + 4]
        assert problem.offset in (800 + 19 * 16, 800 + 20 * 16)
        assert len(stream) in (59, 60)  # the one that is wrong may be one that cannot be
    else:
        assert problem.offset == 800 + len(data) // size * size


@pytest.mark.parametrize(("engine", "port", "left_out"), [("SDMA", -1, 1), ("CDMA", 0, 0), ("CDMA", 2, 0)])
def test_what_stands_beside_the_course_of_an_engine_may_be_on_a_port(engine: str, port: int, left_out: int) -> None:
    records = [(1000 * n, 1000 * n + 900, n) for n in range(1, 65)]
    records[30] = (1 << 28, (1 << 28) + 900, 31)
    assert _read(engine, records, port=port)[0].left_out == left_out


# -- the opening pair --------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "ids", "system", "begins"),
    [
        ("TIU", [0, 1], 2, True),
        ("TIU", [0, 1, 0], 2, True),
        ("TIU", [0, 1, 1], 2, True),
        ("TIU", [0, 1, 2], 2, False),
        ("SDMA", [0, 1, 2], 2, True),  # SDMA goes on counting
        ("TIU", [0, 1, 0], 1, False),
        ("TIU", [0, 1, 0], 0, False),
        ("TIU", [1, 1, 0], 2, False),
        ("TIU", [0, 2, 0], 2, False),
        ("TIU", [0], 1, False),
        ("GDMA", [0, 1, 0], 2, True),
    ],
)
def test_the_opening_pair_is_known_by_ids_and_counters(engine: str, ids: list[int], system: int, begins: bool) -> None:
    stream, _ = _read(engine, [(100 * n, 100 * n + 50, number) for n, number in enumerate(ids)], system=system)
    assert begins_with_preamble(stream, _CHIP) is begins


# -- steps back --------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "lift", "told"),
    [
        (-1, 0, 0),
        (-_DISORDER, 0, 0),  # written late, at the most
        (-_DISORDER - 1, _WRAP, 1),  # a wrap within a long gap
        (-_HALF, _WRAP, 1),
        (-_HALF - 1, _WRAP, 0),  # a wrap like any other
        (_HALF, 0, 0),
        (_HALF + 1, 0, 0),  # a pause, no counter ran backwards
    ],
)
def test_how_far_back_is_a_wrap(step: int, lift: int, told: int) -> None:
    first = 3 << 30 if step < 0 else 1000
    records = [(first - 900, first - 890, 0), (first - 800, first - 790, 1), (first, first + 10, 2)]
    stream, report = _ordered("SDMA", [*records, (first + step, first + step + 10, 3)], system=2)
    start = dict(zip(stream.id.tolist(), stream.start.tolist(), strict=True))
    assert start[3] - start[2] == step + lift
    assert stream.start.tolist() == sorted(stream.start)
    assert sum(problem.severity is Severity.WARNING for problem in report.problems(CORES)) == told
    assert (stream.end - stream.start).tolist() == [10] * 4


@pytest.mark.parametrize(
    ("step", "lift", "told"),
    [(-_DISORDER - 10, 0, 0), (-_DISORDER - 11, _WRAP, 1), (-_HALF - 1, _WRAP, 0), (_HALF, 0, 0), (_HALF + 1, 0, 0)],
)
def test_a_port_record_may_not_have_ended_long_before_the_one_ahead_began(step: int, lift: int, told: int) -> None:
    first = 3 << 30 if step < 0 else 1000
    stream, _ = _read("CDMA", [(first, first + 10, 1), (first + step, first + step + 10, 2)], port=1)
    report = Problems()
    stream = unwrapped_port(stream, report)
    assert int(stream.start[1] - stream.start[0]) == step + lift
    assert [problem.severity for problem in report.problems(CORES)] == [Severity.WARNING] * told


def test_what_began_before_a_wrap_stays_before_it() -> None:
    """And what follows is lifted again."""
    starts = [_WRAP - 100, _WRAP + 50, _WRAP - 60, _WRAP + 70, 2 * _WRAP - 10, 2 * _WRAP + 5]
    stream, _ = _read("CDMA", [(start, start + 30, number) for number, start in enumerate(starts)], port=1)
    stream = unwrapped_port(stream, Problems())
    # a pause of nearly a whole turn cannot be told from a step back
    assert (stream.start - stream.start[0] + starts[0]).tolist()[:4] == starts[:4]
    assert (stream.end - stream.start).tolist() == [30] * 6


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_records_are_in_order(count: int) -> None:
    records = [(_WRAP - 10 + 15 * n, _WRAP - 10 + 15 * n + 12, n) for n in range(count)]
    stream, report = _ordered("TIU", records)
    assert len(stream) == count
    assert not stream.lapped
    assert report.problems(CORES) == ()
    assert np.array_equal(np.diff(stream.start), [15] * (count - 1 if count else 0))
    assert (stream.end - stream.start).tolist() == [12] * count
    assert len(unwrapped_port(_read("CDMA", records, port=1)[0], Problems())) == count


# -- rings -------------------------------------------------------------------


def _ring(ids: list[int], seam: int, *, step: int = 100, base: int = 5000) -> Records:
    records = [(base + step * n, base + step * n + step // 2, number) for n, number in enumerate(ids)]
    return records[seam:] + records[:seam]


def test_three_records_show_a_ring() -> None:
    stream, report = _ordered("TIU", _ring([7, 8, 9], 1))
    assert stream.id.tolist() == [7, 8, 9]
    assert stream.lapped
    assert [problem.group for problem in report.problems(CORES)] == [-1]
    assert not _ordered("TIU", _ring([7, 8], 1))[0].lapped


def test_a_step_back_whose_ends_do_not_meet_is_no_seam() -> None:
    """Ids go on across the step, and the dump's last does not lead to its first: late, not lapped."""
    records = [(5000, 5010, 3), (5100, 5110, 4), (4000, 4010, 5), (4100, 4110, 6)]
    assert not _ordered("TIU", records)[0].lapped
    # with an id that starts anew at the step the same times are those of a ring
    assert _ordered("TIU", [(*record[:2], number) for record, number in zip(records, (3, 4, 1, 2), strict=True)])[
        0
    ].lapped


@pytest.mark.parametrize("ids", [[7, 0, 1, 2, 3, 4, 5, 6], [1, 0, 1, 2, 3, 4, 5, 0]])
def test_ids_that_go_on_across_the_seam_as_well_as_from_end_to_beginning_prove_nothing(ids: list[int]) -> None:
    """The oldest record happens to have the id behind that of the newest; or the dump begins with a reset."""
    stream, _ = _ordered("TIU", _ring(ids, 6 if ids[0] == 7 else 7))
    assert stream.lapped
    assert stream.id.tolist() == ids


@pytest.mark.parametrize(("back", "lapped"), [(80, False), (100, False), (101, True), (300, True)])
def test_the_seam_steps_back_more_than_twice_as_far_as_the_ends_overlap(back: int, lapped: bool) -> None:
    """The dump's last record runs on for 50 cycles after its first has begun, as a record and the next may."""
    last = 5050
    records = [(5000, 5010, 3), (5100, 5110, 4), (5100 - back, 5100 - back + 5, 1), (5045, last, 2)]
    assert _ordered("TIU", records)[0].lapped is lapped


@pytest.mark.parametrize(("closing", "lapped"), [(-_DISORDER, False), (1 - _DISORDER, True)])
def test_the_ends_of_a_ring_overlap_by_less_than_records_can_be_late(closing: int, lapped: bool) -> None:
    first, back = 1 << 30, 1 << 26
    records = [(first, first + 10, 3), (first + 100, first + 110, 4), (first + 100 - back, first + 110 - back, 1),
               (first - closing - 10, first - closing, 2)]  # fmt: skip
    assert _ordered("SDMA", records)[0].lapped is lapped


def test_late_records_are_late_also_without_the_opening_pair() -> None:
    stream, report = _ordered("SDMA", [(100, 110, 5), (300, 310, 7), (200, 210, 6), (400, 410, 8)])
    assert stream.id.tolist() == [5, 6, 7, 8]
    assert not stream.lapped
    assert [(problem.severity, problem.count) for problem in report.problems(CORES)] == [(Severity.NOTE, 1)]
    stream, report = _ordered("SDMA", [(100, 300, 5), (200, 310, 6), (200, 320, 7)])
    assert stream.id.tolist() == [5, 6, 7]
    assert report.problems(CORES) == ()  # together is not late


def test_two_steps_back_are_no_ring() -> None:
    far = 4 * _DISORDER
    records = [(3 * far, 3 * far + 10, 5), (2 * far, 2 * far + 10, 1), (far, far + 10, 1), (far + 50, far + 60, 1)]
    assert not _ordered("TIU", records)[0].lapped


@pytest.mark.parametrize(
    ("ids", "oldest"),
    [
        ([5, 6, 2, 3, 4], 2),  # the last leads to the first
        ([5, 6, 2, 3, 9], 0),  # it does not
        ([0, 1, 5, 6, 7], 0),  # who begins with 0 has not lapped
        ([5, 6, 1, 3, 4], 3),  # 1 is a reset, 3 has no one before it
        ([5, 6, 0, 1, 4], 4),
        ([5, 6, 7, 8, 9], 0),
        ([9, 3, 7, 8], 0),  # two places at once
        ([3, 1, 2], 0),
        ([7, 6], 0),  # two are too few
        ([7, 8, 2, 3, 4], 0),  # one place, but 4 does not lead to 7
        ([1, 2, 5, 6, 0], 2),  # a kernel cut behind its first command
        ([8, 0, 1, 6, 7], 3),
    ],
)
def test_beyond_half_a_turn_ids_alone_tell_a_ring(ids: list[int], oldest: int) -> None:
    times = [100 * n for n in range(len(ids))]
    stream, _ = _ordered("TIU", [(time, time + 50, number) for time, number in zip(times, ids, strict=True)])
    assert stream.lapped is bool(oldest)
    assert stream.id.tolist() == ids[oldest:] + ids[:oldest]


# -- ids and clocks ----------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "longest", "lifted"),
    [
        ([65534, 65535, 0, 1], None, [65534, 65535, 65536, 65537]),
        ([65001, 999], None, [65001, 65536 + 999]),
        ([65001, 1000], None, [65001, 1000]),
        ([65000, 0], None, [65000, 0]),
        ([65535, 0, 5], 65535, [65535, 0, 5]),  # no command has a larger id
        ([65535, 0, 5], 65536, [65535, 65536, 65541]),
        ([65535, 2, 65535, 1, 7, 0, 4], None, [65535, 65538, 131071, 131073, 131079, 0, 4]),
        ([65535, 2, 2], None, [65535, 65538, 2]),  # an id twice is a reset
        ([], None, []),
        ([4], None, [4]),
    ],
)
def test_ids_are_lifted_where_sixteen_bits_run_over(ids: list[int], longest: int | None, lifted: list[int]) -> None:
    assert unwrapped_ids(np.array(ids, np.int64), longest).tolist() == lifted


def test_cycles_are_kept_when_times_become_ns() -> None:
    stream, _ = _read("TIU", [(1000, 1009, 0), (2000, 2003, 1)])
    to_ns(stream, 750)
    assert stream.start.tolist() == [1333, 2667]
    assert stream.end.tolist() == [1345, 2671]
    assert stream.cycles is not None
    assert stream.cycles.tolist() == [10, 4]
    assert stream.take(slice(1, 2)).cycles.tolist() == [4]  # type: ignore[union-attr]
    other, _ = _read("TIU", [(1000, 1009, 0)])
    to_ns(other, 1000)
    assert (other.start.tolist(), other.end.tolist(), other.cycles) == ([1000], [1009], None)
