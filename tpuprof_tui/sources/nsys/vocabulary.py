"""Vocabulary of databases of Nsight Systems: that of PyTorch traces, with its own words."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from tpuprof_tui.model.vocabulary import NAMES, Capability, Category, NameColouring, Shades, Word, WorkOrigin
from tpuprof_tui.sources.torch.vocabulary import DEVICE, MEMORY
from tpuprof_tui.sources.torch.vocabulary import VOCABULARY as TORCH

#: Views of what Nsight Systems does not record: modules, shapes, source lines.
_LACKING: Final = ("modules", "roofline", "fusion")
_OTHER: Final = {
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
#: Examples of the command line's help.
TEXTS: Final = {"open": "  tpuprof report.sqlite                       a database of Nsight Systems\n"}

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
    columns_entry="tpuprof_tui.sources.nsys.schema:COLUMNS",
    texts_entry="tpuprof_tui.sources.nsys.vocabulary:TEXTS",
    views=tuple(replace(each, **_OTHER.get(each.id, {})) for each in TORCH.views if each.id not in _LACKING),
)  # fmt: skip
