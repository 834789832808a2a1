"""Columns of the events of PyTorch traces."""

from __future__ import annotations

from typing import Final

from tpuprof_tui.model.columns import Column

_DEVICE: Final = ("stream", "annotation", "wait")
_LAUNCHED: Final = ("stream", "thread")
COLUMNS: Final = (
    Column("engine", "Lane", kind="text", shown=True, aliases=("lane_kind",), help="The kind of lane it ran on."),
    Column("core", "GPU", width=4, aliases=("gpu",), help="Number of the GPU."),
    Column("order", "Idx", width=7, help="Place in the file among events with a duration."),
    Column("name", "Name", kind="text", width=40, shown=True, help="Kernel, operator, call or frame."),
    Column("type", "Category", kind="text", width=14, shown=True, help="Its category in the file."),
    Column("operator", "Operator", kind="text", width=24, engines=_LAUNCHED, group="origin", aliases=("op",),
           help="Operator that launched the work or made the call; its own name of an operator."),
    Column("module", "Module", kind="text", width=20, engines=_LAUNCHED, group="origin",
           help="Innermost nn.Module around it, or around what launched it."),
    Column("frame", "Python frame", kind="text", width=30, engines=_LAUNCHED, group="origin", aliases=("source",),
           help="Innermost Python function around it, or around what launched it: file(line): function."),
    Column("shapes", "Shapes", kind="text", width=24, engines=_LAUNCHED, group="origin",
           help="Shapes of the operator's inputs."),
    Column("input_types", "Types", kind="text", width=16, engines=_LAUNCHED, group="origin",
           aliases=("dtype", "dtypes"), help="Types of the operator's inputs."),
    Column("stack", "Call stack", kind="text", width=40, engines=_LAUNCHED, group="origin",
           help="Call stack of the operator, as recorded."),
    Column("start", "Start", unit="ns", width=13, shown=True, group="time", help="When it began."),
    Column("end", "End", unit="ns", width=13, group="time", help="When it ended."),
    Column("duration", "Duration", unit="ns", width=11, shown=True, group="time", aliases=("dur",),
           help="End minus start."),
    Column("delay", "Delay", unit="ns", width=11, engines=("stream",), group="time",
           help="Time from the end of the call that launched it to its start; 0 if it started earlier."),
    Column("step", "Step", width=5, group="time", help="Number of its step; device work belongs to the step of its "
           "launch."),
    Column("stage", "Stage", kind="text", width=8, group="time", help="What a server did in its step: prefill, "
           "decode, or both at once (mixed)."),
    Column("depth", "Depth", width=5, engines=("thread",), help="Number of enclosing events of the thread."),
    Column("rank", "Rank", is_id=True, width=4, group="place", help="Rank of its process."),
    Column("process", "Process", is_id=True, width=8, engines=("thread",), group="place", aliases=("pid",),
           help="Id of its process."),
    Column("thread", "Thread", is_id=True, width=8, engines=("thread",), group="place", aliases=("tid",),
           help="Id of its thread."),
    Column("stream", "Stream", is_id=True, width=6, engines=_DEVICE, group="place", help="Number of its stream."),
    Column("op_category", "Op category", kind="text", width=14, engines=("stream",), group="kernel",
           help="GEMM, attention, elementwise, communication and the like: by its operator, else by its own name."),
    Column("bytes", "Bytes", unit="B", width=9, engines=("stream",), group="kernel", help="Bytes copied or set."),
    Column("grid", "Grid", kind="text", width=12, engines=("stream",), group="kernel", help="Blocks of the kernel."),
    Column("block", "Block", kind="text", width=12, engines=("stream",), group="kernel", help="Threads of a block."),
    Column("registers", "Registers", width=9, engines=("stream",), group="kernel", help="Registers of a thread."),
    Column("shared_memory", "Shared memory", unit="B", width=9, engines=("stream",), group="kernel",
           help="Shared memory of a block."),
    Column("blocks_per_sm", "Blocks/SM", kind="float", width=9, engines=("stream",), group="kernel",
           help="Blocks for each multiprocessor of the device."),
    Column("occupancy", "Occupancy", kind="percent", decimals=0, width=9, engines=("stream",), group="kernel",
           help="Estimated occupancy of the multiprocessors."),
    Column("correlation", "Correlation", is_id=True, width=9, group="links", help="Links a call with what it started."),
    Column("external", "External id", is_id=True, width=9, group="links",
           help="Links a call with the operator that made it."),
)  # fmt: skip
