"""Columns of the events of PyTorch traces."""

from __future__ import annotations

from typing import Final

from tpuprof_tui.model.columns import Column

COLUMNS: Final = (
    Column("engine", "Lane", kind="text", shown=True, help="The kind of lane it ran on."),
    Column("core", "GPU", width=4, help="Number of the GPU."),
    Column("order", "Idx", width=7, help="Place in the file among events with a duration."),
    Column("name", "Name", kind="text", width=40, shown=True, help="Kernel, operator, call or frame."),
    Column("type", "Category", kind="text", width=14, shown=True, help="Its category in the file."),
    Column("start", "Start", unit="ns", width=13, shown=True, group="time", help="When it began."),
    Column("end", "End", unit="ns", width=13, group="time", help="When it ended."),
    Column("duration", "Duration", unit="ns", width=11, shown=True, group="time", aliases=("dur",),
           help="End minus start."),
    Column("step", "Step", width=5, group="time", help="Number of its step; device work belongs to the step of its "
           "launch."),
    Column("depth", "Depth", width=5, engines=("thread",), help="Number of enclosing events of the thread."),
    Column("bytes", "Bytes", unit="B", width=9, engines=("stream",), help="Bytes copied or set."),
    Column("grid", "Grid", kind="text", width=12, engines=("stream",), help="Blocks of the kernel."),
    Column("block", "Block", kind="text", width=12, engines=("stream",), help="Threads of a block."),
    Column("correlation", "Correlation", width=9, group="links", help="Links a call with what it started."),
    Column("external", "External id", width=9, group="links", help="Links a call with the operator that made it."),
)  # fmt: skip
