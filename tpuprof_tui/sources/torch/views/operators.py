"""Operators view: operators by name, by name and shapes, and by call stack; names view: calls and time by short name.

Short names are the basis of comparing two runs, as in HTA's trace diff: kernel names differ between cards and versions,
so return type, template arguments and parameters are removed.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.analysis.pivot import Figure, Groups, any_true, key, per, pivot, quotient, rows, total
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.views.answer import Answer, Column, Table

from ..categories import Kind
from .worker_events import WorkerEvents, per_worker, ratio

_SIDES: Final = ("device_self", "device_total", "host_self", "host_total")
_TIMES: Final = tuple((Column(f"{side}_us", side.replace("_", " ").capitalize(), "duration", bar=side.endswith("self")),
                       total(side)) for side in _SIDES)  # fmt: skip
#: Shares by more names than TensorBoard's list: their word, title, priority, and column of times.
_OWN_SHARES: Final = (
    ("time_self", "Tensor cores self", 2, "used_self"), ("time_total", "Tensor cores total", 1, "used_total"),
    ("unknown", "Tensor cores not known", 11, "unknown_total"),
)  # fmt: skip
_NAME: Final = (Column("name", "Name", narrows="name"), key("name"))
_UNLINKED: Final = "What launched the work of the device is not recorded: device times of operators are not known."
#: Kinds of host events, without those of the profiler itself.
_HOST: Final = (Kind.OPERATOR, Kind.ANNOTATION, Kind.CALL, Kind.FRAME, Kind.OLD_FRAME)
_OPEN: Final = {">": "<", ")": "("}
_COLUMNS: Final = (
    Column("side", "Side"), Column("name", "Name"), Column("calls", "Calls", "count"),
    Column("total_us", "Total", "duration", bar=True), Column("calls_per_step", "Calls per step", "count", spare=2),
    Column("total_per_step_us", "Per step", "duration", spare=1),
)  # fmt: skip


@per_worker()
def operators(events: WorkerEvents) -> Answer:
    """The operators view of one worker."""
    steps = events.step_count
    frame = events.frame("thread", "name", "shapes", "stack", *_SIDES, "tensor_self", "tensor_total", "used_self",
                            "used_total", "unknown_total", "eligible", "in_steps")  # fmt: skip
    frame = frame.take(frame["host_total"] != INT_MISSING).with_texts("shapes", missing="[]")
    known, main = events.recorded.tensor_cores_known, "device_self_us" if frame["device_self"].any() else "host_self_us"
    unlinked = _is_unlinked(events)
    times = tuple((replace(column, zero_unknown=unlinked and column.key.startswith("device")), figure)
                  for column, figure in _TIMES)  # fmt: skip
    figures = (
        (Column("calls", "Calls", "count"), rows), *times,
        (Column("tensor_core_eligible", "Can use tensor cores", "flag", spare=3, shown=known), any_true("eligible")),
        *((Column(f"tensor_core_{part}_share", f"TensorBoard's list {part}", "share", spare=spare, shown=known),
           quotient(total(f"tensor_{part}"), total(f"device_{part}"))) for part, spare in (("self", 10), ("total", 9))),
        *((Column(f"tensor_core_{word}_share", title, "share", spare=spare, shown=known),
           _share(total(part), total(f"device_{part.partition('_')[2]}")) if known else _nothing)
          for word, title, spare, part in _OWN_SHARES),
    )  # fmt: skip
    per_step = (
        (Column("calls_per_step", "Calls per step", "count", spare=8), per(total("in_steps"), steps)),
        *((Column(f"{side}_per_step_us", f"{side.replace('_', ' ').capitalize()} per step", "duration", spare=spare),
           _nothing if unlinked and side.startswith("device") else per(total(side, "in_steps"), steps))
          for side, spare in zip(_SIDES, (4, 6, 5, 7), strict=True)),
    )  # fmt: skip
    shapes, stack = (Column("shape", "Shapes"), key("shapes")), (Column("stack", "Call stack"), key("stack"))
    order = (f"-{main}", "name")
    told = (_UNLINKED,) if unlinked else ()
    return Answer(notes=(*told, *events.step_notes, *events.replay_notes, *events.overlap_notes), tables=(
        Table.of_pivot("by_name", "By name", frame, ["name"], [_NAME, *figures, *per_step], order),
        Table.of_pivot("by_shape", "By name and shapes", frame, ["name", "shapes"], [_NAME, shapes, *figures],
                       (*order, "shape")),
        Table.of_pivot("stacks", "By call stack", frame.take(frame["stack"] >= 0), ["name", "stack"],
                       [_NAME, stack, *figures], (*order, "stack")),
    ))  # fmt: skip


def _share(part: Figure, whole: Figure) -> Figure:
    return lambda groups: [ratio(*each) for each in zip(part(groups), whole(groups), strict=True)]


def _nothing(groups: Groups) -> list[None]:
    return [None] * groups.count


def _is_unlinked(events: WorkerEvents) -> bool:
    """Whether there is device work, and nothing tells what launched any of it."""
    work = events.whole.frame("stream", "call_start", "operator")
    return bool(len(work)) and not bool((work["call_start"] != INT_MISSING).any() or (work["operator"] >= 0).any())


@per_worker()
def names(events: WorkerEvents) -> Answer:
    """The names view of one worker."""
    host = events.frame("thread", "name", "kind", "in_steps")
    work = events.frame("stream", "name", "kind", "in_steps", "call_start")
    if events.query.step is not None and events.steps.annotated:
        # as HTA counts: work without a call is in no step
        work = work.take(work["call_start"] != INT_MISSING)
    host = host.take(np.isin(host["kind"], _HOST)).with_texts("name", lambda name: short_name(name, "<"))
    texts, kernels = work.texts["name"], uniques(work["name"][work["kind"] == Kind.KERNEL]).tolist()
    of_kernels = {texts[code] for code in kernels}
    work = work.with_texts("name", lambda name: short_name(name, "<", "(") if name in of_kernels else name)
    rows_by_side = [
        (side, *row) for side, frame in (("host", host), ("device", work)) for row in pivot(frame, ["name"], {
            "name": key("name"), "calls": rows, "total": total("duration"),
            "calls_per_step": per(total("in_steps"), events.step_count),
            "total_per_step": per(total("duration", "in_steps"), events.step_count),
        }, ())]  # fmt: skip
    rows_by_side.sort(key=lambda row: (-row[3], row[0], row[1]))
    return Answer(tables=(Table.of_rows("names", "Names", _COLUMNS, rows_by_side),))


def short_name(name: str, *signs: str) -> str:
    """A name with any of ``signs`` without <...> and (...), and without what stands before its last blank, its type."""
    if not any(sign in name for sign in signs):
        return name
    kept: list[str] = []
    depth = 0
    for sign in name:
        if sign in "<(":
            depth += 1
        elif sign in _OPEN:
            depth = max(depth - 1, 0)
        elif not depth:
            kept.append(sign)
    return "".join(kept).strip().rpartition(" ")[2]
