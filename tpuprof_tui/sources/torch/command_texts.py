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
    "worked_examples": """\
What should be changed first in torch_cuda_synthetic, and where is it to be seen?
  $ tpuprof report torch_cuda_synthetic findings --rank 1 --json --limit 2
    -> sentence = "Rank 1 is late: the others wait 810.6 us longer in each step for it (up to 2.432 ms, 23.0% of ...
    -> workers.0.offset_us = 12.345
    -> views.findings.workers.*.tables.findings.rows.1.text = "The run waits 1.438 ms for data in 3 calls."
    -> views.findings.workers.*.tables.findings.rows.1.evidence.0.start_us = 3557.04
  $ tpuprof instructions torch_cuda_synthetic --range 3569.385us..+1us --filter rank=1 --columns name,start,duration
    -> name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    -> start = 3569385
    -> duration = 487821
Answer: rank 1 is late, by up to 2.432 ms. It waits 1.438 ms for data, such as 487821 ns in the loader from
3569385 ns on, which is offset_us 12.345 plus start_us 3557.04.

How long does the GPU compute in torch_cpu_recorded?
  $ tpuprof describe torch_cpu_recorded --json
    -> missing.0.what = "device work"
    -> missing.0.needs = "activities=[ProfilerActivity.CUDA]"
  $ tpuprof report torch_cpu_recorded kernels --json
    -> views.kernels.workers.*.figures.kernels = 0
Answer: not recorded, device work is missing. That 0 kernels are in the trace does not say that none ran. Record with
activities=[ProfilerActivity.CUDA].
""",
}
