"""Columns of the events of Ascend profiles."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tpuprof_tui.model.columns import COUNTERS, PLACE, Column

_DEVICE: Final = ("stream",)
_WORK: Final = ("stream", "communication")
_OPERATORS: Final = ("python", "other")
#: Metrics that are columns of kernels: pipe utilization ratios, core times, cube utilization.
METRICS: Final = (
    "aic_mac_ratio", "aic_scalar_ratio", "aic_mte1_ratio", "aic_mte2_ratio", "aic_mte3_ratio", "aic_fixpipe_ratio",
    "aiv_vec_ratio", "aiv_scalar_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio", "aicore_time(us)", "aiv_time(us)",
    "cube_utilization(%)",
)  # fmt: skip
#: Texts and numbers of kernels beside those, in display order; shapes of inputs are ``shapes``.
TEXTS: Final = ("input_types", "input_formats", "output_shapes", "output_types", "output_formats", "op_state", "hf32")
NUMBERS: Final = ("task", "model", "infer", "mix_blocks", "context")
_UNITS: Final = {"aicore_time(us)": "us", "aiv_time(us)": "us", "cube_utilization(%)": "%"}


def metric_key(name: str) -> str:
    """Key of the column of a metric: its name without the unit."""
    return re.sub(r"\W+", "_", name.partition("(")[0].strip().lower())


COLUMNS: Final = (
    Column("engine", "Lane", kind="text", width=13, shown=True, help="The kind of lane it ran on."),
    Column("core", "NPU", width=4, help="Number of the NPU."),
    Column("order", "Idx", width=7, help="Place in the file among slices."),
    Column("name", "Name", kind="text", width=40, shown=True, help="Task, operator, call or frame."),
    Column("type", "Type", kind="text", width=16, shown=True,
           help="OP Type of a kernel, type of any other task, level of a call, category of what the host did."),
    Column("accelerator", "Core", kind="text", width=14, engines=_WORK, help="Accelerator Core of a kernel."),
    Column("stream", "Stream", is_id=True, width=6, group=PLACE, engines=_DEVICE,
           help="Number of the stream that it ran on."),
    Column("thread", "Thread", is_id=True, width=9, group=PLACE, engines=("python", "cann"),
           help="Number of the thread that called it."),
    Column("start", "Start", unit="ns", width=13, shown=True, group="time", help="When it began."),
    Column("end", "End", unit="ns", width=13, group="time", help="When it ended."),
    Column("duration", "Duration", unit="ns", width=11, shown=True, group="time", aliases=("dur",),
           help="End minus start."),
    Column("waited", "Wait", unit="ns", width=11, group="time", engines=_WORK,
           help="Time from the end of the work before it to its start, as recorded."),
    Column("step", "Step", width=5, group="time", help="Number of its step; of the device, from the first work that "
           "starts in the step on the host to that of the next step."),
    Column("blocks", "Block Dim", width=9, engines=_DEVICE, help="Cores that the kernel asked for."),
    Column("mix_blocks", "Mix Block Dim", width=9, engines=_DEVICE, help="Cores of the second kind that a kernel of "
           "both asked for."),
    Column("shapes", "Input Shapes", kind="text", width=24, engines=("stream", "python"), aliases=("input_shapes",),
           help="Shapes of the inputs."),
    Column("input_types", "Input Types", kind="text", width=16, group="operands", engines=_DEVICE,
           help="Data types of the inputs."),
    Column("input_formats", "Input Formats", kind="text", width=16, group="operands", engines=_DEVICE,
           help="Memory formats of the inputs (ND, NCHW, NC1HWC0)."),
    Column("output_shapes", "Output Shapes", kind="text", width=24, group="operands", engines=_DEVICE,
           help="Shapes of the outputs."),
    Column("output_types", "Output Types", kind="text", width=16, group="operands", engines=_DEVICE,
           help="Data types of the outputs."),
    Column("output_formats", "Output Formats", kind="text", width=16, group="operands", engines=_DEVICE,
           help="Memory formats of the outputs."),
    Column("op_state", "OP State", kind="text", width=8, engines=_DEVICE,
           help="Whether shapes were known when the kernel was built (static, dynamic)."),
    Column("hf32", "HF32", kind="text", width=4, engines=_DEVICE, help="Whether it may compute in HF32."),
    Column("task", "Task", is_id=True, width=7, engines=_DEVICE, help="Number of the task, which streams number."),
    Column("context", "Context", is_id=True, width=10, engines=_DEVICE, help="Number of the subtask of a task."),
    Column("model", "Model", is_id=True, width=10, engines=_DEVICE, help="Number of the model; 4294967295: none."),
    Column("infer", "Infer", is_id=True, width=5, engines=_DEVICE, help="Number of the inference."),
    Column("bound", "Bound", kind="text", width=12, group="metrics", engines=_DEVICE, level="bound_ratio",
           help="The pipe with the largest share of cycles; below 0.6 no pipe is full."),
    Column("bound_ratio", "Ratio", kind="float", width=7, group="metrics", engines=_DEVICE,
           help="Its share of the cycles of its core, 0 to 1."),
    *(Column(metric_key(name), name, kind="float", unit=_UNITS.get(name, ""), decimals=3, width=12, group="metrics",
             engines=_DEVICE, help="As the profiler measured it.") for name in METRICS),
    Column("host_self", "Host Self", unit="ns", width=11, group="operator", engines=_OPERATORS,
           help="Time of the operator on the host without those nested in it."),
    Column("host_total", "Host Total", unit="ns", width=11, group="operator", engines=_OPERATORS,
           help="Time of the operator on the host."),
    Column("device_self", "Device Self", unit="ns", width=11, group="operator", engines=_OPERATORS,
           help="Time of the tasks and communication operators that the operator called."),
    Column("device_total", "Device Total", unit="ns", width=11, group="operator", engines=_OPERATORS,
           help="Device Self with that of nested operators."),
    Column("device_self_aicore", "Device Self With AICore", unit="ns", width=11, group="operator", engines=_OPERATORS,
           help="The same, kernels of AI Cores only."),
    Column("device_total_aicore", "Device Total With AICore", unit="ns", width=11, group="operator",
           engines=_OPERATORS, help="The same, kernels of AI Cores only."),
    Column("stack", "Call stack", kind="text", width=40, group="stack", engines=("python",),
           help="Where the operator was called from."),
    Column("bytes", "Bytes", unit="B", width=9, engines=("plane",), help="Bytes that a communication task moved."),
    Column("connection", "Connection", is_id=True, width=10, group="links",
           help="Links a call of CANN with what it started."),
)  # fmt: skip


def columns_of_metrics(names: Iterable[str]) -> tuple[Column, ...]:
    """Columns for metrics that are not in the schema."""
    taken = {"", *(column.key for column in COLUMNS)}
    found = {key: name for name in names if (key := metric_key(name)) not in taken}
    return tuple(Column(key, name, kind="float", decimals=3, width=12, group=COUNTERS, engines=_DEVICE,
                        help="As the profiler measured it.") for key, name in found.items())  # fmt: skip
