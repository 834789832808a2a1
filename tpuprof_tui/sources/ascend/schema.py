"""Columns of the events of Ascend profiles."""

from __future__ import annotations

from typing import Final

from tpuprof_tui.model.columns import Column
from tpuprof_tui.model.vocabulary import NAMES

_DEVICE: Final = ("stream",)
_WORK: Final = ("stream", "communication")
COLUMNS: Final = (
    Column("engine", "Lane", kind="text", width=13, shown=True, help="The kind of lane it ran on."),
    Column("core", "NPU", width=4, help="Number of the NPU."),
    Column("order", "Idx", width=7, help="Place in the file among slices."),
    Column("name", "Name", kind="text", width=40, shown=True, needs=NAMES, help="Task, operator, call or frame."),
    Column("type", "Type", kind="text", width=16, shown=True,
           help="OP Type of a kernel, type of any other task, level of a call, category of what the host did."),
    Column("accelerator", "Core", kind="text", width=14, engines=_WORK, help="Accelerator Core of a kernel."),
    Column("start", "Start", unit="ns", width=13, shown=True, group="time", help="When it began."),
    Column("end", "End", unit="ns", width=13, group="time", help="When it ended."),
    Column("duration", "Duration", unit="ns", width=11, shown=True, group="time", aliases=("dur",),
           help="End minus start."),
    Column("waited", "Wait", unit="ns", width=11, group="time", engines=_WORK,
           help="Time from the end of the work before it to its start, as the file has it."),
    Column("step", "Step", width=5, group="time", help="Number of its step; device work belongs to the step of its "
           "operator."),
    Column("blocks", "Block Dim", width=9, engines=_DEVICE, help="Cores that the kernel asked for."),
    Column("shapes", "Input Shapes", kind="text", width=24, engines=("stream", "python"), help="Shapes of the inputs."),
    Column("bytes", "Bytes", unit="B", width=9, engines=("plane",), help="How much a task of communication moved."),
    Column("connection", "Connection", width=10, group="links", help="Joins a call of CANN and what it started."),
)  # fmt: skip
