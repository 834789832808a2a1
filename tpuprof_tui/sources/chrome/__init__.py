"""Reads Chrome-trace JSON, as PyTorch's profiler writes it: events into columns, for files of any size."""
