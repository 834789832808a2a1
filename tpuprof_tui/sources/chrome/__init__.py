"""Chrome-trace JSON, as PyTorch's profiler writes it: events in columns, whatever the size of the file."""
