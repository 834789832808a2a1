"""The host's own trace of the same run, as Chrome trace events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .build import Built

#: Host time (us) of the end of the device's handshake.
_ZERO_US = 81_250_400.375
#: From the last record to the end of the host's disable_profile (ns).
TAIL_OFFSET_NS = 131_500
_PROCESS, _THREAD = 7001, 7001

_OPERATOR = {
    "index_select_multi_core": "aten::embedding",
    "rmsnorm_multi_core": "my_ops::rmsnorm_forward",
    "a16_matmul_multi_core": "my_ops::matmul_gptq_forward",
    "matmul_multi_core": "aten::mm",
    "lm_head_matmul_multi_core": "aten::linear",
    "rope_multi_core": "my_ops::rope",
    "llama_attention_multi_core": "my_ops::llama_attention",
    "llama_mlp_multi_core": "my_ops::llama_mlp",
    "all_reduce_multi_core": "c10d::allreduce_",
    "topp_sampling_multi_core": "my_ops::topp_sampling",
}


def write_host_trace(path: Path, built: Built, last_ns: float) -> dict[str, Any]:
    """Write the trace; what the truth must know of it."""
    end_us = round(_ZERO_US + (last_ns + TAIL_OFFSET_NS) / 1000.0, 3)
    events: list[dict[str, Any]] = [
        _meta("process_name", "python", 0),
        _meta("thread_name", f"thread {_THREAD} (python)", _THREAD),
        _slice("Trace", "PyTorch Profiler (0)", _ZERO_US - 900.0, end_us - _ZERO_US + 1800.0),
        _slice("cpu_op", "my_ops::enable_profile", _ZERO_US - 430.0, 425.0),
        _slice("tpudnn", "enable_profile", _ZERO_US - 410.0, 400.0),
    ]
    free = _ZERO_US + 1.0
    for launch in range(built.plan.launches):
        if launch == 0 or built.plan.batch[launch] != built.plan.batch[launch - 1]:
            step = int(built.plan.batch[launch])
            events.append(_slice("user_annotation", f"decode_step_{step}", free, 11.5))
        name = built.catalogue.programs[int(built.plan.program[0, launch])].name
        begin = max(free, _ZERO_US + float(built.launch_start_ns[launch]) / 1000.0 - 60.0)
        length = 8.0 + (launch * 7919 % 64) / 10.0
        arguments = {"External id": launch, "Sequence number": launch}
        events.append(_slice("cpu_op", _OPERATOR.get(name, f"my_ops::{name}"), begin, length, arguments))
        events.append(_slice("tpudnn", name, begin + 1.0, length - 2.0, {"stream": 0}))
        events.append({"ph": "s", "id": launch, "cat": "ac2g", "name": "ac2g", "pid": _PROCESS,
                       "tid": _THREAD, "ts": round(begin, 3)})  # fmt: skip
        free = begin + length + 1.0
    events.append(_slice("cpu_op", "my_ops::disable_profile", end_us - 310.0, 320.0))
    events.append(_slice("tpudnn", "disable_profile", end_us - 300.0, 300.0))
    body = {"schemaVersion": 1, "displayTimeUnit": "ms", "traceName": path.name, "traceEvents": events}
    path.write_text(json.dumps(body), encoding="utf-8")
    return {"host_zero_us": _ZERO_US, "disable_end_us": end_us, "tail_offset_ns": TAIL_OFFSET_NS,
            "host_trace": path.name}  # fmt: skip


def _meta(name: str, value: str, thread: int) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": _PROCESS, "tid": thread, "args": {"name": value}}


def _slice(
    category: str, name: str, start_us: float, length_us: float, arguments: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": _PROCESS,
        "tid": _THREAD,
        "ts": round(start_us, 3),
        "dur": round(length_us, 3),
        "args": arguments or {},
    }
