"""Figures above and next to the rows of the workbook (metrics 6 and 7), summed over parts of a lane."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import astuple

from tpuprof_tui.model import Lane, Profile, Role
from tpuprof_tui.model.lane import ALL, Rows

from .summary_table import direction_contains, filled_values, to_ns

Array = npt.NDArray[Any]


class Totals(Struct, frozen=True):
    """Sums over instructions of one engine."""

    count: int = 0  #: Number of instructions
    cycles: int = 0  #: Cycles of all instructions
    wait_cycles: int = 0  #: Cycles of system waits
    #: alg_cycle, alg_ops, uarch_ops: Sums over TIU commands.
    alg_cycle: int = 0
    alg_ops: int = 0
    uarch_ops: int = 0
    stall: int = 0  #: Stalled cycles of transfers
    #: ddr_bytes, ddr_cycles, l2_bytes, l2_cycles: Sums over transfers whose direction contains DDR, or else L2 memory.
    ddr_bytes: int = 0
    ddr_cycles: int = 0
    l2_bytes: int = 0
    l2_cycles: int = 0

    @property
    def working(self) -> int:
        """Cycles without system waits."""
        return self.cycles - self.wait_cycles

    def __add__(self, other: Totals) -> Totals:
        return Totals(*map(operator.add, astuple(self), astuple(other)))


def lane_totals(profile: Profile, lane: Lane, parts: Iterable[Rows]) -> Totals:
    """Sums over some rows of a lane."""
    return sum((_totals(_shares(profile, lane, rows)) for rows in parts), Totals())


def totals_by(profile: Profile, lane: Lane, parts: Iterable[Rows], key: str) -> dict[int, Totals]:
    """Sums over some rows of a lane by the value of a column, -1 where it has none, in order of first appearance."""
    totals: dict[int, Totals] = {}
    for rows in parts:
        shares = _shares(profile, lane, rows)
        values = np.maximum(lane.take(key, rows), -1) if key in lane else np.full(len(shares["count"]), -1)
        _, first = np.unique(values, return_index=True)
        for value in values[np.sort(first)].tolist():
            totals[value] = totals.get(value, Totals()) + _totals(shares, values == value)
    return totals


def _totals(shares: Mapping[str, Array], rows: Array | slice = ALL) -> Totals:
    return Totals(**{name: int(values[rows].sum()) for name, values in shares.items()})


def _shares(profile: Profile, lane: Lane, rows: Rows) -> dict[str, Array]:
    """What each row contributes to `Totals`, by name."""
    cycles, role = filled_values(lane, "cycles", rows), lane.take("role", rows)
    shares = {"count": np.ones(len(cycles), np.int64), "cycles": cycles, "wait_cycles": cycles * (role == Role.WAIT)}
    if lane.kind == "TIU":
        return shares | {key: filled_values(lane, key, rows) for key in ("alg_cycle", "alg_ops", "uarch_ops")}
    sizes = filled_values(lane, "bytes", rows)
    # system commands have no direction
    works = (role == Role.WORK) & ((sizes > 0) | (lane.kind != "CDMA"))
    ddr = direction_contains(profile, lane, "DDR", rows)
    l2 = ~ddr & direction_contains(profile, lane, "L2", rows)
    for memory, moved in (("ddr", works & ddr), ("l2", works & l2)):
        shares |= {f"{memory}_bytes": sizes * moved, f"{memory}_cycles": cycles * moved}
    return shares | {"stall": filled_values(lane, "stall", rows)}


# -- ratios -------------------------------------------------------------------


def ratio(part: float, whole: float) -> float:
    """``part / whole``, rounded to two decimals as a percentage, as in the reference; 0 if ``whole`` is 0."""
    # formatting rounds as the reference does
    return round(float(f"{part / whole * 100:.2f}") / 100, 6) if whole else 0.0


def bandwidth(size: int, cycles: int, mhz: float) -> float:
    """Bandwidth in GB/s with two decimals; 0 without time."""
    time = to_ns(cycles, mhz)
    return round(size / time, 2) if time else 0


#: Sums of one core, by engine; CDMA counts the commands it submitted.
CoreTotals = Mapping[str, Totals]


#: Columns of the summary of engines, in order.
SUMMARY_COLUMNS: Final = (
    "CoreId", "TiuWorkingRatio", "Parallelism", "Concurrency", "totalTime(us)",
    "totalTiuCycle", "totalAlgCycle", "totalAlgOps", "totalUArchOps", "uArchURate",
    "totalGdmaCycle", "totalDdrDataSize", "totalL2DataSize", "ddrAvgBandwidth", "l2AvgBandwidth",
    "totalSdmaCycle", "totalDdrDataSize", "ddrAvgBandwidth",
    "totalcdmaCycle", "totalDdrDataSize", "totalL2DataSize", "ddrAvgBandwidth", "l2AvgBandwidth",
)  # fmt: skip


def summary_row(profile: Profile, core: CoreTotals, total_ns: int, many: bool) -> list[int | float]:
    """Figures of one core, in the order of `SUMMARY_COLUMNS` without the first.

    All engines' times are ns here; the reference adds DMA cycles to ns, which is the same at 1000 MHz.
    """
    tiu_mhz, dma_mhz = profile.device.clock("TIU"), profile.device.clock("DMA")
    tiu, gdma, sdma, cdma = (core.get(engine, Totals()) for engine in ("TIU", "GDMA", "SDMA", "CDMA"))
    tiu_ns, gdma_ns = to_ns(tiu.working, tiu_mhz), to_ns(gdma.working, dma_mhz)
    sdma_ns = to_ns(sdma.working, dma_mhz) if many else 0
    return [
        ratio(tiu_ns, total_ns),
        ratio(tiu_ns + gdma_ns + sdma_ns, total_ns),
        ratio(tiu_ns + gdma_ns - total_ns, min(tiu_ns, gdma_ns)),
        round(total_ns / 1000, 3),
        tiu.working, tiu.alg_cycle, tiu.alg_ops, tiu.uarch_ops, ratio(tiu.alg_ops, tiu.uarch_ops),
        *_moved(gdma, dma_mhz),
        sdma.working, sdma.ddr_bytes, bandwidth(sdma.ddr_bytes, sdma.ddr_cycles, dma_mhz),
        *_moved(cdma, dma_mhz),
    ]  # fmt: skip


def overall_row(profile: Profile, cores: Sequence[CoreTotals], loose: Totals, total_ns: int,
                many: bool) -> list[int | float]:  # fmt: skip
    """Figures over all cores: cycles as us of the busiest core, sizes in MiB; ``loose``: CDMA of unknown cores."""
    tiu_mhz, dma_mhz = profile.device.clock("TIU"), profile.device.clock("DMA")

    def longest(engine: str, name: str = "working") -> int:
        return max((getattr(core[engine], name) for core in cores if engine in core), default=0)

    def engine_totals(engine: str) -> Totals:
        return sum((core[engine] for core in cores if engine in core), loose if engine == "CDMA" else Totals())

    tiu, gdma, sdma, cdma = (engine_totals(engine) for engine in ("TIU", "GDMA", "SDMA", "CDMA"))
    tiu_ns, gdma_ns = to_ns(longest("TIU"), tiu_mhz), to_ns(longest("GDMA"), dma_mhz)
    moving = to_ns(longest("GDMA") + (longest("SDMA") if many else 0), dma_mhz)

    def transfer(engine: str, some: Totals) -> list[int | float]:
        time = max(longest(engine), loose.working if engine == "CDMA" else 0)
        return [_us(time, dma_mhz), _mib(some.ddr_bytes), _mib(some.l2_bytes), *_moved(some, dma_mhz)[3:]]

    moved = transfer("SDMA", sdma)
    return [
        ratio(tiu_ns, total_ns),
        ratio(tiu_ns + moving, total_ns),
        ratio(tiu_ns + gdma_ns - total_ns, min(tiu_ns, gdma_ns)),
        round(total_ns / 1000, 3),
        _us(longest("TIU"), tiu_mhz), _us(longest("TIU", "alg_cycle"), tiu_mhz), tiu.alg_ops, tiu.uarch_ops,
        ratio(tiu.alg_ops, tiu.uarch_ops),
        *transfer("GDMA", gdma),
        moved[0], moved[1], moved[3],
        *transfer("CDMA", cdma),
    ]  # fmt: skip


def _moved(some: Totals, mhz: float) -> list[int | float]:
    return [
        some.working,
        some.ddr_bytes,
        some.l2_bytes,
        bandwidth(some.ddr_bytes, some.ddr_cycles, mhz),
        bandwidth(some.l2_bytes, some.l2_cycles, mhz),
    ]


def _us(cycles: int, mhz: float) -> float:
    return round(cycles / mhz, 3) if mhz > 0 else 0.0


def _mib(size: int) -> float:
    return round(size / (1 << 20), 2)
