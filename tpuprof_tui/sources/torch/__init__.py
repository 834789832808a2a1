"""Source of PyTorch Profiler traces: Chrome-trace JSON, one file per process; a single file or the folder of a run."""
