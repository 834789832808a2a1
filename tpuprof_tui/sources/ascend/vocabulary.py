"""Vocabulary of Ascend profiles: columns of their events, names of lanes and groups, categories, views."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tpuprof_tui.model.activity import Activity
from tpuprof_tui.model.columns import COUNTERS, PLACE, Column
from tpuprof_tui.model.view import View
from tpuprof_tui.model.vocabulary import (
    NAMES,
    Capability,
    Category,
    GroupKind,
    LaneKind,
    Shades,
    Vocabulary,
    Word,
    WorkOrigin,
)

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
    Column("accelerator", "Core", kind="text", width=14, lanes=_WORK, help="Accelerator Core of a kernel."),
    Column("stream", "Stream", is_id=True, width=6, group=PLACE, lanes=_DEVICE,
           help="Number of the stream that it ran on."),
    Column("thread", "Thread", is_id=True, width=9, group=PLACE, lanes=("python", "cann"),
           help="Number of the thread that called it."),
    Column("start", "Start", unit="ns", width=13, shown=True, group="time", help="When it began."),
    Column("end", "End", unit="ns", width=13, group="time", help="When it ended."),
    Column("duration", "Duration", unit="ns", width=11, shown=True, group="time", aliases=("dur",),
           help="End minus start."),
    Column("waited", "Wait", unit="ns", width=11, group="time", lanes=_WORK,
           help="Time from the end of the work before it to its start, as recorded."),
    Column("step", "Step", width=5, group="time", help="Number of its step; of the device, from the first work that "
           "starts in the step on the host to that of the next step."),
    Column("blocks", "Block Dim", width=9, lanes=_DEVICE, help="Cores that the kernel asked for."),
    Column("mix_blocks", "Mix Block Dim", width=9, lanes=_DEVICE, help="Cores of the second kind that a kernel of "
           "both asked for."),
    Column("shapes", "Input Shapes", kind="text", width=24, lanes=("stream", "python"), aliases=("input_shapes",),
           help="Shapes of the inputs."),
    Column("input_types", "Input Types", kind="text", width=16, group="operands", lanes=_DEVICE,
           help="Data types of the inputs."),
    Column("input_formats", "Input Formats", kind="text", width=16, group="operands", lanes=_DEVICE,
           help="Memory formats of the inputs (ND, NCHW, NC1HWC0)."),
    Column("output_shapes", "Output Shapes", kind="text", width=24, group="operands", lanes=_DEVICE,
           help="Shapes of the outputs."),
    Column("output_types", "Output Types", kind="text", width=16, group="operands", lanes=_DEVICE,
           help="Data types of the outputs."),
    Column("output_formats", "Output Formats", kind="text", width=16, group="operands", lanes=_DEVICE,
           help="Memory formats of the outputs."),
    Column("op_state", "OP State", kind="text", width=8, lanes=_DEVICE,
           help="Whether shapes were known when the kernel was built (static, dynamic)."),
    Column("hf32", "HF32", kind="text", width=4, lanes=_DEVICE, help="Whether it may compute in HF32."),
    Column("task", "Task", is_id=True, width=7, lanes=_DEVICE, help="Number of the task, which streams number."),
    Column("context", "Context", is_id=True, width=10, lanes=_DEVICE, help="Number of the subtask of a task."),
    Column("model", "Model", is_id=True, width=10, lanes=_DEVICE, help="Number of the model; 4294967295: none."),
    Column("infer", "Infer", is_id=True, width=5, lanes=_DEVICE, help="Number of the inference."),
    Column("bound", "Bound", kind="text", width=12, group="metrics", lanes=_DEVICE, emphasis="bound_ratio",
           help="The pipe with the largest share of cycles; below 0.6 no pipe is full."),
    Column("bound_ratio", "Ratio", kind="float", width=7, group="metrics", lanes=_DEVICE,
           help="Its share of the cycles of its core, 0 to 1."),
    *(Column(metric_key(name), name, kind="float", unit=_UNITS.get(name, ""), decimals=3, width=12, group="metrics",
             lanes=_DEVICE, help="As the profiler measured it.") for name in METRICS),
    Column("host_self", "Host Self", unit="ns", width=11, group="operator", lanes=_OPERATORS,
           help="Time of the operator on the host without those nested in it."),
    Column("host_total", "Host Total", unit="ns", width=11, group="operator", lanes=_OPERATORS,
           help="Time of the operator on the host."),
    Column("device_self", "Device Self", unit="ns", width=11, group="operator", lanes=_OPERATORS,
           help="Time of the tasks and communication operators that the operator called."),
    Column("device_total", "Device Total", unit="ns", width=11, group="operator", lanes=_OPERATORS,
           help="Device Self with that of nested operators."),
    Column("device_self_aicore", "Device Self With AICore", unit="ns", width=11, group="operator", lanes=_OPERATORS,
           help="The same, kernels of AI Cores only."),
    Column("device_total_aicore", "Device Total With AICore", unit="ns", width=11, group="operator",
           lanes=_OPERATORS, help="The same, kernels of AI Cores only."),
    Column("stack", "Call stack", kind="text", width=40, group="stack", lanes=("python",),
           help="Where the operator was called from."),
    Column("bytes", "Bytes", unit="B", width=9, lanes=("plane",), help="Bytes that a communication task moved."),
    Column("connection", "Connection", is_id=True, width=10, group="links",
           help="Links a call of CANN with what it started."),
)  # fmt: skip


def columns_of_metrics(names: Iterable[str]) -> tuple[Column, ...]:
    """Columns for metrics that are not in the schema."""
    taken = {"", *(column.key for column in COLUMNS)}
    found = {key: name for name in names if (key := metric_key(name)) not in taken}
    return tuple(Column(key, name, kind="float", decimals=3, width=12, group=COUNTERS, lanes=_DEVICE,
                        help="As the profiler measured it.") for key, name in found.items())  # fmt: skip


DEVICE: Final = "device"
_VIEWS: Final = "tpuprof_tui.sources.ascend.views"

VOCABULARY: Final = Vocabulary(
    source="ascend",
    title="Ascend profile",
    unit=Word("NPU"),
    lane=Word("lane"),
    event=Word("task"),
    scope=Word("operator"),
    operation=Word("name"),
    lane_kinds=(
        LaneKind("python", "Python", Activity.HOST, 0, shades=Shades("#60a060")),
        LaneKind("cann", "CANN", Activity.HOST, 1, shades=Shades("#b070c0")),
        LaneKind("stream", "Stream", Activity.COMPUTE, 2, shades=Shades("#5b9bd5")),
        LaneKind("communication", "Communication", Activity.COMMUNICATION, 3, shades=Shades("#d08a4a")),
        LaneKind("plane", "Plane", Activity.COMMUNICATION, 4, shades=Shades("#b08050")),
        LaneKind("overlap", "Overlap Analysis", Activity.COMPUTE, 5, shades=Shades("#8a8a8a")),
        LaneKind("other", "Other", Activity.HOST, 6),
        LaneKind("aside", "Set aside", Activity.HOST, 7),
    ),
    group_kinds=(
        GroupKind("rank", "Ranks", Word("rank")),
        GroupKind("layer", "Layers", Word("layer")),
        GroupKind("npu", "NPUs", Word("NPU")),
    ),
    categories=(
        Category("communication", "N", Shades("#d08a4a"), ("hcom", "hccl", "allreduce", "communication")),
        Category("copies", "C", Shades("#c0a040"), ("memcpy", "dma")),
        Category("waits", "W", Shades("#8a8a8a"), ("wait", "record", "free")),
        Category("formats", "T", Shades("#c86060"), ("transdata", "transpose", "cast")),
        Category("cube", "M", Shades("#5b9bd5"), ("matmul", "conv2d", "conv3d", "attention", "batchmatmul")),
        Category("frames", "P", Shades("#c0b050"), ("python_function",)),
        Category("operators", "O", Shades("#60a060"), ("cpu_op",)),
        Category("queue", "Q", Shades("#609090"), ("enqueue", "dequeue", "queue")),
    ),
    capabilities=(Capability(NAMES, "names", "any profile"), Capability(DEVICE, "device work", "activities NPU")),
    phrases={"category": "category"},
    searched=("engine", "name", "type", "accelerator"),
    frames={"cpu_op": "(?!ProfilerStep#)"},
    # hcom_allReduce__586_0_1: behind the operator follow the hash of its group, which differs per run, and a number
    operation_class=r"(hcom_[^_]+)__\d",
    # a call of CANN (aclnnMm) lies inside the operator of the framework (aten::mm)
    origins=(WorkOrigin("operators", Word("operator"), pattern=r"\w+::"),),
    columns_entry="tpuprof_tui.sources.ascend.vocabulary:COLUMNS",
    texts_file=Path(__file__).with_name("help.txt"),
    views=(
        View("recordings", "Recordings", "The runs and sessions in a folder: rank, device, start, length and size.",
             "tpuprof_tui.views.report:recordings", all_workers=True, compared=False, facts=False),
        View("overview", "Overview", "Computing, communication and free time of each step, next to the recorded table.",
             f"{_VIEWS}.device:overview", place="second"),
        View("kernels", "Kernels", "Every kernel, its metrics and the pipe that binds it; sums by name, type, core.",
             f"{_VIEWS}.kernels:kernels"),
        View("free", "Free", "Every gap of the device with its cause, and the gaps between steps.",
             f"{_VIEWS}.device:free"),
        View("communication", "Communication", "Communication operators: transfer, wait, links, packets, matrix.",
             f"{_VIEWS}.communication:communication"),
        View("cluster", "Cluster", "Ranks side by side: steps, links, the slow and the late one.",
             f"{_VIEWS}.communication:cluster", all_workers=True),
        View("operators", "Operators", "Time by type of kernel, and of framework operators on host and device.",
             f"{_VIEWS}.kernels:operators", facts=False),
        View("streams", "Streams", "How long each stream works, and how well two of them cover each other.",
             f"{_VIEWS}.device:streams", in_summary=False, facts=False),
        View("modules", "Modules", "Time of modules of the model on the host, and of what their operators called.",
             f"{_VIEWS}.recipes:modules", place="", in_summary=False, facts=False),
        View("mfu", "MFU", "Operations per time of matrix multiplications, as a share of what the cube cores could do.",
             f"{_VIEWS}.recipes:mfu", place="", in_summary=False, facts=False),
        View("api", "Calls of CANN", "Time of calls by name, and how long launches took.", f"{_VIEWS}.kernels:api"),
        View("memory", "Memory", "Memory over time, its peaks, allocations and what was never released.",
             f"{_VIEWS}.device:memory"),
        View("tables", "Other tables", "Tables of the exporter that no other view shows, as recorded.",
             f"{_VIEWS}.ranks:other_tables", in_summary=False, place="",
             facts=False),
        View("findings", "Findings", "What is worth a look, by the time that could be saved; the vendor's own advice.",
             "tpuprof_tui.views.findings:findings_view", all_workers=True, place="first"),
    ),
    entries={"rules": f"{_VIEWS}.rules:RULES"},
)  # fmt: skip
