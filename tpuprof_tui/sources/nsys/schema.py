"""Columns of the events of Nsight Systems: those of PyTorch traces that it records, and its own."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from tpuprof_tui.model.columns import Column
from tpuprof_tui.sources.torch.schema import COLUMNS as TORCH

_LACKING: Final = ("module", "frame", "shapes", "input_types", "stack", "external", "occupancy")
_OTHER: Final[dict[str, dict[str, Any]]] = {
    "order": {"help": "Place among the events of the database."},
    "name": {"help": "Kernel, copy, call, or range of NVTX."},
    "type": {"help": "The table, or domain of NVTX, that it stands in."},
    "operator": {"title": "NVTX range", "aliases": ("range", "nvtx"),
                 "help": "Innermost range of NVTX around the call, or around what launched the work."},
}  # fmt: skip
COLUMNS: Final = (
    *(replace(column, **_OTHER.get(column.key, {})) for column in TORCH if column.key not in _LACKING),
    Column("graph_node", "Graph node", is_id=True, width=9, engines=("stream",), group="links",
           help="Node of the CUDA graph that it belongs to."),
)  # fmt: skip
