"""CDMA ports: launches told apart and put in order by id, whatever was lost or written late."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
import raw_bytes as raw
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.sources.sophgo.chips.chip import chip_by_name
from tpuprof_tui.sources.sophgo.read.ports import read_port

_CHIP = chip_by_name("aks")
assert _CHIP is not None

Rows = list[tuple[int, int, int]]  # start, end, id


def _launches(sizes: list[int], base: int, pause: int) -> list[Rows]:
    """Launches of full-duplex commands: each begins before the one ahead of it has ended."""
    result: list[Rows] = []
    now = base
    for size in sizes:
        now += pause
        result.append([(now + 300 * n, now + 300 * n + 500, n + 1) for n in range(size)])
        now += 300 * size + 500
    return result


def _flat(launches: list[Rows]) -> Rows:
    return [row for launch in launches for row in launch]


def _read(parent: Path, head: Rows, launches: list[Rows], dump: Rows) -> tuple[Rows, list[tuple[int, int]], int]:
    """Records in the order of the port, its launches, and the length of the head."""
    records = [raw.cdma_record(*row) for row in head] + [raw.cdma_record(*row, 64) for row in dump]
    path = parent / "cdma0_3.profile"
    path.write_bytes(raw.block(raw.MONITOR_CDMA, b"".join(records)))
    port = read_port(3, path, _CHIP)
    assert port is not None
    stream = port.stream
    turns = (int(stream.start[0]) - (head + _flat(launches))[0][0]) if head else 0
    rows = list(zip((stream.start - turns).tolist(), (stream.end - turns).tolist(), stream.id.tolist(), strict=True))
    return rows, port.launches, port.head


_HEAD = [(1000, 1010, 41), (1020, 1100, 42)]


@raw.FIXED
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=8),
    st.sampled_from([0, (1 << 32) - 9_000]),
    st.randoms(use_true_random=False),
    st.sampled_from([0.0, 0.1, 0.4]),
)
def test_launches_of_any_size_are_told_apart_and_ordered(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], base: int, chance: random.Random, fraction: float
) -> None:
    """Neighbours written in the other order, records lost (id 1 as well), and the counter wrapping anywhere."""
    head = [(base + start, base + end, number) for start, end, number in _HEAD]
    whole = _launches(sizes, base + 5_000, 60_000)
    kept = [rows for launch in whole if (rows := [row for row in launch if chance.random() >= fraction])]
    dump: Rows = []
    merged = False
    for rows in map(list, kept):
        for place in range(0, len(rows) - 1, 2):
            if chance.random() < 0.5:
                rows[place], rows[place + 1] = rows[place + 1], rows[place]
        # where the id drops by more than ten a launch begins, so ten lost between two that changed places part them
        merged |= any(before[2] - after[2] > 10 for before, after in pairwise(rows))
        # a launch that goes on where the one before it ended looks like part of it
        merged |= bool(dump) and 1 != rows[0][2] >= dump[-1][2]
        dump += rows
    found, launches, length = _read(tmp_path_factory.mktemp("port"), head, kept, dump)
    assert length == 2
    assert sorted(found) == sorted(head + dump)
    if not merged:
        assert found == head + _flat(kept)
        assert [end - begin for begin, end in launches] == [len(rows) for rows in kept]


def test_no_record_is_dropped_where_ids_repeat(tmp_path: Path) -> None:
    """The reference keeps the longest of equal ids."""
    dump = [(10_000, 10_500, 1), (10_300, 10_800, 2), (10_600, 12_000, 2), (10_900, 11_400, 3)]
    found, _, _ = _read(tmp_path, _HEAD, [dump], dump)
    assert sorted(found) == sorted(_HEAD + dump)


@pytest.mark.parametrize(
    ("head", "length"),
    [
        ([(1000, 1010, 1), (1020, 1100, 2)], 2),  # a stream that begins with the pair as ids 1 and 2
        ([(1020, 1100, 42)], 1),  # the wait was lost
        ([], 0),
    ],
)
def test_the_opening_pair_of_a_port_is_recognised(tmp_path: Path, head: Rows, length: int) -> None:
    launches = _launches([20, 9], 5_000, 60_000)
    found, _, known = _read(tmp_path, head, launches, _flat(launches))
    assert known == length
    assert [row[2] for row in found] == [row[2] for row in head] + [*range(1, 21), *range(1, 10)]


def test_a_launch_of_system_commands_is_no_opening_pair(tmp_path: Path) -> None:
    rows = [(10_000, 10_100, 1), (10_200, 10_300, 2), (10_400, 10_500, 3)]
    path = tmp_path / "cdma0_3.profile"
    path.write_bytes(raw.block(raw.MONITOR_CDMA, b"".join(raw.cdma_record(*row) for row in rows)))
    port = read_port(3, path, _CHIP)
    assert port is not None
    assert port.head == 0


def test_a_port_without_records_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "cdma0_3.profile"
    path.write_bytes(raw.block(1, b"summary"))
    port = read_port(3, path, _CHIP)
    assert port is None or not len(port.stream)
