"""What each kernel function took: a table over its launches, from columns, a part of a lane at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import Lane, Profile, Role
from tpuprof_tui.model.lane import Rows

from .statistics import counted, ratio

Array = npt.NDArray[Any]

ENGINES: Final = ("TIU", "GDMA", "SDMA", "CDMA")
#: Columns of the table, in order.
KERNEL_COLUMNS: Final = (
    "Kernel Function", "Launches", "Cores", "Instr Num", "Total Time(us)", "Mean Time(us)", "Min Time(us)",
    "Max Time(us)", "Time Ratio", "TIU Time(us)", "GDMA Time(us)", "SDMA Time(us)", "CDMA Time(us)", "Wait Time(us)",
    "DMA data size(B)", "Alg Ops", "uArch Ops", "uArch URate", "First Start(ns)", "Last End(ns)",
)  # fmt: skip
_NEVER: Final = np.iinfo(np.int64).max


class KernelTable:
    """Sums by kernel function, and the spans of its launches.

    A launch lasts from its first start to its last end on all engines of its core. The time of an engine is the sum of
    its work; waits are counted apart.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._kernels = len(profile.strings.get("kernel", ())) + 1  # the last stands for none
        self._launches = len(profile.scopes)
        sums = ("count", "wait", "bytes", "alg_ops", "uarch_ops", *ENGINES)
        self._sums = {name: np.zeros(self._kernels, dtype=np.int64) for name in sums}
        self._first = np.full(self._launches, _NEVER, dtype=np.int64)
        self._last = np.full(self._launches, -1, dtype=np.int64)

    def add(self, lane: Lane, parts: Iterable[Rows]) -> None:
        """Adds some instructions of a lane."""
        if "kernel" not in lane:
            return
        for rows in parts:
            self._add(lane, rows)

    def _add(self, lane: Lane, rows: Rows) -> None:
        codes = lane.take("kernel", rows).astype(np.int64)
        codes[(codes < 0) | (codes >= self._kernels)] = self._kernels - 1
        role, start, end = (lane.take(key, rows) for key in ("role", "start", "end"))
        length = end - start
        self._sum("count", codes, np.ones(len(codes), dtype=np.int64))
        self._sum("wait", codes, np.where(role == Role.WAIT, length, 0))
        self._sum(lane.engine, codes, np.where(role == Role.WORK, length, 0))
        if lane.engine == "TIU":
            for key in ("alg_ops", "uarch_ops"):
                self._sum(key, codes, counted(lane, key, rows))
        else:
            self._sum("bytes", codes, np.where(role == Role.WORK, counted(lane, "bytes", rows), 0))
        if "scope" in lane and self._launches:
            scopes = lane.take("scope", rows)
            known = np.flatnonzero((scopes >= 0) & (scopes < self._launches))
            np.minimum.at(self._first, scopes[known], start[known])
            np.maximum.at(self._last, scopes[known], end[known])

    def _sum(self, name: str, codes: Array, values: Array) -> None:
        if name in self._sums:
            np.add.at(self._sums[name], codes, values)

    def rows(self) -> list[list[str | int | float | None]]:
        """One row per kernel function that has instructions, longest first; cells as in `KERNEL_COLUMNS`."""
        ran = np.flatnonzero(self._last >= 0)
        spans = self._last[ran] - self._first[ran]
        kernels = self._profile.scopes.kernel[ran].astype(np.int64)
        kernels[(kernels < 0) | (kernels >= self._kernels)] = self._kernels - 1
        whole = int(spans.sum())
        order = np.argsort(kernels, kind="stable")
        bounds = np.searchsorted(kernels[order], np.arange(self._kernels + 1))
        rows = []
        for kernel in np.flatnonzero(self._sums["count"]).tolist():
            launches = ran[order[bounds[kernel] : bounds[kernel + 1]]]
            rows.append(self._row(kernel, launches, whole))
        return sorted(rows, key=lambda row: -float(row[4] or 0))

    def _row(self, kernel: int, launches: Array, whole: int) -> list[str | int | float | None]:
        spans = self._last[launches] - self._first[launches]
        total = int(spans.sum())
        some = {name: int(values[kernel]) for name, values in self._sums.items()}
        times: Sequence[float | None] = [None] * 4
        if len(launches):
            times = [_us(total), _us(total / len(launches)), _us(int(spans.min())), _us(int(spans.max()))]
        return [
            self._profile.strings["kernel"][kernel] if kernel < self._kernels - 1 else "-",
            len(launches),
            len(np.unique(self._profile.scopes.core[launches])),
            some["count"],
            *times,
            ratio(total, whole),
            *(_us(some[engine]) for engine in ENGINES),
            _us(some["wait"]),
            some["bytes"],
            some["alg_ops"],
            some["uarch_ops"],
            ratio(some["alg_ops"], some["uarch_ops"]),
            int(self._first[launches].min()) if len(launches) else None,
            int(self._last[launches].max()) if len(launches) else None,
        ]


def _us(nanoseconds: float) -> float:
    return round(nanoseconds / 1000, 3)
