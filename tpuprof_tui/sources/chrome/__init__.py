"""Chrome-trace JSON, as PyTorch's profiler writes it: events in columns, whatever the size of the file."""

from __future__ import annotations

from .trace import HostEvents, HostTrace, Marks, read_host_trace, recognises

__all__ = [
    "HostEvents",
    "HostTrace",
    "Marks",
    "read_host_trace",
    "recognises",
]
