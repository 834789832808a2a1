"""Kernels view: kernels by name and by launch configuration, and copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tpuprof_tui.analysis.pivot import (
    Figure,
    Frame,
    Groups,
    key,
    least,
    mean,
    most,
    per,
    rows,
    total,
    total_known,
    weighted_mean,
)
from tpuprof_tui.model import Activity
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table, plain

from ..kernel_names import ELIGIBLE, tensor_core_use, uses_tensor_cores
from .worker_events import WorkerEvents, of_streams

#: Characters of joined texts.
_MOST_TEXT: Final = 1000
_NAME: Final = (Column("name", "Name", narrows="name"), key("name"))
_TIMES: Final = (
    (Column("calls", "Calls", "count"), rows), (Column("total_us", "Total", "duration", bar=True), total("duration")),
    (Column("mean_us", "Mean", "duration"), mean("duration")),
    (Column("max_us", "Max", "duration", spare=1), most("duration")),
    (Column("min_us", "Min", "duration", spare=2), least("duration")),
)  # fmt: skip
_MEASURED: Final = (
    (Column("blocks_per_sm", "Blocks/SM", "number", spare=3), weighted_mean("blocks_per_sm", "duration")),
    (Column("occupancy", "Occupancy", "share", spare=4), weighted_mean("occupancy", "duration", 100)),
)  # fmt: skip
#: What captures of graphs tell of replayed kernels.
_CAPTURED: Final = (("captured_operator", "Captured operator"), ("captured_shape", "Its shapes"),
                    ("captured_module", "Its module"))  # fmt: skip
_LAUNCH: Final = ("operator", "grid", "block", "registers", "shared_memory")
_WORK: Final = ("name", "activity", *_LAUNCH, "blocks_per_sm", "occupancy", "bytes")


@of_streams
def kernels(events: WorkerEvents) -> Answer:
    """The kernels view of one worker."""
    captured = events.recorded.captures()
    told = () if captured is None else ("captured", *(column for column, _ in _CAPTURED))
    work = events.frame("stream", *_WORK, *told, "in_steps")
    transfers = work["activity"] == Activity.TRANSFER
    frame, copies = work.take(~transfers), work.take(transfers)
    known = events.recorded.tensor_cores_known
    use = (
        (Column("tensor_core_use", "Tensor cores", spare=5, shown=known, is_key=False),
         _of_texts("name", _use if known else lambda _: "unknown")),
        (Column("tensor_cores", "TensorBoard's list", "flag", spare=6, shown=known),
         _of_texts("name", uses_tensor_cores)),
    )  # fmt: skip
    by_name = Table.of_pivot("by_name", "By name", frame, ["name"], [
        _NAME, *use, *_TIMES,
        (Column("calls_per_step", "Calls per step", "count", spare=7), per(total("in_steps"), events.step_count)),
        (Column("total_per_step_us", "Per step", "duration", spare=6),
         per(total("duration", "in_steps"), events.step_count)),
        *_MEASURED,
    ], ("-total_us", "name"))  # fmt: skip
    launch = [(Column("operator", "Operator"), key("operator")),
              *((Column(name, name.replace("_", " ").capitalize(), spare=spare), _as_text(name))
                for spare, name in enumerate(_LAUNCH[1:], 6))]  # fmt: skip
    by_launch = Table.of_pivot("by_launch", "By launch", frame, ["name", *_LAUNCH], [
        _NAME, *launch, *use,
        (Column("operator_eligible", "Operator can", "flag", spare=10), _of_texts("operator", ELIGIBLE.__contains__)),
        *((Column(name, title, spare=11), _joined(name)) for name, title in _CAPTURED if told),
        *_TIMES, *_MEASURED,
    ], ("-total_us", "name", *_LAUNCH))  # fmt: skip
    sets = Table.of_pivot("copies", "Copies and sets", copies, ["name"], [
        _NAME, *_TIMES, (Column("bytes", "Bytes", "bytes"), total_known("bytes")),
    ], ("-total_us", "name"))  # fmt: skip
    facts = (Fact("kernels", "Kernels", len(frame)),
             Fact("total_us", "Their time", int(frame["duration"].sum()), "duration"))  # fmt: skip
    tables = (by_name, by_launch, *([_captured(frame)] if told else ()), sets)
    return Answer(facts, tables, notes=(*events.replay_notes, *events.overlap_notes),
                  missing=tuple(map(Missing, captured.lacking if captured is not None else ())))  # fmt: skip


def _captured(frame: Frame) -> Table:
    keys = [name for name, _ in _CAPTURED]
    matched, title = frame.take(frame["captured"] > 0), "Replayed kernels by what their capture tells"
    return Table.of_pivot("captured", title, matched, keys, [
        *((Column(name, title, spare=spare), key(name, None)) for (name, title), spare in
          zip(_CAPTURED, (0, 3, 4), strict=True)), *_TIMES,
    ], ("-total_us", *keys))  # fmt: skip


def _joined(name: str) -> Figure:
    """The distinct texts of a column, sorted; None where there is none."""

    def values(groups: Groups) -> list[str | None]:
        texts: list[set[str]] = [set() for _ in range(groups.count)]
        codes, table = groups.frame[name], groups.frame.texts[name]
        for group, code in set(zip(groups.index[codes >= 0].tolist(), codes[codes >= 0].tolist(), strict=True)):
            texts[group].add(table[code])
        return ["; ".join(sorted(of_group))[:_MOST_TEXT] or None for of_group in texts]

    return values


def _of_texts(name: str, tell: Callable[[str], Any]) -> Figure:
    return lambda groups: list(map(tell, key(name)(groups)))


def _as_text(name: str) -> Figure:
    """Values of a key column as text; what TensorBoard's table has for missing ones."""
    missing = "None" if name in ("grid", "block") else "0"
    return lambda groups: [missing if (known := plain(value)) is None else str(known)
                           for value in key(name, None)(groups)]  # fmt: skip


def _use(name: str) -> str:
    use = tensor_core_use(name)
    return "unknown" if use is None else "yes" if use else "no"
