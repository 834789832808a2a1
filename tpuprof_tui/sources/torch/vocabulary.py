"""Vocabulary of PyTorch traces: columns of their events, names of lanes and groups, categories, views."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tpuprof_tui.model.activity import Activity
from tpuprof_tui.model.columns import Column
from tpuprof_tui.model.view import View
from tpuprof_tui.model.vocabulary import (
    NAMES,
    Capability,
    Category,
    GroupKind,
    LaneKind,
    NameColouring,
    Shades,
    Vocabulary,
    Word,
    WorkOrigin,
)

_DEVICE: Final = ("stream", "annotation", "wait")
_LAUNCHED: Final = ("stream", "thread")
COLUMNS: Final = (
    Column("engine", "Lane", kind="text", shown=True, aliases=("lane_kind",), help="The kind of lane it ran on."),
    Column("core", "GPU", width=4, aliases=("gpu",), help="Number of the GPU."),
    Column("order", "Idx", width=7, help="Place in the file among events with a duration."),
    Column("name", "Name", kind="text", width=40, shown=True, help="Kernel, operator, call or frame."),
    Column("type", "Category", kind="text", width=14, shown=True, help="Its category in the file."),
    Column("operator", "Operator", kind="text", width=24, lanes=_LAUNCHED, group="origin", aliases=("op",),
           help="Operator that launched the work or made the call; its own name of an operator."),
    Column("module", "Module", kind="text", width=20, lanes=_LAUNCHED, group="origin",
           help="Innermost nn.Module around it, or around what launched it."),
    Column("frame", "Python frame", kind="text", width=30, lanes=_LAUNCHED, group="origin", aliases=("source",),
           help="Innermost Python function around it, or around what launched it: file(line): function."),
    Column("shapes", "Shapes", kind="text", width=24, lanes=_LAUNCHED, group="origin",
           help="Shapes of the operator's inputs."),
    Column("input_types", "Types", kind="text", width=16, lanes=_LAUNCHED, group="origin",
           aliases=("dtype", "dtypes"), help="Types of the operator's inputs."),
    Column("stack", "Call stack", kind="text", width=40, lanes=_LAUNCHED, group="origin",
           help="Call stack of the operator, as recorded."),
    Column("start", "Start", unit="ns", width=13, shown=True, group="time", help="When it began."),
    Column("end", "End", unit="ns", width=13, group="time", help="When it ended."),
    Column("duration", "Duration", unit="ns", width=11, shown=True, group="time", aliases=("dur",),
           help="End minus start."),
    Column("delay", "Delay", unit="ns", width=11, lanes=("stream",), group="time",
           help="Time from the end of the call that launched it to its start; 0 if it started earlier."),
    Column("step", "Step", width=5, group="time", help="Number of its step; device work belongs to the step of its "
           "launch."),
    Column("stage", "Stage", kind="text", width=8, group="time", help="What a server did in its step: prefill, "
           "decode, or both at once (mixed)."),
    Column("depth", "Depth", width=5, lanes=("thread",), help="Number of enclosing events of the thread."),
    Column("rank", "Rank", is_id=True, width=4, group="place", help="Rank of its process."),
    Column("process", "Process", is_id=True, width=8, lanes=("thread",), group="place", aliases=("pid",),
           help="Id of its process."),
    Column("thread", "Thread", is_id=True, width=8, lanes=("thread",), group="place", aliases=("tid",),
           help="Id of its thread."),
    Column("stream", "Stream", is_id=True, width=6, lanes=_DEVICE, group="place", help="Number of its stream."),
    Column("op_category", "Op category", kind="text", width=14, lanes=("stream",), group="kernel",
           help="GEMM, attention, elementwise, communication and the like: by its operator, else by its own name."),
    Column("bytes", "Bytes", unit="B", width=9, lanes=("stream",), group="kernel", help="Bytes copied or set."),
    Column("grid", "Grid", kind="text", width=12, lanes=("stream",), group="kernel", help="Blocks of the kernel."),
    Column("block", "Block", kind="text", width=12, lanes=("stream",), group="kernel", help="Threads of a block."),
    Column("registers", "Registers", width=9, lanes=("stream",), group="kernel", help="Registers of a thread."),
    Column("shared_memory", "Shared memory", unit="B", width=9, lanes=("stream",), group="kernel",
           help="Shared memory of a block."),
    Column("blocks_per_sm", "Blocks/SM", kind="float", width=9, lanes=("stream",), group="kernel",
           help="Blocks for each multiprocessor of the device."),
    Column("occupancy", "Occupancy", kind="percent", decimals=0, width=9, lanes=("stream",), group="kernel",
           help="Estimated occupancy of the multiprocessors."),
    Column("correlation", "Correlation", is_id=True, width=9, group="links", help="Links a call with what it started."),
    Column("external", "External id", is_id=True, width=9, group="links",
           help="Links a call with the operator that made it."),
)  # fmt: skip


MEMORY: Final = "memory"
MODULES: Final = "modules"
DEVICE: Final = "device"
_VIEWS: Final = "tpuprof_tui.sources.torch.views"

VOCABULARY: Final = Vocabulary(
    source="torch",
    title="PyTorch trace",
    unit=Word("GPU"),
    lane=Word("lane"),
    event=Word("event"),
    scope=Word("operator"),
    operation=Word("name"),
    lane_kinds=(
        LaneKind("stream", "Stream", Activity.COMPUTE, 0, shades=Shades("#5b9bd5")),
        LaneKind("annotation", "Annotations", Activity.COMPUTE, 1, shades=Shades("#8a8a8a")),
        LaneKind("wait", "Waits", Activity.COMPUTE, 2, shades=Shades("#b0a060")),
        LaneKind("thread", "Thread", Activity.HOST, 3),
        LaneKind("profiler", "Profiler", Activity.HOST, 4),
        LaneKind("aside", "Set aside", Activity.HOST, 5),
    ),
    group_kinds=(
        GroupKind("rank", "Ranks", Word("rank")),
        GroupKind("gpu", "GPUs", Word("GPU")),
        GroupKind("process", "Processes", Word("process", "processes")),
    ),
    categories=(
        Category("kernels", "K", Shades("#5b9bd5"), ("kernel", "mtia_ccp_events")),
        Category("communication", "N", Shades("#e0699a"), activity=Activity.COMMUNICATION),
        Category("copies", "C", Shades("#d08a4a"), ("memcpy", "memset")),
        Category("calls", "R", Shades("#b070c0"), ("runtime", "driver", "hpu_op")),
        Category("operators", "O", Shades("#60a060"), ("cpu_op", "operator")),
        Category("annotations", "A", Shades("#8a8a8a"), ("annotation", "collective_comm")),
        Category("Python frames", "P", Shades("#c0b050"), ("python",)),
    ),
    capabilities=(
        Capability(NAMES, "names", "any trace"),
        Capability(DEVICE, "device work", "activities=[ProfilerActivity.CUDA]"),
        Capability(MEMORY, "memory", "profile_memory=True"),
        Capability(MODULES, "modules", "with_stack=True"),
    ),
    named=(
        NameColouring("operator", "operator", NAMES, f"{_VIEWS}.by_name:by_operator"),
        NameColouring("module", "module", MODULES, f"{_VIEWS}.by_name:by_module"),
    ),
    phrases={"category": "category"},
    searched=("engine", "name", "type"),
    operands=("bytes", "grid", "block"),
    work_breakdowns=(("kernels", "name"),),
    frames={"cpu_op": "", "operator": "", "python_function": "nn\\.Module: "},
    blocking="Synchronize|^(cuda|hip)Memcpy$",
    host_breakdowns=(("operators", "host_self"),),
    origins=(
        WorkOrigin("operators", Word("operator"), "operator"),
        WorkOrigin("modules", Word("module"), "module", r"(.+?)(?:_\d+)?$"),
    ),
    columns_entry="tpuprof_tui.sources.torch.vocabulary:COLUMNS",
    texts_file=Path(__file__).with_name("help.txt"),
    views=(
        View("recordings", "Recordings", "The runs and sessions in a folder: rank, device, start, length and size.",
             "tpuprof_tui.views.report:recordings", all_workers=True, compared=False, facts=False),
        View("overview", "Overview", "Where the time of the steps went, how the GPUs were used, and what to do.",
             f"{_VIEWS}.overview:overview", place="first"),
        View("operators", "Operators", "Time of operators on the host and of what they started on the device.",
             f"{_VIEWS}.by_name:operators", facts=False, slow=True),
        View("kernels", "Kernels", "Time of kernels, by name and by how they were launched, and of copies.",
             f"{_VIEWS}.by_name:kernels"),
        View("memory", "Memory", "Memory over time, its peaks, what was allocated, and by which operators.",
             f"{_VIEWS}.memory:memory", compared=False, slow=True),
        View("modules", "Modules", "Time of nn.Modules, as a tree.", f"{_VIEWS}.modules:modules", slow=True,
             facts_alone=f"{_VIEWS}.modules:module_facts"),
        View("steps", "Steps", "The steps that the host annotated, and their length on the device.",
             f"{_VIEWS}.overview:steps"),
        View("streams", "Streams", "Busy and idle time of each stream and why, exposed communication and copies.",
             f"{_VIEWS}.overview:streams", place="second"),
        View("launches", "Launches", "How long launches took, and how long what they started waited.",
             f"{_VIEWS}.overview:launches"),
        View("roofline", "Roofline", "How fast operators were for their shapes, the share of the card's peak, and "
             "whether computing or memory bounds them.", f"{_VIEWS}.roofline:roofline", facts=False, slow=True),
        View("fusion", "Fusion candidates", "Sequences of light kernels that repeat, their source line, and what one "
             "kernel in place of each could win.", f"{_VIEWS}.by_name:fusion", facts=False, slow=True),
        View("names", "Short names", "Calls and time on host and device by short name, for comparing runs.",
             f"{_VIEWS}.by_name:names", place="", facts=False),
        View("recording", "Recording", "Metadata next to the events of a file; values of secrets are masked.",
             f"{_VIEWS}.overview:recording", place="", compared=False, facts=False, screen_only=True),
        View("distributed", "Distributed", "Computation and communication of the workers, and their collectives.",
             f"{_VIEWS}.distributed:distributed", all_workers=True),
    ),
    entries={"rules": f"{_VIEWS}.rules:RULES", "steps": f"{_VIEWS}.overview:step_spans"},
)  # fmt: skip
