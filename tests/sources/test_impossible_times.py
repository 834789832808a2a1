"""Events that cannot belong to their recording: which ones, by differences of times alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.sources.chrome.times import DeviceEvents, Judgement, judged, shifted

I64 = npt.NDArray[np.int64]
US, MS, S = 1_000, 1_000_000, 1_000_000_000
HOUR, DAY = 3600 * S, 86_400 * S
EPOCH = 1_700_000_000 * S


def _events(*starts: int, length: int = 10 * US) -> tuple[I64, I64]:
    start = np.array(starts, np.int64)
    return start, start + length


def _far(starts: list[int], lengths: list[int] | int = 10 * US) -> list[int]:
    start = np.array(starts, np.int64)
    far: list[int] = judged(start, start + np.array(lengths, np.int64)).far.tolist()
    return far


def _launched(hosts: list[int], device: list[int], launched: Sequence[int | None], clock: list[int] | None = None,
              lengths: int = 10 * US) -> Judgement:  # fmt: skip
    """Host events, then device events with the times of their launches."""
    start = np.array([*hosts, *device], np.int64)
    rows = np.arange(len(hosts), len(start))
    times = np.array([INT_MISSING if each is None else each for each in launched], np.int64)
    clocks = np.array(clock or [1] * len(device), np.int32)
    return judged(start, start + lengths, DeviceEvents(rows, clocks, times))


STEPS = [EPOCH + step * MS for step in range(10)]


@pytest.mark.parametrize("zero", [0, EPOCH, -EPOCH, 5 * S])
@pytest.mark.parametrize("off", [-EPOCH, -DAY, -(S + 20 * MS), S + 20 * MS, DAY, EPOCH])
def test_an_event_further_than_a_second_from_a_short_recording_is_far(zero: int, off: int) -> None:
    starts = [zero + step * MS for step in range(10)]
    assert _far([*starts, zero + off]) == [10]


@pytest.mark.parametrize("off", [-900 * MS, 900 * MS, 500 * MS])
def test_within_a_second_nothing_is_far(off: int) -> None:
    assert _far([*STEPS, EPOCH + off]) == []


@pytest.mark.parametrize(("off", "far"), [(95 * S, []), (-95 * S, []), (120 * S, [100]), (-120 * S, [100])])
def test_of_a_long_recording_ten_lengths_are_near(off: int, far: list[int]) -> None:
    assert _far([*(EPOCH + step * 100 * MS for step in range(100)), EPOCH + off]) == far


def test_time_zero_is_no_sign() -> None:
    assert _far([0, *(step * MS for step in range(9))]) == []


def test_several_that_agree_with_each_other_and_several_that_do_not() -> None:
    assert _far([*STEPS, DAY, DAY + MS, DAY + 2 * MS]) == [10, 11, 12]
    assert _far([5, *STEPS, DAY, EPOCH + HOUR, EPOCH - HOUR]) == [0, 11, 12, 13]


def test_of_two_halves_neither_is_far_within_an_hour_but_their_distance_is_told() -> None:
    start, end = _events(*STEPS, *(each + HOUR for each in STEPS))
    found = judged(start, end)
    assert (found.far.tolist(), found.apart) == ([], HOUR - 9 * MS - 10 * US)
    # days apart the one that is closer together stays
    assert _far([*STEPS, *(2 * each - EPOCH + DAY for each in STEPS)]) == list(range(10, 20))
    assert _far([*(2 * each - EPOCH - DAY for each in STEPS), *STEPS]) == list(range(10))


def test_a_large_part_after_a_pause_is_no_mistake_but_told() -> None:
    later = [EPOCH + 20 * S + each for each in (0, MS, 2 * MS, 3 * MS, 4 * MS)]
    start, end = _events(*STEPS, *later)
    found = judged(start, end)
    assert (found.far.tolist(), found.apart) == ([], 20 * S - 9 * MS - 10 * US)
    # a few events, or days
    assert _far([*STEPS, *later[:2]]) == [10, 11]
    assert _far([*STEPS, *(each + DAY for each in later)]) == [10, 11, 12, 13, 14]


def test_an_end_far_behind_is_far_and_a_long_wait_is_not() -> None:
    lengths = [10 * US] * 10
    assert _far(STEPS, [*lengths[:9], DAY]) == [9]
    assert _far(STEPS[:2], [10 * US, DAY]) == [1]
    assert _far(STEPS, [DAY, *lengths[1:]]) == [0]
    assert _far(STEPS, [30 * S, *lengths[1:]]) == []
    # behind a wait the recording goes on
    assert _far([*STEPS, EPOCH + 30 * S], [30 * S, *lengths]) == []
    # most of them are as long
    assert _far(STEPS[:4], [DAY, DAY, DAY, US]) == []


def test_none_one_and_two_events() -> None:
    assert _far([]) == _far([0]) == _far([EPOCH]) == _far([EPOCH], [DAY]) == []
    assert _far([0, EPOCH]) == _far([DAY, EPOCH]) == [1]


def test_the_largest_times_do_not_overflow() -> None:
    most = (1 << 62) - 1
    assert _far([*STEPS, most, -most], [10 * US] * 10 + [most, most]) == [10, 11]
    found = _launched(STEPS, [*STEPS, most, -most], [*STEPS, EPOCH, EPOCH])
    assert found.far.tolist() == [20, 21]
    found = _launched([-most, -most + 5], [most, most - 5], [-most, -most + 5])
    assert found.far.tolist() == []
    assert shifted(np.array([most, -most]), -most).tolist() == [0, -(1 << 62)]


@pytest.mark.parametrize("off", [-EPOCH, -DAY, -3 * S, DAY, 3 * S])
def test_a_device_on_another_clock_is_moved_by_its_launches(off: int) -> None:
    device = [each + 7 * US + off for each in STEPS]
    found = _launched(STEPS, device, list(STEPS))
    assert (found.moved, found.guessed, found.far.tolist(), found.apart) == ({1: -off - 7 * US}, frozenset(), [], 0)


def test_one_device_of_two_is_on_another_clock() -> None:
    device = [*(each + 7 * US for each in STEPS), *(each + DAY for each in STEPS)]
    found = _launched(STEPS, device, [*STEPS, *STEPS], [1] * 10 + [2] * 10)
    assert (found.moved, found.far.tolist()) == ({2: -DAY}, [])


def test_on_another_clock_some_are_wrong_all_the_same() -> None:
    device = [each + DAY for each in STEPS]
    found = _launched(STEPS, [*device, 0, 5 * DAY + EPOCH], [*STEPS, *STEPS[:2]])
    assert (found.moved, found.far.tolist()) == ({1: -DAY}, [20, 21])


def test_another_clock_without_launches_is_laid_at_the_hosts_begin_and_that_is_guessed() -> None:
    found = _launched(STEPS, [each + DAY + 3 * MS for each in STEPS], [None] * 10)
    assert (found.moved, found.guessed, found.far.tolist()) == ({1: -DAY - 3 * MS}, frozenset({1}), [])


def test_a_device_that_runs_shortly_before_its_launches_is_not_moved() -> None:
    found = _launched(STEPS, [each - 100 * US for each in STEPS], list(STEPS))
    assert (found.moved, found.far.tolist()) == ({}, [])


def test_events_of_one_time_are_far_even_if_all_are() -> None:
    found = _launched(STEPS, [0] * 5, STEPS[:5])
    assert (found.moved, found.far.tolist()) == ({}, [10, 11, 12, 13, 14])
    # also where they are most of all events
    found = _launched(STEPS[:3], [0] * 9, STEPS[:3] * 3)
    assert (found.moved, found.far.tolist()) == ({}, list(range(3, 12)))


def test_half_of_the_kernels_far_from_their_launches() -> None:
    device = [*(each + 7 * US for each in STEPS[:5]), *(each + DAY for each in STEPS[5:])]
    found = _launched(STEPS, device, list(STEPS))
    assert (found.moved, found.far.tolist()) == ({}, [15, 16, 17, 18, 19])


def test_a_launch_of_another_time_is_far_itself_but_what_it_launched_is_not() -> None:
    found = _launched([*STEPS, 0], [each + 7 * US for each in STEPS], [0, *STEPS[1:]])
    assert (found.moved, found.far.tolist()) == ({}, [10])


def test_properties() -> None:
    random = np.random.default_rng(7)
    for _ in range(300):
        count, wrong = int(random.integers(1, 60)), int(random.integers(0, 12))
        wrong = min(wrong, (count - 1) // 3)  # so that no part of them is large
        span = int(10 ** random.uniform(3, 12))
        start = random.integers(0, span, count)
        limit = max(S, 10 * (span + US))
        off = random.integers(limit + 1, 50 * limit, wrong) * random.choice([-1, 1], wrong)
        start = np.concatenate([start, np.where(off > 0, span + US, 0) + off])
        end = start + random.integers(0, US, len(start))
        found = judged(start, end)
        assert set(range(count, count + wrong)) <= set(found.far.tolist())
        # whatever the zero and the order
        order = random.permutation(len(start))
        assert sorted(order[judged(start[order], end[order]).far].tolist()) == found.far.tolist()
        assert judged(start + EPOCH, end + EPOCH).far.tolist() == found.far.tolist()
        # what is left has nothing far
        rest = np.setdiff1d(np.arange(len(start)), found.far)
        assert judged(start[rest], end[rest]).far.tolist() == []
        if not found.apart:
            assert (found.low, found.high) == (start[rest].min(), end[rest].max())


@pytest.mark.parametrize("bursts", [1, 3, 40])
def test_sound_recordings_of_any_shape_are_sound(bursts: int) -> None:
    random = np.random.default_rng(bursts)
    begins = np.sort(random.integers(0, 20 * S, bursts))
    start = (begins[:, None] + np.arange(200) * 50 * US).ravel()
    assert judged(start, start + 20 * US).far.tolist() == []
