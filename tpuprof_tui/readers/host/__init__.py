"""Traces of the host (Chrome-trace JSON, as PyTorch's profiler writes them), laid beside the device's profile."""

from __future__ import annotations

from .join import HOST_ALIGNMENT, HOST_BASE, with_host_trace
from .trace import HostEvents, HostTrace, read_host_trace, recognises

__all__ = [
    "HOST_ALIGNMENT",
    "HOST_BASE",
    "HostEvents",
    "HostTrace",
    "read_host_trace",
    "recognises",
    "with_host_trace",
]
