"""Slices of a trace in columns, and its counters: what sources have in common once a file is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.model import Problem

from .columns import F64, I32, I64


class CounterSeries(Struct, frozen=True, eq=False):
    """A counter: samples by time.

    Attributes:
        process, name: Its process and name.
        unit: Unit of the values; empty if there is none.
        times: int64 ns, ascending.
        values: float64.
        device: Device number; -1 if unknown.
    """

    process: str
    name: str
    unit: str
    times: I64
    values: F64
    device: int = -1


class Slices(Struct, frozen=True, eq=False, dict=True, kw_only=True):
    """Slices in columns of one length: by thread, then start, outer before inner ones.

    Attributes:
        first: int64, one longer than the threads: row of the first slice of each, and the end.
        start, end: int64 ns.
        name: int32 codes into ``names``.
        file_order: Number among the slices of the file.
        texts: Texts of codes in further columns; code -1: absent.
        counters: Counters.
        problems: Defects of the file.
        away: Only of slices that are set aside: int64 ns, from the recording back to their start, below 0, or on to
            their start or end, above; 0: they are far from their launch only.
    """

    #: Columns with a value for each slice.
    per_slice: ClassVar[tuple[str, ...]] = ()

    first: I64
    start: I64
    end: I64
    name: I32
    file_order: npt.NDArray[np.integer]
    names: tuple[str, ...]
    texts: tuple[str, ...]
    counters: tuple[CounterSeries, ...] = ()
    problems: tuple[Problem, ...] = ()
    away: I64 = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.start)

    def thread_of(self, rows: I64) -> I64:
        """Index of the thread of the slices in some rows."""
        return np.asarray(np.searchsorted(self.first, rows, side="right") - 1)

    def by_thread(self) -> Iterator[tuple[int, int, int]]:
        """Index of each thread that has slices, row of its first one, and of the next thread's."""
        edges = self.first.tolist()
        return ((thread, low, high) for thread, (low, high) in enumerate(pairwise(edges)) if low < high)

    def named(self, test: Callable[[str], object]) -> npt.NDArray[np.bool_]:
        """Mask of the slices whose name passes a test, which is called once for each distinct name."""
        passing = np.array([bool(test(name)) for name in self.names], np.bool_)
        return passing[self.name] if len(passing) else np.zeros(0, np.bool_)

    def selected(self: Some, rows: I64) -> Some:
        """The slices in some rows, which are by thread; all else stays."""
        count = np.bincount(self.thread_of(rows), minlength=len(self.first) - 1)
        columns = {key: getattr(self, key)[rows] for key in self.per_slice}
        return replace(self, first=np.append(0, np.cumsum(count)), **columns)


Some = TypeVar("Some", bound=Slices)
