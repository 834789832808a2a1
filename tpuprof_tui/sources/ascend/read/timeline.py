"""`Timeline`: the slices of one worker in columns, the flows that link them, and counter samples."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.lane import Rows
from tpuprof_tui.sources.chrome.columns import I32, I64
from tpuprof_tui.sources.chrome.nesting import Slices, order_of_nesting

Mask = npt.NDArray[np.bool_]


class SliceClass(IntEnum):
    """Class of a slice."""

    #: A framework operator.
    OPERATOR = 0
    #: ``ProfilerStep#N``.
    STEP = 1
    #: A Python frame, an entry of the task queue, or a user mark.
    HOST = 2
    #: A CANN call.
    CALL = 3
    #: A compute task.
    KERNEL = 4
    COPY = 5
    WAIT = 6
    #: Any other device task.
    SYNC = 7
    #: A communication operator (COLLECTIVE), and one of its tasks (COLLECTIVE_TASK).
    COLLECTIVE = 8
    COLLECTIVE_TASK = 9
    #: A slice of the exporter's overlap analysis.
    DERIVED = 10
    #: A task that stands for its subtasks, which are slices too.
    PARENT = 11


class Layer(IntEnum):
    """Layer of a track, in display order."""

    PYTHON = 0
    CANN = 1
    STREAM = 2
    COMMUNICATION = 3
    PLANE = 4
    OVERLAP = 5
    OTHER = 6


#: Layer by name of the process; all others are ``OTHER``.
LAYERS: Final = {
    "Python": Layer.PYTHON, "CANN": Layer.CANN, "Ascend Hardware": Layer.STREAM, "Task Scheduler": Layer.STREAM,
    "AI CPU": Layer.STREAM, "HCCL": Layer.COMMUNICATION, "Communication": Layer.COMMUNICATION,
    "Overlap Analysis": Layer.OVERLAP, "MsprofTx": Layer.PYTHON, "MsTx": Layer.PYTHON, "AscendCL": Layer.CANN,
    "GE": Layer.CANN, "Runtime": Layer.CANN,
}  # fmt: skip
#: Values of Accelerator Core that mark communication operators in kernel tables.
COMMUNICATION_CORES: Final = ("HCCL", "COMMUNICATION")
#: Cores of AI Core kernels, for the "With AICore" columns: as operator_details.csv counts, and of databases, which have
#: no such table.
AI_CORES: Final = lazy_pattern("(AI_CORE|AI_VECTOR_CORE)$")
AI_CORES_OF_DATABASE: Final = lazy_pattern("AI_CORE|AI_VECTOR_CORE|MIX_")
_KERNELS: Final = lazy_pattern(
    "AI_?CORE|AI_VECTOR_CORE|AIV(EC)?$|MIX_AI[CV]|AI_?CPU|DSA|KERNEL_(AI|MIX)", re.IGNORECASE
)
_COPIES: Final = lazy_pattern("(PCIE_|S)DMA|MEM_?CPY", re.IGNORECASE)
_WAITS: Final = lazy_pattern("(EVENT|NOTIFY)[ _]?WAIT", re.IGNORECASE)


def class_of_task(kind: str) -> SliceClass:
    """Class of a device task, by its type."""
    if _KERNELS.match(kind):
        return SliceClass.KERNEL
    if _COPIES.search(kind):
        return SliceClass.COPY
    return SliceClass.WAIT if _WAITS.search(kind) else SliceClass.SYNC


class Track(Struct, frozen=True):
    """One track of the timeline."""

    layer: Layer  #: Its layer
    #: process, label: Names of process and thread.
    process: str
    label: str
    number: int = -1  #: Thread number; -1 if it has none
    device: int = -1  #: Device number; -1 if unknown


class Flows(Struct, frozen=True, eq=False):
    """Flows in columns of one length, in file order: from a point of one track to a point of another."""

    categories: tuple[str, ...]  #: The distinct categories
    category: npt.NDArray[np.int8]  #: int8 codes into them
    #: from_time, to_time: int64 ns.
    from_time: I64
    to_time: I64
    #: from_row, to_row: int64 rows of the slices at either end; -1 if there is none.
    from_row: I64
    to_row: I64

    def of(self, category: str) -> I64:
        """Indices of the flows of a category."""
        if category not in self.categories:
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.category == self.categories.index(category))


NO_FLOWS: Final = Flows((), np.zeros(0, np.int8), *(np.zeros(0, np.int64) for _ in range(4)))


class Timeline(Slices, frozen=True, eq=False, dict=True, kw_only=True):
    """Slices of one worker; times are ns since 1970."""

    per_slice: ClassVar = ("start", "end", "name", "kind", "slice_class", "file_order", "connection", "size", "finer",
                           "shapes", "stacks")  # fmt: skip

    file: str  #: Name of the file that they come from
    tracks: tuple[Track, ...]  #: The tracks (threads), in display order
    kind: I32  #: int32 codes into ``kinds`` (task type, category or call level)
    slice_class: npt.NDArray[np.int8]  #: int8, see ``SliceClass``
    connection: I64  #: int64 id that joins calls and tasks; ``INT_MISSING`` if there is none
    size: I64  #: int64 bytes of communication tasks; ``INT_MISSING`` for others
    #: float32, fractions of ns by which each duration exceeds ``end - start``: keeps sums of many exact.
    finer: npt.NDArray[np.float32]
    #: shapes, stacks: int32 codes into ``texts`` of operators' input shapes and call stacks; -1 if missing.
    shapes: I32
    stacks: I32
    kinds: tuple[str, ...]
    flows: Flows = NO_FLOWS  #: Links between slices
    #: int64, ascending: ``file_order`` of slices of unknown duration; they end where they start.
    unmeasured: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    derived: bool = False  #: Whether slices include the exporter's Overlap Analysis
    aside: Timeline | None = None  #: Slices that are set aside, with their times as in the file; None: none
    moved: dict[int, int] = field(default_factory=dict)  #: By device: ns that were added to its times

    @cached_property
    def track(self) -> I64:
        """Index of each slice's track."""
        return np.repeat(np.arange(len(self.tracks)), np.diff(self.first))

    def lengths(self, rows: Rows) -> I64:
        """Durations of some slices, ns; missing where they are not known."""
        found: I64 = self.end[rows] - self.start[rows]
        if len(self.unmeasured):
            found[np.isin(self.file_order[rows], self.unmeasured)] = INT_MISSING
        return found

    def rows(self, *classes: SliceClass) -> I64:
        """Rows of the slices of some classes."""
        return np.flatnonzero(np.isin(self.slice_class, classes))

    @cached_property
    def _collectives(self) -> I64:
        found = self.connection[self.rows(SliceClass.COLLECTIVE)]
        ids: I64 = found[found != INT_MISSING]
        return ids

    def in_collectives(self, rows: Rows) -> Mask:
        """Mask of the slices that are a communication operator or one of its tasks."""
        return np.isin(self.connection[rows], self._collectives)

    def rows_of(self, layer: Layer) -> I64:
        """Rows of the slices of a layer."""
        found = np.array([track.layer == layer for track in self.tracks], np.bool_)
        return np.flatnonzero(found[self.track]) if len(found) else np.zeros(0, np.int64)

    def name_of(self, row: int) -> str | None:
        """Name of a slice; None for row -1."""
        return self.names[self.name[row]] if row >= 0 else None

    def of_device(self, device: int) -> Timeline:
        """The part of one device, with the host tracks that serve it; threads that only serve others are dropped."""
        devices = np.array([track.device for track in self.tracks], np.int64)
        kept = (devices < 0) | (devices == device)
        flows = self.flows
        linked = (flows.from_row >= 0) & (flows.to_row >= 0)
        callers, called = self.track[flows.from_row[linked]], devices[self.track[flows.to_row[linked]]]
        serving = np.bincount(callers[called == device], minlength=len(devices)) > 0
        others = np.bincount(callers[(called >= 0) & (called != device)], minlength=len(devices)) > 0
        kept &= (devices == device) | serving | ~others
        if kept.all():
            return self
        return replace(self.part(kept[self.track]), aside=self.aside and self.aside.of_device(device),
                       counters=tuple(each for each in self.counters if each.device in (-1, device)))  # fmt: skip

    def part(self, kept: Mask) -> Timeline:
        """The slices of a mask, with the tracks and flows that they leave."""
        flows = self.flows
        count = np.bincount(self.track[kept], minlength=len(self.tracks))
        new_row = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
        from_row, to_row = new_row[flows.from_row], new_row[flows.to_row]
        links = ((flows.from_row < 0) | (from_row >= 0)) & ((flows.to_row < 0) | (to_row >= 0))
        return replace(
            self.selected(np.flatnonzero(kept)), first=np.append(0, np.cumsum(count[count > 0])),
            tracks=tuple(track for track, slices in zip(self.tracks, count.tolist(), strict=True) if slices),
            away=self.away[kept] if len(self.away) else self.away,
            flows=Flows(flows.categories, flows.category[links], flows.from_time[links], flows.to_time[links],
                        from_row[links], to_row[links]),
        )  # fmt: skip

    @cached_property
    def steps(self) -> I64:
        """Rows of the steps, by start."""
        rows = self.rows(SliceClass.STEP)
        return rows[np.argsort(self.start[rows], kind="stable")]

    @cached_property
    def operators(self) -> I64:
        """Rows of the framework operators, in nesting order."""
        return self.rows(SliceClass.OPERATOR)

    @cached_property
    def work(self) -> I64:
        """Rows of kernels and communication operators, by start."""
        rows = self.rows(SliceClass.KERNEL, SliceClass.COLLECTIVE)
        rows = rows[self._counts[rows]]
        return rows[np.lexsort((self.file_order[rows], self.start[rows]))]

    @cached_property
    def _counts(self) -> Mask:
        """Mask of the slices on tracks of streams and communication groups, where kernels and operators count."""
        layers = np.array([track.layer in (Layer.STREAM, Layer.COMMUNICATION) for track in self.tracks], np.bool_)
        return layers[self.track] if len(layers) else np.zeros(0, np.bool_)


def timeline_of(
    file: str, tracks: Sequence[Track], order_of_track: Sequence[Any], track: I64, columns: dict[str, Any], **more: Any
) -> tuple[Timeline, I64]:  # fmt: skip
    """Sorts slices into a timeline without flows.

    Args:
        file: Name of the file.
        tracks: The tracks, in any order.
        order_of_track: Sort key of each track within its layer.
        track: Track index of each slice; slices are in file order.
        columns: The other columns of the slices, by name.
        more: Further fields of the timeline.

    Returns:
        The timeline, and the new index of each track.
    """
    ranks = sorted(range(len(tracks)), key=lambda number: (tracks[number].layer, order_of_track[number]))
    new_index = np.empty(len(tracks), np.int64)
    new_index[ranks] = np.arange(len(tracks))
    own = new_index[track] if len(track) else np.zeros(0, np.int64)
    order = order_of_nesting(own, columns["start"], columns["end"])
    # column by column, so that each unsorted one is freed
    for key in columns:
        columns[key] = columns[key][order]
    first = np.searchsorted(own[order], np.arange(len(tracks) + 1)).astype(np.int64)
    found = Timeline(file=file, tracks=tuple(tracks[number] for number in ranks), first=first, **columns, **more)
    return found, new_index
