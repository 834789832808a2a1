"""Small synthetic traces as JAX (XLA) and unitrace of Intel write them, with known figures."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from perfetto_files import BEGIN, END, Builder


def _named(process: int, name: str, **threads: str) -> list[dict[str, Any]]:
    return [
        {"ph": "M", "pid": process, "name": "process_name", "args": {"name": name}},
        *({"ph": "M", "pid": process, "tid": int(thread[1:]), "name": "thread_name", "args": {"name": each}}
          for thread, each in threads.items()),
    ]  # fmt: skip


def _event(process: int, thread: int, name: str, start: float, length: float, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "pid": process, "tid": thread, "name": name, "ts": start, "dur": length, **more}


def jax_on_tpus(path: Path, devices: int = 2, steps: int = 3) -> Path:
    """Two TPUs: each step of 100 us has two operations of 30 us, an all-reduce of 20 us, and 10 us of nothing."""
    events = []
    for device in range(devices):
        process = device + 3
        events += _named(process, f"/device:TPU:{device}", t1="Steps", t2="XLA Modules", t3="XLA Ops",
                         t4="Framework Name Scope")  # fmt: skip
        for step in range(steps):
            at = 1000 + 100 * step
            events += [
                _event(process, 1, str(step + 7), at, 100), _event(process, 2, "jit_train_step(123)", at, 90),
                _event(process, 3, "fusion.1", at, 30, args={"hlo_category": "loop fusion"}),
                _event(process, 3, "convolution.2", at + 30, 30),
                _event(process, 3, "all-reduce.3", at + 60, 20), _event(process, 4, "train/layer", at, 60),
            ]  # fmt: skip
    events += _named(701, "/host:CPU", t9="python3")
    events += [_event(701, 9, "PjitFunction(train_step)", 990 + 100 * step, 12) for step in range(steps)]
    path.write_bytes(gzip.compress(json.dumps({"displayTimeUnit": "ns", "traceEvents": events}).encode(), mtime=0))
    return path


def jax_on_gpu(path: Path) -> Path:
    """One GPU with two streams, whose operations are told once more by threads of XLA; a call for each kernel."""
    events = _named(1, "/device:GPU:0", t13="Stream #13(Compute)", t14="Stream #14(MemcpyH2D)", t2="XLA Ops")
    events += _named(701, "/host:CPU", t9="python3")
    for number in range(3):
        told = {"args": {"correlation_id": str(number + 1)}}
        events += [
            _event(701, 9, "cuLaunchKernel", 100 * number, 5, **told),
            _event(1, 13, "loop_add_fusion", 100 * number + 20, 40, **told),
            _event(1, 2, "add.1", 100 * number + 20, 40),
        ]  # fmt: skip
    events += [_event(1, 14, "MemcpyH2D", 10, 5), _event(1, 13, "ncclDevKernel_AllReduce", 320, 10)]
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode(), mtime=0))
    return path


def unitrace(path: Path) -> Path:
    """Two GPUs with a queue each, and the calls of the host."""
    events = _named(500, "HOST<node0>", t500="Thread 500")
    for number, process in enumerate((4294967295, 4294967294)):
        name = f"DEVICE<node0>[Intel(R) Data Center GPU Max 1550] 0:{number + 3}a:0:0"
        events += _named(process, name, **{f"t{process - 10}": "Compute<0,0>"})
        for kernel in range(2):
            at = 10 + 50 * kernel + number
            events += [
                _event(process, process - 10, "gemm_kernel[SIMD32 {8; 1; 1}]", at, 30, cat="gpu_op", args={"id": "7"}),
                {"ph": "t", "pid": process, "tid": process - 10, "name": "dep", "cat": "Flow_H2D_7_0", "ts": at,
                 "id": 7},
            ]  # fmt: skip
        events += [
            _event(process, process - 10, "zeCommandListAppendMemoryCopy(M2D)[4096 bytes]", 120, 5, cat="gpu_op")
        ]
    events += [_event(500, 500, "zeCommandListAppendLaunchKernel", 5 + 50 * kernel, 3, cat="cpu_op", id=0)
               for kernel in range(2)]  # fmt: skip
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def rocprof(path: Path, gpus: int = 1) -> Path:
    """Calls of HIP on a thread, kernels and copies of GPUs from agent 1 on, as rocprofv3 writes them for Perfetto."""
    made = Builder()
    made.process(1, 700, "app")
    made.thread(2, 1, 700, 700)
    slices = []
    for gpu in range(1, gpus + 1):
        compute, there, back = 10 * gpu, 10 * gpu + 1, 10 * gpu + 2
        made.track(compute, f"COMPUTE AGENT [{gpu}] STREAM [{gpu}] (GPU)", 1)
        made.track(there, f"COPY to AGENT [{gpu}] STREAM [{gpu}] (GPU)", 1)
        made.track(back, f"COPY to AGENT [0] STREAM [{gpu}] (CPU)", 1)
        for step in range(2):
            at, corr = 1_000 * step + 100 * gpu, 10 * gpu + 3 * step
            slices += [
                (2, at, 20, "hipLaunchKernel", "hip_api", {"corr_id": corr, "tid": 700}),
                (compute, at + 50, 300, "gemm(float*, int)", "kernel_dispatch",
                 {"corr_id": corr, "agent": f"Agent {gpu}", "queue": 1, "workgroup_size": 256, "grid_size": 4096}),
                (there, at + 10, 30, "MEMORY_COPY_HOST_TO_DEVICE", "memory_copy", {"copy_bytes": 4096,
                                                                                   "corr_id": corr + 1}),
                (back, at + 400, 40, "MEMORY_COPY_DEVICE_TO_HOST", "memory_copy", {"copy_bytes": 512,
                                                                                   "corr_id": corr + 2}),
            ]  # fmt: skip
    slices.append((2, 3_000, 10, "epoch", "marker_api", {"corr_id": 900}))
    for track, begin, length, name, category, args in slices:
        made.event(BEGIN, track, begin, name, category, args)
        made.event(END, track, begin + length)
    path.write_bytes(made.trace.SerializeToString())
    return path
