"""Examples of the command line's help for PyTorch traces."""

from __future__ import annotations

from typing import Final

#: Examples by command.
TEXTS: Final = {
    "open": """\
  tpuprof trace.json.gz                       a PyTorch or vLLM trace
  tpuprof log/run1                            all ranks of a run
  tpuprof log/run2 --against log/run1         what changed
""",
    "report": """\
  tpuprof report trace.json.gz operators --limit 10             a PyTorch trace
  tpuprof report log/run1 overview distributed --step 12        one step of all ranks
""",
    "diff": """\
  tpuprof diff log/run1 log/run2 operators kernels              two runs of PyTorch
""",
    "export": """\
  tpuprof export trace.json.gz out --perfetto                   of a PyTorch trace
""",
}
