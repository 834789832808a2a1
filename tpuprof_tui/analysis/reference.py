"""The reference's summary: its definitions, its names, its text cells (metrics 5).

They differ from this package's own figures: cycles are added up per engine and compared with the time from the first
start to the last end of all engines, so engines that work side by side make a parallelism above 100 %; what a capture
does not know counts as the reference's placeholder (one operation, ``DDR->DDR``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..model import Lane, Profile, Role, column, is_missing

Array = npt.NDArray[Any]

#: (header, width in the text file), in order.
COLUMNS: Final[tuple[tuple[str, int], ...]] = (
    ("CoreId", 7),
    ("Parallelism(%)", 14),
    ("totalTime(us)", 14),
    ("TiuWorkingRatio", 15),
    ("totalTiuCycle", 14),
    ("uArchURate", 10),
    ("totalGdmaCycle", 16),
    ("GdmaDdrAvgBW(GB/s)", 18),
    ("GdmaL2AvgBW(GB/s)", 18),
    ("totalSdmaCycle", 16),
    ("SdmaDdrAvgBW(GB/s)", 18),
)


@dataclass(frozen=True)
class CoreSums:
    """Sums over the events of one core: cycles, operations, bytes."""

    tiu_cycle: int = 0
    alg_ops: int = 0
    uarch_ops: int = 0
    gdma_cycle: int = 0
    gdma_ddr_bytes: int = 0
    gdma_ddr_cycle: int = 0
    gdma_l2_bytes: int = 0
    gdma_l2_cycle: int = 0
    sdma_cycle: int = 0
    sdma_ddr_bytes: int = 0
    sdma_ddr_cycle: int = 0

    def __add__(self, other: CoreSums) -> CoreSums:
        return CoreSums(*(getattr(self, item.name) + getattr(other, item.name) for item in fields(self)))


@dataclass(frozen=True)
class SummaryRow:
    """One row of the reference's summary.

    Attributes:
        core: Core number; None for the row over all cores.
        sums: What the figures are made from.
        total_ns: Length of the profile, ns.
        parallelism, tiu_ratio, uarch_rate: Percent.
        gdma_ddr_bandwidth, gdma_l2_bandwidth, sdma_ddr_bandwidth: GB/s.
        cells: Texts of the columns, in the order of ``COLUMNS``.
    """

    core: int | None
    sums: CoreSums
    total_ns: int
    parallelism: float
    tiu_ratio: float
    uarch_rate: float
    gdma_ddr_bandwidth: float
    gdma_l2_bandwidth: float
    sdma_ddr_bandwidth: float
    cells: tuple[str, ...]


def summary_table(profile: Profile) -> list[SummaryRow]:
    """The reference's summary: one row per core, then one over all; empty without cores or instructions."""
    if not profile.cores or not profile.instructions:
        return []
    sums = [core_sums(profile, core) for core in profile.cores]
    rows = [_row(profile, core, [each]) for core, each in zip(profile.cores, sums, strict=True)]
    return [*rows, _row(profile, None, sums)]


def core_sums(profile: Profile, core: int) -> CoreSums:
    """The sums of one core (metrics 5.1)."""
    found = CoreSums()
    for lane in profile.core_lanes(core):
        if lane.engine == "TIU":
            found += _tiu_sums(profile, lane)
        elif lane.engine == "GDMA":
            found += _gdma_sums(profile, lane)
        elif lane.engine == "SDMA":
            found += _sdma_sums(profile, lane)
    return found


def to_ns(cycles: int, mhz: float) -> int:
    """Whole ns of a number of cycles; 0 without a clock."""
    return int(round(cycles / mhz * 1000, 2)) if mhz > 0 else 0


def summary_text(rows: Sequence[SummaryRow]) -> str:
    """The table as the reference writes it to a file: 190 characters a line."""
    header = _line([title for title, _ in COLUMNS])
    double, single = "=" * len(header), "-" * len(header)
    lines = [double, "Summary", double, header, single, *(_line(row.cells) for row in rows[:-1])]
    lines += [single, *(_line(row.cells) for row in rows[-1:]), double]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return " | ".join(cell.rjust(width) for cell, (_, width) in zip(cells, COLUMNS, strict=True))


def _row(profile: Profile, core: int | None, parts: Sequence[CoreSums]) -> SummaryRow:
    """A row of one core, or (``core`` None) over all of them."""
    tiu_mhz, dma_mhz = profile.device.tiu_mhz, profile.device.dma_mhz
    total = profile.end_ns - profile.start_ns
    whole = sum(parts, CoreSums())
    tiu_time = sum(to_ns(part.tiu_cycle, tiu_mhz) for part in parts)
    busy_time = tiu_time + sum(to_ns(part.gdma_cycle, dma_mhz) for part in parts)
    if len(profile.cores) > 1:
        busy_time += sum(to_ns(part.sdma_cycle, dma_mhz) for part in parts)
    parallelism = _percent(busy_time, total * len(parts))
    tiu_ratio = _percent(tiu_time, total * len(parts))
    uarch_rate = _percent(whole.alg_ops, whole.uarch_ops)
    bandwidths = (
        _bandwidth(whole.gdma_ddr_bytes, whole.gdma_ddr_cycle, dma_mhz),
        _bandwidth(whole.gdma_l2_bytes, whole.gdma_l2_cycle, dma_mhz),
        _bandwidth(whole.sdma_ddr_bytes, whole.sdma_ddr_cycle, dma_mhz),
    )

    def cycles(name: str, mhz: float) -> str:
        if core is not None:
            return str(getattr(whole, name))
        longest = max(getattr(part, name) for part in parts)
        return f"{longest / mhz if mhz > 0 else 0:.3f}(us)"

    cells = (
        "Overall" if core is None else str(core),
        f"{parallelism:.2f}%",
        f"{total / 1000:.3f}",
        f"{tiu_ratio:.2f}%",
        cycles("tiu_cycle", tiu_mhz),
        f"{uarch_rate:.2f}%",
        cycles("gdma_cycle", dma_mhz),
        f"{bandwidths[0]:.2f}",
        f"{bandwidths[1]:.2f}",
        cycles("sdma_cycle", dma_mhz),
        f"{bandwidths[2]:.2f}",
    )
    return SummaryRow(core, whole, total, parallelism, tiu_ratio, uarch_rate, *bandwidths, cells)


def _percent(part: int, whole: int) -> float:
    return part / whole * 100 if whole > 0 else 0.0


def _bandwidth(size: int, cycles: int, mhz: float) -> float:
    time = to_ns(cycles, mhz)
    return size / time if time else 0.0


def _tiu_sums(profile: Profile, lane: Lane) -> CoreSums:
    work = _works(profile, lane)
    return CoreSums(
        tiu_cycle=_total(lane["cycles"], work),
        alg_ops=_total(_with_placeholder(lane, "alg_ops")),
        uarch_ops=_total(_with_placeholder(lane, "uarch_ops")),
    )


def _gdma_sums(profile: Profile, lane: Lane) -> CoreSums:
    work = _works(profile, lane)
    cycles, sizes = lane["cycles"], lane["bytes"]
    ddr, l2 = _touches(profile, lane, "DDR"), _touches(profile, lane, "L2")
    moved = work & (sizes > 0)
    return CoreSums(
        gdma_cycle=_total(cycles, work),
        gdma_ddr_bytes=_total(sizes, moved & ddr),
        gdma_ddr_cycle=_total(cycles, moved & ddr),
        gdma_l2_bytes=_total(sizes, moved & l2 & ~ddr),
        gdma_l2_cycle=_total(cycles, moved & l2 & ~ddr),
    )


def _sdma_sums(profile: Profile, lane: Lane) -> CoreSums:
    counted = lane["role"] != Role.WAIT
    ddr = counted & _touches(profile, lane, "DDR")
    return CoreSums(
        sdma_cycle=_total(lane["cycles"], counted),
        sdma_ddr_bytes=_total(lane["bytes"], ddr),
        sdma_ddr_cycle=_total(lane["cycles"], ddr),
    )


def _works(profile: Profile, lane: Lane) -> Array:
    """Whether each row counts as work: the reference takes no command that was issued by RVT for a system command."""
    work = lane["role"] == Role.WORK
    issued = [code for code, text in enumerate(profile.strings["mode"]) if text == "RVT"]
    if not issued or "mode" not in lane:
        return np.asarray(work, dtype=np.bool_)
    return np.asarray(work | np.isin(lane["mode"], issued), dtype=np.bool_)


def _total(values: Array, rows: Array | None = None) -> int:
    known = ~is_missing(values)
    return int(np.sum(values, where=known if rows is None else known & rows))


def _with_placeholder(lane: Lane, key: str) -> Array:
    placeholder: Any = column(key).placeholder
    if key not in lane:
        return np.full(len(lane), placeholder, dtype=np.int64)
    values = lane[key]
    return np.where(is_missing(values), placeholder, values).astype(np.int64)


def _touches(profile: Profile, lane: Lane, memory: str) -> Array:
    """Whether the direction of each row names a memory."""
    unknown = memory in str(column("direction").placeholder)
    if "direction" not in lane:
        return np.full(len(lane), unknown, dtype=np.bool_)
    texts = profile.strings["direction"]
    # code -1 takes the last place
    named = np.array([*(memory in text for text in texts), unknown], dtype=np.bool_)
    return np.asarray(named[lane["direction"]], dtype=np.bool_)
