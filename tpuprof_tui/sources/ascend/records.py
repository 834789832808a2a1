"""What readers hand to views beside events: names of tables and of their columns, and what is known of each rank.

Tables of a rank are of its group, those of msprof-analyze of none. Times are ns; of text columns missing texts are -1.

- ``kernels``: kernel_details, op_summary or their like, in file order. ``timed``: whether start and duration are known.
- ``statistic``, ``operators``, ``apis``, ``memory``, ``allocations``, ``modules``: the exporter's tables.
- ``recorded_steps``: step_trace_time.csv. ``steps``: the steps, see `read.steps`.
- ``launches``: flows from a call to the device; ``start`` is when the device began.
- ``operations``, ``transfers``, ``packets``, ``pairs``: communication. ``cluster_steps``: steps of all ranks.
- names of files: tables that are shown as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import is_missing
from tpuprof_tui.model.table import Table

#: Step columns in display order: name in csv files, name in StepTraceTime, key.
STEP_COLUMNS: Final = (
    ("Computing", "computing", "computing_us"),
    ("Communication", "communication", "communication_us"),
    ("Overlapped", "overlapped", "overlapped_us"),
    ("Communication(Not Overlapped)", "communication_not_overlapped", "communication_not_overlapped_us"),
    ("Free", "free", "free_us"),
    ("Stage", "stage", "stage_us"),
    ("Bubble", "bubble", "bubble_us"),
    ("Communication(Not Overlapped and Exclude Receive)", "communication_not_overlapped_and_exclude_receive",
     "communication_not_overlapped_exclude_receive_us"),
    ("Preparing", "preparing", "preparing_us"),
)  # fmt: skip
STEP_KEYS: Final = tuple(key for *_, key in STEP_COLUMNS)
#: Further text columns of ``kernels``, in display order: titles in files, the first of which is shown.
KERNEL_TEXTS: Final[dict[str, tuple[str, ...]]] = {
    "model": ("Model ID",), "model_name": ("Model Name",), "task": ("Task ID",), "stream": ("Stream ID",),
    "infer": ("Infer ID",), "device": ("Device_id",), "op_state": ("OP State",),
    "mix_blocks": ("Mix Block Dim", "Mix Block Num"), "hf32": ("HF32 Eligible",), "input_shapes": ("Input Shapes",),
    "input_types": ("Input Data Types",), "input_formats": ("Input Formats",), "output_shapes": ("Output Shapes",),
    "output_types": ("Output Data Types",), "output_formats": ("Output Formats",), "context": ("Context ID",),
}  # fmt: skip
#: Those of them that hold numbers.
KERNEL_NUMBERS: Final = ("model", "task", "stream", "infer", "device", "mix_blocks", "context")
#: Prefix of the names of steps that the framework marks.
STEP: Final = "ProfilerStep#"
#: Names of the four tracks of the exporter's overlap analysis, and of the kinds of ``coverage``.
COMPUTING, COMMUNICATION, EXPOSED, FREE = (
    "Computing", "Communication", "Communication(Not Overlapped)", "Free",
)  # fmt: skip
COVERAGE: Final = (COMPUTING, COMMUNICATION, EXPOSED, FREE)
#: Process of the timeline in which pauses of Python's garbage collector are recorded.
PYTHON_GC: Final = "Python GC"
#: Flow categories that figures use: from the operator, and from the call that launched the task.
ASYNC_NPU, HOST_TO_DEVICE = "async_npu", "HostToDevice"
#: Prefix of the keys of undocumented columns; the file's own column name follows.
OTHER: Final = "other "
#: Group of these columns in schemas, and of metrics.
OTHERS, METRICS = "others", "metrics"
#: Operators of communication whose name has this are sums of others.
TOTAL: Final = "Total Op Info"
#: Clocks that differ by less are of one host; those of two differ by seconds.
_ONE_CLOCK_NS: Final = 100_000


class RecordedRank(Struct, frozen=True, eq=False):
    """What is known of a rank beside its events and tables."""

    key: str  #: Unique name among the ranks
    rank: int | None
    zero: int  #: Reading of its own clock at the zero of the profile's time line, ns
    #: group, unit: Ids of its group and of its NPU's group.
    group: int
    unit: int
    #: timeline, work_file: Names of the files of its slices, and that tells the use of the device; empty: none.
    timeline: str
    work_file: str
    #: level, metrics: Profiler level, and setting of the metrics of AI Cores; empty if unknown.
    level: str
    metrics: str
    #: Offset of the monotonic clock of its host from its cycle counter, ns; None if unknown. Both start with the host,
    #: so ranks on one host have the same offset.
    clock: float | None
    advice: tuple[tuple[str, Any], ...]  #: The vendor's own advice (``prof_rule_*.json``), with the name of each file
    #: Name (``tp``) and ranks of the groups that communicate, by what follows ``@`` in names of operators.
    parallel: Mapping[str, tuple[str, str]]


class Step(Struct, frozen=True):
    """One step."""

    label: str | None  #: Its name; None if no step was marked and the recorded table has no name
    number: int  #: Its number; -1 if it has none
    #: low, high: Device work that starts in [low, high) belongs to it, ns; None: no bound.
    low: int | None = None
    high: int | None = None
    #: start, end: Its extent on the host, ns; None if it was not marked.
    start: int | None = None
    end: int | None = None
    known: bool = True  #: Whether it is known which work belongs to it
    times: tuple[float | None, ...] = ()  #: Its times in the order of ``STEP_COLUMNS``, ns; None if unknown

    def contains(self, start: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Mask of the device work that belongs to the step, by start; all False if that is unknown."""
        found = np.full(len(start), self.known)
        if self.low is not None:
            found &= start >= self.low
        return found if self.high is None else found & (start < self.high)


def is_total(op: str) -> bool:
    """Whether a communication operator is a sum of others, by name."""
    return op.partition("@")[0] == TOTAL


def one_clock(clocks: Sequence[float | None]) -> bool:
    """Whether ranks have one clock, so that their starts can be compared (``RecordedRank.clock``)."""
    known = [clock for clock in clocks if clock is not None]
    return 0 < len(known) == len(clocks) and max(known) - min(known) < _ONE_CLOCK_NS


def late_rank(ranks: Sequence[tuple[Any, float | None, Sequence[tuple[Any, ...]]]]) -> int:
    """Index of the late rank, for which the others waited.

    It is the one that started operators last in total if the ranks share a clock, else the one that waited least.

    Args:
        ranks: Rank (None if unknown), clock, and `waits_of` of each rank that has communication operators.

    Returns:
        -1 if there are no two ranks with operators, or no other spent more than half of its wait on synchronization.
    """
    numbers = {rank for rank, _, _ in ranks}
    if numbers != {None} and len(numbers) < 2:
        return -1
    waits: dict[int, tuple[float, float]] = {}
    starts: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    for index, (_, _, operations) in enumerate(ranks):
        if operations:
            waits[index] = (sum(row[4] or 0 for row in operations), sum(row[5] or 0 for row in operations))
        for *key, start, _, _ in operations:
            if start is not None:
                starts.setdefault(tuple(key), []).append((start, index))
    delay = dict.fromkeys(waits, 0)
    if one_clock([clock for _, clock, _ in ranks]):
        for of_op in starts.values():
            first, _ = min(of_op)
            for start, index in of_op:
                delay[index] += start - first
    last = max(waits, key=lambda index: (delay[index], -waits[index][0]), default=-1)
    waited = any(wait and sync > 0.5 * wait for index, (wait, sync) in waits.items() if index != last)
    return last if waited else -1


def waits_of(rows: Sequence[tuple[Any, ...]], zero: int = 0) -> list[tuple[Any, ...]]:
    """Step, kind, name, start, wait and synchronization of communication operators, without sums.

    Args:
        rows: The same by the clock of their table.
        zero: Reading of that clock at its zero, ns: starts are since 1970.
    """
    return [(*of, None if start is None else start + zero, wait, synchronization)
            for *of, start, wait, synchronization in rows if not is_total(of[2])]  # fmt: skip


def records(table: Table, *keys: str) -> list[tuple[Any, ...]]:
    """Rows of some columns as plain values; None for missing ones."""
    return list(zip(*(_plain(table.values(key)) for key in keys), strict=True))


def step_records(table: Table, *keys: str) -> list[tuple[Any, ...]]:
    """Rows of some columns and of the times of a step, ns; whole ones as integers, as sums of intervals are."""
    heads, times = records(table, *keys), records(table, *STEP_KEYS)
    return [(*head, *(int(time) if time is not None and time == int(time) else time for time in of_step))
            for head, of_step in zip(heads, times, strict=True)]  # fmt: skip


def _plain(values: Any) -> list[Any]:
    if isinstance(values, list):
        return values
    missing = is_missing(values).tolist()
    return [None if absent else value for value, absent in zip(values.tolist(), missing, strict=True)]
