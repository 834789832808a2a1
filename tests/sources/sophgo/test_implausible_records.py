"""Records that cannot be are found among those that can, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
import raw_bytes as raw
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.sources.sophgo.read.records.implausible_records import implausible_mask, realignment_record

_WRAP = 1 << 32


def _words(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    columns = [start % _WRAP, end % _WRAP, np.arange(len(start)), np.full(len(start), 7)]
    return np.stack(columns, axis=1).astype("<u4")


def _bad(start: np.ndarray, end: np.ndarray, serial: bool = True, prompt: bool = True) -> list[int]:
    found = implausible_mask(_words(start, end), start % _WRAP, end % _WRAP, serial=serial, prompt=prompt)
    return [] if found is None else np.flatnonzero(found).tolist()


def _course(count: int = 200, base: int = 50_000) -> tuple[np.ndarray, np.ndarray]:
    start = base + 1000 * np.arange(count, dtype=np.int64)
    return start, start + 900


@raw.FIXED
@given(st.integers(1, 198), st.integers(25, 31), st.integers(0, _WRAP - 1), st.sampled_from(("start", "end")))
def test_a_flipped_high_bit_costs_its_record_alone(place: int, bit: int, base: int, which: str) -> None:
    start, end = _course(base=base)
    (start if which == "start" else end)[place] ^= 1 << bit
    # ends below 2^28 cycles may be true: the next record can have been submitted before
    assert _bad(start, end) in ([place], *([[]] if which == "end" and bit < 29 else []))


@raw.FIXED
@given(st.lists(st.integers(0, 2_000_000_000), min_size=1, max_size=3), st.integers(0, _WRAP - 1))
def test_pauses_and_wraps_are_no_damage(pauses: list[int], base: int) -> None:
    start, end = _course(base=base)
    for number, pause in enumerate(pauses):
        start[50 * (number + 1) :] += pause
        end[50 * (number + 1) :] += pause
    assert _bad(start, end) == []


@pytest.mark.parametrize("seam", [1, 2, 50, 150, 199])
def test_the_seam_of_a_lapped_ring_is_no_damage(seam: int) -> None:
    start, end = _course()
    start[100:] += 300_000_000
    end[100:] += 300_000_000
    assert _bad(np.roll(start, -seam), np.roll(end, -seam)) == []


@pytest.mark.parametrize("value", [0, _WRAP - 1])
@pytest.mark.parametrize(("first", "last"), [(0, 9), (60, 100), (150, 200)])
def test_overwritten_records_are_found_anywhere(value: int, first: int, last: int) -> None:
    start, end = _course()
    words = _words(start, end)
    words[first:last] = value
    start, end = words[:, 0].astype(np.int64), words[:, 1].astype(np.int64)
    found = implausible_mask(words, start, end, serial=True, prompt=True)
    assert found is not None
    assert np.flatnonzero(found).tolist() == list(range(first, last))


@pytest.mark.parametrize("serial", [True, False])
@pytest.mark.parametrize(("first", "last"), [(60, 100), (100, 200)])
def test_noise_is_found_whole(serial: bool, first: int, last: int) -> None:
    start, end = _course()
    noise = np.random.default_rng(3).integers(0, _WRAP, (2, last - first))
    start[first:last], end[first:last] = noise
    found = _bad(start, end, serial=serial, prompt=serial)
    assert set(range(first, last)) <= set(found)
    assert len(found) <= last - first + 2


def test_records_that_are_all_noise_are_all_bad() -> None:
    start, end = np.random.default_rng(4).integers(0, _WRAP, (2, 100))
    assert len(_bad(start, end)) == 100


def test_what_one_engine_may_do_another_may_not() -> None:
    """A wait of SDMA is written before what it waits for; TIU writes in order."""
    start, end = _course()
    end[80] += 1 << 29
    assert _bad(start, end, prompt=True) == [80]
    assert _bad(start, end, prompt=False) == []


@raw.FIXED
@given(st.integers(10, 90), st.sampled_from((4, 8, 12)), st.booleans())
def test_records_behind_words_too_many_or_too_few_are_found_again(place: int, count: int, more: bool) -> None:
    data = _words(*_course(100)).tobytes()
    at = 16 * place
    data = data[:at] + b"\xa7" * count + data[at:] if more else data[: at - count] + data[at:]
    rest = len(data) % 16
    whole = len(data) - rest
    cut = realignment_record(lambda side: np.frombuffer(data[side * rest :][:whole], "<u4").reshape(-1, 4))
    assert cut is not None
    assert abs(cut - place) <= 2


def test_bytes_at_the_end_part_nothing() -> None:
    data = _words(*_course(100)).tobytes() + b"\xa7" * 5
    assert realignment_record(lambda side: np.frombuffer(data[side * 5 :][:1600], "<u4").reshape(-1, 4)) is None
