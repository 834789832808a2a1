"""Vocabulary of memory snapshots: columns of allocations, kinds of lanes, views."""

from __future__ import annotations

from typing import Final

from tpuprof_tui.model.activity import Activity
from tpuprof_tui.model.columns import Column
from tpuprof_tui.model.view import View
from tpuprof_tui.model.vocabulary import Capability, Category, GroupKind, LaneKind, Shades, Vocabulary, Word

HISTORY: Final = "history"
STACKS: Final = "stacks"
#: What no snapshot has.
_WORK: Final = "work"
_VIEWS: Final = "tpuprof_tui.sources.snapshot.views.memory"

COLUMNS: Final = (
    Column("core", "GPU", width=4, aliases=("gpu",), help="Number of the GPU."),
    Column("order", "Idx", width=7, help="Place of the allocation in the trace; missing if it is older."),
    Column("name", "Allocated by", kind="text", width=36, shown=True,
           help="Innermost frame outside of libraries: file:line function."),
    Column("bytes", "Bytes", unit="B", width=10, shown=True, help="Size, rounded by the allocator."),
    Column("start", "Start", unit="ns", width=13, shown=True, group="time",
           help="When it was allocated; 0 if it is older than the history."),
    Column("end", "End", unit="ns", width=13, group="time", help="When it was freed, or the end of the history."),
    Column("duration", "Lifetime", unit="ns", width=11, shown=True, group="time", aliases=("dur", "lifetime"),
           help="End minus start."),
    Column("state", "State", kind="text", width=16, shown=True, group="time",
           help="Freed, held at the end, or waiting to be freed; of one that is older than the history, that too."),
    Column("type", "Pool", kind="text", width=8, shown=True, group="place", aliases=("pool",),
           help="Pool of the allocator: small up to 1 MiB, or large."),
    Column("stream", "Stream", is_id=True, width=8, group="place", help="Stream that it was allocated for."),
    Column("address", "Address", kind="hex", width=16, group="place", help="Its address."),
    Column("frame", "Frame", kind="text", width=40, group="origin", aliases=("source",),
           help="The same frame with its whole path."),
    Column("stack", "Call stack", kind="text", width=40, group="origin", help="All frames, the innermost first."),
    Column("category", "Category", kind="text", width=12, group="origin", help="Category, as recorded."),
    Column("metadata", "Metadata", kind="text", width=16, group="origin", help="User metadata, as recorded."),
)  # fmt: skip

#: States of allocations at the end.
_STATES: Final = ("freed", "held", "waiting to be freed")
STATES: Final = (*_STATES, *(f"{each}, older than the history" for each in _STATES))
#: Columns of the tables: segments and their blocks at the snapshot, entries of the trace, and of those that failed.
_GPU: Final = Column("device", "GPU")
_STREAM: Final = Column("stream", "Stream", is_id=True)
_POOL: Final = Column("segment_type", "Pool", kind="text")
_POOL_ID: Final = Column("segment_pool_id", "Pool id", kind="text")
_STACK: Final = Column("frames", "Call stack", kind="text")
_ADDRESS: Final = Column("address", "Address", kind="hex")
SEGMENTS: Final = (
    _GPU, _POOL, _POOL_ID, _STREAM, _ADDRESS, Column("total_size", "Size", unit="B"),
    Column("is_expandable", "Expandable"), Column("blocks", "Blocks"), _STACK,
)  # fmt: skip
BLOCKS: Final = (
    _GPU, _POOL, _POOL_ID, _STREAM, _ADDRESS, Column("segment", "Segment"), Column("size", "Size", unit="B"),
    Column("requested_size", "Requested", unit="B"), Column("state", "State", kind="text"), _STACK,
)  # fmt: skip
TRACE: Final = (
    _GPU, Column("action", "Action", kind="text"), Column("start", "Time", unit="ns"),
    Column("addr", "Address", kind="hex"), Column("size", "Size", unit="B"),
    Column("device_free", "Free", unit="B"), _STREAM, _STACK,
)  # fmt: skip

#: Generic views about work of a device.
_OF_WORK: Final = (("unit", "Work of one {unit}"), ("units", "Work of {units}"), ("lanes", "Work of {lanes}"),
                   ("steps", "Steps"), ("kernels", "Kernels"), ("operations", "Operations"), ("calltree", "Call paths"),
                   ("lost", "Time lost"), ("critical_path", "Critical path"), ("bandwidth", "Bandwidth"),
                   ("durations", "Durations"))  # fmt: skip

VOCABULARY: Final = Vocabulary(
    source="snapshot",
    title="memory snapshot",
    unit=Word("GPU"),
    lane=Word("pool"),
    event=Word("allocation"),
    scope=Word("stack"),
    operation=Word("source line"),
    lane_kinds=(LaneKind("pool", "Pool", Activity.COMPUTE, 0, shades=Shades("#5b9bd5")),),
    group_kinds=(GroupKind("gpu", "GPUs", Word("GPU")),),
    categories=(Category("large blocks", "L", Shades("#5b9bd5"), ("large",)),
                Category("small blocks", "S", Shades("#d08a4a"), ("small",))),
    capabilities=(
        Capability(HISTORY, "history of allocations", "torch.cuda.memory._record_memory_history()"),
        Capability(STACKS, "stacks", "torch.cuda.memory._record_memory_history(stacks='python')"),
        Capability(_WORK, "work of a GPU", "torch.profiler"),
    ),
    searched=("name", "state", "type"),
    phrases={"category": "pool"},
    work_breakdowns=(),
    columns_entry=f"{__name__}:COLUMNS",
    help_filters=(("bytes>100M", "allocations of more than 100 MB"), ("state~held", "what is held at the end")),
    views=(
        View("overview", "Overview", "Memory of each {unit} at its peak and at the end, and who holds most.",
             f"{_VIEWS}:overview", place="first"),
        View("held", "Held memory", "What holds memory at the peak and at the end: by source line, stack, category.",
             f"{_VIEWS}:held", place="first"),
        View("fragmentation", "Fragmentation", "Reserved memory that is not used, by pool, and the segments.",
             f"{_VIEWS}:fragmentation", place="second"),
        *(View(name, title, "", "", (_WORK,), in_summary=False, place="", compared=False) for name, title in _OF_WORK),
    ),
    entries={"rules": f"{_VIEWS}:RULES", "sentence": f"{_VIEWS}:sentence"},
)  # fmt: skip
