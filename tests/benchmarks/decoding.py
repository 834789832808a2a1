#!/usr/bin/env python3
"""Opens a capture, decodes what the workbook holds of every instruction, and reads single rows; prints what each took.

    python tests/benchmarks/decoding.py CAPTURE [--json]

Values are computed slice by slice and thrown away, as the workbook does; only decoding is timed, nothing is written.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tpuprof_tui import open_profile
from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.sources.sophgo.files.fields import LaneFields

SLICE = 65_536
ROWS = 200


def workbook_columns(profile: Profile, lane: Lane) -> int:
    """Decodes all values of a lane's sheet; how many those are."""
    fields = LaneFields(profile, lane)
    count = 0
    for first in range(0, len(lane), SLICE):
        rows = slice(first, min(first + SLICE, len(lane)))
        numbers = np.arange(rows.start, rows.stop)
        for operation, places in fields.groups(rows):
            some = rows if places is None else numbers[places]
            for source in fields.of(operation).all.values():
                if source.values is not None:
                    count += len(source.values(some))
    return count


def row_detail(lane: Lane, row: int) -> None:
    """All that the detail pane shows of one instruction."""
    one = np.array([row])
    known = lane.keys()
    for key in known:
        lane.take(key, one)
    lane.description(row)
    if lane.registers is not None and (operation := lane.registers.operation_of(row)) >= 0:
        for name in lane.registers.field_names(operation):
            lane.registers.field(operation, name, one)


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Wall and CPU seconds, and the result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def peak_mebibytes() -> float:
    """Peak memory of this process."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    """Prints three lines, or the wall clock of the three as JSON."""
    opening, cpu, profile = timed(lambda: open_profile(sys.argv[1]))
    opened = peak_mebibytes()
    lines = [f"opened in {opening:.3f} s ({cpu:.3f} s CPU), {opened:.0f} MiB, {profile.event_count:,} instructions"]
    decoding, cpu, count = timed(lambda: sum(workbook_columns(profile, lane) for lane in profile.lanes))
    more = peak_mebibytes() - opened
    lines.append(f"{count:,} values of the workbook in {decoding:.3f} s ({cpu:.3f} s CPU), {more:.0f} MiB more")
    draw = np.random.default_rng(1)
    rows = [(lane, int(draw.integers(len(lane)))) for lane in profile.lanes for _ in range(ROWS // len(profile.lanes))]
    times = [timed(lambda lane=lane, row=row: row_detail(lane, row))[1] for lane, row in rows]
    first, detail = times[0], sorted(times)[len(times) // 2]
    lines.append(f"detail of a row in {1000 * detail:.2f} ms CPU, of the first in {1000 * first:.2f} ms")
    figures = {"opened": opening, "decoded": decoding, "detail": detail, "mebibytes": more}
    print(json.dumps(figures) if "--json" in sys.argv else "\n".join(lines))


if __name__ == "__main__":
    main()
