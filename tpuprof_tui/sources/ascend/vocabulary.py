"""Vocabulary of Ascend profiles: names of lanes and groups, categories, views."""

from __future__ import annotations

from typing import Final

from tpuprof_tui.model.activity import Activity
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
    columns_entry="tpuprof_tui.sources.ascend.schema:COLUMNS",
    texts_entry="tpuprof_tui.sources.ascend.source:EXAMPLES",
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
        View("api", "Calls of CANN", "Time of calls by name, and how long launches took.", f"{_VIEWS}.api:api"),
        View("memory", "Memory", "Memory over time, its peaks, allocations and what was never released.",
             f"{_VIEWS}.memory:memory"),
        View("tables", "Other tables", "Tables of the exporter that no other view shows, as recorded.",
             f"{_VIEWS}.ranks:other_tables", in_summary=False, place="",
             facts=False),
        View("findings", "Findings", "What is worth a look, by the time that could be saved; the vendor's own advice.",
             "tpuprof_tui.views.findings:findings_view", all_workers=True, place="first"),
    ),
    entries={"rules": f"{_VIEWS}.findings:RULES"},
)  # fmt: skip
