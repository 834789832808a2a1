"""Vocabulary and columns of databases of Nsight Systems: those of PyTorch traces, with its own words."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from tpuprof_tui.model.columns import Column
from tpuprof_tui.model.vocabulary import NAMES, Capability, Category, NameColouring, Shades, Word, WorkOrigin
from tpuprof_tui.sources.torch.vocabulary import COLUMNS as TORCH_COLUMNS
from tpuprof_tui.sources.torch.vocabulary import DEVICE, MEMORY
from tpuprof_tui.sources.torch.vocabulary import VOCABULARY as TORCH

#: Views and columns of what Nsight Systems does not record: modules, shapes, source lines.
_LACKING: Final = ("modules", "roofline", "fusion", "module", "frame", "shapes", "input_types", "stack", "external",
                   "occupancy")  # fmt: skip
_OTHER: Final[dict[str, dict[str, Any]]] = {
    "order": {"help": "Place among the events of the database."},
    "name": {"help": "Kernel, copy, call, or range of NVTX."},
    "type": {"help": "The table, or domain of NVTX, that it stands in."},
    "operator": {"title": "NVTX range", "aliases": ("range", "nvtx"),
                 "help": "Innermost range of NVTX around the call, or around what launched the work."},
    "operators": {"title": "NVTX ranges", "help": "Time of ranges of NVTX on the host, and of what they started on the "
                  "device."},
    "steps": {"help": "The steps that ranges of NVTX mark, and their length on the device."},
    "memory": {"help": "Memory over time, its peaks, what was allocated, and in which ranges of NVTX."},
    "recording": {"help": "What was stated of the machine and the recording; values of secrets are masked."},
}  # fmt: skip
_CATEGORIES: Final = {
    "kernels": ("kernel", "graph"), "operators": ("nvtx",), "copies": ("memcpy", "memset"),
    "calls": ("runtime", "driver"), "annotations": ("collective_comm",),
}  # fmt: skip
COLUMNS: Final = (
    *(replace(column, **_OTHER.get(column.key, {})) for column in TORCH_COLUMNS if column.key not in _LACKING),
    Column("graph_node", "Graph node", is_id=True, width=9, lanes=("stream",), group="links",
           help="Node of the CUDA graph that it belongs to."),
)  # fmt: skip

VOCABULARY: Final = replace(
    TORCH,
    source="nsys",
    title="Nsight Systems",
    scope=Word("NVTX range"),
    categories=(
        *(replace(each, name="NVTX ranges" if each.name == "operators" else each.name,
                  words=_CATEGORIES.get(each.name, each.words))
          for each in TORCH.categories if each.name != "Python frames"),
        Category("OS runtime", "S", Shades("#c0b050"), ("osrt",)),
    ),
    capabilities=(
        Capability(NAMES, "names", "any recording"),
        Capability(DEVICE, "device work", "--trace=cuda"),
        Capability(MEMORY, "memory", "--cuda-memory-usage=true"),
    ),
    named=tuple(NameColouring("operator", "NVTX range", each.needs, each.entry) for each in TORCH.named
                if each.key == "operator"),
    frames={"nvtx": ""},
    origins=(WorkOrigin("operators", Word("NVTX range"), "operator"),),
    columns_entry="tpuprof_tui.sources.nsys.vocabulary:COLUMNS",
    texts_file=Path(__file__).with_name("help.txt"),
    views=tuple(replace(each, **_OTHER.get(each.id, {})) for each in TORCH.views if each.id not in _LACKING),
)  # fmt: skip
