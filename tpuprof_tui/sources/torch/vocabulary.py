"""Vocabulary of PyTorch traces: names of lanes and groups, categories, views."""

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
    NameColouring,
    Shades,
    Vocabulary,
    Word,
    WorkOrigin,
)

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
    columns_entry="tpuprof_tui.sources.torch.schema:COLUMNS",
    texts_entry="tpuprof_tui.sources.torch.command_texts:TEXTS",
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
             f"{_VIEWS}.streams:streams", place="second"),
        View("launches", "Launches", "How long launches took, and how long what they started waited.",
             f"{_VIEWS}.streams:launches"),
        View("roofline", "Roofline", "How fast operators were for their shapes, the share of the card's peak, and "
             "whether computing or memory bounds them.", f"{_VIEWS}.roofline:roofline", facts=False, slow=True),
        View("fusion", "Fusion candidates", "Sequences of light kernels that repeat, their source line, and what one "
             "kernel in place of each could win.", f"{_VIEWS}.fusion:fusion", facts=False, slow=True),
        View("names", "Short names", "Calls and time on host and device by short name, for comparing runs.",
             f"{_VIEWS}.by_name:names", place="", facts=False),
        View("recording", "Recording", "Metadata next to the events of a file; values of secrets are masked.",
             f"{_VIEWS}.recording:recording", place="", compared=False, facts=False, screen_only=True),
        View("distributed", "Distributed", "Computation and communication of the workers, and their collectives.",
             f"{_VIEWS}.distributed:distributed", all_workers=True),
    ),
    entries={"rules": f"{_VIEWS}.advice:RULES", "steps": f"{_VIEWS}.overview:step_spans"},
)  # fmt: skip
