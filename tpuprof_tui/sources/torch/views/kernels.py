"""Kernels view: kernels by name and by launch configuration, and copies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table

from ..read.kernel_names import ELIGIBLE, tensor_core_use, uses_tensor_cores
from ..read.values import printable
from .run import Run, ViewSelection
from .tables import Grouped, of_streams, per_step, time_table

if TYPE_CHECKING:
    from ..read.captures import Replayed

#: Characters of joined texts.
_MOST_TEXT: Final = 1000
_NAME: Final = Column("name", "Name", narrows="name")
_TIMES: Final = (
    Column("calls", "Calls", "count"), Column("total_us", "Total", "duration", bar=True),
    Column("mean_us", "Mean", "duration"), Column("max_us", "Max", "duration", spare=1),
    Column("min_us", "Min", "duration", spare=2),
)  # fmt: skip
_PER_STEP: Final = (
    Column("calls_per_step", "Calls per step", "count", spare=7),
    Column("total_per_step_us", "Per step", "duration", spare=6),
)  # fmt: skip
_MEASURED: Final = (
    Column("blocks_per_sm", "Blocks/SM", "number", spare=3), Column("occupancy", "Occupancy", "share", spare=4),
)  # fmt: skip


@of_streams
def kernels(selection: ViewSelection) -> Answer:
    """The kernels view of one worker."""
    run = selection.run
    trace, work = run.trace, run.trace.work
    chosen = np.flatnonzero(selection.work & run.kernels)
    rows = trace.work_rows[chosen]
    length = trace.end[rows] - trace.start[rows]
    facts = (Fact("kernels", "Kernels", len(rows)), Fact("total_us", "Their time", int(length.sum()), "duration"))
    name = trace.name[rows]

    def measured(group: Grouped) -> list[list[float | None]]:
        occupancy = group.mean(work["occupancy"][chosen], length)
        return [group.mean(work["blocks"][chosen], length),
                [None if each is None else each / 100 for each in occupancy]]  # fmt: skip

    cores = Column("tensor_cores", "TensorBoard's list", "flag", spare=6, shown=run.tensor_cores_known)
    use = Column("tensor_core_use", "Tensor cores", spare=5, shown=run.tensor_cores_known, is_key=False)
    by_name = Grouped(name)
    in_steps, steps = selection.in_steps
    of_steps = in_steps[rows]
    means = [per_step(by_name.total(each * of_steps), steps) for each in (np.ones(len(rows), np.int64), length)]
    names = [trace.names[code] for code in by_name.keys[:, 0].tolist()]
    tables = [time_table("by_name", "By name", [
        (_NAME, names), (use, [_use(run, each) for each in names]),
        (cores, [uses_tensor_cores(each) for each in names]),
        *zip(_TIMES, _times(by_name, length), strict=True), *zip(_PER_STEP, means, strict=True),
        *zip(_MEASURED, measured(by_name), strict=True),
    ], ("name",))]  # fmt: skip
    launcher = run.launchers.of_work[chosen]
    operator = np.where(launcher >= 0, trace.name[launcher] if len(trace) else -1, -1)
    found = selection.replayed
    launch = Grouped(name, operator, *(_merged_codes(trace.texts, work[key][chosen]) for key in ("grid", "block")),
                     *(work[key][chosen] for key in ("registers", "shared_memory")))  # fmt: skip
    keys = launch.keys.T.tolist() if launch.count else [[] for _ in range(6)]
    names = [trace.names[code] for code in keys[0]]
    operators = ["" if code < 0 else trace.names[code] for code in keys[1]]
    texts = [["None" if code < 0 else compact(trace.texts[code]) for code in column] for column in keys[2:]]
    tables.append(time_table("by_launch", "By launch", [
        (_NAME, names), (Column("operator", "Operator"), operators),
        *((Column(key, title, spare=spare), values) for key, title, spare, values in zip(
            ("grid", "block", "registers", "shared_memory"), ("Grid", "Block", "Registers", "Shared memory"),
            (6, 7, 8, 9), texts, strict=True)),
        (use, [_use(run, each) for each in names]), (cores, [uses_tensor_cores(each) for each in names]),
        (Column("operator_eligible", "Operator can", "flag", spare=10), [each in ELIGIBLE for each in operators]),
        *_captured_columns(found, chosen, launch),
        *zip(_TIMES, _times(launch, length), strict=True), *zip(_MEASURED, measured(launch), strict=True),
    ], ("name", "operator", "grid", "block", "registers", "shared_memory")))  # fmt: skip
    tables.append(_copies(selection))
    if found is not None:
        tables.insert(2, _captured(found, chosen, length))
    return Answer(facts, tuple(tables), notes=(*selection.replay_notes, *selection.overlap_notes),
                  missing=tuple(map(Missing, found.lacking if found is not None else ())))  # fmt: skip


#: What captures of graphs tell of replayed kernels: key, title.
_CAPTURED: Final = (("captured_operator", "Captured operator"), ("captured_shape", "Its shapes"),
                    ("captured_module", "Its module"))  # fmt: skip


def _captured(found: Replayed, chosen: np.ndarray, length: np.ndarray) -> Table:
    """Kernels of replayed graphs by the operator, shapes and module that their capture tells."""
    which = np.flatnonzero(found.matched[chosen])
    columns = [each[chosen[which]] for each in (found.operator, found.shape, found.module)]
    group = Grouped(*columns)
    keys = group.keys.T.tolist() if group.count else [[], [], []]
    texts = [[None if code < 0 else compact(found.texts[code]) for code in column] for column in keys]
    return time_table("captured", "Replayed kernels by what their capture tells", [
        *((Column(key, title, spare=spare), values) for (key, title), spare, values in
          zip(_CAPTURED, (0, 3, 4), texts, strict=True)),
        *zip(_TIMES, _times(group, length[which]), strict=True),
    ], [key for key, _ in _CAPTURED])  # fmt: skip


def _captured_columns(
    found: Replayed | None, chosen: np.ndarray, launch: Grouped
) -> Iterator[tuple[Column, list[str | None]]]:  # fmt: skip
    """The same as columns of the table of launches: texts, several joined; None where nothing is told."""
    codes = (found.operator, found.shape, found.module) if found is not None else ()
    for (key, title), column in zip(_CAPTURED, codes, strict=False):
        assert found is not None
        texts: list[list[str]] = [[] for _ in range(launch.count)]
        pairs = np.stack([launch.index, column[chosen].astype(np.int64)], axis=1)
        for row, code in np.unique(pairs[pairs[:, 1] >= 0], axis=0).tolist():
            texts[row].append(compact(found.texts[code]))
        yield (Column(key, title, spare=11), [printable("; ".join(sorted(each)), _MOST_TEXT) or None for each in texts])


def _use(run: Run, name: str) -> str:
    """Whether a kernel uses tensor cores: yes, no, or unknown."""
    use = tensor_core_use(name) if run.tensor_cores_known else None
    return "unknown" if use is None else "yes" if use else "no"


def _copies(selection: ViewSelection) -> Table:
    trace = selection.run.trace
    chosen = np.flatnonzero(selection.work & ~selection.run.kernels)
    rows = trace.work_rows[chosen]
    length = trace.end[rows] - trace.start[rows]
    group = Grouped(trace.name[rows])
    size = trace.work["bytes"][chosen] if len(chosen) else np.zeros(0, np.int64)
    known = size != INT_MISSING
    total, has = group.total(np.where(known, size, 0)), group.any(known)
    return time_table("copies", "Copies and sets", [
        (_NAME, [trace.names[code] for code in group.keys[:, 0].tolist()]),
        *zip(_TIMES, _times(group, length), strict=True),
        (Column("bytes", "Bytes", "bytes"), [int(each) if one else None for each, one in zip(total, has, strict=True)]),
    ], ("name",))  # fmt: skip


def _times(group: Grouped, length: np.ndarray) -> list[list[float]]:
    calls, total = group.calls(), group.total(length)
    mean = [each / count for each, count in zip(total.tolist(), calls.tolist(), strict=True)]
    return [calls.tolist(), total.tolist(), mean, group.total(length, np.maximum).tolist(),
            group.total(length, np.minimum, np.iinfo(np.int64).max).tolist()]  # fmt: skip


def _merged_codes(texts: tuple[str, ...], codes: np.ndarray) -> np.ndarray:
    """Codes made equal where their JSON texts are equal up to blanks."""
    first: dict[str, int] = {}
    distinct = np.unique(codes)
    representative = [first.setdefault(compact(texts[code]), code) if code >= 0 else -1 for code in distinct.tolist()]
    return np.array(representative, np.int64)[np.searchsorted(distinct, codes)] if len(codes) else codes


def compact(text: str) -> str:
    """JSON without blanks; a JSON string without its quotes; other text as it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
