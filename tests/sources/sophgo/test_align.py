"""One time line for all cores, from the ends of the waits that open and close their streams."""

from __future__ import annotations

import numpy as np
import pytest
from profiles import CORES

from tpuprof_tui.model import Severity
from tpuprof_tui.sources.sophgo.chips.chip import chip_by_name
from tpuprof_tui.sources.sophgo.read.capture import align_cores, shift_core
from tpuprof_tui.sources.sophgo.read.core_data import CoreData, EngineData
from tpuprof_tui.sources.sophgo.read.problems import Problems
from tpuprof_tui.sources.sophgo.read.records.monitor import RecordStream

_CHIP = chip_by_name("aks")
assert _CHIP is not None
#: Where each core's engine has its first record and ends its opening wait, and the end of its closing pair.
Ends = tuple[int, int | None, int | None]


def _core(number: int, **engines: Ends) -> CoreData:
    core = CoreData(number, f"core{number}", np.zeros(0, np.uint8), Problems())
    for name, (start, opening, closing) in engines.items():
        layout = _CHIP.records[name.lower() if name == "TIU" else "dma"]
        times = np.array([start, start + 100], np.int64)
        stream = RecordStream(name, -1, layout, layout.words(b""), None, times * 0, times, times + 10)
        core.engines[name] = EngineData(stream, sync_end=opening, closing_end=closing)
    return core


def _aligned(*cores: CoreData) -> tuple[list[dict[str, int]], list[tuple[Severity, int, str]]]:
    """First start of each engine of each core, and the problems: severity, core and a telling word."""
    report = Problems()
    align_cores(list(cores), report)
    words = ("own clock", "closing pair", "aligned on GDMA", "aligned on SDMA")
    told = [
        (problem.severity, problem.group, next(word for word in words if word in f"{problem.what} {problem.done}"))
        for problem in report.problems(CORES)
    ]
    for core in cores:
        for engine in core.engines.values():
            assert np.array_equal(engine.stream.end - engine.stream.start, [10, 10])
            assert np.diff(engine.stream.start).tolist() == [100]
    return [{name: int(engine.stream.start[0]) for name, engine in core.engines.items()} for core in cores], told


def test_the_opening_waits_end_at_one_instant() -> None:
    """That of the first core stays where it is; the others move, whichever is ahead."""
    starts, told = _aligned(
        _core(0, TIU=(500, 400, None), GDMA=(510, 405, None)),
        _core(1, TIU=(9500, 9300, None), GDMA=(9000, 9305, None)),
        _core(3, TIU=(70, 10, None)),
    )
    assert starts == [{"TIU": 500, "GDMA": 510}, {"TIU": 600, "GDMA": 100}, {"TIU": 460}]
    assert told == []


def test_cores_without_engines_do_not_count() -> None:
    starts, told = _aligned(_core(0), _core(1, TIU=(500, 400, None)), _core(2, TIU=(1500, 1300, None)))
    assert starts == [{}, {"TIU": 500}, {"TIU": 600}]
    assert told == []
    assert _aligned(_core(0), _core(1)) == ([{}, {}], [])


def test_all_are_aligned_on_the_first_engine_that_every_core_has() -> None:
    starts, told = _aligned(
        _core(0, TIU=(500, None, None), GDMA=(520, 410, None)),
        _core(1, TIU=(1500, 1400, None), GDMA=(1520, 1411, None)),
    )
    assert starts == [{"TIU": 500, "GDMA": 520}, {"TIU": 499, "GDMA": 519}]
    assert told == [(Severity.NOTE, -1, "aligned on GDMA")]


def test_where_no_engine_serves_all_each_core_uses_its_own() -> None:
    """What lies between the ends of TIU and SDMA is taken from cores that have both, in the middle of what they say."""
    starts, told = _aligned(
        _core(0, TIU=(500, 400, None), SDMA=(500, 430, None)),
        _core(1, TIU=(500, 400, None), SDMA=(500, 440, None)),
        _core(2, TIU=(500, 400, None), SDMA=(500, 490, None)),
        _core(3, SDMA=(8500, 8440, None)),
        _core(4, TIU=(5500, 5350, None)),
    )
    assert starts[3:] == [{"SDMA": 500}, {"TIU": 550}]
    assert told == [(Severity.WARNING, 3, "aligned on SDMA")]


def test_what_lies_between_engines_that_nobody_has_both_of_is_not_known() -> None:
    report = Problems()
    cores = [_core(0, TIU=(500, 400, None)), _core(1, SDMA=(8500, 8440, None))]
    align_cores(cores, report)
    assert cores[1].engines["SDMA"].stream.start.tolist() == [460, 560]
    (problem,) = report.problems(CORES)
    assert "1 us" in problem.done
    cores = [
        _core(0, TIU=(500, 400, None), SDMA=(0, 430, None)),
        _core(1, SDMA=(8500, 8440, None)),
        _core(2, TIU=(1, 2, None)),
    ]
    report = Problems()
    align_cores(cores, report)
    (problem,) = report.problems(CORES)
    assert problem.done == ""
    assert (problem.group, problem.file) == (1, "core1")


@pytest.mark.parametrize("engine", ["TIU", "GDMA"])
def test_a_core_that_lost_its_openings_is_placed_by_its_closing_pair(engine: str) -> None:
    """By the middle of what others took from opening to closing; a core that lacks one of them says nothing of it."""
    starts, told = _aligned(
        _core(0, TIU=(500, 400, 2400)),
        _core(1, TIU=(500, 400, 2410)),
        _core(2, TIU=(500, 400, 9400)),
        _core(3, TIU=(500, 400, None)),
        _core(4, **{engine: (50_500, None, 52_410)}),
    )
    assert starts[4] == {engine: 500}
    assert told == [(Severity.WARNING, 4, "closing pair")]


def test_closing_pairs_alone_align_too() -> None:
    starts, told = _aligned(_core(0, TIU=(500, None, 2400)), _core(1, TIU=(9500, None, 11_500)))
    assert starts == [{"TIU": 500}, {"TIU": 400}]
    assert [core for _, core, _ in told] == [0, 1]
    # where nobody tells how long the run was, the closing stands for the opening
    starts, _ = _aligned(_core(0, TIU=(500, 400, None)), _core(1, TIU=(9500, None, 11_500)))
    assert starts == [{"TIU": 500}, {"TIU": 9500 - 11_500 + 400}]


def test_a_core_with_neither_keeps_its_clock_and_is_named() -> None:
    starts, told = _aligned(
        _core(0, TIU=(500, None, None)), _core(1, TIU=(500, 400, None)), _core(2, TIU=(700, 500, None))
    )
    assert starts == [{"TIU": 500}, {"TIU": 500}, {"TIU": 600}]
    assert told == [(Severity.WARNING, 0, "own clock")]
    assert _aligned(_core(7, TIU=(500, None, None))) == ([{"TIU": 500}], [])
    assert _aligned(_core(0, TIU=(500, None, None)), _core(1, TIU=(500, 400, None)))[1] == told


def test_a_shift_moves_every_time_of_a_core() -> None:
    core = _core(0, TIU=(500, 400, 2400), SDMA=(600, None, None))
    core.engines["SDMA"].port_sync_ends = {0: 700, 3: 900}
    shift_core(core, -250)
    shift_core(core, 0)
    assert core.engines["TIU"].stream.start.tolist() == [250, 350]
    assert core.engines["TIU"].stream.end.tolist() == [260, 360]
    assert core.engines["TIU"].closing_end == 2150
    assert core.engines["SDMA"].stream.start.tolist() == [350, 450]
    assert core.engines["SDMA"].closing_end is None
    assert core.engines["SDMA"].port_sync_ends == {0: 450, 3: 650}
