"""PyTorch Profiler traces: Chrome-trace JSON of one process each, alone or a folder of a run's workers."""
