"""Examples of the command line's help for Ascend output."""

from __future__ import annotations

from typing import Final

#: Examples by command.
TEXTS: Final = {
    "open": """\
  tpuprof node1_4711_2026_ascend_pt           output of Ascend's profiler; the folder above: all ranks
""",
    "report": """\
  tpuprof report node1_4711_2026_ascend_pt communication cluster
""",
}
