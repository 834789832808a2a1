"""The opening pair of a stream, and what may come behind it."""

from __future__ import annotations

import numpy as np
import pytest
import raw_bytes as raw

from tpuprof_tui.sources.sophgo.chips.chip import chip_by_name
from tpuprof_tui.sources.sophgo.read.problems import Problems
from tpuprof_tui.sources.sophgo.read.records.monitor import RecordStream, begins_with_preamble, markers_at, read_stream

_CHIP = chip_by_name("aks")
assert _CHIP is not None


def _stream(ids: str, engine: str = "TIU") -> RecordStream:
    """A stream of records with these ids; those with an ``s`` behind them are of system commands."""
    parts = []
    for place, text in enumerate(ids.split()):
        system, number = text.endswith("s"), int(text.rstrip("s"))
        more = (system,) if engine == "TIU" else (0 if system else 64,)
        parts.append(
            (raw.tiu_record if engine == "TIU" else raw.dma_record)(100 * place, 100 * place + 50, number, *more)
        )
    payload = np.frombuffer(b"".join(parts), np.uint8)
    return read_stream([payload], [0], _CHIP, engine, Problems())


@pytest.mark.parametrize("engine", ["TIU", "GDMA"])
@pytest.mark.parametrize(
    ("ids", "opens"),
    [
        ("0s 1s 0 1 2", True),
        ("0s 1s", True),
        ("0s 1s 2s 3s 0 1", True),  # a model's first launch goes on without a reset
        ("0s 1s 2s 3s", True),
        ("0s 1s 2s 3s 4", False),  # a kernel that begins with four system commands
        ("0s 1s 2s 3 0", False),
        ("0s 1s 2s 4s 0", False),
        ("0s 1s 2", False),
        ("0s 1s 9999s 0 1", True),
        ("0s 1s 9998s 9999s 0 1", True),
        ("0s 1s 9999 0 1", False),
        ("0s 1s 7s 8 9", False),  # a kernel that lost its first records
        ("0 1s 0", False),
    ],
)
def test_what_begins_with_the_opening_pair(engine: str, ids: str, opens: bool) -> None:
    assert begins_with_preamble(_stream(ids, engine), _CHIP) == opens


@pytest.mark.parametrize(
    ("ids", "count"),
    [
        ("0s 1s 9999s 0", 1), ("0s 1s 9998s 9999s 0", 2), ("0s 1s 9999s", 1), ("0s 1s 9997s 9998s 9999s 0", 0),
        ("0s 1s 0s 1s 0", 0), ("0s 1s 2s 0", 0), ("0s 1s 9999 0", 0), ("0s 1s", 0),
    ],
)  # fmt: skip
def test_markers_leave_a_gap_and_then_ids_drop(ids: str, count: int) -> None:
    assert markers_at(_stream(ids), _CHIP, 2) == count
