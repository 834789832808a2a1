"""Operators view: operators by name, by name and shapes, and by call stack."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from tpuprof_tui.analysis.pivot import Figure, Groups, any_true, key, per, quotient, rows, total
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.views.answer import Answer, Column, Table

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
