"""Pairing: never two records on one command, order kept, and the true command found where records were lost."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest
import raw_bytes as raw
from engine_items import pair
from hypothesis import given, settings
from hypothesis import strategies as st

from tpuprof_tui.sources.sophgo.read.pairing import SYSTEM, TO_BUS, TO_LOCAL, UNKNOWN, WORK, EngineItems, clean_binding


@dataclass
class _Run:
    """A run of some launches on the engines of a core: what was issued, what was recorded, and which is which."""

    commands: list[EngineItems]
    records: list[EngineItems]
    true: list[np.ndarray]

    def bound(self, *, lapped: bool = False) -> list[np.ndarray]:
        return pair(self.records, self.commands, lapped=lapped)

    def wrong(self, *, lapped: bool = False) -> int:
        """Records bound to another command than their own, or to none."""
        return sum(int((found != true).sum()) for found, true in zip(self.bound(lapped=lapped), self.true, strict=True))


def _items(rows: list[tuple[int, int, int]]) -> EngineItems:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return EngineItems(np.array(columns[0], np.int64), np.array(columns[1], np.int64), np.array(columns[2], np.int8))


def _run(launches: list[list[list[int]]], lost: set[tuple[int, int]], *, keep_from: int = 0, pause: int = 500) -> _Run:
    """``launches[k][engine]`` lists the kinds of the engine's commands in launch k; ``lost`` (engine, command)."""
    engines = len(launches[0])
    commands: list[list[tuple[int, int, int]]] = [[] for _ in range(engines)]
    records: list[list[tuple[int, int, int]]] = [[] for _ in range(engines)]
    true: list[list[int]] = [[] for _ in range(engines)]
    place = now = 0
    for number, launch in enumerate(launches):
        now += pause
        rounds = max(map(len, launch))
        for step in range(rounds):
            for engine, kinds in enumerate(launch):
                if step < len(kinds):
                    place += 1
                    now += 7
                    if number >= keep_from and (engine, len(commands[engine])) not in lost:
                        true[engine].append(len(commands[engine]))
                        records[engine].append((step, now, kinds[step]))
                    commands[engine].append((step, place, kinds[step]))
    return _Run([_items(rows) for rows in commands], [_items(rows) for rows in records],
                [np.array(rows, np.int64) for rows in true])  # fmt: skip


def _kernels(chance: random.Random, count: int, longest: int = 30) -> list[list[list[int]]]:
    """Launches of kernels that can be told apart: each has lengths and directions of its own."""
    return [
        [[chance.choice((SYSTEM, WORK, WORK)) for _ in range(chance.randint(3, longest))],
         [chance.choice((SYSTEM, TO_LOCAL, TO_BUS)) for _ in range(chance.randint(3, longest))]]
        for _ in range(count)
    ]  # fmt: skip


def _lost(chance: random.Random, run: _Run, fraction: float) -> set[tuple[int, int]]:
    return {(engine, row) for engine, items in enumerate(run.commands) for row in range(len(items.id))
            if chance.random() < fraction}  # fmt: skip


# -- what always holds -----------------------------------------------------

_KINDS = st.lists(st.sampled_from([SYSTEM, TO_LOCAL, TO_BUS, WORK, UNKNOWN]), max_size=6)
_LAUNCHES = st.lists(st.tuples(_KINDS, _KINDS).map(list), min_size=1, max_size=12)


@raw.FIXED
@given(_LAUNCHES, st.randoms(use_true_random=False), st.sampled_from([0.0, 0.1, 0.5]), st.booleans())
def test_no_command_is_given_twice_and_order_is_kept(
    launches: list[list[list[int]]], chance: random.Random, fraction: float, lapped: bool
) -> None:
    """Whatever is lost and however alike the launches are."""
    run = _run(launches, set())
    run = _run(launches, _lost(chance, run, fraction))
    for found, records, commands in zip(run.bound(lapped=lapped), run.records, run.commands, strict=True):
        bound = found[found >= 0]
        assert len(found) == len(records.id)
        assert (np.diff(bound) > 0).all()
        assert (bound < len(commands.id)).all()
        assert (commands.id[bound] == records.id[found >= 0]).all()
        both = (commands.kind[bound] != UNKNOWN) & (records.kind[found >= 0] != UNKNOWN)
        against = (commands.kind[bound] == SYSTEM) != (records.kind[found >= 0] == SYSTEM)
        assert not (both & against).any()


@settings(raw.FIXED, max_examples=50)
@given(st.lists(st.integers(0, 5), max_size=30), st.lists(st.integers(0, 5), max_size=30), st.lists(st.integers(0, 5)))
def test_records_of_a_run_that_never_was_break_nothing(ids: list[int], others: list[int], kinds: list[int]) -> None:
    """Records and commands that have nothing to do with one another."""

    def items(values: list[int], factor: int) -> EngineItems:
        count = len(values)
        kind = np.array([kinds[place % len(kinds)] % 5 if kinds else 0 for place in range(count)], np.int8)
        return EngineItems(np.array(values, np.int64), np.arange(count, dtype=np.int64) * factor, kind)

    found = pair([items(ids, 10), items(others, 13)], [items(others, 1), items(ids, 1)], lapped=False)
    for binding, commands in zip(found, (others, ids), strict=True):
        bound = binding[binding >= 0]
        assert (np.diff(bound) > 0).all()
        assert (bound < len(commands)).all()


@settings(raw.FIXED, max_examples=50)
@given(_LAUNCHES, st.randoms(use_true_random=False))
def test_times_that_step_back_break_nothing(launches: list[list[list[int]]], chance: random.Random) -> None:
    run = _run(launches, set())
    run = _run(launches, _lost(chance, run, 0.3))
    for items in run.records:
        items.key[:] = [chance.choice((key, 0, 1 << 40)) for key in items.key.tolist()]
    for found in run.bound():
        assert (np.diff(found[found >= 0]) > 0).all()


@raw.FIXED
@given(_LAUNCHES)
def test_an_undamaged_run_is_bound_one_to_one(launches: list[list[list[int]]]) -> None:
    run = _run(launches, set())
    assert run.wrong() == 0


@raw.FIXED
@given(st.lists(st.tuples(st.integers(1, 30), st.sets(st.integers(1, 28))), min_size=1, max_size=9))
def test_holes_within_a_launch_need_no_search(sizes: list[tuple[int, set[int]]]) -> None:
    """Ends that survive give the span; what lies between is found by id."""
    commands = np.concatenate([np.arange(size) for size, _ in sizes])
    rows, base = [], 0
    for size, lost in sizes:
        rows += [base + row for row in range(size) if row in (0, size - 1) or row not in lost]
        base += size
    found = clean_binding(commands[rows], commands)
    assert found is not None
    assert found.tolist() == rows


@pytest.mark.parametrize("seed", range(8))
def test_a_launch_that_kept_nothing_leaves_its_commands_free(seed: int) -> None:
    """Also near the beginning, where more launches lie behind the loss than before it."""
    chance = random.Random(seed)
    kernels = _kernels(chance, 12)
    whole = _run(kernels, set())
    gone = {(engine, row) for engine in (0, 1) for row in range(len(whole.commands[engine].id))
            if sum(len(k[engine]) for k in kernels[:5]) <= row < sum(len(k[engine]) for k in kernels[:6])}  # fmt: skip
    run = _run(kernels, gone)
    assert run.wrong() == 0


# -- the true command ------------------------------------------------------


@pytest.mark.parametrize("fraction", [0.01, 0.02, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("seed", range(6))
def test_the_true_command_is_found_where_launches_can_be_told_apart(seed: int, fraction: float) -> None:
    chance = random.Random(seed)
    kernels = _kernels(chance, 120)
    run = _run(kernels, _lost(chance, _run(kernels, set()), fraction))
    assert run.wrong() == 0


@pytest.mark.parametrize("seed", range(6))
def test_with_a_third_of_the_records_lost_few_are_mistaken(seed: int) -> None:
    """What is left of a launch may then fit its neighbour as well."""
    chance = random.Random(seed)
    kernels = _kernels(chance, 120)
    run = _run(kernels, _lost(chance, _run(kernels, set()), 0.33))
    assert run.wrong() <= 0.003 * sum(len(true) for true in run.true)


def _bursts(seed: int, *, alike: bool) -> _Run:
    """Whole launches vanish, as when a buffer was drained too late: of all engines alike, or of each its own."""
    chance = random.Random(100 + seed)
    kernels = _kernels(chance, 150)
    first = [np.cumsum([0, *(len(kernel[engine]) for kernel in kernels)]) for engine in (0, 1)]
    lost = _lost(chance, _run(kernels, set()), 0.02)
    for begin in (2, 20, 70, 110):
        lengths = [chance.randint(1, 9)] * 2 if alike else [chance.randint(1, 9), chance.randint(1, 9)]
        for engine, length in enumerate(lengths):
            lost |= {(engine, row) for row in range(first[engine][begin], first[engine][begin + length])}
    return _run(kernels, lost)


@pytest.mark.parametrize("seed", range(8))
def test_bursts_of_lost_launches_are_skipped(seed: int) -> None:
    assert _bursts(seed, alike=True).wrong() == 0


@pytest.mark.parametrize("seed", range(8))
def test_bursts_of_one_engine_alone_cost_a_record_at_most(seed: int) -> None:
    """The first record behind a burst may pass for the same command of the last launch before it."""
    assert _bursts(seed, alike=False).wrong() <= 4


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("keep_from", [1, 17, 60])
def test_of_a_lapped_ring_the_last_launches_are_left(seed: int, keep_from: int) -> None:
    chance = random.Random(200 + seed)
    kernels = _kernels(chance, 80)
    run = _run(kernels, _lost(chance, _run(kernels, set()), 0.02), keep_from=keep_from)
    assert run.wrong(lapped=True) == 0


@pytest.mark.parametrize("seed", range(4))
def test_repeated_layers_keep_their_places(seed: int) -> None:
    """As in real work: the same few kernels over and over; order in time tells them apart."""
    chance = random.Random(300 + seed)
    layer = _kernels(chance, 7)
    kernels = layer * 40
    run = _run(kernels, _lost(chance, _run(kernels, set()), 0.02))
    assert run.wrong() == 0


def test_pairing_is_near_linear_in_launches() -> None:
    """Counted, not timed: eight times the launches cost less than twelve times the numpy work."""
    work = []
    for count in (500, 4000):
        chance = random.Random(9)
        kernels = _kernels(chance, count, longest=5)
        run = _run(kernels, _lost(chance, _run(kernels, set()), 0.02))
        work.append(_lines_run(run))
        assert run.wrong() <= 0.01 * sum(len(true) for true in run.true)
    assert work[1] < 12 * work[0]


def _lines_run(run: _Run) -> int:
    """Calls made while pairing, as a measure of work that does not depend on the machine."""
    import sys

    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        run.bound()
    finally:
        sys.setprofile(None)
    return calls
